//! A detector for each forbidden state. The machine never enters one; these prove it, on every step.
//!
//! The detectors look at the state as it is, not at how it came about, so that a bug, a forged journal or a
//! new playbook is caught all the same.

use crate::model::certificate;
use crate::model::glow;
use crate::model::learnings::SpecVersion;
use crate::model::stop::{ExitStatus, ForbiddenState, StopReason};

use super::run::RunState;
use super::state::State;

/// A forbidden state that was found, and how the run must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    pub forbidden: ForbiddenState,
    pub status: ExitStatus,
    pub stop_reason: StopReason,
    pub what: &'static str,
}

/// The first forbidden state the run is in, if any.
pub fn detect(state: &RunState) -> Option<Violation> {
    ForbiddenState::ALL.iter().find_map(|forbidden| violation(*forbidden, state))
}

/// One detector per forbidden state, spelled out.
pub fn violation(forbidden: ForbiddenState, state: &RunState) -> Option<Violation> {
    let blocked = |stop_reason, what| Some(Violation { forbidden, status: ExitStatus::ExitBlocked, stop_reason, what });
    let past_null_check =
        !matches!(state.state, State::Init | State::IntakeGoal | State::NullCheck) && state.halt.is_none();
    let closing = matches!(state.state, State::GlowCheck | State::BudgetCheck);
    let current = state.current.as_ref();
    match forbidden {
        ForbiddenState::InfiniteLoopWithoutHaltingCriteria => {
            let can_succeed = state.certificates.iter().any(|kind| kind.is_success());
            if past_null_check && !can_succeed {
                return blocked(StopReason::HaltingCriteriaMissing, "no success certificate is declared");
            }
        }
        ForbiddenState::ContextBleedBetweenIterations => {
            if current.is_some_and(|iteration| iteration.began.bleeds) {
                return blocked(
                    StopReason::InvariantViolation,
                    "the capsule points at an earlier discussion, also after it was rebuilt",
                );
            }
        }
        ForbiddenState::LearningsNotAccumulated => {
            let missing = current.is_none_or(|it| it.entry.is_none() || it.learnings_before == it.learnings_after);
            if closing && missing {
                return blocked(StopReason::InvariantViolation, "AGENTS.md did not get this iteration's entry");
            }
        }
        ForbiddenState::ConvergenceClaimWithoutCertificate => {
            let claims = state.state == State::ExitConverged;
            let valid = current
                .and_then(|it| it.certificate.as_ref())
                .is_some_and(|c| c.kind.is_success() && c.residual.is_some());
            if claims && !valid {
                return blocked(
                    StopReason::ConvergenceClaimWithoutRpCertificate,
                    "EXIT_CONVERGED without a certificate",
                );
            }
        }
        ForbiddenState::StackedSpeculativeIterations => {
            // The fold holds one call and refuses a second; two open at once cannot be expressed.
            let open_while_closing = closing && state.state == State::GlowCheck && state.call.is_some();
            if open_while_closing {
                return blocked(StopReason::InvariantViolation, "an agent still runs while the iteration closes");
            }
        }
        ForbiddenState::BudgetIgnore => {
            let over = state.spent.iterations >= state.limits.max_iterations;
            if state.state == State::SpawnSubagent && current.is_none() && over {
                return Some(Violation {
                    forbidden,
                    status: ExitStatus::ExitBudgetExceeded,
                    stop_reason: StopReason::MaxIters,
                    what: "the loop went on past max_iterations",
                });
            }
        }
        ForbiddenState::SilentDivergence => {
            let window = usize::try_from(state.limits.divergence_window).unwrap_or(usize::MAX);
            let diverges = certificate::diverges(&state.residual_history(), window);
            if state.state == State::SpawnSubagent && current.is_none() && diverges {
                return Some(Violation {
                    forbidden,
                    status: ExitStatus::ExitDiverged,
                    stop_reason: StopReason::SilentDivergenceDetected,
                    what: "the loop went on although its residuals diverge",
                });
            }
        }
        ForbiddenState::GlowWithoutNorthstarAlignment => {
            if state.spec() == SpecVersion::V2
                && state.state == State::GlowCheck
                && wins_streak(state) >= state.limits.northstar_drift_window
            {
                return blocked(
                    StopReason::NorthstarDrift,
                    "no Northstar metric advanced in three iterations in a row",
                );
            }
        }
        ForbiddenState::PhucTestFailure => {
            let failed = current.and_then(|it| it.gate.as_ref()).is_some_and(|gate| !gate.passed);
            if state.state == State::ExitConverged && failed {
                return blocked(StopReason::PhucTestFailure5, "EXIT_CONVERGED past a failed gate");
            }
        }
        ForbiddenState::VerifySkipped => {
            if closing && current.is_some_and(|it| it.entry.is_some() && it.certificate.is_none()) {
                return blocked(StopReason::VerifySkipped, "learnings were written without a certificate");
            }
        }
        ForbiddenState::NorthstarNotRead => {
            let read = state.northstar.as_ref().is_some_and(|n| n.problem.is_none() && !n.metrics.is_empty());
            if state.spec() == SpecVersion::V2 && state.state == State::DreamGoal && !read {
                return Some(Violation {
                    forbidden,
                    status: ExitStatus::ExitNeedInfo,
                    stop_reason: StopReason::NorthstarMissing,
                    what: "the Northstar was not read",
                });
            }
        }
    }
    None
}

/// How many of the latest iterations advanced no Northstar metric.
pub fn wins_streak(state: &RunState) -> u64 {
    let scores: Vec<_> = state.iterations().filter_map(|iteration| iteration.glow.as_ref()).collect();
    u64::from(glow::trailing_zero_wins(scores.into_iter()))
}

#[cfg(test)]
mod tests;
