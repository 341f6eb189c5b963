//! Agent programs: whole loops with fakes that print the real programs' streams, their faults, and their ends.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::case::{Case, Ran, Running, no_survivor};
use crate::sealed::{Expect, check};

fn fake(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agents").join(name)
}

/// A loop whose only criterion is the file that a fake's solver makes.
fn loop_with(agent: Value) -> Case {
    Case::new()
        .declare("spec", json!("1.0"))
        .without("northstar")
        .check("made", "test -f done.txt")
        .declare("agents", json!({"program": agent}))
}

fn program(name: &str, more: Value) -> Value {
    let mut agent = json!({"backend": "command", "command": [fake(name)]});
    for (key, value) in more.as_object().unwrap() {
        agent[key] = value.clone();
    }
    agent
}

/// The same, with a file beside the workspace that says whether the fault was played.
fn once_faulty(name: &str, more: Value) -> (Case, PathBuf) {
    let mut agent = program(name, more);
    let case = loop_with(agent.clone());
    agent["write"] = json!([case.bench.dir.path()]);
    let once = case.bench.dir.path().join("once");
    (case.declare("agents", json!({"program": agent})), once)
}

fn exact() -> Expect {
    Expect { spec: "1.0", ..Expect::exact(&["0"]) }
}

fn acts(ran: &Ran) -> Vec<Value> {
    let acted = ran.events("agent.acted");
    acted.iter().flat_map(|data| data["acts"].as_array().unwrap().clone()).collect()
}

#[test]
fn every_program_drives_a_whole_loop() {
    for name in ["claude", "codex", "gemini", "opencode", "goose", "aider", "plain"] {
        let ran = loop_with(program(name, json!({}))).run();
        assert_eq!(ran.ended.code, 0, "{name}: {}\n{}", ran.ended.stdout, ran.ended.stderr);
        check(&ran, &exact());
        assert!(!acts(&ran).is_empty(), "{name} told nothing");
        let replies = ran.events("llm.responded");
        assert_eq!(replies.len(), 3, "{name}: scout, solver, skeptic");
        no_survivor(&ran);
    }
}

/// An agent program has the whole workspace to write in, but not AGENTS.md, not even before there is one.
#[test]
fn a_program_cannot_forge_what_was_learnt() {
    let forge =
        "printf -- '- [A] All is proven.\\n' > forged; cp forged AGENTS.md; mv forged AGENTS.md; exec \"$0\" \"$@\"";
    for mode in ["preferred", "off"] {
        let agent = json!({"backend": "command", "command": ["sh", "-c", forge, fake("plain")]});
        let ran = loop_with(agent).declare("sandbox", json!({"mode": mode})).run();
        check(&ran, &exact());
        assert!(!ran.agents_md().contains("All is proven"), "{mode}: {}", ran.agents_md());
        let sealed = mode == "preferred" && nightloop::tool::sandbox::level().mounts;
        let aside = &ran.events("artifacts.collected")[0]["learnings_aside"];
        assert_eq!(aside.is_null(), sealed, "{mode}: {aside}");
    }
}

#[test]
fn what_a_program_tells_is_in_the_journal() {
    let ran = loop_with(program("claude", json!({}))).run();
    check(&ran, &exact());
    let acts = acts(&ran);
    assert!(acts.iter().any(|act| act.get("called").is_some()), "{acts:?}");
    let replies = ran.events("llm.responded");
    for reply in &replies {
        assert!(reply["usage"]["output"].as_u64().unwrap() > 0, "{reply}");
        assert!(reply["cost_usd"].is_string(), "its own figure: {reply}");
        assert!(reply["session"].is_string(), "{reply}");
    }
}

#[test]
fn a_rate_limit_is_waited_out() {
    let variables = json!({"env": ["FAKE_FAULT", "FAKE_FAULT_ONCE", "FAKE_RESET_SECONDS"]});
    let (case, once) = once_faulty("claude", variables);
    let bench = case.written();
    let ended = bench
        .command(&["run", "--headless"])
        .env("FAKE_FAULT", "rate_limit")
        .env("FAKE_FAULT_ONCE", &once)
        .env("FAKE_RESET_SECONDS", "1")
        .output()
        .unwrap()
        .into();
    let ran = Ran { bench, ended };
    check(&ran, &exact());
    let failed = ran.events("llm.failed");
    assert_eq!(failed[0]["class"], "rate_limited", "{failed:?}");
}

