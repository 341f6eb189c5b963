//! The truth on disk: a hash-chained, append-only journal, its blobs, lock, seal, signature and anchors.
//!
//! Role: make events durable before anyone acts on them, and prove later that nothing was
//! changed. Not its role: knowing what an event means. It sees a kind and a piece of JSON.
//!
//! Invariants, each held by one file:
//! * a line's hash covers its bytes as written and everything before it ([`record`], `line`);
//! * an acknowledged event is on disk; a failed one leaves no trace ([`writer`], `commit`);
//! * a torn tail is cut by rule, any other damage is refused ([`recovery`], `scan`);
//! * one process writes a run ([`lock`]); reading never changes anything ([`reader`]).

pub mod anchor;
mod atomic;
pub mod blobs;
pub mod clock;
mod commit;
pub mod error;
pub mod failpoint;
#[cfg(any(test, debug_assertions))]
mod fault;
pub mod follow;
mod line;
mod lines;
pub mod lock;
mod names;
pub mod reader;
pub mod record;
pub mod recovery;
mod reserve;
pub mod run_dir;
mod scan;
pub mod seal;
pub mod signature;
pub mod signers;
pub mod ssh;
mod storage;
#[cfg(test)]
mod tests;
pub mod verify;
pub mod writer;

pub use anchor::{Anchor, Anchored, Anchors};
pub use atomic::write as write_whole;
pub use blobs::Blobs;
pub use clock::{Clock, SystemClock, mono_ms};
pub use commit::{SEGMENT_END, Tail, WriterOptions};
pub use error::JournalError;
pub use failpoint::failpoint;
pub use follow::Follower;
pub use lock::{FolderLock, RunLock};
pub use reader::read;
pub use record::{Draft, MAX_DATA, MAX_KIND, Record};
pub use recovery::{Recovered, Scanned, Torn, recover, scan};
pub use run_dir::RunDir;
pub use seal::{COMMIT_SUBJECT, HEAD_SUBJECT, Seal, Subject, SubjectId, TREE_SUBJECT, read_seal, write_seal};
pub use signature::{Envelope, read_envelope, sign_seal, unsign};
pub use signers::Signers;
pub use ssh::{PublicKey, SecretKey};
pub use verify::{ChainReport, Problem, verify_chain};
pub use writer::Writer;
