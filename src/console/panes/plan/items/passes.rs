//! The items of a PRD and the concerns of a critic, as the plan shows them.

use super::{Item, Kind, Status};
use crate::machine::event::{By, PassJudged, PassVerdict, Probe};
use crate::machine::passes::{self, Standing, standing};
use crate::machine::run::RunState;
use crate::model::loop_file::Playbook;
use crate::model::safe::Safe;

/// Items first, in the order of the work; then what the latest critique left open.
pub fn items(run: &RunState) -> Vec<Item> {
    let mut seen: Vec<_> = run.passes.prd.items.iter().collect();
    seen.sort_by_key(|item| item.order);
    let items = seen.into_iter().map(|item| {
        let passes: Vec<&PassJudged> = run.passes.of(Some(&item.id)).collect();
        let chosen = run.passes.chosen_in(run.iteration_number()).is_some_and(|chosen| chosen.item == item.id);
        let status = match (item.passes, standing(run, Some(&item.id))) {
            (true, _) => Status::Met,
            (false, Standing::Asked) => Status::Blocked,
            (false, Standing::Skipped) => Status::Dropped,
            (false, Standing::Open { .. }) if chosen && run.current.is_some() => Status::Working,
            (false, Standing::Open { .. }) if passes.is_empty() => Status::Waiting,
            (false, Standing::Open { .. }) => Status::NotMet,
        };
        let why = match standing(run, Some(&item.id)) {
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
        Item {
            kind: Kind::Item,
            id: Safe::line(&item.id),
            text: Safe::line(&item.title),
            status,
            since: None,
            proof: None,
            why: Safe::line(&why),
            how: Safe::line("checks, then a critic; only the engine says that it passes"),
            guards: Safe::line(""),
            running: run.open_probes.iter().any(|(_, probe)| *probe == Probe::Item(item.id.clone())),
            story: Vec::new(),
            trend: Vec::new(),
            aside: Safe::line(&aside),
            more,
        }
    });
    items.chain(concerns(run)).collect()
}

/// Concerns of the latest critique; those that were there a pass before say so.
fn concerns(run: &RunState) -> Vec<Item> {
    let Some(latest) = run.passes.judged.last() else { return Vec::new() };
    let verified = latest.verdict == PassVerdict::Verified;
    let subject = latest.subject.as_deref();
    let earlier: Vec<&PassJudged> = run.passes.of(subject).filter(|pass| pass.iteration < latest.iteration).collect();
    latest
        .concerns
        .iter()
        .map(|concern| {
            let rounds = earlier.iter().filter(|pass| pass.concerns.iter().any(|other| other.is_like(concern))).count();
            let aside = if rounds == 0 { "new".to_owned() } else { format!("for {} passes", rounds + 1) };
            Item {
                kind: Kind::Concern,
                id: Safe::line(concern.severity.name()),
                text: Safe::line(&format!("{}: {}", concern.location, concern.description)),
                status: if verified { Status::Met } else { Status::NotMet },
                since: None,
                proof: None,
                why: Safe::line(&concern.recommendation),
                how: Safe::line("found by the critic"),
                guards: Safe::line(""),
                running: false,
                story: Vec::new(),
                trend: Vec::new(),
                aside: Safe::line(&aside),
                more: Vec::new(),
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
    if run.loop_file().playbook == Playbook::Prd {
        let prd = &run.passes.prd;
        return format!("Plan  {} of {} items pass", prd.passing(), prd.items.len());
    }
    let limit = run.loop_file().pass_limit();
    match run.passes.judged.last() {
        None => format!("Plan  no pass judged yet, at most {limit}"),
        Some(pass) => {
            let left = passes::by_severity(pass).into_iter().filter(|(_, count)| *count > 0);
            let left: Vec<String> = left.map(|(severity, count)| format!("{count} {}", severity.name())).collect();
            let left = if left.is_empty() { String::new() } else { format!(", {}", left.join(", ")) };
            let made = run.passes.of(None).filter(|pass| pass.by == By::Author).count();
            format!("Plan  pass {made} of {limit}: {}{left}", pass.verdict.name())
        }
    }
}
