//! Refinement: what the rounds about the vision and about the PRD have in common.
//!
//! A round is kept before a person is asked, so that a crash comes back at the question. A HARD issue is never
//! acknowledged. People may revise as often as they like; only the number of questions of a run bounds it.

use crate::machine::run::RunState;
use crate::machine::todo::{Effect, Todo};
use crate::model::decision::{Answer, DecisionId, Request, Severity, VisionIssue};
use crate::model::value::tools::ResearchReport;
use crate::playbook::value::event::{Document, RoundClosed, RoundKept};
use crate::playbook::value::state::{OpenStep, Refinement, Round};

use super::inputs::unusable;
use super::{Move, answer, ask, bounded, need, say};

/// The longest text of one issue or alternative, as a person is shown it.
const MAX_ISSUE: usize = 2_000;
/// Issues, and alternatives of one issue.
const MAX_POINTS: usize = 50;

/// The round that is not closed.
pub(super) fn open_round(refinement: &Refinement) -> Option<&RoundKept> {
    let open = |round: &&Round| round.closed.is_none();
    refinement.rounds.last().filter(open).map(|round| &round.kept)
}

pub(super) fn next_round(refinement: &Refinement) -> u32 {
    u32::try_from(refinement.rounds.len()).unwrap_or(u32::MAX).saturating_add(1)
}

pub(super) fn close(kept: &RoundKept, how: &str, decision: Option<DecisionId>, consensus: bool) -> Move {
    let (target, round) = (kept.target, kept.round);
    say(RoundClosed { target, round, how: how.to_owned(), decision, consensus })
}

pub(super) fn has_hard(issues: &[VisionIssue]) -> bool {
    issues.iter().any(|issue| issue.severity == Severity::Hard)
}

/// An issue within bounds.
pub(super) fn issue(severity: Severity, text: &str, alternatives: Vec<String>) -> VisionIssue {
    let mut alternatives: Vec<String> = alternatives.iter().map(|one| bounded(one, MAX_ISSUE)).collect();
    alternatives.truncate(MAX_POINTS);
    VisionIssue { severity, text: bounded(text, MAX_ISSUE), alternatives }
}

/// The issues as a person is shown them: the HARD ones first.
pub(super) fn in_order(mut issues: Vec<VisionIssue>) -> Vec<VisionIssue> {
    issues.sort_by_key(|issue| issue.severity != Severity::Hard);
    issues.truncate(MAX_POINTS);
    issues
}

/// The alternatives that research found for an issue: those that name it, and those that name none.
pub(super) fn alternatives(research: &[ResearchReport], id: &str, ids: &[&str]) -> Vec<String> {
    let names =
        |text: &str, id: &str| text.split(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))).any(|w| w == id);
    let fits = |text: &&String| names(text, id) || !ids.iter().any(|other| names(text, other));
    research.iter().flat_map(|one| &one.alternatives).filter(fits).cloned().collect()
}

/// A person's word on the issues of a round: revise the document, or acknowledge what is not HARD.
pub(super) fn negotiate(run: &RunState, step: &OpenStep, kept: &RoundKept, document: &Document, why: &str) -> Move {
    let ask_because = |why: &str| ask(run, Request::Vision { issues: kept.issues.clone() }, why);
    let Some(id) = step.round_decisions().last().copied() else { return ask_because(why) };
    match answer(run, id) {
        None => need(Todo::AwaitPerson),
        Some(Answer::Acknowledge) if !has_hard(&kept.issues) => close(kept, "acknowledged", Some(id), true),
        Some(Answer::Revise(_)) if !step.documents_read => need(Todo::Effect(Effect::ReadDocuments)),
        Some(Answer::Revise(_)) => {
            if let Some(problem) = unusable(document) {
                ask_because(&format!("{problem}. {why}"))
            } else if document.text == Some(kept.document) && !kept.unknown {
                ask_because(&format!("{} has not changed: edit it, then answer `revise`. {why}", document.path))
            } else {
                close(kept, "revised", Some(id), false)
            }
        }
        Some(_) => ask_because(why),
    }
}
