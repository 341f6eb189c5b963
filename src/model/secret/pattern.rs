//! What keys look like when nobody told us their value. Few shapes, and only unmistakable ones.
//!
//! Role: recognise a key at the beginning of a text.
//! Not its role: known values; deciding where to look.
//!
//! Invariant: no more than [`MAX_RUN`] bytes are read (a private key: [`MAX_PEM`]).

use super::Found;

/// A longer run of letters is taken in parts.
const MAX_RUN: usize = 1024;
/// The longest private key that is taken as one.
const MAX_PEM: usize = 16 * 1024;

struct Shape {
    name: &'static str,
    prefix: &'static [u8],
    /// Letters that must follow.
    least: usize,
    letters: fn(u8) -> bool,
    /// Words do not look like keys: a digit must be among the letters.
    digit: bool,
}

const SHAPES: &[Shape] = &[
    Shape { name: "anthropic-key", prefix: b"sk-ant-", least: 16, letters: dashed, digit: false },
    Shape { name: "api-key", prefix: b"sk-", least: 24, letters: dashed, digit: true },
    Shape { name: "aws-key-id", prefix: b"AKIA", least: 16, letters: upper, digit: false },
    Shape { name: "aws-key-id", prefix: b"ASIA", least: 16, letters: upper, digit: true },
    Shape { name: "github-token", prefix: b"ghp_", least: 30, letters: plain, digit: false },
    Shape { name: "github-token", prefix: b"gho_", least: 30, letters: plain, digit: false },
    Shape { name: "github-token", prefix: b"ghu_", least: 30, letters: plain, digit: false },
    Shape { name: "github-token", prefix: b"ghs_", least: 30, letters: plain, digit: false },
    Shape { name: "github-token", prefix: b"ghr_", least: 30, letters: plain, digit: false },
    Shape { name: "github-token", prefix: b"github_pat_", least: 22, letters: dashed, digit: false },
    Shape { name: "slack-token", prefix: b"xoxb-", least: 12, letters: dashed, digit: true },
    Shape { name: "slack-token", prefix: b"xoxa-", least: 12, letters: dashed, digit: true },
    Shape { name: "slack-token", prefix: b"xoxp-", least: 12, letters: dashed, digit: true },
    Shape { name: "google-key", prefix: b"AIza", least: 35, letters: dashed, digit: false },
    Shape { name: "bearer-token", prefix: b"Bearer ", least: 20, letters: token, digit: true },
    Shape { name: "bearer-token", prefix: b"bearer ", least: 20, letters: token, digit: true },
];

const PEM_BEGIN: &[u8] = b"-----BEGIN ";
const PEM_KEY: &[u8] = b"PRIVATE KEY-----";
const PEM_END: &[u8] = b"-----END ";
/// Between BEGIN and PRIVATE KEY stand a few words.
const MAX_PEM_WORDS: usize = 40;

fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn dashed(byte: u8) -> bool {
    plain(byte) || matches!(byte, b'-' | b'_')
}

fn token(byte: u8) -> bool {
    dashed(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=')
}

pub(super) const fn may_start(byte: u8) -> bool {
    matches!(byte, b's' | b'A' | b'g' | b'x' | b'B' | b'b' | b'-')
}

/// What the text begins with. `more`: the text goes on.
pub(super) fn find(text: &[u8], more: bool) -> (Found, &'static str) {
    let mut unclear = false;
    for shape in SHAPES {
        match one(text, shape, more) {
            Found::Secret(length) => return (Found::Secret(length), shape.name),
            Found::Unclear => unclear = true,
            Found::Nothing => {}
        }
    }
    match private_key(text, more) {
        Found::Nothing if unclear => (Found::Unclear, ""),
        found => (found, "private-key"),
    }
}

fn one(text: &[u8], shape: &Shape, more: bool) -> Found {
    let Some(rest) = text.strip_prefix(shape.prefix) else {
        return if more && shape.prefix.starts_with(text) { Found::Unclear } else { Found::Nothing };
    };
    let run = rest.iter().take(MAX_RUN).take_while(|byte| (shape.letters)(**byte)).count();
    if more && run == rest.len() && run < MAX_RUN {
        return Found::Unclear;
    }
    let digit = !shape.digit || rest[..run].iter().any(u8::is_ascii_digit);
    if run >= shape.least && digit { Found::Secret(shape.prefix.len() + run) } else { Found::Nothing }
}

/// From the BEGIN line to the END line, or as far as it looks like a key.
fn private_key(text: &[u8], more: bool) -> Found {
    let cut = if more { Found::Unclear } else { Found::Nothing };
    let Some(rest) = text.strip_prefix(PEM_BEGIN) else {
        return if PEM_BEGIN.starts_with(text) { cut } else { Found::Nothing };
    };
    let is_word = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    let words = rest.iter().take(MAX_PEM_WORDS).take_while(|byte| is_word(byte)).count();
    let Some(dashes) = rest[words..].first_chunk::<5>() else {
        return if rest[words..].iter().all(|byte| *byte == b'-') { cut } else { Found::Nothing };
    };
    if dashes != b"-----" || !rest[..words + 5].ends_with(PEM_KEY) {
        return Found::Nothing;
    }
    let body_at = PEM_BEGIN.len() + words + 5;
    let body = &text[body_at..text.len().min(body_at + MAX_PEM)];
    let mut length = 0;
    while let Some(byte) = body.get(length) {
        let here = &body[length..];
        if here.starts_with(PEM_END) {
            let line = here[PEM_END.len()..].iter().take(MAX_PEM_WORDS).take_while(|byte| is_word(byte)).count();
            let end = (length + PEM_END.len() + line + 5).min(body.len());
            if more && end == body.len() && !body.ends_with(b"-----") {
                return Found::Unclear;
            }
            return Found::Secret(body_at + end);
        }
        if !(token(*byte) || byte.is_ascii_whitespace() || matches!(byte, b'\\' | b':' | b',')) {
            return Found::Secret(body_at + length);
        }
        length += 1;
    }
    if more && length < MAX_PEM { Found::Unclear } else { Found::Secret(body_at + length) }
}
