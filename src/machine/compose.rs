//! Builds the capsule from the folded run and AGENTS.md. Nothing else may enter it.

use std::collections::BTreeSet;

use crate::model::capsule::{self, Capsule, CapsuleLink, RemainingBudget, StateSummary};
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::learnings::{self, Link, SpecVersion};
use crate::model::skill;

use super::document;
use super::iteration::Iteration;
use super::run::RunState;

/// Iterations whose files are linked one by one; older ones are reached through the manifest.
const LINKED_ITERATIONS: usize = 3;
/// Files of the last iteration that are linked one by one; the rest is in its artifacts.json.
const LINKED_FILES: usize = 20;
/// More learnings than this are not sent; the cut is logged in the capsule itself.
const MAX_LEARNINGS_BYTES: usize = 64 * 1024;
/// Digits of the Northstar distance in texts; comparisons use the exact fraction.
pub const DISTANCE_PLACES: u32 = 12;

/// A capsule, and whether it had to be rebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composed {
    pub capsule: Capsule,
    pub rebuilt: bool,
    pub bleeds: bool,
    pub carries_questions: bool,
}

/// Builds the capsule of the iteration that is about to begin. `file` is the text of AGENTS.md.
pub fn compose(state: &RunState, file: &str, role: Role, elapsed_millis: u64) -> Composed {
    let mut built = build(state, file, role, elapsed_millis);
    let rebuilt = capsule::capsule_bleeds(&built);
    if rebuilt {
        built = build(state, &capsule::without_bleed(file), role, elapsed_millis);
    }
    let questions = last_questions(state);
    let carried = built.current_state_summary.open_questions_from_last_iteration.as_deref().unwrap_or(&questions);
    Composed {
        bleeds: capsule::capsule_bleeds(&built),
        carries_questions: carried == questions.as_slice(),
        capsule: built,
        rebuilt,
    }
}

fn build(state: &RunState, file: &str, role: Role, elapsed_millis: u64) -> Capsule {
    let declared = state.loop_file();
    let two = state.spec() == SpecVersion::V2;
    let mut criteria: Vec<String> = state.criteria.iter().map(|c| format!("{}: {}", c.id, c.text)).collect();
    criteria.sort();
    Capsule {
        goal_statement: declared.goal.clone().unwrap_or_default(),
        acceptance_criteria: criteria,
        halting_certificates_applicable: state.certificates.iter().map(ToString::to_string).collect(),
        northstar_metrics: two.then(|| match state.done.last() {
            Some(last) => state.metrics_at(last),
            None => state.metrics_at_baseline(),
        }),
        current_state_summary: summary(state),
        accumulated_learnings: known(state, file),
        remaining_budget: remaining(state, elapsed_millis),
        artifact_links: links(state),
        skill_pack: skill_pack(state, role, false),
        subagent_role: role.name().to_owned(),
        rung_target: two.then(|| state.rung_target()),
    }
}

/// What this role is told of skills: the shipped ones, then the workspace's own, which add and take nobody's place.
/// `own_prompt`: the operator's own prompt stands for the shipped ones.
pub fn skill_pack(state: &RunState, role: Role, own_prompt: bool) -> Vec<String> {
    if state.began_before_replays() {
        return ["prime-safety", "prime-coder", "phuc-swarms"].map(str::to_owned).to_vec();
    }
    let Some(found) = state.found.as_ref().filter(|_| is_told_skills(state, role)) else { return Vec::new() };
    let shipped = skill::SHIPPED.iter().filter(|skill| !own_prompt && skill.concerns(role)).map(skill::Skill::link);
    let shipped = shipped.filter(|link| found.shipped_skills.contains(link));
    let own = found.skills.iter().map(|own| Link { path: skill::kept_own(&own.path), ..own.clone() });
    shipped.chain(own).map(|link| link.to_string()).collect()
}

/// Is this role of this run told skills?
pub fn is_told_skills(state: &RunState, role: Role) -> bool {
    state.playbook().tells_skills() && skill::is_told(role)
}

fn summary(state: &RunState) -> StateSummary {
    let two = state.spec() == SpecVersion::V2;
    let last = state.done.last();
    let is_met = |id: &str| super::measure::was_met_before(state, id);
    let (met, open): (Vec<_>, Vec<_>) = state.criteria.iter().map(|c| c.id.clone()).partition(|id| is_met(id));
    let metrics = last.map_or_else(|| state.metrics_at_baseline(), |last| state.metrics_at(last));
    StateSummary {
        iteration_number: state.iteration_number(),
        residual_current: state.previous_residual().map(|residual| residual.to_string()),
        criteria_met_so_far: met,
        criteria_still_open: open,
        glow_previous_iteration: two.then(|| last.and_then(|it| it.glow.as_ref()).map(|glow| glow.total)),
        northstar_distance_current: two
            .then(|| super::progress::distance(state, &metrics).map(|total| total.to_decimal_text(DISTANCE_PLACES))),
        open_questions_from_last_iteration: two.then(|| last_questions(state)),
    }
}

