//! A disk that fails on request. Not part of a release build.
//!
//! Role: fail the n-th write or sync, once or from then on, in tests and (by
//! `NIGHTLOOP_FAIL=<write|sync>:<n>[+]:<EIO|ENOSPC>`) in the real binary.
//! Not its role: crashes (see `failpoint`).
//! Invariant: a call that fails here did not reach the disk; a short write reached it in part.

use std::io;

use super::storage::Storage;

/// Which call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Write,
    Sync,
    #[cfg_attr(not(test), allow(dead_code))]
    SyncDir,
    #[cfg_attr(not(test), allow(dead_code))]
    Truncate,
    #[cfg_attr(not(test), allow(dead_code))]
    Open,
}

/// How it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Eio,
    Enospc,
    /// A write takes half of what it is given. Any other call just fails.
    #[cfg_attr(not(test), allow(dead_code))]
    Short,
}

/// The n-th call of a kind (from 1), and with `persistent` every later one, fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub op: Op,
    pub nth: u64,
    pub persistent: bool,
    pub how: How,
}

impl Plan {
    /// The plan in the environment, if there is one that makes sense.
    pub(super) fn from_env() -> Option<Self> {
        Self::parse(&std::env::var("NIGHTLOOP_FAIL").ok()?)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let op = match parts.next()? {
            "write" => Op::Write,
            "sync" => Op::Sync,
            _ => return None,
        };
        let count = parts.next()?;
        let nth = count.strip_suffix('+').unwrap_or(count).parse().ok()?;
        let how = match parts.next()? {
            "EIO" => How::Eio,
            "ENOSPC" => How::Enospc,
            _ => return None,
        };
        parts.next().is_none().then_some(Self { op, nth, persistent: count.ends_with('+'), how })
    }
}

/// A disk that follows a plan.
pub(super) struct Faulty<S> {
    inner: S,
    plan: Plan,
    calls: u64,
}

impl<S: Storage> Faulty<S> {
    pub(super) fn new(inner: S, plan: Plan) -> Self {
        Self { inner, plan, calls: 0 }
    }

    /// Counts a call and says whether and how it fails.
    fn hit(&mut self, op: Op) -> Option<How> {
        if op != self.plan.op {
            return None;
        }
        self.calls += 1;
        let due = self.calls == self.plan.nth || (self.plan.persistent && self.calls > self.plan.nth);
        due.then_some(self.plan.how)
    }

    fn check(&mut self, op: Op) -> io::Result<()> {
        self.hit(op).map_or(Ok(()), |how| Err(error(how)))
    }
}

fn error(how: How) -> io::Error {
    match how {
        How::Eio | How::Short => rustix::io::Errno::IO.into(),
        How::Enospc => rustix::io::Errno::NOSPC.into(),
    }
}

impl<S: Storage> Storage for Faulty<S> {
    fn open_segment(&mut self, number: u32) -> io::Result<u64> {
        self.check(Op::Open)?;
        self.inner.open_segment(number)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        match self.hit(Op::Write) {
            Some(How::Short) => self.inner.write_at(&bytes[..bytes.len() / 2], offset),
            Some(how) => Err(error(how)),
            None => self.inner.write_at(bytes, offset),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.check(Op::Sync)?;
        self.inner.sync()
    }

    fn sync_dir(&mut self) -> io::Result<()> {
        self.check(Op::SyncDir)?;
        self.inner.sync_dir()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.check(Op::Truncate)?;
        self.inner.truncate(length)
    }

    fn release_reserve(&mut self) -> io::Result<()> {
        self.inner.release_reserve()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read_from_text() {
        let plan = Plan { op: Op::Write, nth: 4, persistent: true, how: How::Enospc };
        assert_eq!(Plan::parse("write:4+:ENOSPC"), Some(plan));
        let plan = Plan { op: Op::Sync, nth: 3, persistent: false, how: How::Eio };
        assert_eq!(Plan::parse("sync:3:EIO"), Some(plan));
        for wrong in ["", "sync", "sync:3", "sync:x:EIO", "read:3:EIO", "sync:3:EPERM", "sync:3:EIO:4"] {
            assert_eq!(Plan::parse(wrong), None, "{wrong}");
        }
    }
}
