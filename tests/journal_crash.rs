//! Kills a real process at every moment of a journal write and looks at what is left.
//!
//! Role: the failpoints and injected errors of the real writer, seen from outside, and the
//! agreement of our verifier with an independent one (`journal_verify.py`).
//! Not its role: byte-level damage; the unit tests of the journal do that exhaustively.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::{Command, Output};

use nightloop::journal::{
    Draft, HEAD_SUBJECT, JournalError, Record, RunDir, RunLock, SecretKey, Subject, SystemClock, Tail, Writer,
    WriterOptions, read, recover, sign_seal, verify_chain, write_seal,
};

const EVENTS: u32 = 5;
/// Tells the child what to do; the parent's test run leaves it unset.
const CHILD: &str = "NIGHTLOOP_TEST_JOURNAL_CHILD";
const OPTIONS: WriterOptions = WriterOptions { segment_bytes: 1 << 20, segment_events: 3 };

fn draft(n: u32) -> Draft {
    Draft::new(Some(n), "test.event", &serde_json::json!({"n": n, "text": "naïve \u{1f600}\t"})).unwrap()
}

/// Not a test by itself: the process that gets killed. Prints each acknowledged number.
#[test]
fn child() {
    let Ok(root) = std::env::var(CHILD) else { return };
    let run = RunDir::open(Path::new(&root)).unwrap();
    let _lock = RunLock::acquire(run.path()).unwrap();
    let tail = Tail::fresh(run.genesis_digest());
    let writer = Writer::start(&run, tail, Box::new(SystemClock), OPTIONS).unwrap();
    for n in 0..EVENTS {
        nightloop::journal::failpoint("test.step");
        match writer.append_blocking(vec![draft(n)]) {
            Ok(records) => eprintln!("acked {}", records[0].seq),
            Err(JournalError::DiskFull { .. }) => eprintln!("full"),
            Err(JournalError::Poisoned { .. }) => eprintln!("poisoned"),
            Err(error) => eprintln!("failed {error}"),
        }
    }
}

fn run_child(root: &Path, name: &str, value: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, root)
        .env(name, value)
        .output()
        .unwrap()
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn acked(output: &Output) -> Vec<u64> {
    lines(output).iter().filter_map(|line| line.strip_prefix("acked ")?.parse().ok()).collect()
}

fn scratch() -> (tempfile::TempDir, RunDir) {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(&dir.path().join("RUN"), b"{}").unwrap();
    (dir, run)
}

/// Recovers, and returns the records and whether a torn tail was cut.
fn recovered(run: &RunDir) -> (Vec<Record>, bool) {
    let lock = RunLock::acquire(run.path()).expect("the dead process keeps no lock");
    let mut records = Vec::new();
    let recovered = recover(run, &lock, &mut |record| {
        records.push(record);
        Ok(())
    })
    .unwrap();
    let writer = Writer::start(run, recovered.tail, Box::new(SystemClock), OPTIONS).unwrap();
    writer.append_blocking(vec![draft(99)]).unwrap();
    writer.close().unwrap();
    let report = verify_chain(run, None);
    assert!(report.problems.is_empty() && !report.torn, "{report:?}");
    (records, recovered.torn.is_some())
}

// The failpoints are not in a release build.
#[cfg(debug_assertions)]
#[test]
fn killed_at_every_moment_of_every_event() {
    // Five events and the end mark of the first segment, which has the number 3.
    for seq in 0..u64::from(EVENTS) + 1 {
        for (point, on_disk, torn) in [
            ("before_write", seq, false),
            ("mid_write", seq, true),
            ("after_write", seq + 1, false),
            ("after_sync", seq + 1, false),
        ] {
            let (_dir, run) = scratch();
            let output = run_child(run.path(), "NIGHTLOOP_CRASH", &format!("{point}:{seq}"));
            let case = format!("{point}:{seq} {output:?}");
            assert!(lines(&output).iter().any(|line| line.contains("planned crash")), "{case}");
            let expected: Vec<u64> = (0..seq).filter(|seq| *seq != 3).collect();
            assert_eq!(acked(&output), expected, "{case}");
            let (records, was_torn) = recovered(&run);
            assert_eq!((records.len() as u64, was_torn), (on_disk, torn), "{case}");
        }
    }
}

