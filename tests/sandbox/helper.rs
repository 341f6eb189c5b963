//! The test binary, started again inside the sandbox, as a small hostile program that no shell can replace.
//!
//! `helper::entry do=VERB:ARGUMENT:…` does one thing and says `GOT-THROUGH` if it worked. It is the only place with
//! raw system calls: what matters is that the call itself is refused, whatever its arguments.

#![allow(unsafe_code)]

use std::ffi::c_long;
use std::io::Write;

use super::stage::THROUGH;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

const EPERM: i32 = 1;
const EACCES: i32 = 13;
const ENOSYS: i32 = 38;

#[test]
fn entry() {
    let Some(order) = std::env::args().find_map(|argument| argument.strip_prefix("do=").map(str::to_owned)) else {
        return;
    };
    let words: Vec<&str> = order.split(':').collect();
    let said = act(&words);
    println!("{said}");
    let _ = std::io::stdout().flush();
    std::process::exit(0);
}

fn act(words: &[&str]) -> String {
    let through = |worked: bool| if worked { THROUGH.to_owned() } else { "refused".to_owned() };
    match words {
        // Refused by us, not by a check of the arguments further inside.
        ["call", number, rest @ ..] => {
            let (result, error) = call(number, rest);
            let refused = result < 0 && [EPERM, ENOSYS].contains(&error);
            if refused { format!("refused with {error}") } else { format!("{THROUGH} {result} {error}") }
        }
        ["socket", rest @ ..] => {
            let (result, error) = call(if cfg!(target_arch = "aarch64") { "198" } else { "41" }, rest);
            let refused = result < 0 && [EACCES, EPERM].contains(&error);
            if refused { format!("refused with {error}") } else { format!("{THROUGH} {result} {error}") }
        }
        ["exchange", one, two] => {
            use rustix::fs::{CWD, RenameFlags};
            through(rustix::fs::renameat_with(CWD, *one, CWD, *two, RenameFlags::EXCHANGE).is_ok())
        }
        ["kill", pid] => {
            let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
            through(rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok())
        }
        ["pidfd-kill", pid] => {
            let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
            let handle = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty());
            let sent = handle.and_then(|fd| rustix::process::pidfd_send_signal(fd, rustix::process::Signal::KILL));
            through(sent.is_ok())
        }
        ["tcp", address @ .., token] => {
            let stream = std::net::TcpStream::connect(address.join(":"));
            through(stream.and_then(|mut stream| stream.write_all(token.as_bytes())).is_ok())
        }
        ["udp", address @ .., token] => {
            let socket = std::net::UdpSocket::bind("0.0.0.0:0");
            through(socket.and_then(|socket| socket.send_to(token.as_bytes(), address.join(":"))).is_ok())
        }
        ["listen", address @ ..] => through(std::net::TcpListener::bind(address.join(":")).is_ok()),
        ["abstract", name, token] => {
            use std::os::linux::net::SocketAddrExt;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name).unwrap();
            let stream = std::os::unix::net::UnixStream::connect_addr(&address);
            through(stream.and_then(|mut stream| stream.write_all(token.as_bytes())).is_ok())
        }
        ["connect", path] => through(std::os::unix::net::UnixStream::connect(path).is_ok()),
        ["terminal"] => {
            use portable_pty::{CommandBuilder, PtySize, native_pty_system};
            use std::io::Read as _;
            let Ok(pair) = native_pty_system().openpty(PtySize::default()) else { return "refused".to_owned() };
            let mut command = CommandBuilder::new("/bin/sh");
            command.args(["-c", "tty; test -t 0 && test -t 1 && echo on-a-terminal"]);
            let Ok(mut child) = pair.slave.spawn_command(command) else { return "no child".to_owned() };
            drop(pair.slave);
            let mut reader = pair.master.try_clone_reader().unwrap();
            let mut said = Vec::new();
            // The end of a terminal is an error.
            let _ = reader.read_to_end(&mut said);
            let _ = child.wait();
            String::from_utf8_lossy(&said).into_owned()
        }
        ["own-server"] => {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let client = std::thread::spawn(move || std::net::TcpStream::connect(address).is_ok());
            let served = listener.accept().is_ok() && client.join().unwrap();
            if served { "served".to_owned() } else { "not served".to_owned() }
        }
        ["raise", way] => through(raise(way)),
        ["affinity", pid] => {
            let mut first = rustix::thread::CpuSet::new();
            first.set(0);
            through(rustix::thread::sched_setaffinity(to_pid(pid), &first).is_ok())
        }
        ["scheduler", pid] => {
            const BATCH: i64 = 3;
            let number = if cfg!(target_arch = "aarch64") { 119 } else { 144 };
            let parameter = 0_i32;
            // SAFETY: the kernel reads one number behind the pointer, which lives until the call is over.
            let result = unsafe { syscall(number, pid.parse::<i64>().unwrap(), BATCH, &raw const parameter) };
            through(result >= 0)
        }
        ["io", pid] => {
            let number = if cfg!(target_arch = "aarch64") { "30" } else { "251" };
            through(call(number, &["1", pid, "24576"]).0 >= 0)
        }
        ["memfd", target] => memfd(target),
        ["threads"] => threads(),
        ["files"] => files(),
        ["raise-limit"] => {
            use rustix::process::{Resource, Rlimit, setrlimit};
            let more = Rlimit { current: Some(1 << 20), maximum: Some(1 << 20) };
            through(setrlimit(Resource::Nofile, more).is_ok())
        }
        ["limit", pid] => {
            let number = if cfg!(target_arch = "aarch64") { "261" } else { "302" };
            let (result, error) = call(number, &[pid, "7", "0", "0"]);
            through(!(result < 0 && error == EPERM))
        }
        ["core"] => {
            let limit = rustix::process::getrlimit(rustix::process::Resource::Core);
            through(limit.current != Some(0))
        }
        ["undumpable"] => {
            use rustix::process::{DumpableBehavior, set_dumpable_behavior};
            through(set_dumpable_behavior(DumpableBehavior::NotDumpable).is_ok())
        }
        ["daemon", token] => daemon(token),
        ["old-calls"] => old_calls(),
        ["environment"] => super::environment::as_engine(),
        _ => format!("{THROUGH}: nobody knows how to do {words:?}"),
    }
}

