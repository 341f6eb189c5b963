//! Held-back checks: files that no agent can read decide with the rest, and nothing of them gets out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::case::{Case, Ran, argv, overlays, sh, write};
use crate::sealed::{Expect, check};

/// In the hidden files, and printed by the hidden check; not one agent may see it.
const SECRET: &str = "xyzzy-only-the-engine-knows";

/// `open` wants any answer, the held-back test the right one; it also copies itself wherever it may write.
fn case() -> (Case, PathBuf) {
    let case = Case::new();
    let hidden = case.bench.dir.path().join("hidden");
    fs::create_dir(&hidden).unwrap();
    let test = format!(
        "echo {SECRET}\n\
         for place in . \"$TMPDIR\" /dev/shm /tmp \"$HOME\"; do cp held.sh \"$place/leaked-$$\" 2>/dev/null; done\n\
         grep -qx 42 answer.md && echo 'test result: ok. 3 passed; 0 failed; 0 ignored' && exit\n\
         echo 'test result: FAILED. 2 passed; 1 failed; 0 ignored'; exit 1\n"
    );
    fs::write(hidden.join("held.sh"), test).unwrap();
    let criteria = json!([
        {"id": "open", "text": "There is an answer.", "check": argv("test -s answer.md")},
        {"id": "held", "text": "It is right.",
         "check": {"command": ["sh", "held.sh"], "hidden": hidden, "writes": ["leaked*"]}},
    ]);
    (case.declare("acceptance_criteria", criteria).declare("budget", json!({"max_iterations": 3})), hidden)
}

/// Every file below that quotes the secret.
fn quoting(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(quoting(&entry.path()));
        } else if kind.is_file() && String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).contains(SECRET) {
            found.push(entry.path());
        }
    }
    found
}

/// Nothing in the workspace, in what agents were told or in the journal quotes what is held back.
fn kept(ran: &Ran) {
    assert_eq!(quoting(&ran.bench.workspace), [] as [PathBuf; 0]);
    let requests = ran.events("llm.requested");
    assert!(!requests.is_empty());
    let held: Vec<Value> =
        ran.events("probe.finished").iter().map(|data| data["result"]["held_back"].clone()).collect();
    let digest = held.iter().find(|digest| digest.is_string()).expect("the output is kept for the operator");
    assert!(ran.blob(digest).contains(SECRET));
    let known: Vec<&str> = held.iter().filter_map(Value::as_str).collect();
    for file in quoting(&ran.bench.run_dir()) {
        // A blob is named by its folder and its file.
        let parts: Vec<&str> = file.iter().rev().take(2).filter_map(|part| part.to_str()).collect();
        let name = format!("{}{}", parts[1], parts[0]);
        assert!(known.contains(&name.as_str()), "{} quotes it", file.display());
    }
}

#[test]
fn work_for_the_open_checks_alone_is_not_certified() {
    if !overlays() {
        return;
    }
    let (case, hidden) = case();
    // It looks for the files, and for what the check may have left behind.
    let look =
        format!("cat {0}/* || ls {0}; cat leaked* $TMPDIR/leaked* /dev/shm/leaked* /tmp/leaked*", hidden.display());
    let ran =
        case.solver(0, [write("answer.md", "7\n"), sh(&look)]).solver(1, [write("answer.md", "8\n"), sh(&look)]).run();
    check(&ran, &Expect::budget("iterations", &["0.5", "0.5", "0.5"]));
    let integrity = &ran.report()["integrity"];
    assert_eq!(*integrity, json!({"open": {"met": 1, "all": 1}, "hidden": {"met": 0, "all": 1}, "agree": false}));
    let said = "the open checks pass, a held-back one does not";
    assert!(ran.ended.stdout.contains(said), "{}", ran.ended.stdout);
    assert!(ran.bench.nightloop(&["verify"]).expect(0).stdout.contains(said));
    kept(&ran);
    let shown = fs::read_to_string(ran.bench.workspace.join("evidence/loop/iter_1/checks/held.txt")).unwrap();
    assert_eq!(shown, "exit 1, tests: 2 passed, 1 failed, 0 skipped\nIts output is held back, like its files.\n");
}

