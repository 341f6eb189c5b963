//! One journal line: how it is spelled, hashed and read back.
//!
//! Role: encode and parse the envelope, byte for byte. Not its role: the chain (see `scan`).
//!
//! ```text
//! {"v":1,"seq":41,"ts":"…","mono":918273,"boot":"…","iter":3,"type":"…","data":{…},"prev":"<64>","h":"<64>"}\n
//! h = SHA-256("nightloop.journal.v1\n" ‖ prev (32 raw bytes) ‖ bytes before `,"h":`)
//! ```
//!
//! Invariants: one record has one spelling. The parser takes exactly what the encoder writes
//! (field order, no spare white space, no leading zeros, one escape per character), so a
//! changed byte breaks either the spelling or the hash. A line holds no raw newline but its last byte.

use std::borrow::Cow;
use std::io::Write as _;

use serde_json::value::RawValue;

use super::record::{Draft, Record};
use crate::model::digest::Digest;

/// The line format this program writes and reads.
pub(super) const VERSION: u64 = 1;
/// Separates these hashes from every other use of SHA-256.
const DOMAIN: &[u8] = b"nightloop.journal.v1\n";
/// Bytes of `,"h":"<64>"}`, the part the hash does not cover.
const HASH_PART: usize = 6 + 64 + 2;
/// Bytes of `,"prev":"<64>"`.
const PREV_PART: usize = 9 + 64 + 1;

/// When an event was written.
pub(super) struct Stamp {
    pub ts: String,
    pub mono_ms: u64,
    pub boot: String,
}

/// Appends the line of `draft`, newline included, to `out` and returns the finished record.
pub(super) fn encode(out: &mut Vec<u8>, seq: u64, stamp: Stamp, draft: Draft, prev: Digest) -> Record {
    let Draft { iter, kind, data } = draft;
    let data = single_line(data);
    let start = out.len();
    // Writing to a Vec cannot fail, hence the ignored results.
    let _ = write!(out, "{{\"v\":{VERSION},\"seq\":{seq},\"ts\":");
    quote(out, &stamp.ts);
    let _ = write!(out, ",\"mono\":{},\"boot\":", stamp.mono_ms);
    quote(out, &stamp.boot);
    let _ = match iter {
        Some(iter) => write!(out, ",\"iter\":{iter},\"type\":"),
        None => write!(out, ",\"iter\":null,\"type\":"),
    };
    quote(out, &kind);
    let _ = write!(out, ",\"data\":{},\"prev\":\"{prev}\"", data.get());
    let hash = hash(&prev, &out[start..]);
    let _ = writeln!(out, ",\"h\":\"{hash}\"}}");
    Record { seq, ts: stamp.ts, mono_ms: stamp.mono_ms, boot: stamp.boot, iter, kind, data, prev, hash }
}

/// The hash of a line, from the part before `,"h":`.
pub(super) fn hash(prev: &Digest, body: &[u8]) -> Digest {
    Digest::of_parts(&[DOMAIN, prev.as_bytes(), body])
}

/// JSON may hold raw newlines, though only between tokens and never where one separates two
/// words. Dropping them changes no meaning and keeps the event on one line.
fn single_line(data: Box<RawValue>) -> Box<RawValue> {
    if !data.get().contains(['\n', '\r']) {
        return data;
    }
    let text: String = data.get().chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    RawValue::from_string(text).unwrap_or(data)
}

fn quote(out: &mut Vec<u8>, text: &str) {
    // Strings always turn into JSON, and writing to a Vec cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// A line that parsed. Its hash is not yet checked.
pub(super) struct Line<'a> {
    pub seq: u64,
    pub ts: Cow<'a, str>,
    pub mono_ms: u64,
    pub boot: Cow<'a, str>,
    pub iter: Option<u32>,
    pub kind: Cow<'a, str>,
    pub data: &'a RawValue,
    pub prev: Digest,
    pub hash: Digest,
    /// The bytes the hash covers.
    pub body: &'a [u8],
}

impl Line<'_> {
    pub(super) fn to_record(&self) -> Record {
        Record {
            seq: self.seq,
            ts: self.ts.as_ref().to_owned(),
            mono_ms: self.mono_ms,
            boot: self.boot.as_ref().to_owned(),
            iter: self.iter,
            kind: self.kind.as_ref().to_owned(),
            data: self.data.to_owned(),
            prev: self.prev,
            hash: self.hash,
        }
    }
}

/// Why bytes are no line of ours.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// Starts as our lines do, with a higher format number.
    Newer(u64),
    /// Not spelled as we spell it; says which part.
    Not(&'static str),
}

