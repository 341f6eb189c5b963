//! Bytes of a segment, one line at a time, in bounded memory.
//!
//! Role: split a file at newlines. Not its role: looking inside a line.
//! Invariant: memory stays below the longest line the writer can make, whatever the file holds.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::record::{MAX_DATA, MAX_KIND};

/// Longer than any line the writer makes: the data, the kind with each byte escaped, and the
/// fixed fields with room to spare.
pub(super) const MAX_LINE: usize = MAX_DATA + 6 * MAX_KIND + 4096;

/// Reads a segment line by line.
pub(super) struct Lines {
    reader: BufReader<File>,
    buffer: Vec<u8>,
}

/// What stands between two newlines.
pub(super) struct RawLine<'a> {
    /// The bytes without the newline. Empty when the line is longer than any of ours.
    pub bytes: &'a [u8],
    /// How many bytes of the file it takes, its newline included.
    pub length: u64,
    /// Whether a newline ended it; the last line of a torn file has none.
    pub ended: bool,
    pub too_long: bool,
}

impl Lines {
    /// Starts at byte `offset` of the file.
    pub(super) fn open(path: &Path, offset: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        if offset > 0 {
            file.seek(SeekFrom::Start(offset))?;
        }
        Ok(Self { reader: BufReader::with_capacity(256 * 1024, file), buffer: Vec::new() })
    }

    /// Whether nothing is left to read.
    pub(super) fn at_end(&mut self) -> io::Result<bool> {
        Ok(self.reader.fill_buf()?.is_empty())
    }

    /// The next line, or `None` at the end of the file.
    pub(super) fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        self.buffer.clear();
        let limit = MAX_LINE as u64 + 1;
        let read = (&mut self.reader).take(limit).read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        let mut length = read as u64;
        let mut ended = self.buffer.last() == Some(&b'\n');
        let too_long = !ended && read as u64 == limit;
        while too_long && !ended {
            self.buffer.clear();
            let more = (&mut self.reader).take(limit).read_until(b'\n', &mut self.buffer)?;
            if more == 0 {
                break;
            }
            length += more as u64;
            ended = self.buffer.last() == Some(&b'\n');
        }
        let bytes = match self.buffer.as_slice() {
            _ if too_long => &[],
            [bytes @ .., b'\n'] => bytes,
            bytes => bytes,
        };
        Ok(Some(RawLine { bytes, length, ended, too_long }))
    }
}
