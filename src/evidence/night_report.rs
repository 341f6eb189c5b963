//! The report of a run for people: what waits, what came of it, what it cost, where the time went, what to be careful
//! with, how to check it and take it over.
//!
//! Role: the facts, gathered from the fold and from the journal's times; `text`, `markdown` and `html` show the same ones.
//! Not its role: deciding or measuring anything. Invariants: no sentence is written by a model, and what agents wrote is
//! quoted in one bounded line; what is unknown is said to be unknown; the same journal always gives the same report.

mod changes;
mod html;
mod markdown;
mod money;
mod risks;
mod text;
mod verdict;

use serde::Serialize;

use crate::evidence::night::{Doing, Night, millis_of};
use crate::machine::event::Probe;
use crate::machine::run::RunState;
use crate::model::safe::Safe;
use crate::model::stop::ExitStatus;

pub use changes::Changes;
pub use html::html;
pub use markdown::markdown;
pub use money::Money;
pub use text::text;
pub use verdict::{Verdict, words};

/// The longest text of somebody else that is quoted.
const MAX_QUOTE: usize = 240;

/// Everything a report says.
#[derive(Debug, Clone, Serialize)]
pub struct NightReport {
    pub run: String,
    pub name: Option<String>,
    pub goal: Option<String>,
    pub started: String,
    /// The time of the last event.
    pub ended: String,
    pub iterations: u64,
    pub waits: Vec<Waiting>,
    pub verdict: Verdict,
    pub criteria: Vec<Criterion>,
    pub newly: Newly,
    pub changes: Changes,
    pub money: Money,
    pub time: Time,
    pub residuals: Vec<Option<String>>,
    pub risks: Vec<String>,
    pub checking: Vec<String>,
    pub taking_over: Vec<String>,
    pub pull_request: PullRequest,
}

/// A decision that waits for a person.
#[derive(Debug, Clone, Serialize)]
pub struct Waiting {
    pub id: String,
    pub what: String,
    pub about: String,
    pub since: String,
    pub command: String,
}

/// A criterion as it stood at the end.
#[derive(Debug, Clone, Serialize)]
pub struct Criterion {
    pub id: String,
    pub text: String,
    pub met: bool,
    pub why: String,
    /// The evidence: a path in the workspace.
    pub proof: Option<String>,
}

/// What turned green or red, by the checks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Newly {
    /// Against the start of this run.
    pub passing: Vec<String>,
    pub failing: Vec<String>,
    /// Against the end of the run before it in the same workspace, where there is one.
    pub passing_since_last_run: Option<Vec<String>>,
    pub failing_since_last_run: Option<Vec<String>>,
}

/// Where the time went, in milliseconds.
#[derive(Debug, Clone, Serialize)]
pub struct Time {
    pub wall: i64,
    pub parts: Vec<Part>,
    /// What each of so many equal parts of the night mostly was.
    pub columns: Vec<Option<&'static str>>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Part {
    pub doing: &'static str,
    pub millis: i64,
    /// Is it time that the run lost?
    pub lost: bool,
}

/// A title and a body, for whoever hands the work on.
#[derive(Debug, Clone, Serialize)]
pub struct PullRequest {
    pub title: String,
    pub body: String,
}

/// Columns of the time line.
const COLUMNS: usize = 60;

/// The report of a run. `before` is the run before it in the same workspace.
pub fn of(state: &RunState, night: &Night, before: Option<&RunState>) -> NightReport {
    let criteria = criteria(state);
    let verdict = verdict::of(state, &criteria);
    let changes = changes::of(state);
    let (from, to) = night.range().unwrap_or_default();
    let columns = night.columns(from, to.max(from + 1), COLUMNS, None);
    let totals = night.totals(None);
    let part = |(doing, millis): (Doing, i64)| Part { doing: doing.name(), millis, lost: doing.is_lost() };
    let parts = Doing::ALL.into_iter().zip(totals).filter(|(_, millis)| *millis > 0).map(part).collect();
    NightReport {
        run: state.run().to_string(),
        name: state.loop_file().name.as_deref().map(quoted),
        goal: state.loop_file().goal.as_deref().map(quoted),
        started: state.started.started.clone(),
        ended: state.time.last_ts.clone(),
        iterations: state.spent.iterations,
        waits: waits(state),
        newly: newly(state, before),
        pull_request: pull_request(state, &verdict, &criteria, &changes),
        verdict,
        criteria,
        changes,
        money: money::of(state),
        time: Time {
            wall: to - from,
            parts,
            columns: columns.into_iter().map(|doing| doing.map(Doing::name)).collect(),
        },
        residuals: state.residual_history().iter().map(|residual| residual.map(|value| value.to_string())).collect(),
        risks: risks::of(state),
        checking: checking(state),
        taking_over: taking_over(state),
    }
}

/// Somebody else's words as one harmless, bounded line.
fn quoted(words: &str) -> String {
    let line = Safe::line(words.trim()).to_string();
    if line.chars().count() <= MAX_QUOTE {
        return line;
    }
    let cut: String = line.chars().take(MAX_QUOTE).collect();
    format!("{cut}…")
}

