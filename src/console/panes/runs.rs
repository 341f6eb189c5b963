//! All runs of this machine: what runs, what waits for a person, what came of the rest.
//!
//! Not here: reading them. Invariants: running ones first, then those that wait, then the newest; the cursor
//! stays on its run when the list is read again; an unknown cost is unknown.

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::console::action::Action;
use crate::console::charts::pen::Pen;
use crate::console::cmd::{Cmd, Load, Loaded, RunRow};
use crate::console::scene::{News, Scene};
use crate::console::theme::{Role, Theme};
use crate::console::widget;
use crate::machine::event::{Event, IterationEvent, OperatorEvent, RunEvent};
use crate::model::ids::RunId;

use super::Pane;
use super::list::ListCursor;

/// The pane.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    rows: Option<Vec<RunRow>>,
    asked: bool,
    cursor: ListCursor,
    needle: String,
}

impl Runs {
    pub fn new() -> Self {
        Self::default()
    }

    /// Ask again at the next occasion; the old rows stay until then.
    pub fn refresh_later(&mut self) {
        self.asked = false;
    }

    fn rows(&self) -> &[RunRow] {
        self.rows.as_deref().unwrap_or_default()
    }

    fn selected(&self) -> Option<&RunId> {
        self.rows().get(self.cursor.at(self.rows().len())).map(|row| &row.run)
    }

    fn seek(&mut self, backwards: bool) {
        let needle = self.needle.to_lowercase();
        let rows = self.rows.take().unwrap_or_default();
        if !needle.is_empty() {
            self.cursor.seek(rows.len(), backwards, |index| rows.get(index).is_some_and(|row| contains(row, &needle)));
        }
        self.rows = Some(rows);
    }
}

fn contains(row: &RunRow, lower: &str) -> bool {
    let texts = [row.name.as_str(), row.workspace.as_str(), row.state.as_str(), row.run.as_str()];
    texts.iter().any(|text| text.to_lowercase().contains(lower))
}

