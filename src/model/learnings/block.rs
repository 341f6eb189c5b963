//! The generated block inside a user's AGENTS.md.
//!
//! Role: find, replace or append the block of one run, on bytes.
//! Not its role: what stands in the block, reading or writing files.
//! Invariants: every byte outside the block stays as it is, in any encoding and with any line endings;
//! splicing twice is splicing once. We own the two marker lines, what is between them, and the one line
//! feed just before the first marker (absent only at the start of a file).

use std::collections::BTreeMap;

use crate::model::digest::Digest;
use crate::model::ids::RunId;

/// Both markers begin so; no line of a block may.
pub(super) const MARKER_OPENING: &str = "<!-- nightloop:";

/// Why a block cannot be found or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    #[error("the marker `{0}` stands there more than once: keep the one around the generated block")]
    Duplicated(String),
    #[error("the marker `{0}` stands before the beginning of its block")]
    EndBeforeBegin(String),
    #[error("the marker `{0}` is missing: the generated block has no end")]
    MissingEnd(String),
    #[error("the marker `{0}` is missing: the generated block has no beginning")]
    MissingBegin(String),
    #[error("the text of a block must not hold a line that starts with `{MARKER_OPENING}`")]
    MarkerInside,
}

pub fn begin_marker(run: &RunId) -> String {
    format!("{MARKER_OPENING}begin {run} -->")
}

pub fn end_marker(run: &RunId) -> String {
    format!("{MARKER_OPENING}end {run} -->")
}

/// The bytes strictly between the marker lines, or none when the file has no block of this run.
pub fn extract<'a>(file: &'a [u8], run: &RunId) -> Result<Option<&'a [u8]>, BlockError> {
    Ok(locate(file, run)?.map(|place| &file[place.inner_start..place.inner_end]))
}

/// The file with the block of this run replaced, or appended when there is none.
pub fn splice(file: &[u8], run: &RunId, block: &str) -> Result<Vec<u8>, BlockError> {
    if block.lines().any(|line| line.trim_start().starts_with(MARKER_OPENING)) {
        return Err(BlockError::MarkerInside);
    }
    let (before, after, gap) = match locate(file, run)? {
        Some(place) => (&file[..place.start], &file[place.end..], ""),
        None if file.is_empty() => (file, &file[..0], ""),
        None => (file, &file[..0], "\n"),
    };
    let final_newline = if block.is_empty() || block.ends_with('\n') { "" } else { "\n" };
    let ours = format!("{gap}{}\n{block}{final_newline}{}\n", begin_marker(run), end_marker(run));
    Ok([before, ours.as_bytes(), after].concat())
}

/// The file with nothing between the markers of this run: what changes in it is not ours.
pub fn frame(file: &[u8], run: &RunId) -> Vec<u8> {
    match extract(file, run) {
        Ok(Some(_)) => splice(file, run, "").unwrap_or_else(|_| file.to_vec()),
        Ok(None) | Err(_) => file.to_vec(),
    }
}

/// The run whose block this line begins.
pub(super) fn begun(line: &str) -> Option<RunId> {
    RunId::parse(line.strip_prefix(MARKER_OPENING)?.strip_prefix("begin ")?.strip_suffix(" -->")?)
}

/// The other runs that have a block, in the order of the file: the oldest first.
pub(super) fn others(file: &[u8], own: &RunId) -> Vec<RunId> {
    let lines = file.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let mut runs: Vec<RunId> = Vec::new();
    for run in lines.filter_map(|line| begun(line.trim_end())) {
        if run != *own && !runs.contains(&run) {
            runs.push(run);
        }
    }
    runs
}

/// The generated blocks of other runs, by run. One whose markers are broken counts as an empty one.
pub fn blocks(file: &[u8], own: &RunId) -> BTreeMap<String, Digest> {
    let runs = others(file, own).into_iter();
    runs.map(|run| (run.to_string(), Digest::of(extract(file, &run).ok().flatten().unwrap_or_default()))).collect()
}

/// The file without what we own. A file whose markers are broken is returned whole.
pub fn foreign(file: &[u8], run: &RunId) -> Vec<u8> {
    match locate(file, run) {
        Ok(Some(place)) => {
            let before = &file[..place.start];
            [before.strip_suffix(b"\n").unwrap_or(before), &file[place.end..]].concat()
        }
        Ok(None) | Err(_) => file.to_vec(),
    }
}

/// Offsets: the whole block with its marker lines, and what is between them.
struct Place {
    start: usize,
    inner_start: usize,
    inner_end: usize,
    end: usize,
}

fn locate(file: &[u8], run: &RunId) -> Result<Option<Place>, BlockError> {
    let (begin, end) = (begin_marker(run), end_marker(run));
    match (only_line(file, &begin)?, only_line(file, &end)?) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(BlockError::MissingEnd(end)),
        (None, Some(_)) => Err(BlockError::MissingBegin(begin)),
        (Some(first), Some(last)) if last.0 < first.0 => Err(BlockError::EndBeforeBegin(end)),
        (Some(first), Some(last)) => {
            Ok(Some(Place { start: first.0, inner_start: first.1, inner_end: last.0, end: last.1 }))
        }
    }
}

