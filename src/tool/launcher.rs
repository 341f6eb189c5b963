//! Launchers: processes that stand in the cage already and start commands in it, one at a time each.
//!
//! A launcher is this program again, in namespaces of its own, and the first process of its own process space: when a
//! call is over it ends everything in there with one signal, and when it dies itself, by whatever hand, the kernel
//! does. It dies with the engine. So nothing can hide: not by a new session, nor without environment, nor as an orphan.
//! It also makes starting cheap: the mounts stand, and what is copied by `fork` is small.
//!
//! Here is the engine's side: starting launchers, keeping a few, asking one for a command. [`inside`] is the other
//! side; `supervise` decides how long a command may run. Where launchers cannot be had (`Level::pids`), `spawn` and
//! `sweep` do the work instead.
//!
//! Invariants:
//! * a launcher that did not say that a call is over and clean is killed, never used again;
//! * launchers are started by one thread that lives as long as we do: their tie to us is a tie to that thread;
//! * all waits are bounded.

pub mod inside;
pub(in crate::tool) mod wire;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal};

use super::environment::{self, ENGINE_VAR};
use super::kernel;
use super::network::Handles;
use super::owned;
use super::pipes::{self, Ending};
use super::sandbox::setup::Setup;
use super::spawn::{self, OnParentDeath};
use super::step::NotReady;
use super::sweep;
use wire::{Frame, FrameKind, Reader, Writer};

/// The hidden subcommand that runs [`inside::main`].
pub const SUBCOMMAND: &str = "__launch";

/// For a launcher to get up, and to start a command. A machine under load is slow, not broken.
const PATIENCE: Duration = Duration::from_secs(30);
/// For the dead to be gone. One in an uninterruptible wait never is, and nobody waits longer for it.
const BOUND: Duration = Duration::from_secs(5);
/// Launchers of one kind that are kept for the next call.
const IDLE: usize = 2;

/// The program that can be a launcher.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Says that this very program knows the subcommand; before anybody asks for the level of the sandbox. The system's
/// own name for it stays right when the file is replaced during a long run.
pub fn ourselves() {
    program("/proc/self/exe");
}

/// The same of another file: for tests, which are programs of their own.
#[doc(hidden)]
pub fn program(path: impl Into<PathBuf>) {
    let _ = PROGRAM.set(path.into());
}

/// The launchers of one confinement.
pub(super) struct Pool {
    setup: Vec<u8>,
    /// The network that its commands share with others, where they do.
    network: Option<Arc<Handles>>,
    idle: Mutex<Vec<Launcher>>,
}

/// What is to be started, besides its open files.
pub(super) struct Request(Vec<u8>);

impl Request {
    /// Of a command whose environment is given in full.
    pub(super) fn of(command: &Command) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let mut words: Vec<&[u8]> = vec![command.get_program().as_bytes()];
        words.extend(command.get_args().map(OsStrExt::as_bytes));
        let env: Vec<(&[u8], &[u8])> =
            command.get_envs().filter_map(|(name, value)| Some((name.as_bytes(), value?.as_bytes()))).collect();
        let mut out = Writer::default();
        out.text(command.get_current_dir().map_or(b"/", |folder| folder.as_os_str().as_bytes()));
        out.list(words.into_iter());
        out.list(env.iter().map(|(name, _)| *name));
        out.list(env.iter().map(|(_, value)| *value));
        Self(out.0)
    }
}

impl Pool {
    pub(super) fn new(setup: Vec<u8>, network: Option<Arc<Handles>>) -> Self {
        Self { setup, network, idle: Mutex::default() }
    }

