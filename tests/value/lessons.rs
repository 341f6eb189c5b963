//! What went wrong in earlier loops of this kind, each as a run that has to end as it should.
//!
//! Two lessons cannot be shown from outside, because the journal leaves no room for them: counters that are overwritten
//! when an agent's state is read back, and references to what was read before.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::case::{
    Case, Ran, Running, add_task, call, complete, correction, discovery, done, ends, finding, held, research, script,
    sh, turns, unattended, vrc, write,
};

/// Partial: recorded as such, and never a success.
#[track_caller]
fn partial(ran: Ran) -> Ran {
    let ran = ran.expect(2).verified();
    assert_eq!(ran.halted()["status"], "EXIT_BUDGET_EXCEEDED", "{:#?}", ran.log());
    assert!(ran.text("DELIVERY_REPORT.md").contains("Partial"));
    ran
}

fn created(ran: &Ran, source: &str) -> usize {
    let mut ids: Vec<Value> = ran
        .events("task.put")
        .into_iter()
        .filter(|put| put["task"]["source"] == source)
        .map(|put| put["task"]["id"].clone())
        .collect();
    ids.sort_by_key(Value::to_string);
    ids.dedup();
    ids.len()
}

const FLAWS: [&str; 12] = [
    "Colours clash on small screens.",
    "Headings jump from first to third level.",
    "Nobody finds the index.",
    "Quotes are straight where they should bend.",
    "Page seven lacks its footer.",
    "Umlauts vanish while printing.",
    "Sentences run over forty words.",
    "Margins differ between chapters.",
    "Tables lose their last row.",
    "Footnotes start again at zero.",
    "Figures carry no caption.",
    "Dates appear in three formats.",
];

/// Each evaluation finds another flaw, however much was mended.
fn never_satisfied() -> Case {
    let mut case = Case::new().set("critical_eval_interval", json!(1)).follow_ups("CE", "1");
    for (nth, flaw) in (1..).zip(FLAWS) {
        case = case.on_nth("critical_eval", nth, json!([{"calls": [finding("critical", flaw)]}, done()]));
    }
    case.on("critical_eval", json!([{"calls": [finding("critical", "It is still not perfect.")]}, done()]))
}

#[test]
fn evaluations_cannot_make_work_without_end() {
    let ran = partial(never_satisfied().set("max_tasks", json!(5)).run());
    assert_eq!(created(&ran, "critical_eval"), 3, "{:#?}", ran.log());
    assert!(ran.log().iter().any(|line| line.contains("the limit is 5")), "{:#?}", ran.log());
    // Without a limit of tasks it is the limit of steps.
    let ran = partial(never_satisfied().set("max_steps", json!(12)).run());
    assert!(created(&ran, "critical_eval") <= 12, "{:#?}", ran.log());
}

#[test]
fn coherence_cannot_make_work_without_end() {
    // Nothing ever fits together; each look finds as much as it may, and nothing that was there before.
    let flaw = |description: &&str| json!({"dimension": "resilience", "severity": "CRITICAL", "description": description, "suggested_action": description});
    let mut case = Case::new().set("max_task_retries", json!(5)).set("coherence_interval", json!(1));
    for (nth, flaws) in (1..).zip(FLAWS.chunks(4)) {
        let findings: Vec<Value> = flaws.iter().map(flaw).collect();
        let report = call("report_coherence", json!({"overall": "CRITICAL", "findings": findings}));
        case = case.on_nth("coherence_eval", nth, turns(&[&[report]]));
    }
    for number in ["1", "2", "3", "4"] {
        case = case.follow_ups("COH", number);
    }
    for nth in 1..=3 {
        case = case.on_subject_nth("execute", "T1", nth, json!([done()]));
    }
    let ran = case.set("max_tasks", json!(7)).run().verified();
    assert!([0, 2].contains(&ran.ended.code), "{:#?}", ran.log());
    assert!(ran.calls("coherence_eval") > 0, "{:#?}", ran.log());
    assert!(created(&ran, "coherence") <= 5, "{:#?}", ran.log());
}

