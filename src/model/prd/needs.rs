//! What an item waits for: other items that have to pass before.
//!
//! Role: read the ids that an item names; say which of them are open, which name nothing, and which stand in a circle.
//! Not its role: choosing an item. Invariants: an id that names nothing holds nothing up; a circle is broken where its
//! first item in order waits for a later one, so that something can always be worked on; the same items give the same
//! answer; time is linear in items and names.

use std::collections::{BTreeMap, HashMap};

use super::first_named;
use super::json::{JsonKind, Member, Node};

const KEYS: &[&str] = &["dependson", "dependencies", "deps", "blockedby", "dependsupon", "prerequisites"];
/// Ids that an item may name; the rest are left out.
const MOST: usize = 200;
/// Where an object that stands for an item keeps its id.
const IDS: &[&str] = &["id", "story", "item", "task"];
const LONGEST_ID: usize = 200;
/// Words that people write where nothing has to be done before.
const NOTHING: &[&str] = &["none", "n/a", "-", "null"];

/// The ids under all keys that name what has to pass before, each once.
pub(super) fn named(text: &str, members: &[Member]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for value in KEYS.iter().filter_map(|key| first_named(members, &[key])).map(|member| &member.value) {
        let each: Vec<&Node> = match &value.kind {
            JsonKind::List(nodes) => nodes.iter().collect(),
            _ => vec![value],
        };
        for id in each.into_iter().filter_map(|node| id_of(text, node)) {
            if ids.len() < MOST && !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    ids
}

fn id_of(text: &str, node: &Node) -> Option<String> {
    let id = match &node.kind {
        JsonKind::Text(id) => id.trim(),
        JsonKind::Number => node.span.of(text),
        JsonKind::Object(members) => return id_of(text, &first_named(members, IDS)?.value),
        JsonKind::Null | JsonKind::Flag(_) | JsonKind::List(_) => return None,
    };
    let is_nothing = id.is_empty() || id.len() > LONGEST_ID || NOTHING.contains(&id.to_ascii_lowercase().as_str());
    (!is_nothing).then(|| id.to_owned())
}

/// An item, as far as waiting goes.
#[derive(Debug, Clone, Copy)]
pub struct Waiting<'a> {
    pub id: &'a str,
    pub passes: bool,
    /// Its place in the order of the work.
    pub order: u32,
    pub needs: &'a [String],
}

/// What waits for what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// For each item the places of those it waits for: named, not passing, and not given up to break a circle.
    pub open: Vec<Vec<usize>>,
    /// Who names what is not there.
    pub unknown: Vec<(usize, String)>,
    /// Items that wait for each other, in the order of the work.
    pub circles: Vec<Vec<usize>>,
}

impl Needs {
    pub fn of(items: &[Waiting<'_>]) -> Self {
        let mut needs = Self { open: vec![Vec::new(); items.len()], ..Self::default() };
        if items.iter().all(|item| item.needs.is_empty()) {
            return needs;
        }
        let places: HashMap<&str, usize> = items.iter().enumerate().map(|(at, item)| (item.id, at)).collect();
        let mut named: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
        for (at, item) in items.iter().enumerate().filter(|(_, item)| !item.passes) {
            for id in item.needs {
                match places.get(id.as_str()) {
                    Some(other) if items[*other].passes => {}
                    Some(other) => named[at].push(*other),
                    None => needs.unknown.push((at, id.clone())),
                }
            }
        }
        let groups = groups(&named);
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, others) in named.iter().enumerate() {
            let closes = |other: usize| groups[other] == groups[at] && items[other].order >= items[at].order;
            needs.open[at] = others.iter().copied().filter(|other| !closes(*other)).collect();
            members.entry(groups[at]).or_default().push(at);
        }
        for mut circle in members.into_values() {
            if circle.len() > 1 || circle.iter().any(|at| named[*at].contains(at)) {
                circle.sort_by_key(|at| items[*at].order);
                needs.circles.push(circle);
            }
        }
        needs.circles.sort_by_key(|circle| circle.first().map(|at| items[*at].order));
        needs
    }

