//! Who is asked, what is remembered, what blocks: permissions over whole runs.

use serde_json::{Value, json};

use crate::case::{Case, Ran, Running, call, sh, solver_report, write};
use crate::sealed::{Expect, check};

/// How the parts of a role ended.
fn ends(ran: &Ran, role: &str) -> Vec<Value> {
    let finished = ran.events("agent.finished").into_iter().filter(|data| data["role"] == role);
    finished.map(|data| data["end"].clone()).collect()
}

fn read(path: &str) -> Value {
    call("read_file", json!({"path": path}))
}

/// The tool events of the solver in the first iteration: (kind, what).
fn steps(ran: &Ran) -> Vec<(String, Value)> {
    let tools = ran.bench.events().into_iter().filter(|(kind, data)| {
        kind.starts_with("tool.") && data["call"].as_str().is_some_and(|call| call == "it0.solver")
    });
    tools.map(|(kind, data)| (kind, data["id"].clone())).collect()
}

fn answer(running: &Running, words: &[&str]) -> String {
    let arguments: Vec<&str> = ["answer", "d1"].iter().chain(words).copied().collect();
    running.bench.nightloop(&arguments).expect(0).stdout
}

fn rules(ran: &Ran, arguments: &[&str]) -> String {
    let all: Vec<&str> = ["rules"].iter().chain(arguments).copied().collect();
    ran.bench.nightloop(&all).expect(0).stdout
}

#[test]
fn reads_run_at_once_and_are_recorded_in_order() {
    let ran =
        Case::two_steps().solver(0, [read("a"), read("src/metric"), read("none"), write("c", "1\n"), read("c")]).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let steps = steps(&ran);
    let kinds: Vec<&str> = steps.iter().map(|(kind, _)| kind.trim_start_matches("tool.")).collect();
    let pair = ["intended", "finished"];
    let together = ["intended", "intended", "intended", "finished", "finished", "finished"];
    // metric and a; three reads; c; the read of c; the report.
    let expected = [&pair[..], &pair, &together, &pair, &pair, &pair].concat();
    assert_eq!(kinds, expected);
    let ids = |kind: &str| steps.iter().filter(|(name, _)| name.ends_with(kind)).map(|(_, id)| id).collect::<Vec<_>>();
    assert_eq!(ids("intended"), ids("finished"), "one result per call, in the order of the calls");
}

#[test]
fn what_follows_a_failed_effect_is_not_executed() {
    let edit = call("edit_file", json!({"path": "none", "old_string": "x", "new_string": "y"}));
    let ran = Case::two_steps()
        .solver(0, [sh("exit 3"), write("after", "1\n"), edit, write("never", "1\n"), read("a")])
        .run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let exists = |name: &str| ran.bench.workspace.join(name).exists();
    assert!(exists("after"), "an exit code is no failure: agents run failing tests all the time");
    assert!(!exists("never"));
    let finished = ran.events("tool.finished");
    let void: Vec<&Value> = finished.iter().filter(|data| data["outcome"] == "refused").collect();
    assert_eq!(void.len(), 1);
    assert!(void[0]["text"]["inline"].as_str().unwrap().starts_with("Not executed: an earlier call"), "{void:?}");
}

#[test]
fn the_same_failing_call_again_and_again_is_stuck() {
    let turn = json!({"calls": [read("none")]});
    let case = Case::two_steps().turns("solver", 0, json!([turn, turn, turn, turn, turn, turn]));
    let ran = case.declare("budget", json!({"max_iterations": 2})).run();
    assert_eq!(ends(&ran, "solver")[0], "stuck");
    assert_eq!(ran.intended("read_file"), 4);
}

