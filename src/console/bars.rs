//! The bars at the top and the bottom: where the run stands, which keys work here, what was just done.
//!
//! Not here: keys themselves, panes. Invariants: what does not fit is dropped from the least important, never
//! cut in the middle; what needs a person is dropped last.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::machine::operator::Pause;
use crate::machine::run::RunState;
use crate::model::safe::Safe;
use crate::model::stop::ExitStatus;
use crate::model::value::Gate;

use super::activity;
use super::charts::pen::{Pen, separator, times};
use super::charts::residual::Series;
use super::panes::PaneId;
use super::scene::{Link, Scene};
use super::theme::{Role, Theme};
use super::widget;

/// Rows that the header uses when there is room: the run, and the panes.
pub const HEADER_ROWS: u16 = 2;
/// Rows that the footer needs; a second one lets a message stand above the hints.
pub const FOOTER_ROWS: u16 = 1;

/// What the header needs besides the scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeaderInfo {
    /// The pane that is shown; `None`: no tabs.
    pub shown: Option<PaneId>,
    /// The view is held still.
    pub frozen: bool,
}

/// How a message is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    Info,
    Bad,
}

/// A line for the operator that goes away again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub tone: Tone,
    pub text: Safe,
}

/// A piece of the header. The larger its weight, the longer it stays.
struct Segment {
    weight: u8,
    text: String,
    role: Role,
}

/// Draws the header: the run in the first row, the panes in the second.
pub fn header(frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>, info: &HeaderInfo) {
    let theme = scene.theme;
    let mut pen = Pen::new(frame.buffer_mut(), area, theme);
    if pen.height() == 0 {
        return;
    }
    pen.row(0, area.width, 0, " ", Role::Bar);
    let spans = fitting(theme, segments(scene, *info), usize::from(area.width));
    pen.line(0, 0, Line::from(spans));
    if let (true, Some(shown)) = (pen.height() > 1, info.shown) {
        tabs(&mut pen, 1, shown);
    }
}

fn segments(scene: &Scene<'_>, info: HeaderInfo) -> Vec<Segment> {
    let run = scene.run;
    let glyphs = scene.theme.glyphs();
    let mut all = Vec::new();
    let mut add = |weight: u8, text: String, role: Role| all.push(Segment { weight, text, role });

    let name = run.loop_file().name.as_deref().unwrap_or("nightloop");
    add(90, widget::clip(scene.theme, Safe::line(name).as_str(), 32), Role::Title);
    let (sign, word, role) = state(scene);
    add(100, format!("{sign} {word}"), role);
    let waiting = run.operator.open().count();
    if waiting > 0 {
        add(110, format!(" {waiting} waiting "), Role::Badge);
    }
    match scene.link {
        Link::InProcess => {}
        Link::Attached => add(20, "attached".to_owned(), Role::Muted),
        Link::Replay { playing, speed, at, of } => {
            let how = if *playing { format!("{}{speed}", times(glyphs)) } else { "held".to_owned() };
            add(80, format!("REPLAY {at}/{of} {how}"), Role::Info);
        }
        Link::Lost(_) => add(105, format!("{} LINK LOST", glyphs.no), Role::Bad),
    }
    if !scene.live {
        add(95, format!("AT {} (not live)", scene.clock(&run.time.last_ts)), Role::Warning);
    }
    if info.frozen {
        add(85, "FROZEN".to_owned(), Role::Warning);
    }
    if let Some(Pause::Requested { .. }) = run.operator.pause {
        add(75, "pausing after this step".to_owned(), Role::Warning);
    }
    if run.operator.stop_after_iteration.is_some() {
        add(74, "stopping after this iteration".to_owned(), Role::Warning);
    }
    if let Some(end) = run.end.as_ref().filter(|_| run.halt.is_none()) {
        add(65, format!("until {}", end.at), Role::Text);
    }
    add(70, iteration(run), Role::Text);
    if let Some((text, role)) = residual(scene) {
        add(60, text, role);
    }
    add(50, widget::duration(activity::elapsed(scene)), Role::Text);
    let cost = run.spent.cost_usd.map_or_else(|| "cost unknown".to_owned(), |cost| cost.dollars());
    add(40, cost, Role::Text);
    if scene.read_only {
        add(45, "read-only".to_owned(), Role::Muted);
    }
    all
}

/// The iteration that runs, or would run next, and how many may.
fn iteration(run: &RunState) -> String {
    if let Some((number, _)) = run.open_gate() {
        return format!("gate {number} of {}", Gate::ALL.len());
    }
    let number = run.iteration_number();
    format!("it{number} ({} of {})", u64::from(number) + 1, run.limits.max_iterations)
}

