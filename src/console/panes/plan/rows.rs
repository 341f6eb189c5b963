//! What a plan consists of, read from the run: the rows of its playbook, then the criteria.

use crate::console::widget;
use crate::machine::event::{Phase, Probe};
use crate::machine::iteration::Iteration;
use crate::machine::measure;
use crate::machine::run::RunState;
use crate::model::criterion::{Criterion, Finding, Proof};
use crate::model::plan_row::{Row, RowKind, RowStatus, Since};
use crate::model::safe::Safe;

/// Everything this run has to get true, the playbook's own things first, then the criteria in declared order.
pub(super) fn rows(run: &RunState) -> Vec<Row> {
    run.playbook().rows(run).into_iter().chain(criteria(run)).collect()
}

/// How far the plan is, in one line.
pub(super) fn title(run: &RunState) -> String {
    run.playbook().title(run).unwrap_or_else(|| {
        let all = criteria(run);
        let met = all.iter().filter(|row| row.status == RowStatus::Met).count();
        let judged = run.iterations().rev().find(|it| it.certificate.is_some());
        let when =
            judged.map_or_else(|| "at the start".to_owned(), |iteration| format!("as of it{}", iteration.number()));
        format!("Plan  {met} of {} criteria met, {when}", all.len())
    })
}

fn criteria(run: &RunState) -> Vec<Row> {
    let judged = run.iterations().rev().find(|iteration| iteration.certificate.is_some());
    run.criteria.iter().map(|criterion| item(run, judged, criterion)).collect()
}

fn item(run: &RunState, judged: Option<&Iteration>, criterion: &Criterion) -> Row {
    let finding = judged.and_then(|iteration| finding_of(iteration, &criterion.id));
    let (status, why) = match (judged, finding) {
        (Some(iteration), Some(finding)) => (status_of(run, iteration, criterion, finding), finding.why.clone()),
        _ => at_start(run, criterion),
    };
    let story = story(run, criterion);
    let proof = finding.and_then(|finding| finding.evidence_link.as_ref());
    Row {
        // What nobody looked at has not been so since anything.
        since: since(&story).filter(|_| status != RowStatus::NotJudged),
        proof: proof.map(|link| (Safe::line(&link.path), link.sha256.short())),
        why: Safe::line(&why),
        how: Safe::line(&how(criterion)),
        guards: Safe::line(&criterion.protects.join(", ")),
        running: is_running(run, &criterion.id),
        story: story.into_iter().map(|(when, met)| (name(when), met)).collect(),
        ..Row::new(RowKind::Criterion, &criterion.id, &criterion.text, status)
    }
}

fn finding_of<'a>(iteration: &'a Iteration, id: &str) -> Option<&'a Finding> {
    iteration.certificate.as_ref()?.acceptance_criteria_checklist.iter().find(|finding| finding.id == id)
}

fn status_of(run: &RunState, iteration: &Iteration, criterion: &Criterion, finding: &Finding) -> RowStatus {
    if finding.met {
        return RowStatus::Met;
    }
    // What the check or the skeptic said by itself, before guards were looked at.
    let (looked, green) = match &criterion.proof {
        Proof::Check { .. } => {
            let result = iteration.probe(Phase::Iteration, &Probe::Criterion(criterion.id.clone()));
            (result.is_some(), result.is_some_and(|result| result.end.passed()))
        }
        Proof::ExitGate | Proof::Items | Proof::Verified => {
            (run.playbook().way_out_tried(run).is_none_or(|(tried, _)| tried), false)
        }
        Proof::Judged => {
            let by_skeptic = iteration.skeptic(None).map(|(report, _)| &report.judged);
            let judged = by_skeptic.or_else(|| iteration.critique().map(|(report, _)| &report.judged));
            let judgement = judged.and_then(|judged| judged.iter().find(|j| j.criterion == criterion.id));
            (judgement.is_some(), judgement.is_some_and(|judgement| judgement.met))
        }
    };
    let touched = iteration.artifacts.as_ref().is_some_and(|a| a.guards_touched.contains_key(&criterion.id));
    match (looked, green && touched) {
        (false, _) => RowStatus::NotJudged,
        (true, true) => RowStatus::NotAccepted,
        (true, false) => RowStatus::NotMet,
    }
}

/// Before the first certificate only the baseline is known.
fn at_start(run: &RunState, criterion: &Criterion) -> (RowStatus, String) {
    match run.baseline.probes.get(&Probe::Criterion(criterion.id.clone())) {
        Some(result) if result.end.passed() => {
            (RowStatus::Met, "its check passed before the first iteration".to_owned())
        }
        Some(result) => (RowStatus::NotMet, format!("{} before the first iteration", result.end.describe())),
        None if criterion.is_judged() => (RowStatus::NotJudged, "the skeptic judges it in each iteration".to_owned()),
        None => {
            let tried = run.playbook().way_out_tried(run).filter(|_| criterion.proof.is_the_way_out());
            (RowStatus::NotJudged, tried.map_or("its check has not run yet", |(_, words)| words).to_owned())
        }
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
