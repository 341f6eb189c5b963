//! The parts of the overview, drawn.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::console::action::Action;
use crate::console::activity::{self, Activity, Now};
use crate::console::charts::forecast::forecast;
use crate::console::charts::gauge;
use crate::console::charts::glow::{self, Scores};
use crate::console::charts::machine;
use crate::console::charts::pen::Pen;
use crate::console::charts::residual::{self, Scale, Series};
use crate::console::recent::Recent;
use crate::console::scene::{Link, Scene};
use crate::console::theme::Role;
use crate::console::widget;
use crate::machine::operator::Pause;
use crate::machine::run::RunState;
use crate::model::safe::Safe;
use crate::model::value::Gate;

use super::Keys;
use super::arrange::Arrangement;
use super::verdict;

/// Everything the parts look at.
pub(super) struct View<'a> {
    pub scene: &'a Scene<'a>,
    pub recent: &'a Recent,
    pub keys: &'a Keys,
    pub series: &'a Series,
    pub scale: Scale,
    pub cursor: usize,
}

/// The step of a playbook that is open; less of it where the agent at work is named with its purpose.
fn step_tag(run: &RunState, now: &Now<'_>) -> String {
    let named = match &now.activity {
        Activity::Reply { .. } | Activity::Tool { .. } | Activity::Agent { .. } => true,
        Activity::Ended(_)
        | Activity::Paused { .. }
        | Activity::Waiting(_)
        | Activity::Settling(_)
        | Activity::Stopping(_)
        | Activity::ServerWait { .. }
        | Activity::Check { .. }
        | Activity::State(_) => false,
    };
    match (run.open_gate(), &run.value().step) {
        (Some((number, _)), _) if named => format!("[gate {number} of {}] ", Gate::ALL.len()),
        (Some((number, gate)), _) => format!("[gate {number} of {}: {}] ", Gate::ALL.len(), gate.title()),
        (None, Some(step)) if !named => format!("[{}] ", Safe::line(&step.action.to_string())),
        (None, _) => String::new(),
    }
}

