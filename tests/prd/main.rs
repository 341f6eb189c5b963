//! prd.json files as people write them: read, changed in one place, and read again.
//!
//! The files in `fixtures/prd` are real ones, byte for byte. `NIGHTLOOP_PRD_CORPUS=DIR cargo test --test prd --
//! --ignored --nocapture` does the same with every file of a folder and prints what became of each.

#![allow(clippy::unwrap_used, clippy::panic)]

mod mutants;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nightloop::model::prd::{Change, Item, Prd};
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/prd")
}

fn json_files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort_by_key(|path| name(path));
    files
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

/// What an item says, without where it says it.
fn said(item: &Item) -> impl PartialEq + std::fmt::Debug {
    let Item { id, id_is_given, title, description, acceptance, priority, passes, notes, path, needs, command, .. } =
        item.clone();
    (id, id_is_given, title, description, acceptance, (priority, passes, notes, path, needs, command))
}

/// Paths of the leaves in which two documents differ, by another reader than ours.
fn differences(before: &Value, after: &Value, path: &str, out: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                differences(a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null), &at, out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(a, b, &format!("{path}[{index}]"), out);
            }
        }
        _ if before == after => {}
        _ => out.push(path.to_owned()),
    }
}

/// Turns every item over, one at a time, and looks for anything else that became different.
fn turn_each_item(prd: &Prd) {
    for item in prd.items() {
        let change = Change::passes(!item.passes).with_note("ünder \"test\"\nline 2");
        let text = prd.with_item(&item.id, &change).unwrap();
        let (head, tail) = (&prd.text()[..item.span.start], &prd.text()[item.span.end..]);
        let others_stay = text.starts_with(head) && text.ends_with(tail);
        assert!(others_stay || prd.is_silent(), "{}: bytes of others changed", item.id);

        let again = Prd::read(text.as_bytes()).unwrap();
        for (before, after) in prd.items().iter().zip(again.items()) {
            if before.id == item.id {
                assert_eq!(after.passes, !item.passes);
                assert!(after.notes.as_deref().unwrap().ends_with("ünder \"test\"\nline 2"), "{:?}", after.notes);
                assert!(after.asks_the_same(before));
            } else {
                assert_eq!(said(before), said(after));
            }
        }

        let [old, new] = [prd.text(), &text].map(|text| serde_json::from_str(text.trim_start_matches('\u{feff}')));
        let mut changed = Vec::new();
        differences(&old.unwrap(), &new.unwrap(), "", &mut changed);
        let keys: Vec<&str> = changed.iter().map(|path| path.rsplit('.').next().unwrap()).collect();
        for (path, key) in changed.iter().zip(&keys) {
            let known = ["passes", "passed", "complete", "completed", "status", "state", "notes", "completionNotes"];
            let says_now = prd.is_silent() && *key == "passes";
            assert!(says_now || path.starts_with(&item.path) && known.contains(key), "{path} changed as well");
        }
        assert!(keys.iter().any(|key| *key != "notes" && *key != "completionNotes"), "{changed:?}");
        assert_eq!(again.with_item(&item.id, &change).unwrap(), text, "made twice, it is made once");
    }
}

fn prd(fixture: &str) -> Prd {
    Prd::read(&fs::read(fixtures().join(format!("{fixture}.json"))).unwrap()).unwrap()
}

/// Every shape: where the list is, how many of how many pass, and which item comes next.
#[test]
fn every_shape_is_read_and_changed_in_one_place() {
    let expected = [
        ("array-complete", "the whole document", (2, 2), None),
        ("array-one", "the whole document", (0, 1), Some("task-1")),
        ("array-status-and-passes", "the whole document", (1, 1), None),
        ("array-story", "the whole document", (5, 10), Some("~354ae8771de2")),
        ("array-tabs", "the whole document", (3, 8), Some("~ae2a7e256a7e")),
        ("array-validation-steps", "the whole document", (0, 6), Some("~75b7e9488e17")),
        ("features", "features", (5, 5), None),
        ("features-state", "features", (1, 3), Some("F02")),
        ("items", "items", (7, 7), None),
        ("items-steps", "items", (1, 17), Some("RL-001")),
        ("phases-silent", "phases[].tasks", (0, 3), Some("1.1")),
        ("phases-stories", "phases[].stories", (50, 50), None),
        ("phases-tasks", "phases[].tasks", (21, 24), Some("3.3")),
        ("stories-beside-gates", "stories", (0, 1), Some("EXAMPLE-001")),
        ("stories-numbered", "stories", (0, 2), Some("1")),
        ("stories-snake-case", "stories", (8, 9), Some("S08-speechanalyzer")),
        ("stories-status", "stories", (4, 12), Some("LC-005")),
        ("tasks-passed", "tasks", (9, 9), None),
        ("tasks-status", "tasks", (1, 1), None),
        ("user-stories", "userStories", (2, 10), Some("US-003")),
        ("user-stories-depends", "userStories", (0, 5), Some("US-001")),
        ("user-stories-levels", "userStories", (11, 11), None),
    ];
    let files = json_files(&fixtures()).into_iter().filter(|path| !name(path).starts_with("refused-"));
    assert_eq!(files.map(|path| name(&path)).collect::<Vec<_>>(), expected.map(|(name, ..)| name));
    for (name, shape, (passing, all), next) in expected {
        let prd = prd(name);
        let counts = prd.counts();
        assert_eq!((prd.shape().to_string().as_str(), (counts.passing, counts.all)), (shape, (passing, all)), "{name}");
        assert_eq!(prd.next_item(&BTreeSet::new()).map(|item| item.id.as_str()), next, "{name}");
        assert!(prd.items().iter().all(|item| !item.title.is_empty()), "{name}");
        turn_each_item(&prd);
    }
}

