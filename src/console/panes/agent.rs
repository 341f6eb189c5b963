//! The agent pane: the transcript, and where the operator is in it.
//!
//! Not here: what is in the transcript. Invariants: a reader is never moved by what comes in; only one who
//! is at the end stays at the end.

mod draw;

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::console::action::Action;
use crate::console::cmd::Cmd;
use crate::console::paint;
use crate::console::scene::{News, Scene};
use crate::console::theme::Role;
use crate::console::transcript::{Keep, Place, Transcript};
use crate::console::widget;
use crate::model::ids;

use super::Pane;

/// From this width on, the rule that allowed a tool call is shown beside it.
const WIDE: usize = 100;

/// Where the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    cursor: Place,
    top: Place,
    follow: bool,
}

pub struct AgentPane {
    transcript: Transcript,
    at: Reading,
    page: usize,
    /// Rows that came while the reader was elsewhere.
    unseen: u64,
    all_folded: bool,
    /// The earlier moment that is shown.
    moment: Option<u64>,
    /// Where the reader was before going back in time.
    before: Option<Reading>,
}

impl Default for AgentPane {
    fn default() -> Self {
        Self::with(Keep::default())
    }
}

impl AgentPane {
    pub fn new() -> Self {
        Self::default()
    }

    fn with(keep: Keep) -> Self {
        Self {
            transcript: Transcript::new(keep),
            at: Reading { cursor: Place::default(), top: Place::default(), follow: true },
            page: 1,
            unseen: 0,
            all_folded: true,
            moment: None,
            before: None,
        }
    }

    fn last_row(&self) -> u64 {
        self.transcript.total_rows().saturating_sub(1)
    }

    fn cursor_row(&self) -> u64 {
        if self.at.follow { self.last_row() } else { self.transcript.row_of(self.at.cursor).min(self.last_row()) }
    }

    fn top_row(&self, height: usize) -> u64 {
        let highest = self.transcript.total_rows().saturating_sub(u64::try_from(height).unwrap_or(0));
        if self.at.follow { highest } else { self.transcript.row_of(self.at.top).min(highest) }
    }

    /// Puts the cursor on a row and shows it.
    fn go(&mut self, row: u64) {
        let page = u64::try_from(self.page.max(1)).unwrap_or(1);
        let top = self.top_row(self.page);
        let row = row.min(self.last_row());
        let top = if row < top {
            row
        } else if row >= top + page {
            row + 1 - page
        } else {
            top
        };
        self.at.follow = false;
        self.place(row, top);
    }

    /// Puts the cursor on a row that becomes the first of the page.
    fn go_to_top(&mut self, row: u64) {
        self.at.follow = false;
        self.place(row.min(self.last_row()), row);
    }

    fn place(&mut self, cursor: u64, top: u64) {
        self.at.cursor = self.transcript.place_at(cursor).unwrap_or_default();
        self.at.top = self.transcript.place_at(top).unwrap_or_default();
    }

    fn follow(&mut self) {
        self.at.follow = true;
        self.unseen = 0;
    }

    /// Follows again where the reader has come to the end.
    fn follow_at_end(&mut self) {
        if self.cursor_row() == self.last_row() {
            self.follow();
        }
    }

    fn down(&mut self, by: u64) {
        if !self.at.follow {
            self.go(self.cursor_row() + by);
            self.follow_at_end();
        }
    }

    fn item_id(&self) -> u64 {
        self.transcript.place_at(self.cursor_row()).unwrap_or_default().item
    }

    fn go_to_match(&mut self, found: Option<(u64, u32)>) {
        let Some((item, line)) = found else { return };
        let hidden = self.transcript.item(item).is_some_and(|it| {
            let body = usize::try_from(line).unwrap_or(0).checked_sub(1);
            body.is_some_and(|body| !it.shown().contains(&body))
        });
        if hidden {
            self.transcript.unfold(item);
        }
        let place = Place { item, line, within: 0 };
        self.go(self.transcript.row_of(place));
    }

