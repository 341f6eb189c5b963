//! A grid of dots: eight to a cell in braille, one to a cell without.

use crate::console::charts::pen::Pen;
use crate::console::theme::Role;

/// The bits of a braille cell, by column and row of the dot.
const BRAILLE: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// Dots that lines are made of. Levels are counted from the bottom.
#[derive(Debug)]
pub(super) struct Plot {
    columns: u16,
    rows: u16,
    braille: bool,
    cells: Vec<u8>,
}

impl Plot {
    pub(super) fn new(columns: u16, rows: u16, braille: bool) -> Self {
        Self { columns, rows, braille, cells: vec![0; usize::from(columns) * usize::from(rows)] }
    }

    fn per_row(&self) -> u16 {
        if self.braille { 4 } else { 1 }
    }

    fn per_column(&self) -> i32 {
        if self.braille { 2 } else { 1 }
    }

    fn levels(&self) -> u16 {
        self.rows * self.per_row()
    }

    /// The level of a share; nothing measurable lies on the lowest level.
    pub(super) fn level(&self, share: Option<f64>) -> u16 {
        let top = f64::from(self.levels().saturating_sub(1));
        match share {
            // A cast from float saturates, and what is no number becomes 0.
            Some(share) => (share.clamp(0.0, 1.0) * top).round() as u16,
            None => 0,
        }
    }

    /// The row of a level, from the top.
    pub(super) fn row(&self, level: u16) -> u16 {
        self.rows.saturating_sub(1).saturating_sub(level / self.per_row())
    }

    /// A line between two points, each a column and a level.
    pub(super) fn connect(&mut self, from: (u16, u16), to: (u16, u16)) {
        let wide = self.per_column();
        let (x0, y0) = (i32::from(from.0) * wide, i32::from(from.1));
        let (x1, y1) = (i32::from(to.0) * wide, i32::from(to.1));
        let steps = (x1 - x0).abs().max((y1 - y0).abs()).max(1);
        for step in 0..=steps {
            let along =
                |start: i32, end: i32| start + ((end - start) * step + steps / 2 * (end - start).signum()) / steps;
            self.dot(along(x0, x1), along(y0, y1));
        }
    }

    fn dot(&mut self, x: i32, level: i32) {
        let (wide, high) = (self.per_column(), i32::from(self.per_row()));
        let (column, row) = (x / wide, i32::from(self.rows) - 1 - level / high);
        let bit = if self.braille {
            let side = usize::try_from(x % wide).unwrap_or(0);
            let down = usize::try_from(high - 1 - level % high).unwrap_or(0);
            BRAILLE.get(side).and_then(|side| side.get(down)).copied().unwrap_or(0)
        } else {
            1
        };
        let (Ok(column), Ok(row)) = (usize::try_from(column), usize::try_from(row)) else { return };
        if column < usize::from(self.columns)
            && let Some(cell) = self.cells.get_mut(row * usize::from(self.columns) + column)
        {
            *cell |= bit;
        }
    }

    pub(super) fn draw(&self, pen: &mut Pen<'_>, left: u16, role: Role) {
        for y in 0..self.rows {
            for x in 0..self.columns {
                let index = usize::from(y) * usize::from(self.columns) + usize::from(x);
                let Some(bits) = self.cells.get(index).copied().filter(|bits| *bits != 0) else { continue };
                if self.braille {
                    let sign = char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' ');
                    pen.mark(left + x, y, sign.encode_utf8(&mut [0; 4]), role);
                } else {
                    pen.mark(left + x, y, ".", role);
                }
            }
        }
    }
}
