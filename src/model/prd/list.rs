//! Where in a document the items are.
//!
//! Role: find the one list (or the one kind of list, such as the tasks of every phase) that holds the work.
//! Not its role: reading items. Invariants: a list is chosen by what its elements say, never by standing first;
//! two kinds of list that could be meant are an error; no list, or an empty one, never reads as "all done".

use super::error::{Why, quote};
use super::json::{Node, Span};
use super::{MOST_ITEMS, is_one_of, item, verdict};

/// Names under which lists of work are kept. Elsewhere only a list that says `passes` counts.
const NAMES: &[&str] = &[
    "items",
    "userstories",
    "stories",
    "tasks",
    "features",
    "issues",
    "requirements",
    "backlog",
    "todos",
    "tickets",
    "workitems",
];

/// So many lists are looked at to explain why none of them will do.
const MOST_NAMED: usize = 100;

/// A step from a value to one inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    /// Every element of a list.
    Each,
}

/// How to get from the document to its lists of items; without steps it is a list itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape(pub Vec<Step>);

impl Shape {
    /// Keys of the objects around the list, outermost first, as far as there is only one of each.
    pub fn wrappers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map_while(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Each => None,
        })
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("the whole document");
        }
        let mut path = String::new();
        for step in &self.0 {
            match step {
                Step::Key(key) => push_key(&mut path, key),
                Step::Each => path.push_str("[]"),
            }
        }
        f.write_str(&path)
    }
}

/// An element of the list, with its path.
#[derive(Debug)]
pub struct Element<'a> {
    pub path: String,
    pub node: &'a Node,
}

/// The list of work, and what is in it.
#[derive(Debug)]
pub struct List<'a> {
    pub shape: Shape,
    pub elements: Vec<Element<'a>>,
    /// Nothing in the document says of anything whether it passes.
    pub silent: bool,
}

/// The list of work. The byte is where the trouble is.
pub fn find<'a>(text: &str, root: &'a Node) -> Result<List<'a>, (usize, Why)> {
    let mut found = Vec::new();
    search(root, None, &mut Vec::new(), &mut found, is_work);
    let silent = found.is_empty();
    if silent {
        search(root, None, &mut Vec::new(), &mut found, is_silent);
    }
    match found.as_slice() {
        [] => Err(nothing_found(text, root)),
        [(shape, _)] => {
            let mut elements = Vec::new();
            collect(root, &shape.0, String::new(), &mut elements)?;
            let odd = |element: &&Element<'_>| silent && element.node.members().is_some_and(verdict::hints);
            match elements.iter().find(odd).is_some() || (silent && says_done(root, &shape.0)) {
                true => Err(nothing_found(text, root)),
                false => Ok(List { shape: shape.clone(), elements, silent }),
            }
        }
        [(first, _), (second, span), ..] => {
            let why = Why::TwoLists { first: quote(&first.to_string()), second: quote(&second.to_string()) };
            Err((span.start, why))
        }
    }
}

/// Does anything around the lists of that shape say that it is done? Then its items may be, too.
fn says_done(node: &Node, steps: &[Step]) -> bool {
    let Some((step, rest)) = steps.split_first() else { return false };
    let members = node.members().unwrap_or_default();
    let done = verdict::read("", node.span.start, members);
    let is_done = done.is_ok_and(|verdicts| verdicts.first().is_some_and(|verdict| verdict.passes));
    is_done
        || match step {
            Step::Key(key) => members.iter().any(|member| member.key == *key && says_done(&member.value, rest)),
            Step::Each => node.list().unwrap_or_default().iter().any(|inner| says_done(inner, rest)),
        }
}

/// Does a list say of its elements whether they pass?
fn is_work(nodes: &[Node], known: bool) -> bool {
    let mut members = nodes.iter().filter_map(Node::members);
    if known { members.any(verdict::speaks) } else { members.any(verdict::speaks_plainly) }
}

/// Is it a list of work by its name and its elements, which say nothing of passing?
fn is_silent(nodes: &[Node], known: bool) -> bool {
    known && !nodes.is_empty() && nodes.iter().all(|node| node.members().is_some_and(item::says_what_to_do))
}

