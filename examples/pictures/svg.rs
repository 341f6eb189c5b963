//! A screen as SVG: one text per run of equal style, in a window with round corners.
//!
//! Lines and blocks are drawn as such, so that they meet whatever the font; each text says how wide it is, so
//! that a font with other widths does not move what stands behind it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nightloop::console::theme::{Role, Theme};
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr};

const CELL: (f32, f32) = (8.4, 18.0);
const MARGIN: f32 = 16.0;
/// Height of the window's own bar.
const BAR: f32 = 30.0;
const FONT: &str = "ui-monospace,'DejaVu Sans Mono','Cascadia Mono',Menlo,Consolas,monospace";

/// The colours where a cell names none.
pub struct Ground {
    text: (u8, u8, u8),
    background: (u8, u8, u8),
}

impl Ground {
    pub fn of(theme: &Theme) -> Self {
        let painted = theme.clone().fitted(None).base();
        let text = theme.style(Role::Text).fg.and_then(channels).unwrap_or((220, 220, 220));
        Self { text, background: painted.bg.and_then(channels).unwrap_or((18, 20, 24)) }
    }
}

fn channels(colour: Color) -> Option<(u8, u8, u8)> {
    match colour {
        Color::Rgb(red, green, blue) => Some((red, green, blue)),
        _ => None,
    }
}

/// How a run of cells looks.
#[derive(PartialEq, Clone, Copy)]
struct Look {
    text: (u8, u8, u8),
    background: Option<(u8, u8, u8)>,
    modifier: Modifier,
}

impl Look {
    fn of(cell: &Cell, ground: &Ground) -> Self {
        let (mut text, mut background) = (channels(cell.fg).unwrap_or(ground.text), channels(cell.bg));
        if cell.modifier.contains(Modifier::REVERSED) {
            (text, background) = (background.unwrap_or(ground.background), Some(text));
        }
        Self { text, background, modifier: cell.modifier }
    }
}

fn hex((red, green, blue): (u8, u8, u8)) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// What is drawn, in the order of its layers.
#[derive(Default)]
struct Layers {
    backgrounds: String,
    /// Lines by colour and width: one path each.
    lines: BTreeMap<(String, &'static str), String>,
    blocks: String,
    texts: String,
}

/// The whole picture.
pub fn draw(cells: &Buffer, title: &str, ground: &Ground) -> String {
    let (width, height) = (f32::from(cells.area.width) * CELL.0, f32::from(cells.area.height) * CELL.1);
    let (wide, high) = (width + 2.0 * MARGIN, height + BAR + MARGIN);
    let mut layers = Layers::default();
    for y in 0..cells.area.height {
        for (x, columns, text, look) in runs(cells, y, ground) {
            layers.run(f32::from(x) * CELL.0, f32::from(y) * CELL.1, f32::from(columns) * CELL.0, &text, look);
        }
    }
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide:.1} {high:.1}\" width=\"{wide:.0}\" \
         height=\"{high:.0}\" role=\"img\" aria-label=\"{0}\">\n<title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"{1}\"/>",
        escape(title),
        hex(ground.background)
    );
    for (index, colour) in ["#e0645c", "#e0b04c", "#5cb870"].into_iter().enumerate() {
        let x = MARGIN + 6.0 + index as f32 * 20.0;
        let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"15\" r=\"5.5\" fill=\"{colour}\"/>");
    }
    let _ = writeln!(
        out,
        "<g transform=\"translate({MARGIN} {BAR})\" font-family=\"{FONT}\" font-size=\"14\" xml:space=\"preserve\">"
    );
    out.push_str(&layers.backgrounds);
    out.push_str(&layers.blocks);
    for ((colour, width), path) in &layers.lines {
        let _ = writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>");
    }
    out.push_str(&layers.texts);
    out.push_str("</g>\n</svg>\n");
    out
}

impl Layers {
    /// Cells of one look: what is a line or a block is drawn as such, the rest is text.
    fn run(&mut self, left: f32, top: f32, length: f32, text: &str, look: Look) {
        if let Some(background) = look.background {
            // A hair wider than it is: no seams between neighbours.
            let _ = writeln!(
                self.backgrounds,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                length + 0.3,
                CELL.1 + 0.3,
                hex(background)
            );
        }
        let mut x = left;
        let mut words = (x, String::new());
        let mut flat: Option<(f32, char)> = None;
        for sign in text.chars().chain(std::iter::once('\0')) {
            let columns = sign.width().unwrap_or(0) as f32;
            if let Some((from, last)) = flat.filter(|(_, last)| *last != sign) {
                self.stroke(look, last == '━', &format!("M{from:.1} {:.1}H{x:.1}", top + CELL.1 / 2.0));
                flat = None;
            }
            if matches!(sign, '─' | '━') {
                flat = flat.or(Some((x, sign)));
            } else if let Some((heavy, path)) = bent(sign, x, top) {
                self.stroke(look, heavy, &path);
            } else if let Some(opacity) = shade(sign) {
                let _ = writeln!(
                    self.blocks,
                    "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\" opacity=\"{opacity}\"/>",
                    top + 2.0,
                    CELL.0 + 0.2,
                    CELL.1 - 4.0,
                    hex(look.text)
                );
            } else if let Some(dots) = braille(sign) {
                for (column, row) in dots {
                    let (x, y) = (x + CELL.0 * (0.25 + 0.5 * column), top + CELL.1 * (0.125 + 0.25 * row));
                    let _ = write!(
                        self.blocks,
                        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.1\" fill=\"{}\"/>",
                        hex(look.text)
                    );
                }
                self.blocks.push('\n');
            } else if sign != '\0' {
                if words.1.is_empty() {
                    words.0 = x;
                }
                words.1.push(sign);
                x += columns * CELL.0;
                continue;
            }
            self.text(words.0, top, &words.1, look);
            words.1.clear();
            x += columns * CELL.0;
        }
    }

