//! Whole runs of the playbooks `prd` and `micro`: the real binary, a scripted author and critic, real files and checks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

#[path = "../durability/chain.rs"]
#[allow(dead_code)]
mod chain;
#[path = "../durability/harness.rs"]
#[allow(dead_code)]
mod harness;

mod case;

mod agents;
mod crash;
mod forge;
mod git;
mod hands;
mod large;
mod ledger;
mod micro;
mod options;
mod prd;
mod stuck;
