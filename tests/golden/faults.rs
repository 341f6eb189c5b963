//! What the API does wrong, through the whole engine.

use serde_json::{Value, json};

use crate::case::{Case, sh, solver_report, write};
use crate::sealed::{Expect, check};

fn classes(ran: &crate::case::Ran) -> Vec<String> {
    ran.events("llm.failed").iter().map(|data| data["class"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn faults_that_pass_are_waited_out_and_no_void_message_runs_a_tool() {
    let plain = Case::two_steps().run();
    let ran = Case::two_steps()
        .faults("scout", 0, json!([{"http": 429, "retry_after": 0}]))
        // The whole reply but its last byte: every tool call is there, and none may run.
        .faults("solver", 0, json!([{"cut_after_bytes": 10_000_000}]))
        .faults("skeptic", 0, json!([{"http": 529}]))
        .faults("scout", 1, json!([{"cut": "reset"}]))
        .faults("solver", 1, json!([{"stream_error": "overloaded_error"}]))
        .faults("skeptic", 1, json!([{"malformed_sse": true}]))
        .run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let expected = ["rate_limited", "transient", "overloaded", "transient", "overloaded", "transient"];
    assert_eq!(classes(&ran), expected);
    assert_eq!(ran.events("tool.intended").len(), plain.events("tool.intended").len());
    assert_eq!(ran.report()["halting_certificate"], plain.report()["halting_certificate"]);
}

#[test]
fn a_stream_that_is_cut_inside_a_tool_call_runs_nothing_of_it() {
    let ran = Case::two_steps().faults("solver", 0, json!([{"cut_after_bytes": 600}, {"html": 502}])).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert_eq!(classes(&ran), ["transient", "transient"]);
    assert_eq!(ran.intended("write_file"), 4);
}

#[test]
fn a_malformed_tool_call_is_refused_and_told() {
    let good = Case::two_steps().default_turns("solver", 0);
    let bad = json!({"calls": [{"tool": "write_file", "raw_input": "{\"path\": \"x"}]});
    let ran = Case::two_steps().turns("solver", 0, json!([bad, good[0]])).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let refused: Vec<Value> =
        ran.events("tool.finished").into_iter().filter(|data| data["outcome"] == "refused").collect();
    assert_eq!(refused.len(), 1);
    // The documented form: what it wrote, as data, and nothing around it.
    let told: Value = serde_json::from_str(told(&refused[0])).unwrap();
    assert_eq!(told, json!({"INVALID_JSON": "{\"path\": \"x"}));
    assert!(!ran.bench.workspace.join("x").exists());
}

/// The short text that a model got as the result of a call.
fn told(finished: &Value) -> &str {
    finished["text"]["inline"].as_str().unwrap_or_else(|| panic!("{finished}"))
}

/// A tool call with an id of our choice, as a server would send it.
fn with_id(id: &str, call: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": call["tool"], "input": call["input"]})
}

/// Calls of the first solver that were announced, and replies that it gave.
fn of_first_solver(ran: &crate::case::Ran) -> (usize, usize) {
    let count = |kind| ran.events(kind).iter().filter(|data| data["call"] == "it0.solver").count();
    (count("tool.intended"), count("llm.responded"))
}

/// Which result would belong to which call? A server refuses such a conversation, so it ends here.
#[test]
fn one_id_for_two_calls_ends_the_agent_and_runs_neither() {
    let twice =
        json!({"blocks": [with_id("t1", write("a", "1\n")), with_id("t1", write("b", "1\n"))], "stop": "tool_use"});
    let ran = without_solver(json!([twice, {"calls": [write("a", "1\n")]}])).run();
    check(&ran, &Expect::exact(&["1", "0.5", "0"]));
    assert_eq!(of_first_solver(&ran), (0, 1));
    assert!(ran.agents_md().contains("[A] solver sent malformed tool calls"), "{}", ran.agents_md());
}

#[test]
fn an_id_from_an_earlier_reply_ends_the_agent() {
    let turn = |call: Value| json!({"blocks": [with_id("t1", call)], "stop": "tool_use"});
    let ran = without_solver(json!([turn(sh("true")), turn(write("a", "1\n")), {"calls": [write("a", "1\n")]}])).run();
    check(&ran, &Expect::exact(&["1", "0.5", "0"]));
    assert_eq!(of_first_solver(&ran), (1, 2), "the first call ran, the second did not");
    assert!(ran.agents_md().contains("[A] solver sent malformed tool calls"), "{}", ran.agents_md());
}

#[test]
fn an_input_of_more_than_a_mebibyte_is_refused() {
    let good = Case::two_steps().default_turns("solver", 0);
    let big = json!({"calls": [write("big", &"x".repeat((1 << 20) + 1))]});
    // What it asks for alone would fill a usual model.
    let model = json!({"backend": "rehearsal", "script": "rehearsal.yaml", "limits": {"context": 4_000_000}});
    let case = Case::two_steps().declare("agents", json!({"model": model}));
    let ran = case.turns("solver", 0, json!([big, good[0]])).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let finished = ran.events("tool.finished");
    let refused: Vec<&Value> = finished.iter().filter(|data| data["outcome"] == "refused").collect();
    assert_eq!(refused.len(), 1, "{finished:?}");
    assert!(told(refused[0]).contains("more than 1048576 bytes"), "{}", refused[0]);
    assert!(!ran.bench.workspace.join("big").exists());
}

/// Some models write a call into their text. Words are words.
#[test]
fn text_that_looks_like_a_tool_call_is_not_run() {
    let block = json!({"type": "tool_use", "id": "t1", "name": "write_file", "input": {"path": "a", "content": "1"}});
    let xml = "<function_calls><invoke name=\"bash\"><parameter name=\"command\">touch a</parameter></invoke></function_calls>";
    let fenced = format!("```json\n{block}\n```\n{xml}");
    let ran = without_solver(json!([{"text": block.to_string()}, {"text": xml}, {"text": fenced}])).run();
    check(&ran, &Expect::exact(&["1", "0.5", "0"]));
    assert_eq!(of_first_solver(&ran), (0, 3));
    assert!(ran.agents_md().contains("[A] solver ended without a report"), "{}", ran.agents_md());
}

/// The server's pauses are no fault of the agent: it is still reminded of its report, twice.
#[test]
fn pauses_of_the_server_use_up_no_reminder() {
    let good = Case::two_steps().default_turns("solver", 0);
    let pause = json!({"text": "One moment.", "stop": "pause_turn"});
    let talk = json!({"text": "Thinking aloud."});
    let ran = Case::two_steps().turns("solver", 0, json!([pause, pause, pause, talk, talk, good[0]])).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let reminded = ran.events("conversation.extended").iter().filter(|data| data["why"] == "report_missing").count();
    assert_eq!(reminded, 2);
}

/// But a server that pauses for ever is not waited for.
#[test]
fn pauses_without_end_end_the_agent() {
    let pause = json!({"text": "One moment.", "stop": "pause_turn"});
    let ran = without_solver(Value::Array(vec![pause; 20])).run();
    check(&ran, &Expect::exact(&["1", "0.5", "0"]));
    assert_eq!(of_first_solver(&ran), (0, 11));
}

/// An iteration 0 without a solver: `b`, then `a`.
fn without_solver(turns: Value) -> Case {
    let case = Case::new().check("a", "test -f a").check("b", "test -f b").turns("solver", 0, turns);
    case.solver(1, [write("b", "1\n")]).solver(2, [write("a", "1\n")])
}

#[test]
fn malformed_calls_again_and_again_end_the_agent() {
    let bad = json!({"calls": [{"tool": "write_file", "raw_input": "{\"path\": \"a"}]});
    let ran = without_solver(json!([bad, bad, bad, bad])).run();
    check(&ran, &Expect::exact(&["1", "0.5", "0"]));
    assert!(ran.agents_md().contains("[A] solver sent malformed tool calls"), "{}", ran.agents_md());
}

#[test]
fn a_refusal_is_a_recorded_failure_of_the_agent() {
    let refusal = json!([{"text": "I would rather not.", "calls": [write("a", "1\n")], "stop": "refusal"}]);
    let ran = without_solver(refusal).run();
    check(&ran, &Expect::exact(&["1", "0.5", "0"]));
    assert!(ran.agents_md().contains("[A] solver the model refused"), "{}", ran.agents_md());
}

#[test]
fn a_reply_that_was_cut_by_its_length_runs_no_tool() {
    let cut = json!([{"calls": [write("a", "1\n"), solver_report("A.")], "stop": "max_tokens"}]);
    let ran = without_solver(cut).run();
    check(&ran, &Expect::exact(&["1", "0.5", "0"]));
    assert!(ran.agents_md().contains("[A] solver ended without a report"), "{}", ran.agents_md());
}

#[test]
fn a_request_that_cannot_work_fails_the_agent_and_not_the_run() {
    let ran = Case::two_steps().faults("skeptic", 0, json!([{"http": 400, "message": "no such field"}])).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert_eq!(classes(&ran), ["fatal"]);
    assert!(ran.agents_md().contains("[A] skeptic failed (fatal)"), "{}", ran.agents_md());
}

#[test]
fn an_empty_reply_is_asked_again() {
    let good = Case::two_steps().default_turns("solver", 0);
    let ran = Case::two_steps().turns("solver", 0, json!([{"text": "Thinking aloud."}, good[0]])).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let reminded = ran.events("conversation.extended").iter().filter(|data| data["why"] == "report_missing").count();
    assert_eq!(reminded, 1);
}

#[track_caller]
fn stops_and_goes_on(fault: Value, code: i32, signal: &str) {
    let ran = Case::two_steps().faults("solver", 1, json!([fault, fault, fault])).run();
    check(&ran, &Expect::stopped(code, &["0.5"]));
    assert_eq!(ran.exit()["signal_detected"], signal);
    assert_eq!(ran.events("llm.failed").len(), 1);
    // Still there: stopped again, at the same step.
    let ran = ran.resume();
    check(&ran, &Expect::stopped(code, &["0.5"]));
    Case::two_steps().replace_script(&ran);
    let ran = ran.resume();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert_eq!(ran.report()["resumes"], 2);
}

#[test]
fn a_spend_limit_is_never_retried_and_can_be_resumed() {
    stops_and_goes_on(json!({"http": 429, "code": "enforced_spend_limit_reached"}), 75, "spend_limit");
}

#[test]
fn a_refused_key_stops_and_can_be_resumed() {
    stops_and_goes_on(json!({"http": 401}), 4, "downstream_unavailable");
}

#[test]
fn a_rate_limit_that_outlasts_the_budget_stops() {
    let case = Case::two_steps().faults("solver", 0, json!([{"http": 429, "retry_after": 100_000}]));
    let ran = case.run();
    check(&ran, &Expect::stopped(4, &[]));
    assert_eq!(ran.exit()["signal_detected"], "rate_limit");
}

/// What a server asked for holds also when the engine is killed in the wait and the run is resumed.
#[test]
fn a_killed_wait_is_waited_on() {
    let case = Case::two_steps().faults("scout", 0, json!([{"http": 429, "retry_after": 4}]));
    let running = case.start();
    running.wait_for_event("llm.failed");
    let killed = std::process::Command::new("kill").args(["-9", &running.pid().to_string()]).status().unwrap();
    assert!(killed.success());
    let ran = running.wait().resume();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let stamped = ran.bench.stamped();
    let at = |kind: &str, number: usize| {
        let (_, ts) = stamped.iter().filter(|(name, _)| name == kind).nth(number).unwrap();
        ts.parse::<jiff::Timestamp>().unwrap().as_millisecond()
    };
    let gap = at("llm.requested", 1) - at("llm.failed", 0);
    assert!(gap >= 4_000, "asked again after {gap} ms");
}
