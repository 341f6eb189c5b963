//! Vision Refinement: five passes of analysis in a row, then consensus, or a person's word.
//!
//! Fails closed: where a pass does not report, nothing is known of the vision, and a person has to look.

use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::decision::{Severity, VisionIssue};
use crate::model::digest::Digest;
use crate::model::purpose::Purpose;
use crate::model::value::tools::{
    Dimensions, ResearchReport, Strength, Structured, VisionIssueReport, VisionValidation, VisionVerdict,
};
use crate::playbook::value::event::{Document, RoundKept, Target};
use crate::playbook::value::state::OpenStep;

use super::inputs::unusable;
use super::refine::{alternatives, close, has_hard, in_order, issue, negotiate, next_round, open_round};
use super::{Attempt, Move, attempt, bounded, fail, need, pass, say};

/// In this order; each is shown what the ones before it found.
const PASSES: [Purpose; 5] = [
    Purpose::VisionExtract,
    Purpose::VisionForces,
    Purpose::VisionCauses,
    Purpose::VisionPremortem,
    Purpose::VisionValidate,
];
/// The longest list of issue ids in the subject of a call.
const MAX_SUBJECT: usize = 200;

pub(super) fn script(run: &RunState, step: &OpenStep) -> Move {
    let refinement = &run.value().vision;
    if let Some(how) = &refinement.consensus {
        let open = refinement.rounds.last().map_or(0, |round| round.kept.issues.len());
        return pass(step, format!("{how} in round {}; {open} issue(s) stay as risks", refinement.rounds.len()));
    }
    let Some(document) = run.value().documents.as_ref().map(|read| &read.vision) else {
        return fail(&["the vision was not read".to_owned()]);
    };
    match open_round(refinement) {
        Some(kept) => settle(run, step, kept, document),
        None => analyse(run, step, document),
    }
}

/// The passes that are missing; once all have reported, or one did not, the round is kept.
fn analyse(run: &RunState, step: &OpenStep, document: &Document) -> Move {
    let Some(digest) = document.text else {
        return fail(&[unusable(document).unwrap_or_default()]);
    };
    for purpose in PASSES {
        match attempt(step, purpose) {
            Attempt::Missing => return need(Todo::call(purpose)),
            Attempt::Failed(how) => return say(nothing_known(run, digest, &how)),
            Attempt::Reported(Structured::ReportVisionValidation(validation)) => {
                return weigh(run, step, digest, validation);
            }
            Attempt::Reported(_) => {}
        }
    }
    say(nothing_known(run, digest, "there is no verdict"))
}

/// Research for what is HARD, once and without insisting; then the round is kept.
fn weigh(run: &RunState, step: &OpenStep, digest: Digest, validation: &VisionValidation) -> Move {
    let hard: Vec<&str> =
        validation.issues.iter().filter(|one| one.severity == Severity::Hard).map(|one| one.id.as_str()).collect();
    let researched = step.round_calls().iter().any(|call| call.purpose == Purpose::VisionResearch);
    if !hard.is_empty() && !researched {
        let subject = Some(bounded(&hard.join(","), MAX_SUBJECT));
        return need(Todo::StartAgent { purpose: Purpose::VisionResearch, paraphrase: None, subject });
    }
    let research = research(step);
    say(RoundKept {
        validation: Some(validation.clone()),
        issues: issues(validation, &research, &hard),
        research,
        ..round(run, digest)
    })
}

fn research(step: &OpenStep) -> Vec<ResearchReport> {
    let reports = step.round_reports().iter();
    let found = reports.filter_map(|(purpose, report)| match (purpose, report) {
        (Purpose::VisionResearch, Structured::ReportResearch(brief)) => Some(brief.clone()),
        _ => None,
    });
    found.collect()
}

fn round(run: &RunState, document: Digest) -> RoundKept {
    RoundKept {
        target: Target::Vision,
        round: next_round(&run.value().vision),
        document,
        validation: None,
        critique: None,
        unknown: false,
        issues: Vec::new(),
        research: Vec::new(),
        proposal: None,
    }
}

/// An analysis that did not come to an end: as grave as the gravest issue, but the same text may be analysed again.
fn nothing_known(run: &RunState, document: Digest, how: &str) -> RoundKept {
    let text =
        format!("The vision could not be analysed: {how}. Nothing is known about it; `revise` analyses it again.");
    RoundKept { unknown: true, issues: vec![issue(Severity::Hard, &text, Vec::new())], ..round(run, document) }
}

