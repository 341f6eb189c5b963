//! Streams: the fake programs are really run with the command lines made here, and really read.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;
use crate::model::act::PlanStep;
use crate::model::ids::Role;
use crate::model::loop_file::ProgramProfile as P;
use crate::model::purpose::{Purpose, Tool};
use crate::model::report::Report;

/// A program that has run.
pub(super) struct Ran {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub exit: Exit,
}

/// A folder to work in and one to be at home in.
pub(super) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "home"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub fn run(&self, profile: P, task: &Task, env: &[(&str, &str)]) -> Ran {
        let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agents").join(profile.name());
        let declared = [fake.to_str().unwrap().to_owned()];
        let made = invocation(profile, &declared, None, task).unwrap();
        let mut command = Command::new(&made.argv[0]);
        command.args(&made.argv[1..]).current_dir(self.work()).env_clear();
        command.env("PATH", "/usr/bin:/bin").env("HOME", self.folder.path().join("home"));
        command.envs(made.env).envs(env.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // A program that fails early does not read its input.
        let _ = input.write_all(&made.stdin.unwrap_or_default());
        drop(input);
        let output = child.wait_with_output().unwrap();
        let exit = match output.status.code() {
            Some(code) => Exit::Code(code),
            None => Exit::Signal(std::os::unix::process::ExitStatusExt::signal(&output.status).unwrap()),
        };
        Ran { stdout: output.stdout, stderr: output.stderr, exit }
    }
}

pub(super) fn task(role: &str) -> Task {
    Task {
        system: format!("You are the {role} of one iteration."),
        prompt: "Here is a \"capsule\".\nGo.".into(),
        session: None,
        model: None,
        workspace: PathBuf::from("."),
        read_only: role != "Solver",
        caged: false,
        offer: None,
    }
}

fn read(profile: P, ran: &Ran, piece: usize) -> (Vec<Act>, Result<Finished, CallError>) {
    let mut reader = Reader::new(profile);
    let mut acts = Vec::new();
    for bytes in ran.stdout.chunks(piece) {
        reader.push(bytes, &mut |act| acts.push(act));
    }
    (acts, reader.finish(ran.exit, &ran.stderr))
}

#[test]
fn each_fake_does_its_work_and_hands_in_its_report() {
    for profile in P::ALL {
        for (role, name) in [(Role::Scout, "Scout"), (Role::Solver, "Solver"), (Role::Skeptic, "Skeptic")] {
            let place = Place::new();
            let ran = place.run(profile, &task(name), &[("FAKE_CRITERION", "ok")]);
            let (acts, finished) = read(profile, &ran, 7);
            let finished = finished.unwrap_or_else(|error| panic!("{} {name}: {error}", profile.name()));
            assert_eq!(place.work().join("done.txt").exists(), role == Role::Solver, "{} {name}", profile.name());
            let report = fenced_report(&finished.text).unwrap();
            Report::parse(Purpose::from(role).closing().unwrap(), &report).unwrap();
            assert!(!acts.iter().any(|act| matches!(act, Act::Noted { text } if text.contains("not an event"))));
            assert!(acts.iter().any(|act| matches!(act, Act::Said { .. })), "{}: {acts:?}", profile.name());
        }
    }
}

#[test]
fn pieces_make_no_difference_to_what_is_read() {
    for profile in P::ALL {
        let ran = Place::new().run(profile, &task("Solver"), &[]);
        let whole = read(profile, &ran, usize::MAX);
        assert_eq!(read(profile, &ran, 1), whole, "{}", profile.name());
        assert_eq!(read(profile, &ran, 13), whole, "{}", profile.name());
    }
}

/// Where the line begins that says that the turn is finished, and what it says last.
fn finishing_line(profile: P, stdout: &str) -> usize {
    let mark = match profile {
        P::Claude => "{\"type\":\"result\"",
        P::Codex => "{\"type\":\"turn.completed\"",
        P::Gemini => "{\"type\":\"result\"",
        P::Opencode => "{\"type\":\"step_finish\"",
        P::Goose => "{\"type\":\"complete\"",
        P::Aider => "Tokens: ",
        P::Plain => return 0,
    };
    stdout.rfind(mark).unwrap()
}

