//! The machine as a graph of two dimensions: the way in above, the ring of an iteration below, the exits at
//! its foot. The ring runs clockwise, so that the loop is seen as one.

use crate::console::theme::Role;
use crate::console::widget;
use crate::machine::state::State;

use super::{Strokes, View, WAY_IN};
use crate::console::charts::pen::Pen;

/// Columns that the boxed graph needs with counts of three digits.
pub(super) const BOXES_COLUMNS: u16 = 98;
/// Columns that the graph without boxes needs with counts of two digits.
pub(super) const ROWS_COLUMNS: u16 = 76;

/// Where a node stands.
#[derive(Debug, Clone, Copy)]
struct Node {
    state: State,
    x: u16,
    y: u16,
    /// With a border around it; else the label alone.
    boxed: bool,
    width: u16,
}

impl Node {
    const fn end(self) -> u16 {
        self.x + self.width
    }

    /// Free columns between a node and an arrow.
    const fn margin(self) -> u16 {
        if self.boxed { 0 } else { 1 }
    }

    const fn middle(self) -> u16 {
        self.x + self.width / 2
    }
}

/// Boxes and arrows.
pub(super) fn boxes(pen: &mut Pen<'_>, view: View<'_>) {
    // Higher areas give the arrows between the rows a shaft.
    let gap = if pen.height() >= 15 { 2 } else { 1 };
    let spare = pen.width().saturating_sub(BOXES_COLUMNS).min(24);
    let between = 4 + spare / 6;

    let mut x = 0;
    let mut chain: Vec<Node> = Vec::new();
    for state in WAY_IN {
        let width = columns(&view.label(state, state.name())) + 4;
        chain.push(Node { state, x, y: 1, boxed: true, width });
        x += width + between;
    }
    for node in &chain {
        boxed(pen, view, *node);
    }
    for pair in chain.windows(2) {
        if let [from, to] = pair {
            arrow_right(pen, view, *from, *to);
        }
    }
    let top = 3 + gap + 1;
    let ring = ring_nodes(view, (top, top + 3 + gap), true, [25, 28, 31], 4 + spare / 3);
    for node in &ring {
        boxed(pen, view, *node);
    }
    ring_edges(pen, view, &ring, gap);
    if let (Some(dream), Some(spawn)) = (chain.last(), ring.first()) {
        way_into_ring(pen, view, *dream, *spawn, 3, gap);
        need_info(pen, view, *dream, between);
    }
    if let Some(budget) = ring.last() {
        exits(pen, view, *budget, budget.y + 2);
    }
}

/// The same graph, one row for each row of boxes.
pub(super) fn rows(pen: &mut Pen<'_>, view: View<'_>) {
    let mut x = 0;
    let mut chain: Vec<Node> = Vec::new();
    for state in WAY_IN {
        let width = columns(&view.label(state, state.name()));
        chain.push(Node { state, x, y: 0, boxed: false, width });
        x += width + 4;
    }
    for node in &chain {
        bare(pen, view, *node);
    }
    for pair in chain.windows(2) {
        if let [from, to] = pair {
            arrow_right(pen, view, *from, *to);
        }
    }
    let widths = [20, 23, 26];
    let between = (pen.width().saturating_sub(widths.iter().sum()) / 2).min(10);
    let ring = ring_nodes(view, (2, 4), false, widths, between);
    for node in &ring {
        bare(pen, view, *node);
    }
    ring_edges(pen, view, &ring, 1);
    if let (Some(dream), Some(spawn)) = (chain.last(), ring.first()) {
        way_into_ring(pen, view, *dream, *spawn, 1, 1);
        need_info(pen, view, *dream, 4);
    }
    if let Some(budget) = ring.last() {
        exits(pen, view, *budget, budget.y + 1);
    }
}

