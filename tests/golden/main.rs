//! Golden runs: the real binary, a scripted model, and the whole evidence of every way a run can end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod case;
mod sealed;

mod budget;
mod capsule;
mod exits;
mod faults;
mod forbidden;
mod gate;
mod held_back;
mod lanes;
mod learnings;
mod listed;
mod need_info;
mod northstar;
mod openai;
mod permissions;
mod programs;
mod report;
mod rung;
mod start;
mod stop;
mod tools;
mod usage;
mod wire;
