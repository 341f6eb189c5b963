//! What is typed beside loop.yaml, and where a run leaves off for today.

use std::fs;

use serde_json::{Value, json};

use crate::case::{Case, Ran, held, report, sh, write};
use crate::support::Bench;
use crate::support::case::Running;

fn run(case: Case, typed: &[&str]) -> Ran {
    Ran::of(case.written(), &[&["run", "--headless"], typed].concat())
}

/// The first event says what was typed, and the declaration in it is the one that counts.
fn started(ran: &Ran) -> Value {
    ran.events("run.started").remove(0)
}

#[test]
fn the_iterations_that_are_typed_win_over_loop_yaml_and_are_recorded() {
    let ran = left_off(run(Case::prd(&["A", "B", "C"]), &["--iterations", "2"]), "after 2 iterations");
    assert_eq!(ran.passing(), ["A", "B"]);
    let started = started(&ran);
    assert_eq!(started["declaration"]["stop_when"]["iterations"], 2, "loop.yaml says 20");
    assert_eq!(started["typed"], json!(["--iterations 2"]));
    let status = ran.bench.nightloop(&["status"]).expect(0).stdout;
    assert!(status.contains("asked for: --iterations 2"), "{status}");
    assert!(ran.ended.stdout.contains("asked for: --iterations 2"), "{}", ran.ended.stdout);
    assert_eq!(ran.resume().converged().passing(), ["A", "B", "C"]);
    let ran = run(Case::prd(&["A"]), &["--iterations", "30"]).converged();
    assert_eq!(self::started(&ran)["declaration"]["budget"]["max_iterations"], 30);
    assert!(run(Case::prd(&["A"]), &["--iterations", "0"]).expect(64).ended.stderr.contains("--iterations"));
}

#[test]
fn one_item_is_worked_on_alone_and_its_proof_ends_the_run() {
    let ran = run(Case::prd(&["A", "B", "C"]), &["--item", "B"]).converged();
    assert_eq!(ran.chosen(), ["B 1"]);
    assert_eq!(ran.passing(), ["B"]);
    assert_eq!(started(&ran)["declaration"]["prd"]["only"], json!(["B"]));
    let ran = run(Case::prd(&["A", "B", "C"]), &["--item", "C", "--item", "A"]).converged();
    assert_eq!(ran.chosen(), ["A 1", "C 1"], "in the order of the file");
}

#[test]
fn an_unknown_item_starts_nothing_and_lists_what_there_is() {
    let ran = run(Case::prd(&["A", "B"]), &["--item", "US-9"]).expect(64);
    assert!(ran.ended.stderr.contains("no item `US-9`") && ran.ended.stderr.contains("A, B"), "{}", ran.ended.stderr);
    assert!(!ran.bench.state.join("runs").exists());
    let ran = Case::prd(&["A"]).set("only", json!(["US-9"])).run().ends(3).is("EXIT_NEED_INFO", "NULL_INPUT");
    assert!(ran.detail().contains("`prd.only` names `US-9`"), "{}", ran.detail());
    let ran = run(Case::micro(), &["--item", "A"]).expect(64);
    assert!(ran.ended.stderr.contains("for the prd playbook"), "{}", ran.ended.stderr);
}

/// All roles belong to a program that fails; the scripted model is declared, too.
fn two_agents() -> Case {
    let mut case = Case::prd(&["A"]);
    let mut agents = case.declared["agents"].clone();
    agents["dud"] = json!({"backend": "command", "command": ["sh", "-c", "exit 9"]});
    case = case.declare("agents", agents).declare("roles", json!({"author": "dud", "critic": "dud"}));
    case
}

#[test]
fn one_agent_does_all_the_work() {
    let ran = run(two_agents(), &["--agent", "model"]).converged();
    let started = started(&ran);
    assert_eq!(
        (started["declaration"]["roles"].clone(), started["typed"].clone()),
        (json!({}), json!(["--agent model"]))
    );
    assert_eq!(ran.called(), ["author A", "critic A"]);
}

