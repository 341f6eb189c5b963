//! Lines out of bytes that come in any pieces.
//!
//! Role: cut at line feeds, hold back what is not a line yet.
//! Not its role: what a line means.
//! Invariant: at most [`MAX_LINE`] bytes are held; a longer line is skipped whole and reported once.

/// The longest line that is read.
pub(super) const MAX_LINE: usize = 8 * 1024 * 1024;

/// One line, without its end.
pub(super) enum Line<'a> {
    Whole(&'a [u8]),
    TooLong,
}

#[derive(Default)]
pub(super) struct Lines {
    held: Vec<u8>,
    /// The rest of a line that was too long is being passed over.
    skipping: bool,
}

impl Lines {
    pub fn push(&mut self, mut bytes: &[u8], on_line: &mut dyn FnMut(Line<'_>)) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            let (piece, rest) = (&bytes[..at], &bytes[at + 1..]);
            bytes = rest;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if self.held.len() + piece.len() > MAX_LINE {
                self.held = Vec::new();
                on_line(Line::TooLong);
            } else if self.held.is_empty() {
                on_line(Line::Whole(without_return(piece)));
            } else {
                self.held.extend_from_slice(piece);
                on_line(Line::Whole(without_return(&self.held)));
                self.held.clear();
            }
        }
        if self.skipping {
            return;
        }
        if self.held.len() + bytes.len() > MAX_LINE {
            self.held = Vec::new();
            self.skipping = true;
            on_line(Line::TooLong);
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    /// What is left is the last line.
    pub fn end(self, on_line: &mut dyn FnMut(Line<'_>)) {
        if !self.held.is_empty() {
            on_line(Line::Whole(without_return(&self.held)));
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        let mut keep = |line: Line<'_>| match line {
            Line::Whole(bytes) => seen.push(String::from_utf8_lossy(bytes).into_owned()),
            Line::TooLong => seen.push("<too long>".into()),
        };
        for piece in pieces {
            lines.push(piece, &mut keep);
        }
        lines.end(&mut keep);
        seen
    }

    #[test]
    fn pieces_make_no_difference() {
        let text = b"one\r\n\ntwo\nthree";
        let whole = read(&[text]);
        assert_eq!(whole, ["one", "", "two", "three"]);
        assert_eq!(read(&text.chunks(1).collect::<Vec<_>>()), whole);
        assert_eq!(read(&text.chunks(3).collect::<Vec<_>>()), whole);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_whole_and_reported_once() {
        let long = vec![b'x'; MAX_LINE + 1];
        assert_eq!(read(&[b"a\n", &long, b"tail of it\nb\n"]), ["a", "<too long>", "b"]);
        assert_eq!(read(&[b"a\n", &long, &long, b"\nb"]), ["a", "<too long>", "b"]);
        let mut with_end = long.clone();
        with_end.extend_from_slice(b"\nb\n");
        assert_eq!(read(&[b"a\n", &with_end]), ["a", "<too long>", "b"]);
        let fits = vec![b'y'; MAX_LINE];
        assert_eq!(read(&[&fits, b"\nb"]).len(), 2);
    }
}