/// Collects the first two shapes that could be meant; two are enough to refuse.
fn search(
    node: &Node,
    name: Option<&str>,
    steps: &mut Vec<Step>,
    found: &mut Vec<(Shape, Span)>,
    is_list: fn(&[Node], bool) -> bool,
) {
    if found.len() > 1 {
        return;
    }
    if let Some(nodes) = node.list() {
        let known = name.is_none_or(|name| is_one_of(name, NAMES));
        let is_work = is_list(nodes, known);
        if is_work && found.iter().all(|(shape, _)| shape.0 != *steps) {
            found.push((Shape(steps.clone()), node.span));
        }
        if is_work && known {
            // What an item is made of is its own affair.
            return;
        }
        steps.push(Step::Each);
        for inner in nodes {
            search(inner, name, steps, found, is_list);
        }
        steps.pop();
    } else {
        for member in node.members().unwrap_or_default() {
            steps.push(Step::Key(member.key.clone()));
            search(&member.value, Some(&member.key), steps, found, is_list);
            steps.pop();
        }
    }
}

/// Every element of every list of that shape.
fn collect<'a>(
    node: &'a Node,
    steps: &[Step],
    path: String,
    elements: &mut Vec<Element<'a>>,
) -> Result<(), (usize, Why)> {
    let at = node.span.start;
    let Some((step, rest)) = steps.split_first() else {
        let nodes = node.list().ok_or_else(|| (at, Why::NotAList { path: quote(&path), found: node.noun() }))?;
        for (index, node) in nodes.iter().enumerate() {
            let path = format!("{path}[{index}]");
            if node.members().is_none() {
                return Err((node.span.start, Why::NotAnItem { path: quote(&path), found: node.noun() }));
            }
            if elements.len() == MOST_ITEMS {
                return Err((node.span.start, Why::TooManyItems));
            }
            elements.push(Element { path, node });
        }
        return Ok(());
    };
    match step {
        Step::Key(key) => {
            let members = node.members().unwrap_or_default();
            for member in members.iter().filter(|member| member.key == *key) {
                let mut path = path.clone();
                push_key(&mut path, key);
                collect(&member.value, rest, path, elements)?;
            }
        }
        Step::Each => {
            for (index, inner) in node.list().unwrap_or_default().iter().enumerate() {
                collect(inner, rest, format!("{path}[{index}]"), elements)?;
            }
        }
    }
    Ok(())
}

/// Keys are cut, so that a long one cannot multiply by the number of items.
fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(&quote(key));
}

/// What the document has instead of items that say whether they pass.
fn nothing_found(text: &str, root: &Node) -> (usize, Why) {
    let mut named = Vec::new();
    named_lists(root, "", root.list().is_some(), &mut named);
    // The list that is nearest to being one of items explains most.
    let with_objects = named.iter().find_map(|(path, list)| {
        let index = list.list()?.iter().position(|node| node.members().is_some())?;
        Some((format!("{path}[{index}]"), list.list()?.get(index)?))
    });
    if let Some((path, item)) = with_objects {
        return (item.span.start, Why::VerdictMissing { item: quote(&item::called(text, &path, item)) });
    }
    let filled = named.iter().find_map(|(path, list)| Some((path, list.list()?.first()?)));
    if let Some((path, first)) = filled {
        return (first.span.start, Why::NotAnItem { path: quote(&format!("{path}[0]")), found: first.noun() });
    }
    if let Some((path, list)) = named.first() {
        let list_name = if path.is_empty() { "the whole document".to_owned() } else { quote(path) };
        return (list.span.start, Why::NoItems { list: list_name });
    }
    let what = match root.members() {
        Some([]) => "the document is an empty object".to_owned(),
        Some(members) => {
            let keys: Vec<String> = members.iter().take(5).map(|member| quote(&member.key)).collect();
            let more = if members.len() > 5 { ", …" } else { "" };
            format!("the document has only {}{more}", keys.join(", "))
        }
        None => format!("the document is {}", root.noun()),
    };
    (root.span.start, Why::NoList { what })
}

/// Lists under the names of lists of work, and the document itself if it is one.
fn named_lists<'a>(node: &'a Node, path: &str, named: bool, out: &mut Vec<(String, &'a Node)>) {
    if out.len() == MOST_NAMED {
        return;
    }
    if let Some(nodes) = node.list() {
        if named {
            out.push((path.to_owned(), node));
            return;
        }
        for (index, inner) in nodes.iter().enumerate() {
            named_lists(inner, &format!("{path}[{index}]"), false, out);
        }
    }
    for member in node.members().unwrap_or_default() {
        let mut path = path.to_owned();
        push_key(&mut path, &member.key);
        named_lists(&member.value, &path, is_one_of(&member.key, NAMES), out);
    }
}
