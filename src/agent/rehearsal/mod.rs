//! Rehearsal: a scripted model, served inside the binary on loopback as a Messages API and as chat completions.
//!
//! Role: answer real HTTP requests with real event streams from a YAML script, faults included,
//! so that demos and tests exercise the real client. The script format is in `docs/rehearsal.md`.
//! Not its role: checking that a request is one the real service would take.
//!
//! Invariants: the reply depends on the request alone (role, iteration, turn), so a run that was
//! killed and resumed goes on where it was; only the count of attempts at a turn, which chooses
//! faults, is remembered. It listens on 127.0.0.1 only, and every buffer and queue is bounded.

mod chat;
mod http;
mod inject;
mod mouth;
mod play;
mod script;
mod select;
mod server;
mod tape;

pub use inject::{FaultKind, Injector, Planned, Struck};
pub use script::{Call, CallInput, Fault, Script, ScriptError, ScriptStep, Turn, TurnUsage};
pub use select::{Position, tools_of};
pub use server::{Played, RecordedRequest, Server, Speed};
pub use tape::{MAX_TAPE_BYTES, Tape};
