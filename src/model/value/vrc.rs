//! The value reality check: how much of the promised value is there, as an exact decimal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::decimal::Exact;

use super::step::VrcMode;
use super::tools::VrcReport;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GapSeverity {
    Polish,
    Degraded,
    Blocking,
    Critical,
}

impl GapSeverity {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Polish => "polish",
            Self::Degraded => "degraded",
            Self::Blocking => "blocking",
            Self::Critical => "critical",
        }
    }
}

/// Something between the present state and the vision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    #[serde(default)]
    pub id: String,
    pub description: String,
    pub severity: GapSeverity,
    #[serde(default)]
    pub suggested_task: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Recommendation {
    Continue,
    CourseCorrect,
    Descope,
    ShipReady,
}

impl Recommendation {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Continue => "CONTINUE",
            Self::CourseCorrect => "COURSE_CORRECT",
            Self::Descope => "DESCOPE",
            Self::ShipReady => "SHIP_READY",
        }
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vrc {
    pub step: u32,
    pub mode: VrcMode,
    /// From 0 to 1.
    pub value_score: Exact,
    pub deliverables_total: u32,
    pub deliverables_verified: u32,
    pub deliverables_blocked: u32,
    pub gaps: Vec<Gap>,
    pub recommendation: Recommendation,
    pub summary: String,
    /// The evaluator did not report: the numbers of the check before stand.
    pub carried: bool,
}

impl Vrc {
    /// A reported check; `None`: its score is out of range and says nothing.
    pub fn reported(step: u32, mode: VrcMode, report: &VrcReport) -> Option<Self> {
        Exact::from_u64(1).checked_sub(report.value_score)?;
        Some(Self {
            step,
            mode,
            value_score: report.value_score,
            deliverables_total: report.deliverables_total,
            deliverables_verified: report.deliverables_verified,
            deliverables_blocked: report.deliverables_blocked,
            gaps: report.gaps.clone(),
            recommendation: report.recommendation,
            summary: report.summary.clone(),
            carried: false,
        })
    }

    /// 1 - value_score.
    pub fn residual(&self) -> Option<Exact> {
        Exact::from_u64(1).checked_sub(self.value_score)
    }

    /// The worst gap.
    pub fn worst(&self) -> Option<GapSeverity> {
        self.gaps.iter().map(|gap| gap.severity).max()
    }
}
