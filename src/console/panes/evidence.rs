//! The evidence pane: what the run leaves behind to be believed, and whether it still can be.
//!
//! Not here: which files there are (`tree`), how one is read (`show`). Invariants: a file is asked for once;
//! a mark beside a file is what `verify` said of it, and only that.

mod draw;
mod show;
mod tree;

use std::path::PathBuf;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use crate::console::action::Action;
use crate::console::cmd::{Cmd, Load, Loaded, Verified, VerifiedAs};
use crate::console::paint;
use crate::console::prose;
use crate::console::scene::{News, Scene};
use crate::console::scroll::{Matches, Window};
use crate::console::theme::Role;
use crate::console::widget;
use crate::model::safe::Safe;

use super::Pane;
use show::Content;
use tree::{Basis, File, Row, Tree};

/// From this width on, the file stands beside the list.
const WIDE: u16 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Focus {
    #[default]
    List,
    File,
}

enum Reading {
    Asked,
    There(Content),
    Failed(Safe),
}

/// The file that is read.
struct Opened {
    path: String,
    reading: Reading,
    /// It may have changed since; it is asked for again.
    stale: bool,
}

enum Check {
    Never,
    Running,
    /// With the number of events there were.
    Done(Verified, u64),
}

/// What `verify` said of one file.
enum FileMark<'a> {
    Good,
    Bad(&'a Safe),
    Unknown,
}

pub struct EvidencePane {
    tree: Tree,
    basis: Option<Basis>,
    window: Window,
    focus: Focus,
    opened: Option<Opened>,
    check: Check,
    area: Rect,
    matches: Matches<usize>,
}

impl Default for EvidencePane {
    fn default() -> Self {
        Self {
            tree: Tree::default(),
            basis: None,
            window: Window::default(),
            focus: Focus::default(),
            opened: None,
            check: Check::Never,
            area: Rect::default(),
            matches: Matches::default(),
        }
    }
}

/// The line above, the list, and the file.
struct Parts {
    verdict: Rect,
    list: Rect,
    text: Rect,
}

impl EvidencePane {
    pub fn new() -> Self {
        Self::default()
    }

    fn wide(&self) -> bool {
        self.area.width >= WIDE
    }

    fn parts(&self, area: Rect) -> Parts {
        let inner = widget::inside(area);
        let line = u16::from(inner.height >= 3);
        let [verdict, rest] = Layout::vertical([Constraint::Length(line), Constraint::Fill(1)]).areas(inner);
        if area.width >= WIDE {
            let columns = (rest.width / 3).clamp(30, 44);
            let [list, _, text] =
                Layout::horizontal([Constraint::Length(columns), Constraint::Length(1), Constraint::Fill(1)])
                    .areas(rest);
            return Parts { verdict, list, text };
        }
        Parts { verdict, list: rest, text: rest }
    }

    fn fit(&mut self) {
        let Parts { list, text, .. } = self.parts(self.area);
        self.window.set_page(usize::from(list.height), self.tree.rows().len());
        if let Some(Opened { reading: Reading::There(content), .. }) = &mut self.opened {
            // One row is the file's name.
            let page = text.height.saturating_sub(1);
            match content {
                Content::Text(document) => document.resize(text.width, page),
                Content::Patch(diff) => diff.resize(page),
            }
        }
    }

    fn selected(&self) -> Option<&File> {
        self.tree.file_at(self.window.cursor())
    }

    /// Reads another file, unless it is the one that is read.
    fn open(&mut self, path: String) {
        if self.opened.as_ref().is_none_or(|opened| opened.path != path) {
            self.opened = Some(Opened { path, reading: Reading::Asked, stale: true });
        }
    }

    fn select(&mut self) {
        match self.tree.rows().get(self.window.cursor()).copied() {
            Some(Row::Group { iteration, .. }) => {
                self.tree.toggle(iteration);
                self.fit();
            }
            Some(Row::File(_)) => {
                if let Some(path) = self.selected().map(|file| file.path.clone()) {
                    self.open(path);
                    self.focus = Focus::File;
                    self.fit();
                }
            }
            None => {}
        }
    }

    fn act_in_file(&mut self, action: Action) -> bool {
        match &mut self.opened {
            Some(Opened { reading: Reading::There(Content::Text(document)), .. }) => document.act(action),
            Some(Opened { reading: Reading::There(Content::Patch(diff)), .. }) => diff.act(action),
            _ => false,
        }
    }