impl View<'_> {
    /// Rows for what stands at the top.
    pub(super) fn head_rows(&self, area: Rect) -> u16 {
        match &self.scene.run.halt {
            Some(halted) => {
                let lines = verdict::lines(self.scene, self.keys, halted, usize::from(area.width));
                let most = (area.height / 2).max(1);
                u16::try_from(lines.len()).unwrap_or(u16::MAX).min(most)
            }
            // The second row is worth more than a gauge only when something waits.
            None if area.height >= 10 || self.scene.run.waits_for_people() => 2.min(area.height),
            None => 1,
        }
    }

    pub(super) fn draw(&self, buffer: &mut Buffer, at: &Arrangement) {
        match &self.scene.run.halt {
            Some(halted) => {
                let lines = verdict::lines(self.scene, self.keys, halted, usize::from(at.head.width));
                verdict::draw(&mut Pen::new(buffer, at.head, self.scene.theme), lines);
            }
            None => self.now(&mut Pen::new(buffer, at.head, self.scene.theme)),
        }
        if at.ruled {
            self.machine(buffer, at.machine);
            self.residual(buffer, at.residual);
            self.glow(buffer, at.glow);
            self.budget(buffer, at.budget);
        } else {
            machine::draw(buffer, at.machine, self.scene.theme, self.scene.run);
            self.residual_line(buffer, at.residual);
            self.glow_line(buffer, at.glow);
            self.budget_lines(buffer, at.budget);
        }
    }

    fn span(&self, text: impl Into<String>, role: Role) -> Span<'static> {
        Span::styled(text.into(), self.scene.theme.style(role))
    }

    /// How long something has lasted. While the run waits for a person no frame is drawn, so that a duration
    /// would be wrong by the time it is read: then it is said since when.
    fn how_long(&self, since: &str, before: &str) -> String {
        if self.scene.run.waits_for_people() && self.scene.run.halt.is_none() {
            return format!("since {}", self.scene.clock(since));
        }
        format!("{before}{}", widget::duration(activity::age(self.scene, since)))
    }

    /// What happens, for how long; below it what stands behind it.
    fn now(&self, pen: &mut Pen<'_>) {
        let scene = self.scene;
        if let (Link::Lost(why), None) = (scene.link, &scene.run.halt) {
            let text = format!("{} the run cannot be followed: {}", pen.glyphs().no, Safe::line(why));
            pen.line(
                0,
                0,
                widget::clip_line(scene.theme, Line::from(self.span(text, Role::Bad)), usize::from(pen.width())),
            );
            if pen.height() > 1 {
                let next = "`nightloop status` shows its state, `nightloop resume` continues it, `nightloop attach` reconnects.";
                pen.line(
                    0,
                    1,
                    widget::clip_line(scene.theme, Line::from(self.span(next, Role::Text)), usize::from(pen.width())),
                );
            }
            return;
        }
        let now = activity::now(scene, self.recent);
        let for_long = self.how_long(&now.since, "");
        let columns = u16::try_from(widget::width(&for_long)).unwrap_or(0) + 2;
        let room = pen.width().saturating_sub(columns);
        let line = Line::from(vec![
            self.span(format!("{} {}", now.glyph(pen.glyphs()), now.subject()), now.role()),
            self.span(" ", Role::Text),
            self.span(step_tag(scene.run, &now), Role::Emphasis),
            self.span(now.brief(scene), Role::Text),
        ]);
        pen.line(0, 0, widget::clip_line(scene.theme, line, usize::from(room)));
        pen.text_before(pen.width(), 0, &for_long, Role::Muted);
        if pen.height() > 1 {
            pen.line(0, 1, self.behind(&now));
        }
    }

    /// The most important thing to know besides.
    fn behind(&self, now: &Now<'_>) -> Line<'static> {
        let run = self.scene.run;
        let operator = &run.operator;
        if let Activity::Waiting(_) = now.activity {
            return Line::from(vec![
                self.span(self.keys.of(Action::OpenInbox), Role::Key),
                self.span(format!(" inbox; no answer: {}", operator.patience.describe()), Role::Warning),
            ]);
        }
        if let Activity::ServerWait { cause, .. } = &now.activity {
            let mut spans = Vec::new();
            if !self.scene.read_only {
                spans.push(self.span(self.keys.of(Action::RetryNow), Role::Key));
                spans.push(self.span(" retries now; ", Role::Muted));
            }
            let cause = cause.as_ref().map(|failure| format!("{}: {}", failure.class, failure.message));
            spans.push(self.span(cause.unwrap_or_else(|| "waiting costs no iteration".to_owned()), Role::Warning));
            return Line::from(spans);
        }
        if let Some(cut) = &run.cut {
            let limit = &cut.exhausted;
            let text =
                format!("! a limit is reached: {} {} of {}", limit.dimension, Safe::line(&limit.observed), limit.limit);
            return Line::from(self.span(text, Role::Warning));
        }
        if let Some(Pause::Requested { by }) = &operator.pause {
            return Line::from(
                self.span(format!("pausing after this step, asked by {}", Safe::line(by)), Role::Warning),
            );
        }
        if let Some(by) = &operator.stop_after_iteration {
            return Line::from(
                self.span(format!("stopping after this iteration, asked by {}", Safe::line(by)), Role::Warning),
            );
        }
        let queued = operator.queued().count();
        if queued > 0 {
            return Line::from(
                self.span(format!("{queued} of your messages wait for the next agent call"), Role::Operator),
            );
        }
        let goal = Safe::line(run.loop_file().goal.as_deref().unwrap_or("no goal is declared"));
        Line::from(vec![self.span("goal: ", Role::Muted), self.span(goal.as_str(), Role::Text)])
    }

    fn machine(&self, buffer: &mut Buffer, area: Rect) {
        let (scene, run) = (self.scene, self.scene.run);
        let mut title = vec![self.span("Machine ", Role::Title), self.span(run.state.name(), Role::Text)];
        if let Some(noted) = self.recent.entered(run)
            && run.halt.is_none()
        {
            title.push(self.span(format!(" {}", self.how_long(&noted.ts, "for ")), Role::Muted));
        }
        let from = run.last_edge.map(|(from, _)| format!("from {from}")).unwrap_or_default();
        head(buffer, area, scene, Line::from(title), &from);
        let body = below(area);
        machine::draw(buffer, body, scene.theme, run);
    }

    fn residual_title(&self) -> Vec<Span<'static>> {
        let direction = self.series.direction_at(self.cursor);
        let text = self.series.describe(self.cursor, self.scene.theme.glyphs());
        let mut spans = vec![self.span(text, Role::Title)];
        if !direction.word().is_empty() {
            spans.push(self.span(format!(" {}", direction.word()), direction.role()));
        }
        spans
    }

    fn residual(&self, buffer: &mut Buffer, area: Rect) {
        let metric = Safe::line(&self.scene.run.loop_file().residual_metric());
        let long = format!("{metric}, {}", self.scale.name());
        let title = Line::from(self.residual_title());
        let fits = title.width() + widget::width(&long) + 8 <= usize::from(area.width);
        let remark = if fits { long } else { self.scale.name().to_owned() };
        head(buffer, area, self.scene, title, &remark);
        residual::draw(buffer, below(area), self.scene.theme, self.series, self.scale, self.cursor);
    }

    fn iteration_at_cursor(&self) -> Option<u32> {
        self.series.points.get(self.cursor).and_then(|point| point.iteration)
    }

    fn glow(&self, buffer: &mut Buffer, area: Rect) {
        let scores = Scores::of(self.scene.run);
        let title = Line::from(self.span("GLOW", Role::Title));
        head(buffer, area, self.scene, title, &scores.average().unwrap_or_default());
        glow::draw(buffer, below(area), self.scene.theme, &scores, self.iteration_at_cursor());
    }

    fn budget(&self, buffer: &mut Buffer, area: Rect) {
        let run = self.scene.run;
        let outlook = match forecast(run) {
            Some(found) => found.sentence(),
            None if run.halt.is_some() => "the run has ended".to_owned(),
            None => "no forecast before the first iteration ends".to_owned(),
        };
        head(buffer, area, self.scene, Line::from(self.span("Budget", Role::Title)), &outlook);
        let body = below(area);
        let gauges = gauge::gauges(run, activity::elapsed(self.scene));
        // One column is enough where the rows are.
        let two = body.height < 6;
        let (left, gap) = if two { (body.width / 2, 2) } else { (body.width, 0) };
        for (index, gauge) in (0u16..).zip(&gauges) {
            let (column, row) = if two { (index / 3, index % 3) } else { (0, index) };
            if row >= body.height {
                continue;
            }
            let x = body.x + column * (left + gap);
            let width = if column == 0 { left } else { body.width.saturating_sub(left + gap) };
            gauge::draw(buffer, Rect { x, y: body.y + row, width, height: 1 }, self.scene.theme, gauge);
        }
        if two && body.height >= 3 {
            let cell =
                Rect { x: body.x + left + gap, y: body.y + 2, width: body.width.saturating_sub(left + gap), height: 1 };
            Pen::new(buffer, cell, self.scene.theme).text(0, 0, &self.waits(), Role::Muted);
        }
    }

    /// Time that was no work.
    fn waits(&self) -> String {
        let run = self.scene.run;
        let server = run.iterations().map(|it| it.spend.waited_millis).fold(0u64, u64::saturating_add);
        format!("waited: people {}, server {}", widget::duration(run.operator.waited_millis), widget::duration(server))
    }

    fn residual_line(&self, buffer: &mut Buffer, area: Rect) {
        let mut spans = self.residual_title();
        spans.push(self.span(format!("  R_p {}", self.series.r_p), Role::Threshold));
        Pen::new(buffer, area, self.scene.theme).line(0, 0, Line::from(spans));
    }

    fn glow_line(&self, buffer: &mut Buffer, area: Rect) {
        let scores = Scores::of(self.scene.run);
        let mut pen = Pen::new(buffer, area, self.scene.theme);
        match (scores.warning(), scores.average()) {
            (Some(warning), _) => pen.text(0, 0, &format!("! {warning}"), Role::Warning),
            (None, Some(average)) => {
                let last = scores.last().unwrap_or_default();
                pen.text(0, 0, &format!("GLOW {last}, {average}"), Role::Text);
            }
            (None, None) => pen.text(0, 0, &format!("GLOW: {}", scores.nothing()), Role::Muted),
        }
    }

    fn budget_lines(&self, buffer: &mut Buffer, area: Rect) {
        let run = self.scene.run;
        let gauges = gauge::gauges(run, activity::elapsed(self.scene));
        let rows = (0..area.height).zip(&gauges);
        for (row, gauge) in rows {
            gauge::draw(buffer, Rect { y: area.y + row, height: 1, ..area }, self.scene.theme, gauge);
        }
        if area.height > 5
            && let Some(found) = forecast(run)
        {
            let row = Rect { y: area.y + 5, height: 1, ..area };
            Pen::new(buffer, row, self.scene.theme).text(0, 0, &found.sentence(), Role::Muted);
        }
    }
}

/// A part's rule.
fn head(buffer: &mut Buffer, area: Rect, scene: &Scene<'_>, title: Line<'_>, remark: &str) {
    Pen::new(buffer, area, scene.theme).rule(title, remark, Role::Border);
}

/// What is left of an area under its rule.
fn below(area: Rect) -> Rect {
    Rect { y: area.y.saturating_add(1), height: area.height.saturating_sub(1), ..area }
}
