//! Builds the AGENTS.md entry and the GLOW score of an iteration, and answers the Socratic questions.
//!
//! Agents propose; this decides what each proposal is worth. A claim of Lane A or B without an artifact that the
//! iteration touched or the output of one of its checks is demoted to C, and the demotion stays visible.

use std::collections::BTreeSet;

use crate::model::capsule;
use crate::model::certificate::{Certificate, CertificateKind};
use crate::model::digest::Digest;
use crate::model::glow::{self, Glow};
use crate::model::ids::Role;
use crate::model::lane::Lane;
use crate::model::learnings::{
    self, Claim, Entry, GlowLine, Link, Measures, NorthstarDirection, Operators, ResidualDirection, SpecVersion,
};
use crate::model::report::ReportedClaim;

use super::backing;
use super::compose::DISTANCE_PLACES;
use super::document;
use super::event::{AgentEnd, Answer, Phase, Probe};
use super::iteration::Iteration;
use super::measure;
use super::phuc;
use super::playbook::Learned;
use super::progress;
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
    let by_check = !state.began_before_replays() && progress::is_closer_by_check(state, iteration);
    let glow = glow::score(&glow::Facts {
        sub_goal_done: part_done || sub_goal_done(iteration) || by_check,
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
    // What a playbook says in Lane A was its to prove when older runs were recorded, too.
    let observed = |claim: Claim| if claim.lane == Lane::B { backed(state, claim) } else { claim };
    succeeded.extend(learned.succeeded.into_iter().map(observed));
    failed.extend(learned.failed.into_iter().map(observed));
    if let Some((report, links)) = iteration.skeptic(None) {
        let counts = |path: &str| state.began_before_replays() || backing::is_of_iteration(iteration, path);
        let digest_of = |path: &str| links.get(path).copied().filter(|_| counts(path));
        let resolve = |claim: &ReportedClaim| resolve_claim(state, claim, digest_of);
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
    if !state.began_before_replays() {
        // A blank line stands before each entry. What older ones lose to it is in the compaction log.
        return count(learnings::render_entry(&entry.without_operators(), state.spec())).saturating_add(1);
    }
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

fn resolve_claim(state: &RunState, claim: &ReportedClaim, digest_of: impl Fn(&str) -> Option<Digest>) -> Claim {
    let link =
        claim.artifact.as_ref().and_then(|path| digest_of(path).map(|sha256| Link { path: path.clone(), sha256 }));
    backed(state, Claim { lane: claim.lane, text: clean(&claim.text), link, demoted_from: None })
}

/// The claim if an artifact backs it, or as the hypothesis that it is. Older runs believed an observation as it was.
fn backed(state: &RunState, claim: Claim) -> Claim {
    let needs_backing = match claim.lane {
        Lane::A => true,
        Lane::B => !state.began_before_replays(),
        Lane::C => false,
    };
    if needs_backing && claim.link.is_none() {
        return Claim { lane: Lane::C, demoted_from: Some(claim.lane), ..claim };
    }
    claim
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
    if let Some(more) = iteration.artifacts.as_ref().and_then(|artifacts| artifacts.more.as_ref()) {
        note(more.advice());
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
    if let Some(repeated) = phuc::repetition(state, iteration) {
        note(repeated);
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
    let now = progress::distance(state, &state.metrics_at(iteration));
    let before = progress::distance(state, &progress::metrics_before(state));
    let direction = match (before, now) {
        (Some(before), Some(now)) if now < before => NorthstarDirection::Improving,
        (Some(before), Some(now)) if now > before => NorthstarDirection::Drifting,
        _ => NorthstarDirection::Stable,
    };
    (now.map(|total| total.to_decimal_text(DISTANCE_PLACES)), direction)
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
    let new_claims: Vec<&Claim> = entry
        .succeeded
        .iter()
        .chain(&entry.failed)
        .filter(|claim| !earlier.contains(claim.text.as_str()))
        .filter(|claim| state.began_before_replays() || !is_engine_fact(iteration, claim))
        .collect();
    let made: BTreeSet<_> = state.done.iter().filter_map(|it| it.artifacts.as_ref()).flat_map(|a| &a.changes).collect();
    let files = u32::try_from(changes.iter().filter(|change| !made.contains(change)).count()).unwrap_or(u32::MAX);
    let moved = progress::of_iteration(state, iteration, certificate, &by_check);
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
        files_changed: (!state.began_before_replays()).then_some(files),
        claim_lanes: new_claims.iter().map(|claim| lane_learnt(state, claim, files)).collect(),
        metric_moved: moved.measured,
        residual_metric: moved.by_residual,
        linked_metric: moved.linked,
        sub_goal_done: false,
    }
}

/// Is it the engine's own remark about the iteration, and nothing that was learnt in it?
fn is_engine_fact(iteration: &Iteration, claim: &Claim) -> bool {
    claim.link.as_ref() == Some(&document::artifacts_link(iteration))
}

/// What a claim is worth as learning: without an artifact, or from an iteration that changed nothing, a hypothesis.
fn lane_learnt(state: &RunState, claim: &Claim, files_changed: u32) -> Lane {
    let backed = state.began_before_replays() || (claim.link.is_some() && files_changed > 0);
    if backed { claim.lane } else { Lane::C }
}

/// Did the Scout's sub-goal turn true by its check?
fn sub_goal_done(iteration: &Iteration) -> bool {
    let passed = |phase| iteration.probe(phase, &Probe::SubGoal).map(|result| result.end.passed());
    passed(Phase::Scouted) == Some(false) && passed(Phase::Iteration) == Some(true)
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
        lane_c_as_evidence(state, iteration, certificate),
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
                entry.operators.as_ref().is_some_and(Operators::is_complete),
                if entry.operators.as_ref().is_some_and(Operators::is_complete) { "yes" } else { "no" }.to_owned(),
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

/// Does the certificate rest on anything that is only guidance? A criterion that counts as met must have been seen by a
/// check, or shown by an artifact.
fn lane_c_as_evidence(state: &RunState, iteration: &Iteration, certificate: &Certificate) -> Answer {
    let question = "Are any Lane C entries being used as halt evidence?".to_owned();
    if state.began_before_replays() {
        let answer = "no: the certificate reads checks and resolved links only".to_owned();
        return Answer { question, answer, ok: true };
    }
    let met: Vec<_> = certificate.acceptance_criteria_checklist.iter().filter(|finding| finding.met).collect();
    let by_check =
        met.iter().filter(|f| iteration.probe(Phase::Iteration, &Probe::Criterion(f.id.clone())).is_some()).count();
    let unbacked: Vec<&str> =
        met.iter().filter(|finding| finding.evidence_link.is_none()).map(|finding| finding.id.as_str()).collect();
    let answer = match (met.len(), unbacked.as_slice()) {
        (0, _) => "no: no criterion counts as met".to_owned(),
        (all, []) => format!("no: {by_check} criteria rest on a check's output, {} on an artifact", all - by_check),
        (_, unbacked) => format!("yes: nothing but words backs {}", unbacked.join(", ")),
    };
    Answer { question, answer, ok: unbacked.is_empty() }
}

#[cfg(test)]
mod tests;
