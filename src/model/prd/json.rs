//! A JSON reader that remembers where every value stands.
//!
//! Role: read strict JSON (RFC 8259) into a tree whose nodes carry byte spans of the source text.
//! Not its role: what the values mean; writing JSON; numbers as values (their spelling is kept in the text).
//! Invariants: every span lies inside the text, on character boundaries; keys of one object differ; nesting and
//! the number of values are bounded, so neither stack nor memory can be used up by a hostile file.

use std::collections::HashMap;

use super::error::quote;

/// Lists and objects inside each other, at most.
pub const MOST_DEPTH: usize = 64;
/// Values in one file, at most.
pub const MOST_VALUES: usize = 500_000;

/// A stretch of the source text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// The stretch of `text`; nothing where the span is of another text.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub span: Span,
    pub kind: JsonKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonKind {
    Null,
    Flag(bool),
    /// The digits stand at the span.
    Number,
    /// Without quotes and escapes.
    Text(String),
    List(Vec<Node>),
    Object(Vec<Member>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub key: String,
    /// With its quotes.
    pub key_span: Span,
    pub value: Node,
}

impl Node {
    /// What the value is, for messages.
    pub const fn noun(&self) -> &'static str {
        match self.kind {
            JsonKind::Null => "null",
            JsonKind::Flag(_) => "true or false",
            JsonKind::Number => "a number",
            JsonKind::Text(_) => "text",
            JsonKind::List(_) => "a list",
            JsonKind::Object(_) => "an object",
        }
    }

    pub fn text(&self) -> Option<&str> {
        if let JsonKind::Text(text) = &self.kind { Some(text) } else { None }
    }

    pub fn list(&self) -> Option<&[Node]> {
        if let JsonKind::List(nodes) = &self.kind { Some(nodes) } else { None }
    }

    pub fn members(&self) -> Option<&[Member]> {
        if let JsonKind::Object(members) = &self.kind { Some(members) } else { None }
    }
}

