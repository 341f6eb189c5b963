//! Raising a limit of the run. It is recorded as the operator's override.
//!
//! Role: showing what is spent and taking a new limit. Not its role: deciding; the run checks again.
//! Invariant: nothing is sent that [`Limits::raised`](crate::model::budget::Limits::raised) refuses.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::action::{Action, Scope};
use super::super::cmd::{Cmd, Loaded};
use super::super::theme::Role;
use super::super::widget::{clip, count, duration};
use super::allowed::barred;
use super::input::{Input, Lines, Typed};
use super::sheet::{Keys, Sheet, keys, picked, reveal, rows};
use super::{Overlay, Response, Stage};
use crate::engine::command::Command;
use crate::machine::run::RunState;
use crate::model::budget::{Dimension, Spent};
use crate::model::decimal::Exact;
use crate::model::ids::Role as AgentRole;
use crate::model::safe::Safe;

const COLUMNS: usize = 74;

pub struct Budget {
    cursor: usize,
    input: Input,
    notice: Option<(String, Role)>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { cursor: 0, input: Input::new(Lines::One, 40), notice: None }
    }
}

impl Budget {
    fn dimension(&self) -> Dimension {
        Dimension::ALL.get(self.cursor).copied().unwrap_or(Dimension::Iterations)
    }

    fn keys(stage: &Stage<'_>) -> Keys {
        match barred(stage) {
            Some(_) => keys(&[("up/down", "choose"), ("esc", "close")]),
            None => keys(&[("up/down", "choose"), ("digits", "the new limit"), ("enter", "raise"), ("esc", "close")]),
        }
    }

    fn choose(&mut self, cursor: usize) {
        self.cursor = cursor.min(Dimension::ALL.len() - 1);
        self.input.clear();
        self.notice = None;
    }

    fn raise(&mut self, stage: &Stage<'_>) -> Response {
        let Some(scene) = stage.scene else { return Response::stay() };
        if let Some(why) = barred(stage) {
            self.notice = Some((why.to_owned(), Role::Warning));
            return Response::stay();
        }
        if self.input.is_blank() {
            self.notice = Some(("type the new limit first".to_owned(), Role::Warning));
            return Response::stay();
        }
        let (dimension, to) = (self.dimension(), self.input.text().trim().to_owned());
        match scene.run.limits.raised(dimension, &to) {
            Err(why) => {
                self.notice = Some((Safe::line(&why).to_string(), Role::Bad));
                Response::stay()
            }
            Ok(_) => {
                self.input.clear();
                self.notice = Some((format!("sent: {} to {to}", word(dimension)), Role::Info));
                Response::cmd(Cmd::Order(Command::RaiseBudget { dimension, to }))
            }
        }
    }

    fn lines(&self, stage: &Stage<'_>, columns: usize) -> Vec<Line<'static>> {
        let theme = stage.theme;
        let Some(scene) = stage.scene else {
            return vec![Line::from(Span::styled("There is no run yet.", theme.style(Role::Muted)))];
        };
        let rows = Dimension::ALL.into_iter().enumerate().map(|(index, dimension)| {
            let line = row(scene.run, dimension, columns, stage);
            picked(theme, super::super::widget::clip_line(theme, line, columns.saturating_sub(2)), index == self.cursor)
        });
        let used = usage(scene.run).into_iter().map(|text| {
            let text = clip(theme, &text, columns.saturating_sub(2));
            Line::from(Span::styled(format!("  {text}"), theme.style(Role::Muted)))
        });
        rows.chain(used).collect()
    }
}

/// Who used what, and what the model's server says is left.
fn usage(run: &RunState) -> Vec<String> {
    let cost = |usd: Option<Exact>| usd.map_or_else(|| "cost unknown".to_owned(), |usd| usd.dollars());
    let mut lines = Vec::new();
    for role in AgentRole::ALL {
        let used = run.ledger.of_role(role);
        if used.calls > 0 {
            let input = used.input.saturating_add(used.cache_write);
            lines.push(format!(
                "{:<8}{} calls, {} in, {} cached, {} out, {}",
                role.name(),
                used.calls,
                count(input),
                count(used.cache_read),
                count(used.output),
                cost(used.cost_usd),
            ));
        }
    }
    if run.ledger.lost > 0 {
        lines.push(format!("lost    {} calls, at most {}", run.ledger.lost, cost(run.ledger.lost_usd)));
    }
    if let Some(rate) = &run.rate {
        let left = |left: Option<u64>| left.map_or_else(|| "?".to_owned(), count);
        let reset = rate.reset.as_deref().map_or_else(String::new, |at| format!(", full again {}", Safe::line(at)));
        lines.push(format!("server  {} requests, {} tokens left{reset}", left(rate.requests), left(rate.tokens)));
    }
    lines
}

/// A dimension in words.
fn word(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Iterations => "iterations",
        Dimension::TotalSeconds => "time of the run, s",
        Dimension::TotalToolCalls => "tool calls",
        Dimension::TotalTokens => "tokens",
        Dimension::CostUsd => "cost, USD",
        Dimension::IterationSeconds => "time per iteration, s",
        Dimension::IterationToolCalls => "calls per iteration",
    }
}