#[test]
fn an_unknown_agent_lists_the_declared_and_the_known_ones() {
    let ran = run(two_agents(), &["--agent", "modle"]).expect(64);
    let told = &ran.ended.stderr;
    assert!(
        told.contains("no agent `modle`") && told.contains("dud") && told.contains("model") && told.contains("claude"),
        "{told}"
    );
}

#[test]
fn a_known_program_needs_no_declaration() {
    // A program of that name is on the path; it does nothing but say which arguments it was given.
    let bench = Case::prd(&["A"]).unconfined().written();
    let bin = bench.dir.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("codex"), "#!/bin/sh\necho \"$@\" >>\"$HOME/argv\"\ncat >/dev/null\nexit 1\n").unwrap();
    std::process::Command::new("chmod").args(["+x".as_ref(), bin.join("codex").as_os_str()]).status().unwrap();
    let mut command = bench.command(&["run", "--headless", "--agent", "codex", "--model", "gpt-9"]);
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    let ran = Ran { ended: crate::support::case::unattended(command), bench };
    let started = started(&ran);
    assert_eq!(started["declaration"]["agents"]["codex"]["model"], "gpt-9");
    assert_eq!(started["declaration"]["agents"].as_object().unwrap().len(), 1, "the others are not asked for keys");
    let argv = fs::read_to_string(ran.bench.dir.path().join("argv")).unwrap();
    assert!(argv.contains("gpt-9"), "{argv}");
}

#[test]
fn a_script_has_no_other_model() {
    let ran = run(Case::prd(&["A"]), &["--model", "claude-opus-5-5"]).expect(64);
    assert!(ran.ended.stderr.contains("plays a script"), "{}", ran.ended.stderr);
}

/// A run that looks at a clock of the test's.
struct Clock {
    bench: Bench,
}

impl Clock {
    /// Shows this moment, in a place whose summer time is the one of Central Europe.
    fn shows(case: Case, moment: &str) -> Self {
        let case = case.file(".gitignore", "effects.log\nclock\nheld.wait\ngo.wait\n").file("clock", moment);
        Self { bench: case.written() }
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.bench.command(arguments);
        command.env("NIGHTLOOP_TEST_CLOCK", self.bench.workspace.join("clock")).env("TZ", "CET-1CEST,M3.5.0,M10.5.0/3");
        command
    }

    fn start(self, arguments: &[&str]) -> Running {
        Running::by(self.command(arguments), self.bench)
    }

    fn run(self, arguments: &[&str]) -> Ran {
        self.start(arguments).wait()
    }
}

const BEFORE: &str = "2026-11-20T05:29:00Z";
const AFTER: &str = "2026-11-20T05:31:00Z";
const UNTIL: [&str; 4] = ["run", "--headless", "--until", "06:30"];

/// The author of `A` sees the clock pass the time, and does a few things more before it hands in its report.
fn late() -> Case {
    let mut calls = vec![write("clock", AFTER)];
    calls.extend((0..12).map(|_| sh("true")));
    calls.extend([write("a.txt", "A\n"), report(None)]);
    let turns: Vec<Value> = calls.into_iter().map(|call| json!({"calls": [call]})).collect();
    Case::prd(&["A", "B"]).turns("author", Some("A"), None, json!(turns))
}

#[track_caller]
fn left_off(ran: Ran, why: &str) -> Ran {
    let ran = ran.ends(4).is("EXIT_BLOCKED", "BACKPRESSURE_SIGNAL");
    assert_eq!(ran.detail(), format!("Stopped {why} as asked, `nightloop resume` goes on"));
    assert!(ran.ended.stdout.contains(&ran.detail()), "{}", ran.ended.stdout);
    ran
}

#[test]
fn at_its_time_a_run_finishes_the_step_and_goes_on_with_the_next_when_resumed() {
    let ran = left_off(Clock::shows(late(), BEFORE).run(&UNTIL), "at 06:30");
    assert_eq!(ran.called(), ["author A"], "the critic would have been the next step");
    assert_eq!(ran.events("report.accepted").len(), 1, "the author was not cut");
    let started = started(&ran);
    assert_eq!(started["end"], json!({"at": "06:30", "moment": "2026-11-20T05:30:00Z"}));
    assert_eq!(started["declaration"]["stop_when"]["at"], "06:30");
    assert_eq!(started["typed"], json!(["--until 06:30"]));
    // The next 06:30 is tomorrow's.
    let clock = Clock { bench: ran.bench };
    let ran = clock.run(&["resume", "--headless"]).converged();
    assert_eq!(ran.called(), ["author A", "critic A", "author B", "critic B"], "nothing was done twice");
    assert_eq!(ran.events("run.resumed")[0]["end"]["moment"], "2026-11-21T05:30:00Z");
}