#[cfg(debug_assertions)]
#[test]
fn killed_at_a_named_place() {
    let (_dir, run) = scratch();
    let output = run_child(run.path(), "NIGHTLOOP_CRASH_AT", "test.step:3");
    assert_eq!(acked(&output), [0, 1], "{output:?}");
    let (_dir, run) = scratch();
    let output = run_child(run.path(), "NIGHTLOOP_CRASH_AT", "another.step");
    assert_eq!(acked(&output).len(), EVENTS as usize, "{output:?}");
}

#[cfg(debug_assertions)]
#[test]
fn a_failing_disk_is_reported() {
    let cases: [(&str, &[&str]); 4] = [
        ("write:2:ENOSPC", &["acked 0", "full", "acked 1", "acked 2", "acked 4"]),
        ("write:2+:ENOSPC", &["acked 0", "full", "full", "full", "full"]),
        ("sync:2:EIO", &["acked 0", "poisoned", "poisoned", "poisoned", "poisoned"]),
        ("sync:2:ENOSPC", &["acked 0", "poisoned", "poisoned", "poisoned", "poisoned"]),
    ];
    for (plan, expected) in cases {
        let (_dir, run) = scratch();
        let output = run_child(run.path(), "NIGHTLOOP_FAIL", plan);
        let words = ["acked", "full", "poisoned", "failed"];
        let said: Vec<String> =
            lines(&output).into_iter().filter(|line| words.iter().any(|word| line.starts_with(word))).collect();
        assert_eq!(said, expected, "{plan}: {output:?}");
        let (records, _) = recovered(&run);
        let there: Vec<u64> = records.iter().map(|record| record.seq).collect();
        assert!(acked(&output).iter().all(|seq| there.contains(seq)), "{plan}");
    }
}

/// Exit code of the independent verifier, or `None` on a machine without Python.
fn second_opinion(run: &RunDir) -> Option<i32> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journal_verify.py");
    Command::new("python3").arg(script).arg(run.path()).output().ok()?.status.code()
}

#[test]
fn an_independent_verifier_agrees() {
    let (_dir, run) = scratch();
    let tail = Tail::fresh(run.genesis_digest());
    let writer = Writer::start(&run, tail, Box::new(SystemClock), OPTIONS).unwrap();
    for n in 0..EVENTS {
        writer.append_blocking(vec![draft(n)]).unwrap();
    }
    let (_, head) = writer.head();
    writer.close().unwrap();
    run.blobs().put(b"evidence").unwrap();
    let key = SecretKey::from_seed(&[9; 32]);
    let predicate = serde_json::json!({"é": 1, "a": "b", "signer": key.public().fingerprint()});
    let seal = write_seal(&run, &[Subject::sha256(HEAD_SUBJECT, head)], predicate).unwrap();
    sign_seal(&run, &seal, &key).unwrap();
    assert_eq!(read(&run).filter(Result::is_ok).count(), EVENTS as usize + 1);
    let Some(code) = second_opinion(&run) else { return };
    assert_eq!(code, 0);
    let segment = run.path().join("journal/00000002.jsonl");
    let sealed = ["genesis.json", "seal.json", "seal.dsse.json"].map(|name| run.path().join(name));
    for file in std::iter::once(segment).chain(sealed) {
        let good = std::fs::read(&file).unwrap();
        for at in (0..good.len()).step_by(good.len() / 12 + 1) {
            let mut bad = good.clone();
            bad[at] ^= 4;
            std::fs::write(&file, &bad).unwrap();
            let run = RunDir::open(run.path()).unwrap();
            let ours = verify_chain(&run, None).problems.is_empty();
            assert_eq!(second_opinion(&run), Some(i32::from(!ours)), "{} byte {at}", file.display());
        }
        std::fs::write(&file, &good).unwrap();
    }
}
