//! The whole console: what an operator sees on every pane, in every look, at every size that matters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/operator.rs"]
mod operator;

mod idle;
mod late;
mod looks;
mod pictures;
mod property;
mod recorded;
mod snapshots;
