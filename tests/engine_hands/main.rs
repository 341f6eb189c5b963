//! Hostile cases that aim at the engine's own hands: what it reads, writes and runs in a workspace by itself.
//!
//! Role: whole runs of the real binary over a workspace in which a place of the engine's is something else than it
//! should be: a link to outside, a FIFO, a device, a huge file, a planted repository. Whatever stands there, the world
//! outside (a canary) stays as it was, its secret gets nowhere, the program ends by itself, leaves no process, and says
//! what it could not put right. Not its role: commands of agents (`tests/sandbox`).
//!
//! `NIGHTLOOP_CASE=text` runs the cases with that text in their name; `NIGHTLOOP_THOROUGH=1` every kind of trap at every
//! door. `--nocapture` shows how long each case took.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(target_os = "linux")]

#[path = "../support/mod.rs"]
mod support;

#[path = "../durability/harness.rs"]
#[allow(dead_code, unused_imports)]
mod harness;

// The small worlds of the other suites.
#[path = "../passes/case.rs"]
#[allow(dead_code, unused_imports)]
mod passes;
#[path = "../golden/case.rs"]
#[allow(dead_code, unused_imports)]
mod swarm;
#[path = "../value/case.rs"]
#[allow(dead_code, unused_imports)]
mod value;

mod canary;
mod stage;
mod trap;
mod worlds;

mod doors;
mod product;
mod races;
mod repositories;
mod stops;

/// Cases are told by their names, so each has its own.
#[test]
fn there_are_many_cases_and_each_has_a_name_of_its_own() {
    let tables = [doors::swarm(), doors::prd(), doors::value(), doors::by_agents(), product::cases()];
    let traps = tables.iter().flatten().map(stage::Case::name);
    let others = repositories::names().into_iter().chain(stops::names()).chain(races::names());
    let mut names: Vec<String> = traps.chain(others).collect();
    println!("{} cases", names.len());
    let all = names.len();
    assert!(all >= 80, "only {all} cases");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "two cases have one name");
}
