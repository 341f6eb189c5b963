//! One item of work, in whatever words the file uses.
//!
//! Role: the item's type, and reading one from its object. Not its role: the list, order, changes.
//! Invariants: texts are as written apart from blanks around them; the verdict is never a guess; an item without an
//! id of its own gets one from what it says, so that it stays the same item wherever in the list it stands.

use super::command;
use super::error::{Why, quote};
use super::json::{JsonKind, Member, Node, Span};
use super::needs;
use super::parts::{self, Blank, Part};
use super::priority::Priority;
use super::split;
use super::verdict::{self, PassesValue};
use super::{first_named, first_text, is_one_of};
use crate::model::digest::Digest;

/// Longer ids are refused.
const LONGEST_ID: usize = 200;

const TITLES: &[&str] = &["title", "name", "story", "task", "summary", "behavior", "behaviour", "feature"];
const DESCRIPTIONS: &[&str] = &["description", "details"];
/// What must hold, the most explicit first; of several, the first that says anything counts.
pub(super) const CRITERIA: &[&str] = &[
    "acceptancecriteria",
    "acceptance",
    "criteria",
    "validationsteps",
    "validation",
    "verification",
    "tests",
    "verificationcmd",
    "verify",
    "steps",
    "subtasks",
];
const NOTES: &[&str] = &["notes", "completionnotes"];
/// Where an object that stands for a criterion keeps its sentence.
const SENTENCES: &[&str] = &["description", "criterion", "text", "title", "name"];

/// One item of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// As written; for an item without one, `~` and some digits of what it says.
    pub id: String,
    pub id_is_given: bool,
    /// The first line of the description where there is no title.
    pub title: String,
    pub description: Option<String>,
    pub acceptance: Vec<String>,
    pub priority: Option<Priority>,
    pub passes: bool,
    /// Several are joined by line breaks.
    pub notes: Option<String>,
    /// Ids of what has to pass before, as written; they may name nothing.
    pub needs: Vec<String>,
    /// A command of its own that shows whether it passes.
    pub command: Option<Vec<String>>,
    /// The ids of its parts, where a person split it.
    pub split_into: Vec<String>,
    /// Where in the document, e.g. `phases[1].tasks[0]`.
    pub path: String,
    /// The whole object.
    pub span: Span,
    /// All that the item says about passing, the plainest first, and of one mind; empty in a file that says nothing
    /// of it anywhere.
    pub(super) verdicts: Vec<PassesValue>,
    pub(super) notes_at: Option<NotesAt>,
    /// Its criteria and subtasks that say by themselves whether they are met.
    pub(super) parts: Vec<Part>,
    /// Places for a proof that nothing stands in.
    pub(super) blanks: Vec<Blank>,
    /// The key and the value of the last member.
    pub(super) last: (Span, Span),
}

