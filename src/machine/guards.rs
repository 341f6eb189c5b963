//! Are the checks still the judges that the run found, and can they fail? From recorded facts alone.
//!
//! Before a success counts (a certificate, an item), its checks are run against other trees: the work with the guards
//! as they were (*pristine*), the guards with the work as it was (*reverted*), and with a test that must fail (*canary*).
//! This file says which of these are missing, and what speaks against the success once none is. Not its role: making
//! those trees (`engine::guards`), which files guard a check (`model::guard`).
//!
//! Invariants: honest work that leaves the judges alone costs no question; a doubt is never decided by us, but by a
//! person; the same facts always give the same doubts.

use crate::model::decision::{Answer, GuardFile, MAX_DECISIONS, Request, Trial, Unaccepted};
use crate::model::gate_report::{GateCheck, check};
use crate::model::guard::{self, Class};
use crate::model::rung::Rung;
use crate::model::stop::StopReason;

use super::event::{
    CanaryMade, ChangeKind, DecisionAsked, Event, GuardChange, GuardsCompared, Phase, Probe, ProbeResult,
};
use super::iteration::Iteration;
use super::measure;
use super::operator::Decision;
use super::replay;
use super::run::RunState;
use super::state::State;
use super::todo::Todo;

/// Files that are named in one doubt.
const NAMED: usize = 8;

/// What no check can tell: every certificate says so of itself.
pub const DOES_NOT_PROVE: &str = "that the code does more than these tests ask";
const GATE_CHECK: &str = "the judges are those that the run found";

/// What was shown about the judges of a success, in words.
pub fn shown(state: &RunState) -> Option<&str> {
    let gate = state.current.as_ref()?.gate.as_ref().filter(|gate| gate.passed)?;
    gate.checks.iter().find(|check| check.name == GATE_CHECK).map(|check| check.detail.as_str())
}

/// What can be tried: scripts of the value playbook see folders of their own, and no other tree.
fn can_be_tried(probes: &[Probe]) -> Vec<Probe> {
    let own = |probe: &&Probe| !matches!(probe, Probe::Verification(_) | Probe::Task(_) | Probe::Detour(_));
    probes.iter().filter(own).cloned().collect()
}

/// What is missing before this success can be judged; `None`: nothing, or no such trial is due.
pub fn next(state: &RunState, iteration: &Iteration, probes: &[Probe]) -> Option<Todo> {
    if state.began_before_replays() {
        return None;
    }
    let probes = &can_be_tried(probes);
    let Some(guards) = &iteration.guards else { return Some(Todo::CompareGuards) };
    let mut wanted = wanted(state, iteration, guards, probes).into_iter();
    let missing = wanted.find(|(phase, probe)| iteration.probe(*phase, probe).is_none());
    missing.map(|(phase, probe)| Todo::RunProbe(phase, probe))
}

/// The runs that these facts ask for, in order. What follows from a result is asked for once the result is there.
fn wanted(state: &RunState, iteration: &Iteration, guards: &GuardsCompared, probes: &[Probe]) -> Vec<(Phase, Probe)> {
    if guards.without_replays.is_some() {
        return Vec::new();
    }
    let mut wanted = Vec::new();
    if guards.needs_pristine() {
        wanted.extend(pristine(state, probes).into_iter().map(|probe| (Phase::Pristine, probe)));
        if guards.tools.added_in_all > 0 {
            let red = probes.iter().filter(|probe| ran(iteration, Phase::Pristine, probe) == Some(false));
            wanted.extend(red.map(|probe| (Phase::PristineWithTools, probe.clone())));
        }
    }
    if guards.since.is_some() && guards.changed_since > 0 {
        wanted.extend(probes.iter().map(|probe| (Phase::PristineSince, probe.clone())));
    }
    // No list of names is complete: what was red must be red without the work, whatever else was changed.
    let red = probes.iter().filter(|probe| red_at_start(state, probe));
    wanted.extend(red.map(|probe| (Phase::Reverted, probe.clone())));
    if state.rung_target() == Rung::Promoted {
        let drifted = probes.iter().filter(|probe| drifts(state, iteration, probe));
        wanted.extend(drifted.map(|probe| (Phase::AtStart, probe.clone())));
    }
    for probe in probes.iter().filter(|probe| canary_of(guards, probe).is_some()) {
        wanted.push((Phase::Canary, probe.clone()));
        if ran(iteration, Phase::Canary, probe) == Some(true) {
            wanted.push((Phase::CanaryAtStart, probe.clone()));
        }
    }
    wanted
}

