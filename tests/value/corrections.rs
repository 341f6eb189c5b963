//! Course corrections of every kind, through the binary: what each changes, and that the run ends all the same.

use std::process::Command;

use serde_json::{Value, json};

use crate::case::{
    Case, Ran, Running, add_task, call, complete, correction, done, finding, held, script, sh, turns, vrc, write,
};

/// After the first task a value check wants the course corrected, and a correction does this.
fn advised(calls: &[Value]) -> Case {
    Case::new()
        .set("steps_per_iteration", json!(1))
        .on_nth("vrc", 2, turns(&[&[vrc("0.3", "COURSE_CORRECT", json!([]))]]))
        .on("course_correct", turns(&[calls]))
}

/// Corrected once, right after the first task.
#[track_caller]
fn corrected(ran: &Ran) {
    let work = ran.work();
    let at = work.iter().position(|action| action == "course_correct").unwrap();
    assert_eq!(work[..at], ["execute", "vrc"], "{:#?}", ran.log());
    assert_eq!(ran.steps("course_correct"), 1);
}

#[test]
fn restructure_changes_a_task() {
    let wish = json!({"action": "modify", "task_id": "T2", "description": "Give both readers a text of their own."});
    let ran = advised(&[call("manage_task", wish), correction("restructure", json!({}))]).run().expect(0).verified();
    corrected(&ran);
    assert_eq!(ran.task("T2")["description"], "Give both readers a text of their own.");
    assert_eq!(ran.task("T2")["status"], "done");
}

#[test]
fn descope_leaves_a_task_out() {
    let why = "Nobody looks for two.txt.";
    let wish = json!({"action": "modify", "task_id": "T2", "status": "descoped", "reason": why});
    let scripts = [script("unit/one", "one.txt", "one")];
    let ran = advised(&[call("manage_task", wish), correction("descope", json!({}))])
        .on("generate_verifications", json!([{"text": "One is enough.", "calls": scripts}, done()]))
        .run()
        .expect(0)
        .verified();
    corrected(&ran);
    assert!(!ran.bench.workspace.join("two.txt").exists());
    let report = ran.text("DELIVERY_REPORT.md");
    assert!(report.contains("- T2: ") && report.contains(&format!("(descoped: {why})")), "what is left out, and why");
}

#[test]
fn new_tasks_are_done() {
    let task = add_task("T3", json!({"description": "Add a word of greeting to the first file."}));
    let ran = advised(&[task, correction("new_tasks", json!({}))])
        .on_subject("execute", "T3", turns(&[&[write("hello.txt", "hello\n")], &[complete("T3")]]))
        .run()
        .expect(0)
        .verified();
    corrected(&ran);
    assert_eq!(ran.task("T3")["source"], "course_correction");
    assert_eq!(ran.text("hello.txt"), "hello\n");
}

#[test]
fn a_correction_that_changes_nothing_is_no_progress_and_ends() {
    let ran = advised(&[correction("restructure", json!({}))]).run().expect(0).verified();
    corrected(&ran);
    assert!(ran.log().iter().any(|line| line.contains("nothing changed")), "{:#?}", ran.log());
}

#[test]
fn checks_that_are_wrong_are_written_anew() {
    let wrong = [script("unit/one", "one.txt", "uno"), script("value/two", "two.txt", "two")];
    let right = [script("unit/one", "one.txt", "one")];
    let ran = Case::new()
        .set("max_fix_attempts", json!(1))
        .on("generate_verifications", json!([{"text": "Checks.", "calls": wrong}, done()]))
        .on_subject("generate_verifications", "unit/one", json!([{"text": "Anew.", "calls": right}, done()]))
        .on("fix", json!([done()]))
        .on("research", json!([done()]))
        .on("course_correct", turns(&[&[correction("regenerate_tests", json!({}))]]))
        .run()
        .expect(0)
        .verified();
    let work = ran.work();
    assert!(work.contains(&"research".to_owned()) && work.contains(&"course_correct".to_owned()), "{work:?}");
    assert_eq!(ran.calls("generate_verifications"), 2);
}

#[test]
fn escalate_asks_a_person() {
    let ran = advised(&[correction("escalate", json!({}))]).run().expect(3).stands();
    let ran = ran.asks("escalation", "The way so far leads nowhere.");
    assert_eq!(ran.steps("execute"), 1, "nothing goes on without a word");
    let ran = ran.answer_and_go_on(&["d1", "write", "it", "in", "one", "go"]).expect(0).verified();
    assert_eq!(ran.steps("course_correct"), 1, "{:#?}", ran.log());
}

