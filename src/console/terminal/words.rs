//! The words spoken to a terminal besides cells: taking and leaving the screen, title, clipboard, notice.
//!
//! Invariant: foreign text stands in them only after it was made safe, and cannot end them.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use unicode_segmentation::UnicodeSegmentation;

use crate::model::safe::Safe;

use super::manners::{Manners, Notices};

pub const FRAME_BEGIN: &str = "\u{1b}[?2026h";
pub const FRAME_END: &str = "\u{1b}[?2026l";
/// Other screen, pasted text marked, focus told, no cursor.
pub const ENTER: &str = "\u{1b}[?1049h\u{1b}[?2004h\u{1b}[?1004h\u{1b}[?25l\u{1b}[0m\u{1b}[2J\u{1b}[H";
/// Whatever was entered, and whatever a frame that broke off may have begun.
pub const LEAVE: &str = concat!(
    "\u{1b}[?2026l\u{1b}[0m\u{1b}[?1006l\u{1b}[?1002l\u{1b}[?1000l",
    "\u{1b}[?1004l\u{1b}[?2004l\u{1b}[?1049l\u{1b}[?25h"
);
/// Clicks and drags, but no mere motion: that would be a stream of bytes for nothing.
pub const MOUSE_ON: &str = "\u{1b}[?1000h\u{1b}[?1002h\u{1b}[?1006h";
pub const MOUSE_OFF: &str = "\u{1b}[?1006l\u{1b}[?1002l\u{1b}[?1000l";
pub const TITLE_SAVE: &str = "\u{1b}[22;2t";
pub const TITLE_RESTORE: &str = "\u{1b}[23;2t";

const LONGEST_TITLE: usize = 120;
const LONGEST_NOTICE: usize = 240;

/// GNU screen takes strings of this length at most.
const SCREEN_PIECE: usize = 240;

pub fn title(text: &Safe) -> String {
    format!("\u{1b}]2;{}\u{7}", short(text, LONGEST_TITLE))
}

/// A notice and a bell.
pub fn notice(title: &str, body: &str, manners: &Manners) -> String {
    // A semicolon parts the fields, and some terminals read numbers before it as orders.
    let field = |text: &str| short(&Safe::line(text), LONGEST_NOTICE).replace(';', ",");
    let (title, body) = (field(title), field(body));
    let mut out = String::new();
    if manners.extras && manners.notices != Notices::Osc777 {
        out.push_str(&through(&format!("\u{1b}]9;{title}: {body}\u{7}"), manners));
    }
    if manners.extras && manners.notices != Notices::Osc9 {
        out.push_str(&through(&format!("\u{1b}]777;notify;{title};{body}\u{7}"), manners));
    }
    out.push('\u{7}');
    out
}

/// To the clipboard of the terminal at the other end.
pub fn clipboard(text: &str, manners: &Manners) -> String {
    let word = format!("\u{1b}]52;c;{}\u{7}", STANDARD.encode(text));
    if manners.tmux {
        // tmux itself may take the first, and the terminal outside the second: which one is allowed is a
        // matter of its settings.
        return format!("{word}{}", through(&word, manners));
    }
    through(&word, manners)
}

/// A word for the terminal outside of a multiplexer.
fn through(word: &str, manners: &Manners) -> String {
    if manners.tmux {
        return format!("\u{1b}Ptmux;{}\u{1b}\\", word.replace('\u{1b}', "\u{1b}\u{1b}"));
    }
    if !manners.screen {
        return word.to_owned();
    }
    let mut out = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let mut end = rest.len().min(SCREEN_PIECE);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, behind) = rest.split_at(end);
        let _ = write!(out, "\u{1b}P{piece}\u{1b}\\");
        rest = behind;
    }
    out
}

fn short(text: &Safe, most: usize) -> String {
    let mut clusters = text.as_str().graphemes(true);
    let mut out: String = clusters.by_ref().take(most).collect();
    if clusters.next().is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manners(vars: &[(&str, &str)]) -> Manners {
        Manners::detect(|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn words_are_wrapped_for_multiplexers() {
        let plain = manners(&[("TERM", "xterm-256color")]);
        assert_eq!(clipboard("hi", &plain), "\u{1b}]52;c;aGk=\u{7}");
        let tmux = manners(&[("TERM", "tmux-256color"), ("TMUX", "x")]);
        assert_eq!(clipboard("hi", &tmux), "\u{1b}]52;c;aGk=\u{7}\u{1b}Ptmux;\u{1b}\u{1b}]52;c;aGk=\u{7}\u{1b}\\");
        let screen = manners(&[("TERM", "screen")]);
        let wrapped = clipboard(&"x".repeat(1_000), &screen);
        let pieces: Vec<_> = wrapped.split("\u{1b}\\").filter(|piece| !piece.is_empty()).collect();
        assert!(pieces.len() > 4);
        assert!(pieces.iter().all(|piece| piece.starts_with("\u{1b}P") && piece.len() <= SCREEN_PIECE + 2));
    }

    #[test]
    fn a_notice_cannot_become_an_order() {
        let plain = manners(&[("TERM", "xterm-256color")]);
        let told = notice("4;3;50", "done;\u{7}\u{1b}]0;x\u{7}", &plain);
        assert_eq!(told, "\u{1b}]9;4,3,50: done,^G\u{7}\u{1b}]777;notify;4,3,50;done,^G\u{7}\u{7}");
        assert_eq!(notice("a", "b", &manners(&[("TERM", "linux")])), "\u{7}");
    }

    #[test]
    fn titles_are_short() {
        assert_eq!(title(&Safe::line("run 7")), "\u{1b}]2;run 7\u{7}");
        assert!(title(&Safe::line(&"x".repeat(4_000))).len() < 140);
    }
}