/// What is tried with the judges of the start: before a certificate also what else it rests on.
fn pristine(state: &RunState, probes: &[Probe]) -> Vec<Probe> {
    let mut all = probes.to_vec();
    if state.state == State::BudgetCheck {
        all.extend(replay::instruments(state));
    }
    all
}

/// Does a check show something else than it did at the start?
fn drifts(state: &RunState, iteration: &Iteration, probe: &Probe) -> bool {
    let steady = |result: Option<&ProbeResult>| result.and_then(|result| result.steady_sha256);
    steady(state.baseline.probes.get(probe)) != steady(iteration.probe(Phase::Iteration, probe))
}

/// Why what a check shows differs from what it showed at the start, where no change of the work explains it.
pub fn unexplained(state: &RunState, iteration: &Iteration, probe: &Probe) -> Option<String> {
    let steady = |phase| iteration.probe(phase, probe).and_then(|result| result.steady_sha256);
    if steady(Phase::Iteration) != steady(Phase::Replay(1)) {
        return Some(format!("{}: shows something else each time, with the same files", probe.name()));
    }
    let guards = iteration.guards.as_ref().filter(|_| drifts(state, iteration, probe))?;
    let explained = match &guards.without_replays {
        None => steady(Phase::AtStart) == state.baseline.probes.get(probe).and_then(|result| result.steady_sha256),
        // What cannot be tried is explained by work, not by notes about it.
        Some(_) => guards.code_changed > 0 || !guards.changed.is_empty(),
    };
    let why = "shows something else than at the start, also with everything as at the start";
    (!explained).then(|| format!("{}: {why}", probe.name()))
}

fn canary_of<'a>(guards: &'a GuardsCompared, probe: &Probe) -> Option<&'a CanaryMade> {
    let Probe::Criterion(id) = probe else { return None };
    guards.canaries.get(id)
}

/// Was it as good as in the iteration? `None`: it did not run.
fn ran(iteration: &Iteration, phase: Phase, probe: &Probe) -> Option<bool> {
    let result = iteration.probe(phase, probe)?;
    match probe {
        Probe::Residual => {
            let now = measure::residual_of(iteration.probe(Phase::Iteration, probe)).ok()?;
            Some(measure::residual_of(Some(result)).is_ok_and(|then| then <= now))
        }
        // A number that depends on who measures it.
        Probe::Metric(_) => Some(result.last_line == iteration.probe(Phase::Iteration, probe)?.last_line),
        Probe::ApiSurface => Some(result.end.passed() && result.removed_lines.as_ref().is_some_and(Vec::is_empty)),
        _ => Some(result.end.passed()),
    }
}

/// What the probe showed with the judges that are trusted: at the start, or when the latest success counted.
fn found<'a>(state: &'a RunState, probe: &Probe) -> Option<&'a ProbeResult> {
    let trusted = state.playbook().trusted_iteration(state);
    if matches!(probe, Probe::Item(_)) {
        return before_work(state, probe);
    }
    match trusted {
        Some(number) => {
            let trusted = state.done.iter().find(|done| done.number() == number)?;
            trusted.probe(Phase::Iteration, probe)
        }
        None => state.baseline.probes.get(probe),
    }
}

/// What an item's own check showed before anybody worked on the item, since the last one passed.
pub fn before_work<'a>(state: &'a RunState, probe: &Probe) -> Option<&'a ProbeResult> {
    let trusted = state.playbook().trusted_iteration(state);
    let since = state.iterations().filter(|iteration| trusted.is_none_or(|number| iteration.number() > number));
    since.into_iter().find_map(|iteration| iteration.probe(Phase::Scouted, probe))
}

/// Was it to be turned green by this run?
fn red_at_start(state: &RunState, probe: &Probe) -> bool {
    let Some(result) = found(state, probe) else { return false };
    match probe {
        // A number that nobody could measure was not below R_p.
        Probe::Residual => match measure::residual_of(Some(result)) {
            Ok(value) => value >= state.r_p(),
            Err(_) => !state.began_before_unmeasured_was_red(),
        },
        _ => !result.end.passed(),
    }
}

