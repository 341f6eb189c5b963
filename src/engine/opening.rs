//! The first message of an agent call.
//!
//! Not here: the rest of the conversation (`calls`), what a value call is told (`value`), what a pass is told (`items`).
//! Invariant: no prose of one agent reaches another; what it handed in, typed, does.

use serde_json::{Value, json};

use crate::machine::document::check_output_path;
use crate::machine::event::{Phase, Probe};
use crate::machine::iteration::Iteration;
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

/// What a call of this purpose is told first.
pub(super) fn message(
    cx: &Context<'_>,
    purpose: Purpose,
    paraphrase: Option<u8>,
    subject: Option<&str>,
) -> Result<String, EngineError> {
    match purpose {
        Purpose::Scout | Purpose::Solver | Purpose::Skeptic => first_message(cx, purpose.role(), paraphrase),
        Purpose::Author | Purpose::Critic | Purpose::Detour => pass_message(cx, purpose, subject),
        _ => value::message(cx, purpose, subject),
    }
}

/// Capsule first, then the typed output of the role before. No prose of another agent.
fn first_message(cx: &Context<'_>, role: Role, paraphrase: Option<u8>) -> Result<String, EngineError> {
    let state = cx.state();
    let iteration =
        state.current.as_ref().ok_or_else(|| EngineError::Internal("an agent without an iteration".to_owned()))?;
    let bytes = cx.blobs().get(&iteration.began.capsule)?;
    let mut capsule: Capsule = serde_json::from_slice(&bytes)
        .map_err(|e| EngineError::Internal(format!("the capsule cannot be read: {e}")))?;
    capsule.subagent_role = role.name().to_owned();
    if let Some(number) = paraphrase {
        capsule.goal_statement = prompts::paraphrase(&capsule.goal_statement, number);
    }
    let mut text = String::from("CAPSULE\n");
    text.push_str(&capsule.text().map_err(|e| EngineError::Internal(e.to_string()))?);
    match role {
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
        }
        _ => {}
    }
    Ok(text)
}

/// The first message of a pass: the capsule, which call it is, what it is about, and what the last pass came to.
fn pass_message(cx: &Context<'_>, purpose: Purpose, subject: Option<&str>) -> Result<String, EngineError> {
    let role = purpose.role();
    let mut text = first_message(cx, role, None)?;
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