#[test]
fn three_denials_in_a_row_end_the_part_where_nobody_is_there() {
    let case = Case::two_steps().declare("permissions", json!({"ask": ["bash(git push*)"], "deny": ["bash(make*)"]}));
    let turn = |command: &str| json!({"calls": [sh(command)]});
    let turns = json!([turn("make"), turn("git push"), turn("rm -rf /"), turn("touch late")]);
    let ran = case.turns("solver", 0, turns).declare("budget", json!({"max_iterations": 2})).run();
    let end = &ends(&ran, "solver")[0]["denied"];
    assert_eq!(end, "the rules denied 3 tool calls of the solver in a row");
    assert!(!ran.bench.workspace.join("late").exists());
    assert!(ran.agents_md().contains("stuck: the rules denied 3 tool calls"), "{}", ran.agents_md());
    ran.bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn three_denials_in_a_row_wait_for_a_person_whose_words_the_agent_gets() {
    let case = Case::two_steps()
        .declare("permissions", json!({"deny": ["bash(make*)"]}))
        .declare("decisions", json!({"mode": "wait"}));
    let turn = json!({"calls": [sh("make")]});
    let last = json!({"calls": [write("src/metric", "1\n"), write("a", "1\n"), solver_report("Went on.")]});
    let running = case.turns("solver", 0, json!([turn, turn, turn, last])).start();
    running.wait_for_event("decision.asked");
    answer(&running, &["Write the file yourself."]);
    let ran = running.wait();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert_eq!(ran.events("decision.asked")[0]["request"]["kind"], "escalation");
    assert_eq!(ran.events("steer.delivered").len(), 1, "the answer went to the agent");
}

#[test]
fn always_is_kept_for_later_runs_and_can_be_taken_back() {
    let case = || {
        Case::two_steps()
            .declare("permissions", json!({"ask": ["bash(touch *)"]}))
            .declare("decisions", json!({"mode": "wait"}))
            .solver(0, [sh("touch asked")])
    };
    let running = case().start();
    running.wait_for_event("decision.asked");
    let said = answer(&running, &["always"]);
    assert!(said.contains("rules.yaml"), "{said}");
    let ran = running.wait();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert!(rules(&ran, &[]).contains("1  bash(=touch asked)"));

    // A later run in the same workspace is not asked, and says why it was allowed.
    for file in ["a", "b", "asked", "src/metric"] {
        std::fs::remove_file(ran.bench.workspace.join(file)).unwrap();
    }
    std::fs::remove_dir_all(ran.bench.state.join("runs")).unwrap();
    let ended = ran.bench.nightloop(&["run", "--headless"]);
    let again = Ran { bench: ran.bench, ended };
    assert_eq!(again.ended.code, 0, "{}", again.ended.stderr);
    assert!(again.bench.workspace.join("asked").exists());
    assert!(again.events("decision.asked").is_empty());
    assert_eq!(again.events("run.started")[0]["remembered"], json!(["bash(=touch asked)"]));
    let intended = again.events("tool.intended");
    let touch = intended.iter().find(|data| data["name"] == "bash").unwrap();
    assert_eq!(touch["rule"], "allow remembered bash(=touch asked)");
    again.bench.nightloop(&["verify"]).expect(0);

    assert!(rules(&again, &["--forget", "1"]).contains("forgotten: bash(=touch asked)"));
    assert!(rules(&again, &[]).contains("no rules are remembered"));
}

#[test]
fn a_critical_call_is_asked_about_every_time() {
    let case = Case::two_steps()
        .declare("permissions", json!({"allow": ["*"]}))
        .declare("decisions", json!({"mode": "wait"}))
        .solver(0, [sh("echo x > .envrc")])
        .solver(1, [sh("echo x > .envrc")]);
    let running = case.start();
    running.wait_for_event("decision.asked");
    let said = answer(&running, &["always"]);
    assert!(said.contains("asked about every time"), "{said}");
    let asked = || {
        let events = running.bench.events();
        events.iter().filter(|(kind, _)| kind == "decision.asked").count()
    };
    // Planting the file blocks the run as well; whichever question comes, it is a new one.
    crate::support::wait_until("it asks twice", || asked() == 2);
    running.bench.nightloop(&["stop"]).expect(0);
    let ran = running.wait();
    let requests: Vec<Value> = ran.events("decision.asked").into_iter().map(|data| data["request"].clone()).collect();
    assert!(requests[0]["rule"].as_str().unwrap().starts_with("critical: "), "{requests:?}");
    assert_eq!(requests[1]["kind"], "tampering", "{requests:?}");
    assert!(rules(&ran, &[]).contains("no rules are remembered"));
}

#[test]
fn a_planted_hook_blocks_the_run() {
    let plant = "d=.git; mkdir -p $d/hooks && echo evil > \"$d/hooks/pre-commit\"";
    let ran = Case::two_steps().solver(0, [sh(plant)]).run();
    check(&ran, &Expect::blocked("INVARIANT_VIOLATION", &["0.5"]));
    assert!(ran.bench.workspace.join(".git/hooks/pre-commit").exists(), "the rules do not see through a disguise");
    let detail = ran.detail();
    assert!(detail.contains("GATE_TAMPERING: what runs by itself (.git/hooks/pre-commit)"), "{detail}");
}

/// The next run would take its sandbox from there.
#[test]
fn a_changed_declaration_blocks_the_run() {
    let ran = Case::two_steps().solver(0, [sh("printf ' ' >> loop.yaml")]).run();
    check(&ran, &Expect::blocked("INVARIANT_VIOLATION", &["0.5"]));
    assert!(ran.detail().contains("loop.yaml"), "{}", ran.detail());
}

#[test]
fn a_plain_attempt_to_plant_a_hook_is_refused() {
    let ran = Case::two_steps().solver(0, [sh("mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit")]).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert!(!ran.bench.workspace.join(".git").exists());
}