#[test]
fn escalate_and_quit_ends() {
    let ran = advised(&[correction("escalate", json!({}))])
        .run()
        .expect(3)
        .answer_and_go_on(&["d1", "quit"])
        .expect(1)
        .verified();
    assert_eq!(ran.halted()["stop_reason"], "HUMAN_QUIT");
}

fn git(ran: &std::path::Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "init.defaultBranch=main"]);
    let output = command.args(arguments).current_dir(ran).env_remove("GIT_DIR").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A repository with everything committed that a person wrote.
fn repository(case: Case) -> crate::support::Bench {
    let bench = case.set("git", json!({"mode": "branch"})).written();
    git(&bench.workspace, &["init", "-q"]);
    git(&bench.workspace, &["add", "-A"]);
    git(&bench.workspace, &["commit", "-qm", "mine"]);
    bench
}

fn run(bench: crate::support::Bench) -> Ran {
    let ended = crate::case::unattended(bench.command(&["run", "--headless"]));
    Ran { bench, ended }
}

/// Everything is green; an evaluation wants more, which spoils the text in a way that no check sees. The value check
/// with this number wants a correction then: back to this place.
fn spoilt(nth: u32, label: &str) -> Case {
    let mut case = Case::new()
        .declare("budget", json!({"max_iterations": 60}))
        .set("steps_per_iteration", json!(1))
        .on_nth("critical_eval", 1, json!([{"calls": [finding("blocking", "A reader wants more.")]}, done()]))
        .on_nth("vrc", nth, turns(&[&[vrc("0.2", "COURSE_CORRECT", json!([]))]]))
        .on("course_correct", turns(&[&[correction("rollback", json!({"rollback_to_checkpoint": label}))]]));
    for step in 0..100 {
        let task = format!("CE-{step}-1");
        let first = turns(&[&[write("one.txt", "one, spoilt\n")], &[complete(&task)]]);
        let second = turns(&[&[write("one.txt", "one, and more\n")], &[complete(&task)]]);
        case = case.on_subject_nth("execute", &task, 1, first).on_subject_nth("execute", &task, 2, second);
    }
    case
}

#[test]
fn rollback_puts_the_files_back() {
    // A first run shows where the checkpoint is and which value check comes after the spoiling task.
    let shown = run(repository(spoilt(100, "nowhere"))).expect(0);
    let labels: Vec<Value> = shown.events("git.finished").iter().map(|done| done["label"].clone()).collect();
    let label = labels.iter().filter_map(Value::as_str).find(|label| label.starts_with("qc-")).unwrap();
    let work = shown.work();
    let spoiling = work.iter().rposition(|action| action == "execute").unwrap();
    let checks = work[..spoiling].iter().filter(|action| *action == "vrc").count();
    // One before the first iteration, and the one after.
    let nth = u32::try_from(checks).unwrap() + 2;

    let ran = run(repository(spoilt(nth, label))).expect(0).verified();
    let log = ran.log();
    assert!(log.iter().any(|line| line.contains(&format!("rolled back to {label}"))), "{log:#?}");
    assert_eq!(ran.text("one.txt"), "one, and more\n", "the task was done again: {log:#?}");
    let finished = ran.events("git.finished");
    let restores = finished.iter().filter(|done| done["operation"] == "restore").count();
    assert_eq!(restores, 1, "{finished:#?}");
    // Both states stay on the run's own branch; the person's branch is where it was.
    let all = git(&ran.bench.workspace, &["log", "--format=%s", "-p", "--", "one.txt"]);
    assert!(all.contains("+one, spoilt") && all.contains("-one, spoilt"), "{all}");
    assert_eq!(git(&ran.bench.workspace, &["log", "--format=%s", "main"]).trim(), "mine");
}

#[test]
fn rollback_without_a_repository_is_no_progress() {
    let back = correction("rollback", json!({"rollback_to_checkpoint": "qc-1"}));
    let ran = advised(&[back]).run().expect(0).verified();
    assert!(ran.log().iter().any(|line| line.contains("no rollback")), "{:#?}", ran.log());
}

