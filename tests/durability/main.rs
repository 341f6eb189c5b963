//! Crash, fault, tamper and hostile-input tests of the real binary.
//!
//! Role: whatever happens to a run from outside, its journal stays true and the run can go on.
//! Not its role: the journal's own byte-level crash tests (`tests/journal_crash.rs`, unit tests).
//!
//! Bigger by environment: `NIGHTLOOP_KILLS` (random kills, default 15), `NIGHTLOOP_SEED` (their seed),
//! `NIGHTLOOP_THOROUGH=1` (every crash point at every event, every fault at every call,
//! every byte of long files flipped).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod agents_md;
mod archive;
mod bad_input;
mod boundary;
mod chain;
mod claims;
mod faults;
mod forge;
mod full_disk;
mod harness;
mod kill9;
mod ownership;
mod proofs;
mod resume_edges;
mod scarce;
mod signals;
mod tamper;
mod unborn;
