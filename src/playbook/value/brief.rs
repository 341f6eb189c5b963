//! The first message of a call: what this purpose has to know, as labelled sections in a fixed order.
//!
//! Role: choose, bound and write. Not its role: the capsule and the operator's words (the engine adds them), reading
//! blobs ([`Texts`]), telling an agent what to do (`prompts/value/`).
//!
//! Invariants: a function of the folded run and of stored texts, nothing else; never longer than [`MAX_BYTES`]; what
//! stands in a section cannot pass for the label of another one: facts are JSON lines, and a line of a document that
//! looks like a label is moved in by a blank. Texts come from blobs, so they are redacted already.

mod attempts;
mod facts;
mod fit;
mod section;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use crate::machine::run::RunState;
use crate::model::digest::Digest;
use crate::model::purpose::Purpose;
use crate::playbook::value::event::Document;

pub use fit::middle;
use section::Section;

/// The longest message.
pub const MAX_BYTES: usize = 96 * 1024;
/// The most that is shown of one document.
pub const MAX_DOCUMENT: usize = 32 * 1024;
/// What a label line may take with the path and the note of a document, and without.
const DOCUMENT_LABEL: usize = 256;
const FACTS_LABEL: usize = 32;
/// How a label line begins; no other line does.
const LABEL: &str = "===";

/// Where stored texts come from; a missing one is empty.
pub trait Texts {
    /// The text of a blob, cut in the middle to `limit` bytes.
    fn text(&self, digest: &Digest, limit: usize) -> String;
}

/// The message, without the capsule. `subject`: the task, or the ids with commas between them, that the call is for.
pub fn message(run: &RunState, purpose: Purpose, subject: Option<&str>, texts: &dyn Texts) -> String {
    let wanted = section::of(purpose);
    let facts: Vec<(Section, String)> = wanted
        .iter()
        .filter(|section| !section.is_document())
        .map(|section| {
            let lines = facts::lines(run, *section, purpose, subject, texts);
            (*section, fit::lines(lines, section.limit()))
        })
        .filter(|(_, body)| !body.is_empty())
        .collect();
    // Documents get what the facts leave: of them a part is of use, too.
    let mut documents = wanted.iter().filter(|section| section.is_document()).count();
    let taken: usize = facts.iter().map(|(_, body)| body.len() + FACTS_LABEL).sum();
    let mut room = MAX_BYTES.saturating_sub(taken + documents * DOCUMENT_LABEL);
    let mut message = String::new();
    for section in wanted.iter().filter(|section| section.is_document()) {
        let limit = (room / documents.max(1)).min(MAX_DOCUMENT);
        documents = documents.saturating_sub(1);
        if let Some((label, body)) = document(run, *section, limit, texts) {
            room = room.saturating_sub(body.len());
            write_section(&mut message, &label, &body);
        }
    }
    for (section, body) in &facts {
        write_section(&mut message, section.label(), body);
    }
    message
}

/// The labels that a message for this purpose may have, in order.
pub fn labels(purpose: Purpose) -> impl Iterator<Item = &'static str> {
    section::of(purpose).iter().map(|section| section.label())
}

fn write_section(message: &mut String, label: &str, body: &str) {
    if !message.is_empty() {
        message.push('\n');
    }
    // Writing to a string cannot fail.
    let _ = writeln!(message, "{LABEL} {label} {LABEL}\n{}", body.trim_end());
}

/// The label and the text of a document; `None`: there is none that can be used.
fn document(run: &RunState, section: Section, limit: usize, texts: &dyn Texts) -> Option<(String, String)> {
    let read = run.value().documents.as_ref()?;
    let document = if section == Section::Prd { &read.prd } else { &read.vision };
    let digest = document.text.as_ref()?;
    let body = fit::middle(&without_labels(&texts.text(digest, limit)), limit);
    if body.trim().is_empty() {
        return None;
    }
    Some((document_label(section, document, limit), body))
}

/// Says where the document is, and whether all of it is shown.
fn document_label(section: Section, document: &Document, limit: usize) -> String {
    let path: String = document.path.chars().filter(|c| !c.is_control()).collect();
    let path = fit::shorten(&path, 128);
    let cut = if document.bytes > limit as u64 { ", the middle is left out here: read the file" } else { "" };
    format!("{}: {path}{cut}", section.label())
}

/// The text with no line in it that begins like a label.
fn without_labels(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive(['\n', '\r']) {
        if line.starts_with(LABEL) {
            out.push(' ');
        }
        out.push_str(line);
    }
    out
}
