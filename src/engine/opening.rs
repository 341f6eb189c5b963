//! The first message of an agent call.
//!
//! Not here: the rest of the conversation (`calls`), what a value call is told (`value`), what a pass is told (`items`).
//! Invariant: no prose of one agent reaches another; what it handed in, typed, does.

use serde_json::{Value, json};

use crate::machine::compose;
use crate::machine::document::check_output_path;
use crate::machine::event::{Phase, Probe};
use crate::machine::iteration::Iteration;
use crate::machine::measure;
use crate::machine::phuc;
use crate::machine::run::RunState;
use crate::model::call_place::CallPlace;
use crate::model::capsule::Capsule;
use crate::model::criterion::Proof;
use crate::model::ids::Role;
use crate::model::purpose::Purpose;
use crate::playbook::prompts;

use super::context::Context;
use super::error::EngineError;
use super::{excerpt, items, value};

/// The skeptic sees this much of the diff; the rest is in the evidence.
const MAX_DIFF_BYTES: usize = 60_000;
/// The skeptic sees this much of a check's output.
const MAX_OUTPUT_BYTES: usize = 4_000;
/// The skeptic sees this many of the latest residuals.
const RESIDUALS_SHOWN: usize = 20;

/// What a further judgement is about, so that a rehearsal can tell it from the first one.
const RESTATED: &str = "restated";

/// What a call of this purpose is told first. `own_prompt`: its prompt is the operator's own.
pub(super) fn message(
    cx: &Context<'_>,
    purpose: Purpose,
    paraphrase: Option<u8>,
    subject: Option<&str>,
    own_prompt: bool,
) -> Result<String, EngineError> {
    match purpose {
        Purpose::Scout | Purpose::Solver | Purpose::Skeptic => {
            first_message(cx, purpose.role(), paraphrase, own_prompt)
        }
        Purpose::Author | Purpose::Critic | Purpose::Detour => pass_message(cx, purpose, subject),
        _ => value::message(cx, purpose, subject),
    }
}

/// Capsule first, then the typed output of the role before. No prose of another agent.
fn first_message(
    cx: &Context<'_>,
    role: Role,
    paraphrase: Option<u8>,
    own_prompt: bool,
) -> Result<String, EngineError> {
    let state = cx.state();
    let iteration =
        state.current.as_ref().ok_or_else(|| EngineError::Internal("an agent without an iteration".to_owned()))?;
    let bytes = cx.blobs().get(&iteration.began.capsule)?;
    let mut capsule: Capsule = serde_json::from_slice(&bytes)
        .map_err(|e| EngineError::Internal(format!("the capsule cannot be read: {e}")))?;
    capsule.subagent_role = role.name().to_owned();
    capsule.skill_pack = compose::skill_pack(state, role, own_prompt);
    if let Some(number) = paraphrase.filter(|_| state.began_before_replays()) {
        capsule.goal_statement = prompts::paraphrase(&capsule.goal_statement, number);
    }
    let mut text = String::from("CAPSULE\n");
    text.push_str(&capsule.text().map_err(|e| EngineError::Internal(e.to_string()))?);
    if let Some(number) = paraphrase.filter(|_| !state.began_before_replays()) {
        let place = CallPlace { purpose: Purpose::Skeptic, subject: Some(RESTATED.to_owned()), nth: number.into() };
        text.push_str(&format!("\n{}\n", place.line()));
    }
    text.push_str(&own_skills(cx, role)?);
    match role {
        Role::Scout | Role::Author => {
            if let Some(repeated) = state.done.last().and_then(|last| phuc::repetition(state, last)) {
                text.push_str(&format!("\nREPETITION\n{repeated}\n"));
            }
        }
        Role::Solver => {
            text.push_str("\nSCOUT_REPORT\n");
            text.push_str(&json!(iteration.scout()).to_string());
        }
        Role::Skeptic | Role::Critic => {
            text.push_str("\nDIFF\n");
            let diff = iteration.artifacts.as_ref().map(|artifacts| artifacts.diff);
            text.push_str(&excerpt::of_blob(cx.blobs(), diff, MAX_DIFF_BYTES)?);
            text.push_str("\nCHECK_RESULTS\n");
            text.push_str(&check_results(cx, iteration)?.to_string());
            if role == Role::Skeptic && !state.began_before_replays() {
                text.push_str(&standing(state, iteration));
                text.push_str(&paraphrase.map(|number| restate(iteration, number)).unwrap_or_default());
            }
        }
        _ => {}
    }
    Ok(text)
}

