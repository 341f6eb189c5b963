//! A run in one file: journal, blobs, seal, signature, anchors and evidence, for another machine.
//!
//! Role: write the file and take it apart again. Not its role: believing it; that is `verify`'s, afterwards.
//! The file is a plain tar (`tar tf` lists it), and ends in SHA256SUMS (`sha256sum -c` checks it).
//! Invariants: one run has one spelling: names in order, fixed headers, zeros between, nothing behind; reading
//! refuses any other, so that no byte can be changed unseen, and links, devices, duplicates, absolute names and
//! `..` cannot even be written down. Nothing is compressed: what comes out is never larger than what went in.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::journal::{Anchors, JournalError, RunDir};
use crate::model::digest::Digest;
use crate::model::ids::RunId;

use crate::model::rendered::Rendered;

mod tar;

/// Files in one run.
const MAX_ENTRIES: usize = 500_000;
/// A segment or a blob ends well below this.
const MAX_ENTRY: u64 = 128 << 20;
/// All of them together.
const MAX_TOTAL: u64 = 16 << 30;
const SUMS: &str = "SHA256SUMS";
const ANCHORS: &str = "anchors.log";

/// Why a file is not taken apart.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It ends too early: a copy that was cut.
    #[error("the file ends in the middle of {0}")]
    Cut(String),
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> PackError + '_ {
    move |source| PackError::Io { path: path.to_owned(), source }
}

/// Where the bytes of an entry come from.
enum Source {
    Path(PathBuf),
    Bytes(Vec<u8>),
}

/// Writes a run with its evidence, as the journal renders it. Returns how many files there are in it.
pub fn pack(run_dir: &RunDir, anchors: &Anchors, evidence: Vec<Rendered>, out: &Path) -> Result<usize, PackError> {
    let mut entries: Vec<(String, Source)> =
        run_dir.parts()?.into_iter().map(|(name, path)| (name, Source::Path(path))).collect();
    let lines = anchors.lines_of(&run_dir.name())?;
    if !lines.is_empty() {
        entries.push((ANCHORS.to_owned(), Source::Bytes(lines)));
    }
    entries.extend(evidence.into_iter().map(|file| (file.path, Source::Bytes(file.bytes))));
    entries.sort_by(|(one, _), (two, _)| one.cmp(two));
    let dir = out.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new().prefix(".nightloop-tmp-").tempfile_in(dir).map_err(at(dir))?;
    write_all(&entries, &mut BufWriter::new(temporary.as_file_mut()))?;
    temporary.as_file().sync_all().map_err(at(out))?;
    temporary.persist_noclobber(out).map_err(|e| PackError::Io { path: out.to_owned(), source: e.error })?;
    Ok(entries.len())
}

fn write_all(entries: &[(String, Source)], out: &mut impl Write) -> Result<(), PackError> {
    let mut sums = String::new();
    for (name, source) in entries {
        let digest = match source {
            Source::Bytes(bytes) => write_entry(name, bytes.len() as u64, &mut bytes.as_slice(), out)?,
            Source::Path(path) => {
                let mut file = File::open(path).map_err(at(path))?;
                let size = file.metadata().map_err(at(path))?.len();
                write_entry(name, size, &mut file, out)?
            }
        };
        sums.push_str(&format!("{digest}  {name}\n"));
    }
    write_entry(SUMS, sums.len() as u64, &mut sums.as_bytes(), out)?;
    out.write_all(&[0; 2 * tar::BLOCK]).and_then(|()| out.flush()).map_err(at(Path::new(SUMS)))
}

fn write_entry(name: &str, size: u64, from: &mut impl Read, out: &mut impl Write) -> Result<Digest, PackError> {
    let refused = || PackError::Refused(format!("{name} cannot be packed: its name or size is beyond what is packed"));
    let header = tar::header(name, size).filter(|_| size <= MAX_ENTRY && is_ours(name)).ok_or_else(refused)?;
    out.write_all(&header).map_err(at(Path::new(name)))?;
    let digest = copy(from, size, name, out)?;
    out.write_all(&[0; tar::BLOCK][..tar::padding(size)]).map_err(at(Path::new(name)))?;
    Ok(digest)
}

/// Exactly `size` bytes, and their digest.
fn copy(from: &mut impl Read, size: u64, name: &str, out: &mut impl Write) -> Result<Digest, PackError> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut left = size;
    while left > 0 {
        let want = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let count = from.read(&mut buffer[..want]).map_err(at(Path::new(name)))?;
        if count == 0 {
            return Err(PackError::Cut(name.to_owned()));
        }
        hasher.update(&buffer[..count]);
        out.write_all(&buffer[..count]).map_err(at(Path::new(name)))?;
        left -= count as u64;
    }
    Ok(Digest::from_bytes(hasher.finalize().into()))
}

