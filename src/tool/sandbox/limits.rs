//! Resource limits of a child: numbers of processes and files, size of a file, a lower priority.
//!
//! No limit on address space: node, java and go reserve far more than they use. No limit on processor time: a
//! command's timeout ends it. Core files are forbidden to every child in `spawn`.
//!
//! Invariant: a limit is only ever lowered.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::tool::sweep::running;

/// How many processes and threads a command may start.
const MAX_PROCESSES: u64 = 2_048;

/// The largest file a command may make.
const MAX_FILE: u64 = 16 << 30;
const MAX_OPEN: u64 = 65_536;
/// Behind the engine, when the two want the same processor.
const NICENESS: i32 = 5;

pub(super) struct Limits {
    limits: [(Resource, Rlimit); 3],
}

impl Limits {
    pub(super) fn new() -> Self {
        // The kernel counts per user, so what runs already is added. It does not hold the superuser: `supervise`
        // counts as well.
        let processes = running().saturating_add(MAX_PROCESSES);
        let wanted = [(Resource::Fsize, MAX_FILE), (Resource::Nofile, MAX_OPEN), (Resource::Nproc, processes)];
        Self { limits: wanted.map(|(resource, most)| (resource, lowered(getrlimit(resource), most))) }
    }

    /// In the child.
    pub(super) fn wear(&self) -> io::Result<()> {
        for (resource, limit) in &self.limits {
            setrlimit(*resource, *limit)?;
        }
        // Not being allowed to be nice is no reason to refuse.
        let _ = rustix::process::setpriority_process(None, NICENESS);
        Ok(())
    }
}

fn lowered(present: Rlimit, most: u64) -> Rlimit {
    let lower = |value: Option<u64>| Some(value.map_or(most, |value| value.min(most)));
    Rlimit { current: lower(present.current), maximum: lower(present.maximum) }
}
