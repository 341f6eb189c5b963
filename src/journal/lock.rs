//! One writer per run.
//!
//! Role: hold `run.lock` with `flock` for as long as a process writes the run.
//! Not its role: remembering who held it; the text inside is for people only.
//! Invariants: the kernel drops the lock when the holder dies, however it dies, so there is no
//! stale lock. The file is never removed: removing it would let two processes lock two files
//! of the same name. It is opened close-on-exec, so a tool that outlives us does not keep it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::clock;
use super::error::{JournalError, at};

pub(super) const NAME: &str = "run.lock";
/// `owner` takes a shared lock for a moment to look, and a process being started holds a copy
/// of the file until it becomes another program. These retries keep such moments from being
/// mistaken for an owner.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(2);

/// The right to write a run. Given back when dropped.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl RunLock {
    /// Takes the lock, or says who holds it.
    pub fn acquire(run_dir: &Path) -> Result<Self, JournalError> {
        let path = run_dir.join(NAME);
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = options.map_err(at(&path))?;
        match patiently(|| file.try_lock()) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let owner = describe_owner(&path);
                return Err(JournalError::Locked { path, owner });
            }
            Err(TryLockError::Error(error)) => return Err(JournalError::io(&path, error)),
        }
        // The text helps a person find the owner. The lock is held whether or not it gets
        // written, so a full disk is no reason to refuse.
        let text = format!("pid {} boot {} start {}\n", std::process::id(), clock::boot_id(), start_ticks());
        let _ = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        Ok(Self { file })
    }

    /// Who holds the lock, or `None` when it is free.
    pub fn owner(run_dir: &Path) -> Option<String> {
        let path = run_dir.join(NAME);
        let file = File::open(&path).ok()?;
        match patiently(|| file.try_lock_shared()) {
            Err(TryLockError::WouldBlock) => Some(describe_owner(&path)),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }

    /// Whether this is the lock of the run in `run_dir`. Compares the files, not the paths:
    /// one directory has many spellings.
    pub fn covers(&self, run_dir: &Path) -> bool {
        let Ok(there) = fs::metadata(run_dir.join(NAME)) else { return false };
        self.file.metadata().is_ok_and(|here| (here.dev(), here.ino()) == (there.dev(), there.ino()))
    }
}

/// The right to work in a folder, without a file in it: the lock is on the folder itself, so nobody can remove or
/// replace it, and who has no right to write there can be kept out all the same.
#[derive(Debug)]
pub struct FolderLock {
    _folder: File,
}

impl FolderLock {
    /// Takes the lock, or says who holds it. `None` where the file system has no such locks.
    pub fn acquire(folder: &Path) -> Result<Option<Self>, JournalError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(folder, flags, Mode::empty()).map_err(io::Error::from);
        let file = match opened {
            Ok(folder) => File::from(folder),
            // A folder that is gone has nobody in it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(JournalError::io(folder, error)),
        };
        match patiently(|| file.try_lock()) {
            Ok(()) => Ok(Some(Self { _folder: file })),
            Err(TryLockError::WouldBlock) => {
                let owner = holder(&file).map_or_else(|| "another process".to_owned(), |pid| format!("pid {pid}"));
                Err(JournalError::Locked { path: folder.to_owned(), owner })
            }
            Err(TryLockError::Error(_)) => Ok(None),
        }
    }
}

/// Who holds a lock on this file, as far as the kernel tells.
fn holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // `1: FLOCK  ADVISORY  WRITE 1234 00:2a:567 0 EOF`; waiting ones have an arrow after the number.
    locks.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (kind, _, _, pid, place) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let here = kind == "FLOCK" && place.rsplit(':').next() == Some(inode.as_str());
        // 0 is a process that is not seen from here.
        here.then(|| pid.parse().ok()).flatten().filter(|pid| *pid > 0)
    })
}

fn patiently(mut attempt: impl FnMut() -> Result<(), TryLockError>) -> Result<(), TryLockError> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    attempt()
}

fn describe_owner(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    match text.trim() {
        "" => "another process".to_owned(),
        text => text.to_owned(),
    }
}

/// When this process started, in clock ticks since boot. Tells it from a later one that got
/// the same pid.
fn start_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name in brackets and may hold spaces and brackets.
    // `starttime` is field 22, the 20th after the name.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().nth(19).and_then(|field| field.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_while_held_and_free_after_drop() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(RunLock::owner(dir.path()), None);
        let lock = RunLock::acquire(dir.path()).unwrap();
        let me = format!("pid {} ", std::process::id());
        match RunLock::acquire(dir.path()) {
            Err(JournalError::Locked { owner, .. }) => assert!(owner.starts_with(&me), "{owner}"),
            other => panic!("{other:?}"),
        }
        assert!(RunLock::owner(dir.path()).unwrap().starts_with(&me));
        drop(lock);
        assert_eq!(RunLock::owner(dir.path()), None);
        assert!(dir.path().join(NAME).exists(), "the lock file must stay");
        RunLock::acquire(dir.path()).unwrap();
    }

    #[test]
    fn a_child_process_does_not_inherit_it() {
        let dir = tempfile::tempdir().unwrap();
        let lock = RunLock::acquire(dir.path()).unwrap();
        // `cat` waits for its input to end, so it outlives the lock's holder for sure.
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        drop(lock);
        assert!(RunLock::acquire(dir.path()).is_ok());
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_folder_is_held_without_a_file_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let lock = FolderLock::acquire(dir.path()).unwrap().expect("this file system has locks");
        match FolderLock::acquire(dir.path()) {
            Err(JournalError::Locked { owner, .. }) => assert_eq!(owner, format!("pid {}", std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(lock);
        assert!(FolderLock::acquire(dir.path()).unwrap().is_some());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(FolderLock::acquire(&dir.path().join("none")).unwrap().is_none());
    }

    #[test]
    fn the_start_time_is_found() {
        assert!(start_ticks() > 0);
    }

    #[test]
    fn knows_its_own_run() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let lock = RunLock::acquire(one.path()).unwrap();
        let _other = RunLock::acquire(two.path()).unwrap();
        assert!(lock.covers(&one.path().join(".")));
        assert!(!lock.covers(two.path()));
    }
}
