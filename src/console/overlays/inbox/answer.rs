//! Answering: from a key of the operator to the order that is sent.
//!
//! Role: what may be sent, and how it is made. Not its role: choosing a decision, drawing it.
//! Invariants: nothing is sent that the request does not permit, that this console may not send, or that
//! the operator cannot have read.

use crossterm::event::KeyEvent;

use super::super::super::action::Action;
use super::super::super::cmd::{Cmd, EditPurpose};
use super::super::super::theme::Role;
use super::super::allowed::barred;
use super::super::confirm::Confirm;
use super::super::input::{Input, Lines, Typed};
use super::super::{Next, Response, Stage};
use super::offer::{answer, choices, offers, written};
use super::{Inbox, Mode};
use crate::engine::command::Command;
use crate::machine::operator::{Decision, DecisionStatus};
use crate::model::decision::{Answer, MAX_PROPOSAL, MAX_TEXT, Request};
use crate::model::digest::Digest;
use crate::model::safe::Safe;

/// So long after the box moved on, answers are still taken for slips.
pub(super) const READING_MS: i64 = 700;

impl Inbox {
    /// Why nothing can be answered, in the words of this box.
    pub(super) fn refusal(decision: &Decision, stage: &Stage<'_>) -> Option<String> {
        let stopped = stage.scene.is_some_and(|scene| scene.live && scene.run.halt.is_some());
        match (barred(stage), decision.status) {
            // A run that stopped because nobody was there can go on.
            (Some(_), DecisionStatus::Open) if stopped && !stage.read_only => {
                let id = decision.id;
                return Some(format!("the run has stopped; `nightloop answer {id}`, then `nightloop resume`"));
            }
            (Some(why), _) => return Some(why.to_owned()),
            (None, _) => {}
        }
        match decision.status {
            DecisionStatus::Open => None,
            DecisionStatus::Answered => Some(format!("{} is answered already", decision.id)),
            DecisionStatus::Closed => Some(format!("{} is closed", decision.id)),
        }
    }

    fn send(&mut self, decision: &Decision, answer: Answer, document: Option<String>) -> Response {
        if let Err(why) = decision.request.permits(&answer) {
            self.say(why, Role::Bad);
            return Response::stay();
        }
        let note = self.draft().and_then(|draft| draft.note.clone());
        self.say(format!("{}: sent `{}`", decision.id, answer.name()), Role::Info);
        self.mode = Mode::Browse;
        Response::cmd(Cmd::Order(Command::Answer { id: decision.id, answer, note, document }))
    }

    /// The taken changes, or none of them.
    fn approve_refinement(&mut self, decision: &Decision) -> Response {
        let Some(review) = self.draft().and_then(|draft| draft.review.as_ref()) else {
            self.say("the proposal has not been loaded yet", Role::Warning);
            return Response::stay();
        };
        if review.changes_nothing() {
            return self.send(decision, Answer::Reject, None);
        }
        let text = review.merged();
        if text.len() > MAX_PROPOSAL {
            self.say("the text is too long: 1 MiB at most", Role::Bad);
            return Response::stay();
        }
        self.send(decision, Answer::Approve { result: Digest::of(text.as_bytes()) }, Some(text))
    }

