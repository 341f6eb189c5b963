//! Opening a journal for writing after whatever happened to it.
//!
//! Role: replay every record to the caller, cut a torn tail, say where to go on.
//! Not its role: telling torn from corrupt (see `scan`), or closing open intents.
//! Invariants: bytes are cut only after a copy of them is on disk; a second recovery of the
//! same journal finds nothing to do; a corrupt journal is left exactly as it is.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use sha2::Digest as _;

use super::atomic;
use super::commit::Tail;
use super::error::{JournalError, at};
use super::lock::RunLock;
use super::record::Record;
use super::run_dir::RunDir;
use super::scan::{Break, Damage, Scanner, Stop};
use crate::model::digest::Digest;

/// A journal that is ready for a writer.
#[derive(Debug)]
pub struct Recovered {
    pub tail: Tail,
    pub torn: Option<Torn>,
}

/// The end of a write that was cut short, moved out of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    pub bytes: u64,
    pub sha256: Digest,
    pub saved_as: PathBuf,
}

/// Checks the whole journal, gives every record to `on_record` in order, and repairs a torn tail.
pub fn recover(
    run: &RunDir,
    lock: &RunLock,
    on_record: &mut dyn FnMut(Record) -> Result<(), JournalError>,
) -> Result<Recovered, JournalError> {
    scan(run, lock, on_record)?.repair(run)
}

/// A journal that was read to its end; a torn tail is known and still there.
pub struct Scanned {
    tail: Tail,
    torn: Option<(Box<Break>, u64)>,
}

impl Scanned {
    /// Cuts a torn tail off.
    pub fn repair(self, run: &RunDir) -> Result<Recovered, JournalError> {
        let torn = self.torn.map(|(broken, bytes)| cut(run, &broken, bytes)).transpose()?;
        Ok(Recovered { tail: self.tail, torn })
    }
}

/// Reads every record and changes nothing. Only a torn tail is let pass.
pub fn scan(
    run: &RunDir,
    lock: &RunLock,
    on_record: &mut dyn FnMut(Record) -> Result<(), JournalError>,
) -> Result<Scanned, JournalError> {
    if !lock.covers(run.path()) {
        return Err(JournalError::invalid(format!("the lock held is not that of {}", run.path().display())));
    }
    let mut scanner = Scanner::open(run)?;
    let torn = loop {
        match scanner.next() {
            Ok(Some(line)) => on_record(line.to_record())?,
            Ok(None) => break None,
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Broken(broken)) => match broken.judge()? {
                Damage::Refused(error) => return Err(error),
                Damage::Torn { bytes } => break Some((broken, bytes)),
            },
        }
    };
    Ok(Scanned { tail: scanner.tail(), torn })
}

/// Saves the bytes from the break on, then removes them.
fn cut(run: &RunDir, broken: &Break, bytes: u64) -> Result<Torn, JournalError> {
    let dir = run.journal_dir();
    let options = OpenOptions::new().read(true).write(true).open(&broken.path);
    let mut segment = options.map_err(at(&broken.path))?;
    let (mut copy, saved_as) = create_free(&dir, broken.segment)?;
    let sha256 = match save(&mut segment, broken.offset, &mut copy) {
        Ok(sha256) => sha256,
        Err(error) => {
            // Half a copy would be taken for the evidence.
            let _ = std::fs::remove_file(&saved_as);
            return Err(JournalError::io(&saved_as, error));
        }
    };
    atomic::sync_dir(&dir).map_err(at(&dir))?;
    segment.set_len(broken.offset).map_err(at(&broken.path))?;
    segment.sync_data().map_err(at(&broken.path))?;
    atomic::sync_dir(&dir).map_err(at(&dir))?;
    Ok(Torn { bytes, sha256, saved_as })
}

fn save(segment: &mut File, offset: u64, copy: &mut File) -> io::Result<Digest> {
    segment.seek(SeekFrom::Start(offset))?;
    let mut hasher = sha2::Sha256::new();
    let mut buffer = vec![0u8; 64 * 1024];
    loop {
        let count = segment.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        copy.write_all(&buffer[..count])?;
    }
    copy.sync_data()?;
    Ok(Digest::from_bytes(hasher.finalize().into()))
}

/// `00000001.torn`, then `00000001.2.torn`, …: an earlier copy is evidence and stays.
fn create_free(dir: &Path, segment: u32) -> Result<(File, PathBuf), JournalError> {
    let mut count = 1u32;
    loop {
        let path = dir.join(match count {
            1 => format!("{segment:08}.torn"),
            count => format!("{segment:08}.{count}.torn"),
        });
        match File::create_new(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => count += 1,
            Err(error) => return Err(JournalError::io(&path, error)),
        }
    }
}
