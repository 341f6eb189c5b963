//! System calls about namespaces, mounts and groups of processes that no library offers us in a safe form.
//!
//! Beside `spawn` the only place in the crate with `unsafe`. Decides nothing: who calls knows when a call is sound, and
//! each says what it needs.

#![allow(unsafe_code)]

use std::io;

use super::pipes;

/// Moves this process into namespaces of its own. For a child between fork and exec.
pub(super) fn unshare(flags: rustix::thread::UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: unsound only for a table of open files that other threads use; that flag is never in
    // here, and a forked child has one thread.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// No program gets a file of ours beyond the first three, not even one that whoever started us left open: it would lead
/// out of any cage.
pub(super) fn keep_files() {
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
        && !pipes::is_readable(leader, std::time::Duration::ZERO)
        && let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

/// What becomes of mounts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MountChange {
    Private,
    ReadOnly,
    Writable,
}

/// Changes the mount at `path`, or all from there on: `mount_setattr`, which no library offers us.
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