    fn jump_group(&mut self, forward: bool) {
        let cursor = self.window.cursor();
        let group = |index: &usize| matches!(self.tree.rows().get(*index), Some(Row::Group { .. }));
        let found =
            if forward { (cursor + 1..self.tree.rows().len()).find(group) } else { (0..cursor).rev().find(group) };
        if let Some(row) = found {
            self.window.jump(row, self.tree.rows().len());
        }
    }

    fn copied(&self) -> Option<Cmd> {
        let text = match (&self.opened, self.focus) {
            (Some(Opened { reading: Reading::There(content), .. }), Focus::File) => match content {
                Content::Text(document) => document.line(document.cursor())?.text.to_string(),
                Content::Patch(diff) => diff.hunk(),
            },
            _ => self.selected()?.path.clone(),
        };
        Some(Cmd::Copy { what: "evidence", text })
    }

    fn mark<'a>(verified: &'a Verified, file: &File) -> FileMark<'a> {
        // A place may go on with where in the file it is.
        let here =
            |place: &str| place.strip_prefix(&file.path).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        match verified.problems.iter().find(|(place, _)| here(place.as_str())) {
            Some((_, what)) => FileMark::Bad(what),
            None if verified.files > 0 => FileMark::Good,
            None => FileMark::Unknown,
        }
    }

    fn verdict(&self, scene: &Scene<'_>) -> Line<'static> {
        let theme = scene.theme;
        let glyphs = theme.glyphs();
        let (sign, role, words) = match &self.check {
            Check::Never => (glyphs.unknown, Role::Muted, "not verified yet".to_owned()),
            Check::Running => (glyphs.unknown, Role::Info, "verifying ...".to_owned()),
            Check::Done(verified, at) => {
                let counted = format!(
                    "{} events, {} files",
                    widget::count(verified.events),
                    widget::count(verified.files as u64)
                );
                let since = scene.run.next_seq.saturating_sub(*at);
                let since = if since > 0 { format!("; {} events since", widget::count(since)) } else { String::new() };
                match (verified.verdict, verified.problems.first()) {
                    (VerifiedAs::Ok, _) => (glyphs.yes, Role::Good, format!("verified: {counted}{since}")),
                    (VerifiedAs::Incomplete, first) => {
                        let why =
                            first.map_or_else(|| "the run has not ended".to_owned(), |(_, what)| what.to_string());
                        (glyphs.unknown, Role::Warning, format!("nothing wrong in {counted}, but {why}{since}"))
                    }
                    (VerifiedAs::Tampered, first) => {
                        let what = first.map_or_else(String::new, |(place, what)| format!("{place}: {what}"));
                        let more = verified.problems.len().saturating_sub(1);
                        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
                        (glyphs.no, Role::Bad, format!("TAMPERED: {what}{more}"))
                    }
                }
            }
        };
        Line::from(Span::styled(format!("{sign} {words}"), theme.style(role)))
    }
}

impl Pane for EvidencePane {
    fn act(&mut self, action: Action, _scene: &Scene<'_>) -> Vec<Cmd> {
        match action {
            Action::VerifyNow => {
                if matches!(self.check, Check::Running) {
                    return Vec::new();
                }
                self.check = Check::Running;
                return vec![Cmd::Load(Load::Verify)];
            }
            Action::Copy => return self.copied().into_iter().collect(),
            Action::OpenEditor => {
                let path = match (&self.opened, self.focus) {
                    (Some(opened), Focus::File) => Some(opened.path.clone()),
                    _ => self.selected().map(|file| file.path.clone()),
                };
                return path.map(|path| Cmd::OpenFile(PathBuf::from(path))).into_iter().collect();
            }
            Action::Back => {
                self.focus = Focus::List;
                self.fit();
                return Vec::new();
            }
            _ => {}
        }
        if self.focus == Focus::File {
            self.act_in_file(action);
            return Vec::new();
        }
        let rows = self.tree.rows().len();
        match action {
            Action::Select | Action::Right => self.select(),
            Action::NextIteration | Action::PreviousIteration => self.jump_group(action == Action::NextIteration),
            Action::NextMatch => {
                if let Some(row) = self.matches.next(self.window.cursor()) {
                    self.window.jump(row, rows);
                }
            }
            Action::PreviousMatch => {
                if let Some(row) = self.matches.previous(self.window.cursor()) {
                    self.window.jump(row, rows);
                }
            }
            action => {
                self.window.act(action, rows);
            }
        }
        Vec::new()
    }

