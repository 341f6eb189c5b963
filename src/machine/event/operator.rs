//! Events of people: what they were asked, what they said, what they told the run to do.

use serde::{Deserialize, Serialize};

use crate::model::budget::Dimension;
use crate::model::decision::{Answer, DecisionId, Request};

use super::ProbeResult;

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
