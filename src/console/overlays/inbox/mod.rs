//! The inbox: everything that waits for a person, in one place.
//!
//! Role: choosing a decision, composing an answer, sending it. Not its role: carrying it out.
//! Invariants: an answer is only sent for the decision that is shown, only when the request permits it and
//! only by a key of the operator; when the box moves on by itself, keys that were meant for the decision
//! before are not taken for the new one.

mod blobs;
mod detail;
mod list;
mod offer;
mod review;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;

use super::super::action::{Action, Scope};
use super::super::cmd::{Cmd, EditPurpose, Loaded};
use super::super::theme::Role;
use super::allowed::barred;
use super::confirm::Confirm;
use super::input::{Input, Lines, Typed};
use super::sheet::{cancels, furthest, reveal};
use super::{Next, Overlay, Response, Stage};
use crate::engine::command::Command;
use crate::machine::operator::{Decision, DecisionStatus};
use crate::model::decision::{Answer, DecisionId, MAX_PROPOSAL, MAX_TEXT, Request};
use crate::model::digest::Digest;
use crate::model::safe::Safe;

use blobs::Blobs;
use detail::Detail;
use offer::{answer, choices, offers, written};
use review::Review;

/// So long after the box moved on, answers are still taken for slips.
const READING_MS: i64 = 700;

/// What the operator prepared for a decision.
#[derive(Debug, Default)]
struct Draft {
    /// An answer that was begun and put aside.
    begun: String,
    note: Option<String>,
    review: Option<Review>,
}

enum Mode {
    Browse,
    Write(Input),
    Note(Input),
    /// $EDITOR has the text.
    Editing,
}

struct Notice {
    text: String,
    role: Role,
}

pub struct Inbox {
    selected: Option<DecisionId>,
    /// Its status when last looked at.
    seen: Option<DecisionStatus>,
    /// Go on to the next open one by itself?
    following: bool,
    /// When it did so.
    moved_ms: Option<i64>,
    drafts: BTreeMap<DecisionId, Draft>,
    blobs: Blobs,
    mode: Mode,
    scroll: usize,
    /// Is the change under the cursor to be in sight, wherever `scroll` is?
    to_cursor: bool,
    /// Rows of the detail that have been in sight.
    read: usize,
    notice: Option<Notice>,
    area: Rect,
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            selected: None,
            seen: None,
            following: true,
            moved_ms: None,
            drafts: BTreeMap::new(),
            blobs: Blobs::default(),
            mode: Mode::Browse,
            scroll: 0,
            to_cursor: false,
            read: 0,
            notice: None,
            area: Rect::default(),
        }
    }
}

