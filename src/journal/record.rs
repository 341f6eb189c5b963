//! An event before it is journalled, and after.
//!
//! Role: the two nouns of the journal. Not their role: bytes (see `line`).
//! Invariant: a [`Record`] exists only for a line whose hash was computed or checked.

use serde_json::value::RawValue;

use crate::journal::JournalError;
use crate::model::digest::Digest;

/// The largest `data` of an event.
pub const MAX_DATA: usize = 1024 * 1024;
/// The longest kind of an event.
pub const MAX_KIND: usize = 256;

/// An event that is not yet on disk.
#[derive(Clone, Debug)]
pub struct Draft {
    pub iter: Option<u32>,
    pub kind: String,
    pub data: Box<RawValue>,
}

impl Draft {
    /// A draft whose data is `value` as JSON.
    pub fn new(
        iter: Option<u32>,
        kind: impl Into<String>,
        value: &impl serde::Serialize,
    ) -> Result<Self, JournalError> {
        let kind = kind.into();
        match serde_json::value::to_raw_value(value) {
            Ok(data) => Ok(Self { iter, kind, data }),
            Err(error) => Err(JournalError::invalid(format!("event {kind} does not turn into JSON: {error}"))),
        }
    }
}

/// An event on disk.
#[derive(Clone, Debug)]
pub struct Record {
    pub seq: u64,
    /// Wall clock, for people. Order is by `seq` alone.
    pub ts: String,
    /// Milliseconds since boot, suspend included. Comparable only within one `boot`.
    pub mono_ms: u64,
    pub boot: String,
    pub iter: Option<u32>,
    pub kind: String,
    pub data: Box<RawValue>,
    pub prev: Digest,
    pub hash: Digest,
}