impl GuardsCompared {
    /// Is anything else than before among what judges?
    pub fn needs_pristine(&self) -> bool {
        let counts = |change: &GuardChange| change.class.judges();
        self.changed.iter().any(counts)
            || self.unlisted > 0
            || self.tests_in_code
            || self.tools.changed_in_all + self.tools.added_in_all > 0
    }
}

/// What speaks against this success, in words. Empty: nothing does.
pub fn doubts(state: &RunState, iteration: &Iteration, probes: &[Probe]) -> Vec<String> {
    let Some(guards) = &iteration.guards else { return Vec::new() };
    let probes = &can_be_tried(probes);
    let mut doubts = Vec::new();
    match &guards.without_replays {
        Some(why) => doubts.extend(static_doubt(guards, why)),
        None => {
            let tried = pristine(state, probes);
            doubts.extend(tried.iter().filter_map(|probe| pristine_doubt(guards, iteration, probe)));
            for probe in probes {
                doubts.extend(since_doubt(guards, iteration, probe));
                doubts.extend(reverted_doubt(guards, iteration, probe));
                doubts.extend(canary_doubt(state, guards, iteration, probe));
                doubts.extend(tools_doubt(state, guards, probe));
            }
        }
    }
    doubts.extend(probes.iter().filter_map(|probe| count_doubt(state, iteration, probe)));
    if state.started.unaccepted.iter().any(|file| file.path == Unaccepted::PROGRAMS) {
        doubts.push("an earlier run changed installed programs, and nobody accepted that".to_owned());
    }
    doubts.extend(probes.iter().filter_map(|probe| written_doubt(state, iteration, probe)));
    doubts
}

/// Where nothing can be tried, what judges must be as it was.
fn static_doubt(guards: &GuardsCompared, why: &str) -> Option<String> {
    let judges = |change: &&GuardChange| match change.class {
        Class::Guard | Class::Manifest => true,
        Class::Test => change.kind != ChangeKind::Added,
        Class::Tool | Class::Cache | Class::Output | Class::Code | Class::Unknown => false,
    };
    let changed: Vec<&str> = guards.changed.iter().filter(judges).map(|change| change.path.as_str()).collect();
    let tools = guards.tools.changed_in_all > 0;
    if (changed.is_empty() && !tools) || !guards.judge_at_start {
        return None;
    }
    let files = named(changed.into_iter().chain(guards.tools.changed.iter().map(String::as_str)));
    Some(format!("{files} changed, and the checks cannot be run with the earlier ones ({why})"))
}

fn pristine_doubt(guards: &GuardsCompared, iteration: &Iteration, probe: &Probe) -> Option<String> {
    let with = |phase| ran(iteration, phase, probe);
    let holds = with(Phase::Pristine)? || with(Phase::PristineWithTools) == Some(true);
    // Where there was no judge, the run had to bring one; what was red before must still be red without the work.
    if holds || !guards.judge_at_start {
        return None;
    }
    let files = named(guards.judges().map(|change| change.path.as_str()));
    let how = describe(iteration.probe(Phase::Pristine, probe));
    let lost = match guards.not_kept.as_slice() {
        [] => String::new(),
        lost => format!("; not kept from the start: {}", named(lost.iter().map(String::as_str))),
    };
    Some(format!("{}: does not hold with what judged it at the start ({how}); changed: {files}{lost}", probe.name()))
}

fn since_doubt(guards: &GuardsCompared, iteration: &Iteration, probe: &Probe) -> Option<String> {
    if ran(iteration, Phase::PristineSince, probe)? {
        return None;
    }
    let how = describe(iteration.probe(Phase::PristineSince, probe));
    let count = guards.changed_since;
    Some(format!(
        "{}: does not hold with what judged the last item that passed ({how}); {count} judges changed since",
        probe.name()
    ))
}

fn reverted_doubt(guards: &GuardsCompared, iteration: &Iteration, probe: &Probe) -> Option<String> {
    if !ran(iteration, Phase::Reverted, probe)? {
        return None;
    }
    let files = named(guards.changed.iter().map(|change| change.path.as_str()));
    let tools = if guards.tools.changed_in_all + guards.tools.added_in_all > 0 { " and program folders" } else { "" };
    Some(format!("{}: was red, and is green without any change to the work; changed: {files}{tools}", probe.name()))
}