impl Inbox {
    fn decision<'a>(&self, stage: &Stage<'a>) -> Option<&'a Decision> {
        stage.scene?.run.operator.decision(self.selected?)
    }

    fn draft(&self) -> Option<&Draft> {
        self.drafts.get(&self.selected?)
    }

    fn review_mut(&mut self) -> Option<&mut Review> {
        self.drafts.get_mut(&self.selected?)?.review.as_mut()
    }

    fn say(&mut self, text: impl Into<String>, role: Role) {
        self.notice = Some(Notice { text: text.into(), role });
    }

    fn select(&mut self, decision: &Decision) {
        if self.selected != Some(decision.id) {
            self.mode = Mode::Browse;
            self.scroll = 0;
            self.to_cursor = false;
            self.read = 0;
        }
        self.selected = Some(decision.id);
        self.seen = Some(decision.status);
    }

    /// The next or previous one in the list.
    fn step(&mut self, forward: bool, stage: &Stage<'_>) {
        let Some(scene) = stage.scene else { return };
        let all = list::order(&scene.run.operator);
        let at = all.iter().position(|decision| Some(decision.id) == self.selected).unwrap_or(0);
        let to = if forward { at + 1 } else { at.saturating_sub(1) };
        if let Some(decision) = all.get(to) {
            self.select(decision);
            self.following = decision.status != DecisionStatus::Closed;
            self.moved_ms = None;
            self.notice = None;
        }
    }

    /// Sees what became of the selected decision, and goes on when it is closed.
    fn follow(&mut self, stage: &Stage<'_>) {
        let Some(scene) = stage.scene else { return };
        let operator = &scene.run.operator;
        let waiting = operator.open().next();
        let Some(decision) = self.decision(stage) else {
            let first = waiting.or_else(|| operator.unsettled()).or_else(|| operator.decisions.last());
            if let Some(decision) = first {
                self.select(decision);
            }
            return;
        };
        let before = self.seen.replace(decision.status);
        match (before, decision.status) {
            (Some(DecisionStatus::Open | DecisionStatus::Answered), DecisionStatus::Closed) => {
                self.mode = Mode::Browse;
                self.drafts.remove(&decision.id);
                self.say(outcome(decision), Role::Good);
            }
            (Some(DecisionStatus::Answered), DecisionStatus::Open) => {
                let check = decision.last_check.as_ref().map(|check| check.end.describe());
                let why = check.unwrap_or_else(|| decision.detail.clone());
                self.say(format!("{}: not yet: {}", decision.id, Safe::line(&why)), Role::Bad);
            }
            (Some(DecisionStatus::Open), DecisionStatus::Answered) => self.notice = None,
            _ => {}
        }
        // In an earlier moment the same decision is open again: that is no news.
        if let (DecisionStatus::Closed, Some(next)) = (decision.status, waiting)
            && self.following
        {
            self.select(next);
            self.moved_ms = Some(scene.now_ms);
        }
    }

    /// What the selected decision leans on.
    fn missing(&mut self, stage: &Stage<'_>) -> Vec<Cmd> {
        let Some(decision) = self.decision(stage) else { return Vec::new() };
        match &decision.request {
            Request::Refinement { before, after, .. } => {
                let cmds = [before, after].into_iter().filter_map(|digest| self.blobs.ask(digest)).collect();
                if let (Some(before), Some(after)) = (self.blobs.text(before), self.blobs.text(after)) {
                    let draft = self.drafts.entry(decision.id).or_default();
                    if draft.review.is_none() {
                        draft.review = Some(Review::new(before, after));
                    }
                }
                cmds
            }
            Request::HumanAction { .. } => match &decision.last_check {
                Some(check) if !check.end.passed() => self.blobs.ask(&check.output).into_iter().collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Why nothing can be answered, in the words of this box.
    fn refusal(decision: &Decision, stage: &Stage<'_>) -> Option<String> {
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
            self.say("the proposal is not here yet", Role::Warning);
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
    fn decide(&mut self, action: Action, decision: &Decision, stage: &Stage<'_>) -> Response {
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
            self.say(format!("`{}` does not fit a {}", action.hint(), decision.request.name()), Role::Warning);
            return Response::stay();
        }
        if self.is_a_slip(stage) {
            self.say(format!("this is {}, another decision: read it first", decision.id), Role::Warning);
            return Response::stay();
        }
        if matches!(action, Action::Approve | Action::Always) && self.unread(stage) {
            self.say("it goes on below: read it to its end first", Role::Warning);
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

    fn browse(&mut self, key: KeyEvent, stage: &Stage<'_>) -> Response {
        if cancels(key) {
            return Response::close();
        }
        let decision = self.decision(stage);
        if let (KeyCode::Char(c), Some(decision)) = (key.code, decision)
            && let Some(number) = c.to_digit(10)
        {
            return self.choose(number, decision, stage);
        }
        match key.code {
            KeyCode::Tab => self.step(true, stage),
            KeyCode::BackTab => self.step(false, stage),
            _ => match (stage.keymap.action(&[Scope::Inbox, Scope::Move, Scope::Global], key), decision) {
                (Some(Action::OpenInbox | Action::Quit | Action::Back), _) => return Response::close(),
                (Some(Action::Right), _) => self.step(true, stage),
                (Some(Action::Left), _) => self.step(false, stage),
                // Where there is nothing to take or leave, the key keeps its meaning.
                (Some(Action::ToggleHunk), Some(decision))
                    if !matches!(decision.request, Request::Refinement { .. }) =>
                {
                    self.turn(Action::PageDown, stage);
                }
                (Some(action), Some(decision)) if action.scope() == Scope::Inbox => {
                    return self.decide(action, decision, stage);
                }
                (Some(action), Some(_)) if action.scope() == Scope::Move => self.turn(action, stage),
                _ => {}
            },
        }
        Response::stay()
    }

    /// A choice by number is put into the answer, so that it is read once more before it is sent.
    fn choose(&mut self, number: u32, decision: &Decision, stage: &Stage<'_>) -> Response {
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

    /// Moves through the detail; through the changes where there are some.
    fn turn(&mut self, action: Action, stage: &Stage<'_>) {
        let hunks = self.draft().and_then(|draft| draft.review.as_ref()).is_some_and(|review| !review.previewing());
        if hunks && matches!(action, Action::Up | Action::Down) {
            if let Some(review) = self.review_mut() {
                if action == Action::Down { review.next() } else { review.previous() }
            }
            self.to_cursor = true;
            return;
        }
        let (detail, height) = self.rows(stage);
        let from = self.offset(&detail, height);
        let page = usize::from(height).saturating_sub(2).max(1);
        let to = match action {
            Action::Up => from.saturating_sub(1),
            Action::Down => from + 1,
            Action::PageUp => from.saturating_sub(page),
            Action::PageDown => from + page,
            Action::Top => 0,
            Action::Bottom => usize::MAX,
            _ => return,
        };
        self.scroll = to.min(furthest(detail.lines.len(), height));
        self.to_cursor = false;
        self.read = self.read.max(self.in_sight(&detail, height));
    }

    /// The row after the last one in sight.
    fn in_sight(&self, detail: &Detail, height: u16) -> usize {
        let all = detail.lines.len();
        if all <= usize::from(height) {
            return all;
        }
        self.offset(detail, height) + usize::from(height.saturating_sub(1))
    }

    /// Is there a part of a command that the operator cannot have seen?
    fn unread(&self, stage: &Stage<'_>) -> bool {
        let (detail, height) = self.rows(stage);
        self.read.max(self.in_sight(&detail, height)) < detail.to_read
    }

    /// The first row in sight: where the reader scrolled to, or where the change under the cursor is.
    fn offset(&self, detail: &Detail, height: u16) -> usize {
        let all = detail.lines.len();
        match detail.cursor.filter(|_| self.to_cursor) {
            // Some rows of the change are wanted, not only its title.
            Some(at) => reveal(reveal(self.scroll, (at + 5).min(all.saturating_sub(1)), all, height), at, all, height),
            None => self.scroll.min(furthest(all, height)),
        }
    }

    fn write(&mut self, key: KeyEvent, stage: &Stage<'_>) -> Response {
        let (typed, problem, text, noting) = match &mut self.mode {
            Mode::Write(input) => (input.key(key), input.problem(), input.text(), false),
            Mode::Note(input) => (input.key(key), input.problem(), input.text(), true),
            Mode::Browse | Mode::Editing => return Response::stay(),
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

/// What became of a decision, for the one who watched.
fn outcome(decision: &Decision) -> String {
    let what = match (&decision.request, decision.closed_with()) {
        (_, Some(Answer::Quit)) => "the run ends".to_owned(),
        (Request::HumanAction { .. }, Some(Answer::Done)) => "done, resumed".to_owned(),
        (Request::Refinement { .. }, Some(Answer::Approve { .. })) => "approved and written".to_owned(),
        _ => list::verdict(decision),
    };
    format!("{} {}: {what}", decision.id, decision.request.name())
}

impl Overlay for Inbox {
    fn key(&mut self, key: KeyEvent, stage: &Stage<'_>) -> Response {
        match &self.mode {
            Mode::Write(_) | Mode::Note(_) => {
                self.notice = None;
                self.write(key, stage)
            }
            Mode::Editing => {
                if cancels(key) {
                    self.mode = Mode::Browse;
                }
                Response::stay()
            }
            Mode::Browse => {
                self.notice = None;
                self.browse(key, stage)
            }
        }
    }

    fn paste(&mut self, text: &str) {
        if let Mode::Write(input) | Mode::Note(input) = &mut self.mode {
            input.paste(text);
        }
    }

    fn take(&mut self, loaded: &Loaded, stage: &Stage<'_>) -> Response {
        match loaded {
            Loaded::Blob(digest, read) => self.blobs.keep(digest, read),
            Loaded::Edited { purpose, text } => {
                // The decision may have been closed meanwhile by someone else.
                let Mode::Editing = self.mode else { return Response::stay() };
                self.mode = Mode::Browse;
                match (purpose, text) {
                    (_, None) => self.say("nothing was changed", Role::Muted),
                    (EditPurpose::Refinement, Some(text)) => {
                        if let Some(review) = self.review_mut() {
                            review.edit(text);
                        }
                    }
                    (EditPurpose::Answer, Some(text)) => {
                        self.mode = Mode::Write(Input::new(Lines::Several, MAX_TEXT).with_text(text.trim_end()));
                    }
                }
            }
            Loaded::Failed(why) => {
                if matches!(self.mode, Mode::Editing) {
                    self.mode = Mode::Browse;
                }
                self.say(why.to_string(), Role::Bad);
            }
            _ => {}
        }
        // What came may complete what is shown.
        Response { cmds: self.missing(stage), next: Next::Stay }
    }

    fn refresh(&mut self, stage: &Stage<'_>) -> Vec<Cmd> {
        self.follow(stage);
        self.missing(stage)
    }

    fn resize(&mut self, area: Rect) {
        if self.area != area {
            // Rows are others now.
            self.read = 0;
        }
        self.area = area;
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, stage: &Stage<'_>) {
        self.draw(frame, area, stage);
    }

    fn name(&self) -> &'static str {
        "inbox"
    }
}
