//! The engine dies in a run with items; `resume` must come out with the same files, each entry written once.
//!
//! `NIGHTLOOP_THOROUGH=1` dies at every event instead of every fifth.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::case::{Case, Ran, content, edit, item, report, sh, write};
use crate::harness::{check, for_each_case, run_with, short_name, thorough, tool_is_running, wait_until};
use crate::support::Bench;

/// Two items; the second needs two attempts.
fn two_items() -> Bench {
    let second = [write("b.txt", "B\n"), report(Some("the word"))];
    let old = "# progress\n\n2026-02-01 | X | passes | old\n";
    let log: String = (0..47).map(|number| format!("old {number}\n")).collect();
    let case = Case::prd(&["A", "B"]).failing("B", 1).author("B", Some(2), &second).file("progress.txt", old);
    case.file("loop/log.txt", &log).written()
}

const FILES: [&str; 5] = ["prd.json", "progress.txt", "loop/log.txt", "loop/log.archive.txt", "loop/last_error.txt"];

/// The files of the run without what names it.
fn files(bench: &Bench) -> Vec<String> {
    let run = short_name(bench).to_uppercase();
    let read = |name: &&str| fs::read_to_string(bench.workspace.join(Path::new(name))).unwrap_or_default();
    FILES.iter().map(read).map(|text| text.replace(&run, "RUN")).collect()
}

/// Dies as planned, goes on, and compares.
fn die_and_resume(bench: &Bench, plan: (&str, &str), expected: &[String]) -> Result<(), String> {
    let (_, point) = plan;
    let died = run_with(bench, &["run", "--headless"], &[plan]);
    check(died.code == -1, || format!("{point}: it did not die: {}\n{}{}", died.code, died.stdout, died.stderr))?;
    let resumed = bench.nightloop(&["resume", "--headless"]);
    check(resumed.code == 0, || format!("{point}: {}\n{}{}", resumed.code, resumed.stdout, resumed.stderr))?;
    for (name, (wanted, found)) in FILES.iter().zip(expected.iter().zip(files(bench))) {
        check(*wanted == found, || format!("{point}: {name} was\n{wanted}\nand is\n{found}"))?;
    }
    let verified = bench.nightloop(&["verify"]);
    check(verified.code == 0, || format!("{point}: verify {}\n{}", verified.code, verified.stdout))
}

/// The run without a crash: its files, and how many events it has.
fn undisturbed() -> (Vec<String>, Vec<String>) {
    let bench = two_items();
    bench.nightloop(&["run", "--headless"]).expect(0);
    bench.nightloop(&["verify"]).expect(0);
    let found = files(&bench);
    assert!(found.iter().all(|text| !text.is_empty()), "{found:?}");
    (found, bench.events().into_iter().map(|(kind, _)| kind).collect())
}

#[test]
fn a_kill_after_any_event_changes_nothing() {
    let (expected, kinds) = undisturbed();
    let wanted = |seq: &usize| thorough() || seq.is_multiple_of(11);
    let points: Vec<String> = (1..kinds.len() - 1).filter(wanted).map(|seq| format!("after_sync:{seq}")).collect();
    for_each_case(&points, |point| die_and_resume(&two_items(), ("NIGHTLOOP_CRASH", point), &expected));
}

#[test]
fn a_kill_between_the_flip_and_its_record_writes_nothing_twice() {
    let (expected, kinds) = undisturbed();
    let settled: Vec<usize> = (0..kinds.len()).filter(|seq| kinds[*seq] == "item.settled").collect();
    assert_eq!(settled.len(), 3);
    let mut points: Vec<(&str, String)> = (1..=3).map(|nth| ("NIGHTLOOP_CRASH_AT", format!("item:{nth}"))).collect();
    // All files are written, and the record is not, or only half of it.
    for seq in settled {
        points.extend(["before_write", "mid_write"].map(|moment| ("NIGHTLOOP_CRASH", format!("{moment}:{seq}"))));
    }
    for_each_case(&points, |(name, point)| die_and_resume(&two_items(), (name, point), &expected));
}

