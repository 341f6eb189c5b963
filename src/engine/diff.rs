//! What changed, as a unified diff. Earlier contents come from a disposable shadow beside the journal:
//! the tree's digests are the truth, the diff is for reading.

use std::fs;
use std::path::{Path, PathBuf};

use similar::TextDiff;

use crate::machine::event::{Change, ChangeKind};
use crate::model::digest::Digest;
use crate::model::secret::{Scope, Secrets};
use crate::workspace::plain;
use crate::workspace::tree::TreeSnapshot;

/// Larger files are named in the diff, not shown.
const MAX_FILE: u64 = 256 * 1024;
const MAX_KEPT_FILES: usize = 5_000;
const MAX_KEPT_BYTES: u64 = 64 << 20;
/// A diff longer than this is cut.
const MAX_PATCH: usize = 512 * 1024;

fn shadow(run_dir: &Path, sha256: &Digest) -> PathBuf {
    run_dir.join("shadow").join(sha256.to_string())
}

/// Keeps a copy of every small file, so that the next diff can show what was there. Best effort. A file that
/// holds a secret is not copied; the diff then names it without showing it.
pub fn keep_contents(run_dir: &Path, workspace: &Path, tree: &TreeSnapshot, secrets: &Secrets) {
    if fs::create_dir_all(run_dir.join("shadow")).is_err() {
        return;
    }
    let mut bytes_left = MAX_KEPT_BYTES;
    let small = tree.files.iter().filter(|(_, file)| file.size <= MAX_FILE);
    for (path, file) in small.take(MAX_KEPT_FILES) {
        let target = shadow(run_dir, &file.sha256);
        if target.exists() {
            continue;
        }
        let Some(left) = bytes_left.checked_sub(file.size) else { return };
        bytes_left = left;
        if let Some(content) = read_small(workspace, path)
            && Digest::of(&content) == file.sha256
            && !secrets.betrayed_by(&content, Scope::Everything)
        {
            // A half-written copy is recognised by its digest when it is read.
            let _ = fs::write(target, content);
        }
    }
}

fn content(run_dir: &Path, sha256: &Digest) -> Option<Vec<u8>> {
    fs::read(shadow(run_dir, sha256)).ok().filter(|bytes| Digest::of(bytes) == *sha256)
}

/// The changes as a unified diff, bounded.
pub fn patch(run_dir: &Path, workspace: &Path, before: &TreeSnapshot, changes: &[Change]) -> String {
    let mut out = String::new();
    for change in changes {
        let old = before.files.get(&change.path);
        let old_text = old.map_or(Some(Vec::new()), |file| content(run_dir, &file.sha256));
        let new_text = match change.kind {
            ChangeKind::Deleted => Some(Vec::new()),
            ChangeKind::Added | ChangeKind::Modified => read_small(workspace, &change.path),
        };
        out.push_str(&one_file(change, old_text, new_text));
        if out.len() > MAX_PATCH {
            let mut end = MAX_PATCH;
            while !out.is_char_boundary(end) {
                end -= 1;
            }
            out.truncate(end);
            out.push_str("\n[the diff is cut here; the tree digests cover everything]\n");
            break;
        }
    }
    out
}

fn read_small(workspace: &Path, path: &str) -> Option<Vec<u8>> {
    plain::read(workspace, path, MAX_FILE as usize).ok().flatten().map(|file| file.bytes)
}

fn one_file(change: &Change, old: Option<Vec<u8>>, new: Option<Vec<u8>>) -> String {
    // A name with a line break would be two lines of the diff.
    let path = if change.path.contains(char::is_control) {
        format!("\"{}\"", change.path.escape_default())
    } else {
        change.path.clone()
    };
    let texts = (old.map(String::from_utf8), new.map(String::from_utf8));
    let (Some(Ok(old)), Some(Ok(new))) = texts else {
        let digest = change.sha256.map_or_else(|| "deleted".to_owned(), |sha256| sha256.to_string());
        return format!("--- a/{path}\n+++ b/{path}\n[binary, large or not kept: now {digest}]\n");
    };
    let (from, to) = match change.kind {
        ChangeKind::Added => ("/dev/null".to_owned(), format!("b/{path}")),
        ChangeKind::Modified => (format!("a/{path}"), format!("b/{path}")),
        ChangeKind::Deleted => (format!("a/{path}"), "/dev/null".to_owned()),
    };
    // Only a newline ends a line, as in every other reader of diffs; a lone carriage return does not.
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    TextDiff::configure().newline_terminated(true).diff_slices(&old, &new).unified_diff().header(&from, &to).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(path: &str, old: &str, new: &str) -> String {
        let change = Change { path: path.to_owned(), kind: ChangeKind::Modified, sha256: None };
        one_file(&change, Some(old.into()), Some(new.into()))
    }

    #[test]
    fn a_carriage_return_ends_no_line_and_a_name_stays_on_one() {
        let patch = diff("a\nb", "one\n", "one\rtwo\rthree\nfour\n");
        let lines: Vec<&str> = patch.split('\n').collect();
        assert_eq!(lines[0], "--- a/\"a\\nb\"");
        assert_eq!(lines[2], "@@ -1 +1,2 @@");
        assert_eq!(lines[3..6], ["-one", "+one\rtwo\rthree", "+four"]);
    }

    #[test]
    fn a_missing_last_newline_is_told() {
        let patch = diff("a", "one\ntwo", "one\ntwo\n");
        assert!(patch.contains("-two\n\\ No newline at end of file\n+two\n"), "{patch}");
    }
}
