//! The plan: what has to be true at the end, whether it is, and what proves it.
//!
//! Not here: checking. An `Row` is anything a playbook works off; the pane does not know which
//! playbook it came from. Invariants: "met" is what the engine certified; a green check whose guards were
//! changed is shown as not accepted, never as met.

mod rows;

use std::path::PathBuf;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::console::action::Action;
use crate::console::charts::pen::Pen;
use crate::console::cmd::Cmd;
use crate::console::prose::wrap;
use crate::console::scene::{News, Scene};
use crate::console::theme::{Role, Theme};
use crate::console::widget;
use crate::model::decimal::Exact;

use super::Pane;
use super::list::ListCursor;
use crate::model::plan_row::{Row, RowKind, RowStatus};

/// Columns from which the detail stands beside the list.
const BESIDE: u16 = 110;
/// Columns of the status word.
const STATUS: u16 = 15;
/// Columns from which there is room for words beside the signs.
const WORDS: u16 = 60;
/// Columns of the margin that names groups.
const MARGIN: u16 = 9;
/// Scores that a small chart shows at most.
const SPARK: usize = 12;

/// The pane.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    cursor: ListCursor,
    needle: String,
    /// Did a person choose the item? Until then it is the one in progress.
    chosen: bool,
}

impl Plan {
    pub fn new() -> Self {
        Self::default()
    }

    fn place(&self, all: &[Row]) -> ListCursor {
        let mut cursor = self.cursor;
        if !self.chosen
            && let Some(working) = all.iter().position(|item| item.status == RowStatus::Working)
        {
            cursor.set(working);
        }
        cursor
    }

    fn seek(&mut self, all: &[Row], backwards: bool) {
        let needle = self.needle.to_lowercase();
        self.cursor = self.place(all);
        self.chosen = true;
        if !needle.is_empty() {
            self.cursor.seek(all.len(), backwards, |index| all.get(index).is_some_and(|item| item.contains(&needle)));
        }
    }
}