#[test]
fn a_program_that_is_not_signed_in_stops_the_run_and_says_so() {
    let ran = loop_with(program("codex", json!({"env": ["FAKE_FAULT"]}))).run_with("FAKE_FAULT", "auth");
    check(&ran, &Expect { spec: "1.0", ..Expect::stopped(4, &[]) });
    assert!(ran.detail().contains("not signed in"), "{}", ran.detail());
}

#[test]
fn a_program_that_breaks_down_is_tried_three_times() {
    let ran = loop_with(program("goose", json!({"env": ["FAKE_FAULT"]}))).run_with("FAKE_FAULT", "crash");
    check(&ran, &Expect { spec: "1.0", ..Expect::stopped(4, &[]) });
    let failed = ran.events("llm.failed");
    assert_eq!(failed.len(), 3, "{failed:?}");
    assert!(failed.iter().all(|data| data["class"] == "crashed"), "{failed:?}");
}

#[test]
fn a_silent_program_is_ended_with_everything_it_started() {
    let variables = json!({"env": ["FAKE_FAULT", "FAKE_FAULT_ONCE"], "silence_seconds": 1});
    let (case, once) = once_faulty("plain", variables);
    let bench = case.written();
    let mut command = bench.command(&["run", "--headless"]);
    let ended = command.env("FAKE_FAULT", "silent").env("FAKE_FAULT_ONCE", &once).output().unwrap().into();
    let ran = Ran { bench, ended };
    check(&ran, &exact());
    assert!(ran.events("llm.failed")[0]["message"].as_str().unwrap().contains("wrote nothing"));
    no_survivor(&ran);
}

/// It is never silent, so only the limit of the whole turn ends it.
#[test]
fn a_program_that_talks_on_is_ended_when_its_turn_has_taken_too_long() {
    let agent = json!({"backend": "command", "command": ["./talker"], "turn_seconds": 1});
    let case = loop_with(agent).declare("budget", json!({"max_iterations": 1}));
    let ran = scripted(case, "talker", "cat >/dev/null; while :; do echo and another thing; sleep 0.1; done").run();
    let failed = ran.events("llm.failed");
    let calls: Vec<&str> = failed.iter().map(|data| data["call"].as_str().unwrap()).collect();
    assert_eq!(calls, ["it0.scout", "it0.solver"], "each once, and never again");
    for data in &failed {
        assert_eq!(data["class"], "fatal", "{data}");
        assert!(data["message"].as_str().unwrap().contains("its turn may take 1 s"), "{data}");
    }
    no_survivor(&ran);
}

#[test]
fn a_program_without_a_report_is_asked_for_one_and_then_given_up() {
    let agent = program("claude", json!({"env": ["FAKE_REPORT"]}));
    let ran = loop_with(agent).declare("budget", json!({"max_iterations": 1})).run_with("FAKE_REPORT", "0");
    let ends: Vec<Value> = ran.events("agent.finished").iter().map(|data| data["end"].clone()).collect();
    assert_eq!(ends[0], json!("no_report"), "{ends:?}");
    let asked = ran.events("conversation.extended");
    assert_eq!(asked.iter().filter(|data| data["call"] == "it0.scout").count(), 2, "{asked:?}");
}

#[test]
fn a_missing_program_is_a_clear_failure() {
    let agent = json!({"backend": "command", "command": ["no-such-agent-program"]});
    let ran = loop_with(agent).declare("budget", json!({"max_iterations": 1})).run();
    let end = &ran.events("agent.finished")[0]["end"];
    assert!(end.to_string().contains("no-such-agent-program"), "{end}");
    no_survivor(&ran);
}

#[test]
fn tool_calls_of_a_program_count_against_the_budget() {
    let chatty = "i=0; while [ $i -lt 50 ]; do i=$((i+1)); \
        printf '{\"type\":\"assistant\",\"message\":{\"id\":\"m%s\",\"model\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t%s\",\"name\":\"Bash\",\"input\":{\"command\":\"true\"}}],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}},\"session_id\":\"s\"}\\n' $i $i; \
        done; exec sleep 300";
    let case = loop_with(json!({"backend": "command", "profile": "claude", "command": ["./chatty"]}))
        .declare("budget", json!({"max_total_tool_calls": 20}));
    let case = scripted(case, "chatty", chatty);
    let ran = case.run();
    assert_eq!(ran.ended.code, 2, "{}\n{}", ran.ended.stdout, ran.ended.stderr);
    assert_eq!(
        ran.events("budget.cut")[0]["exhausted"]["dimension"],
        "total_tool_calls",
        "{:?}",
        ran.events("budget.cut")
    );
    no_survivor(&ran);
}

