//! Which characters may reach a screen, one by one.
//!
//! Not here: sequences and clusters. Invariant: what [`is_forbidden`] names is never written to a terminal.

use unicode_width::UnicodeWidthChar;

pub(super) const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Must this character never reach a terminal, whatever stands around it? Controls, direction marks, line
/// separators, and everything that is there without being seen.
pub const fn is_forbidden(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' // C0, DEL, C1
            | '\u{ad}' | '\u{34f}' // soft hyphen, grapheme joiner
            | '\u{61c}' // arabic letter mark
            | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' // hangul fillers
            | '\u{17b4}' | '\u{17b5}' // khmer inherent vowels
            | '\u{180b}'..='\u{180f}' // mongolian selectors and separator
            | '\u{200b}' | '\u{200c}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' // separators, embeddings, overrides
            | '\u{2060}'..='\u{206f}' // word joiner, invisible operators, isolates, deprecated
            | '\u{feff}' | '\u{fff0}'..='\u{fffb}' // byte order mark, annotations
            | '\u{fffe}' | '\u{ffff}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' // format controls of scripts
            | '\u{e0000}'..='\u{e0fff}' // tags, more variation selectors
    )
}

/// Chooses between the forms of the sign before it.
pub(super) const fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}

/// Changes the colour of the emoji before it.
pub(super) const fn is_skin_tone(c: char) -> bool {
    matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}

/// Is drawn over the sign before it.
pub(super) fn is_mark(c: char) -> bool {
    c != ZERO_WIDTH_JOINER && !is_selector(c) && UnicodeWidthChar::width(c) == Some(0)
}

/// May it stand without anything before it?
pub(super) fn stands_alone(c: char) -> bool {
    !is_forbidden(c) && c != ZERO_WIDTH_JOINER && !is_selector(c) && !is_mark(c)
}
