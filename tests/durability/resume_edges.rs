//! `resume` where there is little or nothing to go on with.

use std::fs;
use std::io::Write as _;

use crate::chain::Chain;
use crate::harness::{contents, difference, journal_text, loop_yaml, outcome, run_dirs, run_with, small, tiny};
use crate::support::Bench;

/// A run that died in its middle.
fn died_at(seq: u64) -> Bench {
    let bench = small();
    assert_eq!(run_with(&bench, &["run"], &[("NIGHTLOOP_CRASH", &format!("after_sync:{seq}"))]).code, -1);
    bench
}

/// Everything but the lock file, whose content names the last owner.
fn kept(bench: &Bench) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut files = contents(&run_dirs(bench)[0]);
    files.extend(contents(&bench.workspace));
    files.retain(|path, _| !path.ends_with("run.lock"));
    files
}

#[test]
fn an_ended_run_is_left_alone_and_keeps_its_exit_code() {
    // A check that no file of the script can meet: the budget ends that run.
    let hopeless = loop_yaml().replace("\"two\"]", "\"three\"]").replace("max_iterations: 5", "max_iterations: 3");
    for (bench, code) in [(tiny(), 0), (small().file("loop.yaml", hopeless), 2)] {
        bench.nightloop(&["run"]).expect(code);
        let before = kept(&bench);
        let resumed = bench.nightloop(&["resume"]).expect(code);
        assert!(resumed.stdout.contains("has ended"), "{}", resumed.stdout);
        assert_eq!(kept(&bench), before);
    }
}