#[test]
fn a_run_in_a_repository_commits_on_its_own_branch_only() {
    let ran = run(repository(Case::new())).expect(0).verified();
    assert_eq!(git(&ran.bench.workspace, &["log", "--format=%s", "main"]).trim(), "mine");
    let branch = git(&ran.bench.workspace, &["branch", "--show-current"]);
    assert!(branch.starts_with("nightloop/"), "{branch}");
    let all = git(&ran.bench.workspace, &["log", "--format=%s"]);
    assert!(all.contains("task T1") && all.contains("task T2"), "{all}");
}

#[test]
fn a_dirty_tree_is_refused() {
    let bench = repository(Case::new());
    std::fs::write(bench.workspace.join("PRD.md"), format!("{}4. Mine.\n", crate::case::PRD)).unwrap();
    let ran = run(bench).expect(3).stands();
    let text = ran.text("evidence/loop/value/preconditions.md");
    assert!(text.contains("PRD.md"), "{text}");
    assert_eq!(ran.calls("vision_extract"), 0, "nothing was spent");
    assert_eq!(git(&ran.bench.workspace, &["branch", "--show-current"]).trim(), "main");
}

#[test]
fn an_older_iteration_is_taken_back_and_its_task_is_done_again() {
    // T1 is iteration 0. T2 is held in iteration 1 until somebody has taken back what T1 made.
    let second = turns(&[&[held()], &[write("two.txt", "two\n")], &[complete("T2")]]);
    let case = Case::new()
        .declare("budget", json!({"max_iterations": 60}))
        .set("steps_per_iteration", json!(1))
        .on_subject("execute", "T2", second);
    let held = Running::of(repository(case), &["run", "--headless"]).hold();
    held.bench.nightloop(&["undo", "0"]).expect(0);
    let ran = held.release().wait().expect(0).verified();
    let undone = ran.events("iteration.undone");
    assert_eq!(undone.len(), 1, "{undone:#?}");
    assert_eq!((&undone[0]["iteration"], &undone[0]["problem"]), (&json!(0), &Value::Null), "{undone:#?}");
    assert_eq!(undone[0]["files"], json!(["one.txt"]), "only the work, none of our views");
    let times = ran.events("step.began").iter().filter(|step| step["task"] == "T1").count();
    assert_eq!(times, 2, "{:#?}", ran.log());
    assert_eq!((&ran.task("T1")["status"], ran.text("one.txt")), (&json!("done"), "one\n".to_owned()));
    let marked = ran.bench.evidence("undone.json");
    assert!(marked.to_string().contains("one.txt"), "{marked}");
    let all = git(&ran.bench.workspace, &["log", "--format=%s"]);
    assert!(all.contains("take back iteration 0"), "{all}");
}

#[test]
fn a_fix_after_which_fewer_checks_pass_is_undone() {
    let scripts = [
        script("unit/one", "one.txt", "one"),
        script("unit/uno", "one.txt", "uno"),
        script("unit/two", "two.txt", "two"),
    ];
    // The first fix spoils what passed. The second one mends only a file that is as it was before the first.
    let worse = sh("echo spoilt > one.txt; echo spoilt > two.txt; echo left > left.txt");
    let better = sh("grep -qx one one.txt && grep -qx two two.txt && ! test -e left.txt && echo 'one uno' > one.txt");
    let case = Case::new()
        .on("generate_verifications", json!([{"text": "Checks.", "calls": scripts}, done()]))
        .on_nth("fix", 1, json!([{"calls": [worse]}, done()]))
        .on_nth("fix", 2, json!([{"calls": [better]}, done()]));
    let ran = run(repository(case)).expect(0).verified();
    let log = ran.log();
    let fixes: Vec<&String> = log.iter().filter(|line| line.starts_with("\"fix\"")).collect();
    assert!(fixes.len() == 2 && fixes[0].contains("undone: 0 of 2 checks passed"), "{log:#?}");
    let finished = ran.events("git.finished");
    let restores: Vec<&Value> = finished.iter().filter(|done| done["operation"] == "restore").collect();
    assert_eq!(restores.len(), 1, "{finished:#?}");
    assert_eq!((ran.text("one.txt"), ran.text("two.txt")), ("one uno\n".to_owned(), "two\n".to_owned()));
    // What was undone is not lost: it is in the history of the run's branch.
    let all = git(&ran.bench.workspace, &["log", "--format=%s", "-p", "--", "left.txt"]);
    assert!(all.contains("+left") && all.contains("-left"), "{all}");
}
