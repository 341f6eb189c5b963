//! The engine dies in a run of the value playbook; `resume` must come out at the same place.
//!
//! The same place means: the same decisions in the same order, the same calls, each question asked once.
//! `NIGHTLOOP_THOROUGH=1` dies at every event instead of a sample of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::case::{Case, PRD, call, complete, done, script, turns, vrc, write};
use crate::dying::{self, DECISIONS, Undisturbed, sample};
use crate::harness::{check, for_each_case, run_with};
use crate::support::Bench;

/// A vision with a SOFT issue, and a PRD that is to be amended: two questions before the first iteration.
fn asking() -> Case {
    let validation = json!({
        "verdict": "NEEDS_REVISION",
        "reason": "One thing could be said better.",
        "dimensions": {
            "outcome_grounded": "STRONG",
            "adoption_realistic": "WEAK",
            "causally_sound": "STRONG",
            "failure_aware": "ADEQUATE",
        },
        "strengths": ["It is short."],
        "issues": [{
            "id": "V1",
            "severity": "SOFT",
            "category": "adoption_risk",
            "description": "Nobody may look for two.txt.",
            "evidence": "Whoever looks for two.txt",
        }],
    });
    let amend = json!({"verdict": "AMEND", "reason": "A word is missing.", "amendments": ["Say who reads it."]});
    let proposal = json!({"text": format!("{PRD}4. Somebody reads it.\n"), "note": "who reads it"});
    Case::new()
        .on("vision_validate", turns(&[&[call("report_vision_validation", validation)]]))
        .on_nth("prd_critique", 1, turns(&[&[call("report_critique", amend)]]))
        .on("prd_amend", turns(&[&[call("propose_prd", proposal)]]))
}

/// Both tasks are done badly, a triage and a fix mend it; an evaluation wants more, and whoever does that breaks what
/// passed before, so that it is mended again.
fn mending() -> Case {
    let scripts = [
        script("unit/one", "one.txt", "one"),
        script("unit/uno", "one.txt", "one"),
        script("value/two", "two.txt", "two"),
        script("value/due", "two.txt", "two"),
    ];
    let all = ["unit/one", "unit/uno", "value/two", "value/due"];
    let cause = json!({
        "cause": "The files hold the wrong words.",
        "affected_tests": all,
        "priority": 1,
        "fix_suggestion": "Write the right ones.",
    });
    let finding = json!({
        "severity": "blocking",
        "description": "There is no three.txt.",
        "user_impact": "Readers of three get nothing.",
    });
    let finding = call("report_eval_finding", finding);
    let badly = [write("one.txt", "eno\n"), write("two.txt", "owt\n")];
    let breaking = [write("one.txt", "eno\n"), write("three.txt", "three\n")];
    let mut case = Case::new()
        .on_subject("execute", "T2", turns(&[&badly, &[complete("T2")]]))
        .on("generate_verifications", json!([{"text": "Checks.", "calls": scripts}, done()]))
        .on("triage", turns(&[&[call("report_triage", json!({"root_causes": [cause]}))]]))
        .on("fix", json!([{"calls": [write("one.txt", "one\n"), write("two.txt", "two\n")]}, done()]))
        .on_nth("critical_eval", 1, json!([{"calls": [finding]}, done()]))
        .on_subject("execute", "CE-23-1", turns(&[&breaking, &[complete("CE-23-1")]]));
    for (nth, score) in [(2, "0.4"), (3, "0.6"), (4, "0.95")] {
        case = case.on_nth("vrc", nth, turns(&[&[vrc(score, "CONTINUE", json!([]))]]));
    }
    case
}

/// The builder's conversation is handed over twice: after its turns, and because the server says that it is full.
fn handing_over() -> Case {
    let part = |part: u32, turns: Value| (json!({"purpose": "execute", "subject": "T1", "part": part}), turns);
    let piece = |name: &str| json!({"text": format!("I write {name}."), "calls": [write(name, "x\n")]});
    let full = json!({"text": "x", "faults": [{"http": 413}]});
    let parts = [
        part(0, json!([piece("a.txt"), piece("b.txt"), {"text": "a and b are there."}])),
        part(1, json!([piece("c.txt"), full])),
        part(2, turns(&[&[write("one.txt", "one\n")], &[complete("T1")]])),
    ];
    let case = Case::new().declare("limits", json!({"builder": {"turns": 2}}));
    parts.into_iter().fold(case, |case, (which, turns)| case.step(which, turns))
}

/// Approves a new text, acknowledges what may be accepted.
fn answers(_: &Bench, asked: &Value, _: usize) -> Vec<&'static str> {
    vec![if asked["request"].to_string().contains("PRD.md") { "approve" } else { "acknowledge" }]
}

/// Dies at `point`, goes on to the end, and compares with the undisturbed run.
fn die_and_resume(bench: &Bench, name: &str, point: &str, expected: &Undisturbed) -> Result<(), String> {
    dying::die_and_go_on(bench, (name, point), answers)?;
    expected.compare(bench, point)
}