#[test]
fn fix_and_service_fix_do_not_alternate_for_ever() {
    // A service that never comes up, and a check that never passes.
    let service = json!([{"name": "page", "health_type": "command", "command": ["test", "-e", "up.txt"]}]);
    let scripts = [script("unit/one", "one.txt", "uno"), script("value/two", "two.txt", "two")];
    let ran = Case::new()
        .set("max_fix_attempts", json!(2))
        .on("discover_context", turns(&[&[discovery(json!({"services": service}))]]))
        .on("generate_verifications", json!([{"text": "Checks.", "calls": scripts}, done()]))
        .on("service_fix", json!([done()]))
        .on("fix", json!([done()]))
        .on("research", json!([done()]))
        .on("course_correct", turns(&[&[correction("restructure", json!({}))]]))
        .run();
    let ran = partial(ran);
    assert!(ran.calls("service_fix") >= 3, "a sick service is looked after: {:#?}", ran.log());
    assert!(ran.calls("service_fix") <= 12 && ran.calls("fix") <= 4, "{:#?}", ran.log());
}

#[test]
fn a_service_that_comes_up_again_is_left_alone() {
    let service = json!([{"name": "page", "health_type": "command", "command": ["test", "-e", "up.txt"]}]);
    let ran = Case::new()
        .on("discover_context", turns(&[&[discovery(json!({"services": service}))]]))
        .on("service_fix", json!([{"calls": [sh("touch up.txt")]}, done()]))
        .run()
        .expect(0)
        .verified();
    assert_eq!(ran.steps("service_fix"), 1, "{:#?}", ran.log());
}

#[test]
fn a_failure_that_comes_and_goes_resets_no_research() {
    // Whoever mends the one check breaks the other: the set of failures changes with every fix.
    let scripts =
        [script("unit/a", "f.txt", "aa"), script("unit/b", "f.txt", "bb"), script("value/two", "two.txt", "two")];
    let mut case = Case::new()
        .set("max_fix_attempts", json!(2))
        .on("generate_verifications", json!([{"text": "Checks.", "calls": scripts}, done()]))
        .on("research", turns(&[&[research("Write both words.", &[])]]))
        .on("course_correct", turns(&[&[correction("restructure", json!({}))]]));
    for (check, word) in [("unit/a", "aa"), ("unit/b", "bb"), ("unit/a,unit/b", "aa")] {
        case = case.on_subject("fix", check, json!([{"calls": [write("f.txt", word)]}, done()]));
    }
    let triage = json!({"root_causes": [
        {"cause": "A word is missing.", "affected_tests": ["unit/a", "unit/b"], "priority": 1, "fix_suggestion": "Write it."},
    ]});
    let ran = partial(case.on("triage", turns(&[&[call("report_triage", triage)]])).run());
    assert!(ran.steps("research") <= 2, "once for each check: {:#?}", ran.log());
    assert!(ran.calls("fix") <= 8, "twice the limit for each check: {:#?}", ran.log());
}

#[test]
fn a_strategy_raises_no_limit() {
    let change = |action: &str, changes: Value| {
        let input = json!({
            "pattern": "churn",
            "cause": "The same error again.",
            "evidence": ["3 times"],
            "action": action,
            "rationale": "More attempts will help.",
            "re_evaluate_after": 3,
            "changes": changes,
        });
        call("report_strategy_change", input)
    };
    let scripts = [script("unit/one", "one.txt", "uno"), script("value/two", "two.txt", "two")];
    let ran = Case::new()
        .set("max_fix_attempts", json!(3))
        .on("generate_verifications", json!([{"text": "Checks.", "calls": scripts}, done()]))
        .on("fix", json!([done()]))
        .on("research", json!([done()]))
        .on("course_correct", turns(&[&[correction("restructure", json!({}))]]))
        .on(
            "process_monitor",
            turns(&[&[change("STRATEGY_CHANGE", json!({"max_fix_attempts": "9"}))], &[change("CONTINUE", json!({}))]]),
        )
        .run();
    let ran = partial(ran);
    assert!(ran.calls("process_monitor") > 0, "the monitor saw it: {:#?}", ran.log());
    assert!(told(&ran, "may only be lowered: 9 is more than 3"), "the agent is told");
    assert_eq!(ran.calls("fix"), 3, "{:#?}", ran.log());
}

