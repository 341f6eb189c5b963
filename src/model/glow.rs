//! GLOW: growth, learning, output, wins. Computed from facts; no agent ever scores itself.

use serde::{Deserialize, Serialize};

use super::decimal::Exact;
use super::lane::Lane;

/// One iteration's score. Only the anchors below ever occur.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glow {
    #[serde(rename = "G")]
    pub g: u32,
    #[serde(rename = "L")]
    pub l: u32,
    #[serde(rename = "O")]
    pub o: u32,
    #[serde(rename = "W")]
    pub w: u32,
    pub total: u32,
    /// W > 0 always names the metric it advanced.
    pub northstar_metric_advanced: Option<String>,
    pub residual: Option<Exact>,
    /// One sentence per component, for the operator.
    pub because: [String; 4],
}

/// The facts of one iteration that GLOW is computed from.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    pub criteria_newly_true: Vec<String>,
    pub previous_residual: Option<Exact>,
    pub residual: Option<Exact>,
    pub r_p: Option<Exact>,
    pub artifacts: u32,
    pub artifacts_unseen_before: u32,
    pub artifacts_unhashed: u32,
    /// Files that were changed; reports are not among them. `None`: the run began when reports counted like files.
    pub files_changed: Option<u32>,
    /// The lanes of this iteration's new claims that kept their evidence.
    pub claim_lanes: Vec<Lane>,
    /// A re-measured metric whose distance became smaller.
    pub metric_moved: Option<String>,
    /// The metric that follows the residual, if the residual fell.
    pub residual_metric: Option<String>,
    /// The metric that the newly true criteria, or the goal, are linked to.
    pub linked_metric: Option<String>,
    /// A sub-goal with a check that was false before and is true now.
    pub sub_goal_done: bool,
}

/// Scores an iteration. Each component is evaluated top-down; the first anchor that holds wins.
pub fn score(facts: &Facts) -> Glow {
    let (g, g_why) = growth(facts);
    let (l, l_why) = learning(facts);
    let (o, o_why) = output(facts);
    let (w, metric, w_why) = wins(facts);
    Glow {
        g,
        l,
        o,
        w,
        total: g + l + o + w,
        northstar_metric_advanced: metric,
        residual: facts.residual,
        because: [g_why, l_why, o_why, w_why],
    }
}

fn growth(facts: &Facts) -> (u32, String) {
    if !facts.criteria_newly_true.is_empty() {
        return (25, format!("newly met: {}", facts.criteria_newly_true.join(", ")));
    }
    if reduced_by_more_than_three_tenths(facts.previous_residual, facts.residual) {
        return (15, "the residual fell by more than 30 %".to_owned());
    }
    if facts.artifacts_unseen_before > 0 {
        return (5, format!("{} new artifact(s)", facts.artifacts_unseen_before));
    }
    (0, "no new capability".to_owned())
}

fn reduced_by_more_than_three_tenths(previous: Option<Exact>, current: Option<Exact>) -> bool {
    let (Some(previous), Some(current)) = (previous, current) else { return false };
    // previous - current > previous * 3/10, without division.
    let ten = Exact::from_u64(10);
    let three = Exact::from_u64(3);
    let fall = previous.checked_sub(current).and_then(|fall| fall.checked_mul(ten));
    match (fall, previous.checked_mul(three)) {
        (Some(fall), Some(bar)) => fall > bar,
        // Not exactly comparable: take the lower anchor.
        _ => false,
    }
}

fn learning(facts: &Facts) -> (u32, String) {
    match facts.claim_lanes.iter().min() {
        Some(Lane::A) => (25, "a fact with an artifact".to_owned()),
        Some(Lane::B) => (15, "an observation with tool output".to_owned()),
        Some(Lane::C) => (5, "a hypothesis".to_owned()),
        None => (0, "nothing new was learnt".to_owned()),
    }
}

fn output(facts: &Facts) -> (u32, String) {
    match facts.files_changed {
        Some(0) if facts.artifacts > 0 => return (5, "reports, and no changed file".to_owned()),
        Some(0) | None => {}
        Some(1) => return (15, "one changed file".to_owned()),
        Some(n) => return (25, format!("{n} changed files")),
    }
    match (facts.artifacts, facts.artifacts_unhashed) {
        (0, _) => (0, "no artifact".to_owned()),
        (_, unhashed) if unhashed > 0 => (5, format!("{unhashed} artifact(s) without a digest")),
        (1, _) => (15, "one artifact".to_owned()),
        (n, _) => (25, format!("{n} artifacts")),
    }
}