#[test]
fn a_stream_that_was_cut_is_never_a_finished_turn() {
    for profile in P::ALL {
        let ran = Place::new().run(profile, &task("Solver"), &[]);
        let text = String::from_utf8(ran.stdout.clone()).unwrap();
        let begin = finishing_line(profile, &text);
        let line_end = begin + text[begin..].find('\n').unwrap();
        // All of the line must be there, but for its end; aider's counts end before its costs.
        let whole = match profile {
            P::Aider => begin + text[begin..].find(" received.").unwrap() + " received.".len(),
            _ => line_end,
        };
        for cut in 0..=ran.stdout.len() {
            let mut reader = Reader::new(profile);
            reader.push(&ran.stdout[..cut], &mut |_| ());
            let finished = reader.finish(Exit::Code(0), b"");
            assert_eq!(finished.is_ok(), cut >= whole || profile == P::Plain, "{} cut at {cut}", profile.name());
        }
        for exit in [Exit::Code(1), Exit::Signal(9)] {
            let mut reader = Reader::new(profile);
            reader.push(&ran.stdout, &mut |_| ());
            let error = reader.finish(exit, b"").unwrap_err();
            assert!(matches!(error, CallError::Program { fault: crate::agent::ProgramFault::Crash, .. }), "{error:?}");
        }
    }
}

#[test]
fn claude_is_read_to_the_last_digit() {
    let ran = Place::new().run(P::Claude, &Task { model: Some("claude-opus-5-5".into()), ..task("Solver") }, &[]);
    let mut reader = Reader::new(P::Claude);
    let mut acts = Vec::new();
    let text = String::from_utf8(ran.stdout.clone()).unwrap();
    let before_result = finishing_line(P::Claude, &text);
    reader.push(&ran.stdout[..before_result], &mut |act| acts.push(act));
    // Four lines of one message repeat its usage: it counts once.
    let so_far = Usage {
        input_tokens: 7,
        cache_creation_input_tokens: 1050,
        cache_read_input_tokens: 5000,
        output_tokens: 98,
        thinking_tokens: 0,
        ..Default::default()
    };
    assert_eq!((*reader.usage(), reader.cost_usd()), (so_far, None));
    reader.push(&ran.stdout[before_result..], &mut |act| acts.push(act));
    assert_eq!(reader.cost_usd(), Some(Exact::parse("0.030399000000000002").unwrap()));
    let finished = reader.finish(ran.exit, &ran.stderr).unwrap();
    assert_eq!(finished.model.as_deref(), Some("claude-opus-5-5"));
    assert!(finished.session.as_deref().is_some_and(|id| id.starts_with("00000000-")));
    assert_eq!(finished.usage, so_far);
    let expected = [
        Act::Thought { text: "I look first.".into() },
        Act::Said { text: "I will do it now.".into() },
        Act::Called {
            id: "toolu_1".into(),
            tool: "Write".into(),
            input: r#"{"file_path":"done.txt","content":"done\n"}"#.into(),
        },
        Act::Changed { path: "done.txt".into(), diff: "+done\n".into() },
        Act::Returned { id: "toolu_1".into(), is_error: false, text: "File created successfully at: done.txt".into() },
    ];
    assert_eq!(acts[..5], expected);
}

#[test]
fn an_edit_that_failed_changed_nothing() {
    let mut acts = Vec::new();
    let mut reader = Reader::new(P::Claude);
    let lines = [
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Edit","input":{"file_path":"a","old_string":"x","new_string":"y"}}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"no such text"}]}}"#,
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"u","name":"TodoWrite","input":{"todos":[{"content":"one","status":"in_progress","activeForm":"x"}]}}]}}"#,
        r#"{"type":"system","subtype":"compact_boundary"}"#,
        r#"{"type":"something_new","message":7}"#,
    ];
    for line in lines {
        reader.push(format!("{line}\n").as_bytes(), &mut |act| acts.push(act));
    }
    assert!(!acts.iter().any(|act| matches!(act, Act::Changed { .. })), "{acts:?}");
    let step = PlanStep { text: "one".into(), status: "in_progress".into() };
    assert!(acts.contains(&Act::Planned { steps: vec![step] }), "{acts:?}");
    assert!(matches!(acts.last(), Some(Act::Noted { text }) if text.contains("summarised")), "{acts:?}");
}

