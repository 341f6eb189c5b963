//! Work that is larger than a limit: it goes on in a fresh conversation, in the next step, or once a limit is raised.

use nightloop::model::loop_file;
use serde_json::{Value, json};

use crate::case::{Case, Ran, call, complete, discovery, done, sh, write};

/// The shipped template's limits.
fn template() -> Value {
    let template = include_str!("../../assets/templates/vision.yaml");
    let declared = loop_file::parse(template, "vision.yaml").unwrap();
    let budget = serde_json::to_value(declared.budget).unwrap();
    Value::Object(
        budget
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, limit)| !limit.is_null())
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect(),
    )
}

/// So many replies with one call each, the first of them numbered `from`.
fn calls(from: usize, count: usize) -> Vec<Value> {
    (from..from + count)
        .map(|n| json!({"text": format!("Piece {n}."), "calls": [write(&format!("piece-{n}.txt"), "x\n")]}))
        .collect()
}

fn summary(words: &str) -> Value {
    json!({"text": words})
}

fn finish() -> Vec<Value> {
    vec![json!({"calls": [write("one.txt", "one\n")]}), json!({"calls": [complete("T1")]})]
}

fn joined(parts: &[&[Value]]) -> Value {
    Value::Array(parts.concat())
}

impl Case {
    /// What the model does in one conversation of a call.
    fn on_part(self, which: Value, part: u32, turns: Value) -> Self {
        let mut which = which;
        which["part"] = part.into();
        self.step(which, turns)
    }

    fn builder(self, part: u32, turns: Value) -> Self {
        self.on_part(json!({"purpose": "execute", "subject": "T1"}), part, turns)
    }
}

/// T1 needs 150 calls, in three conversations.
pub fn large_task() -> Case {
    Case::new()
        .declare("budget", template())
        .builder(0, joined(&[&calls(0, 60), &[summary("Pieces 0 to 59 are there; piece 60 is next.")]]))
        .builder(1, joined(&[&calls(60, 60), &[summary("Pieces up to 119 are there; piece 120 is next.")]]))
        .builder(2, joined(&[&calls(120, 28), &finish()]))
}

impl Ran {
    fn handed_over(&self) -> Vec<String> {
        let handed = self.events("conversation.handed_over");
        handed.iter().map(|data| data["reason"].as_str().unwrap().to_owned()).collect()
    }

    /// What an agent was told, wherever it is kept.
    fn told(&self, text: &Value) -> String {
        text["inline"].as_str().map_or_else(|| self.blob(&text["blob"]), str::to_owned)
    }

    /// The first messages of the conversations that went on.
    fn handovers(&self) -> Vec<String> {
        self.events("conversation.handed_over").iter().map(|data| self.blob(&data["message"])).collect()
    }
}

#[test]
fn a_task_of_150_calls_is_finished_by_continuation() {
    let ran = large_task().run().expect(0).verified();
    assert_eq!(ran.handed_over(), ["turns", "turns"]);
    assert_eq!((ran.calls("execute"), ran.task("T1")["retries"].clone()), (2, json!(0)));
    let last = ran.handovers().pop().unwrap();
    for words in ["HANDOVER", "Pieces up to 119 are there", "piece-119.txt", "added piece-3.txt", "Write one.txt"] {
        assert!(last.contains(words), "{words}: {last}");
    }
}

#[test]
fn a_task_of_150_calls_is_finished_by_a_larger_limit() {
    let ran = Case::new()
        .declare("budget", template())
        .declare("limits", json!({"builder": {"turns": 200}}))
        .builder(0, joined(&[&calls(0, 148), &finish()]))
        .run()
        .expect(0)
        .verified();
    assert!(ran.handed_over().is_empty());
    assert_eq!(ran.calls("execute"), 2);
}