/// Was an agent told this? What goes back to it stands in the journal, or in a blob that the journal names.
fn told(ran: &Ran, words: &str) -> bool {
    let in_events = ran.bench.events().iter().any(|(_, data)| data.to_string().contains(words));
    in_events || blobs(&ran.bench.run_dir()).iter().any(|text| text.contains(words))
}

fn blobs(dir: &std::path::Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts.extend(blobs(&path));
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            texts.push(text);
        }
    }
    texts
}

#[test]
fn gaps_of_a_value_check_wait_for_the_plan() {
    let gap = json!([{
        "id": "g1",
        "description": "Nobody is greeted.",
        "severity": "critical",
        "suggested_task": "Greet whoever opens the first file.",
    }]);
    let ran = Case::new()
        .set("steps_per_iteration", json!(1))
        .always("vrc", turns(&[&[vrc("0.5", "CONTINUE", gap.clone())]]))
        .on_nth("vrc", 1, turns(&[&[vrc("0", "CONTINUE", gap)]]))
        .follow_ups("VRC", "g1")
        .run()
        .verified();
    let began: Vec<Value> = ran.events("step.began").into_iter().filter(|step| step["action"] == "execute").collect();
    let tasks: Vec<&str> = began.iter().filter_map(|step| step["task"].as_str()).collect();
    assert_eq!(tasks[..2], ["T1", "T2"], "{tasks:?}");
    assert!(tasks[2..].iter().all(|task| task.starts_with("VRC-")), "{tasks:?}");
    assert_eq!(tasks.len(), 2 + 2, "a gap that comes back gets one task more, not one each time: {tasks:?}");
    // Each was made when nothing of the plan waited any more.
    let events = ran.bench.events();
    let made = events.iter().position(|(kind, data)| kind == "task.put" && data["task"]["source"] == "vrc").unwrap();
    let finished = events
        .iter()
        .position(|(kind, data)| kind == "task.put" && data["task"]["id"] == "T2" && data["task"]["status"] == "done");
    assert!(finished.unwrap() < made);
}

#[test]
fn an_exit_gate_that_never_opens_is_no_success() {
    let gap = json!([{"id": "g", "description": "Not good enough.", "severity": "degraded"}]);
    let never = Case::new().on("exit_gate", turns(&[&[vrc("1", "SHIP_READY", gap)]])).follow_ups("EG", "g");
    let ran = partial(never.run());
    assert_eq!(ran.steps("exit_gate"), 3);
    let detail = ran.halted()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("max_exit_gate_attempts"), "{detail}");
    // Asking again changes nothing.
    let again = unattended(ran.bench.command(&["resume", "--headless"]));
    assert_eq!(again.code, 2, "{}", again.stdout);
}

#[test]
fn tasks_that_are_done_are_progress_and_the_budget_ends_what_is_never_enough() {
    let ran =
        never_satisfied().always("vrc", turns(&[&[vrc("0.5", "CONTINUE", json!([]))]])).run().expect(2).verified();
    assert_eq!(ran.halted()["stop_reason"], "MAX_ITERS");
    assert!(ran.text("DELIVERY_REPORT.md").contains("Partial: a limit was reached"));
}

#[test]
fn a_judge_that_never_says_ship_ready_is_asked_again_only_after_work() {
    let task = |nth: u32, about: &str| {
        let wish = add_task(&format!("C{nth}"), json!({"description": about}));
        turns(&[&[wish, correction("new_tasks", json!({}))]])
    };
    let mut case = Case::new()
        .on("exit_gate", turns(&[&[vrc("1", "CONTINUE", json!([]))]]))
        .on_nth("course_correct", 1, task(1, "Number the pages."))
        .on_nth("course_correct", 2, task(2, "Name whoever wrote it."));
    for id in ["C1", "C2"] {
        case = case.on_subject("execute", id, turns(&[&[write(&format!("{id}.txt"), "x\n")], &[complete(id)]]));
    }
    let ran = partial(case.run());
    assert_eq!((ran.calls("exit_gate"), ran.steps("course_correct")), (3, 2), "{:#?}", ran.log());
    assert!(ran.calls("critical_eval") <= 3 + 3, "{:#?}", ran.log());
}

