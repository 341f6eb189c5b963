//! Server-sent events: bytes in any chunking become events.
//!
//! Role: the event-stream grammar of the HTML standard, incremental: CR, LF and CRLF line ends,
//! one leading byte-order mark, comments, several `data` lines, default event name `message`.
//! Not its role: what an event means, reconnecting. The `id` and `retry` fields serve only
//! reconnecting, which would start a second paid reply here, so they are read over.
//!
//! Invariants: chunking never changes the result; each byte is looked at a fixed number of times;
//! memory is bounded by [`MAX_EVENT_BYTES`]; an event that its blank line did not end is never
//! given out; invalid UTF-8 becomes U+FFFD.

/// Largest event, counted as field bytes held at one time.
pub const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One dispatched event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The `event` field; `message` when the server named none.
    pub event: String,
    /// The `data` lines, joined by a line feed.
    pub data: String,
}

/// An event grew past [`MAX_EVENT_BYTES`]. The parser stays in this state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {MAX_EVENT_BYTES} bytes")]
pub struct EventTooLarge;

/// The parser. Feed it with [`Parser::push`]; there is nothing to do at the end of the stream.
#[derive(Debug, Default)]
pub struct Parser {
    /// How much of a leading byte-order mark was seen; `BOM.len() + 1` once that is decided.
    bom_seen: usize,
    after_cr: bool,
    overflowed: bool,
    line: Vec<u8>,
    event: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
}

