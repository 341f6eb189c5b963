//! The circumstances of a run that no declaration holds: how fast a rehearsal goes, what is recorded.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::rehearsal::{Injector, Speed};

/// How a run's models are reached.
#[derive(Debug, Clone)]
pub struct LaunchOptions {
    pub speed: Speed,
    /// Where every conversation is recorded as the server sent it.
    pub record: Option<Record>,
    /// What goes wrong on purpose. With it, waits are short: nothing real is waited for.
    pub faults: Option<Arc<Injector>>,
    /// Start although every check is green already.
    pub anyway: bool,
}

/// A cassette to be written.
#[derive(Debug, Clone)]
pub struct Record {
    pub file: PathBuf,
    /// Go on after what is there; else the file must be new.
    pub append: bool,
}

impl From<Speed> for LaunchOptions {
    fn from(speed: Speed) -> Self {
        Self { speed, record: None, faults: None, anyway: false }
    }
}
