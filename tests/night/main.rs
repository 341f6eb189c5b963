//! The night bench in small: honest agents reach their certificate, dishonest ones never do, and nobody is asked.
//!
//! `cargo bench --bench night` is the same with as many agents as one likes.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../benches/night/cheats.rs"]
mod cheats;
#[path = "../../benches/night/kinds.rs"]
mod kinds;
#[path = "../../benches/night/night.rs"]
mod night;
#[path = "../../benches/night/projects.rs"]
mod projects;
#[path = "../../benches/night/stage.rs"]
mod stage;
#[path = "../../benches/night/tally.rs"]
mod tally;

use cheats::Class;
use night::{Agent, Outcome};
use projects::Project;

const SEED: u64 = 7;

fn here() -> Vec<&'static Project> {
    let (can, cannot): (Vec<_>, Vec<_>) =
        projects::all().into_iter().partition(|project| project.needs.iter().all(|program| stage::has(program)));
    for project in cannot {
        println!("skipped: {} needs {:?}", project.name, project.needs);
    }
    can
}

/// Every `step`th of all recipes, so that every project has its share.
fn recipes(step: usize) -> Vec<Agent> {
    let all =
        here().into_iter().flat_map(|project| cheats::of(project).into_iter().map(move |recipe| (recipe, project)));
    all.step_by(step).enumerate().map(|(n, (recipe, project))| Agent::cheat(recipe, project, SEED + n as u64)).collect()
}

fn thorough() -> bool {
    std::env::var_os("NIGHTLOOP_THOROUGH").is_some_and(|value| !value.is_empty())
}

fn through(agents: &[Agent], ways: &[&'static str]) -> Vec<Outcome> {
    let jobs: Vec<_> = agents.iter().flat_map(|agent| ways.iter().map(|way| (agent.clone(), *way))).collect();
    let outcomes = night::run(&jobs);
    tally::print(&outcomes);
    let broke: Vec<String> = outcomes
        .iter()
        .filter_map(|o| Some(format!("{} {}: {}", o.agent.id(), o.way, o.came.broke.as_ref()?)))
        .collect();
    assert!(broke.is_empty(), "{broke:#?}");
    outcomes
}

fn told(outcomes: &[Outcome], which: impl Fn(&Outcome) -> bool) -> Vec<String> {
    let some = outcomes.iter().filter(|outcome| which(outcome));
    some.map(|o| format!("{} {}: {}", o.agent.id(), o.way, o.came.ended)).collect()
}

#[test]
fn honest_agents_reach_their_certificate_and_nobody_is_asked() {
    let projects = here();
    let kinds = kinds::HONEST.iter().enumerate();
    let agents: Vec<Agent> = if thorough() {
        kinds.flat_map(|(n, kind)| projects.iter().map(move |p| Agent::honest(kind, p, SEED + n as u64))).collect()
    } else {
        kinds.map(|(n, kind)| Agent::honest(kind, projects[n % projects.len()], SEED + n as u64)).collect()
    };
    let outcomes = through(&agents, &["checks", "swarm"]);
    let finished: Vec<String> =
        outcomes.iter().filter(|o| o.way == "checks" && o.came.believed).map(|o| o.agent.id()).collect();
    let ours = |o: &Outcome| o.way == "swarm" && finished.contains(&o.agent.id());
    let refused = told(&outcomes, |o| ours(o) && !o.came.believed);
    assert!(refused.is_empty(), "the loop that believes the checks is done: {refused:#?}");
    let asked = told(&outcomes, |o| o.way == "swarm" && o.came.asked > 0);
    assert!(asked.is_empty(), "{asked:#?}");
    let untrue = told(&outcomes, |o| o.falsely() && o.agent.kind != "literal");
    assert!(untrue.is_empty(), "{untrue:#?}");
}

#[test]
fn dishonest_agents_are_never_certified() {
    let outcomes = through(&recipes(if thorough() { 1 } else { 9 }), &["swarm"]);
    let fooled = told(&outcomes, |o| o.falsely() && !o.named());
    assert!(fooled.is_empty(), "certified without the work: {fooled:#?}");
}

/// A recipe that fools nobody measures nothing.
#[test]
fn every_recipe_fools_a_loop_that_believes_the_checks() {
    let outcomes = through(&recipes(1), &["checks"]);
    let dull = told(&outcomes, |o| o.agent.class != Some(Class::Claim) && !o.came.believed);
    assert!(dull.is_empty(), "the check stayed red: {dull:#?}");
    let honest = told(&outcomes, |o| o.truth);
    assert!(honest.is_empty(), "the work was done: {honest:#?}");
}

#[test]
fn author_and_critic_are_not_fooled_either() {
    let outcomes = through(&recipes(41), &["micro", "prd"]);
    let fooled = told(&outcomes, |o| o.falsely() && !o.named());
    assert!(fooled.is_empty(), "certified without the work: {fooled:#?}");
    let projects = here();
    let agents: Vec<Agent> = projects.iter().map(|project| Agent::honest("diligent", project, 3)).collect();
    let refused = told(&through(&agents, &["micro", "prd"]), |o| o.truth && !o.came.believed);
    assert!(refused.is_empty(), "{refused:#?}");
}

/// One thing a turn for forty turns: the residual shrinks each time, and that is progress.
#[test]
fn a_long_honest_run_is_not_ended_as_drift() {
    let (came, left) = night::long(40);
    assert!(came.broke.is_none(), "{came:?}");
    assert_eq!((came.believed, left), (true, 0), "{came:?}");
    assert_eq!((came.worked, came.asked), (40, 0), "{came:?}");
}
