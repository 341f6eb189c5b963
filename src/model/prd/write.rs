//! Changing one item in the text of its file.
//!
//! Role: replace what an item and its parts say about passing, in their own words; add a note and a proof.
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
    /// What shows that it passes: written where the item has a place for it in which nothing stands.
    pub proof: Option<String>,
}

impl Change {
    pub fn passes(passes: bool) -> Self {
        Self { passes: Some(passes), ..Self::default() }
    }

    pub fn with_proof(self, proof: impl Into<String>) -> Self {
        Self { proof: Some(proof.into()), ..self }
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
            edits.extend(if self.silent { self.first_verdicts(item) } else { self.verdict_edits(item, passes) });
            if passes {
                edits.extend(self.part_edits(item));
                edits.extend(change.proof.as_deref().into_iter().flat_map(|proof| proof_edits(item, proof)));
            }
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
        let edit = |key: &str, span: Span, how: How| match how {
            How::Flag => Edit { span, with: passes.to_string() },
            How::Status { .. } => Edit { span, with: self.status_word(key, span, passes) },
        };
        item.verdicts.iter().map(|verdict| edit(&verdict.key, verdict.value, verdict.how)).collect()
    }

    /// Where nothing says whether anything passes, one item can say it only if all do: what is left unsaid of others
    /// could be read either way.
    fn first_verdicts(&self, passing: &Item) -> Vec<Edit> {
        let said = |item: &Item| {
            let (key, value) = item.last;
            let (blanks, colon) = self.layout(key, value);
            Edit::insert(value.end, format!(",{blanks}\"passes\"{colon}{}", item.id == passing.id))
        };
        self.items.iter().map(said).collect()
    }

    /// What the item is made of and says that it is not met is met with it.
    fn part_edits(&self, item: &Item) -> Vec<Edit> {
        let open = item.parts.iter().filter(|part| !part.passes()).flat_map(|part| &part.verdicts);
        open.map(|verdict| Edit {
            span: verdict.value,
            with: match verdict.how {
                How::Flag => true.to_string(),
                How::Status { .. } => self.part_word(&verdict.key, verdict.value),
            },
        })
        .collect()
    }

    /// The word that other parts of this file use for it, else what items say.
    fn part_word(&self, key: &str, now: Span) -> String {
        let parts = self.items.iter().flat_map(|item| &item.parts).filter(|part| part.passes());
        let said = parts.flat_map(|part| &part.verdicts).find(|verdict| verdict.key == key && verdict.how != How::Flag);
        said.map_or_else(|| self.status_word(key, now, true), |verdict| verdict.value.of(&self.text).to_owned())
    }

    /// The word that other items of this file use for it under that key, else a common one.
    fn status_word(&self, key: &str, now: Span, passes: bool) -> String {
        let verdicts = self.items.iter().flat_map(|item| &item.verdicts).filter(|verdict| verdict.key == key);
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
        let Some(NotesAt { span, form }) = &item.notes_at else { return Ok(Some(self.new_notes(item, &quoted))) };
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
    fn new_notes(&self, item: &Item, quoted: &str) -> Edit {
        let (key, value) = item.verdicts.first().map_or(item.last, |verdict| (verdict.key_span, verdict.value));
        let (blanks, colon) = self.layout(key, value);
        Edit::insert(value.end, format!(",{blanks}\"notes\"{colon}{quoted}"))
    }

    /// The blanks before a member, and what stands between its key and its value.
    fn layout(&self, key: Span, value: Span) -> (&str, &str) {
        (json::blanks_before(&self.text, key.start), Span { start: key.end, end: value.start }.of(&self.text))
    }
}

fn proof_edits(item: &Item, proof: &str) -> Vec<Edit> {
    let quoted = serde_json::Value::from(proof).to_string();
    let parts = item.parts.iter().filter(|part| !part.passes()).flat_map(|part| &part.blanks);
    item.blanks
        .iter()
        .chain(parts)
        .map(|blank| Edit {
            span: blank.span,
            with: if blank.is_list { format!("[{quoted}]") } else { quoted.clone() },
        })
        .collect()
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
