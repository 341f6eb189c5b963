//! `verify_chain` on sealed runs: nothing can be changed without being named.

use super::*;

/// A sealed, anchored run with two segments and two blobs.
fn sealed() -> Scratch {
    let scratch = Scratch::new();
    let options = WriterOptions { segment_events: 2, ..WriterOptions::default() };
    let writer = scratch.writer(scratch.fresh(), options);
    let blob = scratch.run.blobs().put(b"evidence").unwrap();
    scratch.run.blobs().put(b"").unwrap();
    for n in 0..3 {
        writer.append_blocking(vec![draft(n)]).unwrap();
    }
    let (next, head) = writer.head();
    writer.close().unwrap();
    let subjects = [Subject::sha256(HEAD_SUBJECT, head), Subject::sha256("evidence", blob)];
    let seal = write_seal(&scratch.run, &subjects, json!({"verdict": "done", "events": next})).unwrap();
    scratch.anchors().append("RUN", &Anchor { seq: next - 1, head, seal: Some(Digest::of(&seal)) }).unwrap();
    scratch
}

#[test]
fn an_untouched_run_is_clean() {
    let report = sealed().verify();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(report.sealed && !report.torn);
    assert_eq!(report.events, 4);
}

#[test]
fn every_flipped_bit_is_found_and_placed() {
    let scratch = sealed();
    let root = scratch.run.path().to_owned();
    let mut files = vec!["genesis.json".to_owned(), "seal.json".to_owned()];
    files.extend(["journal/00000001.jsonl", "journal/00000002.jsonl"].map(str::to_owned));
    for digest in scratch.run.blobs().list().unwrap() {
        let path = scratch.run.blobs().path(&digest);
        files.push(path.strip_prefix(&root).unwrap().display().to_string());
    }
    let mut flips = 0;
    for file in files {
        let path = root.join(&file);
        let good = fs::read(&path).unwrap();
        let mut bytes = good.clone();
        for bit in 0..good.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            let report = scratch.verify();
            let line = 1 + good[..bit / 8].iter().filter(|byte| **byte == b'\n').count();
            let place = if file.ends_with(".jsonl") { format!("{file} line {line} (seq") } else { file.clone() };
            let named = report.problems.iter().any(|problem| problem.place.starts_with(&place));
            assert!(named, "bit {bit} of {file}: {:?}", report.problems);
            bytes[bit / 8] = good[bit / 8];
            flips += 1;
        }
        fs::write(&path, &good).unwrap();
    }
    assert!(flips > 10_000, "{flips}");
    assert!(scratch.verify().problems.is_empty());
}

#[test]
fn a_cut_tail_is_shown_by_seal_and_anchor() {
    let scratch = sealed();
    fs::write(scratch.segment(2), "").unwrap();
    let report = scratch.verify();
    let places: Vec<&str> = report.problems.iter().map(|problem| problem.place.as_str()).collect();
    assert_eq!(places, ["journal", "seal.json"]);
    // Without its seal and without anchors the shorter run is a good run: that is what they are for.
    fs::remove_file(scratch.run.path().join("seal.json")).unwrap();
    assert!(verify_chain(&scratch.run, None).problems.is_empty());
    assert_eq!(scratch.verify().problems.len(), 2);
}

#[test]
fn a_rewritten_run_is_shown_by_its_anchor() {
    let scratch = sealed();
    // Somebody writes another history of the same length and seals it.
    fs::remove_file(scratch.segment(2)).unwrap();
    scratch.set_bytes(b"");
    let writer = scratch.writer(scratch.fresh(), WriterOptions::default());
    for n in 10..14 {
        writer.append_blocking(vec![draft(n)]).unwrap();
    }
    let (_, head) = writer.head();
    writer.close().unwrap();
    write_seal(&scratch.run, &[Subject::sha256(HEAD_SUBJECT, head)], json!({})).unwrap();
    assert!(verify_chain(&scratch.run, None).problems.is_empty());
    let places: Vec<String> = scratch.verify().problems.into_iter().map(|problem| problem.place).collect();
    assert_eq!(places, ["journal (seq 3)", "seal.json"]);
}

#[test]
fn a_torn_tail_alone_is_no_problem() {
    let (scratch, _) = Scratch::filled(2);
    let whole = scratch.bytes();
    scratch.set_bytes(&whole[..whole.len() - 1]);
    let report = scratch.verify();
    assert!(report.torn && report.problems.is_empty(), "{report:?}");
    assert_eq!(report.torn_at.unwrap().place, "journal/00000001.jsonl line 2 (seq 1)");
}

#[test]
fn strange_files_among_the_blobs_are_named() {
    let scratch = sealed();
    let dir = scratch.run.path().join("blobs/sha256");
    fs::write(dir.join("readme"), "").unwrap();
    fs::create_dir(dir.join("ff")).unwrap();
    fs::write(dir.join("ff/short"), "").unwrap();
    fs::write(dir.join("ff/.tmp-left"), "by a crash").unwrap();
    let places: Vec<String> = scratch.verify().problems.into_iter().map(|problem| problem.place).collect();
    assert_eq!(places, ["blobs/sha256/ff/short", "blobs/sha256/readme"]);
}

#[test]
fn a_seal_of_another_run_does_not_fit() {
    let (one, two) = (sealed(), sealed());
    write_seal(&two.run, &[Subject::sha256(HEAD_SUBJECT, Digest::of(b"other"))], json!({})).unwrap();
    fs::copy(two.run.path().join("seal.json"), one.run.path().join("seal.json")).unwrap();
    let problems = verify_chain(&one.run, None).problems;
    assert_eq!(problems.len(), 1);
    assert!(problems[0].what.contains("vouches for"), "{problems:?}");
    write_seal(&two.run, &[], json!({})).unwrap();
    assert!(verify_chain(&two.run, None).problems[0].what.contains("no subject"));
}
