//! Builds the AGENTS.md entry and the GLOW score of an iteration, and answers the Socratic questions.
//!
//! Agents propose; this decides what each proposal is worth. A Lane A claim without an artifact that
//! exists is demoted to C, and the demotion stays visible.

use std::collections::BTreeSet;

use crate::model::capsule;
use crate::model::certificate::{Certificate, CertificateKind};
use crate::model::glow::{self, Glow};
use crate::model::ids::Role;
use crate::model::lane::Lane;
use crate::model::learnings::{
    self, Claim, Entry, GlowLine, Link, Measures, NorthstarDirection, Operators, ResidualDirection, SpecVersion,
};
use crate::model::northstar::{self, Metric};
use crate::model::report::ReportedClaim;

use super::compose::DISTANCE_PLACES;
use super::document;
use super::event::{AgentEnd, Answer, Phase, Probe};
use super::iteration::Iteration;
use super::measure;
use super::playbook::Learned;
use super::run::RunState;

/// A score above this without a win is worth a warning.
const HIGH_GLOW: u32 = 60;

/// Everything ACCUMULATE_LEARNINGS writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Accumulated {
    pub entry: Entry,
    pub glow: Glow,
    pub review: Vec<Answer>,
}

/// Builds the entry, scores it, then puts the score into it.
pub fn accumulate(state: &RunState, iteration: &Iteration, certificate: &Certificate) -> Accumulated {
    let learned = state.playbook().learned(state, iteration);
    let part_done = learned.part_done;
    let mut entry = build_entry(state, iteration, certificate, learned).sanitized(state.spec());
    let lines = lines_added(state, &entry);
    if let Some(operators) = &mut entry.operators {
        operators.compression = lines;
    }
    let glow = glow::score(&glow::Facts {
        sub_goal_done: part_done || sub_goal_done(iteration),
        ..glow_facts(state, iteration, certificate, &entry)
    });
    if state.spec() == SpecVersion::V2 {
        entry.measures.glow = Some(GlowLine { total: glow.total, g: glow.g, l: glow.l, o: glow.o, w: glow.w });
        if glow.w == 0 && glow.total > HIGH_GLOW {
            entry
                .failed
                .push(engine_fact(iteration, "WARNING: a high GLOW score without a Northstar metric advanced (W=0)"));
        }
    }
    let review = socratic_review(state, iteration, certificate, &entry, &glow);
    Accumulated { entry, glow, review }
}

fn build_entry(state: &RunState, iteration: &Iteration, certificate: &Certificate, learned: Learned) -> Entry {
    let newly_true = measure::newly_true(state, &certificate.acceptance_criteria_checklist);
    let mut succeeded: Vec<Claim> = certificate
        .acceptance_criteria_checklist
        .iter()
        .filter(|finding| newly_true.contains(&finding.id))
        .map(|finding| Claim {
            lane: Lane::A,
            text: format!("criterion `{}` is met ({})", finding.id, finding.why),
            link: finding.evidence_link.clone(),
            demoted_from: None,
        })
        .collect();
    let mut failed = engine_failures(state, iteration, certificate);
    succeeded.extend(learned.succeeded);
    failed.extend(learned.failed);
    if let Some((report, links)) = iteration.skeptic(None) {
        let resolve = |claim: &ReportedClaim| resolve_claim(claim, |path| links.get(path).copied());
        succeeded.extend(report.succeeded.iter().map(resolve));
        failed.extend(report.failed.iter().map(resolve));
    }
    Entry {
        iteration: iteration.number(),
        tried: learned.tried.map_or_else(|| tried(iteration), |tried| cleaned(&tried)),
        succeeded,
        failed,
        measures: measures(state, iteration, certificate),
        open_questions: open_questions(state, iteration, certificate, &learned.open_questions),
        operators: (state.spec() == SpecVersion::V2).then(|| operators(state, iteration, certificate)),
    }
}

/// How many lines this entry adds to the section. The number itself takes no line of its own.
fn lines_added(state: &RunState, entry: &Entry) -> i64 {
    let count = |text: String| i64::try_from(text.lines().count()).unwrap_or(i64::MAX);
    let mut entries = state.entries();
    entries.push(entry.clone());
    let after = learnings::render_document(&state.learnings_header(), &entries, state.spec(), state.compacted_before);
    count(after) - count(state.learnings_document())
}

