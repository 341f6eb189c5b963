//! What a plan consists of, read from the run. A playbook with other things to work off (tasks, PRD items)
//! adds a reader of its own beside [`criteria`]; the pane stays as it is.

mod passes;
mod value;

use crate::console::widget;
use crate::machine::event::{Phase, Probe};
use crate::machine::iteration::Iteration;
use crate::machine::measure;
use crate::machine::run::RunState;
use crate::model::criterion::{Criterion, Finding, Proof};
use crate::model::decimal::Exact;
use crate::model::loop_file::Playbook;
use crate::model::safe::Safe;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Criterion,
    /// What the run is worth so far.
    Value,
    /// Whether the work goes as it should.
    Course,
    Epic,
    Task,
    Check,
    Service,
    /// A round of refinement.
    Round,
    Gate,
    /// Of a PRD.
    Item,
    /// Of a critic.
    Concern,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Criterion => "criterion",
            Self::Value => "value",
            Self::Course => "course",
            Self::Epic => "epic",
            Self::Task => "task",
            Self::Check => "check",
            Self::Service => "service",
            Self::Round => "round",
            Self::Gate => "gate",
            Self::Item => "item",
            Self::Concern => "concern",
        }
    }

    /// Of several, in the margin beside them.
    pub(super) const fn heading(self) -> &'static str {
        match self {
            Self::Criterion => "goal",
            Self::Value => "value",
            Self::Course => "course",
            Self::Epic => "epics",
            Self::Task => "tasks",
            Self::Check => "checks",
            Self::Service => "services",
            Self::Round => "rounds",
            Self::Gate => "gates",
            Self::Item => "items",
            Self::Concern => "concerns",
        }
    }
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Met,
    NotMet,
    /// Nobody has looked yet.
    NotJudged,
    /// Green, but what guards it was changed.
    NotAccepted,
    /// Not agreed to as it was, but made anew: what follows judges the new text.
    Changed,
    /// Its time has not come.
    Waiting,
    Working,
    Blocked,
    /// No longer wanted.
    Dropped,
}

impl Status {
    /// The word for it, of this kind of item.
    pub(super) const fn word(self, kind: Kind) -> &'static str {
        match (kind, self) {
            (Kind::Task | Kind::Epic, Self::Met) => "done",
            (Kind::Epic, Self::Dropped) => "skipped",
            (Kind::Check, Self::Met) => "passes",
            (Kind::Check, Self::NotMet) => "fails",
            (Kind::Gate, Self::Met) => "passed",
            (Kind::Gate, Self::NotMet) => "failed",
            (Kind::Round, Self::Met) => "agreed",
            (Kind::Round, Self::NotAccepted) => "not agreed",
            (Kind::Round, Self::Changed) => "new text",
            (Kind::Value, Self::NotMet) => "not yet",
            (Kind::Course, Self::Met) => "good",
            (Kind::Course, Self::NotAccepted) => "look at it",
            (Kind::Course, Self::NotMet) => "off course",
            (Kind::Item, Self::Met) => "passes",
            (Kind::Item, Self::NotMet) => "fails",
            (Kind::Item, Self::Blocked) => "stuck",
            (Kind::Item, Self::Dropped) => "skipped",
            (Kind::Concern, Self::Met) => "small",
            (Kind::Concern, Self::NotMet) => "open",
            (Kind::Service, Self::Met) => "healthy",
            (Kind::Service, Self::NotMet) => "not healthy",
            (_, status) => status.usual_word(),
        }
    }

    const fn usual_word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::NotJudged => "not judged",
            Self::NotAccepted => "not accepted",
            Self::Changed => "changed",
            Self::Waiting => "pending",
            Self::Working => "in progress",
            Self::Blocked => "blocked",
            Self::Dropped => "descoped",
        }
    }
}

/// Since when it has been so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    Start,
    Iteration(u32),
}