    fn learn(&mut self, news: News<'_>) {
        if matches!(news, News::Reset) {
            *self = Self { area: self.area, ..Self::default() };
        }
    }

    fn take(&mut self, loaded: &Loaded) {
        match loaded {
            Loaded::Evidence(path, result) => {
                let Some(opened) = self.opened.as_mut().filter(|opened| opened.path == *path) else { return };
                opened.reading = match result {
                    Ok(bytes) => Reading::There(show::content(path, bytes)),
                    Err(why) => Reading::Failed(why.clone()),
                };
                self.fit();
            }
            Loaded::Verified(verified) => self.check = Check::Done(verified.clone(), verified.events),
            _ => {}
        }
    }

    fn refresh(&mut self, scene: &Scene<'_>) -> Vec<Cmd> {
        let basis = Basis::of(scene.run);
        if self.basis.as_ref() != Some(&basis) {
            let here = self.selected().map(|file| file.path.clone());
            self.tree.set(tree::files(scene.run));
            if let Some(row) = here.and_then(|path| self.tree.row_of(&path)) {
                self.window.go(row, self.tree.rows().len());
            } else if self.basis.is_none() {
                // The first file, not the heading above it.
                self.window.go(1, self.tree.rows().len());
            }
            if let Some(opened) = &mut self.opened {
                opened.stale = true;
            }
            self.basis = Some(basis);
            self.matches.start("");
            self.fit();
        }
        if self.wide()
            && self.focus == Focus::List
            && let Some(path) = self.selected().map(|file| file.path.clone())
        {
            self.open(path);
        }
        match &mut self.opened {
            Some(opened) if opened.stale => {
                opened.stale = false;
                vec![Cmd::Load(Load::Evidence(opened.path.clone()))]
            }
            _ => Vec::new(),
        }
    }

    fn search(&mut self, text: &str, _scene: &Scene<'_>) {
        if self.focus == Focus::File {
            match &mut self.opened {
                Some(Opened { reading: Reading::There(Content::Text(document)), .. }) => document.search(text),
                Some(Opened { reading: Reading::There(Content::Patch(diff)), .. }) => diff.search(text),
                _ => {}
            }
            return;
        }
        self.matches.start(text);
        for row in 0..self.tree.rows().len() {
            let found =
                self.tree.file_at(row).is_some_and(|file| prose::find(&file.path, self.matches.needle(), 0).is_some());
            if found {
                self.matches.add(row);
            }
        }
        if let Some(row) = self.matches.seek(self.window.cursor()) {
            self.window.jump(row, self.tree.rows().len());
        }
    }

    fn resize(&mut self, area: Rect) {
        self.area = area;
        self.fit();
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let theme = scene.theme;
        let mut status = Vec::new();
        if !scene.live {
            status.push("list from an earlier moment, current files".to_owned());
        }
        if let Some(label) = self.matches.label().filter(|_| self.focus == Focus::List) {
            status.push(format!("\"{}\" {label}", Safe::line(self.matches.needle())));
        }
        status.push(format!("{} files", self.tree.files().len()));
        let block = widget::panel(theme, "Evidence", scene.focused);
        frame.render_widget(paint::corner(block, theme, "Evidence", &status.join(", "), area.width), area);
        let Parts { verdict, list, text } = self.parts(area);
        let line = widget::clip_line(theme, self.verdict(scene), usize::from(verdict.width));
        frame.render_widget(line, verdict);
        let both = area.width >= WIDE;
        if both || self.focus == Focus::List {
            self.list(frame, list, scene);
        }
        if both && text.x > list.right() {
            for y in text.y..text.bottom() {
                let rule = widget::styled(theme.glyphs().line_v, theme.style(Role::Border));
                frame.render_widget(rule, Rect { x: list.right(), y, width: 1, height: 1 });
            }
        }
        if both || self.focus == Focus::File {
            self.file(frame, text, scene);
        }
    }
}

#[cfg(test)]
mod tests;