fn wins(facts: &Facts) -> (u32, Option<String>, String) {
    let linked = facts.linked_metric.clone();
    if let Some(metric) = &linked
        && crossed_r_p(facts)
    {
        return (25, linked.clone(), format!("the residual fell below R_p ({metric})"));
    }
    if let Some(metric) = &facts.metric_moved {
        return (20, Some(metric.clone()), format!("{metric} moved towards its target"));
    }
    if let Some(metric) = &facts.residual_metric {
        return (20, Some(metric.clone()), format!("the residual fell, which {metric} follows"));
    }
    if let Some(metric) = &linked {
        if !facts.criteria_newly_true.is_empty() {
            return (15, linked.clone(), format!("a criterion of {metric} became true"));
        }
        if facts.sub_goal_done {
            return (5, linked.clone(), format!("a sub-goal of {metric} became true by its check"));
        }
    }
    (0, None, "no Northstar metric advanced".to_owned())
}

fn crossed_r_p(facts: &Facts) -> bool {
    let (Some(residual), Some(r_p)) = (facts.residual, facts.r_p) else { return false };
    // Without an earlier measurement there is nothing it crossed from, unless it started above.
    residual < r_p && facts.previous_residual.is_some_and(|previous| previous >= r_p)
}

/// How many of the latest iterations advanced no metric.
pub fn trailing_zero_wins<'a>(history: impl DoubleEndedIterator<Item = &'a Glow>) -> u32 {
    history.rev().take_while(|glow| glow.w == 0).count().try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Option<Exact> {
        Some(Exact::parse(text).unwrap())
    }

    #[test]
    fn growth_takes_the_highest_anchor_that_holds() {
        let mut facts = Facts { previous_residual: decimal("10"), residual: decimal("7"), ..Facts::default() };
        assert_eq!(score(&facts).g, 0, "exactly 30 % is not more than 30 %");
        facts.residual = decimal("6.9");
        assert_eq!(score(&facts).g, 15);
        facts.criteria_newly_true = vec!["tests".into()];
        assert_eq!(score(&facts).g, 25);
    }

    #[test]
    fn wins_without_a_metric_are_no_wins() {
        let mut facts = Facts { criteria_newly_true: vec!["tests".into()], sub_goal_done: true, ..Facts::default() };
        assert_eq!(score(&facts).w, 0);
        facts.linked_metric = Some("vc-1".into());
        let glow = score(&facts);
        assert_eq!((glow.w, glow.northstar_metric_advanced.as_deref()), (15, Some("vc-1")));
        facts.criteria_newly_true.clear();
        assert_eq!(score(&facts).w, 5);
    }

    #[test]
    fn a_falling_residual_is_a_win_of_the_metric_that_follows_it() {
        let facts = Facts { residual_metric: Some("vc-1".into()), ..Facts::default() };
        let glow = score(&facts);
        assert_eq!((glow.w, glow.northstar_metric_advanced.as_deref()), (20, Some("vc-1")));
        let measured = Facts { metric_moved: Some("vc-2".into()), ..facts };
        assert_eq!(score(&measured).northstar_metric_advanced.as_deref(), Some("vc-2"), "a measurement comes first");
    }

    #[test]
    fn crossing_needs_an_earlier_value_at_or_above_r_p() {
        let mut facts = Facts {
            linked_metric: Some("vc-1".into()),
            r_p: decimal("0.1"),
            residual: decimal("0"),
            ..Facts::default()
        };
        assert_eq!(score(&facts).w, 0, "null before is not above R_p");
        facts.previous_residual = decimal("0.1");
        assert_eq!(score(&facts).w, 25);
    }

    #[test]
    fn the_streak_counts_only_the_tail() {
        let with = |w| Glow { w, ..score(&Facts::default()) };
        let history = [with(0), with(5), with(0), with(0)];
        assert_eq!(trailing_zero_wins(history.iter()), 2);
    }
}