    /// The reader stays on the line that was under the cursor.
    fn keeping_place(&mut self, change: impl FnOnce(&mut Transcript)) {
        let row = self.cursor_row();
        let offset = row.saturating_sub(self.top_row(self.page));
        let cursor = self.transcript.place_at(row).unwrap_or_default();
        change(&mut self.transcript);
        let row = self.transcript.row_of(cursor);
        if self.at.follow {
            // What was folded away under the cursor may have been the end.
            self.at.follow = row >= self.last_row() || self.transcript.total_rows() == 0;
        }
        if !self.at.follow {
            self.place(row.min(self.last_row()), row.saturating_sub(offset));
        }
    }

    fn next_role(&self) -> Option<ids::Role> {
        let mut after = ids::Role::ALL.into_iter().filter(|role| self.transcript.speaks(*role));
        match self.transcript.only() {
            None => after.next(),
            Some(role) => after.find(|other| *other > role),
        }
    }

    fn text_area(&self, area: Rect) -> Rect {
        let inner = widget::inside(area);
        let mark = u16::from(self.transcript.dropped_lines() > 0).min(inner.height);
        Rect { y: inner.y + mark, height: inner.height - mark, ..inner }
    }

    /// What stands in the upper right corner.
    fn status(&self) -> String {
        let mut parts = Vec::new();
        if let Some(role) = self.transcript.only() {
            parts.push(format!("{role} only"));
        }
        if let Some(label) = self.transcript.matches.label() {
            parts.push(format!("\"{}\" {label}", widget_text(self.transcript.matches.needle())));
        }
        parts.push(match (self.moment, self.at.follow) {
            (Some(_), _) => "earlier moment".to_owned(),
            (None, true) => "following".to_owned(),
            (None, false) => {
                format!(
                    "row {} of {}",
                    widget::count(self.cursor_row() + 1),
                    widget::count(self.transcript.total_rows().max(1))
                )
            }
        });
        parts.join(", ")
    }
}

/// Text of an operator for a title.
fn widget_text(text: &str) -> String {
    crate::model::safe::Safe::line(text).to_string()
}

impl Pane for AgentPane {
    fn act(&mut self, action: Action, _scene: &Scene<'_>) -> Vec<Cmd> {
        let page = u64::try_from(self.page.max(2) - 1).unwrap_or(1);
        let item = self.item_id();
        match action {
            Action::Up => self.go(self.cursor_row().saturating_sub(1)),
            Action::PageUp => {
                let top = self.top_row(self.page).saturating_sub(page);
                self.go(self.cursor_row().saturating_sub(page));
                if !self.at.follow {
                    self.at.top = self.transcript.place_at(top).unwrap_or_default();
                }
            }
            Action::Down => self.down(1),
            Action::PageDown => self.down(page),
            Action::Top => self.go(0),
            Action::Bottom => self.follow(),
            Action::Follow if self.at.follow => self.go(self.last_row()),
            Action::Follow => self.follow(),
            Action::ToggleFold | Action::Select => {
                self.keeping_place(|transcript| transcript.toggle_fold(item));
            }
            Action::ToggleAllFolds => {
                self.all_folded = !self.all_folded;
                let folded = self.all_folded;
                self.keeping_place(|transcript| transcript.fold_all(folded));
            }
            Action::NextRole => {
                let role = self.next_role();
                self.keeping_place(|transcript| transcript.show_only(role));
            }
            Action::NextMatch => {
                let here = self.transcript.matches.current().unwrap_or((item, 0));
                let found = self.transcript.matches.next(here);
                self.go_to_match(found);
            }
            Action::PreviousMatch => {
                let here = self.transcript.matches.current().unwrap_or((item, 0));
                let found = self.transcript.matches.previous(here);
                self.go_to_match(found);
            }
            Action::NextIteration | Action::PreviousIteration => {
                let forward = action == Action::NextIteration;
                match self.transcript.iteration_from(item, forward) {
                    Some(id) => {
                        let row = self.transcript.row_of(Place { item: id, line: 0, within: 0 });
                        self.go_to_top(row);
                    }
                    None if forward => self.follow(),
                    None => self.go(0),
                }
            }
            Action::Copy => {
                return match self.transcript.item(item) {
                    Some(item) => vec![Cmd::Copy { what: "transcript", text: item.copied() }],
                    None => Vec::new(),
                };
            }
            _ => {}
        }
        Vec::new()
    }

