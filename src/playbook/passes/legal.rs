//! Which events of these playbooks may follow, and which reports are taken.
//!
//! Role: refuse what no run of ours could have recorded, so that a forged journal does not fold; tell an agent what its
//! report lacks. Not its role: whether a decision is the right one (`verify` makes each of them again).

use crate::machine::iteration::Iteration;
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::model::critique::{AuthorReport, Critique, Status};
use crate::model::prd::ReadWhen;
use crate::model::report::Report;

use super::event::{ItemChosen, ItemSeen, ItemSettled, PassEvent, PassVerdict, PrdRead};
use super::state::{Passes, has_items, may_ask};

/// The part of a sandbox's level that keeps what is sealed as it is.
const MOUNTS: &str = "mounts";

/// May this event follow?
pub fn legal(run: &RunState, event: &PassEvent) -> Result<(), String> {
    let passes = run.passes();
    let number = run.current.as_ref().map(Iteration::number);
    let of_prd = || if has_items(run) { Ok(()) } else { Err(format!("{} needs items", event.kind())) };
    match event {
        PassEvent::PrdRead(read) => {
            of_prd()?;
            legal_read(run, read)
        }
        PassEvent::ItemChosen(chosen) => {
            of_prd()?;
            if !may_ask(run) || chosen.iteration != run.iteration_number() {
                return Err("an item is chosen between two iterations, for the next one".to_owned());
            }
            if passes.chosen_in(chosen.iteration).is_some() {
                return Err("an iteration works on one item".to_owned());
            }
            match passes.prd.item(&chosen.item) {
                Some(item) if !item.passes => Ok(()),
                Some(_) => Err(format!("item {} passes already", chosen.item)),
                None => Err(format!("there is no item {}", chosen.item)),
            }
        }
        PassEvent::PassJudged(judged) => {
            if run.state != State::CheckHalting || number != Some(judged.iteration) {
                return Err("a pass is judged in its iteration".to_owned());
            }
            if passes.judged_in(judged.iteration).is_some() { Err("it is judged already".to_owned()) } else { Ok(()) }
        }
        PassEvent::RouteDecided(decided) => {
            let judged = passes.judged_in(decided.iteration).is_some() && number == Some(decided.iteration);
            if judged && passes.route_of(decided.iteration).is_none() {
                Ok(())
            } else {
                Err("a route follows a judged pass, once".to_owned())
            }
        }
        PassEvent::ItemSettled(settled) => {
            of_prd()?;
            legal_settling(passes, number, settled)?;
            let untried = |iteration| super::trial_of(run, iteration).is_some();
            if settled.passes && run.current.as_ref().is_some_and(untried) {
                return Err(format!("{}: its judges were not tried, or nobody accepted their change", settled.item));
            }
            Ok(())
        }
    }
}

fn legal_read(run: &RunState, read: &PrdRead) -> Result<(), String> {
    let prd = &run.passes().prd;
    let between = run.state == State::SpawnSubagent && run.current.is_none();
    let (here, where_) = match read.when {
        ReadWhen::Start => (run.state == State::DreamGoal, "before the first iteration"),
        ReadWhen::Between => (between, "between two iterations"),
        ReadWhen::AfterWork => {
            (matches!(run.state, State::SpawnSubagent | State::CheckHalting), "after an agent worked")
        }
        ReadWhen::Restored => (prd.restore, "where something has to be put back"),
    };
    if !here || run.call.is_some() {
        return Err(format!("this reading belongs {where_}"));
    }
    // What only a person can have written is a person's word.
    if read.by_hand {
        let could = read.when == ReadWhen::AfterWork && run.started.sandbox.contains(MOUNTS);
        return if could { Ok(()) } else { Err("nobody can tell that a person wrote this".to_owned()) };
    }
    // Whatever the file says after an agent worked, it says nothing about passing that was not known.
    let (ReadWhen::AfterWork | ReadWhen::Restored, Some(items)) = (read.when, &read.items) else { return Ok(()) };
    let new = items.iter().find(|item| item.passes && !prd.item(&item.id).is_some_and(|known| known.passes));
    new.map_or(Ok(()), |item| Err(format!("nobody verified that {} passes", item.id)))
}