/// Exact text; `None`: not known.
fn spent(spent: &Spent, dimension: Dimension) -> Option<String> {
    match dimension {
        Dimension::Iterations => Some(spent.iterations.to_string()),
        Dimension::TotalSeconds => Some((spent.millis / 1_000).to_string()),
        Dimension::TotalToolCalls => Some(spent.tool_calls.to_string()),
        Dimension::TotalTokens => Some(spent.tokens().to_string()),
        Dimension::CostUsd => spent.cost_usd.map(|cost| cost.to_string()),
        Dimension::IterationSeconds => Some((spent.iteration_millis / 1_000).to_string()),
        Dimension::IterationToolCalls => Some(spent.iteration_tool_calls.to_string()),
    }
}

fn row(run: &RunState, dimension: Dimension, columns: usize, stage: &Stage<'_>) -> Line<'static> {
    let theme = stage.theme;
    let used = spent(&run.spent, dimension).unwrap_or_else(|| "unknown".to_owned());
    let limit = run.limits.of(dimension);
    let shown = limit.clone().map_or_else(|| ", no limit".to_owned(), |limit| format!(" of {limit}"));
    let wide = columns >= 60;
    let label = if wide { format!("{:<22}", word(dimension)) } else { format!("{} ", word(dimension)) };
    let used = if wide { format!("{used:>12}") } else { used };
    let shown = if wide { format!("{shown:<16}") } else { format!("{shown} ") };
    let mut spans = vec![
        Span::styled(label, theme.style(Role::Muted)),
        Span::styled(used, theme.style(Role::Text)),
        Span::styled(shown, theme.style(Role::Muted)),
    ];
    let seconds = matches!(dimension, Dimension::TotalSeconds | Dimension::IterationSeconds);
    if let Some(seconds) = limit.filter(|_| seconds).and_then(|limit| limit.parse::<u64>().ok()) {
        spans.push(Span::styled(format!("({}) ", duration(seconds.saturating_mul(1_000))), theme.style(Role::Muted)));
    }
    let mut raised = run.operator.overrides.iter().filter(|raised| raised.dimension == dimension);
    if let Some(last) = raised.next_back() {
        let text = format!("{} raised by {}", theme.glyphs().arrow_up, Safe::line(&last.by));
        spans.push(Span::styled(text, theme.style(Role::Warning)));
    }
    Line::from(spans)
}

impl Overlay for Budget {
    fn key(&mut self, key: KeyEvent, stage: &Stage<'_>) -> Response {
        let typed = match key.code {
            KeyCode::Char(c) if c.is_ascii_digit() || c == '.' => true,
            KeyCode::Backspace | KeyCode::Delete | KeyCode::Enter | KeyCode::Esc | KeyCode::Left | KeyCode::Right => {
                true
            }
            _ => super::sheet::cancels(key),
        };
        if typed {
            return match self.input.key(key) {
                Typed::Cancel => Response::close(),
                Typed::Send => self.raise(stage),
                Typed::Text => {
                    self.notice = None;
                    Response::stay()
                }
            };
        }
        match stage.keymap.action(&[Scope::Move], key) {
            Some(Action::Up) => self.choose(self.cursor.saturating_sub(1)),
            Some(Action::Down) => self.choose(self.cursor + 1),
            Some(Action::Top) => self.choose(0),
            Some(Action::Bottom) => self.choose(usize::MAX),
            _ => {}
        }
        Response::stay()
    }

    fn paste(&mut self, text: &str) {
        let digits: String = text.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
        self.input.paste(&digits);
    }

    fn take(&mut self, loaded: &Loaded, _stage: &Stage<'_>) -> Response {
        if let Loaded::Failed(why) = loaded {
            self.notice = Some((why.to_string(), Role::Bad));
        }
        Response::stay()
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, stage: &Stage<'_>) {
        let theme = stage.theme;
        let keys = Self::keys(stage);
        let used = stage.scene.map_or(0, |scene| usage(scene.run).len());
        let sheet = Sheet::place(area, COLUMNS, Dimension::ALL.len() + used + 4, &keys);
        sheet.draw(frame, theme, "Raise a limit (recorded as your override)", &keys);
        let body = sheet.body;
        let foot = body.height.saturating_sub(3).min(if body.height > 10 { 3 } else { 2 });
        let list = Rect { height: body.height - foot, ..body };
        let lines = self.lines(stage, usize::from(body.width));
        let scroll = reveal(0, self.cursor, lines.len(), list.height);
        rows(frame, list, theme, lines, scroll);
        if foot < 2 {
            return;
        }
        let label = format!("new limit for {}: ", word(self.dimension()));
        let label = clip(theme, &label, usize::from(body.width));
        let columns = u16::try_from(super::super::widget::width(&label)).unwrap_or(body.width).min(body.width);
        let line = Rect { y: list.bottom(), height: 1, ..body };
        frame.render_widget(Span::styled(label, theme.style(Role::Muted)), line);
        self.input.view(frame, Rect { x: line.x + columns, width: line.width - columns, ..line }, theme);
        let (text, role) = match (barred(stage), &self.notice) {
            (Some(why), _) => (format!("{} {why}", theme.glyphs().no), Role::Warning),
            (None, Some((text, role))) => (text.clone(), *role),
            (None, None) => ("A limit can only be raised, never lowered.".to_owned(), Role::Muted),
        };
        let text = clip(theme, &text, usize::from(body.width));
        frame.render_widget(Span::styled(text, theme.style(role)), Rect { y: line.y + 1, ..line });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Next;
    use super::super::stages::Staged;
    use super::*;
    use crate::machine::event::{BudgetRaised, RateLeft};
    use crate::machine::ledger::{Row, Used};

    fn raised() -> Staged {
        let mut staged = Staged::running();
        let from = staged.run.limits.of(Dimension::Iterations).unwrap();
        let by = "maria@tty1".to_owned();
        staged.happen(BudgetRaised { dimension: Dimension::Iterations, from, to: "12".to_owned(), by });
        staged
    }

    #[test]
    fn looks() {
        let staged = raised();
        let mut budget = Budget::default();
        staged.type_text(&mut budget, "20");
        insta::assert_snapshot!("budget_80x20", staged.screen(&mut budget, 80, 20));
        insta::assert_snapshot!("budget_120x36", staged.screen(&mut budget, 120, 36));
        insta::assert_snapshot!("budget_ascii", raised().ascii().screen(&mut budget, 40, 12));
        staged.all_sizes(&mut budget);
    }

    #[test]
    fn costs_are_shown_by_role_and_the_servers_words_are_clean() {
        let mut staged = raised();
        staged.run.ledger.rows.clear();
        let row = |role| Row { iteration: 0, role, model: "m".to_owned() };
        let used = Used { calls: 3, input: 1_200, cache_read: 40_000, output: 900, ..Used::default() };
        staged.run.ledger.rows.insert(row(AgentRole::Scout), Used { cost_usd: Exact::parse("0.0321").ok(), ..used });
        staged.run.ledger.rows.insert(row(AgentRole::Solver), Used { calls: 1, cost_usd: None, ..Used::default() });
        staged.run.ledger.lost = 1;
        staged.run.rate = Some(RateLeft { requests: Some(7), tokens: None, reset: Some("soon\u{1b}[2J".to_owned()) });
        let screen = staged.screen(&mut Budget::default(), 80, 24);
        assert!(screen.contains("$0.0321") && screen.contains("cost unknown"), "{screen}");
        assert!(screen.contains("1 calls, at most $0") && screen.contains("7 requests, ? tokens left"), "{screen}");
        assert!(!screen.contains('\u{1b}'));
        staged.all_sizes(&mut Budget::default());
    }

    #[test]
    fn a_limit_goes_up_or_nowhere() {
        let staged = raised();
        let mut budget = Budget::default();
        staged.type_text(&mut budget, "12");
        assert!(staged.press(&mut budget, KeyCode::Enter).cmds.is_empty());
        assert!(staged.screen(&mut budget, 80, 20).contains("a limit can only be raised: iterations is 12"));
        staged.press(&mut budget, KeyCode::Backspace);
        staged.type_text(&mut budget, "3x");
        let response = staged.press(&mut budget, KeyCode::Enter);
        let order = Command::RaiseBudget { dimension: Dimension::Iterations, to: "13".to_owned() };
        assert_eq!(response.cmds, [Cmd::Order(order)]);
        assert!(matches!(response.next, Next::Stay));
    }

    #[test]
    fn what_has_no_limit_cannot_be_raised_and_looking_changes_nothing() {
        let mut staged = raised();
        staged.run.limits.max_total_tokens = None;
        let mut budget = Budget::default();
        for _ in 0..3 {
            staged.press(&mut budget, KeyCode::Down);
        }
        staged.type_text(&mut budget, "5");
        assert!(staged.press(&mut budget, KeyCode::Enter).cmds.is_empty());
        assert!(staged.screen(&mut budget, 80, 20).contains("there is no token limit to raise"));
        staged.read_only = true;
        let mut budget = Budget::default();
        staged.type_text(&mut budget, "99");
        assert!(staged.press(&mut budget, KeyCode::Enter).cmds.is_empty());
    }
}