impl Parser {
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads `bytes` and appends every event they complete to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), EventTooLarge> {
        let mut rest = self.skip_bom(bytes);
        while !rest.is_empty() {
            if self.overflowed {
                return Err(EventTooLarge);
            }
            if std::mem::take(&mut self.after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            match rest.iter().position(|&b| b == b'\n' || b == b'\r') {
                None => {
                    self.extend_line(rest)?;
                    rest = &[];
                }
                Some(end) => {
                    self.extend_line(&rest[..end])?;
                    self.after_cr = rest[end] == b'\r';
                    rest = &rest[end + 1..];
                    self.end_line(out);
                }
            }
        }
        if self.overflowed { Err(EventTooLarge) } else { Ok(()) }
    }

    /// Drops a byte-order mark at the very start, even when chunks split it.
    fn skip_bom<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let mut rest = bytes;
        while self.bom_seen < BOM.len() {
            match rest.first() {
                None => return rest,
                Some(&b) if b == BOM[self.bom_seen] => {
                    self.bom_seen += 1;
                    rest = &rest[1..];
                }
                Some(_) => {
                    // Not a mark after all: what was swallowed belongs to the first line.
                    self.line.extend_from_slice(&BOM[..self.bom_seen]);
                    break;
                }
            }
        }
        self.bom_seen = BOM.len() + 1;
        rest
    }

    fn extend_line(&mut self, part: &[u8]) -> Result<(), EventTooLarge> {
        if self.line.len() + self.event.len() + self.data.len() + part.len() > MAX_EVENT_BYTES {
            self.overflowed = true;
            return Err(EventTooLarge);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<Event>) {
        if self.line.is_empty() {
            self.dispatch(out);
            return;
        }
        let (field, value) = match self.line.iter().position(|&b| b == b':') {
            Some(colon) => {
                let value = &self.line[colon + 1..];
                (&self.line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (&self.line[..], &[][..]),
        };
        match field {
            b"event" => {
                self.event.clear();
                self.event.extend_from_slice(value);
            }
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            // A comment (empty field name), `id`, `retry`, or a field nobody knows.
            _ => {}
        }
        self.line.clear();
    }

    fn dispatch(&mut self, out: &mut Vec<Event>) {
        let name = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            let event = if name.is_empty() { "message".to_owned() } else { lossy(name) };
            out.push(Event { event, data: lossy(data) });
        }
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(bad) => String::from_utf8_lossy(bad.as_bytes()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(chunks: &[&[u8]]) -> Vec<Event> {
        let mut parser = Parser::new();
        let mut out = Vec::new();
        for chunk in chunks {
            parser.push(chunk, &mut out).unwrap();
        }
        out
    }

    fn event(event: &str, data: &str) -> Event {
        Event { event: event.into(), data: data.into() }
    }

    #[test]
    fn reads_the_grammar() {
        let cases: &[(&[u8], Vec<Event>)] = &[
            (b"data: a\n\n", vec![event("message", "a")]),
            (b"event: x\ndata:a\r\ndata: b\r\r", vec![event("x", "a\nb")]),
            (b"\xEF\xBB\xBFdata: a\n\n", vec![event("message", "a")]),
            (b"\xEF\xBBdata: a\n\ndata: b\n\n", vec![event("message", "b")]),
            (b"data: \xEF\xBB\xBFa\n\n", vec![event("message", "\u{FEFF}a")]),
            (b": note\ndata: a\n: note\n\n", vec![event("message", "a")]),
            (b"data\n\n", vec![event("message", "")]),
            (b"data\ndata\n\n", vec![event("message", "\n")]),
            (b"data:\ndata: x\n\n", vec![event("message", "\nx")]),
            (b"data:  two\n\n", vec![event("message", " two")]),
            (b"event: x\n\ndata: a\n\n", vec![event("message", "a")]),
            (b"event: x\nevent: y\ndata: a\n\n", vec![event("y", "a")]),
            (b"id: 7\nretry: 10\nfoo: bar\ndata: a\n\n", vec![event("message", "a")]),
            (b"data: \xFF\xC3\n\n", vec![event("message", "\u{FFFD}\u{FFFD}")]),
            (b"data: a\n", vec![]),
            (b"\n\n\r\r\r\n", vec![]),
            (b"data: a\r\n\r\ndata: b\r\n\r\n", vec![event("message", "a"), event("message", "b")]),
        ];
        for (input, wanted) in cases {
            assert_eq!(&parse(&[input]), wanted, "{:?}", String::from_utf8_lossy(input));
            for cut in 0..=input.len() {
                assert_eq!(&parse(&[&input[..cut], &input[cut..]]), wanted, "cut at {cut} of {input:?}");
            }
            let single: Vec<&[u8]> = input.chunks(1).collect();
            assert_eq!(&parse(&single), wanted, "byte by byte: {input:?}");
        }
    }

    #[test]
    fn an_endless_line_or_event_is_refused_and_stays_refused() {
        let mut parser = Parser::new();
        let mut out = Vec::new();
        let mebibyte = vec![b'x'; 1024 * 1024];
        let refused = (0..20).filter(|_| parser.push(&mebibyte, &mut out).is_err()).count();
        assert_eq!(refused, 12);
        assert_eq!(parser.push(b"\n\ndata: a\n\n", &mut out), Err(EventTooLarge));

        let mut parser = Parser::new();
        let line = [b"data: ".as_slice(), &mebibyte, b"\n"].concat();
        assert!((0..9).any(|_| parser.push(&line, &mut out).is_err()));
        assert!(out.is_empty());
    }

    #[test]
    fn comments_without_end_hold_no_memory() {
        let mut parser = Parser::new();
        let mut out = Vec::new();
        let comment = [b":".as_slice(), &vec![b'x'; 1024 * 1024], b"\n"].concat();
        for _ in 0..20 {
            parser.push(&comment, &mut out).unwrap();
        }
        assert!(out.is_empty());
    }

    fn stream_bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"data: ".to_vec()),
            Just(b"event: ".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\n\n".to_vec()),
            Just(b":".to_vec()),
            Just(BOM.to_vec()),
            Just("é€🦀".as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..6),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn chunking_never_changes_the_result(
            bytes in stream_bytes(),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let whole = parse(&[&bytes]);
            let mut cuts: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            prop_assert_eq!(&parse(&chunks), &whole);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&parse(&single), &whole);
        }
    }
}
