//! The tools that read a file and that write one whole.
//!
//! Which path may be used is decided by `contain`; here is what is shown of a file and what is
//! accepted as one. Invariants: memory is bounded whatever the file's size or the length of its
//! lines; a binary file is described, never dumped.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};

use super::call::{ToolContext, ToolOutcome};
use super::inputs::{ReadFile, WriteFile, bounded};
use crate::workspace::contain::Root;

/// Lines shown when no limit is given.
const DEFAULT_LINES: u64 = 2000;
/// What is shown of one line.
const LINE_BYTES: usize = 4000;

pub(super) fn read(ctx: &ToolContext, input: &ReadFile) -> Result<ToolOutcome, String> {
    let first = match input.offset {
        Some(0) => return Err("offset counts from 1".to_owned()),
        offset => offset.unwrap_or(1),
    };
    if input.limit == Some(0) {
        return Err("limit must be at least 1".to_owned());
    }
    let root = Root::open(&ctx.workspace)?;
    let relative = root.relative(&input.path)?;
    if root.is_folder(&relative) == Ok(true) {
        return Err(format!("{} is a folder; use glob_search to list it", bounded(&input.path)));
    }
    let mut file = root.read(&relative)?;
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    if let Some(kind) = binary_kind(&mut file).map_err(|error| error.to_string())? {
        return Ok(ToolOutcome::text(format!("[binary file, {kind}, {size} bytes; not shown]")));
    }
    if size == 0 {
        return Ok(ToolOutcome::text("[the file is empty]".to_owned()));
    }
    // Who names a range wants that range; who does not gets what fits a usual answer.
    let room = if input.limit.is_some() {
        ctx.limits.read_file_bytes
    } else {
        ctx.limits.model_text_bytes.min(ctx.limits.read_file_bytes)
    };
    let last = first.saturating_add(input.limit.unwrap_or(DEFAULT_LINES) - 1);
    let mut view = View { first, last, room, text: String::new(), lines: 0, more: false };
    if view.fill(BufReader::new(file), ctx)? {
        return Ok(ToolOutcome::cancelled());
    }
    if view.text.is_empty() {
        return Err(format!("offset {first} is past the end: the file has {} lines", view.lines));
    }
    if view.more {
        let next = view.lines + 1;
        view.text.push_str(&format!("[the file goes on ({size} bytes in all); continue with offset={next}]\n"));
    }
    Ok(ToolOutcome::text(view.text))
}

/// A range of lines, gathered within a bound.
struct View {
    first: u64,
    last: u64,
    room: usize,
    text: String,
    /// Lines passed or shown so far.
    lines: u64,
    more: bool,
}

impl View {
    /// Returns true if it was cancelled.
    fn fill(&mut self, mut reader: BufReader<File>, ctx: &ToolContext) -> Result<bool, String> {
        loop {
            if self.lines.is_multiple_of(1024) && ctx.cancel.is_cancelled() {
                return Ok(true);
            }
            if self.lines >= self.last {
                self.more = !reader.fill_buf().map_err(|error| error.to_string())?.is_empty();
                return Ok(false);
            }
            let wanted = self.lines + 1 >= self.first;
            let keep = if wanted { LINE_BYTES } else { 0 };
            let Some((line, length)) = next_line(&mut reader, keep).map_err(|error| error.to_string())? else {
                return Ok(false);
            };
            if wanted {
                let mut shown = format!("{:>6}\t{}", self.lines + 1, String::from_utf8_lossy(&line));
                if length > line.len() as u64 {
                    shown.push_str(&format!("[line of {length} bytes cut]"));
                }
                shown.push('\n');
                // At least one line, or a reader could never get past it.
                if !self.text.is_empty() && self.text.len() + shown.len() > self.room {
                    self.more = true;
                    return Ok(false);
                }
                self.text.push_str(&shown);
            }
            self.lines += 1;
        }
    }
}

/// The next line, of which at most `keep` bytes are kept, and its full length.
fn next_line(reader: &mut impl BufRead, keep: usize) -> std::io::Result<Option<(Vec<u8>, u64)>> {
    let mut line = Vec::new();
    let mut length = 0;
    let mut any = false;
    loop {
        let buffer = match reader.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if buffer.is_empty() {
            return Ok(any.then_some((line, length)));
        }
        any = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        length += part.len() as u64;
        line.extend_from_slice(&part[..part.len().min(keep - line.len())]);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(Some((line, length)));
        }
    }
}

/// What kind of binary file this is, if it is one: a zero byte near the start says so.
fn binary_kind(file: &mut File) -> std::io::Result<Option<&'static str>> {
    let mut start = Vec::new();
    file.by_ref().take(8192).read_to_end(&mut start)?;
    file.rewind()?;
    const KINDS: [(&[u8], &str); 9] = [
        (b"\x7fELF", "ELF program or library"),
        (b"\x89PNG", "PNG image"),
        (b"\xff\xd8\xff", "JPEG image"),
        (b"GIF8", "GIF image"),
        (b"%PDF", "PDF document"),
        (b"PK\x03\x04", "ZIP archive"),
        (b"\x1f\x8b", "gzip data"),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
        (b"SQLite format 3", "SQLite database"),
    ];
    let known = KINDS.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, kind)| *kind);
    Ok(known.or_else(|| start.contains(&0).then_some("unknown kind")))
}

pub(super) fn write(ctx: &ToolContext, input: &WriteFile) -> Result<ToolOutcome, String> {
    let size = input.content.len();
    if size > ctx.limits.write_file_bytes {
        let most = ctx.limits.write_file_bytes;
        return Err(format!("content has {size} bytes; {most} is the most one call may write"));
    }
    let root = Root::open(&ctx.workspace)?;
    let target = root.target_within(&root.relative(&input.path)?, &ctx.protected, ctx.within.as_deref())?;
    let path = bounded(&input.path);
    target.replace(input.content.as_bytes()).map_err(|error| format!("{path} was not written: {error}"))?;
    let verb = if target.exists() { "Replaced" } else { "Created" };
    Ok(ToolOutcome::text(format!("{verb} {path} ({size} bytes)")))
}
