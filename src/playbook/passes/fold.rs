//! The fold of events into the part of the playbooks with an author and a critic.

use crate::machine::event::{Event, GitEvent, GitOperation, OperatorEvent};
use crate::machine::iteration::Iteration;
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::model::prd::ReadWhen;

use super::event::{PassEvent, PrdRead};
use super::state::{Passes, PrdState, flipped};

/// Folds any event of a run of these playbooks.
pub fn fold(run: &mut RunState, event: &Event) -> Result<(), &'static str> {
    if let Some(event) = event.work() {
        return apply(run, event);
    }
    match event {
        // A person spoke: the file may be another one by now.
        Event::Operator(OperatorEvent::DecisionAnswered(_)) if run.current.is_none() => {
            passes_mut(run)?.prd.read_before = None;
        }
        // What passes is committed once, whatever came of it.
        Event::Git(GitEvent::GitFinished(finished))
            if run.state == State::CheckHalting
                && matches!(finished.operation, GitOperation::Commit { .. } | GitOperation::CommitItem { .. }) =>
        {
            let number = run.current.as_ref().map(Iteration::number);
            passes_mut(run)?.prd.committed = number;
        }
        _ => {}
    }
    Ok(())
}

fn passes_mut(run: &mut RunState) -> Result<&mut Passes, &'static str> {
    run.work_mut().ok_or("the run has no author and no critic")
}

/// Folds an event of these playbooks.
fn apply(run: &mut RunState, event: &PassEvent) -> Result<(), &'static str> {
    let place = (run.iteration_number(), run.current.is_some(), run.state == State::CheckHalting);
    let passes = passes_mut(run)?;
    match event {
        PassEvent::PrdRead(read) => read_prd(&mut passes.prd, read, place),
        PassEvent::ItemChosen(chosen) => {
            passes.prd.chosen_from = passes.prd.text;
            passes.chosen.push(chosen.clone());
        }
        PassEvent::PassJudged(judged) => passes.judged.push(judged.clone()),
        PassEvent::RouteDecided(decided) => passes.routes.push(decided.clone()),
        PassEvent::ItemSettled(settled) => {
            match &settled.items {
                Some(items) => passes.prd.items.clone_from(items),
                None if settled.passes => passes.prd.items = flipped(&passes.prd.items, &settled.item),
                None => {}
            }
            if settled.sha256.is_some() {
                passes.prd.text = settled.sha256;
            }
            passes.prd.passing.insert(settled.iteration, passes.prd.passing());
            passes.settled.push(settled.clone());
        }
    }
    Ok(())
}

/// `place`: the iteration, whether it is running, and whether its checks have run.
fn read_prd(prd: &mut PrdState, read: &PrdRead, (number, running, checked): (u32, bool, bool)) {
    if let Some(items) = &read.items {
        prd.items.clone_from(items);
        prd.name.clone_from(&read.name);
        prd.branch.clone_from(&read.branch);
    }
    prd.problem.clone_from(&read.problem);
    if read.sha256.is_some() {
        prd.text = read.sha256;
    }
    match read.when {
        ReadWhen::Start => {
            prd.at_start = Some(prd.passing());
            prd.archived.clone_from(&read.archived);
        }
        ReadWhen::Between => {
            prd.read_before = Some(number);
            prd.place.clone_from(&read.place);
        }
        ReadWhen::AfterWork => {
            // A limit that cut the iteration cut this, too; then it is made up for before the next one.
            let of = if running { number } else { number.saturating_sub(1) };
            prd.guarded = Some(of);
            if checked {
                prd.guarded_again = Some(of);
            }
            prd.restore = read.theirs.is_some();
            prd.theirs = read.theirs;
            if !read.touched.is_empty() {
                prd.touched.entry(of).or_default().extend(read.touched.iter().cloned());
            }
        }
        ReadWhen::Restored => prd.restore = false,
    }
}
