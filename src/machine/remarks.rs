//! What people should know of a run beside its verdict. From recorded facts alone.
//!
//! Not here: what speaks against a success (`guards`). Invariant: bounded; the same facts give the same remarks.

use super::run::RunState;

/// Remarks that are listed; a run may have very many calls.
const MOST: usize = 50;

/// The remarks on a run, the oldest first.
pub fn of(state: &RunState) -> Vec<String> {
    let calls = state.iterations().flat_map(|iteration| iteration.calls.iter().map(move |call| (iteration, call)));
    let moved = calls.filter_map(|(iteration, (_, call))| {
        let moved = call.moved.as_ref()?;
        Some(format!("iteration {}: the {} {}", iteration.number(), call.role, moved.describe()))
    });
    let mut remarks: Vec<String> = moved.chain(state.playbook().remarks(state)).collect();
    let more = remarks.len().saturating_sub(MOST);
    remarks.truncate(MOST);
    if more > 0 {
        remarks.push(format!("and {more} more"));
    }
    remarks
}
