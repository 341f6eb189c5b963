//! A screen as SVG: one text per run of equal style, in a window with round corners.
//!
//! Block and line signs are drawn as text like all others; each run says how wide it is, so that a font with
//! other widths does not move what stands behind it.

use std::fmt::Write as _;

use nightloop::console::theme::{Role, Theme};
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

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

/// The whole picture.
pub fn draw(cells: &Buffer, title: &str, ground: &Ground) -> String {
    let (width, height) = (f32::from(cells.area.width) * CELL.0, f32::from(cells.area.height) * CELL.1);
    let (wide, high) = (width + 2.0 * MARGIN, height + BAR + MARGIN);
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
    let mut texts = String::new();
    for y in 0..cells.area.height {
        for (x, columns, text, look) in runs(cells, y, ground) {
            let left = f32::from(x) * CELL.0;
            let top = f32::from(y) * CELL.1;
            let length = f32::from(columns) * CELL.0;
            if let Some(background) = look.background {
                // A hair wider than it is: no seams between neighbours.
                let _ = writeln!(
                    out,
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                    length + 0.3,
                    CELL.1 + 0.3,
                    hex(background)
                );
            }
            let blanks = text.len() - text.trim_start().len();
            let shown = text.trim();
            if shown.is_empty() {
                continue;
            }
            let from = left + blanks as f32 * CELL.0;
            let columns = UnicodeWidthStr::width(shown) as f32;
            let _ = writeln!(
                texts,
                "<text x=\"{from:.1}\" y=\"{:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{}\"{}>{}</text>",
                top + 13.5,
                columns * CELL.0,
                hex(look.text),
                weights(look.modifier),
                escape(shown)
            );
        }
    }
    out.push_str(&texts);
    out.push_str("</g>\n</svg>\n");
    out
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