fn canary_doubt(state: &RunState, guards: &GuardsCompared, iteration: &Iteration, probe: &Probe) -> Option<String> {
    let at_start = || iteration.probe(Phase::CanaryAtStart, probe);
    // Red at the start is what a check is that was red anyway: then the canary itself must have been shown.
    let was_seen = || {
        let shown = at_start().is_some_and(|result| result.canary_shown == Some(true));
        ran(iteration, Phase::CanaryAtStart, probe) == Some(false) && (shown || !red_at_start(state, probe))
    };
    let unseen = ran(iteration, Phase::Canary, probe)? && was_seen();
    let canary = canary_of(guards, probe).filter(|_| unseen)?;
    Some(format!("{}: does not see a failing test in {}, and saw one at the start", probe.name(), canary.path))
}

/// Programs cannot be put back. What was red is tried without the work; what was green all along has only them.
fn tools_doubt(state: &RunState, guards: &GuardsCompared, probe: &Probe) -> Option<String> {
    if guards.tools.changed_in_all == 0 || red_at_start(state, probe) {
        return None;
    }
    let files = named(guards.tools.changed.iter().map(String::as_str));
    Some(format!("{}: was green at the start, and installed programs were changed since: {files}", probe.name()))
}

/// Whoever is judged must not write the judge while it works. What a check did at the start, too, is its own habit.
fn written_doubt(state: &RunState, iteration: &Iteration, probe: &Probe) -> Option<String> {
    let at_start = state.baseline.probes.get(probe).map(|result| result.wrote.as_slice()).unwrap_or_default();
    let phases = [Phase::Replay(2), Phase::Pristine];
    let wrote = phases.into_iter().filter_map(|phase| iteration.probe(phase, probe)).flat_map(|result| &result.wrote);
    let mut new = wrote.filter(|path| !at_start.contains(path)).map(String::as_str).peekable();
    new.peek()?;
    Some(format!("{}: while it ran, what judges it was changed: {}", probe.name(), named(new)))
}

fn count_doubt(state: &RunState, iteration: &Iteration, probe: &Probe) -> Option<String> {
    let start = found(state, probe)?.count?;
    // New tests do not make up for old ones that are lost: with the tests of the start they are all there.
    let pristine = iteration.probe(Phase::Pristine, probe).filter(|result| result.end.passed());
    let results = iteration.probe(Phase::Iteration, probe).into_iter().chain(pristine);
    let why = results.into_iter().find_map(|result| guard::judge_count(start, result.count))?;
    Some(format!("{}: {why}", probe.name()))
}

impl GuardsCompared {
    /// What judges, and was changed.
    pub fn judges(&self) -> impl Iterator<Item = &GuardChange> {
        self.changed.iter().filter(|change| change.class.judges())
    }
}

fn describe(result: Option<&ProbeResult>) -> String {
    result.map_or_else(|| "not run".to_owned(), |result| result.end.describe())
}

fn named<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    let mut paths: Vec<&str> = paths.collect();
    let more = paths.len().saturating_sub(NAMED);
    paths.truncate(NAMED);
    match (paths.is_empty(), more) {
        (true, _) => "nothing that is listed".to_owned(),
        (false, 0) => paths.join(", "),
        (false, more) => format!("{} and {more} more", paths.join(", ")),
    }
}

/// The doubts about this iteration that people were asked about.
fn asked<'a>(state: &'a RunState, iteration: &Iteration) -> impl Iterator<Item = (&'a Decision, &'a [String])> {
    let number = iteration.number();
    state.operator.decisions.iter().filter_map(move |decision| match &decision.request {
        Request::Tampering { iteration, findings, .. } if *iteration == number => Some((decision, findings.as_slice())),
        _ => None,
    })
}

/// Did a person look at a doubt about this iteration, and say that all is as it should be?
pub fn accepted(state: &RunState, iteration: &Iteration) -> bool {
    asked(state, iteration).any(|(decision, _)| decision.closed_with() == Some(&Answer::Accept))
}

/// Doubts that nobody has dispelled: a person who accepted one thing did not see another.
pub fn open_doubts(state: &RunState, iteration: &Iteration, probes: &[Probe]) -> Vec<String> {
    let mut open = doubts(state, iteration, probes);
    let accepted = asked(state, iteration).filter(|(decision, _)| decision.closed_with() == Some(&Answer::Accept));
    let accepted: Vec<&String> = accepted.flat_map(|(_, findings)| findings).collect();
    open.retain(|doubt| !accepted.contains(&doubt));
    open
}