    fn learn(&mut self, news: News<'_>) {
        if matches!(news, News::Reset) {
            let page = self.page;
            let columns = self.transcript.columns();
            *self = Self { page, ..Self::new() };
            self.transcript.set_columns(columns);
            return;
        }
        let rows = self.transcript.total_rows();
        self.transcript.learn(news);
        if !self.at.follow {
            for place in [&mut self.at.cursor, &mut self.at.top] {
                if let Some(item) = self.transcript.moved(place.item) {
                    place.item = item;
                }
            }
            self.unseen += self.transcript.total_rows().saturating_sub(rows);
        }
    }

    fn refresh(&mut self, scene: &Scene<'_>) -> Vec<Cmd> {
        let moment = (!scene.live).then_some(scene.run.next_seq);
        if moment != self.moment {
            if self.moment.is_none() {
                self.before = Some(self.at);
            }
            self.transcript.show_moment(moment);
            match (moment, self.before) {
                (None, Some(before)) => self.at = before,
                // Who reads while moments go by is left where it is.
                (Some(_), _) if self.moment.is_some() => {}
                (None, None) | (Some(_), _) => self.at.follow = true,
            }
            self.moment = moment;
        }
        Vec::new()
    }

    fn search(&mut self, text: &str, _scene: &Scene<'_>) {
        let here = (self.item_id(), 0);
        self.transcript.search(text);
        let found = self.transcript.matches.seek(here);
        self.go_to_match(found);
    }

    fn resize(&mut self, area: Rect) {
        let inner = self.text_area(area);
        self.page = usize::from(inner.height).max(1);
        self.transcript.set_columns(inner.width);
        if !self.at.follow {
            self.go(self.cursor_row());
        }
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let theme = scene.theme;
        let block = widget::panel(theme, "Agent", scene.focused);
        let block = paint::corner(block, theme, "Agent", &self.status(), area.width);
        let block = if self.unseen > 0 && !self.at.follow {
            let words = format!("{} {} new below", theme.glyphs().new_below, widget::count(self.unseen));
            paint::foot(block, theme, &words, Role::Badge, area.width)
        } else {
            block
        };
        frame.render_widget(block, area);

        let inner = widget::inside(area);
        let text = self.text_area(area);
        if text.y > inner.y {
            let words = format!(
                "{} {} older lines are not kept here; `nightloop replay {}` shows them",
                theme.glyphs().cut,
                widget::count(self.transcript.dropped_lines()),
                scene.run.run()
            );
            let line =
                widget::styled(widget::clip(theme, &words, usize::from(inner.width)), theme.style(Role::Warning));
            frame.render_widget(line, Rect { height: 1, ..inner });
        }
        if self.transcript.total_rows() == 0 {
            let words = widget::clip(theme, "No agent has been called yet.", usize::from(text.width));
            frame.render_widget(widget::styled(words, theme.style(Role::Muted)), text);
            return;
        }
        let height = usize::from(text.height);
        let cursor = self.transcript.place_at(self.cursor_row());
        let rows = self.transcript.rows(self.top_row(height), height);
        for (y, row) in (text.y..).zip(rows) {
            let line = self.row(scene, &row, cursor, text.width);
            let line = widget::clip_line(theme, line, usize::from(text.width));
            frame.render_widget(line, Rect { y, height: 1, ..text });
        }
    }
}

#[cfg(test)]
mod tests;
