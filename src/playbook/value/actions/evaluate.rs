//! CRITICAL_EVAL: a judge that may only read uses the deliverable as a user would.
//!
//! Role: make tasks of what keeps users from the promised value; keep the rest as evidence. Not its role: judging
//! (the evaluator does), mending. Invariant: an evaluation is never progress.

use crate::machine::event::{AgentEnd, Event};
use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::purpose::Purpose;
use crate::model::value::tools::{EvalFinding, Structured};
use crate::model::value::{GapSeverity, Outcome, TaskSource};
use crate::playbook::value::state::OpenStep;

use crate::playbook::value::finished;
use crate::playbook::value::services;

use super::ask::{MAX_DETAIL, cut};
use super::follow_up::{self, FollowUp, Wanted};

pub fn next(run: &RunState, step: &OpenStep) -> Option<Todo> {
    let call = Some(Todo::call(Purpose::CriticalEval)).filter(|_| step.calls_for(Purpose::CriticalEval) == 0)?;
    // Who uses the product finds it running.
    Some(services::once(run, step).unwrap_or(call))
}

pub fn decide(run: &RunState, step: &OpenStep) -> Vec<Event> {
    let evaluation = Evaluation::of(run, step);
    let (outcome, detail) = match &evaluation.failed {
        Some(why) => (Outcome::NoProgress, format!("no evaluation: {why}")),
        None => (Outcome::Neutral, evaluation.words()),
    };
    let mut events = evaluation.tasks.events;
    events.push(finished(step, outcome, cut(&detail, MAX_DETAIL)));
    events
}

/// What the evaluator of this step brought. The exit gate ends with one, too.
#[derive(Debug)]
pub struct Evaluation {
    /// Why there is none: the evaluator failed and found nothing.
    pub failed: Option<String>,
    /// Findings by their gravity, the gravest first.
    pub counts: [(GapSeverity, usize); 4],
    pub tasks: FollowUp,
}

impl Evaluation {
    pub fn of(run: &RunState, step: &OpenStep) -> Self {
        let findings: Vec<&EvalFinding> = step.reports.iter().filter_map(finding).collect();
        let grave = findings.iter().enumerate().filter(|(_, finding)| is_grave(finding.severity));
        let wanted: Vec<Wanted> = grave.map(|(number, finding)| wanted(step, number + 1, finding)).collect();
        let failed = match step.last_call(Purpose::CriticalEval).map(|call| &call.end) {
            Some(AgentEnd::Reported) => None,
            Some(_) if !findings.is_empty() => None,
            Some(end) => Some(describe(end)),
            None => Some("the evaluator was not asked".to_owned()),
        };
        let severities = [GapSeverity::Critical, GapSeverity::Blocking, GapSeverity::Degraded, GapSeverity::Polish];
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        Self {
            failed,
            counts: severities.map(|severity| (severity, count(severity))),
            tasks: follow_up::tasks(run, step, TaskSource::CriticalEval, &wanted, "an evaluation found it"),
        }
    }

    /// How many findings keep users from the value.
    pub fn grave(&self) -> usize {
        self.counts.iter().filter(|(severity, _)| is_grave(*severity)).map(|(_, count)| count).sum()
    }

    pub fn words(&self) -> String {
        let found = self.counts.iter().filter(|(_, count)| *count > 0);
        let found: Vec<String> = found.map(|(severity, count)| format!("{count} {}", severity.name())).collect();
        let found = if found.is_empty() { "nothing found".to_owned() } else { format!("found: {}", found.join(", ")) };
        format!("{found}{}", self.tasks.words())
    }
}

/// How an agent ended that did not report, in words.
pub fn describe(end: &AgentEnd) -> String {
    match end {
        AgentEnd::Reported => "it reported something else".to_owned(),
        AgentEnd::NoReport => "it did not report".to_owned(),
        AgentEnd::Cut(why) => format!("it was cut: {why}"),
        AgentEnd::Refused(why) => format!("it refused: {why}"),
        AgentEnd::Failed { message, .. } => format!("it failed: {message}"),
        AgentEnd::Malformed => "its replies made no sense".to_owned(),
        AgentEnd::BadReport { why, .. } => format!("its report could not be taken: {why}"),
        AgentEnd::Stuck => "it did the same again and again".to_owned(),
        AgentEnd::Denied(why) => format!("it was denied: {why}"),
    }
}

fn finding((purpose, report): &(Purpose, Structured)) -> Option<&EvalFinding> {
    match report {
        Structured::ReportEvalFinding(finding) if *purpose == Purpose::CriticalEval => Some(finding),
        _ => None,
    }
}

fn is_grave(severity: GapSeverity) -> bool {
    severity >= GapSeverity::Blocking
}

fn wanted(step: &OpenStep, nth: usize, finding: &EvalFinding) -> Wanted {
    let mend = finding.suggested_fix.as_deref().map(str::trim).filter(|fix| !fix.is_empty());
    let description = match mend {
        Some(fix) => format!("{} Suggested: {fix}", finding.description.trim()),
        None => finding.description.trim().to_owned(),
    };
    Wanted {
        id: format!("CE-{}-{nth}", step.number),
        description,
        value: finding.user_impact.clone(),
        acceptance: format!("A user no longer meets this: {}", finding.description.trim()),
    }
}