#[test]
fn a_run_that_ended_unsealed_is_sealed_by_resume() {
    let bench = tiny();
    bench.nightloop(&["run"]).expect(0);
    let last = bench.events().len() - 1;
    let seal = bench.run_dir().join("seal.json");
    let sealed = fs::read(&seal).unwrap();
    fs::remove_file(&seal).unwrap();
    let found = bench.nightloop(&["verify"]);
    assert_eq!(found.code, 1, "an anchor names the seal that is gone: {}", found.stdout);
    bench.nightloop(&["resume"]).expect(0);
    assert_eq!(fs::read(&seal).unwrap(), sealed, "the same facts give the same seal");
    bench.nightloop(&["verify"]).expect(0);

    let bench = tiny();
    assert_eq!(run_with(&bench, &["run"], &[("NIGHTLOOP_CRASH", &format!("after_sync:{last}"))]).code, -1);
    bench.nightloop(&["verify"]).expect(2);
    let resumed = bench.nightloop(&["resume"]).expect(0);
    assert!(resumed.stdout.contains("sealed now"), "{}", resumed.stdout);
    assert_eq!(bench.events().len() - 1, last, "sealing adds no event");
    bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn three_resumes_that_get_nowhere_need_a_person() {
    let bench = died_at(20);
    for attempt in 1..=3 {
        let point = format!("after_sync:{}", 20 + attempt);
        assert_eq!(run_with(&bench, &["resume"], &[("NIGHTLOOP_CRASH", &point)]).code, -1, "attempt {attempt}");
    }
    let before = kept(&bench);
    let refused = bench.nightloop(&["resume"]).expect(75);
    assert!(refused.stderr.contains("3 times") && refused.stderr.contains("hint:"), "{}", refused.stderr);
    assert_eq!(kept(&bench), before);
    bench.nightloop(&["verify"]).expect(2);
}

#[test]
fn two_resumes_that_get_nowhere_are_forgiven() {
    let bench = died_at(20);
    for attempt in 1..=2 {
        let point = format!("after_sync:{}", 20 + attempt);
        assert_eq!(run_with(&bench, &["resume"], &[("NIGHTLOOP_CRASH", &point)]).code, -1);
    }
    bench.nightloop(&["resume"]).expect(0);
    bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn leftovers_of_a_killed_write_are_cleared() {
    let undisturbed = small();
    undisturbed.nightloop(&["run"]).expect(0);
    let bench = died_at(40);
    let names = [".nightloop-tmp-AbCdEf", "src/.nightloop-tmp-7-1", "evidence/loop/iter_0/.nightloop-tmp-y"];
    fs::create_dir(bench.workspace.join("src")).unwrap();
    for name in names {
        fs::write(bench.workspace.join(name), "half").unwrap();
    }
    bench.nightloop(&["resume"]).expect(0);
    assert_eq!(difference(&outcome(&undisturbed), &outcome(&bench)), None);
    assert!(names.iter().all(|name| !bench.workspace.join(name).exists()));
}

#[test]
fn a_torn_tail_is_kept_aside_and_cut() {
    let torn: &[&[u8]] = &[b"{\"v\":1,\"seq\":41,\"ts\"", b"\0\0\0\0\0\0\0\0", b"\xff\n", b"{}\n{}\n"];
    for tail in torn {
        let bench = died_at(40);
        let path = bench.run_dir().join("journal/00000001.jsonl");
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(tail).unwrap();
        bench.nightloop(&["verify"]).expect(2);
        bench.nightloop(&["resume"]).expect(0);
        assert_eq!(fs::read(path.with_extension("torn")).unwrap(), *tail);
        let events = bench.events();
        let (_, resumed) = events.iter().find(|(kind, _)| kind == "run.resumed").unwrap();
        assert_eq!(resumed["torn_bytes"], tail.len());
        bench.nightloop(&["verify"]).expect(0);
    }
}

#[test]
fn a_corrupt_middle_is_refused_and_left_as_it_is() {
    let bench = died_at(40);
    let path = bench.run_dir().join("journal/00000001.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let line = bytes[..middle].iter().filter(|byte| **byte == b'\n').count() + 1;
    fs::write(&path, &bytes).unwrap();
    let before = kept(&bench);
    let refused = bench.nightloop(&["resume"]).expect(65);
    assert!(refused.stderr.contains(&format!("line {line} ")), "{}", refused.stderr);
    assert_eq!(kept(&bench), before);
    bench.nightloop(&["verify"]).expect(1);
}

#[test]
fn events_of_a_newer_version_are_refused() {
    let bench = died_at(40);
    let mut chain = Chain::read(&bench.run_dir());
    chain.append("future.event", r#"{"what":"unheard of"}"#);
    chain.write();
    let before = kept(&bench);
    let refused = bench.nightloop(&["resume"]).expect(76);
    assert!(refused.stderr.contains("newer") && refused.stderr.contains("future.event"), "{}", refused.stderr);
    assert_eq!(kept(&bench), before);
}

#[test]
fn lines_of_a_newer_format_are_refused() {
    let bench = died_at(40);
    let path = bench.run_dir().join("journal/00000001.jsonl");
    let line = journal_text(&bench).lines().last().unwrap().replace("{\"v\":1,", "{\"v\":2,");
    writeln!(fs::OpenOptions::new().append(true).open(&path).unwrap(), "{line}").unwrap();
    let before = kept(&bench);
    let refused = bench.nightloop(&["resume"]).expect(76);
    assert!(refused.stderr.contains("newer"), "{}", refused.stderr);
    assert_eq!(kept(&bench), before);
}

#[test]
fn a_run_whose_workspace_is_gone_says_so() {
    let bench = died_at(40);
    let run = crate::harness::run_id(&bench);
    let elsewhere = bench.dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(&bench.workspace, bench.dir.path().join("moved")).unwrap();
    let mut command = bench.command(&["resume", &run]);
    let refused: crate::support::Ended = command.current_dir(&elsewhere).output().unwrap().into();
    assert_eq!(refused.code, 64, "{}", refused.stderr);
    assert!(refused.stderr.contains(bench.workspace.to_str().unwrap()), "{}", refused.stderr);
    assert!(!bench.workspace.exists(), "a workspace that is gone is not made up");
}