/// Reads one line, given without its newline.
pub(super) fn parse(bytes: &[u8]) -> Result<Line<'_>, Malformed> {
    let text = std::str::from_utf8(bytes).map_err(|_| Malformed::Not("the line is not UTF-8 text"))?;
    let mut rest = Rest(text);
    rest.literal("{\"v\":", "the line does not start with its format number")?;
    let version = rest.number("the format number is not a number")?;
    rest.literal(",\"seq\":", "no \"seq\" where it belongs")?;
    if version > VERSION {
        return Err(Malformed::Newer(version));
    }
    if version != VERSION {
        return Err(Malformed::Not("the format number is unknown"));
    }
    let seq = rest.number("\"seq\" is not a number")?;
    rest.literal(",\"ts\":", "no \"ts\" where it belongs")?;
    let ts = rest.string("\"ts\" is not a string")?;
    rest.literal(",\"mono\":", "no \"mono\" where it belongs")?;
    let mono_ms = rest.number("\"mono\" is not a number")?;
    rest.literal(",\"boot\":", "no \"boot\" where it belongs")?;
    let boot = rest.string("\"boot\" is not a string")?;
    rest.literal(",\"iter\":", "no \"iter\" where it belongs")?;
    let iter = rest.iteration()?;
    rest.literal(",\"type\":", "no \"type\" where it belongs")?;
    let kind = rest.string("\"type\" is not a string")?;
    rest.literal(",\"data\":", "no \"data\" where it belongs")?;

    // The end of a line has a fixed length, so `data` is found without parsing it first.
    let short = Malformed::Not("the line is cut short");
    let data_end = rest.0.len().checked_sub(HASH_PART + PREV_PART).ok_or(short)?;
    let Some((data, end)) = rest.0.split_at_checked(data_end) else {
        return Err(Malformed::Not("the line does not end in \"prev\" and \"h\""));
    };
    let mut end = Rest(end);
    end.literal(",\"prev\":\"", "no \"prev\" where it belongs")?;
    let prev = end.digest("\"prev\" is not a digest")?;
    end.literal("\",\"h\":\"", "no \"h\" where it belongs")?;
    let hash = end.digest("\"h\" is not a digest")?;
    end.literal("\"}", "the line does not end after \"h\"")?;

    let not_json = Malformed::Not("\"data\" is not JSON");
    let Ok(raw) = serde_json::from_str::<&RawValue>(data) else { return Err(not_json) };
    if raw.get().len() != data.len() {
        return Err(Malformed::Not("spare white space around \"data\""));
    }
    let body = &bytes[..bytes.len() - HASH_PART];
    Ok(Line { seq, ts, mono_ms, boot, iter, kind, data: raw, prev, hash, body })
}

/// What is left to read of a line.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn literal(&mut self, expected: &str, or: &'static str) -> Result<(), Malformed> {
        self.0 = self.0.strip_prefix(expected).ok_or(Malformed::Not(or))?;
        Ok(())
    }

    /// A whole number without sign or leading zeros.
    fn number(&mut self, or: &'static str) -> Result<u64, Malformed> {
        let bytes = self.0.as_bytes();
        let mut value = 0u64;
        let mut length = 0;
        while let Some(digit) = bytes.get(length).filter(|byte| byte.is_ascii_digit()) {
            let next = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0')));
            value = next.ok_or(Malformed::Not(or))?;
            length += 1;
        }
        if length == 0 || (length > 1 && bytes[0] == b'0') {
            return Err(Malformed::Not(or));
        }
        self.0 = &self.0[length..];
        Ok(value)
    }

    fn iteration(&mut self) -> Result<Option<u32>, Malformed> {
        let or = "\"iter\" is neither null nor a number";
        if let Some(rest) = self.0.strip_prefix("null") {
            self.0 = rest;
            return Ok(None);
        }
        let number = self.number(or)?;
        u32::try_from(number).map(Some).map_err(|_| Malformed::Not(or))
    }

    /// A JSON string in the one spelling the encoder gives it.
    fn string(&mut self, or: &'static str) -> Result<Cow<'a, str>, Malformed> {
        let bytes = self.0.as_bytes();
        if bytes.first() != Some(&b'"') {
            return Err(Malformed::Not(or));
        }
        let mut at = 1;
        let mut escaped = false;
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    at += 2;
                }
                Some(0..=0x1f) | None => return Err(Malformed::Not(or)),
                Some(_) => at += 1,
            }
        }
        // `at` is the index of an ASCII quote, so both cuts are at character boundaries.
        let quoted = &self.0[..=at];
        self.0 = &self.0[at + 1..];
        if !escaped {
            return Ok(Cow::Borrowed(&quoted[1..at]));
        }
        let text: String = serde_json::from_str(quoted).map_err(|_| Malformed::Not(or))?;
        let mut again = Vec::with_capacity(quoted.len());
        quote(&mut again, &text);
        if again != quoted.as_bytes() {
            return Err(Malformed::Not(or));
        }
        Ok(Cow::Owned(text))
    }

    fn digest(&mut self, or: &'static str) -> Result<Digest, Malformed> {
        let (digits, rest) = self.0.split_at_checked(64).ok_or(Malformed::Not(or))?;
        self.0 = rest;
        // Two digests per line made the general parser a sixth of a read. This one looks each
        // digit up and asks once, at the end, whether all were right.
        let mut bytes = [0u8; 32];
        let mut seen = 0u8;
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            let (high, low) = (NIBBLES[usize::from(pair[0])], NIBBLES[usize::from(pair[1])]);
            seen |= high | low;
            *byte = high << 4 | low & 15;
        }
        if seen > 15 { Err(Malformed::Not(or)) } else { Ok(Digest::from_bytes(bytes)) }
    }
}

/// The value of each lower-case hex digit; more than 15 for any other byte.
static NIBBLES: [u8; 256] = {
    let mut table = [0xff; 256];
    let mut value = 0u8;
    while value < 16 {
        let digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
        table[digit as usize] = value;
        value += 1;
    }
    table
};
