//! What the files of a run directory are called.

/// Comes last when a run is made, so that what has it is complete.
pub(super) const GENESIS: &str = "genesis.json";
/// The space that is kept for the last words.
pub(super) const RESERVE: &str = "reserve";
pub(super) const SEAL: &str = "seal.json";
/// The seal, signed.
pub(super) const SIGNATURE: &str = "seal.dsse.json";

pub(super) fn segment(number: u32) -> String {
    format!("{number:08}.jsonl")
}
