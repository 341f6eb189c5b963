//! Punctuation of foreign texts where only ASCII is to be drawn: dashes, quotes and dots have a plain form.
//!
//! Letters of other alphabets stay as they are: a wrong letter says less than one that a terminal cannot draw.

use ratatui::buffer::Buffer;

/// Replaces typographic signs by the plain ones that people typed before there were others.
pub fn simplify(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if let Some(plain) = plain(cell.symbol()) {
            cell.set_symbol(plain);
        }
    }
}

/// Every replacement is as wide as what it replaces.
fn plain(symbol: &str) -> Option<&'static str> {
    Some(match symbol {
        "\u{2010}" | "\u{2011}" | "\u{2012}" | "–" | "—" | "−" | "─" => "-",
        "‘" | "’" | "′" => "'",
        "“" | "”" | "″" | "«" | "»" => "\"",
        "…" => "~",
        "•" | "·" | "×" => "*",
        "→" => ">",
        "←" => "<",
        "\u{a0}" => " ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    #[test]
    fn signs_become_plain_and_letters_stay() {
        let mut buffer = Buffer::with_lines(["AGENTS.md — “Größe” … 語"]);
        simplify(&mut buffer);
        assert_eq!(buffer, Buffer::with_lines(["AGENTS.md - \"Größe\" ~ 語"]));
        let mut ascii = Buffer::empty(Rect::new(0, 0, 3, 1));
        ascii.set_string(0, 0, "a-b", ratatui::style::Style::new());
        let before = ascii.clone();
        simplify(&mut ascii);
        assert_eq!(ascii, before);
    }
}