/// Where the line that is exactly `marker` starts, and where the next one starts. A carriage return
/// before the line feed is allowed: an editor may have changed the line endings.
fn only_line(file: &[u8], marker: &str) -> Result<Option<(usize, usize)>, BlockError> {
    let mut found = None;
    let mut start = 0;
    for line in file.split_inclusive(|byte| *byte == b'\n') {
        let end = start + line.len();
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text == marker.as_bytes() {
            if found.is_some() {
                return Err(BlockError::Duplicated(marker.to_owned()));
            }
            found = Some((start, end));
        }
        start = end;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(last: char) -> RunId {
        RunId::parse(&format!("01ARZ3NDEKTSV4RRFFQ69G5FA{last}")).unwrap()
    }

    fn a() -> RunId {
        run('A')
    }

    #[test]
    fn a_new_block_is_appended_after_the_users_bytes() {
        let got = splice(b"# Mine", &a(), "x\n").unwrap();
        let text = "# Mine\n<!-- nightloop:begin 01ARZ3NDEKTSV4RRFFQ69G5FAA -->\nx\n<!-- nightloop:end 01ARZ3NDEKTSV4RRFFQ69G5FAA -->\n";
        assert_eq!(String::from_utf8(got).unwrap(), text);
        assert!(splice(b"", &a(), "x").unwrap().starts_with(b"<!-- nightloop:begin"));
    }

    #[test]
    fn broken_markers_are_errors() {
        let (begin, end) = (begin_marker(&a()), end_marker(&a()));
        let cases = [
            (format!("{begin}\n{begin}\n{end}\n"), BlockError::Duplicated(begin.clone())),
            (format!("{begin}\n{end}\n{end}\n"), BlockError::Duplicated(end.clone())),
            (format!("{end}\r\n{begin}\n"), BlockError::EndBeforeBegin(end.clone())),
            (format!("x\n{begin}\nx"), BlockError::MissingEnd(end.clone())),
            (format!("x\n{end}"), BlockError::MissingBegin(begin.clone())),
        ];
        for (file, error) in cases {
            assert_eq!(extract(file.as_bytes(), &a()), Err(error.clone()), "{file}");
            assert_eq!(splice(file.as_bytes(), &a(), "x"), Err(error), "{file}");
            assert_eq!(foreign(file.as_bytes(), &a()), file.as_bytes());
        }
        // Quoted inside a line, a marker is only text.
        let quoted = format!("see `{begin}` here\n");
        assert_eq!(extract(quoted.as_bytes(), &a()), Ok(None));
    }

    #[test]
    fn a_block_cannot_hold_a_marker() {
        for text in [begin_marker(&a()), end_marker(&run('B')), format!("x\n  {}", end_marker(&a()))] {
            assert_eq!(splice(b"", &a(), &text), Err(BlockError::MarkerInside));
        }
    }

    #[test]
    fn converted_line_endings_are_still_found() {
        let unix = String::from_utf8(splice(b"u\n", &a(), "one\ntwo\n").unwrap()).unwrap();
        let windows = unix.replace('\n', "\r\n");
        assert_eq!(extract(windows.as_bytes(), &a()).unwrap(), Some(&b"one\r\ntwo\r\n"[..]));
    }

    fn any_file() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            Just(b"\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"## Iteration 0".to_vec()),
            Just(MARKER_OPENING.as_bytes().to_vec()),
            Just(vec![0xff, 0xfe]),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    fn any_block() -> impl Strategy<Value = String> {
        "[a-z#\n -]{0,60}"
    }

    proptest! {
        #[test]
        fn the_users_bytes_survive(file in any_file(), first in any_block(), second in any_block()) {
            let once = splice(&file, &a(), &first).unwrap();
            prop_assert!(once.starts_with(&file));
            prop_assert_eq!(&foreign(&once, &a()), &file);
            prop_assert_eq!(&splice(&once, &a(), &first).unwrap(), &once);
            let twice = splice(&once, &a(), &second).unwrap();
            prop_assert_eq!(&foreign(&twice, &a()), &file);
            prop_assert_eq!(&twice, &splice(&file, &a(), &second).unwrap());
            let stored = extract(&twice, &a()).unwrap().unwrap();
            let expected = if second.is_empty() || second.ends_with('\n') { second } else { format!("{second}\n") };
            prop_assert_eq!(stored, expected.as_bytes());
        }

        #[test]
        fn bytes_on_both_sides_survive(before in any_file(), after in any_file(), text in any_block()) {
            let mut file = splice(&before, &a(), "old").unwrap();
            file.extend_from_slice(&after);
            let new = splice(&file, &a(), &text).unwrap();
            prop_assert!(new.starts_with(&before) && new.ends_with(&after));
            prop_assert_eq!(foreign(&new, &a()), [before, after].concat());
        }

        #[test]
        fn runs_do_not_touch_each_other(file in any_file(), x in any_block(), y in any_block(), z in any_block()) {
            let one = splice(&file, &a(), &x).unwrap();
            let two = splice(&one, &run('B'), &y).unwrap();
            let three = splice(&two, &a(), &z).unwrap();
            prop_assert_eq!(extract(&three, &run('B')).unwrap(), extract(&two, &run('B')).unwrap());
            prop_assert_eq!(foreign(&foreign(&three, &run('B')), &a()), file);
        }
    }
}
