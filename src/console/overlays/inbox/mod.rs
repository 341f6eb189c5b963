//! The inbox: everything that waits for a person, in one place.
//!
//! Role: choosing a decision, composing an answer, sending it. Not its role: carrying it out.
//! Invariants: an answer is only sent for the decision that is shown, only when the request permits it and
//! only by a key of the operator; when the box moves on by itself, keys that were meant for the decision
//! before are not taken for the new one.

mod answer;
mod blobs;
mod detail;
mod list;
mod offer;
mod reading;
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
use super::input::{Input, Lines};
use super::sheet::cancels;
use super::{Help, Next, Overlay, Response, Stage};
use crate::machine::operator::{Decision, DecisionStatus};
use crate::model::decision::{Answer, DecisionId, MAX_TEXT, Request};
use crate::model::ids::RunId;
use crate::model::safe::Safe;

use blobs::Blobs;
use review::Review;

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
    /// The decision was closed by someone else while a text was written for it. What is still typed must
    /// not be taken for keys.
    Interrupted,
}

struct Notice {
    text: String,
    role: Role,
}

pub struct Inbox {
    /// Whose decisions these are.
    run: Option<RunId>,
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
            run: None,
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
        if self.run.as_ref() != Some(scene.run.run()) {
            // Another run has other decisions under the same numbers.
            *self = Self { run: Some(scene.run.run().clone()), area: self.area, ..Self::default() };
        }
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
                let writing = !matches!(self.mode, Mode::Browse);
                self.mode = if writing { Mode::Interrupted } else { Mode::Browse };
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
            && !matches!(self.mode, Mode::Interrupted)
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
                // Once it is closed, what was decided is shown, not what could have been.
                let after = match decision.closed_with() {
                    Some(Answer::Approve { result }) => result,
                    _ => after,
                };
                let refused = decision.status == DecisionStatus::Closed && !approved(decision);
                let cmds = [before, after].into_iter().filter_map(|digest| self.blobs.ask(digest)).collect();
                if let (Some(before), Some(after)) = (self.blobs.text(before), self.blobs.text(after)) {
                    let draft = self.drafts.entry(decision.id).or_default();
                    if draft.review.is_none() {
                        let mut review = Review::new(before, after);
                        if refused {
                            review.leave_all();
                        }
                        draft.review = Some(review);
                    }
                }
                cmds
            }
            Request::Tampering { diff, trials, .. } => {
                let texts = diff.iter().chain(trials.iter().map(|trial| &trial.output));
                texts.filter_map(|digest| self.blobs.ask(digest)).collect()
            }
            Request::HumanAction { .. } => match &decision.last_check {
                Some(check) if !check.end.passed() => self.blobs.ask(&check.output).into_iter().collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
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
                // What a pause asks for may need one.
                (Some(Action::OpenShell), _) => return Response::cmd(Cmd::Shell),
                (Some(Action::Help), _) => {
                    return Response::then(Next::Push(Box::new(Help::new(&[
                        Scope::Inbox,
                        Scope::Move,
                        Scope::Global,
                    ]))));
                }
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
}

fn approved(decision: &Decision) -> bool {
    matches!(decision.closed_with(), Some(Answer::Approve { .. }))
}

/// What became of a decision, for the one who watched.
fn outcome(decision: &Decision) -> String {
    let what = match (&decision.request, decision.closed_with()) {
        (_, Some(Answer::Quit)) => "the run ends".to_owned(),
        (Request::HumanAction { .. }, Some(Answer::Done | Answer::DoneBy { .. } | Answer::Override)) => {
            "done, resumed".to_owned()
        }
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
            Mode::Editing | Mode::Interrupted => {
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

    fn reopened(&mut self) {
        // Whoever opens it reads what it opens on: the oldest decision that waits.
        self.selected = None;
        self.seen = None;
        self.moved_ms = None;
        self.following = true;
        self.mode = Mode::Browse;
        self.notice = None;
    }

    fn is_kept(&self) -> bool {
        true
    }
}