fn state(scene: &Scene<'_>) -> (&'static str, String, Role) {
    let (run, glyphs) = (scene.run, scene.theme.glyphs());
    if let Some(halted) = &run.halt {
        let word = halted.status.name().trim_start_matches("EXIT_").to_owned();
        return match halted.status {
            ExitStatus::ExitConverged => (glyphs.yes, word, Role::Good),
            ExitStatus::ExitBudgetExceeded | ExitStatus::ExitNeedInfo => ("!", word, Role::Warning),
            ExitStatus::ExitDiverged | ExitStatus::ExitBlocked => (glyphs.no, word, Role::Bad),
        };
    }
    if let Some(Pause::Holding { .. }) = run.operator.pause {
        return ("=", "PAUSED".to_owned(), Role::Warning);
    }
    (glyphs.current, run.state.name().to_owned(), Role::Info)
}

fn residual(scene: &Scene<'_>) -> Option<(String, Role)> {
    let series = Series::of(scene.run);
    let last = series.points.last()?;
    let value = last.value.map_or_else(|| "null".to_owned(), |value| value.to_string());
    let direction = series.direction();
    let arrow = direction.glyph(scene.theme.glyphs());
    let text = if arrow.is_empty() { format!("residual {value}") } else { format!("residual {value} {arrow}") };
    Some((text, direction.role()))
}

/// The segments that fit, in order, with separators.
fn fitting(theme: &Theme, mut all: Vec<Segment>, columns: usize) -> Vec<Span<'static>> {
    let between = separator(theme.glyphs());
    let wide = |all: &[Segment]| {
        let texts: usize = all.iter().map(|segment| widget::width(&segment.text)).sum();
        texts + widget::width(between) * all.len().saturating_sub(1) + 2
    };
    while all.len() > 1 && wide(&all) > columns {
        let least = all.iter().enumerate().min_by_key(|(_, segment)| segment.weight).map(|(index, _)| index);
        match least {
            Some(index) => all.remove(index),
            None => break,
        };
    }
    let mut spans = vec![Span::styled(" ", theme.style(Role::Bar))];
    for (index, segment) in all.into_iter().enumerate() {
        if index > 0 {
            spans.push(Span::styled(between, theme.style(Role::Muted)));
        }
        spans.push(Span::styled(segment.text, theme.style(segment.role)));
    }
    spans
}

/// The panes by key; their names where there is room.
fn tabs(pen: &mut Pen<'_>, y: u16, shown: PaneId) {
    let named: usize = PaneId::ALL.iter().map(|pane| pane.title().len() + 3).sum();
    let all_named = named < usize::from(pen.width());
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut before = false;
    for pane in PaneId::ALL {
        let here = pane == shown;
        // The lit field of the shown pane takes the blanks at its sides.
        let blank = if before { "" } else { " " };
        let text = if all_named || here { format!("{} {}", pane.key(), pane.title()) } else { pane.key().to_string() };
        let (text, role) =
            if here { (format!("{blank}{text} "), Role::Selection) } else { (format!("{blank}{text}"), Role::Muted) };
        spans.push(Span::styled(text, pen.theme().style(role)));
        before = here;
    }
    pen.line(0, y, Line::from(spans));
}