fn call(number: &str, arguments: &[&str]) -> (c_long, i32) {
    let value = |text: &str| -> c_long {
        match text.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).unwrap(),
            None => text.parse().unwrap(),
        }
    };
    let mut six = [0; 6];
    for (place, text) in six.iter_mut().zip(arguments) {
        *place = value(text);
    }
    let [a, b, c, d, e, f] = six;
    // SAFETY: the corpus names calls and plain numbers; a pointer is always null, which the kernel does not follow.
    let result = unsafe { syscall(value(number), a, b, c, d, e, f) };
    (result, std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

fn to_pid(text: &str) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(text.parse().unwrap())
}

/// Gives a file the bit that runs it as its owner; is the file then so?
fn raise(way: &str) -> bool {
    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, XattrFlags};
    let mode = Mode::from_raw_mode(0o4755);
    let new = OFlags::CREATE | OFlags::WRONLY;
    let name = c"raised";
    match way {
        "chmod" if cfg!(target_arch = "x86_64") => {
            // SAFETY: the name ends in a zero byte and outlives the call.
            (unsafe { syscall(90, c"mine".as_ptr(), 0o4755) }) == 0
        }
        "creat" if cfg!(target_arch = "x86_64") => {
            // SAFETY: the same.
            (unsafe { syscall(85, name.as_ptr(), 0o4755) }) >= 0
        }
        "open" if cfg!(target_arch = "x86_64") => {
            // SAFETY: the same.
            (unsafe { syscall(2, name.as_ptr(), 0o101, 0o4755) }) >= 0
        }
        "fchmodat2" => {
            // SAFETY: the same.
            (unsafe { syscall(452, -100, c"mine".as_ptr(), 0o4755, 0) }) == 0
        }
        "fchmod" => std::fs::File::open("mine").is_ok_and(|file| rustix::fs::fchmod(file, mode).is_ok()),
        "chmod" | "fchmodat" => rustix::fs::chmodat(CWD, "mine", mode, AtFlags::empty()).is_ok(),
        "creat" | "open" | "openat" => rustix::fs::openat(CWD, name, new, mode).is_ok(),
        "openat2" => rustix::fs::openat2(CWD, name, new, mode, ResolveFlags::empty()).is_ok(),
        "mknod" => rustix::fs::mknodat(CWD, name, FileType::RegularFile, mode, 0).is_ok(),
        "nameless" => rustix::fs::openat(CWD, ".", OFlags::TMPFILE | OFlags::RDWR, mode).is_ok_and(|file| {
            use std::os::fd::AsRawFd;
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            rustix::fs::linkat(CWD, path, CWD, name, AtFlags::SYMLINK_FOLLOW).is_ok()
        }),
        "capability" => {
            // Version 2, effective; all of the first word permitted.
            let mut value = [0_u8; 20];
            value[..4].copy_from_slice(&0x0200_0001_u32.to_le_bytes());
            value[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
            rustix::fs::setxattr("mine", "security.capability", &value, XattrFlags::empty()).is_ok()
        }
        _ => true,
    }
}