/// What is not JSON, and at which byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub at: usize,
    pub what: Syntax,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Syntax {
    #[error("there is nothing in the file")]
    Nothing,
    #[error("the file ends in the middle")]
    Cut,
    #[error("a value should stand here")]
    NoValue,
    #[error("a key in double quotes should stand here")]
    NoKey,
    #[error("a `:` should stand here, between key and value")]
    NoColon,
    #[error("a `,` or the end of the {0} should stand here")]
    NoComma(&'static str),
    #[error("a `,` with nothing behind it")]
    SpareComma,
    #[error("a comment; JSON has none")]
    Comment,
    #[error("a number that JSON does not know")]
    BadNumber,
    #[error("a text that is not closed on its line, or holds an unescaped control character")]
    OpenText,
    #[error("a text with an escape that JSON does not know")]
    BadEscape,
    #[error("something behind the end of the document")]
    Behind,
    #[error("lists and objects inside each other, deeper than {MOST_DEPTH}")]
    TooDeep,
    #[error("more than {MOST_VALUES} values")]
    TooMany,
    #[error("the key `{}` is written twice in one object (first in line {first_line})", quote(.key))]
    TwiceKey { key: String, first_line: usize },
}

/// Reads the whole text as one value. A byte order mark before it is passed over.
pub fn read(text: &str) -> Result<Node, Fault> {
    let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut reader = Reader { text, bytes: text.as_bytes(), at, values: 0 };
    reader.skip_blanks();
    if reader.peek().is_none() {
        return Err(reader.fault(Syntax::Nothing));
    }
    let node = reader.value(0)?;
    reader.skip_blanks();
    match reader.peek() {
        None => Ok(node),
        Some(b'/') => Err(reader.fault(Syntax::Comment)),
        Some(_) => Err(reader.fault(Syntax::Behind)),
    }
}

/// The blanks that end right before `at`.
pub fn blanks_before(text: &str, at: usize) -> &str {
    let head = text.get(..at).unwrap_or_default();
    head.get(head.trim_end_matches(is_blank).len()..).unwrap_or_default()
}

const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    values: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    const fn fault(&self, what: Syntax) -> Fault {
        Fault { at: self.at, what }
    }

    /// The end of the file explains more than what was expected there.
    fn unexpected(&self, what: Syntax) -> Fault {
        match self.peek() {
            None => self.fault(Syntax::Cut),
            Some(b'/') => self.fault(Syntax::Comment),
            Some(_) => self.fault(what),
        }
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(self.fault(Syntax::TooMany));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => JsonKind::Text(self.quoted()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { span: Span { start, end: self.at }, kind })
    }

    fn word(&mut self) -> Result<JsonKind, Fault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        for (word, kind) in [("true", JsonKind::Flag(true)), ("false", JsonKind::Flag(false)), ("null", JsonKind::Null)]
        {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(kind);
            }
        }
        Err(self.unexpected(Syntax::NoValue))
    }

    fn number(&mut self) -> Result<JsonKind, Fault> {
        let start = self.at;
        let bad = Fault { at: start, what: Syntax::BadNumber };
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        if whole == 0 || (leading_zero && whole > 1) {
            return Err(bad);
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(bad);
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(bad);
            }
        }
        Ok(JsonKind::Number)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn quoted(&mut self) -> Result<String, Fault> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                // Whatever is escaped, it cannot be the closing quote; the escape itself is judged below.
                Some(b'\\') => self.at += 2,
                Some(0..=0x1f) => return Err(self.fault(Syntax::OpenText)),
                Some(_) => self.at += 1,
                None => return Err(Fault { at: start, what: Syntax::OpenText }),
            }
        }
        self.at += 1;
        let bad = || Fault { at: start, what: Syntax::BadEscape };
        let raw = self.text.get(start..self.at).ok_or_else(bad)?;
        serde_json::from_str(raw).map_err(|_| bad())
    }

    fn list(&mut self, depth: usize) -> Result<JsonKind, Fault> {
        let mut nodes = Vec::new();
        self.enter(depth)?;
        if self.leaves(b']') {
            return Ok(JsonKind::List(nodes));
        }
        loop {
            nodes.push(self.value(depth + 1)?);
            if self.ends(b']', "list")? {
                return Ok(JsonKind::List(nodes));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<JsonKind, Fault> {
        let mut members: Vec<Member> = Vec::new();
        // Readers disagree about which of two equal keys counts, so a file with such a pair says two things.
        let mut known: HashMap<String, usize> = HashMap::new();
        self.enter(depth)?;
        if self.leaves(b'}') {
            return Ok(JsonKind::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected(Syntax::NoKey));
            }
            let start = self.at;
            let key = self.quoted()?;
            let key_span = Span { start, end: self.at };
            if let Some(first) = known.insert(key.clone(), start) {
                let first_line = place(self.text, first).0;
                return Err(Fault { at: start, what: Syntax::TwiceKey { key, first_line } });
            }
            self.skip_blanks();
            if self.peek() != Some(b':') {
                return Err(self.unexpected(Syntax::NoColon));
            }
            self.at += 1;
            self.skip_blanks();
            let value = self.value(depth + 1)?;
            members.push(Member { key, key_span, value });
            if self.ends(b'}', "object")? {
                return Ok(JsonKind::Object(members));
            }
        }
    }

    fn enter(&mut self, depth: usize) -> Result<(), Fault> {
        if depth >= MOST_DEPTH {
            return Err(self.fault(Syntax::TooDeep));
        }
        self.at += 1;
        self.skip_blanks();
        Ok(())
    }

    fn leaves(&mut self, close: u8) -> bool {
        let leaves = self.peek() == Some(close);
        self.at += usize::from(leaves);
        leaves
    }

    /// Behind an element: true at the end, false when another one follows.
    fn ends(&mut self, close: u8, what: &'static str) -> Result<bool, Fault> {
        self.skip_blanks();
        if self.leaves(close) {
            return Ok(true);
        }
        if self.peek() != Some(b',') {
            return Err(self.unexpected(Syntax::NoComma(what)));
        }
        let comma = self.at;
        self.at += 1;
        self.skip_blanks();
        if self.peek() == Some(close) {
            return Err(Fault { at: comma, what: Syntax::SpareComma });
        }
        Ok(false)
    }
}

/// Line and column of a byte, both from one; columns count characters.
pub fn place(text: &str, at: usize) -> (usize, usize) {
    let head = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    let head = String::from_utf8_lossy(head);
    let head = head.strip_prefix('\u{feff}').unwrap_or(&head);
    let line_start = head.rfind('\n').map_or(0, |newline| newline + 1);
    let line = head.matches('\n').count() + 1;
    (line, head[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn fault(text: &str) -> (Syntax, (usize, usize)) {
        let fault = read(text).unwrap_err();
        (fault.what, place(text, fault.at))
    }

    #[test]
    fn spans_are_the_values() {
        let text = "\u{feff} {\"a\" : [1.50, \"\\u00e9\\\"\", {} ],\r\n\t\"b\":null} ";
        let root = read(text).unwrap();
        let members = root.members().unwrap();
        assert_eq!(members[0].key_span.of(text), "\"a\"");
        let list = members[0].value.list().unwrap();
        let slices: Vec<&str> = list.iter().map(|node| node.span.of(text)).collect();
        assert_eq!(slices, ["1.50", "\"\\u00e9\\\"\"", "{}"]);
        assert_eq!(list[1].text(), Some("é\""));
        assert_eq!(members[1].value.span.of(text), "null");
        assert_eq!(blanks_before(text, members[1].key_span.start), "\r\n\t");
        assert_eq!(root.span.of(text).len(), text.len() - 5);
    }

    #[test]
    fn faults_name_their_place() {
        for (text, what, at) in [
            ("", Syntax::Nothing, (1, 1)),
            ("\u{feff} \n", Syntax::Nothing, (2, 1)),
            ("{\n  \"a\": ", Syntax::Cut, (2, 8)),
            ("[1,\n é]", Syntax::NoValue, (2, 2)),
            ("{a: 1}", Syntax::NoKey, (1, 2)),
            ("{\"a\" 1}", Syntax::NoColon, (1, 6)),
            ("[1 2]", Syntax::NoComma("list"), (1, 4)),
            ("{\"é\": 1 \"b\": 2}", Syntax::NoComma("object"), (1, 9)),
            ("[1,]", Syntax::SpareComma, (1, 3)),
            ("[1, // one\n2]", Syntax::Comment, (1, 5)),
            ("[] // done", Syntax::Comment, (1, 4)),
            ("[01]", Syntax::BadNumber, (1, 2)),
            ("[-]", Syntax::BadNumber, (1, 2)),
            ("[1.]", Syntax::BadNumber, (1, 2)),
            ("[1e]", Syntax::BadNumber, (1, 2)),
            ("[\"a\n\"]", Syntax::OpenText, (1, 4)),
            ("[\"a", Syntax::OpenText, (1, 2)),
            ("[\"a\\", Syntax::OpenText, (1, 2)),
            ("[\"\\x\"]", Syntax::BadEscape, (1, 2)),
            ("[\"\\ud800\"]", Syntax::BadEscape, (1, 2)),
            ("{}{}", Syntax::Behind, (1, 3)),
            ("nul", Syntax::NoValue, (1, 1)),
        ] {
            assert_eq!(fault(text), (what, at), "{text:?}");
        }
        let twice = Syntax::TwiceKey { key: "a".into(), first_line: 2 };
        assert_eq!(fault("{\n\"a\": 1,\n\"\\u0061\": 2}"), (twice, (3, 1)));
    }

    #[test]
    fn depth_and_count_are_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(read(&nested(MOST_DEPTH)).is_ok());
        assert_eq!(read(&nested(MOST_DEPTH + 1)).unwrap_err().what, Syntax::TooDeep);
        assert_eq!(read(&"[".repeat(1_000_000)).unwrap_err().what, Syntax::TooDeep);
        let wide = |count: usize| format!("[{}0]", "0,".repeat(count - 2));
        assert!(read(&wide(MOST_VALUES)).is_ok());
        assert_eq!(read(&wide(MOST_VALUES + 1)).unwrap_err().what, Syntax::TooMany);
    }

    proptest! {
        /// Another reader is the judge of what is JSON.
        #[test]
        fn agrees_with_serde_json(text in "[\\[\\]{}:,\"\\\\ \\n019.eE+\\-abu/truefalsn]{0,12}|\\{(\"[ab]\":[0-9\\[\\]\",]{1,4},?){0,3}\\}") {
            let theirs = serde_json::from_str::<&RawValue>(&text);
            match read(&text) {
                Ok(node) => prop_assert_eq!(theirs.unwrap().get(), node.span.of(&text)),
                // The only things that are refused although they are JSON.
                Err(Fault { what: Syntax::TwiceKey { .. } | Syntax::BadEscape, .. }) => {}
                Err(fault) => prop_assert!(theirs.is_err(), "{:?}", fault),
            }
        }
    }
}