/// Draws the footer: the message above the hints, or before them where there is one row only. Hints come by
/// priority; the last ones are dropped first.
pub fn footer(frame: &mut Frame<'_>, area: Rect, theme: &Theme, hints: &[(String, &str)], message: Option<&Message>) {
    let mut pen = Pen::new(frame.buffer_mut(), area, theme);
    if pen.height() == 0 {
        return;
    }
    for y in 0..pen.height() {
        pen.row(0, area.width, y, " ", Role::Bar);
    }
    let mut start = 1;
    // The hints keep their place, whether or not something is said above them.
    let row = pen.height() - 1;
    if let Some(message) = message {
        let (sign, role) = match message.tone {
            Tone::Good => (theme.glyphs().yes, Role::Good),
            Tone::Info => (theme.glyphs().bullet, Role::Info),
            Tone::Bad => (theme.glyphs().no, Role::Bad),
        };
        let text = format!("{sign} {}", message.text);
        pen.text(1, 0, &text, role);
        if row == 0 {
            start = 4 + u16::try_from(widget::width(&text)).unwrap_or(u16::MAX - 4);
        }
    }
    let mut x = start;
    for (key, hint) in hints {
        let spans = widget::key_hint(theme, key, hint);
        let columns = u16::try_from(Line::from(spans.clone()).width()).unwrap_or(u16::MAX);
        if x.saturating_add(columns) > pen.width() {
            break;
        }
        pen.line(x, row, Line::from(spans));
        x = x.saturating_add(columns).saturating_add(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::moment::{agent_at_work, asked};
    use crate::console::sample::{Sample, scene, screen};
    use crate::console::theme::Glyphs;
    use crate::machine::event::StopScheduled;

    fn head(width: u16, scene: &Scene<'_>, info: HeaderInfo) -> String {
        screen(width, 2, |frame| header(frame, frame.area(), scene, &info))
    }

    const OVERVIEW: HeaderInfo = HeaderInfo { shown: Some(PaneId::Overview), frozen: false };

    #[test]
    fn headers() {
        let theme = Theme::dark();
        let working = agent_at_work().then(StopScheduled { by: "ada".into(), scheduled: true });
        insta::assert_snapshot!(head(120, &scene(&working.run, &theme), OVERVIEW));
        let asked = asked();
        insta::assert_snapshot!(head(80, &scene(&asked.run, &theme), OVERVIEW));
        let ascii = Theme::plain().with_glyphs(Glyphs::ASCII);
        insta::assert_snapshot!(head(80, &scene(&Sample::demo().ended(), &ascii), OVERVIEW));
    }

    #[test]
    fn what_needs_a_person_stays_longest() {
        let theme = Theme::plain();
        let asked = asked();
        let scene = Scene { live: false, read_only: true, link: &Link::Attached, ..scene(&asked.run, &theme) };
        let info = HeaderInfo { frozen: true, ..OVERVIEW };
        let full = head(200, &scene, info);
        for part in ["1 waiting", "not live", "FROZEN", "read-only", "attached", "residual", "it2 (3 of"] {
            assert!(full.contains(part), "{part}: {full}");
        }
        let narrow = head(34, &scene, info);
        assert!(narrow.contains("1 waiting") && narrow.contains("SPAWN_SUBAGENT"), "{narrow}");
        assert!(!narrow.contains("attached") && !narrow.contains("residual"), "{narrow}");
    }

    #[test]
    fn the_time_to_stop_stands_in_the_header_while_the_run_goes_on() {
        use crate::model::loop_file::EndTime;
        let theme = Theme::plain();
        let mut run = Sample::demo().after(40);
        run.end = Some(EndTime { at: "6:30".parse().unwrap(), moment: "2026-11-20T05:30:00Z".into() });
        assert!(head(120, &scene(&run, &theme), OVERVIEW).contains("until 06:30"));
        let mut ended = Sample::demo().ended();
        ended.end = run.end;
        assert!(!head(120, &scene(&ended, &theme), OVERVIEW).contains("until"));
    }

    #[test]
    fn a_lost_link_and_a_replay_are_marked() {
        let theme = Theme::plain();
        let run = Sample::demo().after(40);
        let lost = Link::Lost("gone".into());
        assert!(head(80, &Scene { link: &lost, ..scene(&run, &theme) }, OVERVIEW).contains("✗ LINK LOST"));
        let replay = Link::Replay { playing: true, speed: 4, at: 40, of: 295 };
        assert!(head(80, &Scene { link: &replay, ..scene(&run, &theme) }, OVERVIEW).contains("REPLAY 40/295 ×4"));
    }

    #[test]
    fn hints_are_dropped_whole_and_the_message_is_safe() {
        let hints = [("p".to_owned(), "pause"), ("i".to_owned(), "inbox"), ("?".to_owned(), "help")];
        let theme = Theme::plain();
        let text = screen(20, 1, |frame| footer(frame, frame.area(), &theme, &hints, None));
        assert!(text.contains("p pause  i inbox") && !text.contains('?'), "{text}");
        let message = Message { tone: Tone::Bad, text: Safe::line("refused:\u{7} no") };
        let text = screen(60, 1, |frame| footer(frame, frame.area(), &theme, &hints, Some(&message)));
        assert!(text.contains("✗ refused:") && text.contains("p pause"), "{text}");
        let text = screen(60, 2, |frame| footer(frame, frame.area(), &theme, &hints, Some(&message)));
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().next_back().unwrap().contains("p pause"), "{text}");
    }

    #[test]
    fn no_size_is_too_small() {
        let theme = Theme::dark();
        let asked = asked();
        let message = Message { tone: Tone::Good, text: Safe::line("done") };
        for width in 1..=200 {
            let height = 1 + width % 3;
            screen(width, height, |frame| header(frame, frame.area(), &scene(&asked.run, &theme), &OVERVIEW));
            let hints = [("p".to_owned(), "pause")];
            screen(width, height, |frame| footer(frame, frame.area(), &theme, &hints, Some(&message)));
        }
    }
}