#[test]
fn a_builder_that_never_ends_is_bounded() {
    let mut case = Case::new().declare("limits", json!({"builder": {"turns": 2, "continuations": 1}}));
    for part in 0..2 {
        case = case.builder(part, joined(&[&calls(10, 2), &[summary("There is more.")]]));
    }
    let ran = case.run();
    // Three tries, each of two conversations; then the task is blocked, and the run says so.
    assert_eq!(ran.events("agent.started").iter().filter(|data| data["subject"] == "T1").count(), 3);
    assert_eq!(ran.handed_over().len(), 3);
    let told = ran.messages("execute");
    assert!(!told[0].contains("HANDOVER") && told[1].contains("There is more."), "{told:?}");
    ran.stands();
}

/// Discovery looks at 200 files, one at a time.
fn looks(from: usize, count: usize) -> Vec<Value> {
    let look = || json!({"text": "I look.", "calls": [{"tool": "read_file", "input": {"path": "VISION.md"}}]});
    (from..from + count).map(|_| look()).collect()
}

pub fn long_discovery() -> Case {
    let mut case = Case::new().declare("budget", template());
    for part in 0..4 {
        let turns = joined(&[&looks(0, 40), &[summary("Half of it is known.")]]);
        case = case.on_part(json!({"purpose": "discover_context"}), part, turns);
    }
    let rest = joined(&[&looks(160, 39), &[json!({"calls": [discovery(json!({}))]})]]);
    case.on_nth("discover_context", 2, rest)
}

#[test]
fn discovery_with_200_calls_goes_on_in_another_call() {
    let ran = long_discovery().run().expect(0).verified();
    assert_eq!((ran.calls("discover_context"), ran.handed_over().len()), (2, 3));
    assert!(ran.messages("discover_context")[1].contains("Half of it is known."));
}

#[test]
fn a_limit_before_the_first_iteration_ends_the_step_and_not_the_run() {
    let mut case = Case::new()
        .declare("budget", json!({"max_tool_calls_per_iteration": 80, "max_total_tool_calls": 1000}))
        .declare("limits", json!({"reasoner": {"turns": 1000}}));
    for nth in 1..=2 {
        case = case.on_nth("discover_context", nth, joined(&[&looks(0, 90)]));
    }
    let rest = joined(&[&looks(0, 39), &[json!({"calls": [discovery(json!({}))]})]]);
    let ran = case.on_nth("discover_context", 3, rest).run().expect(0).verified();
    assert_eq!(ran.events("budget.cut").len(), 2);
    let last = ran.messages("discover_context").pop().unwrap();
    assert!(last.contains("HANDOVER") && last.contains("read_file VISION.md"), "{last}");
}

pub fn full_context() -> Case {
    let full = json!({"text": "Much was read.", "calls": [write("piece-1.txt", "x\n")], "usage": {"input": 110_000}});
    Case::new().builder(0, json!([full, summary("Piece 1 is there.")])).builder(1, joined(&[&finish()]))
}

#[test]
fn a_full_context_in_the_middle_of_a_task_goes_on() {
    let ran = full_context().run().expect(0).verified();
    assert_eq!(ran.handed_over(), ["context"]);
    assert!(ran.handovers()[0].contains("Piece 1 is there."));
    let bounds = ran.events("agent.started")[0]["bounds"].clone();
    assert_eq!((&bounds["window"], &bounds["window_assumed"]), (&json!(128_000), &json!(true)));
    assert_eq!(ran.task("T1")["retries"], 0);
}

#[test]
fn a_server_that_says_the_context_is_full_costs_no_retry() {
    let too_large = json!({"text": "x", "faults": [{"http": 413}]});
    let stopped = json!({"text": "", "stop": "model_context_window_exceeded"});
    for refusal in [too_large, stopped] {
        let ran = Case::new()
            .builder(0, joined(&[&calls(1, 2), std::slice::from_ref(&refusal)]))
            .builder(1, joined(&[&finish()]))
            .run()
            .expect(0)
            .verified();
        assert_eq!(ran.handed_over(), ["context_full"], "{refusal}");
        assert!(ran.handovers()[0].contains("added piece-2.txt"), "{}", ran.handovers()[0]);
        assert_eq!((ran.calls("execute"), ran.task("T1")["retries"].clone()), (2, json!(0)));
    }
}