/// One thing that has to be true at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub kind: Kind,
    pub id: Safe,
    pub text: Safe,
    pub status: Status,
    pub since: Option<Since>,
    /// Path and short digest of what proves or disproves it.
    pub proof: Option<(Safe, String)>,
    pub why: Safe,
    /// How it is checked.
    pub how: Safe,
    /// What must not change in the iteration that turns it green.
    pub guards: Safe,
    /// Is it being checked right now?
    pub running: bool,
    /// Met or not, over time.
    pub story: Vec<(String, bool)>,
    /// Scores from 0 to 1, over time.
    pub trend: Vec<Exact>,
    /// What it hangs on, beside it in the list where nothing is said about since when.
    pub aside: Safe,
    /// More to know, each with its name.
    pub more: Vec<(&'static str, Safe)>,
}

impl Item {
    pub(super) fn contains(&self, lower: &str) -> bool {
        let more = self.more.iter().map(|(_, text)| text);
        let mut texts = [&self.id, &self.text, &self.why, &self.how].into_iter().chain(more);
        texts.any(|text| text.as_str().to_lowercase().contains(lower))
    }

    pub(super) fn since_text(&self) -> String {
        match self.since {
            Some(Since::Start) => "since start".to_owned(),
            Some(Since::Iteration(number)) => format!("since it{number}"),
            None => String::new(),
        }
    }

    pub(super) fn as_text(&self) -> String {
        let proof = self.proof.as_ref().map(|(path, sha)| format!(", proof {path}#{sha}")).unwrap_or_default();
        format!("{}: {} ({}): {}{proof}", self.id, self.text, self.status.word(self.kind), self.why)
    }
}

/// Everything this run has to get true, in declared order.
pub(super) fn items(run: &RunState) -> Vec<Item> {
    match run.loop_file().playbook {
        Playbook::Swarm => criteria(run),
        Playbook::Prd | Playbook::Micro => passes::items(run).into_iter().chain(criteria(run)).collect(),
        Playbook::Value => value::items(run).into_iter().chain(criteria(run)).collect(),
    }
}

/// How far the plan is, in one line.
pub(super) fn title(run: &RunState) -> String {
    match run.loop_file().playbook {
        Playbook::Value => return value::title(run),
        Playbook::Prd | Playbook::Micro => return passes::title(run),
        Playbook::Swarm => {}
    }
    let all = criteria(run);
    let met = all.iter().filter(|item| item.status == Status::Met).count();
    let judged = run.iterations().rev().find(|it| it.certificate.is_some());
    let when = judged.map_or_else(|| "at the start".to_owned(), |iteration| format!("as of it{}", iteration.number()));
    format!("Plan  {met} of {} criteria met, {when}", all.len())
}

fn criteria(run: &RunState) -> Vec<Item> {
    let judged = run.iterations().rev().find(|iteration| iteration.certificate.is_some());
    run.criteria.iter().map(|criterion| item(run, judged, criterion)).collect()
}

fn item(run: &RunState, judged: Option<&Iteration>, criterion: &Criterion) -> Item {
    let finding = judged.and_then(|iteration| finding_of(iteration, &criterion.id));
    let (status, why) = match (judged, finding) {
        (Some(iteration), Some(finding)) => (status_of(run, iteration, criterion, finding), finding.why.clone()),
        _ => at_start(run, criterion),
    };
    let story = story(run, criterion);
    let proof = finding.and_then(|finding| finding.evidence_link.as_ref());
    Item {
        kind: Kind::Criterion,
        id: Safe::line(&criterion.id),
        text: Safe::line(&criterion.text),
        status,
        // What nobody looked at has not been so since anything.
        since: since(&story).filter(|_| status != Status::NotJudged),
        proof: proof.map(|link| (Safe::line(&link.path), link.sha256.short())),
        why: Safe::line(&why),
        how: Safe::line(&how(criterion)),
        guards: Safe::line(&criterion.protects.join(", ")),
        running: is_running(run, &criterion.id),
        story: story.into_iter().map(|(when, met)| (name(when), met)).collect(),
        trend: Vec::new(),
        aside: Safe::line(""),
        more: Vec::new(),
    }
}

fn finding_of<'a>(iteration: &'a Iteration, id: &str) -> Option<&'a Finding> {
    iteration.certificate.as_ref()?.acceptance_criteria_checklist.iter().find(|finding| finding.id == id)
}

