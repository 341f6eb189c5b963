//! The changes pane: what each iteration changed, file by file and line by line.
//!
//! Not here: diffs as such. Invariants: a diff is asked for once; the newest iteration is followed until the
//! operator chooses another.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use crate::console::action::Action;
use crate::console::cmd::{Cmd, Load, Loaded};
use crate::console::diff::Diff;
use crate::console::paint;
use crate::console::prose;
use crate::console::scene::{News, Scene};
use crate::console::theme::Role;
use crate::console::widget;
use crate::machine::event::{ArtifactsCollected, ChangeKind};
use crate::machine::run::RunState;
use crate::model::digest::Digest;
use crate::model::safe::Safe;

use super::Pane;

/// From this width on, files stand beside the diff.
const WIDE: u16 = 100;
/// Diffs that are kept.
const KEPT: usize = 4;
/// Files that are listed above a diff.
const LISTED: usize = 4;

enum Kept {
    Asked,
    There(Box<Diff>),
    Failed(Safe),
}

#[derive(Default)]
pub struct ChangesPane {
    /// The iteration that is shown; `None`: the newest.
    chosen: Option<u32>,
    kept: Vec<(Digest, Kept)>,
    area: Rect,
    needle: String,
}

impl ChangesPane {
    pub fn new() -> Self {
        Self::default()
    }

    fn selected<'a>(&self, run: &'a RunState) -> Option<&'a ArtifactsCollected> {
        let mut all = run.iterations().filter_map(|iteration| iteration.artifacts.as_ref());
        match self.chosen {
            Some(number) => {
                let found = all.find(|artifacts| artifacts.iteration == number);
                found.or_else(|| run.iterations().rev().find_map(|iteration| iteration.artifacts.as_ref()))
            }
            None => all.next_back(),
        }
    }

    /// The iteration whose changes are shown.
    pub fn shown_iteration(&self, run: &RunState) -> Option<u32> {
        self.selected(run).map(|artifacts| artifacts.iteration)
    }

    fn kept(&self, digest: Digest) -> Option<&Kept> {
        self.kept.iter().find(|(other, _)| *other == digest).map(|(_, kept)| kept)
    }

    fn diff_mut(&mut self, digest: Digest) -> Option<&mut Diff> {
        let (_, kept) = self.kept.iter_mut().find(|(other, _)| *other == digest)?;
        match kept {
            Kept::There(diff) => Some(diff),
            Kept::Asked | Kept::Failed(_) => None,
        }
    }

    fn choose(&mut self, run: &RunState, forward: bool) {
        let numbers: Vec<u32> =
            run.iterations().filter_map(|iteration| iteration.artifacts.as_ref()).map(|a| a.iteration).collect();
        let Some(now) = self.selected(run).map(|artifacts| artifacts.iteration) else { return };
        let other = if forward {
            numbers.iter().find(|number| **number > now)
        } else {
            numbers.iter().rev().find(|number| **number < now)
        };
        match other {
            Some(number) if numbers.last() == Some(number) => self.chosen = None,
            Some(number) => self.chosen = Some(*number),
            None => {}
        }
    }

    fn fit(&mut self) {
        let page = widget::inside(self.area).height;
        for (_, kept) in &mut self.kept {
            if let Kept::There(diff) = kept {
                let listed = if self.area.width >= WIDE { 0 } else { list_height(diff.files().len(), page) };
                diff.resize(page.saturating_sub(listed));
            }
        }
    }
}

/// Rows of the list above a diff, with the line below it.
fn list_height(files: usize, page: u16) -> u16 {
    let most = LISTED.min(usize::from(page / 3));
    let rows = if files > most { most } else { files };
    u16::try_from(rows).unwrap_or(0) + u16::from(rows > 0)
}

impl Pane for ChangesPane {
    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Cmd> {
        match action {
            Action::NextIteration | Action::PreviousIteration => {
                self.choose(scene.run, action == Action::NextIteration);
                return Vec::new();
            }
            _ => {}
        }
        let Some(digest) = self.selected(scene.run).map(|artifacts| artifacts.diff) else { return Vec::new() };
        let Some(diff) = self.diff_mut(digest) else { return Vec::new() };
        match action {
            Action::Copy => vec![Cmd::Copy { what: "hunk", text: diff.hunk() }],
            Action::OpenEditor | Action::Select => {
                let path = diff.file().and_then(|file| widget::workspace_path(&file.path));
                path.map(Cmd::OpenFile).into_iter().collect()
            }
            _ => {
                diff.act(action);
                Vec::new()
            }
        }
    }

