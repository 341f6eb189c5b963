//! The learnings pane: AGENTS.md, as it is now or as it stood at an earlier moment.
//!
//! Not here: Markdown. Invariants: the file is asked for once per digest that the run knows of; a lane
//! filter hides lines, never their headings.

use std::path::PathBuf;

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::console::action::Action;
use crate::console::cmd::{Cmd, Load, Loaded};
use crate::console::document::{DocLine, Document};
use crate::console::markdown::{self, Marked};
use crate::console::paint;
use crate::console::scene::{News, Scene};
use crate::console::theme::Role;
use crate::console::widget;
use crate::model::digest::Digest;
use crate::model::lane::Lane;
use crate::model::safe::Safe;

use super::Pane;

const FILE: &str = "AGENTS.md";
/// More than this is not shown: the file is there to be read elsewhere.
const MOST_BYTES: usize = 8 << 20;

/// What the shown text was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The file, when the run knew this digest of it.
    File(Option<Digest>),
    /// The run's own section at an earlier moment.
    Moment(Option<Digest>, usize),
}

#[derive(Default)]
pub struct LearningsPane {
    marked: Vec<Marked>,
    document: Document,
    /// The numbers of `marked` that the document shows.
    shown: Vec<usize>,
    lane: Option<Lane>,
    source: Option<Source>,
    /// A file was asked for and has not come.
    waiting: bool,
    problem: Option<Safe>,
    cut_bytes: usize,
}

impl LearningsPane {
    pub fn new() -> Self {
        Self::default()
    }

    fn set(&mut self, text: &str) {
        self.marked = markdown::parse(text);
        self.rebuild();
    }

    fn rebuild(&mut self) {
        let keep = |one: &Marked| match self.lane {
            None => true,
            Some(lane) => one.lane == Some(lane) || one.iteration.is_some(),
        };
        self.shown = (0..self.marked.len()).filter(|index| self.marked.get(*index).is_some_and(keep)).collect();
        let lines: Vec<DocLine> =
            self.shown.iter().filter_map(|index| self.marked.get(*index)).map(|one| one.line.clone()).collect();
        self.document.replace(lines);
    }

    fn here(&self) -> Option<&Marked> {
        self.marked.get(*self.shown.get(self.document.cursor())?)
    }

    fn next_lane(&self) -> Option<Lane> {
        match self.lane {
            None => Some(Lane::A),
            Some(Lane::A) => Some(Lane::B),
            Some(Lane::B) => Some(Lane::C),
            Some(Lane::C) => None,
        }
    }

    fn status(&self, scene: &Scene<'_>) -> String {
        let mut parts = Vec::new();
        if !scene.live {
            parts.push("earlier moment".to_owned());
        }
        if let Some(lane) = self.lane {
            let count = self.shown.iter().filter(|index| self.marked.get(**index).is_some_and(|m| m.lane.is_some()));
            parts.push(format!("lane {lane} only: {}", count.count()));
        }
        if !self.document.is_empty() {
            parts.push(self.document.status());
        }
        parts.join(", ")
    }
}

