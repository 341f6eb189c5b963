//! Starts a child in its own session, and remembers which children have a waiter.
//!
//! This is the only place in the crate with `unsafe`: `pre_exec` and `fork` have no safe form, nor have the system
//! calls about namespaces and groups of processes. It does not watch or end the child; `process` and `reaper` do,
//! nor decide what the child wears; `sandbox` does.
//!
//! Invariants:
//! * a child started here leads its own session and group, dumps no core, and dies with the
//!   thread that started it unless asked not to;
//! * its pid is in the owned set from before anyone can see it exit until [`disown`], so that
//!   the sweeper never takes an exit status away from the thread that waits for it.

#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::sandbox::Confinement;

/// Pids of our own children that some thread waits for.
static OWNED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// What a child was about when it failed. A forked child has a copy of its own, so nobody shares it.
static STEP: AtomicU8 = AtomicU8::new(0);

/// The parts of getting ready that can fail for reasons an operator should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Step {
    Session = 1,
    Namespaces,
    Ids,
    Loopback,
    PrivateMounts,
    OwnProc,
    WritableMounts,
    HiddenMounts,
    ReadOnlyMounts,
    Folder,
    Parent,
    Limits,
    Landlock,
    Filter,
    Program,
}

impl Step {
    const ALL: [(Self, &'static str); 15] = [
        (Self::Session, "a session of its own"),
        (Self::Namespaces, "namespaces"),
        (Self::Ids, "the maps of users"),
        (Self::Loopback, "the loopback network"),
        (Self::PrivateMounts, "mounts of its own"),
        (Self::OwnProc, "a /proc of its own"),
        (Self::WritableMounts, "the writable places"),
        (Self::HiddenMounts, "the hidden places"),
        (Self::ReadOnlyMounts, "the read-only rest"),
        (Self::Folder, "the working directory"),
        (Self::Parent, "the tie to the engine"),
        (Self::Limits, "the limits"),
        (Self::Landlock, "Landlock"),
        (Self::Filter, "the filter on system calls"),
        (Self::Program, ""),
    ];

    /// In the child: this comes next.
    pub(super) fn begin(self) {
        STEP.store(self as u8, Ordering::Relaxed);
    }

    /// The one that was begun last in this process.
    #[cfg(target_os = "linux")]
    pub(super) fn latest() -> u8 {
        STEP.load(Ordering::Relaxed)
    }
}

/// What happens to the child when the thread that started it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnParentDeath {
    Kill,
    /// For the reaper, whose work begins when the engine dies.
    Live,
}

/// Starts `command` in a new session, wearing `confinement`, and records it as owned.
pub(super) fn spawn(
    mut command: Command,
    on_death: OnParentDeath,
    confinement: Option<Arc<Confinement>>,
) -> io::Result<Child> {
    let parent = rustix::process::getpid();
    let folder = match command.get_current_dir() {
        Some(path) => Some(CString::new(path.as_os_str().as_bytes())?),
        None => None,
    };
    // A child that fails says with one byte what it was about; exec closes the pipe without a word.
    let (mut tell, told) = io::pipe()?;
    let get_ready = move || {
        Step::Session.begin();
        rustix::process::setsid()?;
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(rustix::process::Resource::Core, none)?;
        #[cfg(target_os = "linux")]
        keep_files();
        if let Some(confinement) = &confinement {
            confinement.enter(folder.as_deref())?;
        }
        Step::Parent.begin();
        #[cfg(target_os = "linux")]
        if on_death == OnParentDeath::Kill {
            let kill = rustix::process::Signal::KILL;
            rustix::process::set_parent_process_death_signal(Some(kill))?;
            // The parent may have died before the line above: then nobody will ever signal us.
            if rustix::process::getppid() != Some(parent) {
                return Err(io::Error::from(rustix::io::Errno::SRCH));
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (parent, on_death);
        if let Some(confinement) = &confinement {
            confinement.wear()?;
        }
        Step::Program.begin();
        Ok(())
    };
    let prepare = move || {
        let ready: io::Result<()> = get_ready();
        if ready.is_err() {
            let _ = rustix::io::write(&told, &[STEP.load(Ordering::Relaxed)]);
        }
        ready
    };
    // SAFETY: `prepare` runs in the forked child of a process with several threads, where only
    // async-signal-safe work is sound. It makes direct system calls on values it captured, all made
    // ready before the fork; it allocates nothing, takes no lock and does not panic. `enter` and
    // `wear` hold to the same (their header says so). The errors it may return are plain OS codes.
    unsafe { command.pre_exec(prepare) };
    let mut owned = owned();
    let spawned = command.spawn();
    // Our end of the pipe goes with the command, so that reading ends.
    drop(command);
    let child = spawned.map_err(|error| explain(error, &mut tell))?;
    owned.insert(child.id());
    Ok(child)
}

/// A child could not get ready for its program.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotReady(String, u8, Option<i32>);

impl NotReady {
    /// An error, with the step it belongs to; as it is where that was the program's own start.
    pub(super) fn at(step: u8, error: io::Error) -> io::Error {
        match Step::ALL.iter().find(|(known, _)| *known as u8 == step) {
            Some((_, name)) if !name.is_empty() => {
                let why = format!("{name} could not be put in place ({error})");
                io::Error::new(error.kind(), Self(why, step, error.raw_os_error()))
            }
            _ => error,
        }
    }

    /// The step and the system's number of an error, to be told to another process.
    pub(super) fn parts(error: &io::Error) -> (u8, Option<i32>) {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Self>());
        inner.map_or((0, error.raw_os_error()), |Self(_, step, number)| (*step, *number))
    }
}

/// Was it the getting ready that failed, not the program?
pub(super) fn was_not_ready(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NotReady>())
}

