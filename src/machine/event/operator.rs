//! Events of people: what they were asked, what they said, what they told the run to do.

use serde::{Deserialize, Serialize};

use crate::machine::words::{Place, Told, Topic::People};
use crate::model::budget::Dimension;
use crate::model::decision::{Answer, DecisionId, Request};

use super::family::family;
use super::probe::ProbeResult;

family! {
    /// What people were asked, and what they said.
    OperatorEvent {
        DecisionAsked = "decision.asked", Fact, |asked| asked.request.blobs();
        DecisionAnswered = "decision.answered", Person, |answered| answered.answer.blob().into_iter().collect();
        DecisionSettled = "decision.settled", Fact, |settled| settled.check.iter().map(|check| check.output).collect();
        PauseRequested = "pause.requested", Person;
        PauseBegan = "pause.began", Fact;
        PauseLifted = "pause.lifted", Person;
        StopScheduled = "stop.scheduled", Person;
        SteerQueued = "steer.queued", Person;
        SteerDelivered = "steer.delivered", Fact;
        BudgetRaised = "budget.raised", Person;
        RetryRequested = "retry.requested", Person;
        UndoRequested = "undo.requested", Person;
        ViewerAttached = "viewer.attached", Person;
        ViewerDetached = "viewer.detached", Person;
    }
}

impl OperatorEvent {
    pub fn told(&self, _at: &Place) -> Told {
        let text = match self {
            Self::DecisionAsked(asked) => {
                format!("{} waits for you ({}): {}", asked.id, asked.request.name(), asked.request.gist())
            }
            Self::DecisionAnswered(answered) => {
                format!("{} answered by {}: {}", answered.id, answered.by, answered.answer.name())
            }
            Self::DecisionSettled(settled) => {
                return Told::judged(People, settled.closed, format!("{}: {}", settled.id, settled.detail));
            }
            Self::PauseRequested(pause) => format!("{} asked for a pause after this step", pause.by),
            Self::PauseBegan(_) => "paused".to_owned(),
            Self::PauseLifted(lifted) => format!("continued by {}", lifted.by),
            Self::StopScheduled(stop) if stop.scheduled => format!("{} asked for a stop after this iteration", stop.by),
            Self::StopScheduled(stop) => format!("{} cancelled the stop", stop.by),
            Self::SteerQueued(steer) => format!("message {} from {}: {}", steer.number, steer.by, steer.text),
            Self::SteerDelivered(delivered) => {
                let numbers: Vec<String> = delivered.numbers.iter().map(u32::to_string).collect();
                format!("message {} delivered to {}", numbers.join(", "), delivered.call)
            }
            Self::BudgetRaised(raised) => {
                format!("{} raised {} from {} to {}", raised.by, raised.dimension, raised.from, raised.to)
            }
            Self::RetryRequested(retry) => format!("{} asked for a retry now", retry.by),
            Self::UndoRequested(undo) => format!("{} asked to undo iteration {}", undo.by, undo.iteration),
            Self::ViewerAttached(viewer) => {
                let how = if viewer.may_act { "attached and may act" } else { "attached, read-only" };
                return Told::quiet(People, format!("{} {how}", viewer.viewer));
            }
            Self::ViewerDetached(viewer) => {
                return Told::quiet(People, format!("{} detached: {}", viewer.viewer, viewer.why));
            }
        };
        Told::new(People, text)
    }
}

/// The tool call that waits for a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedBy {
    pub call: String,
    /// Models may number their calls anew in every reply.
    pub turn: u32,
    pub tool: String,
}

/// Something waits for a person from here on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionAsked {
    pub id: DecisionId,
    pub request: Request,
    /// One sentence: what makes it necessary.
    pub why: String,
    pub asked_by: Option<AskedBy>,
}

/// Intent where the answer has to be carried out; the end of it where not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionAnswered {
    pub id: DecisionId,
    pub answer: Answer,
    pub note: Option<String>,
    pub by: String,
}

/// An answer was carried out: the verification ran, or the document was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionSettled {
    pub id: DecisionId,
    /// `false`: it is open again.
    pub closed: bool,
    pub check: Option<ProbeResult>,
    pub detail: String,
}

/// The run is to hold after its present step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PauseRequested {
    pub by: String,
}

/// The step is done; from here on the run holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PauseBegan {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PauseLifted {
    pub by: String,
}

/// The run is to stop at the end of this iteration, or no longer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StopScheduled {
    pub by: String,
    pub scheduled: bool,
}

/// A word of the operator for the next agent call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteerQueued {
    pub number: u32,
    pub text: String,
    pub by: String,
}

/// Words that stand in what is sent next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteerDelivered {
    pub numbers: Vec<u32>,
    pub call: String,
}

/// An operator's override: the only way a limit moves, and only upwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetRaised {
    pub dimension: Dimension,
    pub from: String,
    pub to: String,
    pub by: String,
}

/// A wait for the model server was cut short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetryRequested {
    pub by: String,
}

/// Someone watches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViewerAttached {
    pub viewer: String,
    pub may_act: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViewerDetached {
    pub viewer: String,
    pub why: String,
}

/// A person took an iteration back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UndoRequested {
    pub iteration: u32,
    pub by: String,
}
