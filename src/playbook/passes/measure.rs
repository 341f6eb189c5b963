//! How far the goal of these playbooks is: items that pass, concerns that are open, checks behind both.

use crate::machine::document;
use crate::machine::event::{Phase, Probe, ProbeResult};
use crate::machine::iteration::Iteration;
use crate::machine::playbook::WayOut;
use crate::machine::run::RunState;
use crate::model::certificate::Residual;
use crate::model::criterion::Proof;
use crate::model::decimal::Exact;
use crate::model::fraction::Fraction;
use crate::model::ids::Role;
use crate::model::learnings::Link;
use crate::model::loop_file::LoopFile;

use super::event::{ItemSeen, PassVerdict};
use super::state::{has_items, score};

/// The Northstar metric that the prd playbook measures by itself.
pub const ITEMS_PASSING: &str = "items_passing";
/// Digits kept of a ratio that does not terminate; it is rounded up.
const RATIO_PLACES: u32 = 12;

/// The distance to the goal, or why there is none.
pub fn residual(run: &RunState) -> Result<Residual, String> {
    match &run.current {
        _ if has_items(run) => items_left(run),
        Some(iteration) => concerns_left(run, iteration),
        None => Err("nothing was judged yet".to_owned()),
    }
}

/// Items that do not pass / all items.
fn items_left(run: &RunState) -> Result<Residual, String> {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (all, passing) = score(run);
    let (all, left) = (count(all), count(all - passing));
    let ratio = Fraction::new(i128::from(left), i128::from(all)).and_then(|f| f.to_exact_rounded_up(RATIO_PLACES));
    let value = ratio.ok_or("there are no items to count")?;
    Ok(Residual { value, unmet_of: Some((left, all)) })
}

/// Checks that fail and concerns that are open. A verified result has none, whatever small remarks it got.
fn concerns_left(run: &RunState, iteration: &Iteration) -> Result<Residual, String> {
    let Some(judged) = run.passes().judged_in(iteration.number()) else {
        return Err("the critic did not judge it".to_owned());
    };
    let open = match judged.verdict {
        PassVerdict::Verified => 0,
        PassVerdict::Unverified | PassVerdict::Refused => (judged.concerns.len() + judged.failed.len()).max(1),
        PassVerdict::Blocked | PassVerdict::Discarded => return Err(judged.detail.clone()),
    };
    let value = Exact::parse(&open.to_string()).map_err(|e| e.to_string())?;
    Ok(Residual { value, unmet_of: None })
}

/// Is everything of the PRD, or the result of the microloop, as it should be, and what shows it?
pub fn way_out(run: &RunState, iteration: &Iteration, phase: Phase) -> WayOut {
    let number = iteration.number();
    let link = iteration.critique().map(|(_, accepted)| Link {
        path: document::report_path(number, &iteration.call_key(Role::Critic, None)),
        sha256: accepted.sha256,
    });
    if has_items(run) {
        let (all, passing) = score(run);
        let holds = |probe: &Probe| iteration.probe(phase, probe).is_some_and(|result| result.end.passed());
        let broken: Vec<String> =
            item_probes(run, Some(iteration)).iter().filter(|probe| !holds(probe)).map(Probe::name).collect();
        if passing == all && !broken.is_empty() {
            return (false, link, format!("not passed any more: {}", broken.join(", ")));
        }
        return (passing == all && all > 0 && link.is_some(), link, format!("{passing} of {all} items pass"));
    }
    match run.passes().judged_in(number) {
        Some(judged) => (judged.verdict == PassVerdict::Verified && link.is_some(), link, judged.detail.clone()),
        None => (false, None, "the critic did not judge it".to_owned()),
    }
}

/// How many items passed at the end of an iteration; `None` for the start: as the file was found.
pub fn metric(run: &RunState, id: &str, iteration: Option<u32>) -> Option<String> {
    if id != ITEMS_PASSING || !has_items(run) || run.passes().prd.items.is_empty() {
        return None;
    }
    let passing = &run.passes().prd.passing;
    let known = iteration.and_then(|number| passing.range(..=number).next_back()).map(|(_, count)| *count);
    known.or(run.passes().prd.at_start).map(|count| count.to_string())
}

/// The checks of an iteration that a pass stands on, with their names: all criteria with a check, and the item's own.
pub fn checks(run: &RunState, iteration: &Iteration) -> Vec<(String, Probe)> {
    let criteria = run.criteria.iter().filter(|criterion| matches!(criterion.proof, Proof::Check { .. }));
    let mut checks: Vec<(String, Probe)> =
        criteria.map(|criterion| (criterion.id.clone(), Probe::Criterion(criterion.id.clone()))).collect();
    checks.extend(item_probes(run, Some(iteration)).into_iter().map(|probe| (probe.name(), probe)));
    checks
}

/// The declared checks of the chosen item and of everything that passes already: an item that breaks another one has
/// not passed.
pub fn item_probes(run: &RunState, iteration: Option<&Iteration>) -> Vec<Probe> {
    let chosen = iteration.and_then(|iteration| run.passes().chosen_in(iteration.number()));
    let wanted = |item: &&ItemSeen| item.passes || chosen.is_some_and(|chosen| chosen.item == item.id);
    let has_check = |item: &&ItemSeen| own_check_of(run.loop_file(), item).is_some();
    let items = run.passes().prd.items.iter().filter(wanted).filter(has_check);
    items.map(|item| Probe::Item(item.id.clone())).collect()
}

/// The check of an item, and how long it may take where that is declared: what loop.yaml says wins over the command
/// that the file of items names.
pub fn own_check(run: &RunState, id: &str) -> Option<(Vec<String>, Option<u64>)> {
    own_check_of(run.loop_file(), run.passes().prd.item(id)?)
}

/// The checks of all items.
pub fn own_checks(run: &RunState) -> Vec<Vec<String>> {
    let declared = run.loop_file().prd().items.values().filter_map(|item| item.check.clone());
    let is_new = |item: &&ItemSeen| run.loop_file().prd().items.get(&item.id).is_none_or(|item| item.check.is_none());
    declared.chain(run.passes().prd.items.iter().filter(is_new).filter_map(|item| item.command.clone())).collect()
}

fn own_check_of(declared: &LoopFile, item: &ItemSeen) -> Option<(Vec<String>, Option<u64>)> {
    let known = declared.prd().items.get(&item.id);
    let argv = known.and_then(|known| known.check.as_ref()).or(item.command.as_ref())?;
    Some((argv.clone(), known.and_then(|known| known.timeout_seconds)))
}

/// Checks of the iteration that did not pass.
pub fn failed_checks<'a>(run: &'a RunState, iteration: &'a Iteration) -> Vec<(String, Option<&'a ProbeResult>)> {
    let results = checks(run, iteration).into_iter();
    let results = results.map(|(name, probe)| (name, iteration.probe(Phase::Iteration, &probe)));
    results.filter(|(_, result)| !result.is_some_and(|result| result.end.passed())).collect()
}