fn status_of(run: &RunState, iteration: &Iteration, criterion: &Criterion, finding: &Finding) -> Status {
    if finding.met {
        return Status::Met;
    }
    // What the check or the skeptic said by itself, before guards were looked at.
    let (looked, green) = match &criterion.proof {
        Proof::Check { .. } => {
            let result = iteration.probe(Phase::Iteration, &Probe::Criterion(criterion.id.clone()));
            (result.is_some(), result.is_some_and(|result| result.end.passed()))
        }
        Proof::ExitGate => (run.value.exit_gate_attempts > 0, false),
        Proof::Items | Proof::Verified => (true, false),
        Proof::Judged => {
            let by_skeptic = iteration.skeptic(None).map(|(report, _)| &report.judged);
            let judged = by_skeptic.or_else(|| iteration.critique().map(|(report, _)| &report.judged));
            let judgement = judged.and_then(|judged| judged.iter().find(|j| j.criterion == criterion.id));
            (judgement.is_some(), judgement.is_some_and(|judgement| judgement.met))
        }
    };
    let touched = iteration.artifacts.as_ref().is_some_and(|a| a.guards_touched.contains_key(&criterion.id));
    match (looked, green && touched) {
        (false, _) => Status::NotJudged,
        (true, true) => Status::NotAccepted,
        (true, false) => Status::NotMet,
    }
}

/// Before the first certificate only the baseline is known.
fn at_start(run: &RunState, criterion: &Criterion) -> (Status, String) {
    match run.baseline.probes.get(&Probe::Criterion(criterion.id.clone())) {
        Some(result) if result.end.passed() => (Status::Met, "its check passed before the first iteration".to_owned()),
        Some(result) => (Status::NotMet, format!("{} before the first iteration", result.end.describe())),
        None if criterion.is_judged() => (Status::NotJudged, "the skeptic judges it in each iteration".to_owned()),
        None if matches!(criterion.proof, Proof::ExitGate) => (Status::NotJudged, exit_gate(run).to_owned()),
        None => (Status::NotJudged, "its check did not run yet".to_owned()),
    }
}

/// How far the exit gate is, before a certificate says so.
fn exit_gate(run: &RunState) -> &'static str {
    match (run.value.exit_gate_passed, run.value.exit_gate_attempts) {
        (Some(_), _) => "the exit gate is passed; the certificate follows",
        (None, 0) => "the exit gate was not tried yet",
        (None, _) => "the exit gate was tried, and not passed yet",
    }
}

fn how(criterion: &Criterion) -> String {
    match &criterion.proof {
        Proof::Check { argv, timeout_seconds } => {
            format!("{} (at most {})", argv.join(" "), widget::duration(timeout_seconds.saturating_mul(1_000)))
        }
        Proof::ExitGate => "decided by the exit gate: every script passes, a fresh judge agrees".to_owned(),
        Proof::Items => "decided item by item: checks and critic".to_owned(),
        Proof::Verified => "decided by checks and critic".to_owned(),
        Proof::Judged => "judged by the skeptic, with an artifact as evidence".to_owned(),
    }
}

fn is_running(run: &RunState, id: &str) -> bool {
    let wanted = Probe::Criterion(id.to_owned());
    run.open_probes.iter().any(|(_, probe)| *probe == wanted)
}

/// Met or not, at the start and at the end of each iteration.
fn story(run: &RunState, criterion: &Criterion) -> Vec<(Since, bool)> {
    let checked = run.baseline.probes.contains_key(&Probe::Criterion(criterion.id.clone()));
    let start = checked.then(|| (Since::Start, measure::was_met_at_baseline(run, &criterion.id)));
    let later = run.iterations().filter_map(|iteration| {
        Some((Since::Iteration(iteration.number()), finding_of(iteration, &criterion.id)?.met))
    });
    start.into_iter().chain(later).collect()
}

/// The beginning of the last row of equal findings.
fn since(story: &[(Since, bool)]) -> Option<Since> {
    let (_, now) = story.last()?;
    story.iter().rev().take_while(|(_, met)| met == now).last().map(|(when, _)| *when)
}

fn name(when: Since) -> String {
    match when {
        Since::Start => "start".to_owned(),
        Since::Iteration(number) => format!("it{number}"),
    }
}
