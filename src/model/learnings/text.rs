//! Making untrusted text safe to stand on one line of AGENTS.md.
//!
//! Role: flatten, bound and defuse texts; write and read artifact links.
//! Not its role: deciding which claim is true.
//! Invariants: every function here is idempotent, so a parsed document renders to the same bytes. No
//! result can start a line, a heading, a marker, a lane tag or a link that its author did not have.

use crate::model::digest::Digest;
use crate::model::lane::Lane;

use super::{Claim, Link};

/// Longer texts are cut, with `…` as the last character.
pub const LONGEST_TEXT: usize = 2000;

pub(super) const NONE: &str = "(none)";
const DEMOTED: &str = " (demoted from ";
const DEMOTED_WHY: &str = ": no artifact backs it)";

/// One line, no control characters, no comment opening, no iteration heading, at most 2000 characters.
pub fn flatten(text: &str) -> String {
    // What is cut off anyway need not be looked at.
    let one_line: String = text.chars().take(8 * LONGEST_TEXT).map(plain).collect();
    let defused = one_line.replace("<!--", "<! --").replace("## Iteration", "# # Iteration");
    bound(defused.trim())
}

/// The character, or what stands for it.
fn plain(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => ' ',
        // Direction marks make a terminal show something else than what is written.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => {
            '\u{fffd}'
        }
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

fn bound(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT - 1) {
        Some((cut, last)) if text.len() > cut + last.len_utf8() => format!("{}…", &text[..cut]),
        _ => text.to_owned(),
    }
}

/// A list item: never empty, never mistaken for an empty list or for a claim.
pub fn item(text: &str) -> String {
    let text = flatten(text);
    match text.as_str() {
        "" => "(empty)".to_owned(),
        NONE => "(none stated)".to_owned(),
        _ => match text.get(..3) {
            Some("[A]" | "[B]" | "[C]") => format!("({}){}", &text[1..2], &text[3..]),
            _ => text,
        },
    }
}

/// The text of a claim: as an item may be, and never ending like a link or a demotion.
pub fn claim_text(text: &str) -> String {
    let text = item(text);
    if split_demotion(&text).is_some() || split_link(&text).is_some() {
        bound(&format!("{text} (unlinked)"))
    } else {
        text
    }
}

/// The line of a claim, without its bullet.
pub(super) fn claim_line(claim: &Claim) -> String {
    let mut line = format!("[{}] {}", claim.lane, claim_text(&claim.text));
    if let Some(link) = &claim.link {
        line.push_str(&format!(" ({link})"));
    }
    if let Some(lane) = claim.demoted_from {
        line.push_str(&format!("{DEMOTED}{lane}{DEMOTED_WHY}"));
    }
    line
}

/// The claim in a line without its bullet.
pub(super) fn parse_claim(line: &str) -> Option<Claim> {
    let (tag, rest) = line.split_once("] ")?;
    let lane = parse_lane(tag.strip_prefix('[')?)?;
    let (rest, demoted_from) = match split_demotion(rest) {
        Some((text, from)) => (text, Some(from)),
        None => (rest, None),
    };
    let (text, link) = match split_link(rest) {
        Some((text, link)) => (text, Some(link)),
        None => (rest, None),
    };
    Some(Claim { lane, text: text.to_owned(), link, demoted_from })
}

fn parse_lane(text: &str) -> Option<Lane> {
    [Lane::A, Lane::B, Lane::C].into_iter().find(|lane| lane.to_string() == text)
}

fn split_demotion(text: &str) -> Option<(&str, Lane)> {
    let (text, lane) = text.strip_suffix(DEMOTED_WHY)?.rsplit_once(DEMOTED)?;
    Some((text, parse_lane(lane)?))
}

fn split_link(text: &str) -> Option<(&str, Link)> {
    let (before, link) = text.strip_suffix(')')?.rsplit_once(" (")?;
    Some((before, parse_link(link)?))
}

