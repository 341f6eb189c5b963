//! An item that a person split: the parts stand behind it, and it says `splitInto` with their ids.
//!
//! Role: the draft of the parts, the text of the file with them, and which items are no work any more. Not its role:
//! writing the file; deciding that an item is to be split.
//! Invariants: every byte of the others stays as it was; an item is left out only while all of its parts are in the
//! file; the split item keeps its words and its verdict.

use super::item::{self, Item};
use super::json::{self, JsonKind, Node};
use super::{MOST_BYTES, Prd, first_named};

const SPLIT_INTO: &str = "splitInto";
/// A draft has as many parts.
const DRAFTED: [&str; 2] = ["a", "b"];

/// The ids of the parts that an object names.
pub(super) fn parts(members: &[json::Member]) -> Vec<String> {
    let named = first_named(members, &["splitinto"]).and_then(|member| member.value.list()).unwrap_or_default();
    named.iter().filter_map(Node::text).map(str::to_owned).collect()
}

/// The items without those whose parts are there.
pub(super) fn without_split(items: Vec<Item>) -> Vec<Item> {
    let is_there = |id: &String, but: &Item| items.iter().any(|other| other.id == *id && other.id != but.id);
    let is_split = |item: &Item| !item.split_into.is_empty() && item.split_into.iter().all(|id| is_there(id, item));
    let left: Vec<Item> = items.iter().filter(|item| !is_split(item)).cloned().collect();
    // Items that name each other in a circle leave nothing.
    if left.is_empty() { items } else { left }
}

impl Prd {
    /// A list of two parts to start from: each says what the item says, with an id and a title of its own.
    pub fn split_draft(&self, id: &str) -> Result<String, String> {
        let item = self.item(id).ok_or_else(|| format!("there is no item {id}"))?;
        let object = item.span.of(&self.text);
        let node = json::read(object).map_err(|fault| fault.what.to_string())?;
        let members = node.members().unwrap_or_default();
        let indent = indent_of(&self.text, item.span.start);
        let drafts = DRAFTED.iter().enumerate().map(|(index, letter)| {
            let words = [("id", format!("{id}{letter}")), ("title", format!("{} (part {})", item.title, index + 1))];
            let mut edits: Vec<(json::Span, String)> = Vec::new();
            for (key, word) in words {
                let quoted = serde_json::Value::from(word).to_string();
                match members.iter().find(|member| member.key == key) {
                    Some(member) => edits.push((member.value.span, quoted)),
                    None => {
                        let at = node.span.start + 1;
                        edits.push((json::Span { start: at, end: at }, format!("\"{key}\": {quoted},")));
                    }
                }
            }
            edits.sort_by_key(|(span, _)| std::cmp::Reverse(*span));
            let mut text = object.to_owned();
            for (span, with) in edits {
                text.replace_range(span.start..span.end, &with);
            }
            moved(&text, indent, "  ")
        });
        Ok(format!("[\n  {}\n]\n", drafts.collect::<Vec<_>>().join(",\n  ")))
    }

    /// The text of the file with the parts behind the item, and the item linked to them. `parts`: a list of objects.
    pub fn with_split(&self, id: &str, parts: &str) -> Result<(String, Vec<String>), String> {
        let old = self.item(id).ok_or_else(|| format!("there is no item {id}"))?;
        if old.passes {
            return Err(format!("{id} passes already"));
        }
        let root = json::read(parts).map_err(|fault| {
            let (line, column) = json::place(parts, fault.at);
            format!("the parts are not JSON: {line}:{column}: {}", fault.what)
        })?;
        let JsonKind::List(nodes) = &root.kind else { return Err("the parts are no list".to_owned()) };
        if nodes.len() < 2 {
            return Err(format!("a split has two parts or more, and here is {}", nodes.len()));
        }
        let indent = json::blanks_before(&self.text, old.span.start);
        let line_indent = indent.rsplit('\n').next().unwrap_or_default();
        let (mut ids, mut added) = (Vec::new(), String::new());
        for node in nodes {
            let (line, _) = json::place(parts, node.span.start);
            let part = item::read(parts, format!("part in line {line}"), node)
                .map_err(|(at, why)| format!("line {}: {why}", json::place(parts, at).0))?;
            if !part.id_is_given || self.item(&part.id).is_some() || ids.contains(&part.id) {
                return Err(format!("line {line}: every part needs an id of its own, and {} is none", part.id));
            }
            if part.passes {
                return Err(format!("line {line}: {} says that it passes already", part.id));
            }
            let text = moved(node.span.of(parts), indent_of(parts, node.span.start), line_indent);
            added.push_str(&format!(",{indent}{text}"));
            ids.push(part.id);
        }
        let verdict = old.verdicts.first().ok_or("the item says nothing about passing")?;
        let link = {
            let blanks = json::blanks_before(&self.text, verdict.key_span.start);
            let colon = json::Span { start: verdict.key_span.end, end: verdict.value.start }.of(&self.text);
            format!(",{blanks}\"{SPLIT_INTO}\"{colon}{}", serde_json::json!(ids))
        };
        let mut text = self.text.clone();
        // From behind, so that the places before stay where they are.
        text.insert_str(old.span.end, &added);
        text.insert_str(verdict.value.end, &link);
        if text.len() > MOST_BYTES {
            return Err(format!("the file would have {} bytes", text.len()));
        }
        let after = Self::read(text.as_bytes()).map_err(|e| format!("the file could not be read any more: {e}"))?;
        let kept = |item: &&Item| item.id == id || after.item(&item.id).is_some_and(|now| now.asks_the_same(item));
        let is_so = after.item(id).is_none()
            && ids.iter().all(|id| after.item(id).is_some())
            && self.items.iter().filter(kept).count() == self.items.len();
        if is_so { Ok((text, ids)) } else { Err("the parts change more than this item".to_owned()) }
    }
}