fn waits(state: &RunState) -> Vec<Waiting> {
    let open = state.operator.open();
    open.map(|decision| Waiting {
        id: decision.id.to_string(),
        what: decision.request.name().to_owned(),
        about: quoted(decision.request.gist().lines().next().unwrap_or_default()),
        since: decision.asked_ts.clone(),
        command: format!("nightloop inbox {}", decision.id),
    })
    .collect()
}

fn criteria(state: &RunState) -> Vec<Criterion> {
    let certificate = state.iterations().rev().find_map(|iteration| iteration.certificate.as_ref());
    match certificate {
        Some(certificate) => certificate
            .acceptance_criteria_checklist
            .iter()
            .map(|finding| Criterion {
                id: quoted(&finding.id),
                text: quoted(&finding.criterion),
                met: finding.met,
                why: quoted(&finding.why),
                proof: finding.evidence_link.as_ref().map(|link| quoted(&link.path)),
            })
            .collect(),
        None => state
            .criteria
            .iter()
            .map(|criterion| Criterion {
                id: quoted(&criterion.id),
                text: quoted(&criterion.text),
                met: false,
                why: "not judged".to_owned(),
                proof: None,
            })
            .collect(),
    }
}

/// Which checks passed at the end, by name.
fn passing_at_end(state: &RunState) -> Option<Vec<(String, bool)>> {
    let certificate = state.iterations().rev().find_map(|iteration| iteration.certificate.as_ref())?;
    let findings = certificate.acceptance_criteria_checklist.iter();
    Some(findings.map(|finding| (finding.id.clone(), finding.met)).collect())
}

fn newly(state: &RunState, before: Option<&RunState>) -> Newly {
    let Some(now) = passing_at_end(state) else { return Newly::default() };
    let at_start = |id: &str| {
        let result = state.baseline.probes.get(&Probe::Criterion(id.to_owned()));
        result.map(|result| result.end.passed())
    };
    let turned = |to: bool, was: &dyn Fn(&str) -> Option<bool>| -> Vec<String> {
        let turned = now.iter().filter(|(id, met)| *met == to && was(id) == Some(!to));
        turned.map(|(id, _)| quoted(id)).collect()
    };
    let last: Option<Vec<(String, bool)>> = before.and_then(passing_at_end);
    let then = |id: &str| last.as_ref()?.iter().find(|(known, _)| known == id).map(|(_, met)| *met);
    Newly {
        passing: turned(true, &at_start),
        failing: turned(false, &at_start),
        passing_since_last_run: last.as_ref().map(|_| turned(true, &then)),
        failing_since_last_run: last.as_ref().map(|_| turned(false, &then)),
    }
}

fn checking(state: &RunState) -> Vec<String> {
    let run = state.run();
    let mut commands = vec![format!("nightloop verify {run}"), format!("nightloop verify {run} --replay")];
    commands.push(format!("nightloop replay {run}"));
    commands
}

/// Exact commands: from the branch of the run's own, or from the workspace as it stands.
fn taking_over(state: &RunState) -> Vec<String> {
    let ends = state.halt.as_ref().map(|halted| halted.status);
    let mut lines = Vec::new();
    if let (Some(branch), Some(facts)) = (state.git.branch(), &state.git.facts) {
        let base = facts.original.as_deref().unwrap_or("main");
        lines.push(format!("git diff {base}...{branch}"));
        lines.push(format!("git switch {base} && git merge {branch}"));
    } else {
        lines.push("git status && git diff".to_owned());
    }
    if ends != Some(ExitStatus::ExitConverged) {
        lines.push("nightloop resume".to_owned());
    }
    lines
}

fn pull_request(state: &RunState, verdict: &Verdict, criteria: &[Criterion], changes: &Changes) -> PullRequest {
    let goal = state.loop_file().goal.as_deref().map(quoted).unwrap_or_else(|| "the loop's goal".to_owned());
    let title: String = goal.trim_end_matches('.').chars().take(72).collect();
    let mut body = format!("{}\n\n", verdict.words);
    for criterion in criteria {
        body.push_str(&format!("- [{}] {}\n", if criterion.met { 'x' } else { ' ' }, criterion.text));
    }
    body.push_str(&format!("\n{}\n", changes.in_words()));
    body.push_str(&format!("\nRun {}; `nightloop verify {}` checks it.\n", state.run(), state.run()));
    PullRequest { title, body }
}

/// Hours and minutes of a time in the zone of the reader.
pub(crate) fn clock(ts: &str, utc_offset_seconds: i32) -> String {
    let Some(millis) = millis_of(ts) else { return "?".to_owned() };
    let seconds = millis / 1_000 + i64::from(utc_offset_seconds);
    let of_day = seconds.rem_euclid(86_400);
    format!("{:02}:{:02}", of_day / 3_600, of_day / 60 % 60)
}
