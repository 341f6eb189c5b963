//! The states of a run and the edges between them, as the seeds draw them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::learnings::SpecVersion;
use crate::model::stop::ExitStatus;

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    Init,
    IntakeGoal,
    NullCheck,
    DreamGoal,
    SpawnSubagent,
    CollectArtifacts,
    CheckHalting,
    AccumulateLearnings,
    GlowCheck,
    BudgetCheck,
    ExitConverged,
    ExitDiverged,
    ExitBudgetExceeded,
    ExitBlocked,
    ExitNeedInfo,
}

impl State {
    pub const ALL: [Self; 15] = [
        Self::Init,
        Self::IntakeGoal,
        Self::NullCheck,
        Self::DreamGoal,
        Self::SpawnSubagent,
        Self::CollectArtifacts,
        Self::CheckHalting,
        Self::AccumulateLearnings,
        Self::GlowCheck,
        Self::BudgetCheck,
        Self::ExitConverged,
        Self::ExitDiverged,
        Self::ExitBudgetExceeded,
        Self::ExitBlocked,
        Self::ExitNeedInfo,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Init => "INIT",
            Self::IntakeGoal => "INTAKE_GOAL",
            Self::NullCheck => "NULL_CHECK",
            Self::DreamGoal => "DREAM_GOAL",
            Self::SpawnSubagent => "SPAWN_SUBAGENT",
            Self::CollectArtifacts => "COLLECT_ARTIFACTS",
            Self::CheckHalting => "CHECK_HALTING",
            Self::AccumulateLearnings => "ACCUMULATE_LEARNINGS",
            Self::GlowCheck => "GLOW_CHECK",
            Self::BudgetCheck => "BUDGET_CHECK",
            Self::ExitConverged => "EXIT_CONVERGED",
            Self::ExitDiverged => "EXIT_DIVERGED",
            Self::ExitBudgetExceeded => "EXIT_BUDGET_EXCEEDED",
            Self::ExitBlocked => "EXIT_BLOCKED",
            Self::ExitNeedInfo => "EXIT_NEED_INFO",
        }
    }

    pub const fn exit(self) -> Option<ExitStatus> {
        match self {
            Self::ExitConverged => Some(ExitStatus::ExitConverged),
            Self::ExitDiverged => Some(ExitStatus::ExitDiverged),
            Self::ExitBudgetExceeded => Some(ExitStatus::ExitBudgetExceeded),
            Self::ExitBlocked => Some(ExitStatus::ExitBlocked),
            Self::ExitNeedInfo => Some(ExitStatus::ExitNeedInfo),
            Self::Init
            | Self::IntakeGoal
            | Self::NullCheck
            | Self::DreamGoal
            | Self::SpawnSubagent
            | Self::CollectArtifacts
            | Self::CheckHalting
            | Self::AccumulateLearnings
            | Self::GlowCheck
            | Self::BudgetCheck => None,
        }
    }

    pub const fn of_exit(status: ExitStatus) -> Self {
        match status {
            ExitStatus::ExitConverged => Self::ExitConverged,
            ExitStatus::ExitDiverged => Self::ExitDiverged,
            ExitStatus::ExitBudgetExceeded => Self::ExitBudgetExceeded,
            ExitStatus::ExitBlocked => Self::ExitBlocked,
            ExitStatus::ExitNeedInfo => Self::ExitNeedInfo,
        }
    }

    /// The states that may follow. EXIT_BLOCKED is reachable from every working state: an invariant
    /// violation or a stop must never wait for the end of an iteration to be recorded.
    pub const fn followers(self, spec: SpecVersion) -> &'static [Self] {
        match self {
            Self::Init => &[Self::IntakeGoal, Self::ExitBlocked],
            Self::IntakeGoal => &[Self::NullCheck, Self::ExitBlocked],
            Self::NullCheck => &[Self::ExitNeedInfo, Self::DreamGoal, Self::ExitBlocked],
            Self::DreamGoal => &[Self::SpawnSubagent, Self::ExitNeedInfo, Self::ExitBlocked],
            Self::SpawnSubagent => &[Self::CollectArtifacts, Self::ExitBlocked],
            Self::CollectArtifacts => &[Self::CheckHalting, Self::ExitBlocked],
            Self::CheckHalting => &[Self::AccumulateLearnings, Self::ExitBlocked],
            Self::AccumulateLearnings => match spec {
                SpecVersion::V2 => &[Self::GlowCheck, Self::ExitBlocked],
                SpecVersion::V1 => &[Self::BudgetCheck, Self::ExitBlocked],
            },
            Self::GlowCheck => &[Self::BudgetCheck, Self::ExitBlocked],
            Self::BudgetCheck => &[
                Self::ExitDiverged,
                Self::ExitConverged,
                Self::ExitBudgetExceeded,
                Self::ExitBlocked,
                Self::SpawnSubagent,
            ],
            Self::ExitConverged
            | Self::ExitDiverged
            | Self::ExitBudgetExceeded
            | Self::ExitBlocked
            | Self::ExitNeedInfo => &[],
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_states_have_no_followers_and_every_other_state_can_block() {
        for spec in [SpecVersion::V1, SpecVersion::V2] {
            for state in State::ALL {
                let followers = state.followers(spec);
                assert_eq!(state.exit().is_some(), followers.is_empty(), "{state}");
                assert_eq!(state.exit().is_none(), followers.contains(&State::ExitBlocked), "{state}");
            }
        }
    }

    #[test]
    fn exits_map_both_ways() {
        for state in State::ALL {
            if let Some(status) = state.exit() {
                assert_eq!(State::of_exit(status), state);
                assert_eq!(status.name(), state.name());
            }
        }
    }

    #[test]
    fn spec_one_has_no_glow_check() {
        assert!(!State::AccumulateLearnings.followers(SpecVersion::V1).contains(&State::GlowCheck));
    }
}
