//! Where the parts of the overview stand, by the room there is.
//!
//! Not here: what they show. Invariant: parts never overlap and never leave the area; a part without room has
//! an empty area.

use ratatui::layout::Rect;

use crate::console::charts::machine::Layout;

/// Columns from which two parts stand side by side.
const SIDE_BY_SIDE: u16 = 60;
/// Columns from which the whole pane has two columns.
const TWO_COLUMNS: u16 = 166;

/// The areas of the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Arrangement {
    /// What happens now, or the verdict.
    pub head: Rect,
    pub machine: Rect,
    pub residual: Rect,
    pub glow: Rect,
    pub budget: Rect,
    /// Are the parts headed by rules, or only lines of text?
    pub ruled: bool,
}

impl Arrangement {
    pub(super) fn of(area: Rect, head_rows: u16) -> Self {
        if area.width < SIDE_BY_SIDE || area.height < 12 {
            Self::narrow(area, head_rows)
        } else if area.width >= TWO_COLUMNS && area.height >= head_rows.saturating_add(28) {
            Self::widest(area, head_rows)
        } else {
            Self::wide(area, head_rows)
        }
    }

    /// One under the other, one row each where they can be told in one row.
    fn narrow(area: Rect, head_rows: u16) -> Self {
        let mut rest = area;
        let head = take(&mut rest, head_rows);
        let machine = take(&mut rest, 1);
        let residual = take(&mut rest, 1);
        let glow = take(&mut rest, 1);
        let budget = take(&mut rest, 6);
        Self { head, machine, residual, glow, budget, ruled: false }
    }

    /// Two columns: the machine over the residual, GLOW over the budget.
    fn widest(area: Rect, head_rows: u16) -> Self {
        let mut rest = area;
        let head = take(&mut rest, head_rows);
        let left = rest.width * 3 / 5;
        let mut left_side = Rect { width: left, ..rest };
        let mut right_side = Rect { x: rest.x + left + 1, width: rest.width.saturating_sub(left + 1), ..rest };
        let machine = take(&mut left_side, 16);
        let glow_rows = right_side.height.saturating_sub(8);
        let glow = take(&mut right_side, glow_rows);
        Self { head, machine, residual: left_side, glow, budget: right_side, ruled: true }
    }

    fn wide(area: Rect, head_rows: u16) -> Self {
        let mut rest = area;
        let head = take(&mut rest, head_rows);
        let budget_rows = 4;
        // The smallest chart worth its rule.
        let charts_least = 4;
        let spare = rest.height.saturating_sub(budget_rows + charts_least);
        let fits = |rows: u16| rows < spare;
        let machine_rows = if fits(24) && Layout::of(sized(rest.width, 16)) == Layout::Boxes {
            15
        } else if fits(Layout::BOXES_ROWS) && Layout::of(sized(rest.width, Layout::BOXES_ROWS)) == Layout::Boxes {
            Layout::BOXES_ROWS
        } else if fits(Layout::ROWS_ROWS) && Layout::of(sized(rest.width, Layout::ROWS_ROWS)) == Layout::Rows {
            Layout::ROWS_ROWS
        } else if fits(2) && Layout::of(sized(rest.width, 2)) == Layout::Short {
            2
        } else {
            1
        };
        let machine = take(&mut rest, machine_rows + 1);
        let charts_rows = rest.height.saturating_sub(budget_rows);
        let charts = take(&mut rest, charts_rows);
        let left = charts.width * 11 / 20;
        let residual = Rect { width: left, ..charts };
        let glow = Rect { x: charts.x + left + 1, width: charts.width.saturating_sub(left + 1), ..charts };
        Self { head, machine, residual, glow, budget: rest, ruled: true }
    }
}

const fn sized(width: u16, height: u16) -> Rect {
    Rect { x: 0, y: 0, width, height }
}

/// Cuts rows from the top of what is left.
fn take(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    let taken = Rect { height: rows, ..*rest };
    rest.y += rows;
    rest.height -= rows;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_inside_and_apart() {
        for width in (1..=300).step_by(7) {
            for height in (1..=120).step_by(3) {
                for head in [1, 2, 9] {
                    let area = Rect::new(2, 3, width, height);
                    let all = Arrangement::of(area, head);
                    let parts = [all.head, all.machine, all.residual, all.glow, all.budget];
                    for (index, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
                        assert_eq!(part.intersection(area), *part, "{all:?}");
                        let others = parts.iter().skip(index + 1).filter(|other| !other.is_empty());
                        assert!(others.clone().all(|other| !other.intersects(*part)), "{all:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn eighty_columns_show_the_graph_and_every_part() {
        let all = Arrangement::of(Rect::new(0, 0, 78, 18), 2);
        assert_eq!((all.machine.height, all.residual.height, all.budget.height), (7, 5, 4));
        let large = Arrangement::of(Rect::new(0, 0, 118, 34), 2);
        assert_eq!(large.machine.height, Layout::BOXES_ROWS + 1);
    }
}
