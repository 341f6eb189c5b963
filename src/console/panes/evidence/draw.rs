//! How the tree and the opened file look.
//!
//! Not here: what is listed, opened or verified.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::console::paint;
use crate::console::prose;
use crate::console::scene::Scene;
use crate::console::theme::{Role, Theme};
use crate::console::widget;

use super::show::Content;
use super::tree::{File, Row};
use super::{Check, EvidencePane, FileMark, Focus, Reading};

impl EvidencePane {
    pub(super) fn list(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let theme = scene.theme;
        for (y, index) in (area.y..).zip(self.window.shown(self.tree.rows().len(), usize::from(area.height))) {
            let Some(row) = self.tree.rows().get(index) else { continue };
            let here = index == self.window.cursor() && scene.focused && self.focus == Focus::List;
            let line = match row {
                Row::Group { iteration, files, open } => self.group(theme, *iteration, *files, *open, here),
                Row::File(at) => match self.tree.files().get(*at) {
                    Some(file) => self.entry(theme, file, here),
                    None => continue,
                },
            };
            let line = widget::clip_line(theme, line, usize::from(area.width));
            frame.render_widget(line, Rect { y, height: 1, ..area });
        }
    }

    fn group(&self, theme: &Theme, iteration: Option<u32>, files: usize, open: bool, here: bool) -> Line<'static> {
        let glyphs = theme.glyphs();
        let name = iteration.map_or_else(|| "run".to_owned(), |number| format!("iteration {number}"));
        let fold = if open { glyphs.unfolded } else { glyphs.folded };
        let mut spans = vec![
            Span::styled(if here { glyphs.arrow_right } else { " " }, theme.style(Role::Key)),
            Span::styled(format!(" {fold} "), theme.style(Role::Muted)),
            Span::styled(name, theme.style(Role::Heading)),
            Span::styled(format!("  {files} files"), theme.style(Role::Muted)),
        ];
        if let Check::Done(verified, _) = &self.check {
            let mine = self.tree.files().iter().filter(|file| file.iteration == iteration);
            let bad = mine.filter(|file| matches!(Self::mark(verified, file), FileMark::Bad(_))).count();
            if bad > 0 {
                spans.push(Span::styled(format!("  {} {bad} wrong", glyphs.no), theme.style(Role::Bad)));
            }
        }
        Line::from(spans)
    }

    fn entry(&self, theme: &Theme, file: &File, here: bool) -> Line<'static> {
        let glyphs = theme.glyphs();
        let (sign, role, what) = match &self.check {
            Check::Done(verified, _) => match Self::mark(verified, file) {
                FileMark::Good => (glyphs.yes, Role::Good, None),
                FileMark::Bad(what) => (glyphs.no, Role::Bad, Some(what.to_string())),
                FileMark::Unknown => (glyphs.unknown, Role::Muted, None),
            },
            Check::Never | Check::Running => (glyphs.unknown, Role::Muted, None),
        };
        let open = self.opened.as_ref().is_some_and(|opened| opened.path == file.path);
        let name = prose::line(file.name());
        let base = if open { Role::Title } else { Role::Text };
        let needle = if self.focus == Focus::List { self.matches.needle() } else { "" };
        let mut spans = vec![
            Span::styled(if here { glyphs.arrow_right } else { " " }, theme.style(Role::Key)),
            Span::raw("   "),
            Span::styled(format!("{sign} "), theme.style(role)),
        ];
        spans.extend(paint::spans(theme, &name, 0..name.len(), &[], base, needle));
        if let Some(what) = what {
            spans.push(Span::styled(format!("  {what}"), theme.style(Role::Bad)));
        }
        Line::from(spans)
    }

    pub(super) fn file(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let theme = scene.theme;
        if area.height == 0 || area.width == 0 {
            return;
        }
        let Some(opened) = &self.opened else { return };
        let focused = scene.focused && self.focus == Focus::File;
        let place = match &opened.reading {
            Reading::There(Content::Text(document)) if focused => document.status(),
            Reading::There(Content::Patch(diff)) if focused => diff.status(),
            _ => String::new(),
        };
        let title = Line::from(Span::styled(format!(" {}", prose::line(&opened.path)), theme.style(Role::Title)));
        let place = widget::styled(place, theme.style(Role::Muted));
        let line = paint::both_ends(theme, title, place, usize::from(area.width));
        frame.render_widget(line, Rect { height: 1, ..area });
        let below = Rect { y: area.y + 1, height: area.height - 1, ..area };
        let say = |frame: &mut Frame<'_>, words: &str, role| {
            let words = widget::clip(theme, words, usize::from(below.width));
            frame.render_widget(widget::styled(words, theme.style(role)), below);
        };
        match &opened.reading {
            Reading::Asked => say(frame, " Reading ...", Role::Muted),
            Reading::Failed(why) => say(frame, &format!(" Cannot be read: {why}"), Role::Warning),
            Reading::There(Content::Text(document)) if document.is_empty() => say(frame, " It is empty.", Role::Muted),
            Reading::There(Content::Text(document)) => document.view(frame, below, theme, focused),
            Reading::There(Content::Patch(diff)) if diff.is_empty() => say(frame, " It is empty.", Role::Muted),
            Reading::There(Content::Patch(diff)) => diff.view(frame, below, theme, focused),
        }
    }
}