#[test]
fn a_judge_that_never_reports_is_asked_so_often_and_no_more() {
    let ran = partial(Case::new().on("exit_gate", json!([done()])).run());
    assert_eq!(ran.calls("exit_gate"), 3, "{:#?}", ran.log());
}

#[test]
fn a_second_run_in_the_same_workspace_is_refused() {
    // The first one is held in its first task until the second one has had its answer.
    let work = turns(&[&[held()], &[write("one.txt", "one\n")], &[complete("T1")]]);
    let first = Running::of(Case::new().on_subject("execute", "T1", work).written(), &["run", "--headless"]).hold();
    let second = unattended(first.bench.command(&["run", "--headless"]));
    let resumed = unattended(first.bench.command(&["resume", "--headless"]));
    let ran = first.release().wait();
    assert_eq!((second.code, resumed.code), (73, 73), "{}\n{}", second.stderr, resumed.stderr);
    ran.expect(0).verified();
}

#[test]
fn a_value_score_out_of_range_is_sent_back() {
    // As a percentage, and as text: both are refused with words, and the third one counts.
    let mut percent = vrc("0", "CONTINUE", json!([]));
    percent["input"]["value_score"] = json!(100);
    let text = vrc("85", "CONTINUE", json!([]));
    let right = vrc("0.31", "CONTINUE", json!([]));
    let ran = Case::new()
        .on_nth("vrc", 2, turns(&[&[percent.clone()], std::slice::from_ref(&text), &[right]]))
        .run()
        .expect(0)
        .verified();
    let taken = &ran.events("vrc.taken")[1]["vrc"];
    assert_eq!((&taken["carried"], &taken["value_score"]), (&json!(false), &json!("0.31")), "{taken}");
    for words in ["`value_score` is `100`", "`value_score` is `85`"] {
        assert!(told(&ran, words), "the agent is told: {words}");
    }
    // One that never learns it is not believed: the last score stands.
    let ran = Case::new().on_nth("vrc", 2, turns(&[&[percent], &[text]])).run().expect(0).verified();
    let taken = &ran.events("vrc.taken")[1]["vrc"];
    assert_eq!((&taken["carried"], &taken["value_score"]), (&json!(true), &json!("0")), "{taken}");
}

