//! The plan: what has to be true at the end, whether it is, and what proves it.
//!
//! Not here: checking. An `Item` is anything a playbook works off; the pane does not know which
//! playbook it came from. Invariants: "met" is what the engine certified; a green check whose guards were
//! changed is shown as not accepted, never as met.

mod items;

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

use super::Pane;
use super::list::ListCursor;
use items::{Item, Status};

/// Columns from which the detail stands beside the list.
const BESIDE: u16 = 110;
/// Columns of the status word.
const STATUS: u16 = 15;

/// The pane.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    cursor: ListCursor,
    needle: String,
}

impl Plan {
    pub fn new() -> Self {
        Self::default()
    }

    fn seek(&mut self, all: &[Item], backwards: bool) {
        let needle = self.needle.to_lowercase();
        if !needle.is_empty() {
            self.cursor.seek(all.len(), backwards, |index| all.get(index).is_some_and(|item| item.contains(&needle)));
        }
    }
}

impl Pane for Plan {
    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Cmd> {
        let all = items::items(scene.run);
        if self.cursor.act(action, all.len()) {
            return Vec::new();
        }
        let here = all.get(self.cursor.at(all.len()));
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
                    return vec![Cmd::Copy { what: item.kind, text: item.as_text() }];
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
        let all = items::items(scene.run);
        let at = self.cursor.at(all.len());
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
        let all = items::items(scene.run);
        let title = widget::clip(theme, &items::title(scene.run), usize::from(area.width.saturating_sub(4)));
        let block = widget::panel(theme, &title, scene.focused);
        let inner = block.inner(area);
        frame.render_widget(block, area);
        if inner.is_empty() {
            return;
        }
        let (list, detail) = split(inner, all.len());
        self.list(&mut Pen::new(frame.buffer_mut(), list, theme), &all);
        if let Some(item) = all.get(self.cursor.at(all.len())) {
            draw_detail(&mut Pen::new(frame.buffer_mut(), detail, theme), theme, item);
        }
    }
}

impl Plan {
    fn list(&self, pen: &mut Pen<'_>, all: &[Item]) {
        if all.is_empty() {
            pen.text(0, 0, "No criterion is declared: the run will ask for one.", Role::Muted);
        }
        let rows = usize::from(pen.height());
        let at = self.cursor.at(all.len());
        let first = self.cursor.first(all.len(), rows);
        let needle = self.needle.to_lowercase();
        let id_width = all.iter().map(|item| widget::width(item.id.as_str())).max().unwrap_or(0);
        let id_width = u16::try_from(id_width).unwrap_or(u16::MAX).min(pen.width() / 4);
        for (y, (index, item)) in (0..pen.height()).zip(all.iter().enumerate().skip(first)) {
            let (sign, role) = mark(pen.theme(), item.status);
            if index == at {
                pen.row(0, pen.width(), y, " ", Role::Selection);
            }
            let own = |role: Role| if index == at { Role::Selection } else { role };
            let status = if pen.width() >= 60 { item.status.word() } else { "" };
            let used = if pen.width() >= 60 { STATUS } else { 2 };
            pen.text(0, y, &format!("{sign} {status}"), own(role));
            let id = widget::clip(pen.theme(), item.id.as_str(), usize::from(id_width));
            let found = !needle.is_empty() && item.contains(&needle);
            pen.text(used, y, &id, own(if found { Role::Match } else { Role::Text }));
            let since = item.since_text();
            let end = pen.width().saturating_sub(u16::try_from(widget::width(&since)).unwrap_or(0));
            let start = used + id_width + 2;
            if end > start + 4 {
                let room = usize::from(end - start - 1);
                pen.text(start, y, &widget::clip(pen.theme(), item.text.as_str(), room), own(Role::Text));
                pen.text_before(pen.width(), y, &since, own(Role::Muted));
            }
        }
    }
}

/// List and detail: the detail below, or beside a list that needs the rows.
fn split(area: Rect, items: usize) -> (Rect, Rect) {
    let wanted = u16::try_from(items.max(1)).unwrap_or(u16::MAX);
    if area.width >= BESIDE && wanted > area.height / 2 {
        let left = area.width * 11 / 20;
        let right = Rect { x: area.x + left + 1, width: area.width.saturating_sub(left + 1), ..area };
        return (Rect { width: left, ..area }, right);
    }
    let rows = wanted.min((area.height / 2).max(1));
    let list = Rect { height: rows.min(area.height), ..area };
    let detail = Rect { y: area.y + list.height, height: area.height - list.height, ..area };
    (list, detail)
}

fn mark(theme: &Theme, status: Status) -> (&'static str, Role) {
    let glyphs = theme.glyphs();
    match status {
        Status::Met => (glyphs.yes, Role::Good),
        Status::NotMet => (glyphs.no, Role::Bad),
        Status::NotAccepted => ("!", Role::Warning),
        Status::NotJudged => (glyphs.unknown, Role::Muted),
        Status::Waiting => (glyphs.idle, Role::Muted),
        Status::Working => (glyphs.current, Role::Info),
        Status::Blocked => ("!", Role::Warning),
        Status::Dropped => (glyphs.cut, Role::Muted),
    }
}

fn draw_detail(pen: &mut Pen<'_>, theme: &Theme, item: &Item) {
    let (sign, role) = mark(theme, item.status);
    let head = Line::from(vec![
        Span::styled(format!("{sign} {} ", item.status.word()), theme.style(role)),
        Span::styled(item.id.to_string(), theme.style(Role::Title)),
    ]);
    pen.rule(head, item.kind, Role::Border);
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
    match &item.proof {
        Some((path, sha)) => say("proof", &format!("{path}#{sha}"), Role::Link),
        None if item.kind == "criterion" => say("proof", "none yet", Role::Muted),
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