/// A program that exists in memory only is confined like any other.
fn memfd(target: &str) -> String {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;
    let shell = std::fs::read("/bin/sh").unwrap();
    let file = rustix::fs::memfd_create("shell", rustix::fs::MemfdFlags::empty()).unwrap();
    let mut rest = shell.as_slice();
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest).unwrap();
        rest = &rest[written..];
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let script = format!("echo x > {target} && echo {THROUGH}; echo ran");
    let error = std::process::Command::new(path).arg0("sh").args(["-c", &script]).exec();
    format!("cannot be run: {error}")
}

/// As many threads as can be had.
fn threads() -> String {
    let mut count = 0;
    while count < 20_000 {
        let small = std::thread::Builder::new().stack_size(16 * 1024);
        if small.spawn(|| std::thread::sleep(std::time::Duration::from_secs(60))).is_err() {
            return format!("no more after {count}");
        }
        count += 1;
    }
    THROUGH.to_owned()
}

/// As many open files as can be had.
fn files() -> String {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
    let mut open = Vec::new();
    while open.len() < 70_000 {
        match std::fs::File::open("/dev/null") {
            Ok(file) => open.push(file),
            Err(error) => return format!("no more after {}: {error}", open.len()),
        }
    }
    THROUGH.to_owned()
}

/// A daemon by the book: fork, new session, fork, no environment, a new name, no open files.
fn daemon(token: &str) -> String {
    let script = format!("setsid setsid env -i sh -c 'cd /; exec sleep 8640{token}' </dev/null >/dev/null 2>&1 &");
    let started = std::process::Command::new("/bin/sh").args(["-c", &script]).env_clear().status();
    format!("{started:?}")
}

/// A call by the convention of 32-bit programs, whose numbers mean other things: 20 is `getpid` there.
#[cfg(target_arch = "x86_64")]
fn old_calls() -> String {
    let result: u64;
    // SAFETY: asks for our own pid and touches nothing but the registers named here.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("rax") 20_u64 => result, out("r8") _, out("r9") _, out("r10") _, out("r11") _)
    };
    if result == u64::from(std::process::id()) { THROUGH.to_owned() } else { "refused".to_owned() }
}

#[cfg(not(target_arch = "x86_64"))]
fn old_calls() -> String {
    "there are none here".to_owned()
}