/// The blanks at the beginning of the line that holds this byte.
fn indent_of(text: &str, at: usize) -> &str {
    let line = text.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
    &line[..line.len() - line.trim_start().len()]
}

/// The text with its further lines moved from one margin to another.
fn moved(text: &str, from: &str, to: &str) -> String {
    let mut lines = text.split('\n');
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| format!("{text}\n{to}{}", line.strip_prefix(from).unwrap_or(line.trim_start())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "{\n  \"userStories\": [\n    {\n      \"id\": \"A\",\n      \"title\": \"Big\",\n      \"passes\" : false,\n      \
                        \"acceptanceCriteria\": [\"x\", \"y\"]\n    },\n    { \"id\": \"B\", \"title\": \"b\", \"passes\": true }\n  ]\n}\n";

    #[test]
    fn a_draft_that_is_taken_as_it_is_splits_the_item_and_nothing_else_moves() {
        let prd = Prd::read(FILE.as_bytes()).unwrap();
        let draft = prd.split_draft("A").unwrap();
        let (text, ids) = prd.with_split("A", &draft).unwrap();
        assert_eq!(ids, ["Aa", "Ab"]);
        let part = |id: &str, number: u32| {
            format!(
                "    {{\n      \"id\": \"{id}\",\n      \"title\": \"Big (part {number})\",\n      \"passes\" : false,\n      \
                 \"acceptanceCriteria\": [\"x\", \"y\"]\n    }},\n"
            )
        };
        let linked = FILE.replace("\"passes\" : false", "\"passes\" : false,\n      \"splitInto\" : [\"Aa\",\"Ab\"]");
        let at = linked.find("    { \"id\": \"B\"").unwrap();
        let expected = format!("{}{}{}{}", &linked[..at], part("Aa", 1), part("Ab", 2), &linked[at..]);
        assert_eq!(text, expected);
        let after = Prd::read(text.as_bytes()).unwrap();
        let ids: Vec<&str> = after.items().iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids, ["Aa", "Ab", "B"], "the split item is no work any more");
        let again = after.split_draft("Ab").and_then(|draft| after.with_split("Ab", &draft)).unwrap();
        assert_eq!(Prd::read(again.0.as_bytes()).unwrap().items().len(), 4, "a part can be split again");
    }

    #[test]
    fn an_item_on_one_line_and_one_with_a_number_are_split_too() {
        let file = r#"[{"id": 3, "title": "t", "done": false}, {"id": 4, "title": "u", "done": false}]"#;
        let prd = Prd::read(file.as_bytes()).unwrap();
        let (text, ids) = prd.with_split("3", &prd.split_draft("3").unwrap()).unwrap();
        assert_eq!(
            (ids.as_slice(), Prd::read(text.as_bytes()).unwrap().items().len()),
            (["3a".into(), "3b".into()].as_slice(), 3)
        );
        assert!(text.starts_with(r#"[{"id": 3, "title": "t", "done": false, "splitInto": ["3a","3b"]},"#), "{text}");
    }

    #[test]
    fn what_is_no_split_is_refused_with_its_line() {
        let prd = Prd::read(FILE.as_bytes()).unwrap();
        let part = |id: &str, passes: bool| format!("{{\"id\": \"{id}\", \"title\": \"t\", \"passes\": {passes}}}");
        for (parts, expected) in [
            ("{".to_owned(), "not JSON: 1:"),
            ("{}".to_owned(), "no list"),
            (format!("[{}]", part("C", false)), "two parts or more"),
            (format!("[{},\n{}]", part("C", false), part("C", false)), "line 2: every part needs an id"),
            (format!("[{},\n{}]", part("C", false), part("B", false)), "line 2: every part needs an id"),
            (format!("[{},\n{}]", part("C", false), part("A", false)), "line 2: every part needs an id"),
            (format!("[{},\n{}]", part("C", true), part("D", false)), "line 1: C says that it passes"),
            ("[{\"id\": \"C\", \"passes\": false}, {\"title\": \"t\"}]".to_owned(), "line 1"),
        ] {
            let why = prd.with_split("A", &parts).unwrap_err();
            assert!(why.contains(expected), "{expected}: {why}");
        }
        assert!(prd.with_split("B", "[]").unwrap_err().contains("passes already"));
        assert!(prd.with_split("Z", "[]").unwrap_err().contains("no item Z"));
    }

    #[test]
    fn an_item_is_work_while_a_part_is_missing() {
        let file = |parts: &str| {
            format!(
                r#"[{{"id": "A", "title": "t", "passes": false, "splitInto": {parts}}}, {{"id": "B", "title": "u", "passes": false}}]"#
            )
        };
        let count = |parts: &str| Prd::read(file(parts).as_bytes()).unwrap().items().len();
        assert_eq!(
            (count("[\"B\"]"), count("[\"B\", \"C\"]"), count("[\"A\"]"), count("[]"), count("true")),
            (1, 2, 2, 2, 2)
        );
        let circle = r#"[{"id": "A", "title": "t", "passes": false, "splitInto": ["B"]}, {"id": "B", "title": "u", "passes": false, "splitInto": ["A"]}]"#;
        assert_eq!(Prd::read(circle.as_bytes()).unwrap().items().len(), 2);
    }
}
