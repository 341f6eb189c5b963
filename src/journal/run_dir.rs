//! The directory of one run.
//!
//! Role: know where things are, and create them in an order that survives a crash.
//! Not its role: what the files hold.
//! Invariant: a directory with a `genesis.json` is complete, because that file comes last.

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use super::atomic;
use super::blobs::Blobs;
use super::error::{JournalError, at};
use super::failpoint::failpoint;
use super::lines::MAX_LINE;
use super::lock;
use super::names::{self, GENESIS, RESERVE, SEAL, SIGNATURE};
use super::reserve;
use crate::model::digest::Digest;

/// An existing run directory.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
    genesis: Vec<u8>,
}

impl RunDir {
    /// Creates the directory `root` (`…/runs/<id>`) of a new run.
    pub fn create(root: &Path, genesis: &[u8]) -> Result<Self, JournalError> {
        if root.join(GENESIS).exists() {
            return Err(JournalError::Exists { path: root.to_owned() });
        }
        let run = Self { path: root.to_owned(), genesis: genesis.to_vec() };
        let journal = run.journal_dir();
        for dir in [root, &journal, &run.path.join("blobs"), &run.path.join("blobs/sha256")] {
            atomic::create_dir(dir).map_err(at(dir))?;
        }
        // The first segment exists from the start: later its absence is damage, not youth.
        let first = run.segment_path(1);
        fs::OpenOptions::new().append(true).create(true).open(&first).map_err(at(&first))?;
        reserve::allocate(&run.reserve_path()).map_err(at(&run.reserve_path()))?;
        failpoint("run_reserve");
        for dir in [&journal, &run.path.join("blobs")] {
            atomic::sync_dir(dir).map_err(at(dir))?;
        }
        atomic::write(root, GENESIS, genesis)?;
        if let Some(parent) = root.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            atomic::sync_dir(parent).map_err(at(parent))?;
        }
        Ok(run)
    }

    /// Opens a run directory. Changes nothing, so it works on a read-only copy.
    pub fn open(root: &Path) -> Result<Self, JournalError> {
        let path = root.join(GENESIS);
        match fs::read(&path) {
            Ok(genesis) => Ok(Self { path: root.to_owned(), genesis }),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(JournalError::NotFound { path }),
            Err(error) => Err(JournalError::io(&path, error)),
        }
    }

    /// Is this the directory of a run whose engine died before the first event was written? Anything beyond what
    /// comes before that event makes it a run, damaged or not.
    pub fn never_began(root: &Path) -> bool {
        let only = |dir: PathBuf, known: &[&str]| match fs::read_dir(dir) {
            Ok(entries) => entries.into_iter().all(|entry| {
                entry.is_ok_and(|entry| {
                    let name = entry.file_name();
                    name.to_str().is_some_and(|name| known.contains(&name) || name.starts_with(atomic::TEMP_PREFIX))
                })
            }),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        let first = names::segment(1);
        !has_line(&root.join("journal").join(&first))
            && only(root.to_owned(), &[lock::NAME, "journal", "blobs", RESERVE, GENESIS])
            && only(root.join("journal"), &[&first])
            && only(root.join("blobs"), &["sha256"])
            && only(root.join("blobs/sha256"), &[])
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of `genesis.json`.
    pub fn genesis(&self) -> &[u8] {
        &self.genesis
    }

    /// `prev` of event 0.
    pub fn genesis_digest(&self) -> Digest {
        Digest::of(&self.genesis)
    }

    pub fn blobs(&self) -> Blobs {
        Blobs::at(self.path.join("blobs"))
    }

    /// The directory's name, which is the run's id.
    pub fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The files that make up the run, by their names in it: what a copy needs. Locks, sockets, what is kept for the
    /// last words and what recoveries set aside are none of them.
    pub fn parts(&self) -> Result<Vec<(String, PathBuf)>, JournalError> {
        let mut parts: Vec<(String, PathBuf)> = Vec::new();
        for name in [GENESIS, SEAL, SIGNATURE] {
            let path = self.path.join(name);
            if path.exists() {
                parts.push((name.to_owned(), path));
            }
        }
        for number in self.segments()? {
            parts.push((format!("journal/{}", names::segment(number)), self.segment_path(number)));
        }
        for digest in self.blobs().list()? {
            let path = self.blobs().path(&digest);
            let name = path.strip_prefix(&self.path).unwrap_or(&path).to_string_lossy().into_owned();
            parts.push((name, path));
        }
        Ok(parts)
    }

    pub(super) fn journal_dir(&self) -> PathBuf {
        self.path.join("journal")
    }

    pub(super) fn segment_path(&self, number: u32) -> PathBuf {
        self.journal_dir().join(names::segment(number))
    }

    pub(super) fn reserve_path(&self) -> PathBuf {
        self.path.join(RESERVE)
    }

    /// The numbers of the segments there are, in order.
    pub(super) fn segments(&self) -> Result<Vec<u32>, JournalError> {
        let dir = self.journal_dir();
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&dir).map_err(at(&dir))? {
            let name = entry.map_err(at(&dir))?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".jsonl"));
            // Other names (saved torn tails, an editor's copy) are not ours to judge.
            if let Some(number) = number.filter(|digits| digits.len() == 8).and_then(|n| n.parse().ok()) {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// Is there a whole line at the beginning? What cannot be read, or is no line of ours, is somebody else's to judge.
fn has_line(segment: &Path) -> bool {
    let file = match fs::File::open(segment) {
        Ok(file) => file,
        Err(error) => return error.kind() != ErrorKind::NotFound,
    };
    let (mut line, limit) = (Vec::new(), MAX_LINE as u64 + 1);
    let read = BufReader::new(file.take(limit)).read_until(b'\n', &mut line);
    read.map_or(true, |read| line.ends_with(b"\n") || read as u64 == limit)
}