fn legal_settling(passes: &Passes, number: Option<u32>, settled: &ItemSettled) -> Result<(), String> {
    let judged = passes.judged_in(settled.iteration).filter(|_| number == Some(settled.iteration));
    let Some(judged) = judged.filter(|judged| judged.subject.as_deref() == Some(settled.item.as_str())) else {
        return Err(format!("no pass at {} was judged here", settled.item));
    };
    if passes.settled_in(settled.iteration).is_some() {
        return Err("an iteration settles one item".to_owned());
    }
    if settled.passes && judged.verdict != PassVerdict::Verified {
        return Err(format!("{} was not verified", settled.item));
    }
    let Some(items) = &settled.items else { return Ok(()) };
    // One item at most changes to passing.
    let flipped = |item: &&ItemSeen| item.passes && !passes.prd.item(&item.id).is_some_and(|known| known.passes);
    match items.iter().filter(flipped).find(|item| !settled.passes || item.id != settled.item) {
        Some(other) => Err(format!("{} was not worked on", other.id)),
        None => Ok(()),
    }
}

/// May this report be taken now? The error goes back to the agent.
pub fn admit(run: &RunState, report: &Report) -> Result<(), String> {
    let Some(iteration) = &run.current else { return Err("no iteration is running".to_owned()) };
    let chosen = run.passes().chosen_in(iteration.number());
    match report {
        Report::Author(author) => admit_author(run, chosen, author),
        Report::Critic(critique) => {
            let item = chosen.and_then(|chosen| run.passes().prd.item(&chosen.item));
            admit_critique(item, critique)?;
            let declared = run.criteria.iter().filter(|criterion| criterion.is_judged());
            let mut unjudged = declared
                .filter(|criterion| !critique.judged.iter().any(|judgement| judgement.criterion == criterion.id));
            match unjudged.next().filter(|_| critique.status == Status::Verified) {
                Some(criterion) => Err(format!("VERIFIED without a judgement of criterion `{}`", criterion.id)),
                None => Ok(()),
            }
        }
        Report::Scout(_) | Report::Solver(_) | Report::Skeptic(_) => Ok(()),
        Report::Value(_) => Err("this playbook takes no such report".to_owned()),
    }
}

/// Every retry says which one thing it does differently, and not the same as an earlier one.
fn admit_author(run: &RunState, chosen: Option<&ItemChosen>, author: &AuthorReport) -> Result<(), String> {
    // Where the last attempt was verified and could not be written down, nothing has to be different.
    let failed = |chosen: &&ItemChosen| chosen.pass > 1 && !run.passes().was_verified(&chosen.item);
    let Some(chosen) = chosen.filter(failed) else { return Ok(()) };
    let Some(retry) = &author.retry else {
        return Err(
            "this is not the first attempt: say in `retry` which one thing is different from the last one".into()
        );
    };
    let earlier = run
        .done
        .iter()
        .filter(|done| run.passes().chosen_in(done.number()).is_some_and(|other| other.item == chosen.item));
    let mut notes = earlier.filter_map(|done| done.author()?.retry.as_ref());
    if notes.any(|other| other == retry) {
        return Err("`retry` says what an earlier attempt said: change something else".to_owned());
    }
    Ok(())
}

/// Every acceptance criterion of the item is judged once, by its number, and what is met has an artifact.
fn admit_critique(item: Option<&ItemSeen>, critique: &Critique) -> Result<(), String> {
    let Some(item) = item.filter(|_| critique.status != Status::Blocked) else { return Ok(()) };
    for number in 1..=item.acceptance.len() {
        let mut found = critique.judged.iter().filter(|judgement| judgement.criterion.trim() == number.to_string());
        let Some(judgement) = found.next() else {
            return Err(format!("criterion {number} of {} is not judged: judge every one by its number", item.id));
        };
        if found.next().is_some() {
            return Err(format!("criterion {number} is judged twice"));
        }
        if judgement.met && judgement.artifact.as_ref().is_none_or(|path| path.trim().is_empty()) {
            return Err(format!("criterion {number} is judged met: name the artifact (a file) that shows it"));
        }
    }
    Ok(())
}
