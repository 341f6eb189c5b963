//! What a turn tells, asks and ends with.

use nightloop::agent::ProgramFault;
use nightloop::agent::program::Allowed;
use nightloop::model::act::{Act, PlanStep};
use nightloop::model::decimal::Exact;

use crate::stage::{Stage, task};

fn said(text: &str) -> Act {
    Act::Said { text: text.into() }
}

#[tokio::test]
async fn a_turn_is_told_as_whole_acts_in_order() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("notes.txt"), "one\ntwo\n").unwrap();
    let words =
        "acp: think say=I_begin_now. plan run say=And_now_the_file. edit=notes.txt:three cost=0.0421 say=All_done.";
    let seen = Stage::default().play(&task(dir.path(), words), "").await;
    let step = |text: &str, status: &str| PlanStep { text: text.into(), status: status.into() };
    let diff = "--- notes.txt\n+++ notes.txt\n@@ -1,2 +1 @@\n-one\n-two\n+three\n";
    let expected = vec![
        Act::Thought { text: "Let me look first. ".into() },
        said("I begin now."),
        Act::Planned { steps: vec![step("look", "completed"), step("write", "in_progress"), step("check", "pending")] },
        Act::Called { id: "c-1".into(), tool: "execute".into(), input: "{\"command\":\"ls\"}".into() },
        Act::Returned { id: "c-1".into(), is_error: false, text: "a\nb".into() },
        said("And now the file."),
        Act::Called { id: "c-2".into(), tool: "edit".into(), input: "Edit notes.txt".into() },
        Act::Returned { id: "c-2".into(), is_error: false, text: String::new() },
        Act::Changed { path: "notes.txt".into(), diff: diff.into() },
        said("All done."),
    ];
    assert_eq!(seen.acts, expected);
    let finished = seen.finished();
    assert_eq!(finished.text, "All done.");
    assert_eq!(finished.session.as_deref(), Some("s-1"));
    assert_eq!(finished.cost_usd, Some(Exact::parse("0.0421").unwrap()));
    // Its total shows that it counts thoughts beside the output.
    assert_eq!(
        (finished.usage.input_tokens, finished.usage.output_tokens, finished.usage.thinking_tokens),
        (100, 60, 10)
    );
    assert_eq!(std::fs::read_to_string(dir.path().join("notes.txt")).unwrap(), "three\n");
}

#[tokio::test]
async fn without_a_server_the_report_stands_in_the_last_words() {
    let dir = tempfile::tempdir().unwrap();
    let seen = Stage::default().play(&task(dir.path(), "do it"), "").await;
    let text = &seen.finished().text;
    let json = text.split("```json\n").nth(1).and_then(|rest| rest.split("\n```").next()).unwrap();
    let report: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(report["files_touched"][0], "done.txt");
    assert!(dir.path().join("done.txt").exists());
}

#[tokio::test]
async fn a_price_that_is_not_told_is_not_known() {
    let dir = tempfile::tempdir().unwrap();
    let seen = Stage::default().play(&task(dir.path(), "acp: say=hello"), "").await;
    assert_eq!(seen.finished().cost_usd, None);
}

#[tokio::test]
async fn a_question_is_put_whole_and_its_answer_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    let answers = [
        (Some(Allowed::Once), "The answer is yes!."),
        (Some(Allowed::Always), "The answer is ever."),
        (Some(Allowed::No), "The answer is nope."),
        (None, "The answer is nope."),
    ];
    for (answer, expected) in answers {
        let stage = Stage { answer, ..Stage::default() };
        let seen = stage.play(&task(dir.path(), "acp: ask"), "").await;
        assert_eq!(seen.finished().text, expected);
        let (tool, what) = &seen.asked[0];
        assert_eq!(tool, "execute");
        assert!(what.contains("Remove everything") && what.contains("rm -rf ."), "{what}");
    }
}

#[tokio::test]
async fn a_cancel_takes_open_questions_back() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage { cancel_at_ask: true, ..Stage::default() };
    let seen = stage.play(&task(dir.path(), "acp: ask"), "").await;
    assert!(seen.fault().1.contains("cancelled"));
    assert!(seen.acts.contains(&said("The answer is cancelled.")), "{:?}", seen.acts);
}

#[tokio::test]
async fn a_cancel_ends_the_turn_with_or_without_the_agent() {
    let dir = tempfile::tempdir().unwrap();
    for words in ["acp: begin hang", "acp: begin deaf"] {
        let cancel_at: fn(&Act) -> bool = |act| matches!(act, Act::Called { .. });
        let stage = Stage { cancel_at: Some(cancel_at), ..Stage::default() };
        let seen = stage.play(&task(dir.path(), words), "").await;
        assert_eq!(seen.fault(), (ProgramFault::Crash, "we cancelled its turn".into()));
    }
}

#[tokio::test]
async fn only_the_end_of_a_turn_is_a_success() {
    let dir = tempfile::tempdir().unwrap();
    let cases = [
        ("acp: say=hi stop=max_tokens", ProgramFault::ContextFull, "limit of tokens"),
        ("acp: say=hi stop=max_turn_requests", ProgramFault::TooLong, "model requests"),
        ("acp: say=hi stop=refusal", ProgramFault::Crash, "refused"),
        ("acp: say=hi stop=cancelled", ProgramFault::Crash, "not by us"),
        ("acp: say=hi stop=bored", ProgramFault::Crash, "without a reason that we know"),
        ("acp: say=hi exit", ProgramFault::Crash, "closed its output while it was working"),
        ("acp: say=hi fail=rate_limit_reached", ProgramFault::RateLimit, "rate limit reached"),
        ("acp: say=hi fail=oops", ProgramFault::Crash, "oops"),
    ];
    for (words, fault, message) in cases {
        let seen = Stage::default().play(&task(dir.path(), words), "").await;
        let found = seen.fault();
        assert!(found.0 == fault && found.1.contains(message), "{words}: {found:?}");
        // What it did until then is kept.
        assert!(seen.acts.contains(&said("hi")), "{words}: {:?}", seen.acts);
    }
}

#[tokio::test]
async fn what_we_do_not_have_is_not_found() {
    let dir = tempfile::tempdir().unwrap();
    let seen = Stage::default().play(&task(dir.path(), "acp: reach"), "").await;
    assert_eq!(seen.finished().text, "-32601 -32601 -32601");
}

#[tokio::test]
async fn a_flood_is_cut_and_said_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let seen = Stage::default().play(&task(dir.path(), "acp: flood=21000 say=still_here"), "").await;
    assert_eq!(seen.finished().text, "still here");
    assert_eq!(seen.acts.len(), 20_000);
    assert!(seen.notes().iter().any(|note| note.contains("the rest is not shown")), "{:?}", seen.notes());
}

#[test]
fn the_turn_can_be_spawned() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let dir = tempfile::tempdir().unwrap();
    let task = task(dir.path(), "");
    let (asks, _asked) = tokio::sync::mpsc::channel(1);
    let cancel = tokio_util::sync::CancellationToken::new();
    let (reader, writer) = tokio::io::duplex(64);
    let mut on_act = |_: Act| {};
    drop(is_send(nightloop::agent::acp::run(reader, writer, &task, &mut on_act, asks, &cancel)));
}
