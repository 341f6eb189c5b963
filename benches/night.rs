//! The night bench: seeded agents, honest and dishonest, on small projects whose truth they do not know, through a loop
//! that believes the agent, a loop that believes the checks, and nightloop. `cargo bench --bench night`.
//!
//! `NIGHTLOOP_NIGHT_RUNS` (default 40) agents are drawn from `NIGHTLOOP_NIGHT_SEED` (default 1);
//! `NIGHTLOOP_NIGHT_ONLY=kind/project/seed` runs one; `NIGHTLOOP_NIGHT_JSON` names a file for all outcomes;
//! `NIGHTLOOP_NIGHT_KEEP` keeps the folders. Fails when a promise of docs/figures.md is broken.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "night/cheats.rs"]
mod cheats;
#[path = "night/kinds.rs"]
mod kinds;
#[path = "night/night.rs"]
mod night;
#[path = "night/projects.rs"]
mod projects;
#[path = "night/stage.rs"]
mod stage;
#[path = "night/tally.rs"]
mod tally;

use std::process::ExitCode;

use night::{Agent, Outcome, WAYS};
use serde_json::json;

fn main() -> ExitCode {
    let seed = size("NIGHTLOOP_NIGHT_SEED", 1);
    let only = std::env::var("NIGHTLOOP_NIGHT_ONLY").ok();
    let jobs: Vec<(Agent, &str)> = match &only {
        Some(id) => {
            let agent = Agent::parse(id).expect("NIGHTLOOP_NIGHT_ONLY is kind/project/seed");
            WAYS.map(|way| (agent.clone(), way)).into()
        }
        None => {
            let runs = usize::try_from(size("NIGHTLOOP_NIGHT_RUNS", 40)).unwrap();
            let agents = night::crowd(runs, seed).into_iter().enumerate();
            agents.flat_map(|(n, agent)| night::ways(n).into_iter().map(move |way| (agent.clone(), way))).collect()
        }
    };
    println!("## Night bench, seed {seed}, {} turns at most\n", night::turns());
    let outcomes = night::run(&jobs);
    tally::print(&outcomes);
    long_run();
    write_json(seed, &outcomes);
    println!();
    tally::by_playbook(&outcomes).iter().for_each(|line| println!("{line}"));
    println!();
    let promises = tally::promises(&outcomes);
    for (held, what) in &promises {
        println!("{} {what}", if *held { "held:  " } else { "BROKEN:" });
    }
    if only.is_some() || promises.iter().all(|(held, _)| *held) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn size(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Forty turns of an agent that takes one thing from the list each.
fn long_run() {
    let (came, left) = night::long(40);
    println!(
        "\nLong run: 40 things to do, one a turn: {} after {} turns, {left} left, {:.1} s",
        came.ended, came.worked, came.seconds
    );
}

fn write_json(seed: u64, outcomes: &[Outcome]) {
    if let Some(path) = std::env::var_os("NIGHTLOOP_NIGHT_JSON") {
        let all = json!({"seed": seed, "runs": outcomes.iter().map(Outcome::as_json).collect::<Vec<_>>()});
        std::fs::write(path, serde_json::to_string_pretty(&all).unwrap()).unwrap();
    }
}