/// What the words of each shape mean.
#[test]
fn items_are_read_in_the_words_of_their_file() {
    let ralph = prd("user-stories");
    let story = ralph.item("US-003").unwrap();
    assert_eq!((ralph.name(), ralph.branch()), (Some("Hibachi Dual Strategy"), Some("ralph/hibachi-self-improvement")));
    assert!(ralph.description().unwrap().starts_with("Self-improving"));
    assert_eq!(story.title, "Add stale order detection");
    assert!(story.description.as_deref().unwrap().starts_with("Detect when"));
    assert_eq!(story.priority.as_ref().map(|priority| priority.written.as_str()), Some("3"));
    assert_eq!((story.acceptance.len(), story.notes.as_deref()), (4, Some("")));
    assert_eq!(story.verdict_span().of(ralph.text()), "false");

    for (fixture, least) in [("items", 1), ("items-steps", 1), ("tasks-passed", 5), ("array-validation-steps", 1)] {
        assert!(prd(fixture).items().iter().all(|item| item.acceptance.len() >= least), "{fixture}");
    }
    // A feature list of a harness: a behaviour, a command or words, and the file's own words for a verdict.
    let harness = prd("features-state");
    let cart = harness.item("F02").unwrap();
    assert_eq!(cart.title, "POST /cart/items with {product_id, quantity} returns 201");
    assert_eq!(cart.command.clone().unwrap(), ["sh", "-c", "sh checks/cart.sh"]);
    assert_eq!((cart.needs.as_slice(), harness.item("F03").unwrap().command.clone()), (&["F01".to_owned()][..], None));
    let passing = harness.with_item("F02", &Change::passes(true).with_proof("seen")).unwrap();
    let expected = harness.text().replacen(
        "\"failing\",\n      \"evidence\": \"\"",
        "\"passing\",\n      \"evidence\": \"seen\"",
        1,
    );
    assert_eq!(passing, expected);
    let back = harness.with_item("F01", &Change::passes(false)).unwrap();
    assert!(back.contains("\"state\": \"not_started\",\n      \"evidence\": \"commit abc123\""), "{back}");

    let texts = prd("array-story");
    assert_eq!(texts.items()[0].title, "Create agent registry with paths and capabilities");
    assert_eq!(texts.items()[0].acceptance.len(), 1, "a text is one criterion");
    assert_eq!(prd("tasks-status").items()[0].acceptance, ["requirements.md exists with project summary"]);
    assert_eq!(prd("phases-tasks").items()[5].path, "phases[1].tasks[0]");
}

/// A file that is nearly a PRD is refused with its place and with what to write.
#[test]
fn what_is_not_clear_is_said() {
    let expected = [
        ("refused-blank-item", "prd.json:2:3: item 0 says nothing of what is to be done\n"),
        (
            "refused-contradiction",
            "prd.json:50:17: item US-001 contradicts itself: `passes` says that it passes, but `status` says that it \
             does not pass\n",
        ),
        ("refused-empty-array", "prd.json:1:1: the list of items (the whole document) is empty"),
        ("refused-empty-list", "prd.json:3:18: the list of items (userStories) is empty"),
        ("refused-merge-marks", "prd.json:1:1: marks of a merge that was not finished\n"),
        ("refused-no-items", "prd.json:1:1: no list of items: the document has only title, phases, notes\n"),
        ("refused-two-lists", "prd.json:203:14: two lists could be meant: `stories` and `backlog`\n"),
        ("refused-zero-bytes", "prd.json:1:1: not JSON: there is nothing in the file\n"),
    ];
    let files = json_files(&fixtures()).into_iter().filter(|path| name(path).starts_with("refused-"));
    assert_eq!(files.map(|path| name(&path)).collect::<Vec<_>>(), expected.map(|(name, _)| name));
    for (name, message) in expected {
        let error = Prd::read(&fs::read(fixtures().join(format!("{name}.json"))).unwrap()).unwrap_err();
        assert!(error.to_string().starts_with(message), "{name}: {error}");
        assert!(error.to_string().contains("\n  hint: "), "{name}");
    }
}

#[test]
#[ignore = "needs a folder of prd.json files in NIGHTLOOP_PRD_CORPUS"]
fn the_corpus() {
    let dir = std::env::var_os("NIGHTLOOP_PRD_CORPUS").unwrap();
    let (mut loaded, mut refused) = (0, 0);
    for path in json_files(Path::new(&dir)) {
        match Prd::read(&fs::read(&path).unwrap()) {
            Ok(prd) => {
                loaded += 1;
                let counts = prd.counts();
                let next = prd.next_item(&BTreeSet::new()).map(|item| item.id.clone());
                println!("{}: {} {}/{} next {next:?}", name(&path), prd.shape(), counts.passing, counts.all);
                turn_each_item(&prd);
            }
            Err(error) => {
                refused += 1;
                println!("{}: {} {error}", name(&path), if error.is_need_info() { "ASKS" } else { "REFUSED" });
            }
        }
    }
    println!("{loaded} loaded, {refused} refused");
}