/// The ring's nodes in order: the first three from left to right above, the rest from right to left below.
fn ring_nodes(view: View<'_>, (above, below): (u16, u16), boxed: bool, widths: [u16; 3], between: u16) -> Vec<Node> {
    let starts = [0, widths[0] + between, widths[0] + widths[1] + 2 * between];
    let ring = super::ring(view.run.spec());
    let lower = ring.len().saturating_sub(3);
    ring.into_iter()
        .enumerate()
        .map(|(index, state)| {
            let (y, column) = if index < 3 {
                (above, index)
            } else {
                // From right to left; the last one always stands under the first.
                let place = index - 3;
                (below, if place + 1 == lower { 0 } else { 2usize.saturating_sub(place) })
            };
            let x = starts.get(column).copied().unwrap_or(0);
            let width = widths.get(column).copied().unwrap_or(0);
            Node { state, x, y, boxed, width }
        })
        .collect()
}

fn ring_edges(pen: &mut Pen<'_>, view: View<'_>, ring: &[Node], gap: u16) {
    let half = u16::from(ring.first().is_some_and(|node| node.boxed));
    for pair in ring.windows(2) {
        let [from, to] = pair else { continue };
        if from.y == to.y && from.x < to.x {
            arrow_right(pen, view, *from, *to);
        } else if from.y == to.y {
            arrow_left(pen, view, *from, *to);
        } else {
            let role = view.edge_role(from.state, to.state);
            let x = from.x + 2;
            let first = from.y + half + 1;
            pen.column(x, first, first + gap - 1, view.strokes(from.state, to.state).v, role);
            pen.mark(x, first + gap - 1, pen.glyphs().arrow_down, role);
        }
    }
    if let (Some(spawn), Some(budget)) = (ring.first(), ring.last()) {
        let role = view.edge_role(budget.state, spawn.state);
        let x = spawn.x + 2;
        let first = spawn.y + half + 1;
        pen.mark(x, first, pen.glyphs().arrow_up, role);
        pen.column(x, first + 1, first + gap, view.strokes(budget.state, spawn.state).v, role);
        let rounds = view.rounds();
        let text = if rounds == 0 { "loop".to_owned() } else { format!("loop {}{rounds}", super::times(view.glyphs)) };
        pen.text(x + 2, first, &text, role);
    }
}

/// From the last state of the way in, down and to the left, into the first state of the ring.
fn way_into_ring(pen: &mut Pen<'_>, view: View<'_>, from: Node, to: Node, y: u16, gap: u16) {
    let role = view.edge_role(from.state, to.state);
    let strokes = view.strokes(from.state, to.state);
    let (start, end) = (from.middle(), to.x + 2);
    pen.mark(start, y, strokes.br, role);
    pen.row(end + 1, start, y, strokes.h, role);
    if gap > 1 {
        pen.mark(end, y, strokes.tl, role);
    }
    pen.mark(end, y + gap - 1, pen.glyphs().arrow_down, role);
}

fn need_info(pen: &mut Pen<'_>, view: View<'_>, from: Node, between: u16) {
    let x = from.end() + between;
    if pen.width() <= x + 11 {
        return;
    }
    let missing = [State::NullCheck, State::DreamGoal]
        .into_iter()
        .find(|state| view.run.edges.contains_key(&(*state, State::ExitNeedInfo)))
        .unwrap_or(State::NullCheck);
    let role = view.edge_role(missing, State::ExitNeedInfo);
    let (start, end) = (used_end(view, from) + from.margin(), x.saturating_sub(1));
    arrow(pen, start, end, from.y, view.strokes(missing, State::ExitNeedInfo), role);
    let label = view.label(State::ExitNeedInfo, View::exit_name(State::ExitNeedInfo));
    pen.text(x, from.y, &label, view.role(State::ExitNeedInfo));
}