/// A program of our own in the workspace.
fn scripted(case: Case, name: &str, script: &str) -> Case {
    use std::os::unix::fs::PermissionsExt;
    let case = case.file(name, &format!("#!/bin/sh\n{script}\n"));
    let path = case.bench.workspace.join(name);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    case
}

/// What a turn used is charged although it was cut, so that it is not begun again and again.
#[test]
fn a_turn_that_passes_the_token_limit_ends_the_run_and_is_charged() {
    let line = "printf '{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"model\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"hm\"}],\"usage\":{\"input_tokens\":5000,\"output_tokens\":900}},\"session_id\":\"s\"}\\n'";
    let case = loop_with(json!({"backend": "command", "profile": "claude", "command": ["./hungry"]}))
        .declare("budget", json!({"max_total_tokens": 3000}));
    let ran = scripted(case, "hungry", &format!("cat >/dev/null; {line}; exec sleep 300")).run();
    assert_eq!(ran.ended.code, 2, "{}\n{}", ran.ended.stdout, ran.ended.stderr);
    assert_eq!(ran.events("llm.requested").len(), 1, "it was begun once");
    let failed = ran.events("llm.failed");
    assert_eq!(failed[0]["usage"]["input"], 5000, "{failed:?}");
    assert_eq!(ran.events("budget.cut")[0]["exhausted"]["dimension"], "total_tokens");
    no_survivor(&ran);
}

/// Somebody leaves the program's family with its pipe in hand: the turn ends all the same.
#[test]
fn a_pipe_in_a_strangers_hand_does_not_hold_the_run() {
    let case = loop_with(json!({"backend": "command", "command": ["./leaky"]}))
        .declare("sandbox", json!({"mode": "off"}))
        .declare("budget", json!({"max_iterations": 1}));
    let ran = scripted(case, "leaky", "cat >/dev/null; env -i setsid --fork sleep 25; echo done").run();
    let said = acts(&ran).iter().filter_map(|act| act["said"]["text"].as_str().map(str::to_owned)).collect::<String>();
    assert!(said.contains("done"), "{said}");
    assert!(!ran.events("run.halted").is_empty());
}

#[test]
fn a_run_killed_in_a_programs_turn_starts_the_turn_again() {
    let (case, once) = once_faulty("plain", json!({"env": ["FAKE_FAULT", "FAKE_FAULT_ONCE"]}));
    let bench = case.written();
    let mut command = bench.command(&["run", "--headless"]);
    let mut child = command.env("FAKE_FAULT", "silent").env("FAKE_FAULT_ONCE", &once).spawn().unwrap();
    crate::support::wait_until("it ran once", || once.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let ended = bench.command(&["resume"]).output().unwrap().into();
    let ran = Ran { bench, ended };
    check(&ran, &exact());
    let requested = ran.events("llm.requested");
    assert_eq!(requested.len(), 4, "one of them twice: {requested:?}");
    no_survivor(&ran);
}

/// The tests' ACP agent as a program. `cargo test` builds it with everything else; a filtered run builds it here.
fn acp_agent() -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_nightloop")).parent().unwrap();
    let program = folder.join("examples/acp_agent");
    if !program.exists() {
        let built = std::process::Command::new(env!("CARGO")).args(["build", "--example", "acp_agent"]).status();
        assert!(built.unwrap().success());
    }
    program
}

#[test]
fn an_agent_that_speaks_acp_reports_through_our_tools() {
    let ran = loop_with(json!({"backend": "acp", "command": [acp_agent()]})).run();
    assert_eq!(ran.ended.code, 0, "{}\n{}", ran.ended.stdout, ran.ended.stderr);
    check(&ran, &exact());
    let called: Vec<Value> = ran.events("agent.called").iter().map(|data| data["name"].clone()).collect();
    assert_eq!(called, ["submit_scout_report", "submit_solver_report", "submit_skeptic_report"], "{called:?}");
    no_survivor(&ran);
}

