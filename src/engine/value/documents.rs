//! The vision and the PRD as they lie in the workspace.
//!
//! Role: say what each holds, or in words why it cannot be used. Not its role: what a gate makes of that.
//! Invariants: only a regular file inside the workspace is read, up to a limit; its bytes are kept as they are, so
//! that a digest of them fits the file, and a document that holds a known secret is therefore not kept at all.

use std::path::{Path, PathBuf};

use crate::journal::{Blobs, JournalError};
use crate::model::secret::{Scope, Secrets};
use crate::playbook::value::event::Document;
use crate::workspace::document;

/// The largest document.
pub(super) const MAX_DOCUMENT: usize = 256 * 1024;

/// Reads a document; `purpose` says what a person should write into it.
pub(super) fn read(
    workspace: &Path,
    path: &str,
    purpose: &str,
    blobs: &Blobs,
    secrets: &Secrets,
) -> Result<Document, JournalError> {
    let unusable = |problem: String| Document { path: path.to_owned(), text: None, bytes: 0, problem: Some(problem) };
    match look(workspace, path, purpose, secrets) {
        Ok(text) => {
            let (bytes, text) = (text.len() as u64, Some(blobs.put(text.as_bytes())?));
            Ok(Document { path: path.to_owned(), text, bytes, problem: None })
        }
        Err(problem) => Ok(unusable(problem)),
    }
}

/// Replaces a document at once. The error is for people.
pub(super) fn write(workspace: &Path, path: &str, text: &[u8], protected: &[PathBuf]) -> Result<(), String> {
    if text.len() > MAX_DOCUMENT {
        return Err(format!("{path} was not written: its new text has more than {MAX_DOCUMENT} bytes"));
    }
    document::replace(workspace, path, text, protected)
}

fn look(workspace: &Path, path: &str, purpose: &str, secrets: &Secrets) -> Result<String, String> {
    let Some(bytes) = document::read(workspace, path, MAX_DOCUMENT)? else {
        return Err(format!("{path} is not there: {purpose}"));
    };
    let text = String::from_utf8(bytes)
        .map_err(|error| format!("{path} is not UTF-8 (byte {})", error.utf8_error().valid_up_to()))?;
    if text.trim().is_empty() {
        return Err(format!("{path} is empty: {purpose}"));
    }
    if secrets.betrayed_by(text.as_bytes(), Scope::Known) {
        return Err(format!("{path} holds a value that must stay secret: take it out"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(path: &str, prepare: impl FnOnce(&Path)) -> String {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path());
        let mut secrets = Secrets::default();
        secrets.add("TOKEN", "abcdef0123456789");
        look(dir.path(), path, "write down why", &secrets).unwrap_err()
    }

    #[test]
    fn what_cannot_be_used_is_said_in_words() {
        let write = |bytes: &'static [u8]| move |dir: &Path| std::fs::write(dir.join("VISION.md"), bytes).unwrap();
        assert_eq!(problem("VISION.md", |_| {}), "VISION.md is not there: write down why");
        assert_eq!(problem("VISION.md", write(b" \n\t")), "VISION.md is empty: write down why");
        assert_eq!(problem("VISION.md", write(b"")), "VISION.md is empty: write down why");
        assert_eq!(problem("VISION.md", write(b"ab\xff")), "VISION.md is not UTF-8 (byte 2)");
        assert!(problem("VISION.md", write(b"use abcdef0123456789")).contains("must stay secret"));
        assert!(problem("VISION.md", |dir| std::fs::create_dir(dir.join("VISION.md")).unwrap()).contains("folder"));
        let large = |dir: &Path| std::fs::write(dir.join("VISION.md"), vec![b'a'; MAX_DOCUMENT + 1]).unwrap();
        assert!(problem("VISION.md", large).contains("more than 262144 bytes"));
        assert!(problem("../VISION.md", |_| {}).contains(".."));
        let out = |dir: &Path| std::os::unix::fs::symlink("/etc/hostname", dir.join("VISION.md")).unwrap();
        assert!(problem("VISION.md", out).contains("leaves the workspace"));
    }

    #[test]
    fn a_document_of_the_largest_size_is_read_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("PRD.md"), vec![b'a'; MAX_DOCUMENT]).unwrap();
        let text = look(dir.path(), "PRD.md", "", &Secrets::default()).unwrap();
        assert_eq!(text.len(), MAX_DOCUMENT);
        write(dir.path(), "PRD.md", b"new", &[]).unwrap();
        assert_eq!(look(dir.path(), "PRD.md", "", &Secrets::default()).as_deref(), Ok("new"));
        assert!(write(dir.path(), "PRD.md", &vec![b'a'; MAX_DOCUMENT + 1], &[]).is_err());
    }
}
