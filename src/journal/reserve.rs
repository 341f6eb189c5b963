//! Space on the disk that is kept for the last words.
//!
//! Not its role: when it is freed (see `commit`).

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Enough for the last event, the seal and some evidence once the disk is full.
pub(super) const BYTES: u64 = 4 * 1024 * 1024;

/// Creates the reserve with its blocks really taken, so that deleting it really frees them.
pub(super) fn allocate(path: &Path) -> io::Result<()> {
    let file = File::create(path)?;
    let allocated = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, BYTES);
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
    for _ in 0..BYTES / zeros.len() as u64 {
        file.write_all(&zeros)?;
    }
    Ok(())
}