/// What was tried: the solver's own list, else what is known without it.
fn tried(iteration: &Iteration) -> Vec<String> {
    if let Some(report) = iteration.solver() {
        return cleaned(&report.actions);
    }
    let ends = iteration.calls.values().filter(|call| call.role != Role::Skeptic && call.paraphrase.is_none());
    ends.map(|call| format!("{}: {}", call.role, call.end.describe())).collect()
}

fn resolve_claim(claim: &ReportedClaim, digest_of: impl Fn(&str) -> Option<crate::model::digest::Digest>) -> Claim {
    let link =
        claim.artifact.as_ref().and_then(|path| digest_of(path).map(|sha256| Link { path: path.clone(), sha256 }));
    let demoted = claim.lane == Lane::A && link.is_none();
    Claim {
        lane: if demoted { Lane::C } else { claim.lane },
        text: clean(&claim.text),
        link,
        demoted_from: demoted.then_some(Lane::A),
    }
}

/// Agent text must not lean on a conversation that the next agent cannot see.
fn clean(text: &str) -> String {
    capsule::without_bleed(text)
}

fn cleaned(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| clean(line)).collect()
}

/// Failures that the engine saw itself.
fn engine_failures(state: &RunState, iteration: &Iteration, certificate: &Certificate) -> Vec<Claim> {
    let mut failures = Vec::new();
    let mut note = |text: String| failures.push(engine_fact(iteration, &text));
    for call in iteration.calls.values().filter(|call| call.end != AgentEnd::Reported) {
        note(format!("{} {}", call.role, call.end.describe()));
    }
    if iteration.artifact_count() == 0 {
        note("the iteration produced no artifacts".to_owned());
    }
    if certificate.kind == CertificateKind::Diverged {
        note(format!("DIVERGENCE: {}", certificate.why));
    }
    let unmet = certificate.acceptance_criteria_checklist.iter().any(|finding| !finding.met);
    if unmet && certificate.residual.is_some_and(|residual| residual.is_zero()) {
        note("the residual is 0 although criteria are unmet: the metric is inconsistent".to_owned());
    }
    if let Some(why) = &iteration.residual_why_null {
        note(format!("the residual is null: {why}"));
    }
    for tampering in measure::gate_tampering(state, iteration) {
        note(format!("GATE TAMPERING: {tampering}"));
    }
    if let Some(cut) = &state.cut {
        note(format!(
            "budget reached: {} {} of {}",
            cut.exhausted.dimension, cut.exhausted.observed, cut.exhausted.limit
        ));
    }
    for finding in certificate.acceptance_criteria_checklist.iter().filter(|finding| !finding.met) {
        if measure::was_met_before(state, &finding.id) {
            note(format!("REGRESSION: criterion `{}` was met before ({})", finding.id, finding.why));
        }
    }
    failures
}

/// A fact of the engine's own, backed by the iteration's artifact list.
fn engine_fact(iteration: &Iteration, text: &str) -> Claim {
    let link = Some(document::artifacts_link(iteration));
    Claim { lane: Lane::A, text: text.to_owned(), link, demoted_from: None }
}

fn measures(state: &RunState, iteration: &Iteration, certificate: &Certificate) -> Measures {
    let two = state.spec() == SpecVersion::V2;
    let (distance, direction) = northstar_movement(state, iteration);
    Measures {
        residual_metric: state.loop_file().residual_metric(),
        residual: certificate.residual.map(|residual| residual.to_string()),
        residual_direction: match (state.previous_residual(), certificate.residual) {
            (Some(before), Some(now)) if now < before => ResidualDirection::Improving,
            (Some(before), Some(now)) if now > before => ResidualDirection::Diverging,
            _ => ResidualDirection::Stable,
        },
        certificate: certificate.kind.name().to_owned(),
        glow: None,
        northstar_distance: if two { distance } else { None },
        northstar_direction: two.then_some(direction),
    }
}

