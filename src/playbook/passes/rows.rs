//! The items of a PRD and the concerns of a critic, as the plan shows them.

use crate::machine::event::Probe;
use crate::machine::run::RunState;
use crate::model::plan_row::{Row, RowKind, RowStatus};
use crate::model::safe::Safe;
use crate::playbook::passes::event::{By, PassJudged, PassVerdict};
use crate::playbook::passes::state::{self as passes, Standing, has_items, standing};

/// Items first, in the order of the work; then what the latest critique left open.
pub fn rows(run: &RunState) -> Vec<Row> {
    let mut seen: Vec<_> = run.passes().prd.items.iter().collect();
    seen.sort_by_key(|item| item.order);
    let items = seen.into_iter().map(|item| {
        let passes: Vec<&PassJudged> = run.passes().of(Some(&item.id)).collect();
        let chosen = run.passes().chosen_in(run.iteration_number()).is_some_and(|chosen| chosen.item == item.id);
        let status = match (item.passes, standing(run, Some(&item.id))) {
            (true, _) => RowStatus::Met,
            _ if !run.loop_file().prd().counts(&item.id) => RowStatus::Dropped,
            (false, Standing::Asked) => RowStatus::Blocked,
            (false, Standing::Skipped) => RowStatus::Dropped,
            (false, Standing::Open { .. }) if chosen && run.current.is_some() => RowStatus::Working,
            (false, Standing::Open { .. }) if passes.is_empty() => RowStatus::Waiting,
            (false, Standing::Open { .. }) => RowStatus::NotMet,
        };
        let why = match standing(run, Some(&item.id)) {
            _ if !item.passes && !run.loop_file().prd().counts(&item.id) => "not part of this run".to_owned(),
            Standing::Asked if !item.passes => "waits for a person".to_owned(),
            Standing::Skipped if !item.passes => "skipped by a person".to_owned(),
            _ => passes.last().map(|pass| pass.detail.clone()).unwrap_or_default(),
        };
        let used = passes.iter().filter(|pass| pass.by == By::Author).count();
        let aside = if used == 0 { String::new() } else { format!("{used} of {}", run.loop_file().pass_limit()) };
        let mut more: Vec<(&'static str, Safe)> = item
            .acceptance
            .iter()
            .enumerate()
            .map(|(index, one)| ("needs", Safe::line(&format!("{}. {one}", index + 1))))
            .collect();
        more.extend(passes.iter().map(|pass| ("attempt", Safe::line(&told(pass)))));
        Row {
            why: Safe::line(&why),
            how: Safe::line("checks, then a critic; only the engine says that it passes"),
            running: run.open_probes.iter().any(|(_, probe)| *probe == Probe::Item(item.id.clone())),
            aside: Safe::line(&aside),
            more,
            ..Row::new(RowKind::Item, &item.id, &item.title, status)
        }
    });
    items.chain(concerns(run)).collect()
}

/// Concerns of the latest critique; those that were there a pass before say so.
fn concerns(run: &RunState) -> Vec<Row> {
    let Some(latest) = run.passes().judged.last() else { return Vec::new() };
    let verified = latest.verdict == PassVerdict::Verified;
    let subject = latest.subject.as_deref();
    let earlier: Vec<&PassJudged> = run.passes().of(subject).filter(|pass| pass.iteration < latest.iteration).collect();
    latest
        .concerns
        .iter()
        .map(|concern| {
            let rounds = earlier.iter().filter(|pass| pass.concerns.iter().any(|other| other.is_like(concern))).count();
            let aside = if rounds == 0 { "new".to_owned() } else { format!("for {} passes", rounds + 1) };
            Row {
                why: Safe::line(&concern.recommendation),
                how: Safe::line("found by the critic"),
                aside: Safe::line(&aside),
                ..Row::new(
                    RowKind::Concern,
                    concern.severity.name(),
                    &format!("{}: {}", concern.location, concern.description),
                    if verified { RowStatus::Met } else { RowStatus::NotMet },
                )
            }
        })
        .collect()
}

fn told(pass: &PassJudged) -> String {
    let who = match &pass.by {
        By::Author => "author".to_owned(),
        By::Detour(name) => name.clone(),
    };
    format!("it{} {who}: {} {}", pass.iteration, pass.verdict.name(), pass.detail)
}

/// How far it is, in one line.
pub fn title(run: &RunState) -> String {
    if has_items(run) {
        let (all, passing) = passes::score(run);
        return format!("Plan  {passing} of {all} items pass");
    }
    let limit = run.loop_file().pass_limit();
    match run.passes().judged.last() {
        None => format!("Plan  no pass judged yet, at most {limit}"),
        Some(pass) => {
            let left = passes::by_severity(pass).into_iter().filter(|(_, count)| *count > 0);
            let left: Vec<String> = left.map(|(severity, count)| format!("{count} {}", severity.name())).collect();
            let left = if left.is_empty() { String::new() } else { format!(", {}", left.join(", ")) };
            let made = run.passes().of(None).filter(|pass| pass.by == By::Author).count();
            format!("Plan  pass {made} of {limit}: {}{left}", pass.verdict.name())
        }
    }
}