impl Pane for LearningsPane {
    fn act(&mut self, action: Action, _scene: &Scene<'_>) -> Vec<Cmd> {
        if self.document.act(action) {
            return Vec::new();
        }
        match action {
            Action::FilterLane => {
                let at = self.shown.get(self.document.cursor()).copied().unwrap_or(0);
                self.lane = self.next_lane();
                self.rebuild();
                self.document.go(self.shown.partition_point(|index| *index < at));
            }
            Action::NextIteration | Action::PreviousIteration => {
                let (marked, shown) = (&self.marked, &self.shown);
                let heading = |index: usize, _: &DocLine| {
                    shown.get(index).and_then(|index| marked.get(*index)).is_some_and(|one| one.iteration.is_some())
                };
                self.document.jump(action == Action::NextIteration, heading);
            }
            Action::OpenEditor | Action::Select => {
                let link = self.here().and_then(|one| one.link.as_ref());
                return match (link, action) {
                    (Some(link), _) => widget::workspace_path(&link.path).map(Cmd::OpenFile).into_iter().collect(),
                    (None, Action::OpenEditor) => vec![Cmd::OpenFile(PathBuf::from(FILE))],
                    (None, _) => Vec::new(),
                };
            }
            Action::Copy => {
                let Some(one) = self.here() else { return Vec::new() };
                let mut text = one.line.text.to_string();
                if let Some(link) = &one.link {
                    // The digest is short on the screen; a copy is for using.
                    text.push_str(&format!("\n{link}"));
                }
                return vec![Cmd::Copy { what: "learning", text }];
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

    fn take(&mut self, loaded: &Loaded) {
        let Loaded::Learnings(result) = loaded else { return };
        self.waiting = false;
        if !matches!(self.source, Some(Source::File(_))) {
            return;
        }
        match result {
            Ok(bytes) => {
                self.problem = None;
                self.cut_bytes = bytes.len().saturating_sub(MOST_BYTES);
                let kept = bytes.get(..bytes.len().min(MOST_BYTES)).unwrap_or_default();
                self.set(&String::from_utf8_lossy(kept));
            }
            Err(why) => {
                self.problem = Some(why.clone());
                self.set("");
            }
        }
    }

    fn refresh(&mut self, scene: &Scene<'_>) -> Vec<Cmd> {
        let digest = scene.run.learnings_sha256;
        if scene.live {
            let wanted = Source::File(digest);
            if self.source != Some(wanted) {
                self.source = Some(wanted);
                self.waiting = true;
                return vec![Cmd::Load(Load::Learnings)];
            }
            return Vec::new();
        }
        let wanted = Source::Moment(digest, scene.run.recorded().count());
        if self.source != Some(wanted) {
            self.source = Some(wanted);
            self.problem = None;
            self.set(&scene.run.learnings_document());
        }
        Vec::new()
    }

    fn search(&mut self, text: &str, _scene: &Scene<'_>) {
        self.document.search(text);
    }

    fn resize(&mut self, area: Rect) {
        let inner = widget::inside(area);
        self.document.resize(inner.width, inner.height);
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let theme = scene.theme;
        let block = widget::panel(theme, "Learnings", scene.focused);
        let block = paint::corner(block, theme, "Learnings", &self.status(scene), area.width);
        let block = if self.cut_bytes > 0 {
            let words = format!("{} more bytes in {FILE}", widget::count(self.cut_bytes as u64));
            paint::foot(block, theme, &words, Role::Warning, area.width)
        } else {
            block
        };
        frame.render_widget(block, area);
        let inner = widget::inside(area);
        let words = match (&self.problem, self.document.is_empty()) {
            (Some(why), _) => Some(format!("{FILE} cannot be read: {why}")),
            (None, true) if self.waiting => Some(format!("Reading {FILE} ...")),
            (None, true) if self.lane.is_some() => Some("Nothing in this lane yet.".to_owned()),
            (None, true) => Some(format!("{FILE} is empty: the first entry follows the first iteration.")),
            (None, false) => None,
        };
        match words {
            Some(words) => {
                let words = widget::clip(theme, &words, usize::from(inner.width));
                frame.render_widget(widget::styled(words, theme.style(Role::Muted)), inner);
            }
            None => self.document.view(frame, inner, theme, scene.focused),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::console::sample::{Sample, scene, screen};
    use crate::console::theme::{Glyphs, Theme};
    use crate::machine::run::RunState;

    fn loaded(state: &RunState) -> LearningsPane {
        let mut pane = LearningsPane::new();
        let theme = Theme::dark();
        assert_eq!(pane.refresh(&scene(state, &theme)), [Cmd::Load(Load::Learnings)]);
        assert_eq!(pane.refresh(&scene(state, &theme)), [], "asked twice");
        let text = format!("# Our team's notes\n\nBe **kind**.\n\n{}", state.learnings_document());
        pane.take(&Loaded::Learnings(Ok(Arc::from(text.as_bytes()))));
        pane
    }

    fn draw(pane: &mut LearningsPane, state: &RunState, theme: &Theme, width: u16, height: u16) -> String {
        pane.resize(Rect::new(0, 0, width, height));
        screen(width, height, |frame| pane.view(frame, frame.area(), &scene(state, theme)))
    }

    #[test]
    fn it_reads_well() {
        let state = Sample::demo().ended();
        let mut pane = loaded(&state);
        let theme = Theme::dark();
        pane.resize(Rect::new(0, 0, 80, 20));
        pane.act(Action::NextIteration, &scene(&state, &theme));
        insta::assert_snapshot!("learnings_80x20", draw(&mut pane, &state, &theme, 80, 20));
        insta::assert_snapshot!("learnings_120x36", draw(&mut pane, &state, &theme, 120, 36));
        pane.act(Action::FilterLane, &scene(&state, &theme));
        let ascii = Theme::plain().with_glyphs(Glyphs::ASCII);
        insta::assert_snapshot!("learnings_ascii", draw(&mut pane, &state, &ascii, 80, 20));
    }

    #[test]
    fn lanes_filter_and_links_open() {
        let state = Sample::demo().ended();
        let mut pane = loaded(&state);
        let theme = Theme::dark();
        draw(&mut pane, &state, &theme, 80, 40);
        pane.act(Action::FilterLane, &scene(&state, &theme));
        let shown = draw(&mut pane, &state, &theme, 80, 40);
        assert!(shown.contains("[A]") && !shown.contains("[C]") && shown.contains("Iteration 1"), "{shown}");
        pane.search("[A]", &scene(&state, &theme));
        let cmds = pane.act(Action::OpenEditor, &scene(&state, &theme));
        let [Cmd::OpenFile(path)] = cmds.as_slice() else { panic!("{cmds:?}") };
        assert!(path.starts_with("evidence/loop"), "{path:?}");
        for _ in 0..3 {
            pane.act(Action::FilterLane, &scene(&state, &theme));
        }
        assert_eq!(pane.lane, None);
        pane.act(Action::Top, &scene(&state, &theme));
        assert_eq!(pane.act(Action::OpenEditor, &scene(&state, &theme)), [Cmd::OpenFile("AGENTS.md".into())]);
    }

    #[test]
    fn an_earlier_moment_shows_what_was_known_then() {
        let sample = Sample::demo();
        let state = sample.ended();
        let mut pane = loaded(&state);
        let then = sample.after(sample.first("iteration.began", 60));
        let theme = Theme::dark();
        let mut at = scene(&then, &theme);
        at.live = false;
        assert_eq!(pane.refresh(&at), []);
        pane.resize(Rect::new(0, 0, 80, 60));
        let shown = screen(80, 60, |frame| pane.view(frame, frame.area(), &at));
        assert!(shown.contains("Iteration 0") && !shown.contains("Iteration 1"), "{shown}");
        assert_eq!(pane.refresh(&scene(&state, &theme)), [Cmd::Load(Load::Learnings)]);
    }

    #[test]
    fn a_new_digest_is_asked_for_and_a_failure_is_said() {
        let sample = Sample::demo();
        let mut pane = loaded(&sample.after(150));
        let state = sample.ended();
        let theme = Theme::dark();
        assert_eq!(pane.refresh(&scene(&state, &theme)), [Cmd::Load(Load::Learnings)]);
        pane.take(&Loaded::Learnings(Err(Safe::line("permission denied"))));
        let shown = draw(&mut pane, &state, &theme, 60, 10);
        assert!(shown.contains("cannot be read: permission denied"), "{shown}");
    }

    #[test]
    fn a_megabyte_is_measured_once() {
        let state = Sample::demo().ended();
        let mut pane = LearningsPane::new();
        let theme = Theme::dark();
        pane.refresh(&scene(&state, &theme));
        let text = "- [B] a line of a large file (that is not a link)\n".repeat(20_000);
        pane.take(&Loaded::Learnings(Ok(Arc::from(text.as_bytes()))));
        pane.resize(Rect::new(0, 0, 80, 20));
        crate::console::prose::work::take();
        for _ in 0..10 {
            pane.act(Action::PageDown, &scene(&state, &theme));
            draw(&mut pane, &state, &theme, 80, 20);
        }
        assert!(crate::console::prose::work::take() <= 200);
    }

    #[test]
    fn any_size_is_survived() {
        let state = Sample::demo().ended();
        let mut pane = loaded(&state);
        for width in [1u16, 2, 3, 5, 9, 17, 40, 80, 300] {
            for height in [1u16, 2, 3, 5, 12, 120] {
                draw(&mut pane, &state, &Theme::dark(), width, height);
                pane.act(Action::PageDown, &scene(&state, &Theme::dark()));
            }
        }
    }
}
