//! What was said to a terminal, word by word, and whether all of it is ours.

use std::collections::BTreeSet;

/// Everything that was written, taken apart.
#[derive(Debug, Default)]
pub struct Spoken {
    /// Escape sequences that no part of the console has.
    pub foreign: BTreeSet<String>,
    /// Control characters outside of sequences, by how often.
    pub controls: Vec<u8>,
    /// Characters that show nothing or act, though they came as text.
    pub hidden: BTreeSet<String>,
    pub bells: usize,
    pub notices: usize,
    pub titles: Vec<String>,
    pub clipboard: usize,
    /// The character before.
    pub last: Option<char>,
    /// The parameters of every SGR.
    pub colours: BTreeSet<String>,
}

/// Private modes that the console turns on and off.
const MODES: &[u16] = &[25, 1000, 1002, 1004, 1006, 1049, 2004, 2026];

impl vte::Perform for Spoken {
    fn print(&mut self, c: char) {
        let acts =
            matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        // A joiner belongs between the parts of an emoji (the oldest of which is ©), behind a mark at most.
        let joins = c == '\u{200d}' && self.last.is_some_and(|last| last >= '\u{a9}');
        if c.is_control() || (acts && !joins) {
            self.hidden.insert(format!("{c:?} after {:?}", self.last));
        }
        self.last = Some(c);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            0x07 => self.bells += 1,
            // Lines of the plain terminal, before and after the console.
            b'\r' | b'\n' => {}
            other => self.controls.push(other),
        }
    }

    fn hook(&mut self, _: &vte::Params, _: &[u8], _: bool, action: char) {
        self.foreign.insert(format!("DCS {action}"));
    }

    fn osc_dispatch(&mut self, parameters: &[&[u8]], _: bool) {
        let text = parameters.iter().map(|part| String::from_utf8_lossy(part)).collect::<Vec<_>>().join(";");
        match parameters.first().copied().unwrap_or_default() {
            b"2" => self.titles.push(text.trim_start_matches("2;").to_owned()),
            b"9" => self.notices += 1,
            b"777" if parameters.get(1) == Some(&&b"notify"[..]) => {}
            b"52" => self.clipboard += 1,
            _ => {
                self.foreign.insert(format!("OSC {text}"));
            }
        }
    }

    fn csi_dispatch(&mut self, parameters: &vte::Params, intermediates: &[u8], ignore: bool, action: char) {
        let numbers: Vec<u16> = parameters.iter().flatten().copied().collect();
        let ours = match (intermediates, action) {
            (b"?", 'h' | 'l') => numbers.iter().all(|mode| MODES.contains(mode)),
            (b"", 'm') => {
                self.colours.insert(numbers.iter().map(u16::to_string).collect::<Vec<_>>().join(";"));
                true
            }
            (b"", 'H') => true,
            (b"", 'J') => matches!(numbers.as_slice(), [0..=2]),
            (b"", 'K') => matches!(numbers.as_slice(), [0 | 2]),
            (b"", 't') => matches!(numbers.as_slice(), [22 | 23, 2]),
            _ => false,
        };
        if !ours || ignore {
            let lead = String::from_utf8_lossy(intermediates).into_owned();
            self.foreign.insert(format!("CSI {lead} {numbers:?} {action}"));
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _: bool, byte: u8) {
        self.foreign.insert(format!("ESC {} {}", String::from_utf8_lossy(intermediates), char::from(byte)));
    }
}

pub fn spoken(bytes: &[u8]) -> Spoken {
    let mut spoken = Spoken::default();
    vte::Parser::new().advance(&mut spoken, bytes);
    spoken
}

/// What stands between the brackets of frames.
pub fn frames(bytes: &[u8]) -> Vec<u8> {
    let (begin, end) = (&b"\x1b[?2026h"[..], &b"\x1b[?2026l"[..]);
    let mut inside = Vec::new();
    let mut rest = bytes;
    while let Some(start) = find(rest, begin) {
        rest = &rest[start + begin.len()..];
        let stop = find(rest, end).unwrap_or(rest.len());
        inside.extend_from_slice(&rest[..stop]);
        rest = &rest[stop..];
    }
    inside
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