fn northstar_movement(state: &RunState, iteration: &Iteration) -> (Option<String>, NorthstarDirection) {
    let now = northstar::distance(&state.metrics_at(iteration)).total;
    let before = northstar::distance(&metrics_before(state)).total;
    let direction = match (before, now) {
        (Some(before), Some(now)) if now < before => NorthstarDirection::Improving,
        (Some(before), Some(now)) if now > before => NorthstarDirection::Drifting,
        _ => NorthstarDirection::Stable,
    };
    (now.map(|total| total.to_decimal_text(DISTANCE_PLACES)), direction)
}

fn metrics_before(state: &RunState) -> Vec<Metric> {
    state.done.last().map_or_else(|| state.metrics_at_baseline(), |last| state.metrics_at(last))
}

fn open_questions(
    state: &RunState,
    iteration: &Iteration,
    certificate: &Certificate,
    of_playbook: &[String],
) -> Vec<String> {
    let asked = iteration.skeptic(None).map(|(report, _)| report.open_questions.as_slice()).unwrap_or_default();
    if let Some(open) = [asked, of_playbook].into_iter().find(|open| !open.is_empty()) {
        return cleaned(open);
    }
    // Nobody asked: what is still open is the question.
    let open = certificate.acceptance_criteria_checklist.iter().filter(|finding| !finding.met);
    let questions: Vec<String> = open.map(|f| format!("What does `{}` still need? ({})", f.id, f.why)).collect();
    if questions.is_empty() && state.criteria.is_empty() {
        vec!["What would show progress?".to_owned()]
    } else {
        questions
    }
}

fn operators(state: &RunState, iteration: &Iteration, certificate: &Certificate) -> Operators {
    let dir = document::iteration_dir(iteration.number());
    let residual = certificate.residual.map_or_else(|| "null".to_owned(), |residual| residual.to_string());
    let comparison = match certificate.residual {
        Some(value) if value < state.r_p() => "<",
        Some(_) => ">=",
        None => "not comparable to",
    };
    let regressions: Vec<_> = certificate
        .acceptance_criteria_checklist
        .iter()
        .filter(|finding| !finding.met && measure::was_met_before(state, &finding.id))
        .map(|finding| finding.id.clone())
        .collect();
    Operators {
        boundary: format!("{dir}/cnf_capsule.json#{}", iteration.began.capsule),
        symmetry: if regressions.is_empty() { "true".to_owned() } else { format!("broke: {}", regressions.join(", ")) },
        serialization: ["cnf_capsule.json", "artifacts.json", "certificate.json", "agents_md_entry.md", "glow.json"]
            .map(|file| format!("{dir}/{file}"))
            .to_vec(),
        compression: 0,
        irreducibility: u32::try_from(iteration.artifact_count()).unwrap_or(u32::MAX),
        resolution: format!("{residual} {comparison} {}", state.r_p()),
    }
}

fn glow_facts(state: &RunState, iteration: &Iteration, certificate: &Certificate, entry: &Entry) -> glow::Facts {
    let newly_true = measure::newly_true(state, &certificate.acceptance_criteria_checklist);
    let by_check: Vec<_> = newly_true
        .iter()
        .filter(|id| state.criteria.iter().any(|criterion| criterion.id == **id && !criterion.is_judged()))
        .cloned()
        .collect();
    let seen: BTreeSet<_> = state
        .done
        .iter()
        .filter_map(|it| it.artifacts.as_ref())
        .flat_map(|a| &a.changes)
        .filter_map(|c| c.sha256)
        .collect();
    let changes = iteration.artifacts.as_ref().map(|a| a.changes.as_slice()).unwrap_or_default();
    let earlier: BTreeSet<&str> = state
        .done
        .iter()
        .filter_map(|it| it.entry.as_ref())
        .flat_map(|entry| entry.succeeded.iter().chain(&entry.failed))
        .map(|claim| claim.text.as_str())
        .collect();
    let new_claims = entry.succeeded.iter().chain(&entry.failed).filter(|claim| !earlier.contains(claim.text.as_str()));
    let linked =
        by_check.first().or_else(|| state.criteria.first().map(|c| &c.id)).and_then(|id| state.linked_metric(id));
    glow::Facts {
        criteria_newly_true: by_check,
        previous_residual: state.previous_residual(),
        residual: certificate.residual,
        r_p: Some(state.r_p()),
        artifacts: u32::try_from(iteration.artifact_count()).unwrap_or(u32::MAX),
        artifacts_unseen_before: u32::try_from(
            changes.iter().filter_map(|change| change.sha256).filter(|sha256| !seen.contains(sha256)).count(),
        )
        .unwrap_or(u32::MAX),
        artifacts_unhashed: 0,
        claim_lanes: new_claims.map(|claim| claim.lane).collect(),
        metric_moved: metric_moved(state, iteration),
        linked_metric: linked,
        sub_goal_done: false,
    }
}

