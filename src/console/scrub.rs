//! The last gate before the terminal: whatever a view put into a cell, nothing that acts leaves the buffer.
//!
//! Not a replacement for [`Safe`](crate::model::safe::Safe): a `?` on the screen means that a view forgot it.

use ratatui::buffer::Buffer;

use crate::model::safe::is_clean;

/// Replaces every cell that holds a forbidden character.
pub fn scrub(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        // Nearly every cell holds one printable byte.
        if matches!(cell.symbol().as_bytes(), [b' '..=b'~']) || is_clean(cell.symbol()) {
            continue;
        }
        cell.set_symbol("?");
    }
}

/// For a terminal that knows no other signs: every cell that is not ASCII gets the nearest one that is.
pub fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let plain = match cell.symbol() {
            symbol if symbol.is_ascii() => continue,
            "\u{2010}" | "\u{2011}" | "\u{2012}" | "–" | "—" | "−" => "-",
            "‘" | "’" => "'",
            "“" | "”" | "«" | "»" => "\"",
            "…" => "~",
            "·" | "•" => "*",
            "→" => ">",
            "←" => "<",
            "×" => "x",
            "\u{a0}" => " ",
            _ => "?",
        };
        cell.set_symbol(plain);
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use crate::model::safe::corpus::hostile;
    use crate::model::safe::is_forbidden;

    use super::*;

    #[test]
    fn what_acts_is_replaced_and_the_rest_stays() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        for (cell, symbol) in buffer.content.iter_mut().zip(["a", "─", "👩‍💻", "\u{1b}[2J", "a\u{202e}", "\u{9b}"])
        {
            cell.set_symbol(symbol);
        }
        scrub(&mut buffer);
        let symbols: Vec<_> = buffer.content.iter().map(|cell| cell.symbol()).collect();
        assert_eq!(symbols, ["a", "─", "👩‍💻", "?", "?", "?"]);
    }

    #[test]
    fn a_plain_terminal_gets_plain_signs() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        buffer.set_string(0, 0, "a—ä“日", ratatui::style::Style::default());
        to_ascii(&mut buffer);
        let row: String = buffer.content.iter().map(|cell| cell.symbol()).collect();
        assert_eq!(row, "a-?\"? ");
    }

    #[test]
    fn no_hostile_symbol_stays() {
        let mut replaced = 0;
        for text in hostile() {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 1, 1));
            for cell in &mut buffer.content {
                cell.set_symbol(&String::from_utf8_lossy(&text));
            }
            scrub(&mut buffer);
            for cell in &buffer.content {
                assert!(!cell.symbol().chars().any(is_forbidden), "{:?}", cell.symbol());
                replaced += usize::from(cell.symbol() == "?");
            }
        }
        assert!(replaced > 300, "{replaced}");
    }
}