    fn stroke(&mut self, look: Look, heavy: bool, path: &str) {
        let width = if heavy { "2.4" } else { "1.2" };
        self.lines.entry((hex(look.text), width)).or_default().push_str(path);
    }

    fn text(&mut self, left: f32, top: f32, text: &str, look: Look) {
        let blanks = text.len() - text.trim_start().len();
        let shown = text.trim();
        if shown.is_empty() {
            return;
        }
        let _ = writeln!(
            self.texts,
            "<text x=\"{:.1}\" y=\"{:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{}\"{}>{}</text>",
            left + blanks as f32 * CELL.0,
            top + 13.5,
            UnicodeWidthStr::width(shown) as f32 * CELL.0,
            hex(look.text),
            weights(look.modifier),
            escape(shown)
        );
    }
}

/// Vertical lines and corners, as a path through the middle of the cell: is it heavy, and where does it go?
fn bent(sign: char, left: f32, top: f32) -> Option<(bool, String)> {
    let (right, bottom) = (left + CELL.0, top + CELL.1);
    let (x, y) = (left + CELL.0 / 2.0, top + CELL.1 / 2.0);
    let corner = |across: f32, along: f32| {
        let (near_x, near_y) = (x + (across - x).signum() * 4.0, y + (along - y).signum() * 4.0);
        format!("M{across:.1} {y:.1}H{near_x:.1}Q{x:.1} {y:.1} {x:.1} {near_y:.1}V{along:.1}")
    };
    let sharp = |across: f32, along: f32| format!("M{across:.1} {y:.1}H{x:.1}V{along:.1}");
    Some(match sign {
        '│' => (false, format!("M{x:.1} {top:.1}V{bottom:.1}")),
        '┃' => (true, format!("M{x:.1} {top:.1}V{bottom:.1}")),
        '╭' => (false, corner(right, bottom)),
        '╮' => (false, corner(left, bottom)),
        '╰' => (false, corner(right, top)),
        '╯' => (false, corner(left, top)),
        '┏' => (true, sharp(right, bottom)),
        '┓' => (true, sharp(left, bottom)),
        '┗' => (true, sharp(right, top)),
        '┛' => (true, sharp(left, top)),
        _ => return None,
    })
}

/// The dots of a braille sign, by column and row.
fn braille(sign: char) -> Option<Vec<(f32, f32)>> {
    const DOTS: [(f32, f32); 8] =
        [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.0, 3.0), (1.0, 3.0)];
    let bits = u32::from(sign).checked_sub(0x2800).filter(|bits| *bits < 256)?;
    Some(DOTS.into_iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, dot)| dot).collect())
}

/// How dense a block is.
fn shade(sign: char) -> Option<&'static str> {
    match sign {
        '█' => Some("1"),
        '▓' => Some("0.8"),
        '▒' => Some("0.6"),
        '░' => Some("0.45"),
        _ => None,
    }
}

/// The row in pieces of one look each: column, columns, text, look.
fn runs(cells: &Buffer, y: u16, ground: &Ground) -> Vec<(u16, u16, String, Look)> {
    let mut runs: Vec<(u16, u16, String, Look)> = Vec::new();
    let mut x = 0;
    while x < cells.area.width {
        let cell = &cells[(x, y)];
        let look = Look::of(cell, ground);
        let columns = u16::try_from(UnicodeWidthStr::width(cell.symbol()).max(1)).unwrap_or(1);
        match runs.last_mut() {
            Some((_, length, text, last)) if *last == look => {
                *length += columns;
                text.push_str(cell.symbol());
            }
            _ => runs.push((x, columns, cell.symbol().to_owned(), look)),
        }
        x += columns;
    }
    runs
}

fn weights(modifier: Modifier) -> String {
    let mut out = String::new();
    for (weight, attribute) in [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::ITALIC, " font-style=\"italic\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
        (Modifier::DIM, " opacity=\"0.7\""),
    ] {
        if modifier.contains(weight) {
            out.push_str(attribute);
        }
    }
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
