//! A launcher from within: the process that ties it to the engine, and the first process of its space.
//!
//! The first lives outside only to have a child inside: a process enters a new process space by being born there. It
//! waits, and dies with the engine; the second dies with the first, and with the second the kernel ends the rest.
//!
//! The second wears no Landlock and no filter itself, since it has to put mounts back; each command puts them on before
//! it becomes a program. It cannot be read or signalled from inside: it is no process that dumps, and the kernel drops
//! signals to the first process of a space from within it.
//!
//! Invariants: one thread; one command at a time; before anything is said to be clean, every other process in the space
//! has been killed and waited for.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions};

use super::wire::{self, Frame, FrameKind, Reader, Writer};
use crate::model::loop_file::NetworkDecl;
use crate::tool::kernel;
use crate::tool::network::{Handles, keeper};
use crate::tool::owned;
use crate::tool::pipes;
use crate::tool::sandbox::setup::Setup;
use crate::tool::sandbox::spaces::{Network, Spaces};
use crate::tool::sandbox::worn::Worn;
use crate::tool::sandbox::{self, Layer};
use crate::tool::spawn::{self, OnParentDeath};
use crate::tool::step::{LaunchStep, NotReady};

/// Runs as a launcher of the engine with this pid, told what to do over standard input.
pub fn main(engine: u32) -> ExitCode {
    // Two handles on one socket; this one is not passed on to programs.
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else {
        return ExitCode::FAILURE;
    };
    match launch(engine, &socket) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = wire::send(&socket, FrameKind::Failed, &failure(LaunchStep::latest(), &error), &[]);
            ExitCode::FAILURE
        }
    }
}

/// For `told` on the other side: the step, and the error as a number or in words.
pub(in crate::tool) fn failure(step: u8, error: &io::Error) -> Vec<u8> {
    let mut out = Writer::default();
    let (within, number) = NotReady::parts(error);
    out.number(i64::from(if within == 0 { step } else { within }));
    out.number(i64::from(number.unwrap_or(0)));
    out.text(error.to_string().as_bytes());
    out.0
}

fn launch(engine: u32, socket: &UnixStream) -> io::Result<()> {
    LaunchStep::Namespaces.begin();
    let first = wire::receive(socket)?;
    if first.kind == FrameKind::Network {
        return keeper::keep(engine, &first.bytes, socket);
    }
    let setup = Setup::decode(&first.bytes)?;
    sandbox::assume(setup.level);
    let own_network = setup.policy.network == NetworkDecl::Loopback && setup.without != Some(Layer::Network);
    let network = match Handles::of(first.files) {
        Some(shared) if own_network => Network::Shared(Arc::new(shared)),
        _ if own_network => Network::Own,
        _ => Network::Outer,
    };
    let spaces = Spaces::for_launcher(&setup.policy, setup.level.user, network).map_err(io::Error::other)?;
    spaces.separate()?;
    tie_to(engine)?;
    let parent = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    let Some(first) = kernel::fork()? else {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // It may have died before the line above, and has no number in here.
        if pipes::is_readable(parent.as_fd(), Duration::ZERO) {
            return Err(io::Error::from(rustix::io::Errno::SRCH));
        }
        drop(parent);
        return be_first(&spaces, &setup, socket);
    };
    // Found by its environment, should anybody have to look for it; nothing in here is a secret.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable);
    loop {
        match rustix::process::waitpid(Some(first), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            // Whatever the first process failed at, it said so itself.
            _ => return Ok(()),
        }
    }
}

/// Once more: a new user namespace cut the tie.
pub(in crate::tool) fn tie_to(engine: u32) -> io::Result<()> {
    LaunchStep::Parent.begin();
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != i32::try_from(engine).ok().and_then(Pid::from_raw) {
        return Err(io::Error::from(rustix::io::Errno::SRCH));
    }
    Ok(())
}

/// The life of the first process.
fn be_first(spaces: &Spaces, setup: &Setup, socket: &UnixStream) -> io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    LaunchStep::Session.begin();
    rustix::process::setsid()?;
    spaces.furnish(Some(c"/"))?;
    LaunchStep::Landlock.begin();
    let worn = Arc::new(Worn::inside(setup).map_err(io::Error::other)?);
    let ourselves = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    wire::send(socket, FrameKind::Ready, &[], &[ourselves.as_fd()])?;
    drop(ourselves);
    loop {
        let frame = match wire::receive(socket) {
            Ok(frame) if frame.kind == FrameKind::Run => frame,
            // The engine needs us no more, or is gone.
            _ => return Ok(()),
        };
        if let Err(error) = spaces.mend() {
            return wire::send(socket, FrameKind::Stale, &failure(LaunchStep::latest(), &error), &[]);
        }
        match start(frame, worn.clone()) {
            Ok(leader) => attend(leader, socket)?,
            Err(error) => {
                wire::send(socket, FrameKind::NotStarted, &failure(0, &error), &[])?;
            }
        }
    }
}

fn start(frame: Frame, worn: Arc<Worn>) -> io::Result<Pid> {
    let mut from = Reader(&frame.bytes);
    let folder = OsStr::from_bytes(from.text()?);
    let words = from.list()?;
    let (names, values) = (from.list()?, from.list()?);
    let (program, arguments) = words.split_first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut command = Command::new(OsStr::from_bytes(program));
    command.args(arguments.iter().map(|argument| OsStr::from_bytes(argument))).current_dir(folder);
    command.env_clear();
    command.envs(names.into_iter().zip(values).map(|(n, v)| (OsStr::from_bytes(n), OsStr::from_bytes(v))));
    let mut files = frame.files.into_iter().map(Stdio::from);
    let (Some(stdin), Some(stdout), Some(stderr)) = (files.next(), files.next(), files.next()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    let child = spawn::spawn(command, OnParentDeath::Kill, Some(worn))?;
    // We wait for everybody ourselves.
    owned::disown(child.id());
    Ok(Pid::from_child(&child))
}

/// Waits for the command's end, then ends what it left.
fn attend(leader: Pid, socket: &UnixStream) -> io::Result<()> {
    let handle = rustix::process::pidfd_open(leader, PidfdFlags::empty())?;
    wire::send(socket, FrameKind::Started, &[], &[handle.as_fd()])?;
    drop(handle);
    let status = loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == leader => break status,
            // An orphan that came to us and ended.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    let mut out = Writer::default();
    out.number(i64::from(status.exit_status().unwrap_or(-1)));
    out.number(i64::from(status.terminating_signal().unwrap_or(0)));
    wire::send(socket, FrameKind::Exited, &out.0, &[])?;
    // To the group of number 1, negated: the system's way to say everybody in here but ourselves. Whoever is about to
    // fork gets it first, so once is enough.
    let _ = rustix::process::kill_process_group(Pid::INIT, Signal::KILL);
    while let Ok(_) | Err(rustix::io::Errno::INTR) = rustix::process::wait(WaitOptions::empty()) {}
    wire::send(socket, FrameKind::Clean, &[], &[])
}