    /// An action on the selected decision.
    pub(super) fn decide(&mut self, action: Action, decision: &Decision, stage: &Stage<'_>) -> Response {
        let refinement = matches!(decision.request, Request::Refinement { .. });
        // Looking at the text is no answer.
        if action == Action::WriteAnswer && refinement {
            if let Some(review) = self.review_mut() {
                review.toggle_preview();
                self.scroll = 0;
                self.to_cursor = true;
            }
            return Response::stay();
        }
        if let Some(why) = Self::refusal(decision, stage) {
            self.say(why, Role::Warning);
            return Response::stay();
        }
        let review = self.draft().and_then(|draft| draft.review.as_ref());
        let offered = offers(decision, review).iter().any(|offer| offer.action == action);
        // To approve nothing is to reject, and while the proposal is read there is a better word than "no".
        let fits = offered || (refinement && action == Action::Approve);
        if !fits {
            self.say(format!("`{}` is not an answer to a {}", action.hint(), decision.request.name()), Role::Warning);
            return Response::stay();
        }
        if self.is_a_slip(stage) {
            self.say(format!("this is {}, a different decision: read it first", decision.id), Role::Warning);
            return Response::stay();
        }
        if matches!(action, Action::Approve | Action::Always) && self.unread(stage) {
            self.say("there is more below: read to the end first", Role::Warning);
            return Response::stay();
        }
        match action {
            Action::Approve if refinement => self.approve_refinement(decision),
            Action::ToggleHunk => {
                if let Some(review) = self.review_mut() {
                    review.toggle();
                }
                self.to_cursor = true;
                Response::stay()
            }
            Action::WriteAnswer => {
                let begun = self.draft().map(|draft| draft.begun.clone()).unwrap_or_default();
                self.mode = Mode::Write(Input::new(Lines::Several, MAX_TEXT).with_text(&begun));
                Response::stay()
            }
            Action::AddNote => {
                let note = self.draft().and_then(|draft| draft.note.clone()).unwrap_or_default();
                self.mode = Mode::Note(Input::new(Lines::Several, MAX_TEXT).with_text(&note));
                Response::stay()
            }
            Action::EditAnswer => self.edit(decision),
            Action::QuitRun => {
                let note = self.draft().and_then(|draft| draft.note.clone());
                Response::then(Next::Push(Box::new(Confirm::end_run(decision.id, note))))
            }
            _ => match answer(action, &decision.request) {
                Some(answer) => self.send(decision, answer, None),
                None => Response::stay(),
            },
        }
    }

    fn is_a_slip(&self, stage: &Stage<'_>) -> bool {
        let now = stage.scene.map_or(0, |scene| scene.now_ms);
        self.moved_ms.is_some_and(|moved| (0..READING_MS).contains(&(now - moved)))
    }

    fn edit(&mut self, decision: &Decision) -> Response {
        let review = self.draft().and_then(|draft| draft.review.as_ref());
        let cmd = match (&decision.request, review) {
            (Request::Refinement { path, .. }, Some(review)) => Cmd::Edit {
                purpose: EditPurpose::Refinement,
                name: Safe::line(path).to_string(),
                text: review.merged(),
            },
            (Request::Refinement { .. }, None) => return Response::stay(),
            _ => Cmd::Edit { purpose: EditPurpose::Answer, name: format!("{}.md", decision.id), text: String::new() },
        };
        self.mode = Mode::Editing;
        Response::cmd(cmd)
    }

    /// A choice by number is put into the answer, so that it is read once more before it is sent.
    pub(super) fn choose(&mut self, number: u32, decision: &Decision, stage: &Stage<'_>) -> Response {
        let index = usize::try_from(number).unwrap_or(0).checked_sub(1);
        let Some(choice) = index.and_then(|index| choices(&decision.request).get(index)) else {
            return Response::stay();
        };
        match Self::refusal(decision, stage) {
            Some(why) => self.say(why, Role::Warning),
            None => self.mode = Mode::Write(Input::new(Lines::Several, MAX_TEXT).with_text(choice)),
        }
        Response::stay()
    }

    pub(super) fn write(&mut self, key: KeyEvent, stage: &Stage<'_>) -> Response {
        let (typed, problem, text, noting) = match &mut self.mode {
            Mode::Write(input) => (input.key(key), input.problem(), input.text(), false),
            Mode::Note(input) => (input.key(key), input.problem(), input.text(), true),
            Mode::Browse | Mode::Editing | Mode::Interrupted => return Response::stay(),
        };
        match typed {
            Typed::Text => return Response::stay(),
            Typed::Cancel => {
                if let Some(id) = self.selected.filter(|_| !noting) {
                    self.drafts.entry(id).or_default().begun = text;
                }
                self.mode = Mode::Browse;
                return Response::stay();
            }
            Typed::Send => {}
        }
        if let Some(problem) = problem {
            self.say(problem, Role::Bad);
            return Response::stay();
        }
        let text = text.trim().to_owned();
        let Some(decision) = self.decision(stage) else { return Response::stay() };
        if noting {
            self.drafts.entry(decision.id).or_default().note = (!text.is_empty()).then_some(text);
            self.mode = Mode::Browse;
            return Response::stay();
        }
        match Self::refusal(decision, stage) {
            Some(why) => {
                self.say(why, Role::Warning);
                Response::stay()
            }
            None if text.is_empty() => {
                self.say("write something first, or press esc", Role::Warning);
                Response::stay()
            }
            None => self.send(decision, written(&decision.request, text), None),
        }
    }
}
