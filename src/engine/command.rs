//! What an operator tells a run, from any console or command line. Every command becomes an event that
//! says who sent it, or is refused with a reason.

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::model::budget::Dimension;
use crate::model::decision::{Answer, DecisionId};

/// Commands that may wait for the engine at one time.
const QUEUE: usize = 64;

/// One order of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Hold after the present step.
    Pause,
    /// Lift the pause.
    Resume,
    /// Stop now: writes scratch/STOP.
    Stop,
    /// Stop at the end of this iteration; `false` takes it back.
    StopAfterIteration(bool),
    /// Do not wait for the model server any longer.
    RetryNow,
    /// A word for the next agent call.
    Steer(String),
    /// Take back what a finished iteration changed.
    Undo(u32),
    RaiseBudget {
        dimension: Dimension,
        to: String,
    },
    Answer {
        id: DecisionId,
        answer: Answer,
        note: Option<String>,
        /// The document that `approve` names by its digest.
        document: Option<String>,
    },
    /// A viewer came; it may act, or only look.
    Attached {
        may_act: bool,
    },
    /// A viewer went.
    Detached {
        why: String,
    },
}

/// What became of a command: a sentence for the operator either way.
pub type Receipt = Result<String, String>;

/// A command on its way to the engine.
#[derive(Debug)]
pub struct Order {
    pub command: Command,
    pub by: String,
    pub receipt: oneshot::Sender<Receipt>,
}

/// Where orders are given. Cheap to clone; works from any thread.
#[derive(Debug, Clone)]
pub struct Orders(mpsc::Sender<Order>);

impl Orders {
    /// The two ends of a run's orders.
    pub fn channel() -> (Self, mpsc::Receiver<Order>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self(sender), receiver)
    }

    /// Hands an order over. The receipt comes when the engine has recorded it.
    pub fn send(&self, command: Command, by: impl Into<String>) -> oneshot::Receiver<Receipt> {
        let (receipt, answer) = oneshot::channel();
        let refused = match self.0.try_send(Order { command, by: by.into(), receipt }) {
            Ok(()) => return answer,
            Err(mpsc::error::TrySendError::Full(order)) => (order, "too many commands are waiting for the engine"),
            Err(mpsc::error::TrySendError::Closed(order)) => (order, "the run has ended"),
        };
        let (order, why) = refused;
        let _ = order.receipt.send(Err(why.to_owned()));
        answer
    }
}