#[test]
fn nobody_at_the_other_end_of_stdin_is_no_reason_to_hang() {
    let asking = || {
        let questions = json!({"unresolved_questions": ["Which language?"]});
        Case::new().on("discover_context", turns(&[&[discovery(questions)]])).written()
    };
    // At its end at once; and open for ever without a word.
    let closed = asking();
    unattended(closed.command(&["run", "--headless"])).expect(3);
    unattended(closed.command(&["resume", "--headless"])).expect(3);
    let silent = asking();
    let mut command = silent.command(&["run", "--headless"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let kept_open = child.stdin.take();
    ends(child).expect(3);
    drop(kept_open);
}

#[test]
fn what_comes_before_the_work_costs_little() {
    let ran = Case::new().run().expect(0).verified();
    let events = ran.bench.events();
    let began = events.iter().position(|(kind, _)| kind == "iteration.began").unwrap();
    let (before, _) = events.split_at(began);
    let started = before.iter().filter(|(kind, _)| kind == "agent.started");
    let calls: Vec<&str> = started.filter_map(|(_, data)| data["call"].as_str()).collect();
    // Five looks at the vision, one at the context, one at the PRD, the plan, seven at the plan, the value.
    assert!((1..=16).contains(&calls.len()), "{} calls: {calls:?}", calls.len());
    let tokens: u64 = before.iter().filter(|(kind, _)| kind == "llm.responded").map(|(_, data)| spent(data)).sum();
    assert!(tokens > 0 && tokens <= PREPARATION, "{tokens} tokens");
}

/// With documents of a few lines it is our prompts and tools that cost: about 30,000, and some more for changes of ours.
const PREPARATION: u64 = 36_600;

fn spent(responded: &Value) -> u64 {
    let usage = &responded["usage"];
    ["input", "cache_write", "cache_read", "output"].iter().filter_map(|part| usage[part].as_u64()).sum()
}

#[test]
fn a_value_that_falls_three_times_is_seen() {
    let falling = || {
        let mut case = Case::new().set("steps_per_iteration", json!(1)).set("process_monitor", json!(false));
        for (nth, score) in [(1, "0.8"), (2, "0.6"), (3, "0.4"), (4, "0.2")] {
            case = case.on_nth("vrc", nth, turns(&[&[vrc(score, "CONTINUE", json!([]))]]));
        }
        case
    };
    // The Northstar is farther away each time, which is looked at first.
    assert_eq!(falling().run().expect(1).verified().halted()["stop_reason"], "NORTHSTAR_DRIFT");
    let ran = falling().declare("spec", json!("1.0")).without("northstar").run().expect(1).verified();
    let halted = ran.halted();
    assert_eq!(
        (&halted["status"], &halted["stop_reason"]),
        (&json!("EXIT_DIVERGED"), &json!("SILENT_DIVERGENCE_DETECTED"))
    );
    assert_eq!(ran.bench.evidence("iter_2/certificate.json")["type"], "DIVERGED");
    assert!(ran.text("DELIVERY_REPORT.md").contains("Not delivered."));
    // A value that falls twice and then rises is a way, not an end.
    let mut case = Case::new().set("steps_per_iteration", json!(1)).set("process_monitor", json!(false));
    for (nth, score) in [(1, "0.8"), (2, "0.6"), (3, "0.4"), (4, "0.5")] {
        case = case.on_nth("vrc", nth, turns(&[&[vrc(score, "CONTINUE", json!([]))]]));
    }
    case.run().expect(0).verified();
}

/// A state in which everything is done, as if the run itself had written it.
fn forged_state() -> String {
    let task = json!({"id": "T1", "description": "Forged.", "status": "done"});
    let state = json!({
        "rendered_from": "forged",
        "phase": "value_loop",
        "iteration": 7,
        "step": 99,
        "gates_passed": ["inputs", "vision_validated", "prd_critique", "plan_generated", "preflight"],
        "tasks": [task],
        "exit_gate_attempts": 2,
    });
    format!("{state}\n")
}

#[test]
fn a_state_that_somebody_else_wrote_is_never_believed() {
    let questions = json!({"unresolved_questions": ["Which language?"]});
    let ran = Case::new()
        .on("discover_context", turns(&[&[discovery(questions)]]))
        .file(".loop_state.json", &forged_state())
        .run()
        .expect(3)
        .stands();
    let ours = |ran: &Ran| {
        let text = ran.text(".loop_state.json");
        assert!(!text.contains("forged") && !text.contains("Forged."), "{text}");
        assert_eq!(text, ran.text("evidence/loop/value/.loop_state.json"));
        serde_json::from_str::<Value>(&text).unwrap()
    };
    assert_eq!((&ours(&ran)["phase"], &ours(&ran)["tasks"]), (&json!("pre_loop"), &json!([])));
    assert_eq!(ran.calls("vision_validate"), 1, "no gate was passed over");
    // Again, while nobody runs it.
    ran.put(".loop_state.json", &forged_state());
    let ran = ran.answer_and_go_on(&["d1", "English"]).expect(0).verified();
    assert_eq!(ours(&ran)["tasks"][0]["description"], "Write one.txt with the word one.");
    assert_eq!((ran.calls("plan"), ran.calls("execute"), ran.steps("exit_gate")), (1, 2, 1), "{:#?}", ran.log());
}
