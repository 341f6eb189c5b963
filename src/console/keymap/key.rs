//! One key as people write it (`ctrl-p`, `G`, `space`) and as a terminal sends it.
//!
//! Role: reading, writing and comparing keys. Not its role: what a key does.
//! Invariant: two keys that a terminal cannot tell apart for us are equal, and what is shown reads back.

use std::fmt;

use crokey::{KeyCombination, OneToThree};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What may be written for a key.
pub const ALLOWED: &str = "one character (`p`, `G`, `?`), or enter, esc, space, tab, backtab, up, down, left, right, \
                           home, end, pageup, pagedown, backspace, delete, insert, f1 to f24, each with ctrl-, alt- or \
                           shift- before it if you like (`ctrl-p`)";

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

impl Key {
    pub fn parse(text: &str) -> Option<Self> {
        let mut chars = text.chars();
        if let (Some(only), None) = (chars.next(), chars.next()) {
            return (!only.is_control() && !only.is_whitespace())
                .then(|| Self::settled(KeyCode::Char(only), KeyModifiers::NONE));
        }
        let combination = crokey::parse(text).ok()?;
        match combination.codes {
            OneToThree::One(code) => Some(Self::settled(code, combination.modifiers)),
            // Several keys at once are beyond what a terminal reports.
            OneToThree::Two(..) | OneToThree::Three(..) => None,
        }
    }

    /// Terminals differ in whether they report shift with a character that needs it. The character itself
    /// says it, so only letters carry it.
    fn settled(code: KeyCode, modifiers: KeyModifiers) -> Self {
        let combination = KeyCombination::one_key(code, modifiers).normalized();
        let (mut code, mut modifiers) = (*combination.codes.first(), combination.modifiers);
        match code {
            KeyCode::Char(c) if !c.is_ascii_alphabetic() => modifiers.remove(KeyModifiers::SHIFT),
            KeyCode::Tab if modifiers.contains(KeyModifiers::SHIFT) => code = KeyCode::BackTab,
            KeyCode::BackTab => modifiers.insert(KeyModifiers::SHIFT),
            _ => {}
        }
        Self { code, modifiers }
    }

    /// Why this key may never arrive, or mean something else to the terminal.
    pub fn caution(self) -> Option<&'static str> {
        if self.modifiers != KeyModifiers::CONTROL {
            return None;
        }
        match self.code {
            KeyCode::Char('b') => Some("ctrl-b is the prefix of tmux: inside tmux it has to be pressed twice"),
            KeyCode::Char('i') => Some("most terminals send tab for ctrl-i"),
            KeyCode::Char('m') => Some("most terminals send enter for ctrl-m"),
            KeyCode::Char('[') => Some("most terminals send esc for ctrl-["),
            KeyCode::Char('s' | 'q') => Some("some terminals reserve ctrl-s and ctrl-q for flow control"),
            _ => None,
        }
    }
}

impl From<KeyEvent> for Key {
    fn from(event: KeyEvent) -> Self {
        Self::settled(event.code, event.modifiers)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, name) in
            [(KeyModifiers::CONTROL, "ctrl-"), (KeyModifiers::ALT, "alt-"), (KeyModifiers::SUPER, "cmd-")]
        {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        let plain = self.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        let shift = self.modifiers.contains(KeyModifiers::SHIFT);
        match self.code {
            KeyCode::Char(' ') => f.write_str("space"),
            // A capital says shift by itself, but not after another modifier.
            KeyCode::Char(c) if shift && !plain => write!(f, "shift-{}", c.to_ascii_lowercase()),
            KeyCode::Char(c) => write!(f, "{c}"),
            KeyCode::BackTab => f.write_str("backtab"),
            code => {
                if shift {
                    f.write_str("shift-")?;
                }
                match code {
                    KeyCode::F(number) => write!(f, "f{number}"),
                    code => f.write_str(&format!("{code:?}").to_ascii_lowercase()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(code: KeyCode, modifiers: KeyModifiers) -> Key {
        Key::from(KeyEvent::new(code, modifiers))
    }

    #[test]
    fn keys_read_as_they_are_shown() {
        for text in [
            "p",
            "G",
            "?",
            ":",
            "0",
            "-",
            "+",
            "[",
            "/",
            "ctrl-p",
            "backtab",
            "f1",
            "space",
            "enter",
            "esc",
            "pageup",
            "alt-shift-x",
            "shift-up",
            "delete",
            "ö",
        ] {
            assert_eq!(Key::parse(text).map(|key| key.to_string()).as_deref(), Some(text));
        }
        for text in ["", " ", "a-b", "ctrl-", "hyper-x", "entr", "f25", "\u{1b}", "ctrl-alt"] {
            assert_eq!(Key::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_terminals_send_is_what_people_mean() {
        assert_eq!(event(KeyCode::Char('G'), KeyModifiers::SHIFT), Key::parse("G").unwrap());
        assert_eq!(event(KeyCode::Char('G'), KeyModifiers::NONE), Key::parse("shift-g").unwrap());
        assert_ne!(event(KeyCode::Char('g'), KeyModifiers::NONE), Key::parse("G").unwrap());
        assert_eq!(event(KeyCode::Char('?'), KeyModifiers::SHIFT), Key::parse("?").unwrap());
        assert_eq!(event(KeyCode::BackTab, KeyModifiers::SHIFT), Key::parse("backtab").unwrap());
        assert_eq!(event(KeyCode::BackTab, KeyModifiers::NONE), Key::parse("shift-tab").unwrap());
        assert_eq!(event(KeyCode::Char('p'), KeyModifiers::CONTROL), Key::parse("ctrl-P").unwrap());
    }

    proptest! {
        #[test]
        fn any_text_is_a_key_or_not(text in "\\PC{0,12}") {
            if let Some(key) = Key::parse(&text) {
                prop_assert_eq!(Key::parse(&key.to_string()), Some(key), "{}", key);
            }
        }
    }
}