impl Runs {
    /// Works with or without a run to look at: the list is there before the first one.
    pub fn choose(&mut self, action: Action) -> Vec<Cmd> {
        let len = self.rows().len();
        if self.cursor.act(action, len) {
            return Vec::new();
        }
        match action {
            Action::AttachRun | Action::Select => {
                self.selected().map(|run| Cmd::Watch(run.clone())).into_iter().collect()
            }
            Action::Copy => {
                let text = self.selected().map(ToString::to_string);
                text.map(|text| Cmd::Copy { what: "run id", text }).into_iter().collect()
            }
            Action::NextMatch | Action::PreviousMatch if self.rows.is_some() => {
                self.seek(action == Action::PreviousMatch);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Draws the list; `shown` is the run that the console looks at.
    pub fn draw(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme, focused: bool, shown: Option<&RunId>) {
        let area = area.intersection(frame.area());
        let running = self.rows().iter().filter(|row| row.running).count();
        let waiting: usize = self.rows().iter().map(|row| row.waiting).sum();
        let title = match &self.rows {
            None => "Runs".to_owned(),
            Some(rows) => {
                format!("Runs  {} on this machine, {running} running, {waiting} decisions waiting", rows.len())
            }
        };
        let title = widget::clip(theme, &title, usize::from(area.width.saturating_sub(4)));
        let block = widget::panel(theme, &title, focused);
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let mut pen = Pen::new(frame.buffer_mut(), inner, theme);
        match &self.rows {
            None => pen.text(0, 0, "reading the runs on this machine", Role::Muted),
            Some(rows) if rows.is_empty() => {
                pen.text(0, 0, "There is no run yet. Try `nightloop demo`.", Role::Muted);
            }
            Some(rows) => self.table(&mut pen, rows, shown),
        }
    }
}

impl Pane for Runs {
    fn act(&mut self, action: Action, _scene: &Scene<'_>) -> Vec<Cmd> {
        self.choose(action)
    }

    fn learn(&mut self, news: News<'_>) {
        match news {
            News::Reset => self.refresh_later(),
            News::Event { stamped, .. } => {
                if matches!(
                    stamped.event,
                    Event::Run(RunEvent::RunHalted(_))
                        | Event::Operator(OperatorEvent::DecisionAsked(_))
                        | Event::Operator(OperatorEvent::DecisionAnswered(_))
                        | Event::Iteration(IterationEvent::LearningsRecorded(_))
                ) {
                    self.refresh_later();
                }
            }
            News::Live(_) => {}
        }
    }

    fn take(&mut self, loaded: &Loaded) {
        let Loaded::Runs(rows) = loaded else { return };
        let selected = self.selected().cloned();
        let mut rows = rows.clone();
        rows.sort_by(|a, b| {
            let rank = |row: &RunRow| (!row.running, row.waiting == 0);
            rank(a).cmp(&rank(b)).then_with(|| b.run.cmp(&a.run))
        });
        if let Some(at) = selected.and_then(|run| rows.iter().position(|row| row.run == run)) {
            self.cursor.set(at);
        }
        self.rows = Some(rows);
        self.asked = true;
    }

    fn refresh(&mut self, _scene: &Scene<'_>) -> Vec<Cmd> {
        if self.asked {
            return Vec::new();
        }
        self.asked = true;
        vec![Cmd::Load(Load::Runs)]
    }

    fn search(&mut self, text: &str, _scene: &Scene<'_>) {
        text.clone_into(&mut self.needle);
        let needle = self.needle.to_lowercase();
        let here = self.rows().get(self.cursor.at(self.rows().len()));
        if self.rows.is_some() && !here.is_some_and(|row| contains(row, &needle)) {
            self.seek(false);
        }
    }

    fn resize(&mut self, area: Rect) {
        self.cursor.set_page(area.height.saturating_sub(3));
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        self.draw(frame, area, scene.theme, scene.focused, Some(scene.run.run()));
    }
}

/// A column of the table.
struct Column {
    title: &'static str,
    width: u16,
    right: bool,
    text: fn(&RunRow) -> String,
}

/// The columns by importance: the last ones are dropped first.
const COLUMNS: [Column; 7] = [
    Column { title: "name", width: 12, right: false, text: |row| row.name.to_string() },
    Column {
        title: "waits",
        width: 5,
        right: true,
        text: |row| if row.waiting == 0 { String::new() } else { row.waiting.to_string() },
    },
    Column {
        title: "state",
        width: 20,
        right: false,
        text: |row| row.state.as_str().trim_start_matches("EXIT_").to_owned(),
    },
    Column { title: "iter", width: 4, right: true, text: |row| row.iterations.to_string() },
    Column {
        title: "residual",
        width: 9,
        right: true,
        text: |row| row.residual.as_ref().map_or_else(|| "null".to_owned(), ToString::to_string),
    },
    Column {
        title: "cost",
        width: 9,
        right: true,
        text: |row| row.cost.as_ref().map_or_else(|| "unknown".to_owned(), |cost| cost.to_string()),
    },
    Column { title: "started UTC", width: 11, right: false, text: |row| minute(row.started.as_str()) },
];

/// Day and minute of a time stamp; what is none is shown as it is.
fn minute(ts: &str) -> String {
    match (ts.get(5..10), ts.get(10..11), ts.get(11..16)) {
        (Some(day), Some("T"), Some(minute)) => format!("{day} {minute}"),
        _ => ts.to_owned(),
    }
}

impl Runs {
    fn table(&self, pen: &mut Pen<'_>, rows: &[RunRow], shown: Option<&RunId>) {
        // Mark and blank before the first column.
        let mut x = 2;
        let mut places = Vec::new();
        for column in &COLUMNS {
            let width = column.width.min(pen.width().saturating_sub(x));
            // Name, waits and state may be cut; a piece of a number or a date tells nothing.
            let least = if places.len() < 3 { 5 } else { column.width };
            if width < least {
                break;
            }
            places.push((x, width, column));
            x += width + 1;
        }
        // A piece of a path tells nothing.
        let with_workspace = x + 10 <= pen.width();
        let head = u16::from(pen.height() >= 3);
        if head == 1 {
            for (x, width, column) in &places {
                cell(pen, *x, *width, 0, column.title, column.right, Role::Muted);
            }
            if with_workspace {
                pen.text(x, 0, "workspace", Role::Muted);
            }
        }
        let visible = pen.height().saturating_sub(head);
        let at = self.cursor.at(rows.len());
        let first = self.cursor.first(rows.len(), usize::from(visible));
        let needle = self.needle.to_lowercase();
        for (y, (index, row)) in (head..pen.height()).zip(rows.iter().enumerate().skip(first)) {
            let here = index == at;
            if here {
                pen.row(0, pen.width(), y, " ", Role::Selection);
            }
            let own = |role: Role| if here { Role::Selection } else { role };
            let (sign, role) = self.mark(pen, row);
            pen.mark(0, y, sign, own(role));
            for (column_index, (x, width, column)) in places.iter().enumerate() {
                let role = match column_index {
                    0 if !needle.is_empty() && contains(row, &needle) => Role::Match,
                    0 if shown == Some(&row.run) => Role::Title,
                    1 if row.waiting > 0 => Role::Badge,
                    2 => role,
                    _ => Role::Text,
                };
                cell(pen, *x, *width, y, &(column.text)(row), column.right, own(role));
            }
            if with_workspace {
                pen.text(x, y, row.workspace.as_str(), own(Role::Muted));
            }
        }
    }

    fn mark(&self, pen: &Pen<'_>, row: &RunRow) -> (&'static str, Role) {
        let glyphs = pen.glyphs();
        if row.waiting > 0 {
            (glyphs.unknown, Role::Warning)
        } else if row.running {
            (glyphs.current, Role::Info)
        } else if row.state.as_str().contains("CONVERGED") {
            (glyphs.yes, Role::Good)
        } else {
            (glyphs.no, Role::Muted)
        }
    }
}

fn cell(pen: &mut Pen<'_>, x: u16, width: u16, y: u16, text: &str, right: bool, role: Role) {
    let text = widget::clip(pen.theme(), text, usize::from(width));
    if right {
        pen.text_before(x + width, y, &text, role);
    } else {
        pen.text(x, y, &text, role);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::moment::sizes;
    use crate::console::sample::{Sample, scene, screen};
    use crate::console::theme::{Glyphs, Theme};
    use crate::model::safe::Safe;

    fn row(number: u8, state: &str, running: bool, waiting: usize) -> RunRow {
        RunRow {
            run: RunId::parse(&format!("01M7H7DGGZVWRPPABN6DE8220{number}")).unwrap(),
            workspace: Safe::line("~/work/slug"),
            name: Safe::line(&format!("loop-{number}")),
            state: Safe::line(state),
            running,
            waiting,
            iterations: 4,
            residual: (number > 1).then(|| Safe::line("0.1666666667")),
            cost: (number > 2).then(|| Safe::line("$1.25")),
            started: Safe::line("2026-11-16 03:46"),
        }
    }

    fn loaded() -> Runs {
        let mut runs = Runs::new();
        runs.take(&Loaded::Runs(vec![
            row(1, "EXIT_CONVERGED", false, 0),
            row(2, "SPAWN_SUBAGENT", true, 0),
            row(3, "EXIT_BLOCKED", false, 0),
            row(4, "EXIT_BLOCKED", false, 1),
            row(5, "CHECK_HALTING", true, 2),
        ]));
        runs
    }

    fn drawn(runs: &Runs, width: u16, height: u16, theme: &Theme) -> String {
        let run = Sample::demo().after(1);
        screen(width, height, |frame| runs.view(frame, frame.area(), &scene(&run, theme)))
    }

    #[test]
    fn screens() {
        insta::assert_snapshot!(drawn(&loaded(), 80, 20, &Theme::dark()));
        insta::assert_snapshot!(drawn(&loaded(), 120, 12, &Theme::plain().with_glyphs(Glyphs::ASCII)));
        insta::assert_snapshot!(drawn(&loaded(), 40, 9, &Theme::dark()));
        insta::assert_snapshot!(drawn(&Runs::new(), 80, 4, &Theme::dark()));
    }

    #[test]
    fn running_first_then_waiting_then_newest() {
        let order: Vec<String> = loaded().rows().iter().map(|row| row.name.to_string()).collect();
        assert_eq!(order, ["loop-5", "loop-2", "loop-4", "loop-3", "loop-1"]);
    }

    #[test]
    fn it_asks_once_and_again_when_something_changed() {
        let sample = Sample::demo();
        let run = sample.after(1);
        let theme = Theme::plain();
        let scene = scene(&run, &theme);
        let mut runs = Runs::new();
        assert_eq!(runs.refresh(&scene), [Cmd::Load(Load::Runs)]);
        assert!(runs.refresh(&scene).is_empty());
        runs.take(&Loaded::Runs(Vec::new()));
        assert!(runs.refresh(&scene).is_empty());
        let halted = sample.events.last().unwrap();
        runs.learn(News::Event { stamped: halted, state: &run, body: None });
        assert_eq!(runs.refresh(&scene), [Cmd::Load(Load::Runs)]);
    }

    #[test]
    fn enter_watches_and_the_cursor_stays_on_its_run() {
        let run = Sample::demo().after(1);
        let theme = Theme::plain();
        let scene = scene(&run, &theme);
        let mut runs = loaded();
        runs.act(Action::Down, &scene);
        let wanted = row(2, "", true, 0).run;
        assert_eq!(runs.act(Action::AttachRun, &scene), [Cmd::Watch(wanted.clone())]);
        runs.take(&Loaded::Runs(vec![row(2, "EXIT_CONVERGED", false, 0), row(6, "INIT", true, 0)]));
        assert_eq!(runs.act(Action::Select, &scene), [Cmd::Watch(wanted)]);
        runs.search("loop-6", &scene);
        assert_eq!(runs.act(Action::Select, &scene), [Cmd::Watch(row(6, "", true, 0).run)]);
    }

    #[test]
    fn no_size_is_too_small_or_too_large() {
        let (run, theme, runs) = (Sample::demo().after(1), Theme::dark(), loaded());
        for (width, height) in sizes() {
            screen(width, height, |frame| runs.view(frame, frame.area(), &scene(&run, &theme)));
        }
    }
}
