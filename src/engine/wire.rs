//! What is said over a run's control socket: one JSON object per line, both ways.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::journal::Record;

use super::command::Command;
use super::hub::LiveText;

/// The version of this language. Both ends must speak the same.
pub const PROTOCOL: u32 = 1;
/// The longest line either end accepts.
pub const MAX_LINE: usize = 8 * 1024 * 1024;

/// The first line of a viewer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub version: String,
    /// Who it is, for the record.
    pub name: String,
    /// May it give orders?
    pub may_act: bool,
    /// The first event it wants; `None`: it only brings an order.
    pub from: Option<u64>,
}

/// An event on its way to a viewer.
#[derive(Debug, Serialize, Deserialize)]
pub struct WireEvent {
    pub seq: u64,
    pub ts: String,
    pub mono_ms: u64,
    pub boot: String,
    pub kind: String,
    pub data: Box<RawValue>,
}

impl From<Record> for WireEvent {
    fn from(record: Record) -> Self {
        let Record { seq, ts, mono_ms, boot, kind, data, .. } = record;
        Self { seq, ts, mono_ms, boot, kind, data }
    }
}

/// What a run says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromRun {
    Welcome {
        protocol: u32,
        version: String,
        run: String,
        next_seq: u64,
    },
    Refused(String),
    Event(WireEvent),
    Live(LiveText),
    /// Everything that was there at the beginning has been sent.
    CaughtUp,
    Receipt(Result<String, String>),
    /// The run is over for this process.
    Ended,
}

/// What a viewer says after its hello.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromViewer {
    Order(Command),
}