    /// What is worth saying about them: ids that name nothing, and circles. At most `most` lines.
    pub fn warnings(&self, items: &[Waiting<'_>], most: usize) -> Vec<String> {
        let id = |at: &usize| super::error::quote(items[*at].id);
        let unknown = self.unknown.iter().map(|(at, other)| {
            format!("{} waits for `{}`, which is no item: it does not wait", id(at), super::error::quote(other))
        });
        let circles = self.circles.iter().map(|circle| {
            let names: Vec<String> = circle.iter().take(8).map(id).collect();
            let more = if circle.len() > 8 { ", …" } else { "" };
            let first = names.first().cloned().unwrap_or_default();
            format!("{}{more} wait for each other: {first} comes first", names.join(", "))
        });
        let mut lines: Vec<String> = unknown.chain(circles).collect();
        let left_out = lines.len().saturating_sub(most);
        if left_out > 0 {
            lines.truncate(most.saturating_sub(1));
            lines.push(format!("and {} more of that kind", left_out + 1));
        }
        lines
    }
}

/// For each place the number of its strongly connected component (Tarjan, without recursion).
fn groups(edges: &[Vec<usize>]) -> Vec<usize> {
    const NEW: usize = usize::MAX;
    let count = edges.len();
    let (mut index, mut low, mut group) = (vec![NEW; count], vec![0; count], vec![NEW; count]);
    let (mut next, mut next_group) = (0, 0);
    let mut open: Vec<usize> = Vec::new();
    for root in 0..count {
        if index[root] != NEW {
            continue;
        }
        // (place, edges looked at)
        let mut path: Vec<(usize, usize)> = vec![(root, 0)];
        while let Some((at, seen)) = path.pop() {
            if seen == 0 {
                index[at] = next;
                low[at] = next;
                next += 1;
                open.push(at);
            }
            match edges[at].get(seen) {
                Some(other) if index[*other] == NEW => path.extend([(at, seen + 1), (*other, 0)]),
                Some(other) => {
                    if group[*other] == NEW {
                        low[at] = low[at].min(index[*other]);
                    }
                    path.push((at, seen + 1));
                }
                None => {
                    if low[at] == index[at] {
                        while let Some(member) = open.pop() {
                            group[member] = next_group;
                            if member == at {
                                break;
                            }
                        }
                        next_group += 1;
                    }
                    if let Some((parent, _)) = path.last() {
                        low[*parent] = low[*parent].min(low[at]);
                    }
                }
            }
        }
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(id, passes, needs)`, in the order of the work.
    fn needs(items: &[(&str, bool, &[&str])]) -> (Vec<String>, Vec<String>) {
        let ids: Vec<Vec<String>> =
            items.iter().map(|item| item.2.iter().map(|id| (*id).to_owned()).collect()).collect();
        let items: Vec<Waiting<'_>> = items
            .iter()
            .zip(&ids)
            .enumerate()
            .map(|(at, (item, needs))| Waiting { id: item.0, passes: item.1, order: u32::try_from(at).unwrap(), needs })
            .collect();
        let needs = Needs::of(&items);
        let open = needs.open.iter().map(|open| open.iter().map(|at| items[*at].id).collect::<Vec<_>>().join("+"));
        (open.collect(), needs.warnings(&items, 5))
    }

    #[test]
    fn only_what_does_not_pass_is_waited_for() {
        let (open, warnings) =
            needs(&[("a", true, &[]), ("b", false, &["a"]), ("c", false, &["a", "b"]), ("d", true, &["c"])]);
        assert_eq!(open, ["", "", "b", ""]);
        assert!(warnings.is_empty());
    }

    #[test]
    fn what_is_not_there_holds_nothing_up_and_is_said() {
        let (open, warnings) = needs(&[("a", false, &["x", "b"]), ("b", false, &[])]);
        assert_eq!(open, ["b", ""]);
        assert_eq!(warnings, ["a waits for `x`, which is no item: it does not wait"]);
    }

    #[test]
    fn a_circle_begins_with_its_first_item() {
        let (open, warnings) =
            needs(&[("a", false, &["c"]), ("b", false, &["a"]), ("c", false, &["b"]), ("d", false, &["d"])]);
        assert_eq!(open, ["", "a", "b", ""]);
        assert_eq!(warnings, ["a, b, c wait for each other: a comes first", "d wait for each other: d comes first"]);
    }

    /// Whatever names whatever, something that does not pass can be worked on.
    #[test]
    fn something_can_always_be_worked_on() {
        for seed in 0..500_u64 {
            let mut number = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut draw = |below: u64| {
                number ^= number << 13;
                number ^= number >> 7;
                number ^= number << 17;
                number % below
            };
            let ids: Vec<String> = (0..12).map(|at: u32| at.to_string()).collect();
            let named: Vec<Vec<String>> =
                ids.iter().map(|_| (0..draw(4)).map(|_| draw(13).to_string()).collect()).collect();
            let items: Vec<Waiting<'_>> = ids
                .iter()
                .zip(&named)
                .enumerate()
                .map(|(at, (id, needs))| Waiting { id, passes: draw(3) == 0, order: u32::try_from(at).unwrap(), needs })
                .collect();
            let open = Needs::of(&items).open;
            let mut left: Vec<usize> = (0..12).filter(|at| !items[*at].passes).collect();
            while !left.is_empty() {
                let before = left.len();
                let waits = left.clone();
                left.retain(|at| open[*at].iter().any(|other| waits.contains(other)));
                assert!(left.len() < before, "seed {seed}: {left:?} wait for ever");
            }
        }
    }
}
