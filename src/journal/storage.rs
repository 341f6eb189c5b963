//! The few things the writer asks of a disk.
//!
//! Role: the seam where tests put faults and power cuts; in production, plain files.
//! Not its role: deciding what an error means (see `commit`).
//! Invariants: no call retries by itself, and none hides an error.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use super::atomic;
use super::names;
use super::run_dir::RunDir;

/// One journal's disk. Calls after `open_segment` go to that segment.
pub(super) trait Storage: Send {
    /// Makes segment `number` the current one, creating it when missing; returns its length.
    fn open_segment(&mut self, number: u32) -> io::Result<u64>;
    /// Writes at `offset`; like the system call, it may take less than it is given.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes the current segment's content durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Makes the names of the segments durable.
    fn sync_dir(&mut self) -> io::Result<()>;
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Frees the space kept for the last words.
    fn release_reserve(&mut self) -> io::Result<()>;
}

/// Real files.
pub(super) struct Files {
    dir: PathBuf,
    reserve: PathBuf,
    segment: Option<File>,
}

impl Files {
    pub(super) fn of(run: &RunDir) -> Self {
        Self { dir: run.journal_dir(), reserve: run.reserve_path(), segment: None }
    }

    fn segment(&self) -> io::Result<&File> {
        self.segment.as_ref().ok_or_else(|| io::Error::other("no journal segment is open"))
    }
}

impl Storage for Files {
    fn open_segment(&mut self, number: u32) -> io::Result<u64> {
        let path = self.dir.join(names::segment(number));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let length = file.metadata()?.len();
        self.segment = Some(file);
        Ok(length)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.segment()?.write_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.segment()?.sync_data()
    }

    fn sync_dir(&mut self) -> io::Result<()> {
        atomic::sync_dir(&self.dir)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.segment()?.set_len(length)
    }

    fn release_reserve(&mut self) -> io::Result<()> {
        match fs::remove_file(&self.reserve) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