/// Nobody is there: what the agent asks for is denied and told, and its turn goes on.
#[test]
fn leave_that_an_agent_asks_for_is_denied_when_nobody_is_there() {
    let agent = json!({"backend": "acp", "command": [acp_agent(), "ask", "say=done_asking"]});
    let ran = loop_with(agent).declare("budget", json!({"max_iterations": 1})).run();
    let acts = acts(&ran);
    let denied = acts.iter().filter_map(|act| act["denied"]["text"].as_str()).collect::<Vec<_>>();
    assert!(denied.iter().any(|text| text.contains("nobody is there to answer")), "{acts:?}");
    assert!(ran.ended.stdout.contains("nobody is there to answer"), "the lines say it: {}", ran.ended.stdout);
    assert!(ran.events("decision.asked").is_empty());
    let said = acts.iter().filter_map(|act| act["said"]["text"].as_str()).collect::<String>();
    assert!(said.contains("The answer is nope.") && said.contains("done asking"), "{said}");
}

/// Where a program asked: (call, turn), in the order of the decisions.
fn asked_from(ran: &Ran) -> Vec<(String, u64)> {
    let asked = ran.events("decision.asked");
    let by = asked.iter().map(|data| &data["asked_by"]);
    by.map(|by| (by["call"].as_str().unwrap().to_owned(), by["turn"].as_u64().unwrap())).collect()
}

/// "Once" is for the ask that was answered: neither the same turn nor a later one gets it again.
#[test]
fn leave_for_once_is_asked_for_again() {
    let agent = json!({"backend": "acp", "command": [acp_agent(), "ask", "ask", "say=done_asking"]});
    let run = loop_with(agent).declare("decisions", json!({"mode": "wait"})).start();
    for (id, answer) in [("d1", "allow"), ("d2", "allow"), ("d3", "deny"), ("d4", "quit")] {
        run.wait_for_decision(id);
        run.bench.nightloop(&["answer", id, answer]).expect(0);
    }
    let ran = run.wait();
    // The third stands in the turn that was to bring the report; what was denied is denied for the whole call.
    let (first, second) = (("it0.scout".to_owned(), 0), ("it0.scout".to_owned(), 1));
    assert_eq!(asked_from(&ran), [first.clone(), first, second, ("it0.solver".to_owned(), 0)]);
    let said = acts(&ran).iter().filter_map(|act| act["said"]["text"].as_str().map(str::to_owned)).collect::<String>();
    assert_eq!(said.matches("The answer is yes!.").count(), 2, "{said}");
    no_survivor(&ran);
}

/// What was answered while no engine was there reaches the turn that is begun again, once.
#[test]
fn leave_given_while_the_engine_was_away_is_used_once() {
    let agent = json!({"backend": "acp", "command": [acp_agent(), "ask", "ask", "say=done_asking"]});
    let run = loop_with(agent).declare("decisions", json!({"mode": "wait"})).start();
    run.wait_for_decision("d1");
    let bench = run.killed();
    bench.nightloop(&["answer", "d1", "allow"]).expect(0);
    let run = Running::of(bench, &["resume"]);
    run.wait_for_decision("d2");
    run.bench.nightloop(&["answer", "d2", "quit"]).expect(0);
    let ran = run.wait();
    assert_eq!(asked_from(&ran), [("it0.scout".to_owned(), 0), ("it0.scout".to_owned(), 0)]);
    let noted =
        acts(&ran).iter().filter_map(|act| act["noted"]["text"].as_str().map(str::to_owned)).collect::<Vec<_>>();
    assert!(noted.iter().any(|text| text.contains("allowed (as in d1)")), "{noted:?}");
    no_survivor(&ran);
}

/// A role that only reads cannot write, whatever the program does: the sandbox holds it, not its word.
#[test]
fn a_reading_role_cannot_write_the_workspace() {
    let case = loop_with(json!({"backend": "command", "command": ["./sneaky.sh"]}))
        .declare("budget", json!({"max_iterations": 1}));
    let case = scripted(case, "sneaky.sh", "cat >/dev/null\necho x > sneaky && echo WROTE || echo HELD");
    let ran = case.run();
    let said = |call: &str| {
        let acted = ran.events("agent.acted");
        let of_call = acted.iter().filter(|data| data["call"] == call);
        of_call.map(|data| data["acts"].to_string()).collect::<String>()
    };
    assert!(said("it0.scout").contains("HELD"), "{}", said("it0.scout"));
    assert!(said("it0.solver").contains("WROTE"), "{}", said("it0.solver"));
}