/// Did the Scout's sub-goal turn true by its check?
fn sub_goal_done(iteration: &Iteration) -> bool {
    let passed = |phase| iteration.probe(phase, &Probe::SubGoal).map(|result| result.end.passed());
    passed(Phase::Scouted) == Some(false) && passed(Phase::Iteration) == Some(true)
}

/// A re-measured metric that came closer, if the total distance fell too.
fn metric_moved(state: &RunState, iteration: &Iteration) -> Option<String> {
    let before = metrics_before(state);
    let now = state.metrics_at(iteration);
    if northstar::distance(&now).total? >= northstar::distance(&before).total? {
        return None;
    }
    let closer = before.iter().zip(&now).find(|(before, now)| {
        let distance = |metric: &Metric| northstar::distance(std::slice::from_ref(metric)).total;
        matches!((distance(before), distance(now)), (Some(b), Some(n)) if n < b)
    });
    closer.map(|(_, now)| now.id.clone())
}

fn socratic_review(
    state: &RunState,
    iteration: &Iteration,
    certificate: &Certificate,
    entry: &Entry,
    glow: &Glow,
) -> Vec<Answer> {
    let answer = |question: &str, ok: bool, answer: String| Answer { question: question.to_owned(), answer, ok };
    let claims = || entry.succeeded.iter().chain(&entry.failed);
    let unlinked = claims().filter(|claim| claim.lane == Lane::A && claim.link.is_none()).count();
    let demoted = claims().filter(|claim| claim.demoted_from.is_some()).count();
    let proven = certificate.acceptance_criteria_checklist.iter().filter(|f| f.met).all(|f| f.evidence_link.is_some());
    let mut answers = vec![
        answer(
            "Is the halting certificate backed by artifact evidence, not prose?",
            proven,
            format!("{}: {}", certificate.kind, certificate.why),
        ),
        answer(
            "Are all Lane A entries backed by artifact links?",
            unlinked == 0,
            format!("{unlinked} without a link, {demoted} demoted to Lane C"),
        ),
        answer(
            "Are any Lane C entries being used as halt evidence?",
            true,
            "no: the certificate reads checks and resolved links only".to_owned(),
        ),
        answer(
            "Did this iteration produce at least one artifact?",
            iteration.artifact_count() > 0,
            format!("{} artifact(s)", iteration.artifact_count()),
        ),
        answer(
            "Is the residual a valid decimal string?",
            certificate.residual.is_some(),
            entry.measures.residual.clone().unwrap_or_else(|| "null".to_owned()),
        ),
        answer(
            "Did the residual improve, stay stable, or diverge?",
            entry.measures.residual_direction != ResidualDirection::Diverging,
            format!("{:?}", entry.measures.residual_direction).to_uppercase(),
        ),
    ];
    if state.spec() == SpecVersion::V2 {
        answers.extend([
            answer(
                "Was the GLOW W-component computed with an explicit Northstar metric?",
                glow.w == 0 || glow.northstar_metric_advanced.is_some(),
                glow.northstar_metric_advanced.clone().unwrap_or_else(|| "W=0: no metric advanced".to_owned()),
            ),
            answer(
                "Are all six operator checks filled in?",
                entry.operators.is_some(),
                if entry.operators.is_some() { "yes" } else { "no" }.to_owned(),
            ),
            answer(
                "Do the open questions give the next capsule a useful signal?",
                !entry.open_questions.is_empty() || certificate.kind.is_success(),
                format!("{} question(s)", entry.open_questions.len()),
            ),
        ]);
    }
    answers
}
