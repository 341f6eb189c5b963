//! A run that died before its first event: never chosen, never listed, gone with the next start.

use std::fs;
use std::process::Command;

use crate::full_disk::namespaces_work;
use crate::harness::{run_dirs, run_id, run_with, small, tiny};

/// Every boundary between "no directory" and "first event".
const BOUNDARIES: &[(&str, &str)] = &[
    ("NIGHTLOOP_CRASH_AT", "run_made"),
    ("NIGHTLOOP_CRASH_AT", "run_locked"),
    ("NIGHTLOOP_CRASH_AT", "run_reserve"),
    ("NIGHTLOOP_CRASH_AT", "run_genesis"),
    ("NIGHTLOOP_CRASH_AT", "run_remembered"),
    ("NIGHTLOOP_CRASH", "before_write:0"),
    ("NIGHTLOOP_CRASH", "mid_write:0"),
];

#[test]
fn a_run_that_died_before_it_began_leaves_nothing_to_choose() {
    for (variable, point) in BOUNDARIES {
        let bench = tiny();
        let died = run_with(&bench, &["run"], &[(variable, point)]);
        assert!(died.code == -1 && died.stderr.contains("planned crash"), "{point}: {}", died.stderr);
        assert_eq!(run_dirs(&bench).len(), 1, "{point}: the test is about what is left");
        for command in ["resume", "status", "verify", "inbox", "stop"] {
            let told = bench.nightloop(&[command]).expect(64);
            assert!(told.stderr.contains("no runs yet"), "{point}, {command}: {}", told.stderr);
        }
        assert!(bench.nightloop(&["runs"]).expect(0).stdout.contains("no runs yet"), "{point}");
        bench.nightloop(&["run"]).expect(0);
        bench.nightloop(&["verify"]).expect(0);
        assert_eq!(fs::read_dir(bench.state.join("runs")).unwrap().count(), 1, "{point}: the rest is not cleared");
    }
}

#[test]
fn the_run_before_it_stays_the_newest() {
    for (variable, point) in BOUNDARIES {
        let bench = tiny();
        bench.nightloop(&["run"]).expect(0);
        let run = run_id(&bench);
        assert_eq!(run_with(&bench, &["run", "--anyway"], &[(variable, point)]).code, -1, "{point}");
        assert_eq!(run_dirs(&bench).len(), 2, "{point}");
        for command in ["status", "verify", "resume"] {
            let told = bench.nightloop(&[command]).expect(0);
            assert!(told.stdout.contains(&run), "{point}, {command}: {}", told.stdout);
        }
        let listed = bench.nightloop(&["runs"]).expect(0).stdout;
        assert!(listed.lines().count() == 1 && listed.contains(&run), "{point}: {listed}");
        // From elsewhere the newest is meant.
        let mut command = bench.command(&["status"]);
        let status: crate::support::Ended = command.current_dir(bench.dir.path()).output().unwrap().into();
        assert!(status.expect(0).stdout.contains(&run), "{point}");
    }
}

#[test]
fn what_is_left_of_a_real_run_is_never_cleared() {
    for lost in ["genesis.json", "journal/00000001.jsonl", "run.lock", "blobs"] {
        let bench = tiny();
        bench.nightloop(&["run"]).expect(0);
        let (run, dir) = (run_id(&bench), bench.run_dir());
        match dir.join(lost).is_dir() {
            true => fs::remove_dir_all(dir.join(lost)).unwrap(),
            false => fs::remove_file(dir.join(lost)).unwrap(),
        }
        bench.nightloop(&["run", "--anyway"]).expect(0);
        assert!(dir.is_dir(), "{lost}: a damaged run was taken for one that never began");
        assert!(bench.nightloop(&["runs"]).stdout.contains(&run), "{lost}");
    }
    // Emptied to the last file: the anchors still name it.
    let bench = tiny();
    bench.nightloop(&["run"]).expect(0);
    let dir = bench.run_dir();
    fs::remove_dir_all(&dir).unwrap();
    fs::create_dir(&dir).unwrap();
    bench.nightloop(&["run", "--anyway"]).expect(0);
    assert!(dir.is_dir(), "a run that an anchor names was cleared");
}

const SCRIPT: &str = r#"
mount -t tmpfs -o size="$SIZE" none "$NIGHTLOOP_STATE_DIR" || exit 99
"$NIGHTLOOP" run >/dev/null 2>"$OUT/run"; echo "run $?"
"$NIGHTLOOP" status >"$OUT/status" 2>&1; echo "status $?"
"$NIGHTLOOP" resume >"$OUT/resume" 2>&1; echo "resume $?"
mount -o remount,size=64m "$NIGHTLOOP_STATE_DIR" || exit 98
"$NIGHTLOOP" run >"$OUT/again" 2>&1; echo "again $?"
"$NIGHTLOOP" verify >"$OUT/verify" 2>&1; echo "verify $?"
echo "left $(ls -A "$NIGHTLOOP_STATE_DIR/runs" | wc -l)"
"#;

#[test]
fn a_disk_that_is_full_before_the_first_event_leaves_no_run() {
    if !namespaces_work() {
        println!("skipped: user and mount namespaces are not available here");
        return;
    }
    // Not enough for the reserve and what comes before the first event.
    for size in ["24k", "64k", "1m", "4000k", "4096k"] {
        let bench = small();
        fs::create_dir_all(&bench.state).unwrap();
        let command = bench.command(&[]);
        let mut script = Command::new("unshare");
        script.args(["-Urm", "sh", "-c", SCRIPT]).current_dir(&bench.workspace).env_clear();
        for (name, value) in command.get_envs() {
            script.env(name, value.unwrap_or_default());
        }
        script.env("NIGHTLOOP", command.get_program()).env("SIZE", size).env("OUT", bench.dir.path());
        let told = String::from_utf8_lossy(&script.output().unwrap().stdout).into_owned();
        let read = |name: &str| fs::read_to_string(bench.dir.path().join(name)).unwrap_or_default();
        let codes: Vec<i32> = told.lines().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
        let [run, status, resume, again, verify, left] = codes[..] else { panic!("{size}: {told}") };
        assert!([74, 75].contains(&run), "{size}: {told}{}", read("run"));
        assert!(read("run").contains("space"), "{size}: {}", read("run"));
        assert_eq!((status, resume), (64, 64), "{size}: {told}{}{}", read("status"), read("resume"));
        assert_eq!((again, verify, left), (0, 0, 1), "{size}: {told}{}{}", read("again"), read("verify"));
    }
}
