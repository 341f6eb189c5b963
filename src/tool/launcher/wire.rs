//! What the engine and a launcher say to each other: short frames over a local socket, some with open files.
//!
//! Knows nothing of processes. Invariants: a frame is bounded in size and in files; bytes that make no sense are an
//! error, never a guess. Both ends are the same program, so there is no version in here.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

/// Arguments and environment of a program are far below this.
const MAX_FRAME: usize = 64 << 20;
/// Standard input, output and error.
const MAX_FILES: usize = 3;
/// The length of what follows, and its kind.
const HEADER: usize = 5;

/// What a frame is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::tool) enum FrameKind {
    /// To the launcher, first: what to wear.
    Setup = 1,
    /// It is up; with a handle on it.
    Ready,
    /// It could not be put up: the step and the error.
    Failed,
    /// To the launcher: start this, with these three files.
    Run,
    /// It runs; with a handle on it.
    Started,
    /// It does not: the step and the error.
    NotStarted,
    /// The cage has come apart and cannot be mended: another launcher is needed.
    Stale,
    /// The command ended: its status.
    Exited,
    /// Nothing of it is left.
    Clean,
    /// To one that has just begun: be the keeper of a network instead; with whether it needs a user namespace.
    Network,
    /// To the keeper: a socket of this family, please.
    Socket,
}

impl FrameKind {
    const ALL: [Self; 11] = [
        Self::Setup,
        Self::Ready,
        Self::Failed,
        Self::Run,
        Self::Started,
        Self::NotStarted,
        Self::Stale,
        Self::Exited,
        Self::Clean,
        Self::Network,
        Self::Socket,
    ];
}

/// One frame, as it came.
#[derive(Debug)]
pub(in crate::tool) struct Frame {
    pub kind: FrameKind,
    pub bytes: Vec<u8>,
    pub files: Vec<OwnedFd>,
}

/// Nonsense on the line.
fn nonsense(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the launcher's line: {what}"))
}

pub(in crate::tool) fn send(
    mut socket: &UnixStream,
    kind: FrameKind,
    bytes: &[u8],
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    if bytes.len() > MAX_FRAME {
        return Err(io::Error::from(io::ErrorKind::ArgumentListTooLong));
    }
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_ne_bytes());
    header[4] = kind as u8;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(nonsense("too many files"));
    }
    // The files travel with the header's first byte, whatever becomes of the rest.
    let sent = loop {
        match rustix::net::sendmsg(socket, &[IoSlice::new(&header)], &mut beside, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    socket.write_all(&header[sent..])?;
    socket.write_all(bytes)
}

/// The next frame; an error of kind `UnexpectedEof` if the other side is gone.
pub(in crate::tool) fn receive(mut socket: &UnixStream) -> io::Result<Frame> {
    let mut header = [0; HEADER];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let mut slices = [IoSliceMut::new(&mut header)];
        match rustix::net::recvmsg(socket, &mut slices, &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?.bytes,
        }
    };
    if got == 0 {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
    }
    let mut files = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(handles) = message {
            files.extend(handles);
        }
    }
    socket.read_exact(&mut header[got..])?;
    let [a, b, c, d, kind] = header;
    let length = u32::from_ne_bytes([a, b, c, d]) as usize;
    if length > MAX_FRAME {
        return Err(nonsense("a frame is too long"));
    }
    let kind =
        FrameKind::ALL.into_iter().find(|known| *known as u8 == kind).ok_or_else(|| nonsense("unknown frame"))?;
    let mut bytes = vec![0; length];
    socket.read_exact(&mut bytes)?;
    Ok(Frame { kind, bytes, files })
}

/// Puts values into the bytes of a frame.
#[derive(Default)]
pub(in crate::tool) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn number(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_ne_bytes());
    }

    pub fn text(&mut self, bytes: &[u8]) {
        self.number(i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        self.0.extend_from_slice(bytes);
    }

    pub fn list<'a>(&mut self, texts: impl ExactSizeIterator<Item = &'a [u8]>) {
        self.number(i64::try_from(texts.len()).unwrap_or(i64::MAX));
        texts.for_each(|text| self.text(text));
    }
}

/// Takes them out again, in the same order.
pub(in crate::tool) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| nonsense("a frame is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn number(&mut self) -> io::Result<i64> {
        let mut eight = [0; 8];
        eight.copy_from_slice(self.take(8)?);
        Ok(i64::from_ne_bytes(eight))
    }

    pub fn text(&mut self) -> io::Result<&'a [u8]> {
        let count = self.number()?;
        self.take(usize::try_from(count).map_err(|_| nonsense("a negative length"))?)
    }

    pub fn list(&mut self) -> io::Result<Vec<&'a [u8]>> {
        // Each text takes more than one byte, so a count beyond what is left ends in an error, not in memory.
        (0..self.number()?).map(|_| self.text()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_is_sent_arrives() {
        let (one, two) = UnixStream::pair().unwrap();
        let mut words = Writer::default();
        words.number(-7);
        words.list([b"a".as_slice(), b"", b"\xff\0"].into_iter());
        let (read, mut write) = io::pipe().unwrap();
        send(&one, FrameKind::Run, &words.0, &[read.as_fd()]).unwrap();
        let frame = receive(&two).unwrap();
        assert_eq!((frame.kind, frame.files.len()), (FrameKind::Run, 1));
        let mut reader = Reader(&frame.bytes);
        assert_eq!(reader.number().unwrap(), -7);
        assert_eq!(reader.list().unwrap(), [b"a".as_slice(), b"", b"\xff\0"]);
        write.write_all(b"x").unwrap();
        let mut file = std::fs::File::from(frame.files.into_iter().next().unwrap());
        let mut byte = [0];
        file.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"x");
        drop(one);
        assert_eq!(receive(&two).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn nonsense_is_an_error() {
        let (mut one, two) = UnixStream::pair().unwrap();
        one.write_all(&[1, 0, 0, 0, 200, 9]).unwrap();
        assert!(receive(&two).is_err());
        assert!(Reader(&[1, 2]).number().is_err());
        let mut lying = Writer::default();
        lying.number(1 << 60);
        assert!(Reader(&lying.0).text().is_err() && Reader(&lying.0).list().is_err());
    }
}
