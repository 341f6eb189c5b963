//! Loops that cannot succeed, told before anything is spent.
//!
//! Role: read off a declaration, and off the metrics of its Northstar, what keeps every declared certificate out of
//! reach. Not its role: what is merely missing (the machine's NULL_CHECK), or how likely success is.
//!
//! Invariants: a fatal obstacle means that no run of this declaration can end well; where one could, it is a warning.

use super::criterion::Proof;
use super::learnings::SpecVersion;
use super::loop_file::LoopFile;
use super::northstar::{self, Metric};
use super::rung::Rung;
use super::stop::StopReason;

/// Something between a loop and its success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The key of loop.yaml it comes from.
    pub key: &'static str,
    pub message: String,
    pub hint: String,
    /// How a run ends that cannot succeed; `None`: it still can, in some way.
    pub fatal: Option<StopReason>,
}

/// What stands in the way. Without metrics (they are not read yet, or spec 1.0) nothing is said of them.
pub fn obstacles(declared: &LoopFile, metrics: &[Metric]) -> Vec<Obstacle> {
    let mut found: Vec<Obstacle> = Vec::new();
    found.extend(nothing_executed(declared));
    found.extend(no_security(declared));
    if declared.spec() == SpecVersion::V2 && !metrics.is_empty() {
        found.extend(unknown_metrics(declared, metrics));
        found.extend(arrived(declared, metrics));
    }
    found
}

/// No certificate of success is issued on a judge's word alone.
fn nothing_executed(declared: &LoopFile) -> Option<Obstacle> {
    let criteria = declared.criteria();
    let by_command = declared.residual.as_ref().is_some_and(|residual| residual.command.is_some());
    if criteria.is_empty() || by_command || criteria.iter().any(|criterion| criterion.proof != Proof::Judged) {
        return None;
    }
    Some(Obstacle {
        key: "acceptance_criteria",
        message: "every criterion is judged, and nothing is executed: no verifier can ever exit 0, so neither EXACT \
                  nor CONVERGED can be issued"
            .to_owned(),
        hint: "give a criterion a `check: [program, arguments]`, or declare CONVERGED with `residual.command`"
            .to_owned(),
        fatal: Some(StopReason::HaltingCriteriaMissing),
    })
}

fn no_security(declared: &LoopFile) -> Option<Obstacle> {
    let missing = match (&declared.security, &declared.api_surface) {
        (None, None) => "security.command and api_surface.command are",
        (None, Some(_)) => "security.command is",
        (Some(_), None) => "api_surface.command is",
        (Some(_), Some(_)) => return None,
    };
    (declared.rung_target() == Rung::Promoted).then(|| Obstacle {
        key: "rung_target",
        message: format!(
            "rung 65537 is demanded, but {missing} not declared: the pass-gate would refuse every success"
        ),
        hint: "declare them, or leave out `touches` and a `rung_target` of 65537".to_owned(),
        fatal: Some(StopReason::SecurityBlocked),
    })
}

/// Metrics that links and measures name, and NORTHSTAR.md does not.
fn unknown_metrics(declared: &LoopFile, metrics: &[Metric]) -> Option<Obstacle> {
    let northstar = declared.northstar.as_ref()?;
    let linked = northstar.links.iter().flat_map(|(key, ids)| ids.iter().map(move |id| (format!("links.{key}"), id)));
    let measured = northstar.measure.keys().map(|id| ("measure".to_owned(), id));
    let (place, id) = linked.chain(measured).find(|(_, id)| !metrics.iter().any(|metric| metric.id == **id))?;
    let known: Vec<&str> = metrics.iter().map(|metric| metric.id.as_str()).collect();
    Some(Obstacle {
        key: "northstar",
        message: format!(
            "northstar.{place} names the metric `{id}`, which {} does not have",
            declared.northstar_file()
        ),
        hint: format!("its metrics are: {}", known.join(", ")),
        fatal: Some(StopReason::NorthstarMissing),
    })
}

/// Measured metrics that have nowhere to go, where nothing else can advance.
fn arrived(declared: &LoopFile, metrics: &[Metric]) -> Option<Obstacle> {
    let northstar = declared.northstar.as_ref()?;
    let first = metrics.first()?;
    let there = northstar::distance(metrics).total.is_some_and(|total| total.is_zero());
    (there && northstar.neutral_reason.is_none() && northstar.measure.contains_key(&first.id)).then(|| Obstacle {
        key: "northstar",
        message: format!(
            "`{}` is at its target already ({}, target {}): no iteration can advance it, and three without a win end \
             the run",
            first.id, first.current, first.target
        ),
        hint: "set a target that is not reached yet, and mind its direction (`>=`, `<=`)".to_owned(),
        fatal: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::loop_file::parse;

    fn found(yaml: &str, current: &str, target: &str) -> Vec<(&'static str, bool)> {
        let metric =
            |id: &str| Metric { id: id.into(), metric: "m".into(), current: current.into(), target: target.into() };
        let declared = parse(yaml, "loop.yaml").unwrap();
        obstacles(&declared, &[metric("vc-1")]).iter().map(|one| (one.key, one.fatal.is_some())).collect()
    }

    #[test]
    fn a_loop_that_executes_nothing_cannot_succeed() {
        const JUDGED: &str = "acceptance_criteria: [It reads well.]\n";
        assert_eq!(found(JUDGED, "0", "1"), [("acceptance_criteria", true)]);
        assert_eq!(found(&format!("{JUDGED}halting_certificates: [EXACT, CONVERGED]\n"), "0", "1").len(), 1);
        assert_eq!(found(&format!("{JUDGED}residual: {{command: [x]}}\n"), "0", "1"), []);
        assert_eq!(found("acceptance_criteria: [{text: a, check: [x]}, b]\n", "0", "1"), []);
        assert_eq!(found("playbook: prd\n", "0", "1"), [], "its items are its way out");
    }

    #[test]
    fn metrics_must_exist_and_have_somewhere_to_go() {
        let with = |northstar: &str| {
            format!("acceptance_criteria: [{{id: a, text: a, check: [x]}}]\nnorthstar: {northstar}\n")
        };
        assert_eq!(found(&with("{links: {a: [vc-1], residual: [vc-1]}}"), "0", "1"), []);
        assert_eq!(found(&with("{links: {a: [no-such]}}"), "0", "1"), [("northstar", true)]);
        assert_eq!(found(&with("{links: {residual: [no-such]}}"), "0", "1"), [("northstar", true)]);
        assert_eq!(found(&with("{measure: {no-such: [x]}}"), "0", "1"), [("northstar", true)]);
        assert_eq!(found(&with("{measure: {vc-1: [x]}}"), "45", ">= 40"), [("northstar", false)]);
        assert_eq!(found(&with("{measure: {vc-1: [x]}}"), "39", ">= 40"), []);
    }

    #[test]
    fn the_highest_rung_without_its_commands_is_told() {
        let rung = "acceptance_criteria: [{text: a, check: [x]}]\ntouches: [api]\nsecurity: {command: [x]}\n";
        assert_eq!(found(rung, "0", "1"), [("rung_target", true)]);
        assert_eq!(found(&format!("{rung}api_surface: {{command: [x]}}\n"), "0", "1"), []);
    }
}
