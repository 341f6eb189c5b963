//! How a style is written to a terminal: the shortest change from one to the next.

use std::fmt::Write as _;

use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier, Style};

/// What the next sign would look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pen {
    fg: Color,
    bg: Color,
    underline: Color,
    modifier: Modifier,
}

/// In the order of their codes, 1 to 9. Hidden text is not among them: nothing is written that is not seen.
const CODES: [(Modifier, u8); 8] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::SLOW_BLINK, 5),
    (Modifier::RAPID_BLINK, 6),
    (Modifier::REVERSED, 7),
    (Modifier::CROSSED_OUT, 9),
];

impl Pen {
    pub const PLAIN: Self =
        Self { fg: Color::Reset, bg: Color::Reset, underline: Color::Reset, modifier: Modifier::empty() };

    pub fn of_cell(cell: &Cell) -> Self {
        Self {
            fg: cell.fg,
            bg: cell.bg,
            underline: cell.underline_color,
            modifier: cell.modifier.difference(Modifier::HIDDEN),
        }
    }

    pub fn of_style(style: Style) -> Self {
        Self {
            fg: style.fg.unwrap_or(Color::Reset),
            bg: style.bg.unwrap_or(Color::Reset),
            underline: style.underline_color.unwrap_or(Color::Reset),
            modifier: style.add_modifier.difference(style.sub_modifier).difference(Modifier::HIDDEN),
        }
    }

    /// Writes what changes on the way to `to`, and nothing when nothing does.
    pub fn change(&mut self, to: Self, out: &mut String) {
        if *self == to {
            return;
        }
        let mut codes = Codes::default();
        let mut from = *self;
        // Taking away one by one differs between terminals; beginning anew does not.
        if to == Self::PLAIN || !to.modifier.contains(from.modifier) {
            codes.push(0);
            from = Self::PLAIN;
        }
        for (modifier, code) in CODES {
            if to.modifier.contains(modifier) && !from.modifier.contains(modifier) {
                codes.push(code);
            }
        }
        if from.fg != to.fg {
            codes.colour(to.fg, 30, 38);
        }
        if from.bg != to.bg {
            codes.colour(to.bg, 40, 48);
        }
        if from.underline != to.underline {
            codes.underline(to.underline);
        }
        if !codes.0.is_empty() {
            let _ = write!(out, "\u{1b}[{}m", codes.0);
        }
        *self = to;
    }
}

#[derive(Default)]
struct Codes(String);

impl Codes {
    fn push(&mut self, code: u8) {
        if !self.0.is_empty() {
            self.0.push(';');
        }
        let _ = write!(self.0, "{code}");
    }

    /// `first`: the code of black; `wide`: the code that numbers or channels follow.
    fn colour(&mut self, colour: Color, first: u8, wide: u8) {
        let bright = first + 60;
        match colour {
            Color::Reset => self.push(first + 9),
            Color::Black => self.push(first),
            Color::Red => self.push(first + 1),
            Color::Green => self.push(first + 2),
            Color::Yellow => self.push(first + 3),
            Color::Blue => self.push(first + 4),
            Color::Magenta => self.push(first + 5),
            Color::Cyan => self.push(first + 6),
            Color::Gray => self.push(first + 7),
            Color::DarkGray => self.push(bright),
            Color::LightRed => self.push(bright + 1),
            Color::LightGreen => self.push(bright + 2),
            Color::LightYellow => self.push(bright + 3),
            Color::LightBlue => self.push(bright + 4),
            Color::LightMagenta => self.push(bright + 5),
            Color::LightCyan => self.push(bright + 6),
            Color::White => self.push(bright + 7),
            Color::Indexed(index) => [wide, 5, index].into_iter().for_each(|code| self.push(code)),
            Color::Rgb(red, green, blue) => [wide, 2, red, green, blue].into_iter().for_each(|code| self.push(code)),
        }
    }

    /// There are no short codes for these. What does not name a number keeps the colour of the text.
    fn underline(&mut self, colour: Color) {
        match colour {
            Color::Indexed(index) => [58, 5, index].into_iter().for_each(|code| self.push(code)),
            Color::Rgb(red, green, blue) => [58, 2, red, green, blue].into_iter().for_each(|code| self.push(code)),
            _ => self.push(59),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pen: &mut Pen, style: Style) -> String {
        let mut out = String::new();
        pen.change(Pen::of_style(style), &mut out);
        out
    }

    #[test]
    fn only_what_changes_is_written() {
        let mut pen = Pen::PLAIN;
        let bold = Style::new().add_modifier(Modifier::BOLD);
        assert_eq!(written(&mut pen, Style::new()), "");
        assert_eq!(written(&mut pen, bold.fg(Color::Red)), "\u{1b}[1;31m");
        assert_eq!(written(&mut pen, bold.fg(Color::Red)), "");
        assert_eq!(written(&mut pen, bold.fg(Color::Rgb(1, 2, 3)).bg(Color::White)), "\u{1b}[38;2;1;2;3;107m");
        assert_eq!(written(&mut pen, Style::new().bg(Color::White)), "\u{1b}[0;107m");
        assert_eq!(written(&mut pen, Style::new().bg(Color::Indexed(7))), "\u{1b}[48;5;7m");
        assert_eq!(written(&mut pen, Style::new()), "\u{1b}[0m");
    }

    #[test]
    fn nothing_is_ever_hidden() {
        let mut pen = Pen::PLAIN;
        assert_eq!(written(&mut pen, Style::new().add_modifier(Modifier::HIDDEN)), "");
    }
}
