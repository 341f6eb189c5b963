//! What each family of events does to a run, and when it may come: one file per family, both sides of the same rule.
//!
//! `legal` asks before anything is recorded or folded; `apply` folds what was found legal. Not here: the events
//! themselves (`event`), what is decided from them (`step`, the playbooks).

pub mod call;
pub mod git;
pub mod iteration;
pub mod network;
pub mod operator;
pub mod run;