#[test]
fn honest_work_is_certified_and_both_agree() {
    if !overlays() {
        return;
    }
    let (case, _) = case();
    let ran = case.solver(0, [write("answer.md", "7\n")]).solver(1, [write("answer.md", "42\n")]).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert_eq!(ran.report()["integrity"]["agree"], true);
    kept(&ran);
    ran.bench.nightloop(&["verify", "--replay"]).expect(0);
    assert_eq!(quoting(&ran.bench.workspace), [] as [PathBuf; 0], "a replay leaves nothing either");
}

/// Before the start, too, the check runs with its files: without them it could say nothing.
#[test]
fn what_is_held_back_counts_before_the_start() {
    if !overlays() {
        return;
    }
    let (case, _) = case();
    let ran = case.file("answer.md", "42\n").run().expect(0);
    assert!(ran.ended.stdout.contains("Already met: 2 of 2"), "{}", ran.ended.stdout);
    let (wrong, _) = self::case();
    let ran = wrong.file("answer.md", "7\n").solver(0, [write("answer.md", "42\n")]).run();
    check(&ran, &Expect::exact(&["0"]));
    assert_eq!(quoting(&ran.bench.workspace), [] as [PathBuf; 0]);
}

/// Without its files, or without an overlay to show them in, it does not run at all.
#[test]
fn a_held_back_check_never_runs_in_the_open() {
    if !overlays() {
        return;
    }
    let (case, hidden) = case();
    let ran = case.declare("sandbox", json!({"mode": "off"})).run().expect(64);
    assert!(ran.ended.stderr.contains("holds back"), "{}", ran.ended.stderr);
    assert!(!ran.bench.workspace.join("evidence").exists());
    drop((ran, hidden));

    let (case, hidden) = self::case();
    let ran = case.solver(0, [sh("mkdir -p scratch && touch scratch/STOP")]).run().expect(4);
    fs::remove_file(ran.bench.workspace.join("scratch/STOP")).unwrap();
    fs::rename(&hidden, hidden.with_extension("gone")).unwrap();
    let ran = ran.resume().expect(75);
    assert!(ran.ended.stderr.contains("holds back") && ran.ended.stderr.contains("nightloop resume"));
    fs::rename(hidden.with_extension("gone"), &hidden).unwrap();
    let ran = ran.resume();
    assert_eq!(ran.report()["integrity"]["hidden"]["all"], 1, "{}", ran.ended.stdout);
    ran.verified();
}

/// A file system in the workspace, which no overlay can be laid over; gone with it.
struct Mounted(PathBuf);

impl Mounted {
    fn at(place: PathBuf) -> Option<Self> {
        fs::create_dir_all(&place).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&place).output();
        mounted.is_ok_and(|ended| ended.status.success()).then_some(Self(place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// A machine that gave overlays at the start, and gives none any more.
#[test]
fn without_an_overlay_a_resumed_run_waits() {
    if !overlays() {
        return;
    }
    let (case, _) = case();
    let ran = case.solver(0, [sh("mkdir -p scratch && touch scratch/STOP")]).run().expect(4);
    fs::remove_file(ran.bench.workspace.join("scratch/STOP")).unwrap();
    let Some(mounted) = Mounted::at(ran.bench.workspace.join("other")) else {
        return eprintln!("skipped: nothing can be mounted here");
    };
    let events = ran.bench.events().len();
    let ran = ran.resume().expect(75);
    assert!(ran.ended.stderr.contains("another file system is mounted"), "{}", ran.ended.stderr);
    assert_eq!(ran.bench.events().len(), events, "nothing was recorded, so nothing ran");
    drop(mounted);
    ran.resume().verified();
}