#[test]
fn the_item_at_hand_is_finished_first_where_that_was_asked_for() {
    let case = late().declare("stop_when", json!({"at": "06:30", "after_item": true}));
    let ran = left_off(Clock::shows(case, BEFORE).run(&["run", "--headless"]), "at 06:30");
    assert_eq!((ran.passing(), ran.called()), (vec!["A".to_owned()], vec!["author A".to_owned(), "critic A".into()]));
}

#[test]
fn a_stop_that_comes_later_outweighs_an_end_that_is_waited_for() {
    let calls = [write("clock", AFTER), sh("true"), sh("true"), held(), report(None)];
    let turns: Vec<Value> = calls.into_iter().map(|call| json!({"calls": [call]})).collect();
    let case = Case::prd(&["A", "B"]).turns("author", Some("A"), None, json!(turns));
    let running = Clock::shows(case, BEFORE).start(&UNTIL).hold();
    running.bench.nightloop(&["stop"]).expect(0);
    let ran = running.wait().ends(4);
    assert!(ran.detail().starts_with("scratch/STOP exists"), "{}", ran.detail());
}

#[test]
fn what_may_be_spent_counts_for_one_sitting() {
    let mut case = Case::prd(&["A", "B"]).declare("stop_when", json!({"cost_usd": "0.50"}));
    let mut agents = case.declared["agents"].clone();
    agents["model"]["price"] = json!({"input": "1000", "output": "1000"});
    case = case.declare("agents", agents);
    let ran = run(case, &[]).ends(4);
    assert!(ran.detail().contains("of $0.5 as asked"), "{}", ran.detail());
    assert_eq!(ran.called(), ["author A"]);
    let ran = ran.resume().ends(4);
    assert_eq!(ran.called(), ["author A", "critic A"], "each sitting has its own");
}

#[test]
fn what_has_no_price_cannot_end_a_run() {
    let ran = run(Case::prd(&["A"]).declare("stop_when", json!({"cost_usd": "0.50"})), &[]).expect(64);
    assert!(ran.ended.stderr.contains("stop_when.cost_usd"), "{}", ran.ended.stderr);
}

#[test]
fn after_an_item_alone_ends_every_sitting_with_one() {
    let case = Case::prd(&["A", "B", "C"]).declare("stop_when", json!({"after_item": true})).failing("A", 1);
    let case = case.author("A", Some(2), &[write("a.txt", "A\n"), report(Some("right"))]);
    let ran = left_off(run(case, &[]), "after item A");
    assert_eq!((ran.chosen(), ran.passing()), (vec!["A 1".to_owned(), "A 2".into()], vec!["A".to_owned()]));
    let ran = left_off(ran.resume(), "after item B");
    assert_eq!(ran.resume().converged().passing(), ["A", "B", "C"]);
}

#[test]
fn an_idle_run_ends_and_a_machine_that_slept_is_told() {
    let case = Case::prd(&["A"]).author("A", None, &[held(), report(None)]);
    let case = case.declare("stop_when", json!({"idle_minutes": 60}));
    let running = Clock::shows(case, "2026-11-20T01:10:00Z").start(&["run", "--headless"]).hold();
    // Three and a half hours asleep, and one awake.
    fs::write(running.bench.workspace.join("clock"), "2026-11-20T05:40:00Z 12600000 3600000").unwrap();
    let ran = left_off(running.wait(), "after 60 min in which nothing happened");
    let slept = ran.events("machine.slept");
    assert_eq!(slept, [json!({"from": "2026-11-20T02:10:00+01:00", "to": "2026-11-20T06:40:00+01:00"})]);
    assert!(ran.ended.stdout.contains("the machine slept 02:10-06:40"), "{}", ran.ended.stdout);
}
