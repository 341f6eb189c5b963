//! The steps of getting a child ready for its program, and the error that names the one that failed.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

/// What a child was about when it failed. A forked child has a copy of its own, so nobody shares it.
static STEP: AtomicU8 = AtomicU8::new(0);

/// The parts of getting ready that can fail for reasons an operator should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum LaunchStep {
    Session = 1,
    Namespaces,
    Ids,
    Network,
    Loopback,
    PrivateMounts,
    OwnProc,
    Terminals,
    Overlay,
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

impl LaunchStep {
    const ALL: [(Self, &'static str); 18] = [
        (Self::Session, "a session of its own"),
        (Self::Namespaces, "namespaces"),
        (Self::Ids, "the maps of users"),
        (Self::Network, "the network of the run"),
        (Self::Loopback, "the loopback network"),
        (Self::PrivateMounts, "mounts of its own"),
        (Self::OwnProc, "a /proc of its own"),
        (Self::Terminals, "terminals of its own"),
        (Self::Overlay, "the overlay over the workspace"),
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
    pub(super) fn latest() -> u8 {
        STEP.load(Ordering::Relaxed)
    }
}

/// A child could not get ready for its program.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotReady(String, u8, Option<i32>);

impl NotReady {
    /// An error, with the step it belongs to; as it is where that was the program's own start.
    pub(super) fn at(step: u8, error: io::Error) -> io::Error {
        match LaunchStep::ALL.iter().find(|(known, _)| *known as u8 == step) {
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