fn issues(validation: &VisionValidation, research: &[ResearchReport], hard: &[&str]) -> Vec<VisionIssue> {
    let mut issues: Vec<VisionIssue> = validation.issues.iter().map(|one| shown(one, research, hard)).collect();
    if issues.is_empty() && !passes(validation) {
        issues.push(issue(Severity::Soft, &format!("{} ({})", validation.reason, scores(validation)), Vec::new()));
    }
    in_order(issues)
}

fn shown(report: &VisionIssueReport, research: &[ResearchReport], hard: &[&str]) -> VisionIssue {
    let text = format!("{}: {} (evidence: {})", report.id, report.description, report.evidence);
    let suggested = report.suggested_revision.iter().cloned();
    let researched = match report.severity {
        Severity::Hard => alternatives(research, &report.id, hard),
        Severity::Soft => Vec::new(),
    };
    issue(report.severity, &text, suggested.chain(researched).collect())
}

/// No HARD issue and no dimension below ADEQUATE, whatever the verdict says; and the verdict, too.
fn passes(validation: &VisionValidation) -> bool {
    let Dimensions { outcome_grounded, adoption_realistic, causally_sound, failure_aware } = &validation.dimensions;
    let all = [outcome_grounded, adoption_realistic, causally_sound, failure_aware];
    validation.verdict == VisionVerdict::Pass
        && all.into_iter().all(|strength| *strength >= Strength::Adequate)
        && validation.issues.iter().all(|one| one.severity != Severity::Hard)
}

/// A kept round: consensus by itself, or a person's word.
fn settle(run: &RunState, step: &OpenStep, kept: &RoundKept, document: &Document) -> Move {
    let Some(validation) = &kept.validation else {
        return negotiate(run, step, kept, document, "the analysis of the vision ended without a verdict");
    };
    if passes(validation) {
        let how = if kept.issues.is_empty() { "pass" } else { "auto_acknowledged" };
        return close(kept, how, None, true);
    }
    let acknowledged = &run.value_settings().acknowledge_soft;
    let beforehand =
        !validation.issues.is_empty() && validation.issues.iter().all(|one| acknowledged.contains(&one.id));
    if beforehand && !has_hard(&kept.issues) {
        return close(kept, "auto_acknowledged", None, true);
    }
    negotiate(run, step, kept, document, &why(kept, validation))
}

fn why(kept: &RoundKept, validation: &VisionValidation) -> String {
    let mut why = format!("Vision refinement, round {}: {} ({})", kept.round, validation.reason, scores(validation));
    if !validation.strengths.is_empty() {
        why.push_str(&format!(". Strengths: {}", super::list(&validation.strengths)));
    }
    why
}

fn scores(validation: &VisionValidation) -> String {
    let Dimensions { outcome_grounded, adoption_realistic, causally_sound, failure_aware } = &validation.dimensions;
    format!(
        "outcome grounded {}, adoption realistic {}, causally sound {}, failure aware {}",
        strength(*outcome_grounded),
        strength(*adoption_realistic),
        strength(*causally_sound),
        strength(*failure_aware)
    )
}

const fn strength(strength: Strength) -> &'static str {
    match strength {
        Strength::Critical => "CRITICAL",
        Strength::Weak => "WEAK",
        Strength::Adequate => "ADEQUATE",
        Strength::Strong => "STRONG",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_that_contradicts_itself_is_none() {
        let validation = |severity: &str, dimension: &str| -> VisionValidation {
            let issue = serde_json::json!({ "id": "V1", "severity": severity, "category": "impossible",
                "description": "d", "evidence": "e" });
            let input = serde_json::json!({ "verdict": "PASS", "reason": "r", "strengths": [], "issues": [issue],
                "dimensions": { "outcome_grounded": "STRONG", "adoption_realistic": "STRONG",
                                "causally_sound": dimension, "failure_aware": "STRONG" } });
            serde_json::from_value(input).unwrap()
        };
        assert!(passes(&validation("SOFT", "ADEQUATE")));
        assert!(!passes(&validation("HARD", "ADEQUATE")));
        assert!(!passes(&validation("SOFT", "WEAK")));
    }
}