#[test]
fn a_kill_before_the_file_is_put_back_puts_it_back() {
    let meddling = || {
        let flip = "sed -i 's/\"passes\": false/\"passes\": true/' prd.json";
        let case = Case::prd(&["A", "B"]).unconfined();
        case.author("A", None, &[write("a.txt", "A\n"), sh(flip), report(None)]).written()
    };
    let bench = meddling();
    bench.nightloop(&["run", "--headless"]).expect(0);
    let expected = files(&bench);
    let events = bench.events();
    let disbelieved =
        events.iter().position(|(kind, data)| kind == "prd.read" && data.get("theirs").is_some()).unwrap();
    let points = [
        format!("before_write:{disbelieved}"),
        format!("after_sync:{disbelieved}"),
        format!("before_write:{}", disbelieved + 1),
        format!("after_sync:{}", disbelieved + 1),
    ];
    for_each_case(&points, |point| die_and_resume(&meddling(), ("NIGHTLOOP_CRASH", point), &expected));
}

/// Somebody edits the file while the critic reads, and the engine dies right after its own write.
#[test]
fn a_kill_after_a_merged_flip_keeps_both() {
    let waits = sh("until grep -q MARK prd.json; do sleep 0.01; done");
    let case = Case::prd(&["A"]).critic(Some("A"), None, &[waits, content("a.txt")]);
    let case =
        case.author("C", None, &[write("c.txt", "C\n"), report(None)]).critic(Some("C"), None, &[content("c.txt")]);
    let bench = case.written();
    let mut command = bench.command(&["run", "--headless"]);
    let child = command.env("NIGHTLOOP_CRASH_AT", "item:1").spawn().unwrap();
    wait_until("the critic reads", || tool_is_running(&bench, "bash"));
    edit(&bench, |prd| {
        prd["userStories"].as_array_mut().unwrap().push(item("C"));
        prd["by"] = json!("MARK");
    });
    assert_eq!(child.wait_with_output().unwrap().status.code(), None, "it dies as planned");
    let ended = bench.nightloop(&["resume", "--headless"]);
    let ran = Ran { bench, ended }.converged();
    assert_eq!(ran.chosen(), ["A 1", "C 1"]);
    assert_eq!(ran.flipped(), ["A", "C"]);
    assert_eq!((ran.passing(), &ran.prd()["by"]), (vec!["A".into(), "C".into()], &json!("MARK")));
    assert_eq!(ran.prd()["userStories"][0]["notes"], "It is in its file.", "once");
    assert!(!ran.text("loop/log.txt").contains("[ERROR]"), "{}", ran.text("loop/log.txt"));
}

#[test]
fn a_microloop_goes_on_after_a_kill() {
    let looping = || {
        let check = "test -f fixed || { echo 'lint error: would reformat'; exit 1; }";
        let unhappy =
            |word: &str| crate::case::critique("UNVERIFIED", true, json!([crate::case::concern("MEDIUM", word)]));
        let case = Case::micro().check("kind", check).writes(1, "A 1\n").writes(2, "A 2\n");
        let case = case.says(1, unhappy("one")).says(2, unhappy("two"));
        let case = case.says(3, crate::case::critique("VERIFIED", false, json!([])));
        case.set("detours", json!([{"for": "lint_errors", "command": ["touch", "fixed"]}])).written()
    };
    let bench = looping();
    bench.nightloop(&["run", "--headless"]).expect(0);
    let count = bench.events().len();
    let step = if thorough() { 1 } else { 20 };
    let points: Vec<String> = (1..count - 1).step_by(step).map(|seq| format!("after_sync:{seq}")).collect();
    for_each_case(&points, |point| {
        let bench = looping();
        die_and_resume(&bench, ("NIGHTLOOP_CRASH", point), &vec![String::new(); FILES.len()])?;
        let ran = Ran { bench, ended: crate::support::Ended { code: 0, stdout: String::new(), stderr: String::new() } };
        let routes = ran.routes();
        check(routes == ["LOOP", "DETOUR auto-linter", "CONTINUE"], || format!("{point}: {routes:?}"))
    });
}
