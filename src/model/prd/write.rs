//! Changing one item in the text of its file.
//!
//! Role: replace what an item says about passing, in its own words, and add a note to it.
//! Not its role: writing the file; deciding. Invariants: every byte outside the changed values stays as it was;
//! what already is so is left alone, so a change made twice is made once; all that the item says about passing
//! changes together, so a change never leaves a contradiction.

use super::error::ChangeError;
use super::item::{Item, NotesAt, NotesForm};
use super::json::{self, Span};
use super::verdict::{How, default_word};
use super::{MOST_BYTES, MOST_NOTE_BYTES, Prd};

/// What shall be different in an item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    pub passes: Option<bool>,
    /// Added to the notes there are.
    pub note: Option<String>,
}

impl Change {
    pub fn passes(passes: bool) -> Self {
        Self { passes: Some(passes), note: None }
    }

    pub fn with_note(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }
}

/// One replacement in the text. An empty span is an insertion.
struct Edit {
    span: Span,
    with: String,
}

impl Edit {
    fn insert(at: usize, with: String) -> Self {
        Self { span: Span { start: at, end: at }, with }
    }
}

impl Prd {
    /// The text of the file with that change, and no other.
    pub fn with_item(&self, id: &str, change: &Change) -> Result<String, ChangeError> {
        let item = self.item(id).ok_or_else(|| ChangeError::NoSuchItem { id: id.to_owned() })?;
        let mut edits = Vec::new();
        if let Some(passes) = change.passes.filter(|passes| *passes != item.passes) {
            edits.extend(self.verdict_edits(item, passes));
        }
        if let Some(note) = change.note.as_deref().filter(|note| !note.trim().is_empty()) {
            if note.len() > MOST_NOTE_BYTES {
                return Err(ChangeError::NoteTooLong(note.len()));
            }
            edits.extend(self.note_edit(item, note)?);
        }
        let text = applied(&self.text, edits);
        if text.len() > MOST_BYTES { Err(ChangeError::TooLarge(text.len())) } else { Ok(text) }
    }

    fn verdict_edits(&self, item: &Item, passes: bool) -> Vec<Edit> {
        let edit = |span: Span, how: How| match how {
            How::Flag => Edit { span, with: passes.to_string() },
            How::Status { .. } => Edit { span, with: self.status_word(span, passes) },
        };
        item.verdicts.iter().map(|verdict| edit(verdict.value, verdict.how)).collect()
    }

    /// The word that other items of this file use for it, else a common one.
    fn status_word(&self, now: Span, passes: bool) -> String {
        let verdicts = self.items.iter().flat_map(|item| &item.verdicts);
        let mut words = verdicts.filter(|verdict| match verdict.how {
            How::Flag => false,
            // Back to the start, not to some stage of being worked on.
            How::Status { untouched } => verdict.passes == passes && (passes || untouched),
        });
        match words.next() {
            Some(verdict) => verdict.value.of(&self.text).to_owned(),
            None => default_word(passes, now.of(&self.text)),
        }
    }

    fn note_edit(&self, item: &Item, note: &str) -> Result<Option<Edit>, ChangeError> {
        let notes = item.notes.as_deref().unwrap_or_default();
        if notes == note || notes.strip_suffix(note).is_some_and(|before| before.ends_with('\n')) {
            return Ok(None);
        }
        let quoted = serde_json::Value::from(note).to_string();
        let Some(NotesAt { span, form }) = &item.notes_at else { return Ok(self.new_notes(item, &quoted)) };
        let edit = match form {
            NotesForm::Null => Edit { span: *span, with: quoted },
            NotesForm::Text if notes.trim().is_empty() => Edit { span: *span, with: quoted },
            // Before the closing quote; what is there keeps its escapes.
            NotesForm::Text => Edit::insert(span.end - 1, format!("\\n{}", &quoted[1..quoted.len() - 1])),
            NotesForm::List { last: None } => Edit::insert(span.start + 1, quoted),
            NotesForm::List { last: Some(last) } => {
                Edit::insert(last.end, format!(",{}{quoted}", json::blanks_before(&self.text, last.start)))
            }
            NotesForm::Other(found) => {
                let line = self.place(span.start).0;
                return Err(ChangeError::NotesAreNotText { id: item.id.clone(), line, found });
            }
        };
        Ok(Some(edit))
    }

    /// A member of its own, behind the verdict (whose line changes anyway) and laid out like it.
    fn new_notes(&self, item: &Item, quoted: &str) -> Option<Edit> {
        let verdict = item.verdicts.first()?;
        let blanks = json::blanks_before(&self.text, verdict.key_span.start);
        let colon = Span { start: verdict.key_span.end, end: verdict.value.start }.of(&self.text);
        Some(Edit::insert(verdict.value.end, format!(",{blanks}\"notes\"{colon}{quoted}")))
    }
}

/// The edits do not overlap: they are of different values.
fn applied(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| edit.span);
    let mut out = String::with_capacity(text.len() + edits.iter().map(|edit| edit.with.len()).sum::<usize>());
    let mut at = 0;
    for edit in &edits {
        out.push_str(Span { start: at, end: edit.span.start }.of(text));
        out.push_str(&edit.with);
        at = edit.span.end;
    }
    out.push_str(Span { start: at, end: text.len() }.of(text));
    out
}
