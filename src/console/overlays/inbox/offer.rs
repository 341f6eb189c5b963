//! What a decision lets an operator do, by action, and which answer that gives.
//!
//! Not here: keys (the keymap has them) and sending. Invariant: an answer that is offered is one that the
//! request permits.

use super::super::super::action::Action;
use super::review::Review;
use crate::machine::operator::Decision;
use crate::model::decision::{Answer, Request, Severity};

/// An action with the word for it here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    pub action: Action,
    pub label: String,
}

/// Most likely first.
pub(super) fn offers(decision: &Decision, review: Option<&Review>) -> Vec<Offer> {
    let offer = |action, label: &str| Offer { action, label: label.to_owned() };
    let mut offers = match &decision.request {
        Request::HumanAction { verify: Some(_), .. } => {
            let mut offers = vec![offer(Action::Approve, "it is done, check it")];
            // Only a verification that failed may be wrong.
            if decision.checks > 0 {
                offers.push(offer(Action::WriteAnswer, "check it by another command"));
                offers.push(offer(Action::Always, "it is done all the same (needs a note)"));
            }
            offers
        }
        Request::HumanAction { verify: None, .. } => vec![offer(Action::Approve, "it is done")],
        Request::Question { .. } | Request::Escalation { .. } => {
            vec![offer(Action::WriteAnswer, "answer"), offer(Action::EditAnswer, "in $EDITOR")]
        }
        Request::Permission { .. } => vec![
            offer(Action::Approve, "allow once"),
            offer(Action::Always, "always, also later"),
            offer(Action::Reject, "deny"),
        ],
        Request::Refinement { .. } => refinement(review),
        Request::Vision { issues } => {
            let mut offers = vec![offer(Action::WriteAnswer, "revise"), offer(Action::EditAnswer, "in $EDITOR")];
            if !issues.iter().any(|issue| issue.severity == Severity::Hard) {
                offers.push(offer(Action::Approve, "acknowledge"));
            }
            offers
        }
        Request::Tampering { .. } => {
            vec![offer(Action::Approve, "accept: intended"), offer(Action::Reject, "reject")]
        }
        Request::SpendLimit { .. } => vec![offer(Action::Approve, "retry")],
        Request::Stuck { subject, .. } => {
            let mut offers = vec![offer(Action::Approve, "retry"), offer(Action::WriteAnswer, "hint")];
            offers.push(offer(Action::Reject, if subject.is_some() { "skip it" } else { "leave it as it is" }));
            if subject.is_some() {
                offers.push(offer(Action::Always, "it is split"));
            }
            offers
        }
    };
    offers.push(offer(Action::AddNote, "note"));
    offers.push(offer(Action::QuitRun, "end the run"));
    offers
}

fn refinement(review: Option<&Review>) -> Vec<Offer> {
    let offer = |action, label: String| Offer { action, label };
    let Some(review) = review else { return vec![offer(Action::Reject, "reject".to_owned())] };
    let (taken, all) = review.counts();
    let mut offers = Vec::new();
    if taken == 0 {
        offers.push(offer(Action::Reject, "reject (nothing is taken)".to_owned()));
    } else {
        let what = if taken == all { "approve all".to_owned() } else { format!("approve {taken} of {all}") };
        offers.push(offer(Action::Approve, what));
        offers.push(offer(Action::Reject, "reject".to_owned()));
    }
    if !review.previewing() {
        offers.push(offer(Action::ToggleHunk, "take/leave".to_owned()));
    }
    let preview = if review.previewing() { "changes" } else { "preview" };
    offers.push(offer(Action::WriteAnswer, preview.to_owned()));
    offers.push(offer(Action::EditAnswer, "edit".to_owned()));
    offers
}

/// The answer that an action stands for, where it needs nothing else.
pub(super) fn answer(action: Action, request: &Request) -> Option<Answer> {
    match (action, request) {
        (Action::Approve, Request::HumanAction { .. }) => Some(Answer::Done),
        (Action::Approve, Request::Permission { .. }) => Some(Answer::Allow),
        (Action::Approve, Request::Tampering { .. }) => Some(Answer::Accept),
        (Action::Approve, Request::Vision { .. }) => Some(Answer::Acknowledge),
        (Action::Approve, Request::SpendLimit { .. } | Request::Stuck { .. }) => Some(Answer::Retry),
        (Action::Always, Request::HumanAction { .. }) => Some(Answer::Override),
        (Action::Reject, Request::Stuck { .. }) => Some(Answer::Skip),
        (Action::Always, Request::Stuck { subject: Some(_), .. }) => Some(Answer::Split),
        (Action::Always, Request::Permission { .. }) => Some(Answer::AllowAlways),
        (Action::Reject, Request::Permission { .. }) => Some(Answer::Deny),
        (Action::Reject, Request::Tampering { .. } | Request::Refinement { .. }) => Some(Answer::Reject),
        _ => None,
    }
}

/// The texts that can be taken by number.
pub(super) fn choices(request: &Request) -> &[String] {
    match request {
        Request::Question { choices, .. } => choices,
        Request::Escalation { options, .. } => options,
        _ => &[],
    }
}

/// The answer that a written text is.
pub(super) fn written(request: &Request, text: String) -> Answer {
    match request {
        Request::Vision { .. } => Answer::Revise(text),
        Request::HumanAction { .. } => Answer::DoneBy { command: vec!["sh".to_owned(), "-c".to_owned(), text] },
        _ => Answer::Text(text),
    }
}
