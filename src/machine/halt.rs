//! The ways a run ends, as events.

use crate::model::budget;
use crate::model::stop::{ExitStatus, StopReason};

use super::event::RunHalted;
use super::run::RunState;

/// The end of a run, for a reason.
pub fn halt(state: &RunState, status: ExitStatus, stop_reason: StopReason, detail: impl Into<String>) -> RunHalted {
    RunHalted {
        status,
        stop_reason,
        forbidden_state: None,
        last_state: state.state,
        detail: detail.into(),
        exhausted: None,
        signal: None,
    }
}

/// The end of a run at a limit.
pub fn over_budget(state: &RunState, exhausted: budget::Exhausted) -> RunHalted {
    let reason = match exhausted.dimension {
        budget::Dimension::Iterations => StopReason::MaxIters,
        budget::Dimension::TotalSeconds
        | budget::Dimension::TotalToolCalls
        | budget::Dimension::TotalTokens
        | budget::Dimension::CostUsd
        | budget::Dimension::IterationSeconds
        | budget::Dimension::IterationToolCalls => StopReason::MaxToolCalls,
    };
    let detail = format!("{} reached: {} of {}", exhausted.dimension, exhausted.observed, exhausted.limit);
    RunHalted { exhausted: Some(exhausted), ..halt(state, ExitStatus::ExitBudgetExceeded, reason, detail) }
}

/// The limit that ended the run, where raising it lets the run go on.
pub fn ended_at(state: &RunState) -> Option<&budget::Exhausted> {
    let halted = state.halt.as_ref().filter(|halted| halted.status == ExitStatus::ExitBudgetExceeded)?;
    halted.exhausted.as_ref()
}