fn last_questions(state: &RunState) -> Vec<String> {
    let entry = state.done.last().and_then(|last| last.entry.as_ref());
    entry.map(|entry| entry.open_questions.clone()).unwrap_or_default()
}

fn remaining(state: &RunState, elapsed_millis: u64) -> RemainingBudget {
    let limits = &state.limits;
    let tool_calls_left = limits.max_total_tool_calls.saturating_sub(state.spent.tool_calls);
    RemainingBudget {
        iterations_remaining: limits.max_iterations.saturating_sub(state.spent.iterations),
        tool_calls_remaining: tool_calls_left.min(limits.max_tool_calls_per_iteration),
        seconds_remaining: limits.max_total_seconds.saturating_sub(elapsed_millis / 1_000),
    }
}

fn links(state: &RunState) -> Vec<CapsuleLink> {
    let mut links = Vec::new();
    if let Some(sha256) = state.plan {
        links.push(link(format!("{}/plan.json", document::EVIDENCE_ROOT), sha256, "plan"));
    }
    let skip = state.done.len().saturating_sub(LINKED_ITERATIONS);
    for iteration in state.done.iter().skip(skip) {
        links.extend(iteration_links(state, iteration));
    }
    if let Some(last) = state.done.last() {
        links.extend(changed_links(state, last));
    }
    links.sort();
    links
}

/// The files that the last iteration changed: what its entry cites first, then as many as there is room for. All of them
/// are in its artifacts.json, which is linked, and counted there.
fn changed_links(state: &RunState, last: &Iteration) -> Vec<CapsuleLink> {
    let changes = last.artifacts.iter().flat_map(|artifacts| &artifacts.changes);
    let mut files: Vec<_> = changes.filter_map(|change| Some((change.path.as_str(), change.sha256?))).collect();
    if !state.began_before_replays() {
        let claims = last.entry.iter().flat_map(|entry| entry.succeeded.iter().chain(&entry.failed));
        let cited: BTreeSet<&str> = claims.filter_map(|claim| Some(claim.link.as_ref()?.path.as_str())).collect();
        files.sort_by_key(|(path, _)| !cited.contains(path));
        files.truncate(LINKED_FILES);
    }
    files.into_iter().map(|(path, sha256)| link(path.to_owned(), sha256, "artifact")).collect()
}

fn iteration_links(state: &RunState, iteration: &Iteration) -> Vec<CapsuleLink> {
    let dir = document::iteration_dir(iteration.number());
    let mut links = vec![
        link(format!("{dir}/cnf_capsule.json"), iteration.began.capsule, "snapshot"),
        link(format!("{dir}/artifacts.json"), document::digest(&document::artifacts(iteration)), "artifact"),
    ];
    if let Some(certificate) = document::certificate(iteration) {
        links.push(link(format!("{dir}/certificate.json"), document::digest(&certificate), "proof"));
    }
    if let Some(entry) = document::entry(state, iteration) {
        links.push(link(format!("{dir}/agents_md_entry.md"), Digest::of(entry.as_bytes()), "log"));
    }
    if let Some(glow) = document::glow(iteration) {
        links.push(link(format!("{dir}/glow.json"), document::digest(&glow), "proof"));
    }
    links
}

fn link(path: String, sha256: Digest, role: &str) -> CapsuleLink {
    CapsuleLink { path, sha256, role: role.to_owned() }
}

/// When a run started is not knowledge, and would give the same facts different bytes.
fn without_start_times(learnings: &str) -> String {
    learnings.split_inclusive('\n').filter(|line| !line.starts_with("- started: ")).collect()
}

/// What the capsule holds of AGENTS.md.
fn known(state: &RunState, file: &str) -> String {
    if state.began_before_replays() {
        return bounded_learnings(&without_start_times(file));
    }
    without_start_times(&learnings::for_capsule(file, state.run()))
}

/// The rule of older runs.
fn bounded_learnings(learnings: &str) -> String {
    if learnings.len() <= MAX_LEARNINGS_BYTES {
        return learnings.to_owned();
    }
    let mut start = learnings.len() - MAX_LEARNINGS_BYTES;
    while !learnings.is_char_boundary(start) {
        start += 1;
    }
    let cut = &learnings[..start];
    format!(
        "[COMPACTION] The first {} lines ({} bytes) of AGENTS.md are not repeated here; read the file.\n{}",
        cut.lines().count(),
        cut.len(),
        &learnings[start..]
    )
}