/// The exits under BUDGET_CHECK; a block may come from anywhere.
fn exits(pen: &mut Pen<'_>, view: View<'_>, budget: Node, y: u16) {
    let states = [State::ExitConverged, State::ExitDiverged, State::ExitBudgetExceeded, State::ExitBlocked];
    let taken = states.into_iter().find(|exit| view.is_current(*exit)).unwrap_or(State::ExitConverged);
    let from = view.run.last_edge.map_or(State::BudgetCheck, |(from, _)| from);
    let left_from_budget = view.is_current(taken) && from == State::BudgetCheck;
    let role = if left_from_budget { Role::EdgeLast } else { Role::Border };
    let strokes = if left_from_budget { Strokes::heavy(view.glyphs) } else { Strokes::thin(view.glyphs) };
    let mut x = budget.x + 2;
    pen.mark(x, y, strokes.bl, role);
    arrow(pen, x + 1, x + 3, y, strokes, role);
    x += 4;
    for state in states {
        if state == State::ExitBlocked {
            pen.text(x, y, "any state", Role::Muted);
            x += 10;
            let edge = view.edge_role(from, State::ExitBlocked);
            pen.mark(x, y, pen.glyphs().arrow_right, edge);
            x += 2;
        }
        let label = view.label(state, View::exit_name(state));
        pen.text(x, y, &label, view.role(state));
        x += columns(&label) + 2;
    }
}

fn boxed(pen: &mut Pen<'_>, view: View<'_>, node: Node) {
    let current = view.is_current(node.state);
    let (strokes, border) = if current {
        (Strokes::heavy(view.glyphs), Role::EdgeLast)
    } else if view.visits(node.state) > 0 {
        (Strokes::thin(view.glyphs), Role::StateVisited)
    } else {
        (Strokes::thin(view.glyphs), Role::StateIdle)
    };
    let (left, right) = (node.x, node.end().saturating_sub(1));
    let (top, bottom) = (node.y.saturating_sub(1), node.y + 1);
    for (y, l, r) in [(top, strokes.tl, strokes.tr), (bottom, strokes.bl, strokes.br)] {
        pen.mark(left, y, l, border);
        pen.row(left + 1, right, y, strokes.h, border);
        pen.mark(right, y, r, border);
    }
    pen.mark(left, node.y, strokes.v, border);
    pen.mark(right, node.y, strokes.v, border);
    let label = view.label(node.state, node.state.name());
    let role = view.role(node.state);
    if current {
        // The whole inside is lit.
        pen.row(left + 1, right, node.y, " ", role);
    }
    pen.text(left + 2, node.y, &label, role);
}

fn bare(pen: &mut Pen<'_>, view: View<'_>, node: Node) {
    pen.text(node.x, node.y, &view.label(node.state, node.state.name()), view.role(node.state));
}

fn arrow_right(pen: &mut Pen<'_>, view: View<'_>, from: Node, to: Node) {
    let (strokes, role) = (view.strokes(from.state, to.state), view.edge_role(from.state, to.state));
    arrow(pen, used_end(view, from) + from.margin(), to.x.saturating_sub(to.margin()), from.y, strokes, role);
}

fn arrow_left(pen: &mut Pen<'_>, view: View<'_>, from: Node, to: Node) {
    let role = view.edge_role(from.state, to.state);
    let head = used_end(view, to) + to.margin();
    pen.mark(head, from.y, pen.glyphs().arrow_left, role);
    pen.row(head + 1, from.x.saturating_sub(from.margin()), from.y, view.strokes(from.state, to.state).h, role);
}

/// From `start` to `end` (exclusive), with its head at the end.
fn arrow(pen: &mut Pen<'_>, start: u16, end: u16, y: u16, strokes: Strokes, role: Role) {
    let head = end.saturating_sub(1);
    pen.row(start, head, y, strokes.h, role);
    if head >= start {
        pen.mark(head, y, pen.glyphs().arrow_right, role);
    }
}

/// Where an arrow may touch a node: the border of a box, the end of a bare label.
fn used_end(view: View<'_>, node: Node) -> u16 {
    if node.boxed { node.end() } else { node.x + columns(&view.label(node.state, node.state.name())) }
}

fn columns(text: &str) -> u16 {
    u16::try_from(widget::width(text)).unwrap_or(u16::MAX / 4)
}
