//! The few things the writer asks of a disk.
//!
//! Role: the seam where tests put faults and power cuts; in production, plain files.
//! Not its role: deciding what an error means (see `commit`).
//! Invariants: no call retries by itself, and none hides an error.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::atomic;
use super::run_dir::{RunDir, segment_name};

/// Enough for the last event, the seal and some evidence once the disk is full.
pub(super) const RESERVE: u64 = 4 * 1024 * 1024;

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
        let path = self.dir.join(segment_name(number));
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

/// Creates the reserve with its blocks really taken, so that deleting it really frees them.
pub(super) fn allocate_reserve(path: &Path) -> io::Result<()> {
    let file = File::create(path)?;
    let allocated = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, RESERVE);
    let filled = match allocated {
        Ok(()) => Ok(()),
        // Some file systems cannot allocate ahead; there, zeros take the space.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => fill(&file),
        Err(error) => Err(error.into()),
    };
    let done = filled.and_then(|()| file.sync_all());
    if done.is_err() {
        // Half a reserve looks like a whole one later; none at all is restored later.
        let _ = fs::remove_file(path);
    }
    done
}

fn fill(mut file: &File) -> io::Result<()> {
    let zeros = vec![0u8; 64 * 1024];
    for _ in 0..RESERVE / zeros.len() as u64 {
        file.write_all(&zeros)?;
    }
    Ok(())
}
