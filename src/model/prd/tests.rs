//! What is read, what is refused, what is written, what is merged: on small files made for it.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn prd(text: &str) -> Prd {
    Prd::read(text.as_bytes()).unwrap()
}

/// `line:column` and the first line of the message.
fn refusal(text: &str) -> String {
    let error = Prd::read(text.as_bytes()).unwrap_err();
    let shown = error.to_string();
    let line = shown.lines().next().unwrap().to_owned();
    line.strip_prefix("prd.json:").unwrap().to_owned()
}

/// An `items` file of one item with these members.
fn one(members: &str) -> String {
    format!(r#"{{"items": [{{"id": "A", "title": "t", {members}}}]}}"#)
}

fn ids(prd: &Prd) -> Vec<&str> {
    prd.items().iter().map(|item| item.id.as_str()).collect()
}

mod reading {
    use super::*;

    #[test]
    fn a_verdict_is_never_a_guess() {
        for (members, message) in [
            (r#""verified": "yes""#, "1:12: item A does not say whether it passes"),
            (r#""state": "CA""#, "1:12: item A does not say whether it passes"),
            (
                r#""passes": null"#,
                "1:48: item A: `passes` is null, which says neither that it passes nor that it does not",
            ),
            (
                r#""passes": "true""#,
                "1:48: item A: `passes` is text, which says neither that it passes nor that it does not",
            ),
            (r#""passes": 0"#, "1:48: item A: `passes` is a number, which says neither"),
            (r#""passes": null, "status": "done""#, "1:48: item A: `passes` is null"),
            (r#""status": null"#, "1:48: item A: `status` is null"),
            (r#""completed": "2026-01-01""#, "1:51: item A: `completed` is text"),
            (
                r#""status": "skipped""#,
                "1:48: item A: the status `skipped` says neither that it passes nor that it does not",
            ),
            (r#""passes": true, "status": "deferred""#, "1:64: item A: the status `deferred` says neither"),
            (
                r#""passes": true, "status": "in-progress""#,
                "1:64: item A contradicts itself: `passes` says that it passes, but `status` says that it does not pass",
            ),
            (r#""passes": false, "done": true"#, "1:63: item A contradicts itself"),
        ] {
            assert!(refusal(&one(members)).starts_with(message), "{members}: {}", refusal(&one(members)));
            let error = Prd::read(one(members).as_bytes()).unwrap_err();
            assert!(error.is_need_info() && !error.why.hint().is_empty(), "{members}");
        }
    }

    #[test]
    fn all_spellings_of_a_verdict() {
        for (members, passes) in [
            (r#""passes": true"#, true),
            (r#""passed": false"#, false),
            (r#""complete": true"#, true),
            (r#""completed": false"#, false),
            (r#""done": true"#, true),
            (r#""status": "Completed""#, true),
            (r#""status": "not-started""#, false),
            (r#""passes": false, "status": "in_progress""#, false),
            (r#""state": "passing""#, true),
            (r#""state": "failing""#, false),
            (r#""state": "not_started""#, false),
            // Of a country, not of the work.
            (r#""passes": true, "state": "CA""#, true),
            // A date says when, not whether.
            (r#""passes": true, "completed": "2026-01-01""#, true),
            (r#""passes": false, "completed": null"#, false),
        ] {
            assert_eq!(prd(&one(members)).items()[0].passes, passes, "{members}");
        }
    }

    #[test]
    fn the_list_is_found_by_what_is_in_it() {
        let item = r#"{"id": 1, "title": "t", "passes": false}"#;
        for (text, shape) in [
            (format!("[{item}]"), "the whole document"),
            (format!("[[{item}]]"), "[]"),
            (format!(r#"{{"user_stories": [{item}]}}"#), "user_stories"),
            (format!(r#"{{"prd": {{"name": "inner", "Tasks": [{item}]}}}}"#), "prd.Tasks"),
            (format!(r#"{{"whatever": [{item}]}}"#), "whatever"),
            // A list without verdicts before the real one; a verdict over the whole.
            (format!(r#"{{"features": [{{"id": 1, "name": "f"}}], "passes": true, "tasks": [{item}]}}"#), "tasks"),
            (format!(r#"{{"items": [], "stories": [{item}]}}"#), "stories"),
            (format!(r#"{{"phases": [{{"tasks": [{item}]}}, {{"tasks": []}}, {{}}]}}"#), "phases[].tasks"),
            // A phase has a status of its own, but it is not what is worked on.
            (format!(r#"{{"phases": [{{"status": "pending", "tasks": [{item}]}}]}}"#), "phases[].tasks"),
            (format!(r#"{{"epics": [{{"milestones": [{{"issues": [{item}]}}]}}]}}"#), "epics[].milestones[].issues"),
            // What an item is made of is not another list.
            (
                r#"{"stories": [{"id": 1, "title": "t", "status": "todo", "tasks": [{"status": "done"}]}]}"#.to_owned(),
                "stories",
            ),
        ] {
            assert_eq!(prd(&text).shape().to_string(), shape, "{text}");
            assert_eq!(ids(&prd(&text)), ["1"], "{text}");
        }
        assert_eq!(prd(&format!(r#"{{"prd": {{"name": "inner", "tasks": [{item}]}}}}"#)).name(), Some("inner"));
    }

    #[test]
    fn what_has_no_clear_list_is_refused() {
        let item = r#"{"id": 1, "title": "t", "passes": false}"#;
        for (text, message) in [
            (
                format!(r#"{{"items": [{item}], "tasks": [{item}]}}"#),
                "1:64: two lists could be meant: `items` and `tasks`",
            ),
            (
                format!(r#"{{"phases": [{{"passes": false, "tasks": [{item}]}}]}}"#),
                "1:40: two lists could be meant: `phases` and `phases[].tasks`",
            ),
            ("[]".into(), "1:1: the list of items (the whole document) is empty"),
            (r#"{"items": []}"#.into(), "1:11: the list of items (items) is empty"),
            (r#"{"items": ["a"]}"#.into(), "1:12: items[0] is text, not an item"),
            (format!(r#"{{"items": [{item}, null]}}"#), "1:54: items[1] is null, not an item"),
            (
                format!(r#"{{"phases": [{{"tasks": [{item}]}}, {{"tasks": null}}]}}"#),
                "1:78: phases[1].tasks is null, not a list of items",
            ),
            (
                r#"{"items": [{"id": 7, "title": "t"}, {"id": 8, "title": "u", "passes": true}]}"#.into(),
                "1:12: item 7 does not say whether it passes",
            ),
            (
                r#"{"items": [{"id": 7, "title": "t", "implemented": true}]}"#.into(),
                "1:12: item 7 does not say whether it passes",
            ),
            (
                r#"{"phases": [{"status": "completed", "tasks": [{"id": 7, "title": "t"}]}]}"#.into(),
                "1:47: item 7 does not say whether it passes",
            ),
            (
                r#"{"items": [{"id": 7, "title": "t"}], "tasks": [{"id": 8, "title": "u"}]}"#.into(),
                "1:47: two lists could be meant: `items` and `tasks`",
            ),
            (r#"{"a": 1, "b": {}}"#.into(), "1:1: no list of items: the document has only a, b"),
            ("{}".into(), "1:1: no list of items: the document is an empty object"),
            ("7".into(), "1:1: no list of items: the document is a number"),
            (
                format!(r#"{{"items": [{item}], "items": [{item}]}}"#),
                "1:55: not JSON: the key `items` is written twice in one object (first in line 1)",
            ),
        ] {
            assert!(refusal(&text).starts_with(message), "{text}: {}", refusal(&text));
        }
    }

    #[test]
    fn ids_are_given_or_made_from_what_is_said() {
        let twice = r#"[{"id": 1, "title": "a", "passes": true},
{"id": "1", "title": "b", "passes": true}]"#;
        assert_eq!(refusal(twice), "2:1: the id `1` is used twice (first in line 1)");
        let twins = r#"[{"title": "a", "passes": true}, {"title": "a", "passes": false}]"#;
        assert!(refusal(twins).starts_with("1:34: items without an id that read the same"));
        for id in ["null", "\"\"", "\" \"", "[]", "true", &format!("\"{}\"", "x".repeat(201))] {
            let text = format!(r#"[{{"id": {id}, "title": "a", "passes": true}}]"#);
            assert!(refusal(&text).starts_with("1:9: [0]: the id is "), "{}", refusal(&text));
        }
        let a = prd(r#"[{"title": "a", "passes": true}, {"title": "b", "description": "x", "passes": false}]"#);
        let b = prd(r#"[{"passes": true, "description": "x", "title": "b", "notes": "n"}]"#);
        assert_eq!(a.items()[1].id, b.items()[0].id, "wherever it stands and whether it passes");
        assert_ne!(a.items()[0].id, a.items()[1].id);
        assert!(!a.items()[0].id_is_given);
    }

    #[test]
    fn files_that_are_something_else() {
        let read = |bytes: &[u8]| Prd::read(bytes).unwrap_err();
        assert_eq!(read(&vec![b' '; MOST_BYTES + 1]).why, Why::TooLarge(MOST_BYTES + 1));
        assert_eq!(read(&vec![b' '; MOST_BYTES]).why, Why::NotJson(Syntax::Nothing));
        assert_eq!(read(b"\xff\xfe{\0}\0").why, Why::Utf16);
        let latin = read(b"[\n\"caf\xe9\"]");
        assert_eq!((latin.why, latin.line, latin.column), (Why::NotUtf8, 2, 5));
        let marks = read(b"{\n<<<<<<< HEAD\n\"a\": 1\n=======\n>>>>>>> b\n}");
        assert_eq!((marks.why, marks.line, marks.column), (Why::MergeMarks, 2, 1));
        assert!(refusal("# PRD\n\n- one").starts_with("1:1: not JSON: a value should stand here"));
        assert!(refusal("{} {}").starts_with("1:4: not JSON: something behind the end"));
        let many = format!("[{}0]", r#"{"passes":true,"title":"t"},"#.repeat(MOST_ITEMS + 1));
        assert_eq!(Prd::read(many.as_bytes()).unwrap_err().why, Why::TooManyItems);
    }

    /// A hostile file gets no say on the screen, and no message grows with it.
    #[test]
    fn messages_are_short_and_harmless() {
        let nasty = "\\u001b[31m\\u202e".repeat(1000);
        for text in [
            format!(r#"[{{"id": "{}", "title": "t", "passes": null}}]"#, "\\u001b[2J"),
            one(&format!(r#""status": "{nasty}""#)),
            one(&format!(r#""passes": false, "priority": "{nasty}""#)),
            format!(r#"{{"{nasty}": 1}}"#),
            format!(r#"{{"{nasty}": 1, "{nasty}": 2}}"#),
            format!(r#"{{"{nasty}": {{"items": [3]}}}}"#),
        ] {
            let shown = Prd::read(text.as_bytes()).unwrap_err().to_string();
            assert!(shown.len() < 1000, "{}", shown.len());
            assert!(!shown.chars().any(|c| c == '\u{1b}' || c == '\u{202e}'), "{shown:?}");
        }
    }

    #[test]
    fn criteria_of_every_form() {
        for (members, expected) in [
            (r#""acceptance": ["a", " b ", "", null]"#, vec!["a", "b"]),
            (r#""acceptanceCriteria": "one text""#, vec!["one text"]),
            (r#""acceptance_criteria": [], "steps": ["s"]"#, vec!["s"]),
            (r#""steps": ["s"], "acceptance": ["a"]"#, vec!["a"]),
            (r#""tests": [{"name": "n", "passes": true}, {"x": 1.50}, 7]"#, vec!["n", r#"{"x": 1.50}"#, "7"]),
            (r#""acceptance": []"#, vec![]),
        ] {
            let prd = prd(&one(&format!(r#""passes": false, {members}"#)));
            assert_eq!(prd.items()[0].acceptance, expected, "{members}");
        }
    }
}

mod writing {
    use super::*;

    fn changed(text: &str, id: &str, change: Change) -> String {
        prd(text).with_item(id, &change).unwrap()
    }

    #[test]
    fn nothing_else_is_touched() {
        let text = "\u{feff}{\r\n  \"x\" :1.50e+3 , \"items\":[\r\n\t{\"id\":\"\\u0041\",\"title\":\"t\",\"passes\":  false ,\"y\":[ ]},\r\n  {\"id\": \"B\", \"title\": \"\\/\", \"passes\": true}  ] }\r\n\r\n";
        let expected = text.replace("  false ,", "  true ,");
        assert_eq!(changed(text, "A", Change::passes(true)), expected);
        assert_eq!(changed(&expected, "A", Change::passes(false)), text);
        assert_eq!(changed(text, "A", Change::passes(false)), text, "it already is so");
        assert_eq!(changed(text, "A", Change::default()), text);
        assert_eq!(changed(text, "A", Change::default().with_note(" \n")), text);
    }

    #[test]
    fn all_that_an_item_says_changes_together() {
        let text = one(r#""done": false, "status": "todo", "passes": false, "completed": "soon""#);
        let expected = one(r#""done": true, "status": "done", "passes": true, "completed": "soon""#);
        assert_eq!(changed(&text, "A", Change::passes(true)), expected);
    }

    #[test]
    fn a_status_uses_the_words_of_the_file() {
        let file = |a: &str, b: &str| {
            format!(r#"[{{"id":"A","title":"a","status":{a}}},{{"id":"B","title":"b","status":{b}}}]"#)
        };
        for (a, b, passes, expected) in [
            (r#""todo""#, r#""Complet\u0065d""#, true, r#""Complet\u0065d""#),
            (r#""in-progress""#, r#""todo""#, true, r#""done""#),
            (r#""Pending""#, r#""Pending""#, true, r#""Done""#),
            (r#""done""#, r#""not_started""#, false, r#""not_started""#),
            (r#""done""#, r#""in-progress""#, false, r#""pending""#),
        ] {
            assert_eq!(changed(&file(a, b), "A", Change::passes(passes)), file(expected, b), "{a} {b}");
        }
    }

    #[test]
    fn notes_are_added_wherever_they_are() {
        let note = || Change::default().with_note("a \"b\"\nc");
        for (before, after) in [
            (r#""passes": false, "notes": """#, r#""passes": false, "notes": "a \"b\"\nc""#),
            (r#""passes": false, "notes": null"#, r#""passes": false, "notes": "a \"b\"\nc""#),
            (r#""notes": "\u0041", "passes": false"#, r#""notes": "\u0041\na \"b\"\nc", "passes": false"#),
            (r#""passes": false, "notes": [ ]"#, r#""passes": false, "notes": ["a \"b\"\nc" ]"#),
            (r#""passes": false, "notes": ["x",  "y" ]"#, r#""passes": false, "notes": ["x",  "y",  "a \"b\"\nc" ]"#),
            (r#""passes": false, "completionNotes": """#, r#""passes": false, "completionNotes": "a \"b\"\nc""#),
            (r#""passes":false"#, r#""passes":false, "notes":"a \"b\"\nc""#),
        ] {
            let text = changed(&one(before), "A", note());
            assert_eq!(text, one(after));
            assert_eq!(changed(&text, "A", note()), text, "made twice, it is made once");
        }
    }

    #[test]
    fn new_notes_stand_on_their_own_line_behind_the_verdict() {
        let text = "[\n  {\n    \"id\": \"A\",\n    \"passes\": false,\n    \"title\": \"t\"\n  }\n]\n";
        let expected =
            "[\n  {\n    \"id\": \"A\",\n    \"passes\": true,\n    \"notes\": \"n\",\n    \"title\": \"t\"\n  }\n]\n";
        assert_eq!(changed(text, "A", Change::passes(true).with_note("n")), expected);
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let prd = prd(&one(r#""passes": false, "notes": {"a": 1}"#));
        let fails = |id: &str, note: &str| prd.with_item(id, &Change::passes(true).with_note(note)).unwrap_err();
        assert_eq!(fails("B", "n"), ChangeError::NoSuchItem { id: "B".into() });
        assert!(fails("A", "n").to_string().starts_with("line 1: the notes of item `A` are an object"));
        assert_eq!(fails("A", &"n".repeat(MOST_NOTE_BYTES + 1)), ChangeError::NoteTooLong(MOST_NOTE_BYTES + 1));
        let head = one(r#""passes": false"#);
        let full = super::prd(&format!("{head}{}", " ".repeat(MOST_BYTES - head.len())));
        let error = full.with_item("A", &Change::passes(true).with_note("n")).unwrap_err();
        assert!(matches!(error, ChangeError::TooLarge(_)), "{error}");
        assert_eq!(full.with_item("A", &Change::passes(true)).unwrap().len(), MOST_BYTES - 1);
    }
}

mod choosing {
    use super::*;

    fn next(prd: &Prd, skip: &[&str]) -> Option<String> {
        let skip: BTreeSet<String> = skip.iter().map(|id| (*id).to_owned()).collect();
        prd.next_item(&skip).map(|item| item.id.clone())
    }

    /// `(id, priority, passes)`.
    fn file(items: &[(&str, &str, bool)]) -> String {
        let items: Vec<String> = items
            .iter()
            .map(|(id, priority, passes)| {
                format!(r#"{{"id":"{id}","title":"t","priority":{priority},"passes":{passes}}}"#)
            })
            .collect();
        format!("[{}]", items.join(","))
    }

    #[test]
    fn priority_then_file_order_and_none_last() {
        let numbers = prd(&file(&[
            ("none", "null", false),
            ("ten", "10", false),
            ("two", "\"2\"", false),
            ("twice", "2.0", false),
            ("minus", "-1", true),
            ("half", "5e-1", false),
        ]));
        let mut skip = Vec::new();
        for expected in ["half", "two", "twice", "ten", "none"] {
            assert_eq!(next(&numbers, &skip).as_deref(), Some(expected));
            skip.push(expected);
        }
        assert_eq!(next(&numbers, &skip), None);
        let words = prd(&file(&[("l", "\"Low\"", false), ("h", "\"high\"", false), ("c", "\"CRITICAL\"", false)]));
        assert_eq!(next(&words, &[]).as_deref(), Some("c"));
        assert_eq!(next(&words, &["c"]).as_deref(), Some("h"));
        let classes = prd(&file(&[("b", "\"P1\"", false), ("a", "\"p0\"", false)]));
        assert_eq!(next(&classes, &[]).as_deref(), Some("a"));
    }

    #[test]
    fn priorities_that_cannot_be_compared_are_refused() {
        let mixed = file(&[("a", "1", false), ("b", "\"high\"", false)]);
        assert!(refusal(&mixed).contains("item b: the priority `high` cannot be compared with `1` of item a"));
        for priority in ["\"soon\"", "true", "[]", "1e400", "\"P10\"", "\"1 \\u0000\""] {
            let text = file(&[("a", priority, false)]);
            assert!(refusal(&text).contains("item a: the priority "), "{}", refusal(&text));
        }
    }

    #[test]
    fn one_item_at_a_time() {
        let prd = prd(&file(&[("a", "1", true), ("b", "2", false), ("c", "3", false)]));
        let choose = |named: &[&str]| {
            let named: Vec<String> = named.iter().map(|id| (*id).to_owned()).collect();
            prd.choose(&named, &BTreeSet::new()).map(|item| item.map(|item| item.id.clone()))
        };
        assert_eq!(choose(&[]), Ok(Some("b".into())));
        assert_eq!(choose(&["c"]), Ok(Some("c".into())));
        assert_eq!(choose(&["a"]), Err(NoChoice::PassesAlready("a".into())));
        assert_eq!(choose(&["x"]), Err(NoChoice::Unknown("x".into())));
        assert_eq!(choose(&["b", "c"]), Err(NoChoice::Several(2)));
    }

    #[test]
    fn the_residual_is_exact() {
        let items = [("a", "1", true), ("b", "2", false), ("c", "3", true)];
        let residual = prd(&file(&items)).residual().unwrap();
        assert_eq!((residual.value.to_string().as_str(), residual.unmet_of), ("0.333333333334", Some((1, 3))));
        assert_eq!(prd(&file(&items)).unmet().to_string(), "1/3");
        let done = prd(&file(&items.map(|(id, priority, _)| (id, priority, true))));
        assert!(done.residual().unwrap().value.is_zero());
        assert_eq!(done.counts(), Counts { all: 3, passing: 3, failing: 0 });
    }
}

mod parts {
    use super::*;

    /// With every part that says that it is not met, and with a proof wherever there is a place for one.
    #[test]
    fn what_an_item_is_made_of_passes_with_it() {
        let text = r#"[{"id": "A", "title": "t", "acceptanceCriteria": [
    {"text": "x", "passes": false, "evidence": ""},
    {"given": "y", "status": "pending"}, {"text": "z", "passes" :true, "evidence": null}, {"text": "odd", "passes": 7}
  ], "subtasks": [{"title": "s", "done": false}], "state": "failing", "evidence": null},
  {"id": "B", "title": "u", "steps": [{"text": "v", "passes": false}], "state": "passing", "evidence": []}]"#;
        let before = prd(text);
        assert_eq!(before.items()[0].parts_open(), (3, 4));
        assert_eq!(before.items()[1].parts_open(), (1, 1));
        let after = before.with_item("A", &Change::passes(true).with_proof("run 1 \"ok\"")).unwrap();
        let expected = text
            .replacen(r#""passes": false, "evidence": """#, r#""passes": true, "evidence": "run 1 \"ok\"""#, 1)
            .replacen(r#""status": "pending""#, r#""status": "done""#, 1)
            .replacen(r#""done": false"#, r#""done": true"#, 1)
            .replacen(r#""failing", "evidence": null"#, r#""passing", "evidence": "run 1 \"ok\"""#, 1);
        assert_eq!(after, expected);
        let after = prd(&after);
        assert!(after.items()[0].asks_the_same(&before.items()[0]), "{:?}", after.items()[0].acceptance);
        assert_eq!(after.items()[0].parts_open(), (0, 4));
        // Back again is the item's word only: nobody knows which part it is.
        let back = prd(&after.with_item("A", &Change::passes(false)).unwrap());
        assert_eq!((back.items()[0].passes, back.items()[0].parts_open()), (false, (0, 4)));
        let listed = prd(r#"[{"id": "A", "title": "t", "passes": false, "evidence": []}]"#);
        let listed = listed.with_item("A", &Change::passes(true).with_proof("p")).unwrap();
        assert_eq!(listed, r#"[{"id": "A", "title": "t", "passes": true, "evidence": ["p"]}]"#);
    }

    /// The first change of such a file says of every item what was only understood before.
    #[test]
    fn where_nothing_says_whether_anything_passes_nothing_does() {
        let text = "{\"phases\": [{\"name\": \"one\", \"status\": \"pending\", \"tasks\": [\n  {\"id\": 1,\n   \"title\": \"t\"},\n  {\"id\": 2, \"title\": \"u\"}\n]}]}";
        let before = prd(text);
        assert!(before.is_silent() && before.items().iter().all(|item| !item.passes));
        let after = before.with_item("1", &Change::passes(true).with_note("n")).unwrap();
        let expected = text
            .replace("\"title\": \"t\"", "\"title\": \"t\",\n   \"passes\": true,\n   \"notes\": \"n\"")
            .replace("\"title\": \"u\"", "\"title\": \"u\", \"passes\": false");
        assert_eq!(after, expected);
        let after = prd(&after);
        assert!(!after.is_silent() && after.items()[0].passes && !after.items()[1].passes);
        assert_eq!(before.with_item("1", &Change::passes(false)).unwrap(), text);
    }
}

mod merging {
    use super::*;

    const BASE: &str = r#"{"items": [
  {"id": "A", "title": "a", "passes": false, "notes": "old"},
  {"id": "B", "title": "b", "passes": false, "notes": ""}
]}
"#;

    /// Our change: A passes, with a note.
    fn ours() -> Change {
        Change::passes(true).with_note("proven")
    }

    fn merged(theirs: &str) -> Result<Merged, NotMerged> {
        merge(&prd(BASE), "A", &ours(), theirs.as_bytes())
    }

    #[test]
    fn their_changes_stay_and_ours_is_put_in() {
        for (theirs, expected) in [
            (BASE.to_owned(), BASE.replace(r#"false, "notes": "old""#, r#"true, "notes": "old\nproven""#)),
            // Another item's verdict and notes, keys of ours, notes of ours, a new item in front, another layout.
            (
                "[{\"id\":\"N\",\"title\":\"n\",\"passes\":false},{\"id\":\"B\",\"title\":\"b\",\"passes\":true},\r\n{\"id\":\"A\",\"title\":\"a\",\"k\":[1.0],\"passes\":false,\"notes\":\"old, and more\"}]".to_owned(),
                "[{\"id\":\"N\",\"title\":\"n\",\"passes\":false},{\"id\":\"B\",\"title\":\"b\",\"passes\":true},\r\n{\"id\":\"A\",\"title\":\"a\",\"k\":[1.0],\"passes\":true,\"notes\":\"old, and more\\nproven\"}]".to_owned(),
            ),
        ] {
            let merged = merged(&theirs).unwrap();
            assert_eq!(merged, Merged { text: expected, asks_differently: false });
        }
        let ours = prd(BASE).with_item("A", &ours()).unwrap();
        assert_eq!(merged(&ours).unwrap().text, ours, "it is there already");
    }

    #[test]
    fn a_changed_question_is_told() {
        assert!(merged(&BASE.replace(r#""title": "a""#, r#""title": "a, and more""#)).unwrap().asks_differently);
        assert!(!merged(&BASE.replace(r#""title": "b""#, r#""title": "b, and more""#)).unwrap().asks_differently);
    }

    #[test]
    fn a_verdict_of_somebody_else_is_never_overwritten() {
        let theirs = BASE.replacen("false", "true", 1);
        let conflict = NotMerged::Conflict {
            id: "A".into(),
            base: "passes: false".into(),
            ours: "passes: true".into(),
            theirs: "passes: true".into(),
        };
        assert_eq!(merged(&theirs), Err(conflict));
        // A word for the same verdict is a statement too.
        let theirs = BASE.replacen(r#""passes": false"#, r#""passes": false, "status": "blocked""#, 1);
        assert!(matches!(merged(&theirs), Err(NotMerged::Conflict { theirs, .. }) if theirs.contains("blocked")));
    }

    #[test]
    fn a_note_alone_minds_no_verdict() {
        let base = prd(BASE);
        let theirs = BASE.replacen("false", "true", 1);
        let merged = merge(&base, "A", &Change::default().with_note("seen"), theirs.as_bytes()).unwrap();
        assert_eq!(merged.text, theirs.replace("\"old\"", "\"old\\nseen\""));
    }

    #[test]
    fn what_cannot_be_merged_is_refused() {
        assert_eq!(merged(&BASE.replace("\"A\"", "\"Z\"")), Err(NotMerged::Gone { id: "A".into() }));
        assert!(matches!(merged("{"), Err(NotMerged::NotAPrd(_))));
        assert!(matches!(merged(&BASE.replace("false", "null")), Err(NotMerged::NotAPrd(_))));
        let nobody = merge(&prd(BASE), "X", &ours(), BASE.as_bytes());
        assert_eq!(nobody, Err(NotMerged::Unwritable(ChangeError::NoSuchItem { id: "X".into() })));
    }
}

/// Any text that JSON can hold, in any spelling of a file.
fn any_file() -> impl Strategy<Value = (String, Vec<bool>)> {
    let blank = "[ \t\r\n]{0,3}";
    let item = (any::<String>(), any::<bool>(), proptest::option::of(any::<String>()), 0..4usize);
    (proptest::collection::vec(item, 1..6), blank, blank, any::<bool>()).prop_map(|(items, a, b, mark)| {
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        let written = items.iter().enumerate().map(|(index, (text, passes, notes, order))| {
            let mut members = vec![
                format!("\"id\"{a}:{b}{index}"),
                format!("{}:{a}{}", quoted(&format!("x{text}")), quoted(text)),
                format!("\"title\":{}", quoted(&format!("t{text}"))),
                format!("\"passes\"{b}:{a}{passes}"),
            ];
            members.extend(notes.as_ref().map(|notes| format!("\"notes\"{b}:{}", quoted(notes))));
            members.rotate_left(*order);
            format!("{{{a}{}{b}}}", members.join(&format!("{b},{a}")))
        });
        let list = written.collect::<Vec<_>>().join(&format!("{a},{b}"));
        let mark = if mark { "\u{feff}" } else { "" };
        let text = format!("{mark}{a}{{\"items\"{b}:{a}[{list}{b}]}}{a}");
        (text, items.iter().map(|(_, passes, ..)| *passes).collect())
    })
}

proptest! {
    #[test]
    fn a_change_there_and_back_is_no_change((text, passes) in any_file(), which in any::<prop::sample::Index>()) {
        let before = prd(&text);
        prop_assert_eq!(before.items().iter().map(|item| item.passes).collect::<Vec<_>>(), passes.clone());
        let index = which.index(passes.len());
        let id = index.to_string();
        let there = prd(&before.with_item(&id, &Change::passes(!passes[index])).unwrap());
        for (at, item) in there.items().iter().enumerate() {
            prop_assert_eq!(item.passes, passes[at] != (at == index));
        }
        prop_assert_eq!(there.with_item(&id, &Change::passes(passes[index])).unwrap(), text);
    }

    #[test]
    fn a_note_is_read_back_as_written((text, passes) in any_file(), note in "\\PC{0,20}|[\\x00-\\x1f\"\\\\]{1,5}x", which in any::<prop::sample::Index>()) {
        let before = prd(&text);
        let id = which.index(passes.len()).to_string();
        let after = prd(&before.with_item(&id, &Change::default().with_note(note.clone())).unwrap());
        for (old, new) in before.items().iter().zip(after.items()) {
            if old.id != id || note.trim().is_empty() {
                prop_assert_eq!(&old.notes, &new.notes);
                continue;
            }
            let notes = new.notes.clone().unwrap();
            prop_assert!(notes.ends_with(&note));
            let kept = old.notes.clone().unwrap_or_default();
            prop_assert!(kept.trim().is_empty() || notes.starts_with(&kept));
        }
    }

    /// Two writers of different items, in either order of arrival.
    #[test]
    fn merging_keeps_both((text, passes) in any_file(), a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>()) {
        let (a, b) = (a.index(passes.len()), b.index(passes.len()));
        prop_assume!(a != b);
        let base = prd(&text);
        let turn = |index: usize| (index.to_string(), Change::passes(!passes[index]));
        let turned = |index: usize| prd(&base.with_item(&turn(index).0, &turn(index).1).unwrap());
        let one = merge(&base, &turn(a).0, &turn(a).1, turned(b).text().as_bytes()).unwrap();
        let other = merge(&base, &turn(b).0, &turn(b).1, turned(a).text().as_bytes()).unwrap();
        prop_assert_eq!(&one, &other);
        for (at, item) in prd(&one.text).items().iter().enumerate() {
            prop_assert_eq!(item.passes, passes[at] != (at == a || at == b));
        }
        let same = merge(&base, &turn(a).0, &turn(a).1, turned(a).with_item(&b.to_string(), &Change::passes(!passes[b])).unwrap().as_bytes());
        let conflicts = matches!(same, Err(NotMerged::Conflict { .. }));
        prop_assert!(conflicts);
    }
}
