//! Recorded runs stay readable: each one folds and verifies with the code of today.

use std::path::Path;

use nightloop::engine::recorded;
use nightloop::evidence::verify::{RenderedPlace, VerifyVerdict, verify};
use nightloop::journal::{self, RunDir};

use super::operator::fixtures;

fn ends_well(name: &str, place: &RenderedPlace) {
    let run_dir = RunDir::open(&fixtures().join(name)).unwrap();
    let mut folded = None;
    for record in journal::read(&run_dir) {
        recorded::fold_record(&mut folded, &record.unwrap()).unwrap();
    }
    let state = folded.unwrap();
    assert!(state.halt.is_some(), "{name} has an end");
    let found = verify(&run_dir, None, place);
    assert_eq!(found.verdict(), VerifyVerdict::Ok, "{name}: {:?} {:?}", found.problems, found.incomplete);
    assert_eq!(found.events, state.next_seq, "{name}");
}

#[test]
fn the_first_kind_of_journal_is_still_read() {
    ends_well("demo-run", &RenderedPlace::Nowhere);
}

#[test]
fn a_journal_with_decisions_is_read_and_its_evidence_agrees() {
    ends_well("demo-run-2", &RenderedPlace::Workspace(fixtures().join("demo-run-2/workspace")));
}

#[test]
fn one_changed_byte_is_found() {
    let copy = tempfile::tempdir().unwrap();
    copy_tree(&fixtures().join("demo-run-2"), copy.path());
    let segment = copy.path().join("journal/00000001.jsonl");
    let text = std::fs::read_to_string(&segment).unwrap();
    let changed = text.replacen("{\"value\":\"5\"}", "{\"value\":\"4\"}", 1);
    assert_ne!(changed, text);
    std::fs::write(&segment, changed).unwrap();
    let found = verify(&RunDir::open(copy.path()).unwrap(), None, &RenderedPlace::Nowhere);
    assert_eq!(found.verdict(), VerifyVerdict::Tampered);
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