/// Places inside what is written at once by a decision: a torn write keeps the first and loses the rest.
fn torn(kinds: &[String]) -> impl Iterator<Item = String> {
    let decided = |kind: &String| DECISIONS.contains(&kind.as_str());
    let inside = kinds.windows(2).enumerate().filter(move |(_, pair)| pair.iter().all(decided));
    inside.map(|(seq, _)| format!("mid_write:{}", seq + 1)).collect::<Vec<_>>().into_iter()
}

#[test]
fn a_crash_before_the_first_iteration_comes_back_at_the_question() {
    let expected = Undisturbed::of(&asking().written(), answers);
    let asked = expected.kinds.iter().filter(|kind| *kind == "decision.asked").count();
    assert_eq!(asked, 2, "{:?}", expected.story);
    let points = (0..expected.preparation()).map(|seq| format!("after_sync:{seq}"));
    let points = sample(points.collect(), 24);
    for_each_case(&points, |point| die_and_resume(&asking().written(), "NIGHTLOOP_CRASH", point, &expected));
}

#[test]
fn a_crash_around_a_question_or_its_answer_asks_nothing_twice() {
    let expected = Undisturbed::of(&asking().written(), answers);
    let around =
        ["round.kept", "decision.asked", "decision.answered", "decision.settled", "documents.read", "round.closed"];
    let mut points = Vec::new();
    for (seq, kind) in expected.kinds.iter().enumerate().take(expected.preparation()) {
        if around.contains(&kind.as_str()) {
            points.extend(["before_write", "mid_write", "after_sync"].map(|moment| format!("{moment}:{seq}")));
        }
    }
    assert!(points.len() >= 30, "{points:?}");
    let points = sample(points, 15);
    for_each_case(&points, |point| die_and_resume(&asking().written(), "NIGHTLOOP_CRASH", point, &expected));
}

#[test]
fn a_crash_during_the_work_changes_nothing() {
    let expected = Undisturbed::of(&mending().written(), answers);
    for wanted in ["execute", "fix", "exit_gate"] {
        let began = format!("\"action\":\"{wanted}\"");
        assert!(expected.story.iter().any(|line| line.contains(&began)), "{wanted}: {:?}", expected.story);
    }
    let points = (expected.preparation()..expected.kinds.len()).map(|seq| format!("after_sync:{seq}"));
    let points = sample(points.collect(), 24);
    for_each_case(&points, |point| die_and_resume(&mending().written(), "NIGHTLOOP_CRASH", point, &expected));
}

#[test]
fn a_decision_of_several_events_is_whole_after_a_torn_write() {
    let expected = Undisturbed::of(&mending().written(), answers);
    let points: Vec<String> = torn(&expected.kinds).collect();
    assert!(points.len() >= 10, "{points:?}");
    let points = sample(points, 24);
    for_each_case(&points, |point| die_and_resume(&mending().written(), "NIGHTLOOP_CRASH", point, &expected));
}

#[test]
fn a_crash_around_a_handover_goes_on_in_the_same_conversation() {
    let expected = Undisturbed::of(&handing_over().written(), answers);
    let handed: Vec<usize> =
        (0..expected.kinds.len()).filter(|seq| expected.kinds[*seq] == "conversation.handed_over").collect();
    assert_eq!(handed.len(), 2, "{:?}", expected.kinds);
    // From the last tool result before it to the first one after it. A tool whose result was not written down is not run
    // again, and its agent is told so: that conversation is another one.
    let is_result = |seq: &usize| expected.kinds[*seq] == "tool.finished";
    let around = handed.iter().flat_map(|seq| seq - 4..seq + 5);
    let points = around.flat_map(|seq| {
        let before = (!is_result(&seq)).then(|| format!("before_write:{seq}"));
        before.into_iter().chain([format!("after_sync:{seq}")])
    });
    let points = sample(points.collect(), 20);
    for_each_case(&points, |point| die_and_resume(&handing_over().written(), "NIGHTLOOP_CRASH", point, &expected));
}

#[test]
fn probes_that_ran_together_are_all_there_after_a_crash() {
    let expected = Undisturbed::of(&mending().written(), answers);
    let probes = expected.kinds.iter().enumerate().filter(|(_, kind)| kind.starts_with("probe."));
    let points = probes.flat_map(|(seq, _)| [format!("mid_write:{seq}"), format!("before_write:{seq}")]);
    let points = sample(points.collect(), 16);
    for_each_case(&points, |point| die_and_resume(&mending().written(), "NIGHTLOOP_CRASH", point, &expected));
}

// A real repository.