    fn learn(&mut self, news: News<'_>) {
        if matches!(news, News::Reset) {
            *self = Self { area: self.area, ..Self::default() };
        }
    }

    fn take(&mut self, loaded: &Loaded) {
        let Loaded::Blob(digest, result) = loaded else { return };
        let Some((_, kept)) = self.kept.iter_mut().find(|(other, _)| other == digest) else { return };
        if !matches!(kept, Kept::Asked) {
            return;
        }
        *kept = match result {
            Ok(bytes) => {
                let mut diff = Diff::new(std::sync::Arc::clone(bytes));
                diff.search(&self.needle);
                Kept::There(Box::new(diff))
            }
            Err(why) => Kept::Failed(why.clone()),
        };
        self.fit();
    }

    fn refresh(&mut self, scene: &Scene<'_>) -> Vec<Cmd> {
        let Some(artifacts) = self.selected(scene.run) else { return Vec::new() };
        if artifacts.changes.is_empty() || self.kept(artifacts.diff).is_some() {
            return Vec::new();
        }
        if self.kept.len() >= KEPT {
            self.kept.remove(0);
        }
        self.kept.push((artifacts.diff, Kept::Asked));
        vec![Cmd::Load(Load::Blob(artifacts.diff))]
    }

    fn search(&mut self, text: &str, scene: &Scene<'_>) {
        self.needle = text.to_owned();
        let Some(digest) = self.selected(scene.run).map(|artifacts| artifacts.diff) else { return };
        if let Some(diff) = self.diff_mut(digest) {
            diff.search(text);
        }
    }

    fn resize(&mut self, area: Rect) {
        self.area = area;
        self.fit();
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let theme = scene.theme;
        let selected = self.selected(scene.run);
        let kept = selected.and_then(|artifacts| self.kept(artifacts.diff));
        let status = selected.map_or_else(String::new, |artifacts| {
            let count = scene.run.iterations().filter(|iteration| iteration.artifacts.is_some()).count();
            let newest = if self.chosen.is_none() { " (newest)" } else { "" };
            let place = match kept {
                Some(Kept::There(diff)) => format!(", {}", diff.status()),
                Some(Kept::Asked | Kept::Failed(_)) | None => String::new(),
            };
            let undone = match scene.run.git.taken_back.get(&artifacts.iteration) {
                Some(undone) => format!(", undone by {}", prose::line(&undone.by)),
                None if scene.run.git.undo == Some(artifacts.iteration) => ", being undone".to_owned(),
                None => String::new(),
            };
            format!("iteration {}{newest}{undone}, {count} in all{place}", artifacts.iteration)
        });
        let block = widget::panel(theme, "Changes", scene.focused);
        frame.render_widget(paint::corner(block, theme, "Changes", &status, area.width), area);
        let inner = widget::inside(area);
        let say = |frame: &mut Frame<'_>, area: Rect, words: &str| {
            let words = widget::clip(theme, words, usize::from(area.width));
            frame.render_widget(widget::styled(words, theme.style(Role::Muted)), area);
        };
        let Some(artifacts) = selected else {
            return say(frame, inner, "No iteration has changed anything yet.");
        };
        if artifacts.changes.is_empty() {
            let words = format!("Iteration {} changed no file.", artifacts.iteration);
            return say(frame, inner, &words);
        }
        let diff = match kept {
            Some(Kept::There(diff)) => Some(diff),
            Some(Kept::Asked | Kept::Failed(_)) | None => None,
        };
        let (list, text) = if area.width >= WIDE {
            let columns = (inner.width / 3).clamp(24, 48);
            let [list, text] = Layout::horizontal([Constraint::Length(columns), Constraint::Fill(1)]).areas(inner);
            (list, text)
        } else {
            let files = diff.map_or(artifacts.changes.len(), |diff| diff.files().len());
            let rows = list_height(files, inner.height);
            let [list, text] = Layout::vertical([Constraint::Length(rows), Constraint::Fill(1)]).areas(inner);
            (list, text)
        };
        self.list(frame, list, scene, artifacts, diff.map(|diff| &**diff));
        match kept {
            Some(Kept::There(diff)) if diff.is_empty() => say(frame, text, "The diff is empty."),
            Some(Kept::There(diff)) => diff.view(frame, text, theme, scene.focused),
            Some(Kept::Failed(why)) => say(frame, text, &format!("The diff cannot be read: {why}")),
            Some(Kept::Asked) | None => say(frame, text, "Reading the diff ..."),
        }
    }
}

