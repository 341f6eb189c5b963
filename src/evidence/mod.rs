//! Files rendered from the journal, and `verify`.
//!
//! Everything under `evidence/loop/` is a pure function of the folded run and its blobs. A difference
//! between the two is tampering, and [`verify`] says where.

mod cumulative;
pub mod night;
pub mod night_report;
pub mod ours;
pub mod pack;
mod people;
pub mod render;
pub mod report;
pub mod rewritten;
pub mod store;
pub mod verify;
mod within;
