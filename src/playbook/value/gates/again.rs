//! A gate that is not passed: a person mends what is missing or says what agents have to know, and it is tried again.
//!
//! Gates that are passed stay passed, so that nothing is paid for twice. A run that began before that was ended by such
//! a gate, and had to be started anew.

use crate::machine::operator::Decision;
use crate::machine::run::RunState;
use crate::machine::todo::{Effect, Todo};
use crate::model::decision::{Answer, Request};
use crate::model::value::{Action, Gate};
use crate::playbook::value::state::{OpenStep, ValueState};

use super::{MAX_TEXT, Move, ask, bounded, need};

/// The answer that tries again, without a word for the agents.
const RETRY: &str = "retry";
const WHY: &str = "before the work can begin, this has to be there";

/// Does a gate that fails end the run? Before the inputs are there nothing was paid for.
pub(super) fn is_final(run: &RunState, gate: Gate) -> bool {
    gate == Gate::Inputs || run.began_before_recovery()
}

/// The question of a gate that was not passed, where one was put.
pub fn asked<'a>(run: &'a RunState, step: &OpenStep) -> Option<&'a Decision> {
    let decision = run.operator.decision(*step.decisions.last()?)?;
    let is_it = matches!(&decision.request, Request::Question { choices, .. } if choices.first().is_some_and(|one| one == RETRY));
    is_it.then_some(decision)
}

/// The gate that waits for a person's help, and its question.
pub fn waiting<'a>(run: &'a RunState, value: &ValueState) -> Option<(Gate, &'a Decision)> {
    let step = value.step.as_ref()?;
    let Action::Gate { gate } = step.action else { return None };
    let decision = asked(run, step).filter(|decision| decision.closed_with().is_none())?;
    Some((gate, decision))
}

/// What follows where the gate's own script says that it is not passed.
pub(super) fn instead(run: &RunState, step: &OpenStep, gate: Gate, detail: &str) -> Option<Move> {
    match asked(run, step) {
        None => {
            let question = format!(
                "{} is not passed: {detail}\nWhat can be done:\n{}\nAnswer `{RETRY}` once it is mended, or say in your own \
                 words what the agents have to know. What is passed stays passed.",
                gate.title(),
                options(gate).iter().map(|option| format!("- {option}")).collect::<Vec<_>>().join("\n"),
            );
            let request = Request::Question { question: bounded(&question, MAX_TEXT), choices: vec![RETRY.to_owned()] };
            Some(ask(run, request, WHY))
        }
        Some(decision) => match decision.closed_with() {
            None => Some(need(Todo::AwaitPerson)),
            // They may have changed the documents: the next attempt is about what stands there now.
            Some(Answer::Text(_)) if !step.documents_read => Some(need(Todo::Effect(Effect::ReadDocuments))),
            Some(_) => None,
        },
    }
}

/// What a person can do about a gate that is not passed.
pub fn options(gate: Gate) -> &'static [&'static str] {
    match gate {
        Gate::Inputs => &[
            "write or mend the document that is named, or set `value: { vision, prd }` in loop.yaml to where it is",
            "commit or put away changes of yours, or let them be with `value: { git: { allow_dirty: true } }`",
            "then start a new run: nothing was spent",
        ],
        Gate::VisionValidated => &["revise VISION.md", "try again: an analysis may fail for reasons of its own"],
        Gate::VisionClassified => &[
            "narrow VISION.md and PRD.md to a first slice that is worth something by itself",
            "start a new run with `value: { epics: { mode: off } }`: then it is taken as one piece",
        ],
        Gate::ContextDiscovered => &["say what the workspace is and needs", "try again"],
        Gate::PrdCritique => &["revise PRD.md", "try again: the critique is made anew"],
        Gate::PlanGenerated => {
            &["make PRD.md more concrete: what has to be there, requirement by requirement", "say how to cut the work"]
        }
        Gate::Craap | Gate::Clarity | Gate::Validate | Gate::Connect | Gate::Break | Gate::Prune | Gate::Tidy => &[
            "say what is not known, or take the requirement out of PRD.md",
            "start a new run with `value: { strict_gates: false }`: then such findings are warnings",
        ],
        Gate::Blockers => {
            &["remove what blocks the tasks, or say how else they can be done", "take the requirement out of PRD.md"]
        }
        Gate::VrcInit => &["try again"],
        Gate::Preflight => &[
            "install the tools and set the variables that are named, in the environment that `nightloop resume` gets",
            "say what can be used in their place",
        ],
    }
}
