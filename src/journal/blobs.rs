//! Content-addressed files: what is too large for an event, under the name of its digest.
//!
//! Role: store and fetch bytes by SHA-256. Not its role: deciding what is worth keeping.
//! Invariants: a blob is on disk before `put` returns, so an event may name it; `get` returns
//! only bytes that match the name.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use super::atomic;
use super::error::{JournalError, at};
use crate::model::digest::Digest;

/// The largest blob.
pub const MAX_BLOB: u64 = 64 * 1024 * 1024;

/// The blobs of one run.
#[derive(Clone, Debug)]
pub struct Blobs {
    dir: PathBuf,
}

impl Blobs {
    /// `dir` is the `blobs` directory; the algorithm is the first level below it.
    pub(super) fn at(dir: PathBuf) -> Self {
        Self { dir: dir.join("sha256") }
    }

    /// Stores `bytes` and returns their digest. Durable when it returns.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, JournalError> {
        if bytes.len() as u64 > MAX_BLOB {
            let what = "a blob".to_owned();
            return Err(JournalError::TooLarge { what, bytes: bytes.len() as u64, limit: MAX_BLOB });
        }
        let digest = Digest::of(bytes);
        let hex = digest.to_string();
        let (head, rest) = hex.split_at(2);
        let dir = self.dir.join(head);
        if !dir.is_dir() {
            atomic::create_dir(&dir).map_err(at(&dir))?;
            atomic::sync_dir(&self.dir).map_err(at(&self.dir))?;
        }
        if fs::read(dir.join(rest)).is_ok_and(|found| found == bytes) {
            // Whoever renamed it may have crashed before the name was durable.
            atomic::sync_dir(&dir).map_err(at(&dir))?;
        } else {
            atomic::write(&dir, rest, bytes)?;
        }
        Ok(digest)
    }

    /// The bytes stored under `digest`, checked against it.
    pub fn get(&self, digest: &Digest) -> Result<Vec<u8>, JournalError> {
        let path = self.path(digest);
        let file = match fs::File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(JournalError::NotFound { path }),
            Err(error) => return Err(JournalError::io(&path, error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_BLOB + 1).read_to_end(&mut bytes).map_err(at(&path))?;
        let found = Digest::of(&bytes);
        if found == *digest {
            Ok(bytes)
        } else {
            Err(JournalError::damaged(&path, format!("its content has the digest {found}")))
        }
    }

    /// The digests there are, in order.
    pub fn list(&self) -> Result<Vec<Digest>, JournalError> {
        Ok(self.entries()?.into_iter().filter_map(|(_, digest)| digest).collect())
    }

    /// Where the blob of `digest` is, or would be.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        let hex = digest.to_string();
        let (head, rest) = hex.split_at(2);
        self.dir.join(head).join(rest)
    }

    /// Every file below the blob directory, with the digest its name spells, if it spells one.
    pub(super) fn entries(&self) -> Result<Vec<(PathBuf, Option<Digest>)>, JournalError> {
        let mut found = Vec::new();
        for dir in children(&self.dir)? {
            let head = name_of(&dir);
            if !dir.is_dir() {
                found.push((dir, None));
                continue;
            }
            for file in children(&dir)? {
                let name = name_of(&file);
                // A temp file is what a crash left of a blob nobody was told about.
                if !name.starts_with(atomic::TEMP_PREFIX) {
                    let digest = if head.len() == 2 { format!("{head}{name}").parse().ok() } else { None };
                    found.push((file, digest));
                }
            }
        }
        Ok(found)
    }
}

/// The entries of a directory in the order of their names; none when there is no such directory.
fn children(dir: &Path) -> Result<Vec<PathBuf>, JournalError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(JournalError::io(dir, error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(at(dir))?.path());
    }
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
