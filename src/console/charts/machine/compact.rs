//! The machine where there is no room for a graph: order, position, counts and the loop in a row or two.

use ratatui::text::{Line, Span};

use crate::console::charts::pen::Pen;
use crate::console::theme::Role;
use crate::machine::state::State;

use super::{View, WAY_IN, ring};

/// Columns for two rows of short names.
pub(super) const SHORT_COLUMNS: u16 = 74;

/// A name that still tells which state it is.
const fn short_name(state: State) -> &'static str {
    match state {
        State::Init => "INIT",
        State::IntakeGoal => "INTAKE",
        State::NullCheck => "NULL",
        State::DreamGoal => "DREAM",
        State::SpawnSubagent => "SPAWN",
        State::CollectArtifacts => "COLLECT",
        State::CheckHalting => "HALT?",
        State::AccumulateLearnings => "LEARN",
        State::GlowCheck => "GLOW",
        State::BudgetCheck => "BUDGET",
        State::ExitConverged => "CONVERGED",
        State::ExitDiverged => "DIVERGED",
        State::ExitBudgetExceeded => "BUDGET_EXCEEDED",
        State::ExitBlocked => "BLOCKED",
        State::ExitNeedInfo => "NEED_INFO",
    }
}

/// The way in, the loop and where the run left, above; the ring below.
pub(super) fn short(pen: &mut Pen<'_>, view: View<'_>) {
    let mut above = states(view, &WAY_IN, |state| view.label(state, short_name(state)));
    above.push(Span::raw(" "));
    above.push(round(view));
    if view.run.state.exit().is_some() {
        above.extend(left(view));
    }
    pen.line(0, 0, Line::from(above));
    let order = ring(view.run.spec());
    pen.line(0, 1, Line::from(states(view, &order, |state| view.label(state, short_name(state)))));
}

/// Signs for all states, the name of the current one only.
pub(super) fn line(pen: &mut Pen<'_>, view: View<'_>) {
    let order: Vec<State> = WAY_IN.into_iter().chain(ring(view.run.spec())).collect();
    let tight = usize::from(pen.width()) < 2 * order.len() + 30;
    let mut spans: Vec<Span<'static>> = Vec::new();
    for state in order {
        if state == State::SpawnSubagent {
            spans.push(Span::raw(" "));
        }
        let text = if view.is_current(state) {
            format!("{} ", view.label(state, if tight { short_name(state) } else { state.name() }))
        } else {
            view.glyph(state).to_owned()
        };
        spans.push(Span::styled(text, pen.theme().style(view.role(state))));
    }
    spans.push(round(view));
    if view.run.state.exit().is_some() {
        spans.extend(left(view));
    }
    pen.line(0, 0, Line::from(spans));
}

fn states(view: View<'_>, order: &[State], label: impl Fn(State) -> String) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (index, state) in order.iter().enumerate() {
        if index > 0 {
            spans.push(Span::raw(view.glyphs.arrow_right));
        }
        spans.push(Span::styled(label(*state), view.theme.style(view.role(*state))));
    }
    spans
}

/// The loop and how often it was closed.
fn round(view: View<'_>) -> Span<'static> {
    let role = view.edge_role(State::BudgetCheck, State::SpawnSubagent);
    let text = match view.rounds() {
        0 => format!(" {}loop", view.glyphs.arrow_left),
        rounds => format!(" {}loop {}{rounds}", view.glyphs.arrow_left, super::times(view.glyphs)),
    };
    Span::styled(text, view.theme.style(role))
}

/// The exit that was taken.
fn left(view: View<'_>) -> Vec<Span<'static>> {
    let exit = view.run.state;
    vec![
        Span::styled(format!(" {} ", view.glyphs.arrow_right), view.theme.style(Role::EdgeLast)),
        Span::styled(view.label(exit, short_name(exit)), view.theme.style(Role::StateCurrent)),
    ]
}