#[test]
fn a_result_that_was_cut_is_read_on_in_by_its_agent() {
    let more = |output: u32| call("read_output", json!({"output": output, "offset": 15_000}));
    let first = json!([{"calls": [sh("seq 20000")]}, {"calls": [more(1), more(9)]}, summary("I count.")]);
    let ran = Case::new()
        // Who may only do some things may look at what they showed.
        .declare("permissions", json!({"allow": ["bash", "write"], "otherwise": "deny"}))
        .declare("limits", json!({"builder": {"turns": 2}}))
        .builder(0, first)
        .builder(1, json!([{"calls": [more(1), write("one.txt", "one\n")]}, {"calls": [complete("T1")]}]))
        .run()
        .verified();
    let finished = ran.events("tool.finished");
    let texts: Vec<String> = finished.iter().map(|data| ran.told(&data["text"])).collect();
    let hint = "[this was output 1, cut: 108894 bytes; read_output with output=1 and offset=15000 reads on]";
    assert!(texts.iter().any(|text| text.ends_with(hint)), "{texts:#?}");
    let looks = texts.iter().filter(|text| text.contains("\n4000\n") && text.contains("continue with offset=44"));
    assert_eq!(looks.count(), 2, "in its conversation, and in the next one: {texts:#?}");
    assert!(texts.iter().any(|text| text.contains("there is no output 9")), "{texts:#?}");
}

#[test]
fn a_first_message_that_does_not_fit_ends_the_call() {
    let refusal = json!([{"text": "x", "faults": [{"http": 413}]}, done()]);
    let ran = Case::new().on("discover_context", refusal).run();
    assert!(ran.handed_over().is_empty());
    ran.stands();
}

#[test]
fn an_iteration_that_a_limit_cut_has_its_closing_value_check() {
    let ran = Case::new()
        .declare("budget", json!({"max_tool_calls_per_iteration": 40, "max_total_tool_calls": 1000}))
        .builder(0, joined(&[&calls(0, 36), &[summary("36 pieces are there.")]]))
        .on_subject_nth("execute", "T1", 2, joined(&[&calls(36, 20), &finish()]))
        .run()
        .expect(0)
        .verified();
    assert_eq!(ran.events("budget.cut").len(), 0);
    assert_eq!(ran.work()[..3], ["execute", "vrc", "execute"], "{:?}", ran.log());
    let told = ran.messages("execute");
    assert!(told[1].contains("36 pieces are there."), "{}", told[1]);
    assert_eq!(ran.task("T1")["retries"], 0);
}

#[test]
fn a_run_that_ended_at_a_limit_goes_on_once_it_is_raised() {
    let ran = Case::new().declare("budget", json!({"max_total_tool_calls": 12})).run().expect(2).verified();
    assert_eq!(ran.halted()["exhausted"]["dimension"], "total_tool_calls", "{}", ran.halted());
    assert!(ran.ended.stdout.contains("resume --raise total_tool_calls"), "{}", ran.ended.stdout);
    // Without more, and with less, there is nothing to go on with.
    let ran = ran.resume().expect(2);
    let lower = ran.bench.nightloop(&["resume", "--headless", "--raise", "total_tool_calls=5"]);
    assert_eq!(lower.code, 64, "{}{}", lower.stdout, lower.stderr);
    let raised = Ran::of(ran.bench, &["resume", "--headless", "--raise", "total_tool_calls=500"]);
    let raised = raised.expect(0).verified();
    assert_eq!(raised.events("run.resumed").pop().unwrap()["raised"][0]["to"], "500");
}
