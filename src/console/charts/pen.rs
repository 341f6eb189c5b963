//! A pen that writes into one area of a frame and cannot leave it.
//!
//! Not here: layout, meaning. Invariants: what does not fit is cut with a mark or, for lines, not drawn;
//! coordinates are relative to the area.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::console::theme::{Glyphs, Role, Theme};
use crate::console::widget;

/// The signs of a line, thin or heavy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strokes {
    pub h: &'static str,
    pub v: &'static str,
    pub tl: &'static str,
    pub tr: &'static str,
    pub bl: &'static str,
    pub br: &'static str,
}

impl Strokes {
    pub const fn thin(glyphs: &Glyphs) -> Self {
        Self {
            h: glyphs.line_h,
            v: glyphs.line_v,
            tl: glyphs.corner_tl,
            tr: glyphs.corner_tr,
            bl: glyphs.corner_bl,
            br: glyphs.corner_br,
        }
    }

    /// For what must stand out without colour.
    pub const fn heavy(glyphs: &Glyphs) -> Self {
        if glyphs.braille {
            Self { h: "━", v: "┃", tl: "┏", tr: "┓", bl: "┗", br: "┛" }
        } else {
            Self { h: "=", v: "I", tl: "#", tr: "#", bl: "#", br: "#" }
        }
    }
}

/// "times", before a count.
pub const fn times(glyphs: &Glyphs) -> &'static str {
    if glyphs.braille { "×" } else { "x" }
}

/// Between things of equal rank on one line.
pub const fn separator(glyphs: &Glyphs) -> &'static str {
    if glyphs.braille { " · " } else { " | " }
}

/// A place to write.
#[derive(Debug)]
pub struct Pen<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    theme: &'a Theme,
}

impl<'a> Pen<'a> {
    pub fn new(buffer: &'a mut Buffer, area: Rect, theme: &'a Theme) -> Self {
        let area = area.intersection(*buffer.area());
        Self { buffer, area, theme }
    }

    pub fn width(&self) -> u16 {
        self.area.width
    }

    pub fn height(&self) -> u16 {
        self.area.height
    }

    pub fn theme(&self) -> &'a Theme {
        self.theme
    }

    pub fn glyphs(&self) -> &'a Glyphs {
        self.theme.glyphs()
    }

    /// Writes a text; what does not fit is cut with a mark.
    pub fn text(&mut self, x: u16, y: u16, text: &str, role: Role) {
        if x >= self.area.width || y >= self.area.height || text.is_empty() {
            return;
        }
        let room = usize::from(self.area.width - x);
        let fitting = widget::clip(self.theme, text, room);
        self.buffer.set_stringn(self.area.x + x, self.area.y + y, fitting, room, self.theme.style(role));
    }

    /// Writes a text that ends in column `end` (exclusive).
    pub fn text_before(&mut self, end: u16, y: u16, text: &str, role: Role) {
        let text = widget::clip(self.theme, text, usize::from(end));
        let columns = u16::try_from(widget::width(&text)).unwrap_or(end);
        self.text(end.saturating_sub(columns), y, &text, role);
    }

    /// One sign.
    pub fn mark(&mut self, x: u16, y: u16, sign: &str, role: Role) {
        if x < self.area.width && y < self.area.height {
            self.buffer.set_stringn(self.area.x + x, self.area.y + y, sign, 1, self.theme.style(role));
        }
    }

    pub fn line(&mut self, x: u16, y: u16, line: Line<'_>) {
        if x >= self.area.width || y >= self.area.height {
            return;
        }
        let room = self.area.width - x;
        let line = widget::clip_line(self.theme, line, usize::from(room));
        self.buffer.set_line(self.area.x + x, self.area.y + y, &line, room);
    }

    /// Columns `from..to` of a row.
    pub fn row(&mut self, from: u16, to: u16, y: u16, sign: &str, role: Role) {
        for x in from..to.min(self.area.width) {
            self.mark(x, y, sign, role);
        }
    }

    /// Rows `from..to` of a column.
    pub fn column(&mut self, x: u16, from: u16, to: u16, sign: &str, role: Role) {
        for y in from..to.min(self.area.height) {
            self.mark(x, y, sign, role);
        }
    }

    /// A rule with a title at its left and a remark at its right, as a section's head.
    pub fn rule(&mut self, title: Line<'_>, remark: &str, role: Role) {
        let width = self.area.width;
        self.row(0, width, 0, self.glyphs().line_h, role);
        let wide = u16::try_from(title.width()).unwrap_or(u16::MAX).saturating_add(4);
        let remark_wide = u16::try_from(widget::width(remark)).unwrap_or(u16::MAX);
        if !remark.is_empty() && wide.saturating_add(remark_wide).saturating_add(4) <= width {
            self.text_before(width.saturating_sub(1), 0, &format!(" {remark} "), Role::Muted);
        }
        if width > 4 {
            let mut spans = vec![" ".into()];
            spans.extend(widget::clip_line(self.theme, title, usize::from(width - 4)).spans);
            spans.push(" ".into());
            self.line(1, 0, Line::from(spans));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_outside_and_cuts_are_marked() {
        let theme = Theme::plain();
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 3));
        let mut pen = Pen::new(&mut buffer, Rect::new(2, 1, 6, 9), &theme);
        assert_eq!((pen.width(), pen.height()), (6, 2), "only what the buffer has");
        pen.text(0, 0, "a long text", Role::Text);
        pen.text(9, 0, "outside", Role::Text);
        pen.text(0, 7, "outside", Role::Text);
        pen.row(0, 99, 1, "-", Role::Text);
        pen.text_before(3, 1, "12345", Role::Text);
        let rows: Vec<String> = (0..3).map(|y| (0..12).map(|x| buffer[(x, y)].symbol()).collect()).collect();
        assert_eq!(rows, ["            ", "  a lon…    ", "  12…---    "]);
    }

    #[test]
    fn a_rule_drops_its_remark_before_it_cuts_its_title() {
        let theme = Theme::plain();
        let drawn = |width: u16| {
            let mut buffer = Buffer::empty(Rect::new(0, 0, width, 1));
            Pen::new(&mut buffer, Rect::new(0, 0, width, 1), &theme).rule(Line::from("Title"), "remark", Role::Border);
            (0..width).map(|x| buffer[(x, 0)].symbol().to_owned()).collect::<String>()
        };
        assert_eq!(drawn(20), "─ Title ─── remark ─");
        assert_eq!(drawn(12), "─ Title ────");
        assert_eq!(drawn(8), "─ Tit… ─");
    }
}