/// Where the notes are, and what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotesAt {
    pub span: Span,
    pub form: NotesForm,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotesForm {
    Null,
    Text,
    List { last: Option<Span> },
    Other(&'static str),
}

impl Item {
    /// The value that says whether it passes; the plainest, where several do.
    pub fn verdict_span(&self) -> Span {
        self.verdicts.first().map_or(self.span, |verdict| verdict.value)
    }

    /// All values that say whether it passes.
    pub fn verdicts(&self) -> &[PassesValue] {
        &self.verdicts
    }

    /// What is asked for: when this differs, a proof for one is no proof for the other.
    pub fn asks_the_same(&self, other: &Self) -> bool {
        (&self.title, &self.description, &self.acceptance, &self.command)
            == (&other.title, &other.description, &other.acceptance, &other.command)
    }

    /// All values that a change of whether it passes may change.
    pub fn verdict_spans(&self) -> Vec<Span> {
        let parts = self.parts.iter().flat_map(|part| &part.verdicts);
        self.verdicts.iter().chain(parts).map(|verdict| verdict.value).collect()
    }

    /// How many of its criteria and subtasks say that they are not met, and how many say anything.
    pub fn parts_open(&self) -> (usize, usize) {
        (self.parts.iter().filter(|part| !part.passes()).count(), self.parts.len())
    }
}

/// Reads an object of the list. `silent`: nothing in the file says whether it passes. The byte is where the trouble is.
pub(super) fn read(text: &str, path: String, node: &Node, silent: bool) -> Result<Item, (usize, Why)> {
    let members = node.members().unwrap_or_default();
    let given = given_id(text, &path, members)?;
    let called = given.as_deref().unwrap_or(&path);
    let verdicts = if silent { Vec::new() } else { verdict::read(called, node.span.start, members)? };
    let priority = Priority::read(text, called, first_named(members, &["priority"]))?;
    let description = first_text(members, DESCRIPTIONS);
    let acceptance = criteria(text, members);
    let title = first_text(members, TITLES)
        .or_else(|| description.as_deref().and_then(|text| text.lines().next()).map(str::to_owned))
        .or_else(|| acceptance.first().cloned())
        .ok_or_else(|| (node.span.start, Why::SaysNothing { item: quote(called) }))?;
    let notes = first_named(members, NOTES).map(|member| &member.value);
    Ok(Item {
        id_is_given: given.is_some(),
        id: given.unwrap_or_else(|| id_from_what_it_says(&title, description.as_deref())),
        passes: verdicts.first().is_some_and(|verdict| verdict.passes),
        split_into: split::parts(members),
        notes: notes.and_then(|node| notes_text(text, node)),
        notes_at: notes.map(notes_at),
        needs: needs::named(text, members),
        command: command::of(members),
        parts: parts::read(members),
        blanks: parts::blanks(members),
        last: members.last().map_or((node.span, node.span), |last| (last.key_span, last.value.span)),
        span: node.span,
        title,
        description,
        acceptance,
        priority,
        path,
        verdicts,
    })
}

/// Is it told under a name of its own to whoever works on the item?
pub(super) fn is_shown(key: &str) -> bool {
    let plain = ["title", "name", "description", "details", "acceptancecriteria", "acceptance", "criteria", "id"];
    is_one_of(key, &plain) || is_one_of(key, NOTES) || verdict::is_verdict_key(key)
}

/// Does an object with these members say what is to be done?
pub(super) fn says_what_to_do(members: &[Member]) -> bool {
    first_text(members, TITLES).or_else(|| first_text(members, DESCRIPTIONS)).is_some()
}

/// What to call an object that cannot be read as an item: its id, or its path.
pub(super) fn called(text: &str, path: &str, node: &Node) -> String {
    let id = given_id(text, path, node.members().unwrap_or_default());
    id.ok().flatten().unwrap_or_else(|| path.to_owned())
}

fn given_id(text: &str, path: &str, members: &[Member]) -> Result<Option<String>, (usize, Why)> {
    let Some(member) = first_named(members, &["id"]) else { return Ok(None) };
    let id = match &member.value.kind {
        JsonKind::Text(id) => id.as_str(),
        JsonKind::Number => member.value.span.of(text),
        _ => "",
    };
    let found = match id {
        id if id.len() > LONGEST_ID => "longer than 200 bytes",
        id if !id.trim().is_empty() => return Ok(Some(id.to_owned())),
        _ if member.value.text().is_some() => "blank",
        _ => member.value.noun(),
    };
    Err((member.value.span.start, Why::BadId { path: quote(path), found }))
}

fn id_from_what_it_says(title: &str, description: Option<&str>) -> String {
    let digest = Digest::of_parts(&[title.as_bytes(), &[0], description.unwrap_or_default().as_bytes()]);
    format!("~{}", digest.short())
}

/// The first of the known keys that says anything.
fn criteria(text: &str, members: &[Member]) -> Vec<String> {
    let said =
        CRITERIA.iter().filter_map(|name| first_named(members, &[name])).map(|member| match &member.value.kind {
            JsonKind::List(nodes) => nodes.iter().filter_map(|node| sentence(text, node)).collect::<Vec<_>>(),
            _ => sentence(text, &member.value).into_iter().collect(),
        });
    said.into_iter().find(|criteria| !criteria.is_empty()).unwrap_or_default()
}

/// A value as a sentence: a text, the sentence of an object, or whatever it is, as written.
fn sentence(text: &str, node: &Node) -> Option<String> {
    let said = match &node.kind {
        JsonKind::Null => return None,
        JsonKind::Text(said) => said.clone(),
        JsonKind::Object(members) => {
            first_text(members, SENTENCES).unwrap_or_else(|| without_verdict(text, node.span, members))
        }
        JsonKind::Flag(_) | JsonKind::Number | JsonKind::List(_) => node.span.of(text).to_owned(),
    };
    let said = said.trim();
    (!said.is_empty()).then(|| said.to_owned())
}

/// An object as written, apart from what says whether it is met: that changes, and what is asked for does not.
fn without_verdict(text: &str, whole: Span, members: &[Member]) -> String {
    let changes = |member: &Member| verdict::is_verdict_key(&member.key) || parts::is_proof(&member.key);
    if !members.iter().any(changes) {
        return whole.of(text).to_owned();
    }
    let asked = members.iter().filter(|member| !changes(member));
    let asked: Vec<&str> =
        asked.map(|member| Span { start: member.key_span.start, end: member.value.span.end }.of(text)).collect();
    asked.join(", ")
}

/// Null is no notes; a list is its elements.
fn notes_text(text: &str, node: &Node) -> Option<String> {
    match &node.kind {
        JsonKind::Null => None,
        JsonKind::Text(said) => Some(said.clone()),
        JsonKind::List(nodes) => {
            let lines = nodes.iter().map(|node| node.text().unwrap_or_else(|| node.span.of(text)));
            Some(lines.collect::<Vec<_>>().join("\n"))
        }
        JsonKind::Flag(_) | JsonKind::Number | JsonKind::Object(_) => Some(node.span.of(text).to_owned()),
    }
}

fn notes_at(node: &Node) -> NotesAt {
    let form = match &node.kind {
        JsonKind::Null => NotesForm::Null,
        JsonKind::Text(_) => NotesForm::Text,
        JsonKind::List(nodes) => NotesForm::List { last: nodes.last().map(|last| last.span) },
        JsonKind::Flag(_) | JsonKind::Number | JsonKind::Object(_) => NotesForm::Other(node.noun()),
    };
    NotesAt { span: node.span, form }
}
