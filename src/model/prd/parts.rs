//! What an item is made of and says of itself whether it is met: criteria, steps, subtasks; and where a proof goes.
//!
//! Role: find them and their words. Not its role: whether the item passes; what a part asks for (`item`).
//! Invariants: a part whose words are unclear is left alone; only a place in which nothing stands takes a proof.

use super::item::CRITERIA;
use super::json::{JsonKind, Member, Node, Span};
use super::verdict::{self, PassesValue};
use super::{first_named, is_one_of};

/// Where a harness keeps what showed that something passes.
const PROOFS: &[&str] = &["evidence", "proof"];
/// Lists of parts beside those that say what must hold.
const MORE: &[&str] = &["checks", "checklist", "todos", "tasks"];

/// A criterion or a subtask with a verdict of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Never empty, and of one mind.
    pub verdicts: Vec<PassesValue>,
    pub blanks: Vec<Blank>,
}

impl Part {
    pub fn passes(&self) -> bool {
        self.verdicts.first().is_some_and(|verdict| verdict.passes)
    }
}

/// A place for a proof in which nothing stands: null, no text, or an empty list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blank {
    pub span: Span,
    pub is_list: bool,
}

pub(super) fn is_proof(key: &str) -> bool {
    is_one_of(key, PROOFS)
}

/// The parts of an item with these members.
pub(super) fn read(members: &[Member]) -> Vec<Part> {
    let lists = CRITERIA.iter().chain(MORE).filter_map(|name| first_named(members, &[name]));
    lists.flat_map(|member| nodes(&member.value)).filter_map(part).collect()
}

/// The objects of a list; an object, and those of its lists.
fn nodes(value: &Node) -> Vec<&Node> {
    match &value.kind {
        JsonKind::List(nodes) => nodes.iter().collect(),
        JsonKind::Object(members) => {
            let inner = members.iter().filter_map(|member| member.value.list());
            std::iter::once(value).chain(inner.flatten()).collect()
        }
        JsonKind::Null | JsonKind::Flag(_) | JsonKind::Number | JsonKind::Text(_) => Vec::new(),
    }
}

fn part(node: &Node) -> Option<Part> {
    let members = node.members()?;
    let verdicts = verdict::read("", node.span.start, members).ok()?;
    (!verdicts.is_empty()).then(|| Part { verdicts, blanks: blanks(members) })
}

/// Places for a proof among these members.
pub(super) fn blanks(members: &[Member]) -> Vec<Blank> {
    let proofs = members.iter().filter(|member| is_proof(&member.key));
    proofs
        .filter_map(|member| {
            let is_list = match &member.value.kind {
                JsonKind::Null => false,
                JsonKind::Text(text) if text.trim().is_empty() => false,
                JsonKind::List(nodes) if nodes.is_empty() => true,
                _ => return None,
            };
            Some(Blank { span: member.value.span, is_list })
        })
        .collect()
}