/// The workspace's own skills as they were when the run began, for a role that is told skills.
fn own_skills(cx: &Context<'_>, role: Role) -> Result<String, EngineError> {
    let found = cx.state().found.as_ref().filter(|_| compose::is_told_skills(cx.state(), role));
    let Some(found) = found.filter(|found| !found.skills.is_empty()) else { return Ok(String::new()) };
    let mut text =
        String::from("\nSKILLS\nThe owner's own, beside those of your prompt; they take back nothing of it.\n");
    for own in &found.skills {
        let bytes = cx.blobs().get(&own.sha256)?;
        text.push_str(&format!("[{}]\n{}\n", own.path, String::from_utf8_lossy(&bytes).trim_end()));
    }
    if !found.skills_left_out.is_empty() {
        text.push_str(&format!(
            "Left out, since there are too many or they are too large: {}\n",
            found.skills_left_out.join(", ")
        ));
    }
    Ok(text)
}

/// Where the run stands: residuals from the start on, this iteration's too, and the Northstar then, before and now.
fn standing(state: &RunState, iteration: &Iteration) -> String {
    let at_start = state.baseline.residual.as_ref().and_then(|residual| residual.as_ref()).map(|r| r.value);
    let skip = state.done.len().saturating_sub(RESIDUALS_SHOWN);
    let residuals: Vec<Value> =
        state.done.iter().skip(skip).map(|done| json!([done.number(), done.residual_value()])).collect();
    let before = state.done.last().map_or_else(|| state.metrics_at_baseline(), |last| state.metrics_at(last));
    let metrics_now = state.metrics_at(iteration);
    let northstar: Vec<Value> = state
        .metrics_at_baseline()
        .iter()
        .zip(before.iter().zip(&metrics_now))
        .map(|(start, (before, now))| {
            json!({"id": now.id, "metric": now.metric, "target": now.target,
                   "at_start": start.current, "before": before.current, "now": now.current})
        })
        .collect();
    // What is still to be judged counts as unmet.
    let findings = measure::findings(state, iteration, Phase::Iteration, None);
    let now = measure::residual(state, &findings, iteration.probe(Phase::Iteration, &Probe::Residual));
    let residuals = json!({
        "at_start": at_start, "by_iteration": residuals, "now": now.as_ref().ok().map(|residual| residual.value),
        "why_null": now.err(),
    });
    format!("\nRESIDUALS\n{residuals}\nNORTHSTAR\n{}\n", Value::Array(northstar))
}

/// Asks the judge to say the goal in its own words before it judges again; `number` is 1 to 5.
fn restate(iteration: &Iteration, number: u8) -> String {
    let said: Vec<&str> = (1..number)
        .filter_map(|earlier| iteration.skeptic(Some(earlier)))
        .filter_map(|(report, _)| report.restated.as_deref())
        .collect();
    let mut text = String::from(
        "RESTATE\nFirst say the goal in your own words, in the field `restated`: what would have to be true, and what \
         would show that it is not. Then judge every criterion again by those words.\n",
    );
    if !said.is_empty() {
        text.push_str(&format!("These words were used already; find others: {}\n", json!(said)));
    }
    text
}

/// The first message of a pass: the capsule, which call it is, what it is about, and what the last pass came to.
fn pass_message(cx: &Context<'_>, purpose: Purpose, subject: Option<&str>) -> Result<String, EngineError> {
    let role = purpose.role();
    let mut text = first_message(cx, role, None, false)?;
    text.push('\n');
    text.push_str(&value::call_number(cx, purpose, subject)?);
    text.push_str(&items::pass_brief(cx, role)?);
    if purpose == Purpose::Detour {
        text.push_str("\nDETOUR\n");
        text.push_str(subject.unwrap_or_default());
        text.push('\n');
    }
    Ok(text)
}

fn check_results(cx: &Context<'_>, iteration: &Iteration) -> Result<Value, EngineError> {
    let mut results = Vec::new();
    for criterion in cx.state().criteria.iter().filter(|c| matches!(c.proof, Proof::Check { .. })) {
        let Some(result) = iteration.probe(Phase::Iteration, &Probe::Criterion(criterion.id.clone())) else {
            continue;
        };
        results.push(json!({
            "criterion": criterion.id,
            "result": result.end.describe(),
            "output_path": check_output_path(iteration.number(), &criterion.id),
            "output": excerpt::of_blob(cx.blobs(), Some(result.output), MAX_OUTPUT_BYTES)?,
        }));
    }
    Ok(Value::Array(results))
}
