//! The state machine as a graph: the way in, the ring of an iteration, the exits.
//!
//! Role: show where the run is, how it came there, and how often it was where.
//! Not its role: what happens inside a state. Invariants: every layout shows order, position, counts and the
//! loop; the current state and the last edge are told by sign as well as by colour.

mod compact;
mod graph;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::console::theme::{Glyphs, Role, Theme};
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::model::learnings::SpecVersion;

use super::pen::{Pen, Strokes, times};

/// The states before the first iteration.
const WAY_IN: [State; 4] = [State::Init, State::IntakeGoal, State::NullCheck, State::DreamGoal];

/// How the graph is drawn in an area, from the largest that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Boxes and arrows.
    Boxes,
    /// One row per line of states, with arrows.
    Rows,
    /// The way in and the ring, short names, two rows.
    Short,
    /// One row.
    Line,
}

impl Layout {
    /// Rows of the boxed graph at the least.
    pub const BOXES_ROWS: u16 = 12;
    /// Rows of the graph without boxes.
    pub const ROWS_ROWS: u16 = 6;

    pub const fn of(area: Rect) -> Self {
        if area.width >= graph::BOXES_COLUMNS && area.height >= Self::BOXES_ROWS {
            Self::Boxes
        } else if area.width >= graph::ROWS_COLUMNS && area.height >= Self::ROWS_ROWS {
            Self::Rows
        } else if area.width >= compact::SHORT_COLUMNS && area.height >= 2 {
            Self::Short
        } else {
            Self::Line
        }
    }
}

/// Draws the machine in the layout that fits.
pub fn draw(buffer: &mut Buffer, area: Rect, theme: &Theme, run: &RunState) {
    let mut pen = Pen::new(buffer, area, theme);
    let view = View { run, theme, glyphs: theme.glyphs() };
    match Layout::of(area) {
        Layout::Boxes => graph::boxes(&mut pen, view),
        Layout::Rows => graph::rows(&mut pen, view),
        Layout::Short => compact::short(&mut pen, view),
        Layout::Line => compact::line(&mut pen, view),
    }
}

/// The states of an iteration in order.
pub fn ring(spec: SpecVersion) -> Vec<State> {
    let mut ring = vec![State::SpawnSubagent];
    loop {
        let last = ring.last().copied().unwrap_or(State::SpawnSubagent);
        let next = last.followers(spec).iter().find(|next| next.exit().is_none());
        match next {
            Some(next) if *next != State::SpawnSubagent && ring.len() < State::ALL.len() => ring.push(*next),
            _ => return ring,
        }
    }
}

/// What a drawing of the machine asks about the run.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    run: &'a RunState,
    theme: &'a Theme,
    glyphs: &'a Glyphs,
}

impl View<'_> {
    fn visits(self, state: State) -> u32 {
        self.run.visits.get(&state).copied().unwrap_or(0)
    }

    fn is_current(self, state: State) -> bool {
        self.run.state == state
    }

    fn glyph(self, state: State) -> &'static str {
        if self.is_current(state) {
            self.glyphs.current
        } else if self.visits(state) > 0 {
            self.glyphs.visited
        } else {
            self.glyphs.idle
        }
    }

    fn role(self, state: State) -> Role {
        if self.is_current(state) {
            Role::StateCurrent
        } else if self.visits(state) > 0 {
            Role::StateVisited
        } else {
            Role::StateIdle
        }
    }

    /// ` ×3`; nothing for a state that is passed once anyway.
    fn count(self, state: State) -> String {
        let visits = self.visits(state);
        let once = WAY_IN.contains(&state) || state.exit().is_some();
        if visits == 0 || (once && visits == 1) { String::new() } else { format!(" {}{visits}", times(self.glyphs)) }
    }

    /// Sign, name and count; the current one with a margin, so that its lit field stands out.
    fn label(self, state: State, name: &str) -> String {
        format!("{} {name}{}", self.glyph(state), self.count(state))
    }

    fn edge_role(self, from: State, to: State) -> Role {
        if self.run.last_edge == Some((from, to)) {
            Role::EdgeLast
        } else if self.run.edges.contains_key(&(from, to)) {
            Role::EdgeTaken
        } else {
            Role::Border
        }
    }

    fn strokes(self, from: State, to: State) -> Strokes {
        if self.run.last_edge == Some((from, to)) { Strokes::heavy(self.glyphs) } else { Strokes::thin(self.glyphs) }
    }

    /// How often the loop was closed.
    fn rounds(self) -> u32 {
        self.run.edges.get(&(State::BudgetCheck, State::SpawnSubagent)).copied().unwrap_or(0)
    }

    /// The name without `EXIT_`.
    fn exit_name(state: State) -> &'static str {
        state.name().trim_start_matches("EXIT_")
    }
}

#[cfg(test)]
mod tests;
