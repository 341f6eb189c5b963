//! prd.json: the items of work, whether each one passes, and how to say so without touching anything else.
//!
//! Role: read the shapes that are found in the wild into one type; change an item in place; bring a change into a
//! file that somebody else has changed meanwhile; choose the next item and count.
//! Not its role: reading and writing the file; deciding that an item passes.
//! Invariants: nothing is guessed. What does not say clearly whether it passes is an error that names the item and
//! what to write. A [`Prd`] has at least one item, and its ids differ. A change leaves every other byte as it was.

mod error;
mod item;
mod json;
mod list;
mod merge;
mod priority;
mod read_when;
mod select;
mod split;
#[cfg(test)]
mod tests;
mod verdict;
mod write;

use std::collections::HashMap;

pub use error::{ChangeError, PrdError, Why};
pub use item::Item;
pub use json::{Span, Syntax};
pub use list::{Shape, Step};
pub use merge::{Merged, NotMerged, merge};
pub use priority::{Priority, Scale};
pub use read_when::ReadWhen;
pub use select::{Counts, NoChoice};
pub use verdict::{How, PassesValue};
pub use write::Change;

use json::{Member, Node};

/// A larger file is refused before it is read.
pub const MOST_BYTES: usize = 4 << 20;
/// More items are refused.
pub const MOST_ITEMS: usize = 10_000;
/// A longer note is not written.
pub const MOST_NOTE_BYTES: usize = 16 << 10;

/// A file of items of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prd {
    text: String,
    items: Vec<Item>,
    shape: Shape,
    name: Option<String>,
    branch: Option<String>,
    description: Option<String>,
}

impl Prd {
    /// Reads a file as it is on disk.
    pub fn read(bytes: &[u8]) -> Result<Self, PrdError> {
        if bytes.len() > MOST_BYTES {
            return Err(PrdError { why: Why::TooLarge(bytes.len()), line: 1, column: 1 });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let before = String::from_utf8_lossy(before);
            refused(&before, before.len(), if utf16 { Why::Utf16 } else { Why::NotUtf8 })
        })?;
        let root = json::read(text).map_err(|fault| match merge_marks(text) {
            Some(at) => refused(text, at, Why::MergeMarks),
            None => refused(text, fault.at, Why::NotJson(fault.what)),
        })?;
        Self::from_document(text, &root).map_err(|(at, why)| refused(text, at, why))
    }

    fn from_document(text: &str, root: &Node) -> Result<Self, (usize, Why)> {
        let (shape, elements) = list::find(text, root)?;
        let items = elements
            .into_iter()
            .map(|element| item::read(text, element.path, element.node))
            .collect::<Result<Vec<_>, _>>()?;
        ids_differ(text, &items)?;
        priority::one_scale(&items)?;
        let items = split::without_split(items);
        let heads = heads(root, &shape);
        let head = |names: &[&str]| heads.iter().rev().find_map(|members| first_text(members, names));
        Ok(Self {
            name: head(&["project", "name", "feature", "title"]),
            branch: head(&["branchname", "branch"]),
            description: head(&["description", "projectdescription"]),
            text: text.to_owned(),
            items,
            shape,
        })
    }

    /// The file as it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// In file order; never empty.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    pub fn item(&self, id: &str) -> Option<&Item> {
        self.items.iter().find(|item| item.id == id)
    }

    /// Where the list is, e.g. `userStories` or `phases[].tasks`.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The branch that the work belongs on.
    pub fn branch(&self) -> Option<&str> {
        self.branch.as_deref()
    }

    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Line and column of a byte of the text, from one.
    pub fn place(&self, at: usize) -> (usize, usize) {
        json::place(&self.text, at)
    }
}

fn refused(text: &str, at: usize, why: Why) -> PrdError {
    let (line, column) = json::place(text, at);
    PrdError { why, line, column }
}

/// Where an unfinished merge left its first mark.
fn merge_marks(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ") {
            return Some(at);
        }
        at += line.len();
    }
    None
}

fn ids_differ(text: &str, items: &[Item]) -> Result<(), (usize, Why)> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    for item in items {
        let Some(first) = known.insert(&item.id, item.span.start) else { continue };
        let first_line = json::place(text, first).0;
        let why = match item.id_is_given {
            true => Why::TwiceId { id: error::quote(&item.id), first_line },
            false => Why::Twins { first_line },
        };
        return Err((item.span.start, why));
    }
    Ok(())
}

/// The members of the document and of the objects around its list, outermost first.
fn heads<'a>(root: &'a Node, shape: &Shape) -> Vec<&'a [Member]> {
    let mut heads: Vec<&[Member]> = root.members().into_iter().collect();
    for key in shape.wrappers() {
        let inner = heads.last().and_then(|members| members.iter().find(|member| member.key == key));
        heads.extend(inner.and_then(|member| member.value.members()));
    }
    heads
}

/// The first member under one of the names, in the order of the names.
fn first_named<'a>(members: &'a [Member], names: &[&str]) -> Option<&'a Member> {
    names.iter().find_map(|name| members.iter().find(|member| is(&member.key, name)))
}

/// The first text under one of the names that is not blank.
fn first_text(members: &[Member], names: &[&str]) -> Option<String> {
    let texts = names.iter().filter_map(|name| first_named(members, &[name])?.value.text());
    texts.map(str::trim).find(|text| !text.is_empty()).map(str::to_owned)
}

/// Is it the word, apart from differences in spelling that mean nothing: `acceptance_criteria`, `AcceptanceCriteria`?
/// The name is in small letters, without anything between them.
fn is(word: &str, name: &str) -> bool {
    let letters = word.bytes().filter(|byte| !matches!(byte, b'_' | b'-' | b' '));
    letters.map(|byte| byte.to_ascii_lowercase()).eq(name.bytes())
}

fn is_one_of(word: &str, names: &[&str]) -> bool {
    names.iter().any(|name| is(word, name))
}