impl ChangesPane {
    fn list(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        scene: &Scene<'_>,
        artifacts: &ArtifactsCollected,
        diff: Option<&Diff>,
    ) {
        let theme = scene.theme;
        if area.height == 0 || area.width == 0 {
            return;
        }
        let beside = area.y + area.height >= widget::inside(self.area).bottom();
        let rows = usize::from(area.height) - usize::from(!beside);
        let here = diff.and_then(Diff::file).map(|file| file.path.as_str());
        let at = artifacts.changes.iter().position(|change| Some(change.path.as_str()) == here).unwrap_or(0);
        // The file under the cursor is always among those shown.
        let top = at.saturating_sub(rows.saturating_sub(1));
        let left_out = artifacts.changes.len().saturating_sub(top + rows);
        for (y, change) in (area.y..).zip(artifacts.changes.iter().skip(top).take(rows)) {
            let (word, role) = match change.kind {
                ChangeKind::Added => ("added   ", Role::DiffAdded),
                ChangeKind::Modified => ("modified", Role::Info),
                ChangeKind::Deleted => ("deleted ", Role::DiffRemoved),
            };
            let current = Some(change.path.as_str()) == here;
            let mark = if current { theme.glyphs().arrow_right } else { " " };
            let mut left = vec![
                Span::styled(format!("{mark} "), theme.style(Role::Key)),
                Span::styled(format!("{word} "), theme.style(role)),
                Span::styled(prose::line(&change.path), theme.style(if current { Role::Title } else { Role::Text })),
            ];
            let guards = |path: &String| {
                artifacts.guards_touched.values().any(|g| g.script.contains(path) || g.others.contains(path))
            };
            if guards(&change.path) || artifacts.instruments_touched.contains(&change.path) {
                left.push(Span::styled(" ! guards a check", theme.style(Role::Warning)));
            }
            let stat = diff.and_then(|diff| diff.files().iter().find(|file| file.path == change.path));
            let mut right = Vec::new();
            if let Some(file) = stat {
                right.push(Span::styled(format!("+{}", file.added), theme.style(Role::DiffAdded)));
                right.push(Span::styled(format!(" -{} ", file.removed), theme.style(Role::DiffRemoved)));
            }
            let line = paint::both_ends(theme, Line::from(left), Line::from(right), usize::from(area.width));
            frame.render_widget(line, Rect { y, height: 1, ..area });
        }
        if !beside {
            let words = if left_out > 0 { format!(" {left_out} more files ") } else { String::new() };
            let rule = theme.glyphs().line_h.repeat(usize::from(area.width).saturating_sub(widget::width(&words)));
            let line = Line::from(Span::styled(format!("{words}{rule}"), theme.style(Role::Border)));
            let line = widget::clip_line(theme, line, usize::from(area.width));
            frame.render_widget(line, Rect { y: area.bottom() - 1, height: 1, ..area });
        } else if left_out > 0 && rows > 0 {
            let words = widget::clip(theme, &format!("  {} more files", left_out + 1), usize::from(area.width));
            let line =
                widget::styled(format!("{words:width$}", width = usize::from(area.width)), theme.style(Role::Muted));
            frame.render_widget(line, Rect { y: area.bottom() - 1, height: 1, ..area });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::console::sample::{Sample, scene, screen};
    use crate::console::theme::{Glyphs, Theme};

    fn load(pane: &mut ChangesPane, sample: &Sample, state: &RunState) {
        let theme = Theme::dark();
        for cmd in pane.refresh(&scene(state, &theme)) {
            let Cmd::Load(Load::Blob(digest)) = cmd else { panic!("{cmd:?}") };
            let bytes: Arc<[u8]> = Arc::from(sample.blobs.get(&digest).unwrap());
            pane.take(&Loaded::Blob(digest, Ok(bytes)));
        }
        assert_eq!(pane.refresh(&scene(state, &theme)), [], "asked twice");
    }

    fn draw(pane: &mut ChangesPane, state: &RunState, theme: &Theme, width: u16, height: u16) -> String {
        pane.resize(Rect::new(0, 0, width, height));
        screen(width, height, |frame| pane.view(frame, frame.area(), &scene(state, theme)))
    }

    #[test]
    fn it_reads_well() {
        let sample = Sample::demo();
        let state = sample.ended();
        let theme = Theme::dark();
        let mut pane = ChangesPane::new();
        insta::assert_snapshot!("changes_loading", draw(&mut pane, &state, &theme, 60, 6));
        load(&mut pane, &sample, &state);
        insta::assert_snapshot!("changes_80x20", draw(&mut pane, &state, &theme, 80, 20));
        insta::assert_snapshot!("changes_120x36", draw(&mut pane, &state, &theme, 120, 36));
        let ascii = Theme::plain().with_glyphs(Glyphs::ASCII);
        insta::assert_snapshot!("changes_ascii", draw(&mut pane, &state, &ascii, 80, 20));
    }

    #[test]
    fn iterations_are_switched_and_the_newest_is_followed() {
        let sample = Sample::demo();
        let state = sample.ended();
        let theme = Theme::dark();
        let mut pane = ChangesPane::new();
        load(&mut pane, &sample, &state);
        let newest = pane.selected(&state).unwrap().iteration;
        pane.act(Action::PreviousIteration, &scene(&state, &theme));
        load(&mut pane, &sample, &state);
        let shown = draw(&mut pane, &state, &theme, 80, 20);
        assert!(shown.contains(&format!("iteration {}, ", newest - 1)), "{shown}");
        pane.act(Action::NextIteration, &scene(&state, &theme));
        assert_eq!(pane.chosen, None);
        let cmds = pane.act(Action::Copy, &scene(&state, &theme));
        assert!(matches!(cmds.as_slice(), [Cmd::Copy { text, .. }] if text.contains("slug.sh")), "{cmds:?}");
        let cmds = pane.act(Action::OpenEditor, &scene(&state, &theme));
        assert_eq!(cmds, [Cmd::OpenFile("slug.sh".into())]);
        pane.search("slug", &scene(&state, &theme));
        assert!(draw(&mut pane, &state, &theme, 80, 20).contains("\"slug\" 1/"));
    }

    #[test]
    fn many_files_and_touched_guards_are_shown() {
        let sample = Sample::demo();
        let mut state = sample.ended();
        let artifacts = state.done.last_mut().or(state.current.as_mut()).unwrap().artifacts.as_mut().unwrap();
        let one = artifacts.changes[0].clone();
        for number in 0..30 {
            let path = format!("src/a/very/long/path/to/a/file/number_{number}.rs");
            artifacts.changes.push(crate::machine::event::Change { path, ..one.clone() });
        }
        let guards = crate::machine::event::GuardsTouched { script: vec![one.path.clone()], others: Vec::new() };
        artifacts.guards_touched.insert("lowercase".into(), guards);
        let number = artifacts.iteration;
        let mut pane = ChangesPane { chosen: Some(number), ..ChangesPane::new() };
        load(&mut pane, &sample, &state);
        let shown = draw(&mut pane, &state, &Theme::dark(), 80, 20);
        assert!(shown.contains("more files") && shown.contains("guards a check"), "{shown}");
        let shown = draw(&mut pane, &state, &Theme::dark(), 120, 20);
        assert!(shown.contains("more files"), "{shown}");
    }

    #[test]
    fn an_iteration_that_was_taken_back_says_by_whom() {
        let sample = Sample::demo();
        let mut state = sample.ended();
        let mut pane = ChangesPane::new();
        load(&mut pane, &sample, &state);
        let number = pane.shown_iteration(&state).unwrap();
        assert!(!draw(&mut pane, &state, &Theme::dark(), 120, 20).contains("undone"));
        let undone = crate::machine::repository::Undone { by: "ada\u{1b}[2J".into(), files: Vec::new() };
        state.git.taken_back.insert(number, undone);
        assert!(draw(&mut pane, &state, &Theme::dark(), 120, 20).contains("undone by ada"));
        state.git.taken_back.clear();
        state.git.undo = Some(number);
        assert!(draw(&mut pane, &state, &Theme::dark(), 120, 20).contains("being undone"));
    }

    #[test]
    fn any_size_is_survived() {
        let sample = Sample::demo();
        let state = sample.ended();
        let mut pane = ChangesPane::new();
        load(&mut pane, &sample, &state);
        for width in [1u16, 2, 3, 5, 9, 17, 40, 80, 100, 300] {
            for height in [1u16, 2, 3, 5, 12, 120] {
                draw(&mut pane, &state, &Theme::dark(), width, height);
                pane.act(Action::PageDown, &scene(&state, &Theme::dark()));
                pane.act(Action::Right, &scene(&state, &Theme::dark()));
            }
        }
    }
}
