//! How a run ends: the five exits, the closed set of stop reasons, the forbidden states.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The terminal states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ExitStatus {
    ExitConverged,
    ExitDiverged,
    ExitBudgetExceeded,
    ExitBlocked,
    ExitNeedInfo,
}

impl ExitStatus {
    pub const fn name(self) -> &'static str {
        match self {
            Self::ExitConverged => "EXIT_CONVERGED",
            Self::ExitDiverged => "EXIT_DIVERGED",
            Self::ExitBudgetExceeded => "EXIT_BUDGET_EXCEEDED",
            Self::ExitBlocked => "EXIT_BLOCKED",
            Self::ExitNeedInfo => "EXIT_NEED_INFO",
        }
    }

    /// The literal that the exit's output contract uses for `status`.
    pub const fn contract_name(self) -> &'static str {
        match self {
            Self::ExitBlocked => "BLOCKED",
            Self::ExitNeedInfo => "NEED_INFO",
            Self::ExitConverged | Self::ExitDiverged | Self::ExitBudgetExceeded => self.name(),
        }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! closed_set {
    ($(#[$meta:meta])* $name:ident { $($variant:ident => $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $(#[serde(rename = $text)] $variant,)+
        }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

closed_set! {
    /// Why a run ended. Closed: a new reason is a change of this list.
    StopReason {
        Pass => "PASS",
        HaltingCriteriaMissing => "HALTING_CRITERIA_MISSING",
        EvidenceIncomplete => "EVIDENCE_INCOMPLETE",
        InvariantViolation => "INVARIANT_VIOLATION",
        ConvergenceClaimWithoutRpCertificate => "CONVERGENCE_CLAIM_WITHOUT_R_P_CERTIFICATE",
        GlowWithoutNorthstarAlignment => "GLOW_WITHOUT_NORTHSTAR_ALIGNMENT",
        PhucTestFailure1 => "PHUC_TEST_FAILURE_1",
        PhucTestFailure2 => "PHUC_TEST_FAILURE_2",
        PhucTestFailure3 => "PHUC_TEST_FAILURE_3",
        PhucTestFailure4 => "PHUC_TEST_FAILURE_4",
        PhucTestFailure5 => "PHUC_TEST_FAILURE_5",
        BackpressureSignal => "BACKPRESSURE_SIGNAL",
        NorthstarDrift => "NORTHSTAR_DRIFT",
        VerifySkipped => "VERIFY_SKIPPED",
        NullInput => "NULL_INPUT",
        NorthstarMissing => "NORTHSTAR_MISSING",
        MaxIters => "MAX_ITERS",
        MaxToolCalls => "MAX_TOOL_CALLS",
        SilentDivergenceDetected => "SILENT_DIVERGENCE_DETECTED",
        VerificationRungFailed => "VERIFICATION_RUNG_FAILED",
        SecurityBlocked => "SECURITY_BLOCKED",
        SeedDisagreement => "SEED_DISAGREEMENT",
        NonReproducible => "NON_REPRODUCIBLE",
        EnvironmentMismatch => "ENVIRONMENT_MISMATCH",
        NullZeroConfusion => "NULL_ZERO_CONFUSION",
        ClaimPowerInsufficient => "CLAIM_POWER_INSUFFICIENT",
        NoViableFixPath => "NO_VIABLE_FIX_PATH",
        RepeatedFailure => "REPEATED_FAILURE",
        Escalated => "ESCALATED",
        HumanQuit => "HUMAN_QUIT",
    }
}

closed_set! {
    /// States a run must never be in; each has a detector in `machine::forbidden`.
    ForbiddenState {
        InfiniteLoopWithoutHaltingCriteria => "INFINITE_LOOP_WITHOUT_HALTING_CRITERIA",
        ContextBleedBetweenIterations => "CONTEXT_BLEED_BETWEEN_ITERATIONS",
        LearningsNotAccumulated => "LEARNINGS_NOT_ACCUMULATED",
        ConvergenceClaimWithoutCertificate => "CONVERGENCE_CLAIM_WITHOUT_CERTIFICATE",
        StackedSpeculativeIterations => "STACKED_SPECULATIVE_ITERATIONS",
        BudgetIgnore => "BUDGET_IGNORE",
        SilentDivergence => "SILENT_DIVERGENCE",
        GlowWithoutNorthstarAlignment => "GLOW_WITHOUT_NORTHSTAR_ALIGNMENT",
        PhucTestFailure => "PHUC_TEST_FAILURE",
        VerifySkipped => "VERIFY_SKIPPED",
        NorthstarNotRead => "NORTHSTAR_NOT_READ",
    }
}
