//! What guards a check: which files decide whether it passes, and how to tell a judge from the work it judges.
//!
//! Role: the class of a changed path; what a command reaches; manifests and in-file tests as the start had them; the
//! number of tests in a check's output; failing tests that a sound check must see; notes for the critic.
//! Not its role: reading files, running checks, deciding what follows.
//! Invariants: text in, values out; every text is untrusted, so all work is bounded and nothing panics; in doubt the
//! stricter answer, which is how the run found it.

mod canary;
mod count;
mod follow;
mod manifest;
pub mod names;
mod readers;
mod restore;
mod set;
pub mod shell;
mod table;
#[cfg(test)]
mod tests;

pub use canary::{Canary, canary_for, canary_in};
pub use count::{Count, complaints, count, judge_count};
pub use manifest::merge;
pub use readers::Readers;
pub use restore::restore_tests;
pub use set::{
    Class, GuardSet, is_bookkeeping, is_cache_here, is_kept_by_tools, is_named_guard, is_tool_folder, is_work,
    may_decide_unseen,
};