impl Pane for Plan {
    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Cmd> {
        let all = rows::rows(scene.run);
        let mut cursor = self.place(&all);
        if cursor.act(action, all.len()) {
            self.cursor = cursor;
            self.chosen = true;
            return Vec::new();
        }
        let here = all.get(cursor.at(all.len()));
        match action {
            Action::NextMatch => self.seek(&all, false),
            Action::PreviousMatch => self.seek(&all, true),
            Action::Select | Action::OpenEditor => {
                if let Some((path, _)) = here.and_then(|item| item.proof.as_ref()) {
                    return vec![Cmd::OpenFile(PathBuf::from(path.as_str()))];
                }
            }
            Action::Copy => {
                if let Some(item) = here {
                    return vec![Cmd::Copy { what: item.kind.name(), text: item.as_text() }];
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn learn(&mut self, news: News<'_>) {
        if matches!(news, News::Reset) {
            *self = Self::default();
        }
    }

    fn search(&mut self, text: &str, scene: &Scene<'_>) {
        text.clone_into(&mut self.needle);
        let all = rows::rows(scene.run);
        let at = self.place(&all).at(all.len());
        let needle = self.needle.to_lowercase();
        if !all.get(at).is_some_and(|item| item.contains(&needle)) {
            self.seek(&all, false);
        }
    }

    fn resize(&mut self, area: Rect) {
        self.cursor.set_page(area.height / 2);
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let area = area.intersection(frame.area());
        let theme = scene.theme;
        let all = rows::rows(scene.run);
        let title = widget::clip(theme, &rows::title(scene.run), usize::from(area.width.saturating_sub(4)));
        let block = widget::panel(theme, &title, scene.focused);
        let inner = block.inner(area);
        frame.render_widget(block, area);
        if inner.is_empty() {
            return;
        }
        let (list, detail) = split(inner, all.len());
        self.list(&mut Pen::new(frame.buffer_mut(), list, theme), &all);
        if let Some(item) = all.get(self.place(&all).at(all.len())) {
            draw_detail(&mut Pen::new(frame.buffer_mut(), detail, theme), theme, item);
        }
    }
}

impl Plan {
    fn list(&self, pen: &mut Pen<'_>, all: &[Row]) {
        if all.is_empty() {
            pen.text(0, 0, "No criterion is declared: the run will ask for one.", Role::Muted);
        }
        let rows = usize::from(pen.height());
        let cursor = self.place(all);
        let (at, first) = (cursor.at(all.len()), cursor.first(all.len(), rows));
        let margin = if pen.width() >= WORDS && is_mixed(all) { MARGIN } else { 0 };
        let mut group = None;
        for (y, (index, item)) in (0..pen.height()).zip(all.iter().enumerate().skip(first)) {
            if margin > 0 && group != Some(item.kind) {
                pen.text(0, y, item.kind.heading(), Role::Heading);
            }
            group = Some(item.kind);
            self.row(pen, margin, y, item, id_width(all, item.kind, pen.width()), index == at);
        }
    }

    fn row(&self, pen: &mut Pen<'_>, left: u16, y: u16, item: &Row, id_width: u16, chosen: bool) {
        if chosen {
            pen.row(left, pen.width(), y, " ", Role::Selection);
        }
        let own = |role: Role| if chosen { Role::Selection } else { role };
        let (sign, role) = mark(pen.theme(), item.status);
        let wide = pen.width() >= WORDS;
        let (status, used) = if wide { (item.status.word(item.kind), left + STATUS) } else { ("", left + 2) };
        pen.text(left, y, &format!("{sign} {status}"), own(role));
        let id = widget::clip(pen.theme(), item.id.as_str(), usize::from(id_width));
        let needle = self.needle.to_lowercase();
        let found = !needle.is_empty() && item.contains(&needle);
        pen.text(used, y, &id, own(if found { Role::Match } else { Role::Text }));
        let aside = widget::clip(pen.theme(), &beside(pen.theme(), item), usize::from(pen.width() / 3));
        let end = pen.width().saturating_sub(u16::try_from(widget::width(&aside)).unwrap_or(0));
        let start = used + id_width + 2;
        if end > start + 4 {
            let room = usize::from(end - start - 1);
            pen.text(start, y, &widget::clip(pen.theme(), item.text.as_str(), room), own(Role::Text));
            pen.text_before(pen.width(), y, &aside, own(Role::Muted));
        }
    }
}

/// Are there items of more than one kind?
fn is_mixed(all: &[Row]) -> bool {
    all.windows(2).any(|pair| matches!(pair, [one, other] if one.kind != other.kind))
}

/// Ids of one kind stand in one column.
fn id_width(all: &[Row], kind: RowKind, columns: u16) -> u16 {
    let ids = all.iter().filter(|item| item.kind == kind).map(|item| widget::width(item.id.as_str()));
    u16::try_from(ids.max().unwrap_or(0)).unwrap_or(u16::MAX).min(columns / 4)
}

/// What stands at the end of an item's row: its history, since when it is so, or what it hangs on.
fn beside(theme: &Theme, item: &Row) -> String {
    if !item.trend.is_empty() {
        return spark(theme, &item.trend);
    }
    let since = item.since_text();
    if since.is_empty() { item.aside.to_string() } else { since }
}

/// Scores from 0 to 1 as a row of small bars, the latest last.
fn spark(theme: &Theme, scores: &[Exact]) -> String {
    let levels = theme.glyphs().levels;
    let shown = scores.get(scores.len().saturating_sub(SPARK)..).unwrap_or_default();
    let bar = |score: &Exact| {
        // The lowest bar is one that is seen.
        let level = (score.to_f64_for_drawing().clamp(0.0, 1.0) * 7.0).round();
        let index = 1 + (1..8).filter(|step| f64::from(*step) <= level).count();
        levels.get(index).copied().unwrap_or_default()
    };
    shown.iter().map(bar).collect()
}

/// List and detail: the detail below, or beside a list that needs the rows.
fn split(area: Rect, items: usize) -> (Rect, Rect) {
    let wanted = u16::try_from(items.max(1)).unwrap_or(u16::MAX);
    if area.width >= BESIDE && wanted > area.height / 2 {
        let left = area.width * 13 / 20;
        let right = Rect { x: area.x + left + 1, width: area.width.saturating_sub(left + 1), ..area };
        return (Rect { width: left, ..area }, right);
    }
    let rows = wanted.min((area.height / 2).max(1));
    let list = Rect { height: rows.min(area.height), ..area };
    let detail = Rect { y: area.y + list.height, height: area.height - list.height, ..area };
    (list, detail)
}

fn mark(theme: &Theme, status: RowStatus) -> (&'static str, Role) {
    let glyphs = theme.glyphs();
    match status {
        RowStatus::Met => (glyphs.yes, Role::Good),
        RowStatus::NotMet => (glyphs.no, Role::Bad),
        RowStatus::NotAccepted => ("!", Role::Warning),
        RowStatus::Changed => (glyphs.yes, Role::Info),
        RowStatus::NotJudged => (glyphs.unknown, Role::Muted),
        RowStatus::Waiting => (glyphs.idle, Role::Muted),
        RowStatus::Working => (glyphs.current, Role::Info),
        RowStatus::Blocked => ("!", Role::Warning),
        RowStatus::Dropped => (glyphs.cut, Role::Muted),
    }
}

fn draw_detail(pen: &mut Pen<'_>, theme: &Theme, item: &Row) {
    let (sign, role) = mark(theme, item.status);
    let head = Line::from(vec![
        Span::styled(format!("{sign} {} ", item.status.word(item.kind)), theme.style(role)),
        Span::styled(item.id.to_string(), theme.style(Role::Title)),
    ]);
    pen.rule(head, item.kind.name(), Role::Border);
    let columns = usize::from(pen.width()).saturating_sub(9);
    let mut y = 1;
    let mut say = |name: &str, text: &str, role: Role| {
        for (index, row) in wrap(text, columns).into_iter().enumerate() {
            if index == 0 {
                pen.text_before(7, y, name, Role::Muted);
            }
            pen.text(9, y, &row, role);
            y += 1;
        }
    };
    say("what", item.text.as_str(), Role::Emphasis);
    if item.running {
        say("now", "its check is running", Role::Info);
    }
    for (name, text, look) in [("why", &item.why, role), ("how", &item.how, Role::Code)] {
        if !text.is_empty() {
            say(name, text.as_str(), look);
        }
    }
    if !item.trend.is_empty() {
        let scores: Vec<String> = item.trend.iter().map(Exact::to_string).collect();
        // The latest are the ones that matter, here too.
        let shown = scores.get(scores.len().saturating_sub(SPARK)..).unwrap_or_default().join(", ");
        say("trend", &format!("{}  {shown}", spark(theme, &item.trend)), Role::Residual);
    }
    for (name, text) in &item.more {
        say(name, text.as_str(), Role::Text);
    }
    match &item.proof {
        Some((path, sha)) => say("proof", &format!("{path}#{sha}"), Role::Link),
        None if item.kind == RowKind::Criterion => say("proof", "none yet", Role::Muted),
        None => {}
    }
    let story: Vec<String> = item
        .story
        .iter()
        .map(|(name, met)| format!("{name} {}", if *met { theme.glyphs().yes } else { theme.glyphs().no }))
        .collect();
    // The latest are the ones that matter.
    let room = columns / 7;
    let skipped = story.len().saturating_sub(room);
    let earlier = if skipped > 0 { format!("{} ", theme.glyphs().cut) } else { String::new() };
    if !story.is_empty() {
        say("story", &format!("{earlier}{}", story.get(skipped..).unwrap_or_default().join("  ")), Role::Text);
    }
    if !item.guards.is_empty() {
        say("guards", item.guards.as_str(), Role::Muted);
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod value_tests;
