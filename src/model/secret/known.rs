//! The forms in which a known value turns up: as it is, escaped for JSON, percent-encoded, in base64, base32 and
//! hexadecimal digits. docs/secrets.md lists them, and what is not covered.
//!
//! Role: compare a place in a text with each form.
//! Not its role: what is done about it.
//!
//! Invariant: a comparison reads a bounded number of bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Found;

/// All forms of all values, by the byte they can begin with.
#[derive(Default, Clone)]
pub(super) struct Forms {
    forms: Vec<Form>,
    by_first: Vec<Vec<u16>>,
}

#[derive(Clone)]
struct Form {
    text: Vec<u8>,
    writing: Writing,
    /// Whose form it is.
    number: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Writing {
    /// Byte by byte, each as it is, as `%41`, or as a `\u0041`.
    Plain,
    /// In either alphabet, with line breaks in between.
    Base64,
    /// In either case, with line breaks in between.
    Base32,
    /// In either case, with line breaks, blanks or colons between bytes.
    Hex,
}

impl Writing {
    /// The other letter that means the same.
    const fn other(self, letter: u8) -> u8 {
        match (self, letter) {
            (Self::Base64, b'+') => b'-',
            (Self::Base64, b'/') => b'_',
            (Self::Base32 | Self::Hex, b'A'..=b'Z') => letter.to_ascii_lowercase(),
            (Self::Base32 | Self::Hex, b'a'..=b'z') => letter.to_ascii_uppercase(),
            (_, same) => same,
        }
    }
}

impl Forms {
    pub(super) fn add(&mut self, value: &str, number: usize) {
        self.by_first.resize(256, Vec::new());
        let once = escaped(value);
        let twice = escaped(&once);
        let mut texts = vec![value.to_owned(), once, twice];
        texts.dedup();
        for text in texts {
            self.push(Form { text: text.into_bytes(), writing: Writing::Plain, number });
        }
        for shift in 0..3 {
            let text = inside_base64(value.as_bytes(), shift);
            self.push(Form { text, writing: Writing::Base64, number });
        }
        for shift in 0..5 {
            let text = inside_base32(value.as_bytes(), shift);
            self.push(Form { text, writing: Writing::Base32, number });
        }
        let text = value.bytes().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
        self.push(Form { text, writing: Writing::Hex, number });
    }

    fn push(&mut self, form: Form) {
        let (Ok(index), Some(first)) = (u16::try_from(self.forms.len()), form.text.first().copied()) else { return };
        let starts: &[u8] = match form.writing {
            Writing::Plain => &[first, b'%', b'\\'],
            Writing::Base64 | Writing::Base32 | Writing::Hex => &[first, form.writing.other(first)],
        };
        for byte in starts {
            let bucket = &mut self.by_first[usize::from(*byte)];
            if bucket.last() != Some(&index) {
                bucket.push(index);
            }
        }
        self.forms.push(form);
    }

    pub(super) fn may_start(&self, byte: u8) -> bool {
        self.by_first.get(usize::from(byte)).is_some_and(|bucket| !bucket.is_empty())
    }

    /// The longest form at a place. With more text to come, what may become a longer one is unclear.
    pub(super) fn find(&self, text: &[u8], at: usize, more: bool) -> (Found, usize) {
        let (mut longest, mut number) = (0, 0);
        let bucket = self.by_first.get(usize::from(text[at])).map_or(&[][..], Vec::as_slice);
        for form in bucket.iter().filter_map(|index| self.forms.get(usize::from(*index))) {
            let found = match form.writing {
                Writing::Plain => plain(&text[at..], &form.text),
                writing => in_letters(&text[at..], &form.text, writing),
            };
            match found {
                Found::Secret(length) if length > longest => (longest, number) = (length, form.number),
                Found::Unclear if more => return (Found::Unclear, 0),
                Found::Secret(_) | Found::Unclear | Found::Nothing => {}
            }
        }
        (if longest > 0 { Found::Secret(longest) } else { Found::Nothing }, number)
    }
}

/// The inside of a JSON string.
fn escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// What of a value can be seen in base64 when `shift` bytes of something else come before it in its group.
fn inside_base64(value: &[u8], shift: usize) -> Vec<u8> {
    let padded = [&vec![0; shift][..], value].concat();
    let whole = STANDARD.encode(&padded).into_bytes();
    let (from, to) = ((shift * 8).div_ceil(6), padded.len() * 8 / 6);
    whole[from..to].to_vec()
}

/// The same for base32, whose groups are five bytes.
fn inside_base32(value: &[u8], shift: usize) -> Vec<u8> {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let padded = [&vec![0; shift][..], value].concat();
    let bit = |n: usize| padded[n / 8] >> (7 - n % 8) & 1;
    let letter = |n: usize| LETTERS[(n * 5..n * 5 + 5).fold(0, |bits, n| bits << 1 | usize::from(bit(n)))];
    ((shift * 8).div_ceil(5)..padded.len() * 8 / 5).map(letter).collect()
}

fn plain(text: &[u8], value: &[u8]) -> Found {
    let mut at = 0;
    for byte in value {
        match unit(&text[at..], *byte) {
            Found::Secret(length) => at += length,
            other => return other,
        }
    }
    Found::Secret(at)
}

/// How long the spelling of one byte is, if the text begins with one.
fn unit(text: &[u8], byte: u8) -> Found {
    match text.first() {
        None => Found::Unclear,
        Some(first) if *first == byte => Found::Secret(1),
        Some(b'%') => spelled(text, b"%", byte),
        Some(b'\\') => spelled(text, b"\\u00", byte),
        Some(_) => Found::Nothing,
    }
}

/// A prefix and two hexadecimal digits.
fn spelled(text: &[u8], prefix: &[u8], byte: u8) -> Found {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    for (n, expected) in prefix.iter().chain(&digits).enumerate() {
        match text.get(n) {
            None => return Found::Unclear,
            Some(there) if there.eq_ignore_ascii_case(expected) => {}
            Some(_) => return Found::Nothing,
        }
    }
    Found::Secret(prefix.len() + 2)
}

fn in_letters(text: &[u8], value: &[u8], writing: Writing) -> Found {
    let mut at = 0;
    for (n, letter) in value.iter().enumerate() {
        if n > 0 {
            let broken = line_break(&text[at..]);
            let apart = writing == Writing::Hex && n % 2 == 0 && matches!(text.get(at), Some(b' ' | b':'));
            at += broken.max(usize::from(apart));
        }
        match text.get(at) {
            None => return Found::Unclear,
            Some(there) if there == letter || *there == writing.other(*letter) => at += 1,
            // A line break that is cut in two.
            Some(b'\\' | b'\r') if n > 0 && text.len() - at < 4 => return Found::Unclear,
            Some(_) => return Found::Nothing,
        }
    }
    Found::Secret(at)
}

/// The length of one line break, plain or escaped.
fn line_break(text: &[u8]) -> usize {
    let breaks: [&[u8]; 4] = [b"\\r\\n", b"\r\n", b"\\n", b"\n"];
    breaks.iter().find(|one| text.starts_with(one)).map_or(0, |one| one.len())
}
