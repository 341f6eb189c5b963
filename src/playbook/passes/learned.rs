//! What an iteration with an author and a critic teaches: the lines of its entry in AGENTS.md.

use crate::model::lane::Lane;
use crate::model::learnings::{Claim, Link};

use crate::machine::document;
use crate::machine::event::{Phase, Probe};
use crate::machine::iteration::Iteration;
use crate::machine::playbook::Learned;
use crate::machine::run::RunState;
use crate::model::capsule;
use crate::playbook::passes::event::{By, PassVerdict};

/// What an iteration taught. Words of agents and files are in it: what points at an earlier discussion is taken out.
pub fn learned(run: &RunState, iteration: &Iteration) -> Learned {
    let cleaned = |claims: Vec<Claim>| {
        let clean = |claim: Claim| Claim { text: capsule::without_bleed(&claim.text), ..claim };
        claims.into_iter().map(clean).collect()
    };
    Learned {
        tried: Some(tried(run, iteration)),
        succeeded: cleaned(succeeded(run, iteration)),
        failed: cleaned(failed(run, iteration)),
        open_questions: open_questions(run, iteration),
        part_done: part_done(run, iteration),
    }
}

/// Did the check of an item turn true that had not passed before in this run?
fn part_done(run: &RunState, iteration: &Iteration) -> bool {
    let passed =
        |it: &Iteration, probe: &Probe| it.probe(Phase::Iteration, probe).is_some_and(|result| result.end.passed());
    let green = iteration.probes.keys().filter(|(phase, _)| *phase == Phase::Iteration).map(|(_, probe)| probe);
    let mut items = green.filter(|probe| matches!(probe, Probe::Item(_)) && passed(iteration, probe));
    let was_red = |probe: &Probe| {
        let seen = run.done.iter().filter(|it| it.probe(Phase::Iteration, probe).is_some());
        let (mut any, mut green) = (false, false);
        seen.for_each(|it| {
            any = true;
            green |= passed(it, probe);
        });
        any && !green
    };
    !run.began_before_replays() && items.any(was_red)
}

/// What was tried: the author's own list, or the known fix.
fn tried(run: &RunState, iteration: &Iteration) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(chosen) = run.passes().chosen_in(iteration.number()) {
        lines.push(format!("item {}, attempt {}", chosen.item, chosen.pass));
    }
    if let Some(By::Detour(name)) = run.passes().judged_in(iteration.number()).map(|judged| &judged.by) {
        lines.push(format!("detour: {name}"));
    }
    lines.extend(iteration.author().into_iter().flat_map(|report| report.actions.iter().cloned()));
    lines
}

/// An item that passes from now on.
fn succeeded(run: &RunState, iteration: &Iteration) -> Vec<Claim> {
    let settled = run.passes().settled_in(iteration.number()).filter(|settled| settled.passes);
    let (_, link, _) = super::measure::way_out(run, iteration, Phase::Iteration);
    let claim = |text: String, link: Option<Link>| Claim { lane: Lane::A, text, link, demoted_from: None };
    let flipped = settled.map(|settled| claim(format!("item `{}` passes", settled.item), link));
    let learnt = iteration.author().into_iter().flat_map(|report| report.learnings.iter());
    let learnt = learnt.map(|text| Claim { lane: Lane::C, text: text.clone(), link: None, demoted_from: None });
    flipped.into_iter().chain(learnt).collect()
}

/// Why a pass was not verified, with what the critic said.
fn failed(run: &RunState, iteration: &Iteration) -> Vec<Claim> {
    let number = iteration.number();
    let mut claims = Vec::new();
    let mut say = |lane: Lane, text: String, link: Option<Link>| {
        claims.push(Claim { lane, text, link, demoted_from: None });
    };
    let link = document::artifacts_link(iteration);
    if let Some(touched) = run.passes().prd.touched.get(&number) {
        let what = touched.join(", ");
        let text = format!("the PRD was changed while an agent worked ({what}): not believed, put back");
        say(Lane::A, text, Some(link.clone()));
    }
    let Some(judged) = run.passes().judged_in(number) else { return claims };
    if judged.verdict != PassVerdict::Verified {
        say(Lane::A, format!("{}: {}", judged.verdict.name(), judged.detail), Some(link.clone()));
    }
    for remark in judged.remarks() {
        say(Lane::A, remark, Some(link.clone()));
    }
    if let Some(problem) = run.passes().settled_in(number).and_then(|settled| settled.problem.as_ref()) {
        say(Lane::A, format!("verified, but not flipped: {problem}"), Some(link));
    }
    for concern in &judged.concerns {
        let text = format!("{} at {}: {}", concern.severity.name(), concern.location, concern.description);
        say(Lane::C, text, None);
    }
    claims
}

/// What the next pass should answer.
fn open_questions(run: &RunState, iteration: &Iteration) -> Vec<String> {
    let Some(judged) = run.passes().judged_in(iteration.number()) else { return Vec::new() };
    if judged.verdict == PassVerdict::Verified {
        return Vec::new();
    }
    let concerns = judged.concerns.iter().map(|concern| format!("{} ({})", concern.recommendation, concern.location));
    let checks = judged.failed.iter().map(|name| format!("What makes `{name}` fail?"));
    concerns.chain(checks).collect()
}