#[test]
fn codex_counts_its_session_and_a_turn_only_counts_itself() {
    let place = Place::new();
    let first = place.run(P::Codex, &task("Solver"), &[]);
    let (acts, finished) = read(P::Codex, &first, 5);
    let finished = finished.unwrap();
    let usage = Usage {
        input_tokens: 3000,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 9000,
        output_tokens: 300,
        thinking_tokens: 120,
        ..Default::default()
    };
    assert_eq!(finished.usage, usage);
    assert_eq!(finished.cost_usd, None, "what is not said is not known");
    let shell = |act: &&Act| matches!(act, Act::Called { tool, .. } if tool == "shell");
    assert_eq!(acts.iter().filter(shell).count(), 1, "started and completed is one call: {acts:?}");
    assert!(acts.contains(&Act::Changed { path: "done.txt".into(), diff: "add".into() }));
    let plans: Vec<_> = acts.iter().filter(|act| matches!(act, Act::Planned { .. })).collect();
    assert_eq!(plans.len(), 2, "{acts:?}");

    // The next turn goes on: it is the same session, and its count starts where the first ended.
    let next = Task { session: finished.session.clone(), system: String::new(), ..task("Solver") };
    let second = place.run(P::Codex, &next, &[]);
    let earlier = Usage { input_tokens: 1000, cache_read_input_tokens: 8000, output_tokens: 100, ..Usage::default() };
    let mut reader = Reader::new(P::Codex).after(Earlier { usage: earlier, cost_usd: None });
    reader.push(&second.stdout, &mut |_| ());
    let again = reader.finish(second.exit, &second.stderr).unwrap();
    assert_eq!(again.session, finished.session);
    assert_eq!((again.usage.input_tokens, again.usage.output_tokens), (2000, 200));
    assert!(
        Report::parse(Tool::SubmitSolverReport, &fenced_report(&again.text).unwrap()).is_ok(),
        "it remembers its role"
    );
}

/// As claude 2.1.326 told two turns of one session: `usage` is of the turn, everything else of the session.
#[test]
fn totals_of_a_session_are_counted_once() {
    let result = |input: u64, all: u64, cost: &str| {
        format!(
            "{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"ok\",\"session_id\":\"s-1\",\
             \"total_cost_usd\":{cost},\"usage\":{{\"input_tokens\":{input},\"output_tokens\":300}},\
             \"modelUsage\":{{\"claude-sonnet-5-5\":{{\"inputTokens\":{all},\"outputTokens\":{},\"costUSD\":{cost}}}}}}}\n",
            300 * (all / input)
        )
    };
    let turn = |line: &str, earlier: Earlier| {
        let mut reader = Reader::new(P::Claude).after(earlier);
        reader.push(line.as_bytes(), &mut |_| ());
        let finished = reader.finish(Exit::Code(0), b"").unwrap();
        Earlier { usage: finished.usage, cost_usd: finished.cost_usd }
    };
    let money = |text: &str| Some(Exact::parse(text).unwrap());
    let first = turn(&result(9_600, 9_600, "0.021719999999999999"), Earlier::default());
    assert_eq!((first.usage.total(), first.cost_usd), (9_900, money("0.021719999999999999")));
    let second = turn(&result(9_600, 19_200, "0.03258"), first);
    assert_eq!((second.usage.total(), second.cost_usd), (9_900, money("0.010860000000000001")));
    // A program that begins its count anew loses nothing.
    let anew = turn(&result(9_600, 9_600, "0.01"), first);
    assert_eq!((anew.usage.total(), anew.cost_usd), (9_900, money("0.01")));
}

#[test]
fn sessions_go_on_where_there_are_sessions() {
    for profile in [P::Claude, P::Codex, P::Gemini, P::Opencode] {
        let place = Place::new();
        let (_, finished) = read(profile, &place.run(profile, &task("Scout"), &[]), 64);
        let session = finished.unwrap().session;
        assert!(session.is_some(), "{}", profile.name());
        let next = Task { session: session.clone(), system: String::new(), ..task("Scout") };
        let (_, again) = read(profile, &place.run(profile, &next, &[]), 64);
        assert_eq!(again.unwrap().session, session, "{}", profile.name());
        let gone = Task { session: Some("no-such-one".into()), ..task("Scout") };
        let (_, lost) = read(profile, &place.run(profile, &gone, &[]), 64);
        assert!(lost.is_err(), "{} must not go on in a session that is not there", profile.name());
    }
}

