//! What people are asked to approve, as text: a document's new words against its old ones.
//!
//! Role: a unified diff of two recorded texts, bounded. Not its role: which texts those are (the playbook's room says it).

use similar::TextDiff;

use crate::journal::{Blobs, JournalError};
use crate::machine::document::EVIDENCE_ROOT;
use crate::machine::run::RunState;
use crate::model::decision::Request;
use crate::model::digest::Digest;
use crate::model::rendered::Rendered;

/// A longer diff is cut: both texts are kept whole.
const MAX_DIFF: usize = 256 * 1024;

/// The diff that a request is about; `None`: it is about something else.
pub fn of_request(request: &Request, blobs: &Blobs) -> Result<Option<String>, JournalError> {
    let Request::Refinement { path, before, after } = request else { return Ok(None) };
    of_texts(path, before, after, blobs).map(Some)
}

/// The documents that a run's people and agents rewrote, one file for each time.
pub fn files(state: &RunState, blobs: &Blobs) -> Result<Vec<Rendered>, JournalError> {
    let rewritten = state.playbook().rewritten(state).into_iter();
    let files = rewritten.map(|one| {
        let text = of_texts(&one.path, &one.before, &one.after, blobs)?;
        let path = format!("{EVIDENCE_ROOT}/{}", one.name);
        Ok(Rendered { path, bytes: text.into_bytes(), role: "log", iteration: None })
    });
    files.collect()
}

fn of_texts(path: &str, before: &Digest, after: &Digest, blobs: &Blobs) -> Result<String, JournalError> {
    let text = |digest| blobs.get(digest).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let (before, after) = (text(before)?, text(after)?);
    Ok(unified(path, &before, &after))
}

fn unified(path: &str, before: &str, after: &str) -> String {
    let path: String = path.chars().filter(|c| !c.is_control()).collect();
    let (old, new): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    let names = (format!("a/{path}"), format!("b/{path}"));
    let diff = TextDiff::configure().newline_terminated(true).diff_slices(&old, &new);
    let mut text = diff.unified_diff().header(&names.0, &names.1).to_string();
    if text.len() > MAX_DIFF {
        let mut end = MAX_DIFF;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str("\n[the diff is cut here]\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_names_the_document_and_is_bounded() {
        let text = unified("PRD\n.md", "one\ntwo\n", "one\nthree\n");
        assert_eq!(text, "--- a/PRD.md\n+++ b/PRD.md\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n");
        let long: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
        let text = unified("PRD.md", "", &long);
        assert!(text.len() < MAX_DIFF + 100 && text.ends_with("cut here]\n"), "{}", text.len());
    }
}