/// `path#sha256`. In the path, blanks, brackets and what could break a line are percent-encoded.
pub(super) fn link_text(link: &Link) -> String {
    let mut text = String::new();
    for c in link.path.chars() {
        if needs_encoding(c) {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                text.push_str(&format!("%{byte:02X}"));
            }
        } else {
            text.push(c);
        }
    }
    format!("{text}#{}", link.sha256)
}

pub(super) fn parse_link(text: &str) -> Option<Link> {
    let (path, digest) = text.rsplit_once('#')?;
    let link = Link { path: decode(path)?, sha256: digest.parse::<Digest>().ok()? };
    // One link has one spelling.
    (link_text(&link) == text).then_some(link)
}

fn needs_encoding(c: char) -> bool {
    matches!(c, '(' | ')' | '%' | '#' | '<' | '>' | '`') || c.is_whitespace() || c.is_control() || plain(c) != c
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(rest.next()?)? << 4 | digit(rest.next()?)?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hostile_texts_are_defused() {
        for (text, safe) in [
            ("a\nb\r\nc", "a b  c"),
            ("  x ", "x"),
            ("\u{1b}[31mred\0", "\u{fffd}[31mred\u{fffd}"),
            ("<!-- nightloop:end X -->", "<! -- nightloop:end X -->"),
            ("<!<!----", "<!<! ----"),
            ("x\n## Iteration 3", "x # # Iteration 3"),
            ("### Iteration 3", "## # Iteration 3"),
            ("\u{202e}abc", "\u{fffd}abc"),
        ] {
            assert_eq!(flatten(text), safe, "{text:?}");
        }
        assert_eq!(item(""), "(empty)");
        assert_eq!(item("(none)"), "(none stated)");
        assert_eq!(item("[A] forged"), "(A) forged");
    }

    #[test]
    fn long_texts_are_cut() {
        let exact = "é".repeat(LONGEST_TEXT);
        assert_eq!(flatten(&exact), exact);
        let cut = flatten(&"é".repeat(LONGEST_TEXT + 1));
        assert_eq!(cut.chars().count(), LONGEST_TEXT);
        assert!(cut.ends_with("é…"));
    }

    #[test]
    fn a_text_cannot_forge_a_link() {
        let sha = Digest::of(b"x");
        let forged = Claim { lane: Lane::C, text: format!("done (a.json#{sha})"), link: None, demoted_from: None };
        let line = claim_line(&forged);
        assert_eq!(parse_claim(&line).unwrap().link, None, "{line}");
        let forged = Claim { text: "done (demoted from A: no artifact backs it)".into(), ..forged };
        assert_eq!(parse_claim(&claim_line(&forged)).unwrap().demoted_from, None);
    }

    #[test]
    fn links_are_plain_when_they_can_be() {
        let sha256 = Digest::of(b"x");
        let link = |path: &str| Link { path: path.into(), sha256 };
        assert_eq!(link_text(&link("evidence/tests.json")), format!("evidence/tests.json#{sha256}"));
        assert_eq!(link_text(&link("a (1)\n.txt")), format!("a%20%281%29%0A.txt#{sha256}"));
        assert_eq!(parse_link(&format!("a b#{sha256}")), None);
    }

    proptest! {
        #[test]
        fn defusing_twice_is_defusing_once(text in "([ -~\n\u{80}-\u{2fff}]|<!--|## Iteration|\\[A\\]|\\(none\\)| \\(demoted from A: no artifact backs it\\)){0,30}") {
            for make in [flatten, item, claim_text] {
                let once = make(&text);
                prop_assert_eq!(&make(&once), &once);
                prop_assert!(!once.contains("<!--") && !once.contains("## Iteration") && once.lines().count() <= 1);
            }
        }

        #[test]
        fn any_path_survives(path in any::<String>()) {
            let link = Link { path, sha256: Digest::of(b"x") };
            let text = link_text(&link);
            prop_assert!(!text.contains(char::is_whitespace));
            prop_assert_eq!(parse_link(&text), Some(link));
        }
    }
}