    /// Starts a command in the cage, with these as its standard input, output and error.
    pub(super) fn run(&self, request: &Request, files: [BorrowedFd<'_>; 3]) -> io::Result<Call<'_>> {
        loop {
            let kept = self.idle().pop();
            let was_kept = kept.is_some();
            let launcher = kept.map_or_else(|| Launcher::start(&self.setup, self.network.as_deref()), Ok)?;
            let answer = launcher.ask(request, files);
            match answer {
                Ok(Frame { kind: FrameKind::Started, files, .. }) => {
                    let leader = files.into_iter().next().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
                    let pid = number_of(leader.as_fd())?;
                    return Ok(Call { pool: self, launcher: Some(launcher), leader, pid });
                }
                Ok(Frame { kind: FrameKind::NotStarted, bytes, .. }) => {
                    self.keep(launcher);
                    return Err(told(&bytes));
                }
                // One that was kept may have been killed, or its cage be broken beyond mending: a new one is whole.
                Ok(_) | Err(_) if was_kept => drop(launcher),
                Ok(Frame { bytes, .. }) => return Err(told(&bytes)),
                Err(error) => return Err(error),
            }
        }
    }

    fn keep(&self, launcher: Launcher) {
        let mut idle = self.idle();
        if idle.len() < IDLE {
            idle.push(launcher);
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Launcher>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error that a launcher told us.
pub(super) fn told(bytes: &[u8]) -> io::Error {
    let mut from = Reader(bytes);
    let (step, number) = (from.number().unwrap_or(0), from.number().unwrap_or(0));
    let error = i32::try_from(number).ok().filter(|number| *number > 0).map(io::Error::from_raw_os_error);
    let mut words = || String::from_utf8_lossy(from.text().unwrap_or_default()).into_owned();
    let error = error.unwrap_or_else(|| io::Error::other(words()));
    NotReady::at(u8::try_from(step).unwrap_or(0), error)
}

/// One launcher, up and idle unless a [`Call`] has it.
struct Launcher {
    /// The process that ties it to us. It ends when the launcher and everything in its space is gone.
    tie: Child,
    socket: UnixStream,
    /// The first process in there.
    first: OwnedFd,
    pid: u32,
}

impl Launcher {
    fn start(setup: &[u8], network: Option<&Handles>) -> io::Result<Self> {
        let network = network.map(Handles::all).unwrap_or_default();
        let (mut tie, socket) = begin(FrameKind::Setup, setup, &network)?;
        let Frame { kind, bytes, files } = wire::receive(&socket)?;
        let Some((first, tied)) = files.into_iter().next().zip(tie.0.take()).filter(|_| kind == FrameKind::Ready)
        else {
            return Err(told(&bytes));
        };
        let pid = number_of(first.as_fd())?;
        Ok(Self { tie: tied, socket, first, pid })
    }

    fn ask(&self, request: &Request, files: [BorrowedFd<'_>; 3]) -> io::Result<Frame> {
        wire::send(&self.socket, FrameKind::Run, &request.0, &files)?;
        wire::receive(&self.socket)
    }

    /// Ends it and everything in it.
    fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.first, Signal::KILL);
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        self.kill();
        end(&mut self.tie);
    }
}

/// Starts this program again, tied to us, and tells it what to become.
pub(super) fn begin(kind: FrameKind, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<(Tie, UnixStream)> {
    let program = PROGRAM.get().ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
    let (socket, theirs) = UnixStream::pair()?;
    let mut command = Command::new(program);
    command.args([SUBCOMMAND, &std::process::id().to_string()]);
    environment::only_allowed(&mut command);
    // For the reaper, should the tie ever fail.
    command.env(ENGINE_VAR, environment::engine_id()).current_dir("/");
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    let tie = Tie(Some(start_tied(command)?));
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    wire::send(&socket, kind, bytes, files)?;
    Ok((tie, socket))
}

/// A process that is tied to us: killed and waited for when this is dropped.
#[derive(Debug)]
pub(super) struct Tie(Option<Child>);

impl Drop for Tie {
    fn drop(&mut self) {
        if let Some(tie) = &mut self.0 {
            let _ = tie.kill();
            end(tie);
        }
    }
}

/// Waits for the end of what was killed.
fn end(tie: &mut Child) {
    let handle = rustix::process::pidfd_open(Pid::from_child(tie), PidfdFlags::empty());
    if handle.is_ok_and(|handle| pipes::is_readable(handle.as_fd(), BOUND)) {
        let _ = tie.wait();
    } else {
        let _ = tie.kill();
        let _ = tie.try_wait();
    }
    owned::disown(tie.id());
}

/// A command that runs in a launcher. Dropped before its end, it is killed with the launcher.
pub(super) struct Call<'a> {
    pool: &'a Pool,
    launcher: Option<Launcher>,
    leader: OwnedFd,
    pid: u32,
}

/// How a command ended: by itself with a code, or by a signal.
pub(super) enum Status {
    Exited(i32),
    Signaled(i32),
}

impl Call<'_> {
    /// Sends a signal to the command's group.
    pub(super) fn signal(&self, signal: Signal) {
        kernel::signal_group(self.leader.as_fd(), self.pid, signal);
    }

    /// Ends everything in there at once.
    pub(super) fn kill(&self) {
        if let Some(launcher) = &self.launcher {
            launcher.kill();
        }
    }

    /// The first process in there, of which all others descend, and when it started.
    pub(super) fn root(&self) -> (u32, u64) {
        let pid = self.launcher.as_ref().map_or(0, |launcher| launcher.pid);
        (pid, sweep::start_time(pid))
    }

    /// Takes the command's status and sees to it that nothing of it is left. `None` if it had to be killed with its
    /// launcher.
    pub(super) fn finish(mut self) -> Option<Status> {
        let launcher = self.launcher.take()?;
        let next = || pipes::is_readable(launcher.socket.as_fd(), BOUND).then(|| wire::receive(&launcher.socket).ok());
        let exited = next()?.filter(|frame| frame.kind == FrameKind::Exited)?;
        let clean = next().flatten().is_some_and(|frame| frame.kind == FrameKind::Clean);
        let mut from = Reader(&exited.bytes);
        let (code, signal) = (from.number().ok()?, from.number().ok()?);
        if clean {
            self.pool.keep(launcher);
        }
        let short = |number: i64| i32::try_from(number).unwrap_or(-1);
        Some(if signal > 0 { Status::Signaled(short(signal)) } else { Status::Exited(short(code)) })
    }
}

impl Ending for Call<'_> {
    fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.launcher.as_ref().map(|launcher| launcher.socket.as_fd())
    }

    /// Its launcher says so, or is gone.
    fn happened(&self) -> bool {
        self.handle().is_none_or(|socket| pipes::is_readable(socket, Duration::ZERO))
    }
}

/// The number that a process has for us. Where it lives it may have another.
fn number_of(handle: BorrowedFd<'_>) -> io::Result<u32> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd()))?;
    let number = text.lines().find_map(|line| line.strip_prefix("Pid:")).and_then(|field| field.trim().parse().ok());
    // A process that has ended has none; the number is not used then.
    Ok(number.and_then(|number: i64| u32::try_from(number).ok()).unwrap_or(0))
}

/// Starts a launcher from the one thread that may.
fn start_tied(command: Command) -> io::Result<Child> {
    type Job = (Command, mpsc::SyncSender<io::Result<Child>>);
    static STARTER: Mutex<Option<mpsc::Sender<Job>>> = Mutex::new(None);
    let (answer, answered) = mpsc::sync_channel(1);
    {
        let mut starter = STARTER.lock().unwrap_or_else(PoisonError::into_inner);
        if starter.is_none() {
            let (jobs, work) = mpsc::channel::<Job>();
            let thread = move || {
                for (command, answer) in work {
                    let _ = answer.send(spawn::spawn(command, OnParentDeath::Kill, None));
                }
            };
            std::thread::Builder::new().name("launchers".to_owned()).spawn(thread)?;
            *starter = Some(jobs);
        }
        let gone = || io::Error::other("the thread that starts launchers is gone");
        starter.as_ref().ok_or_else(gone)?.send((command, answer)).map_err(|_| gone())?;
    }
    answered.recv().map_err(|_| io::Error::other("the thread that starts launchers gave no answer"))?
}

/// Can a command really be run like this, and does it succeed? The error: it could not even be started.
pub(super) fn works(setup: &Setup, script: &str, folder: &Path) -> io::Result<bool> {
    let pool = Pool::new(setup.encode(), None);
    let mut command = Command::new("/bin/sh");
    // It must be the second process in a `/proc` that is its own.
    let own = "test -d /proc/1 && test \"$PPID\" = 1 && test -e /proc/self/status";
    command.args(["-c", &format!("{own} && {script}")]).current_dir(folder);
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    let call = pool.run(&Request::of(&command), [null.as_fd(); 3])?;
    let _ = pipes::is_readable(call.launcher.as_ref().map_or(null.as_fd(), |one| one.socket.as_fd()), PATIENCE);
    Ok(matches!(call.finish(), Some(Status::Exited(0))))
}
