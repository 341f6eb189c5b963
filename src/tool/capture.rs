//! Keeps the head and the tail of a stream, counts and hashes all of it.
//!
//! Knows nothing about pipes or processes. Memory never exceeds the given bound (plus the short
//! cut marker), whatever passes through; the digest is always that of the whole stream.

use std::collections::VecDeque;

use sha2::Digest as _;

use crate::model::digest::Digest;

/// One captured stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The stream, or head + marker + tail when it was longer than what is kept.
    pub bytes: Vec<u8>,
    /// Length of the whole stream.
    pub total: u64,
    /// Digest of the whole stream.
    pub sha256: Digest,
    pub truncated: bool,
}

impl Captured {
    pub(super) fn empty() -> Self {
        Capture::new(0).finish()
    }
}

/// A capture under way.
pub(super) struct Capture {
    head: Vec<u8>,
    head_max: usize,
    tail: VecDeque<u8>,
    tail_max: usize,
    total: u64,
    hasher: sha2::Sha256,
}

impl Capture {
    pub(super) fn new(keep: usize) -> Self {
        Self {
            head: Vec::new(),
            head_max: keep / 2,
            tail: VecDeque::new(),
            tail_max: keep - keep / 2,
            total: 0,
            hasher: sha2::Sha256::new(),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.hasher.update(bytes);
        let room = self.head_max - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        // Only the last `tail_max` bytes can survive; older ones never enter the ring.
        let rest = &rest[rest.len().saturating_sub(self.tail_max)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_max);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    pub(super) fn finish(self) -> Captured {
        let kept = self.head.len() + self.tail.len();
        let cut = self.total - kept as u64;
        let mut bytes = self.head;
        if cut > 0 {
            bytes.extend_from_slice(cut_marker(cut).as_bytes());
        }
        let (first, second) = self.tail.as_slices();
        bytes.extend_from_slice(first);
        bytes.extend_from_slice(second);
        Captured {
            bytes,
            total: self.total,
            sha256: Digest::from_bytes(self.hasher.finalize().into()),
            truncated: cut > 0,
        }
    }
}

/// Stands where bytes were cut.
fn cut_marker(cut: u64) -> String {
    format!("\n[... {cut} bytes cut ...]\n")
}

/// Head and tail of `text` within about `max` bytes, cut at character boundaries. The second
/// value says whether anything was cut.
pub(super) fn head_tail(text: &str, max: usize) -> (String, bool) {
    if text.len() <= max {
        return (text.to_owned(), false);
    }
    let mut head = max / 2;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - (max - max / 2);
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    let cut = (tail - head) as u64;
    (format!("{}{}{}", &text[..head], cut_marker(cut), &text[tail..]), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the chunk sizes, the result is that of the whole stream at once.
    #[test]
    fn chunking_does_not_matter() {
        let stream: Vec<u8> = (0..5000u32).map(|n| (n % 251) as u8).collect();
        for keep in [0, 1, 2, 7, 100, 4999, 5000, 5001] {
            let mut whole = Capture::new(keep);
            whole.push(&stream);
            let whole = whole.finish();
            for size in [1, 3, 64, 4096] {
                let mut pieces = Capture::new(keep);
                stream.chunks(size).for_each(|chunk| pieces.push(chunk));
                assert_eq!(pieces.finish(), whole, "keep {keep}, chunks of {size}");
            }
            assert_eq!(whole.total, 5000);
            assert_eq!(whole.sha256, Digest::of(&stream));
            assert_eq!(whole.truncated, keep < 5000);
            if !whole.truncated {
                assert_eq!(whole.bytes, stream);
            }
            assert!(whole.bytes.len() <= keep + 40);
        }
    }

    #[test]
    fn head_and_tail_are_the_ends() {
        let mut capture = Capture::new(6);
        capture.push(b"abcdefghij");
        assert_eq!(capture.finish().bytes, b"abc\n[... 4 bytes cut ...]\nhij");
    }

    #[test]
    fn text_is_cut_between_characters() {
        let text = "ä".repeat(100);
        let (cut, was_cut) = head_tail(&text, 51);
        assert!(was_cut);
        assert!(cut.starts_with(&"ä".repeat(12)) && cut.ends_with(&"ä".repeat(12)));
        assert_eq!(head_tail("abc", 3), ("abc".to_owned(), false));
    }
}