#[test]
fn gemini_opencode_goose_and_aider_are_counted_as_they_count() {
    let usage_of = |profile| {
        let (acts, finished) = read(profile, &Place::new().run(profile, &task("Solver"), &[]), 3);
        let finished = finished.unwrap();
        (finished.usage, finished.cost_usd.map(|cost| cost.to_string()), acts)
    };
    let (gemini, cost, acts) = usage_of(P::Gemini);
    let expected = Usage {
        input_tokens: 2000,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 3000,
        output_tokens: 400,
        thinking_tokens: 150,
        ..Default::default()
    };
    assert_eq!((gemini, gemini.total(), cost), (expected, 5400, None));
    assert_eq!(acts.first(), Some(&Act::Said { text: "I will look first.".into() }), "pieces are joined");
    assert!(acts.contains(&Act::Changed { path: "done.txt".into(), diff: "+done\n".into() }), "{acts:?}");

    let (opencode, cost, _) = usage_of(P::Opencode);
    assert_eq!(opencode.total(), 7065 + 118, "steps are added up");
    assert_eq!(opencode.thinking_tokens, 16);
    assert_eq!(cost.as_deref(), Some("0.00259506"));

    let (goose, cost, acts) = usage_of(P::Goose);
    assert_eq!((goose.input_tokens, goose.output_tokens, cost), (1500, 40, None));
    assert!(acts.contains(&Act::Said { text: "I will do it now.".into() }), "pieces are joined: {acts:?}");

    let (aider, cost, acts) = usage_of(P::Aider);
    let expected = Usage {
        input_tokens: 1100,
        cache_creation_input_tokens: 1100,
        cache_read_input_tokens: 2000,
        output_tokens: 345,
        thinking_tokens: 0,
        ..Default::default()
    };
    assert_eq!((aider, cost.as_deref()), (expected, Some("0.0456")));
    assert!(acts.contains(&Act::Changed { path: "done.txt".into(), diff: String::new() }));
}

#[test]
fn broken_and_unknown_lines_are_told_within_limits() {
    for profile in [P::Claude, P::Codex, P::Gemini, P::Opencode, P::Goose] {
        let mut reader = Reader::new(profile);
        let mut notes = 0;
        for _ in 0..500 {
            reader.push(b"{\"type\":\xff broken\n[]\n{\"type\":\"new kind\"}\n{}\n\n", &mut |act| {
                assert!(matches!(act, Act::Noted { .. }), "{act:?}");
                notes += 1;
            });
        }
        assert_eq!(notes, 21, "{}", profile.name());
    }
}

#[test]
fn the_end_of_a_long_answer_is_kept() {
    let mut reader = Reader::new(P::Plain);
    for _ in 0..40_000 {
        reader.push("é".repeat(40).as_bytes(), &mut |_| ());
        reader.push(b"\n", &mut |_| ());
    }
    reader.push(b"```json\n{\"a\": 1}\n```", &mut |_| ());
    let text = reader.finish(Exit::Code(0), b"").unwrap().text;
    assert!(text.len() <= 1024 * 1024, "{} bytes", text.len());
    assert!(fenced_report(&text).is_some());
}

/// Lines that look like events, with values of every kind in every place.
fn odd_line() -> impl Strategy<Value = String> {
    let kinds = [
        "system",
        "assistant",
        "user",
        "result",
        "rate_limit_event",
        "thread.started",
        "item.started",
        "item.completed",
        "turn.completed",
        "turn.failed",
        "error",
        "init",
        "message",
        "tool_use",
        "tool_result",
        "text",
        "step_finish",
        "complete",
        "done",
    ];
    let names = [
        "message",
        "item",
        "part",
        "usage",
        "content",
        "session_id",
        "stats",
        "error",
        "id",
        "text",
        "tokens",
        "result",
        "modelUsage",
        "rate_limit_info",
        "total_cost_usd",
        "changes",
        "items",
        "state",
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1e400".to_owned()),
        Just("-1".to_owned()),
        Just("99999999999999999999999999".to_owned()),
        Just("\"\\ud83d\\ude00\"".to_owned()),
        Just("[{\"type\":\"text\",\"text\":7},3,null]".to_owned()),
        Just("{\"type\":\"tool_use\",\"input\":[]}".to_owned()),
        Just("{\"type\":\"command_execution\",\"exit_code\":\"x\"}".to_owned()),
    ];
    let value = leaf.prop_recursive(3, 12, 3, move |inner| {
        proptest::collection::vec((prop::sample::select(names.to_vec()), inner), 0..4).prop_map(|pairs| {
            let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            format!("{{{}}}", pairs.join(","))
        })
    });
    (prop::sample::select(kinds.to_vec()), prop::sample::select(names.to_vec()), value)
        .prop_map(|(kind, name, value)| format!("{{\"type\":\"{kind}\",\"{name}\":{value}}}\n"))
}

proptest! {
    #[test]
    fn no_bytes_are_too_odd(
        lines in proptest::collection::vec(
            prop_oneof![odd_line().prop_map(String::into_bytes), proptest::collection::vec(any::<u8>(), 0..200)],
            0..20,
        ),
        piece in 1_usize..50,
        stderr in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let bytes = lines.concat();
        for profile in P::ALL {
            let mut reader = Reader::new(profile);
            for part in bytes.chunks(piece) {
                reader.push(part, &mut |_| ());
            }
            let failed = reader.finish(Exit::Code(1), &stderr).is_err();
            prop_assert!(failed, "code 1 is never a success");
        }
    }
}