/// A run that was taken apart.
#[derive(Debug)]
pub struct Unpacked {
    pub run_dir: RunDir,
    /// The anchors that came with it.
    pub anchors: PathBuf,
}

/// Takes a file apart into an empty folder of the caller's.
pub fn unpack(file: &Path, into: &Path) -> Result<Unpacked, PackError> {
    let opened = File::open(file).map_err(at(file))?;
    if !opened.metadata().map_err(at(file))?.is_file() {
        return Err(PackError::Refused("it is not a file".to_owned()));
    }
    let dir = into.join("run");
    read_all(&mut BufReader::new(opened), &dir)?;
    if !dir.join("genesis.json").is_file() {
        return Err(PackError::Refused("it holds no genesis.json, so no run".to_owned()));
    }
    let run_dir = RunDir::open(&dir)?;
    // Anchors know a run by its name, which is that of its folder. A wrong one is for `verify` to find.
    let genesis: Option<serde_json::Value> = serde_json::from_slice(run_dir.genesis()).ok();
    let run = genesis.and_then(|genesis| RunId::parse(genesis.get("run")?.as_str()?));
    let dir = match run {
        Some(run) => {
            let named = into.join(run.as_str());
            fs::rename(&dir, &named).map_err(at(&named))?;
            named
        }
        None => dir,
    };
    Ok(Unpacked { run_dir: RunDir::open(&dir)?, anchors: dir.join(ANCHORS) })
}

fn read_all(from: &mut impl Read, dir: &Path) -> Result<(), PackError> {
    let (mut sums, mut last, mut total) = (String::new(), String::new(), 0u64);
    for count in 0.. {
        let mut header = [0; tar::BLOCK];
        fill(from, &mut header, "its list of files")?;
        let (name, size) = tar::parse(&header).ok_or_else(|| {
            PackError::Refused(format!("after `{last}` it has an entry that nightloop does not write"))
        })?;
        let refuse = |why: String| Err(PackError::Refused(format!("`{name}` {why}")));
        total = total.saturating_add(size);
        if count > MAX_ENTRIES || size > MAX_ENTRY || total > MAX_TOTAL {
            return refuse("goes beyond what is taken apart: too many or too large files".to_owned());
        }
        if name == SUMS {
            let mut noted = Vec::new();
            copy(from, size, &name, &mut noted)?;
            pad(from, size, &name)?;
            if noted != sums.as_bytes() {
                return refuse("does not list the files that are there".to_owned());
            }
            return end(from);
        }
        if !is_ours(&name) || name <= last {
            return refuse("is not a file of a run, or not in its place".to_owned());
        }
        let path = dir.join(&name);
        let parent = path.parent().unwrap_or(dir);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(at(parent))?;
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(at(&path))?;
        let digest = copy(from, size, &name, &mut BufWriter::new(made))?;
        pad(from, size, &name)?;
        sums.push_str(&format!("{digest}  {name}\n"));
        last = name;
    }
    Ok(())
}

fn pad(from: &mut impl Read, size: u64, name: &str) -> Result<(), PackError> {
    let mut rest = [0; tar::BLOCK];
    let rest = &mut rest[..tar::padding(size)];
    fill(from, rest, name)?;
    if rest.iter().any(|byte| *byte != 0) {
        return Err(PackError::Refused(format!("behind `{name}` is something")));
    }
    Ok(())
}

fn end(from: &mut impl Read) -> Result<(), PackError> {
    let mut zeros = [0; 2 * tar::BLOCK];
    fill(from, &mut zeros, "its end")?;
    let more = from.read(&mut [0]).map_err(at(Path::new(SUMS)))?;
    if more > 0 || zeros.iter().any(|byte| *byte != 0) {
        return Err(PackError::Refused("behind its end is something".to_owned()));
    }
    Ok(())
}

fn fill(from: &mut impl Read, buffer: &mut [u8], what: &str) -> Result<(), PackError> {
    from.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => PackError::Cut(what.to_owned()),
        _ => PackError::Io { path: PathBuf::from(what), source: error },
    })
}

/// The names that a packed run may have.
fn is_ours(name: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\0', '\\']);
    match name {
        ANCHORS | SUMS | "genesis.json" | "seal.json" | "seal.dsse.json" => true,
        _ => {
            let below = ["journal/", "blobs/sha256/", "evidence/loop/"];
            below.iter().any(|start| name.starts_with(start)) && name.split('/').all(plain)
        }
    }
}

#[cfg(test)]
mod tests;