/// The question to a person, if there is a doubt about which nobody was asked yet.
pub fn ask(state: &RunState, iteration: &Iteration, probes: &[Probe]) -> Option<Event> {
    let operator = &state.operator;
    let number = iteration.number();
    if operator.decisions.len() >= MAX_DECISIONS || next(state, iteration, probes).is_some() {
        return None;
    }
    let known: Vec<&String> = asked(state, iteration).flat_map(|(_, findings)| findings).collect();
    let mut findings = doubts(state, iteration, probes);
    findings.retain(|doubt| !known.contains(&doubt));
    let guards = iteration.guards.as_ref().filter(|_| !findings.is_empty())?;
    let files = guards.changed.iter().map(|change| GuardFile { path: change.path.clone(), sha256: change.sha256 });
    let request = Request::Tampering {
        iteration: number,
        findings,
        files: files.collect(),
        diff: Some(guards.diff),
        trials: trials(iteration, probes),
    };
    let why = "the checks are green, but not by the judges that the run found".to_owned();
    Some(DecisionAsked { id: operator.next_id(), request, why, asked_by: None }.into())
}

/// What the checks showed, as they are and against the other trees.
fn trials(iteration: &Iteration, probes: &[Probe]) -> Vec<Trial> {
    let shown = |phase: Phase| {
        probes.iter().filter_map(move |probe| {
            let result = iteration.probe(phase, probe)?;
            let what = format!("{} {}: {}", probe.name(), phase.describe(), result.end.describe());
            Some(Trial { what, output: result.output })
        })
    };
    [Phase::Iteration, Phase::Pristine, Phase::PristineSince, Phase::Reverted, Phase::Canary]
        .into_iter()
        .flat_map(shown)
        .collect()
}

/// What the pass-gate says of it.
pub fn checks(state: &RunState, iteration: &Iteration, probes: &[Probe]) -> Vec<GateCheck> {
    let open = open_doubts(state, iteration, probes);
    let detail = match (&iteration.guards, accepted(state, iteration)) {
        (None, _) => "not compared".to_owned(),
        (Some(_), _) if next(state, iteration, probes).is_some() => "not tried to the end".to_owned(),
        (Some(_), _) if !open.is_empty() => format!("GATE_TAMPERING: {}", open.join("; ")),
        (Some(_), true) => "a person accepted the changes".to_owned(),
        (Some(guards), false) => statement(state, guards, iteration, probes),
    };
    // What was not tried did not hold.
    let tried = iteration.guards.is_some() && next(state, iteration, probes).is_none();
    let ok = tried && open.is_empty();
    vec![check(GATE_CHECK, None, ok, detail, StopReason::InvariantViolation)]
}

/// What was shown about the judges, in words.
fn statement(state: &RunState, guards: &GuardsCompared, iteration: &Iteration, probes: &[Probe]) -> String {
    let any = |phase| probes.iter().any(|probe| iteration.probe(phase, probe).is_some());
    let mut said = Vec::new();
    if let Some(why) = &guards.without_replays {
        said.push(format!("unchanged; no replay possible ({why})"));
    } else if any(Phase::Pristine) && guards.judge_at_start {
        said.push("the checks pass with the judges that the run found".to_owned());
    } else if any(Phase::Pristine) {
        said.push("the judges were written in this run".to_owned());
    } else {
        said.push("nothing that judges was changed".to_owned());
    }
    if any(Phase::Reverted) {
        said.push("they fail without the work".to_owned());
    }
    let seen = |probe: &Probe| ran(iteration, Phase::Canary, probe) == Some(false);
    if probes.iter().any(seen) {
        said.push("they see a failing test".to_owned());
    }
    let blank: Vec<String> =
        state.baseline.empty.iter().filter(|(_, passes)| **passes).map(|(probe, _)| probe.name()).collect();
    if !blank.is_empty() {
        said.push(format!("in an empty workspace they pass, too: {}", blank.join(", ")));
    }
    if guards.tools.cut {
        said.push("folders of installed programs are too large to be compared whole".to_owned());
    }
    let changed: Vec<&str> = guards.judges().map(|change| change.path.as_str()).collect();
    if !changed.is_empty() {
        said.push(format!("changed: {}", named(changed.into_iter())));
    }
    said.join("; ")
}

#[cfg(test)]
mod tests;
