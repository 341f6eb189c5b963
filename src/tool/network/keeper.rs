//! The process that makes the network of a run, and both ends of what the engine asks of it.
//!
//! A socket belongs to the network of the process that made it, and only a process of one thread can enter a user
//! namespace; so the engine cannot make one in there itself, and asks for it.
//!
//! Invariants: the keeper runs nothing and listens to nobody but the engine; it dies with the engine, and the network
//! stays as long as the engine has its handles.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::DumpableBehavior;
use rustix::thread::LinkNameSpaceType;

use crate::tool::launcher::wire::{self, Frame, FrameKind, Reader, Writer};
use crate::tool::launcher::{self, Tie};
use crate::tool::sandbox::spaces::Spaces;

/// To make a socket. The keeper does nothing else.
const PATIENCE: Duration = Duration::from_secs(5);

/// Handles on a network, and on the user namespace that has the rights over it where it needed one.
#[derive(Debug)]
pub(in crate::tool) struct Handles {
    network: OwnedFd,
    user: Option<OwnedFd>,
}

impl Handles {
    /// As they came with a frame.
    pub(in crate::tool) fn of(files: Vec<OwnedFd>) -> Option<Self> {
        let mut files = files.into_iter();
        Some(Self { network: files.next()?, user: files.next() })
    }

    /// For a frame.
    pub(in crate::tool) fn all(&self) -> Vec<BorrowedFd<'_>> {
        std::iter::once(&self.network).chain(&self.user).map(AsFd::as_fd).collect()
    }

    /// Enters it. For a process of one thread; system calls only.
    pub(in crate::tool) fn enter(&self) -> io::Result<()> {
        if let Some(user) = &self.user {
            rustix::thread::move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
        }
        Ok(rustix::thread::move_into_link_name_space(self.network.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

/// The engine's side.
#[derive(Debug)]
pub(super) struct Keeper {
    handles: Arc<Handles>,
    socket: Mutex<UnixStream>,
    _tie: Tie,
}

impl Keeper {
    pub(super) fn start(user: bool) -> io::Result<Self> {
        let mut words = Writer::default();
        words.number(i64::from(user));
        let (tie, socket) = launcher::begin(FrameKind::Network, &words.0, &[])?;
        let Frame { kind, bytes, files } = wire::receive(&socket)?;
        let handles = Handles::of(files).filter(|_| kind == FrameKind::Ready).ok_or_else(|| launcher::told(&bytes))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { handles: Arc::new(handles), socket: Mutex::new(socket), _tie: tie })
    }

    pub(super) fn handles(&self) -> Arc<Handles> {
        self.handles.clone()
    }

    /// A socket in there, that does not block.
    pub(super) fn socket(&self, v6: bool) -> io::Result<OwnedFd> {
        let mut words = Writer::default();
        words.number(i64::from(v6));
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        wire::send(&socket, FrameKind::Socket, &words.0, &[])?;
        let Frame { kind, bytes, files } = wire::receive(&socket)?;
        files.into_iter().next().filter(|_| kind == FrameKind::Ready).ok_or_else(|| launcher::told(&bytes))
    }
}

/// The keeper's life.
pub(in crate::tool) fn keep(engine: u32, told: &[u8], socket: &UnixStream) -> io::Result<()> {
    let user = Reader(told).number()? != 0;
    let spaces = Spaces::trial(user, false, true).ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
    spaces.separate()?;
    launcher::inside::tie_to(engine)?;
    spaces.furnish(None)?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let open = |path: &str| rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let mut handles = vec![open("/proc/self/ns/net")?];
    if user {
        handles.push(open("/proc/self/ns/user")?);
    }
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let lent: Vec<_> = handles.iter().map(AsFd::as_fd).collect();
    wire::send(socket, FrameKind::Ready, &[], &lent)?;
    loop {
        let frame = match wire::receive(socket) {
            Ok(frame) if frame.kind == FrameKind::Socket => frame,
            // The engine needs us no more, or is gone.
            _ => return Ok(()),
        };
        let family = if Reader(&frame.bytes).number()? != 0 { AddressFamily::INET6 } else { AddressFamily::INET };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match rustix::net::socket_with(family, SocketType::STREAM, flags, None) {
            Ok(made) => wire::send(socket, FrameKind::Ready, &[], &[made.as_fd()])?,
            Err(error) => wire::send(socket, FrameKind::Failed, &launcher::inside::failure(0, &error.into()), &[])?,
        }
    }
}
