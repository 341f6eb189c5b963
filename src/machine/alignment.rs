//! Did the run as a whole advance the Northstar?

use serde::{Deserialize, Serialize};

use crate::model::fraction::Fraction;
use crate::model::gate_report::{GateCheck, check};
use crate::model::stop::{ForbiddenState, StopReason};

use super::compose::DISTANCE_PLACES;

use super::measure;
use super::progress;
use super::run::RunState;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum AlignmentStatus {
    Aligned,
    Neutral,
    Drifting,
}

/// Did the run as a whole advance the Northstar?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alignment {
    pub status: AlignmentStatus,
    pub metrics_advanced: Vec<String>,
    pub northstar_distance_start: Option<String>,
    pub northstar_distance_end: Option<String>,
    pub reason: Option<String>,
}

/// Start and end of the run compared.
pub fn alignment(state: &RunState) -> Alignment {
    let before = state.metrics_at_baseline();
    let last = state.iterations().rfind(|iteration| iteration.certificate.is_some());
    let now = last.map_or_else(|| before.clone(), |last| state.metrics_at(last));
    let (start, end) = (progress::distance(state, &before), progress::distance(state, &now));
    let advanced = if state.began_before_replays() { by_score(state) } else { progress::of_run(state, &before, &now) };
    let drifts = matches!((start, end), (Some(start), Some(end)) if end > start);
    let all_met_at_start = !state.criteria.is_empty()
        && state.criteria.iter().all(|criterion| measure::was_met_at_baseline(state, &criterion.id));
    let declared = state.loop_file().northstar.as_ref().and_then(|n| n.neutral_reason.clone());
    let (status, reason) = if drifts {
        (AlignmentStatus::Drifting, Some("the distance to the Northstar grew".to_owned()))
    } else if !advanced.is_empty() {
        (AlignmentStatus::Aligned, None)
    } else {
        let arrived = matches!((start, end), (Some(start), Some(end)) if start.is_zero() && end.is_zero());
        let known = if all_met_at_start {
            Some("every criterion was already met when the run began".to_owned())
        } else if arrived && !state.began_before_replays() {
            Some("every metric was at its target from the start to the end".to_owned())
        } else {
            None
        };
        (AlignmentStatus::Neutral, declared.filter(|reason| !reason.trim().is_empty()).or(known))
    };
    let text = |distance: Option<Fraction>| distance.map(|d| d.to_decimal_text(DISTANCE_PLACES));
    Alignment {
        status,
        metrics_advanced: advanced,
        northstar_distance_start: text(start),
        northstar_distance_end: text(end),
        reason,
    }
}

/// The metrics that the scores named: how older runs said what they advanced.
fn by_score(state: &RunState) -> Vec<String> {
    let scores = state.iterations().filter_map(|it| it.glow.as_ref());
    let mut named: Vec<String> = scores.filter_map(|glow| glow.northstar_metric_advanced.clone()).collect();
    named.sort();
    named.dedup();
    named
}

pub(super) fn as_check(state: &RunState) -> GateCheck {
    let alignment = alignment(state);
    let (ok, detail, reason) = match (alignment.status, &alignment.reason) {
        (AlignmentStatus::Aligned, _) => {
            (true, format!("ALIGNED: {}", alignment.metrics_advanced.join(", ")), StopReason::NorthstarDrift)
        }
        (AlignmentStatus::Neutral, Some(reason)) => {
            (true, format!("NEUTRAL: {reason}"), StopReason::GlowWithoutNorthstarAlignment)
        }
        (AlignmentStatus::Neutral, None) => (
            false,
            "NEUTRAL without a reason: declare northstar.neutral_reason, or link and measure a metric".to_owned(),
            StopReason::GlowWithoutNorthstarAlignment,
        ),
        (AlignmentStatus::Drifting, _) => (false, "DRIFTING".to_owned(), StopReason::NorthstarDrift),
    };
    check("Northstar alignment", None, ok, detail, reason).forbids(ForbiddenState::GlowWithoutNorthstarAlignment)
}