fn git(place: &Path, arguments: &[&str]) -> String {
    let ended = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(arguments)
        .current_dir(place)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(ended.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

/// The mending case in a repository with work of the user's own: a branch, a stash, a changed and a new file.
fn in_repository() -> Bench {
    let bench = mending()
        .set("git", json!({"mode": "branch", "allow_dirty": true}))
        .file("kept.txt", "kept\n")
        .file("changed.txt", "before\n")
        .written();
    let place = &bench.workspace;
    git(place, &["init", "-q", "-b", "main"]);
    git(place, &["add", "."]);
    git(place, &["commit", "-q", "-m", "mine"]);
    fs::write(place.join("kept.txt"), "stashed\n").unwrap();
    git(place, &["stash", "push", "-q"]);
    fs::write(place.join("changed.txt"), "after\n").unwrap();
    fs::write(place.join("new.txt"), "new\n").unwrap();
    bench
}

/// What is the user's: where the branch is, what is stashed, the files that are changed or new.
fn of_the_user(bench: &Bench) -> Vec<String> {
    let place = &bench.workspace;
    let mut found = vec![git(place, &["log", "--format=%T %s", "main"]), git(place, &["stash", "list", "--format=%T"])];
    found.extend(["kept.txt", "changed.txt", "new.txt"].map(|name| fs::read_to_string(place.join(name)).unwrap()));
    found.push(git(place, &["status", "--porcelain", "--", "kept.txt", "changed.txt", "new.txt"]));
    found
}

/// The run's own branch: what was committed, and with which words.
fn of_the_run(bench: &Bench) -> Vec<String> {
    let branch = git(&bench.workspace, &["branch", "--list", "nightloop/*", "--format=%(refname)"]);
    let branch = branch.trim();
    assert!(!branch.is_empty() && !branch.contains('\n'), "{branch}");
    let log = git(&bench.workspace, &["log", "--format=%s", &format!("main..{branch}")]);
    log.lines().map(str::to_owned).collect()
}

#[test]
fn a_crash_around_a_git_operation_leaves_the_users_things_alone() {
    let undisturbed = in_repository();
    let before = of_the_user(&undisturbed);
    let expected = Undisturbed::of(&undisturbed, answers);
    assert_eq!(of_the_user(&undisturbed), before);
    let history = of_the_run(&undisturbed);
    let operations = expected.kinds.iter().filter(|kind| *kind == "git.intended").count();
    assert!(operations >= 5 && history.len() >= 3, "{operations} operations, {history:?}");
    // Announced and not begun; done and not recorded.
    let mut points: Vec<(&str, String)> = Vec::new();
    for nth in 1..=operations {
        points.push(("NIGHTLOOP_CRASH_AT", format!("git:{nth}")));
        points.push(("NIGHTLOOP_CRASH_AT", format!("git_done:{nth}")));
    }
    for_each_case(&points, |(name, point)| {
        let bench = in_repository();
        die_and_resume(&bench, name, point, &expected)?;
        let (user, run) = (of_the_user(&bench), of_the_run(&bench));
        check(user == before, || format!("{point}: the user had {before:?} and has {user:?}"))?;
        // A resume renders the views anew, so that an operation which had nothing to commit may have a commit of them.
        let mut left = run.iter();
        let all_there = history.iter().all(|line| left.any(|found| found == line));
        check(all_there && run.len() <= history.len() + 1, || {
            format!("{point}: the run's branch had {history:?} and has {run:?}")
        })
    });
}

// A journal that ends early.

#[test]
fn a_journal_cut_at_any_record_goes_on_or_is_refused() {
    let count = Undisturbed::of(&mending().written(), answers).kinds.len();
    let late = format!("after_sync:{}", count - 2);
    let cuts = sample((1..count).map(|keep| keep.to_string()).collect(), 14);
    for_each_case(&cuts, |keep| {
        // The files are as they were near the end: only the journal says how far the run is.
        let bench = mending().written();
        let died = run_with(&bench, &["run", "--headless"], &[("NIGHTLOOP_CRASH", late.as_str())]);
        check(died.code == -1, || format!("it ended with {}", died.code))?;
        let path = bench.run_dir().join("journal/00000001.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        let kept: String = text.lines().take(keep.parse().unwrap()).flat_map(|line| [line, "\n"]).collect();
        fs::write(&path, kept).unwrap();
        let resumed = bench.nightloop(&["resume", "--headless"]);
        // Work that is done twice may come out differently; but there is an end, and a reason.
        check([0, 1, 2].contains(&resumed.code), || {
            format!("cut to {keep}: {} {}{}", resumed.code, resumed.stdout, resumed.stderr)
        })?;
        // Learnings that the journal does not know were written by somebody else, as far as anybody can tell.
        let refused = resumed.code == 1 && resumed.stdout.contains("INVARIANT_VIOLATION");
        let verified = bench.nightloop(&["verify"]);
        check(verified.code == 0 || refused, || format!("cut to {keep}: verify {}\n{}", verified.code, verified.stdout))
    });
}