/// Adds what the child was about, unless it was the program itself.
fn explain(error: io::Error, tell: &mut io::PipeReader) -> io::Error {
    let mut byte = [0];
    let said = tell.read(&mut byte).unwrap_or(0) == 1;
    NotReady::at(if said { byte[0] } else { 0 }, error)
}

/// Forgets a child after its waiter has its exit status.
pub(super) fn disown(pid: u32) {
    owned().remove(&pid);
}

/// The owned set, locked: while held, no child can be started or change hands.
pub(super) fn owned() -> MutexGuard<'static, BTreeSet<u32>> {
    OWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves this process into namespaces of its own. For a child between fork and exec.
#[cfg(target_os = "linux")]
pub(super) fn unshare(flags: rustix::thread::UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: unsound only for a table of open files that other threads use; that flag is never in
    // here, and a forked child has one thread.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// No program gets a file of ours beyond the first three, not even one that whoever started us left open: it would lead
/// out of any cage.
#[cfg(target_os = "linux")]
fn keep_files() {
    use std::ffi::{c_long, c_uint};
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    const CLOSE_RANGE: c_long = 436;
    const FROM: c_uint = 3;
    const ON_EXEC: c_uint = 4;
    // SAFETY: the number names a call with these three numbers; it marks files to be closed by exec, and closes none
    // now. Kernels before 5.11 refuse, and things are as they were.
    unsafe { syscall(CLOSE_RANGE, FROM, c_uint::MAX, ON_EXEC) };
}

/// Splits this process in two; `None` in the new one. For a launcher, which is a program of its own with one thread.
#[cfg(target_os = "linux")]
pub(super) fn fork() -> io::Result<Option<rustix::process::Pid>> {
    unsafe extern "C" {
        fn fork() -> std::ffi::c_int;
    }
    // SAFETY: a launcher starts no thread, so nothing can be held by one that is missing in the copy.
    match unsafe { fork() } {
        0 => Ok(None),
        pid => rustix::process::Pid::from_raw(pid.max(0)).map(Some).ok_or_else(io::Error::last_os_error),
    }
}

/// Sends a signal to the group that a process leads. By its handle where the kernel can (6.9), so that the number
/// cannot have passed to a stranger; else by number, right after a look at the handle.
#[cfg(target_os = "linux")]
pub(super) fn signal_group(leader: std::os::fd::BorrowedFd<'_>, pid: u32, signal: rustix::process::Signal) {
    use std::ffi::{c_int, c_long, c_uint, c_void};
    use std::os::fd::AsRawFd;
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    const PIDFD_SEND_SIGNAL: c_long = 424;
    const TO_THE_GROUP: c_uint = 4;
    let handle: c_int = leader.as_raw_fd();
    let nothing: *const c_void = std::ptr::null();
    // SAFETY: the number names a call with these four arguments; it may be given no information, and follows none.
    let sent = unsafe { syscall(PIDFD_SEND_SIGNAL, handle, signal.as_raw(), nothing, TO_THE_GROUP) };
    let unknown = sent != 0 && io::Error::last_os_error().kind() == io::ErrorKind::InvalidInput;
    if unknown
        && !super::pipes::is_readable(leader, std::time::Duration::ZERO)
        && let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

/// What becomes of mounts.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MountChange {
    Private,
    ReadOnly,
    Writable,
}

/// Changes the mount at `path`, or all from there on: `mount_setattr`, which no library offers us.
#[cfg(target_os = "linux")]
pub(super) fn change_mounts(path: &std::ffi::CStr, all: bool, change: MountChange) -> rustix::io::Result<()> {
    use std::ffi::{c_char, c_int, c_long, c_uint};
    /// As the kernel declares it.
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        namespace: u64,
    }
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    const MOUNT_SETATTR: c_long = 442;
    const HERE: c_int = -100;
    const RECURSIVE: c_uint = 0x8000;
    const READ_ONLY: u64 = 1;
    const PRIVATE: u64 = 1 << 18;
    let is = |wanted, value| if change == wanted { value } else { 0 };
    let attributes = Attributes {
        set: is(MountChange::ReadOnly, READ_ONLY),
        clear: is(MountChange::Writable, READ_ONLY),
        propagation: is(MountChange::Private, PRIVATE),
        namespace: 0,
    };
    let flags = if all { RECURSIVE } else { 0 };
    let path: *const c_char = path.as_ptr();
    // SAFETY: the number names a call with exactly these five arguments; both pointers are valid
    // for the call, the second for the size that follows it, and the kernel only reads them.
    let result = unsafe { syscall(MOUNT_SETATTR, HERE, path, flags, &raw const attributes, size_of::<Attributes>()) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO))
}
