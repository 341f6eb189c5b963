//! The inbox as an operator meets it: every kind of decision, answered by keys.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyModifiers};

use super::super::stages::Staged;
use super::answer::READING_MS;
use super::*;
use crate::console::cmd::Load;
use crate::console::scene::Link;
use crate::engine::command::Command;
use crate::machine::event::{
    AskedBy, DecisionAnswered, DecisionAsked, DecisionSettled, Event, IterationEvent, ProbeEnd, ProbeResult,
};
use crate::model::decision::{GuardFile, Severity, VisionIssue};
use crate::model::digest::Digest;

const OUTPUT: &[u8] =
    b"checking https://staging.example.org/login\n  status 503, wanted 200\x1b]0;owned\x07\n1 of 3 checks failed\n";
const BEFORE: &str =
    "# PRD\n\n## Goal\nParse dates.\n\n## Items\n- ISO dates\n- RFC 2822 dates\n\n## Limits\n- one file at most\n";
const AFTER: &str = "# PRD\n\n## Goal\nParse dates in every time zone of the database.\n\n## Items\n- ISO dates\n- RFC 2822 dates\n- week dates\n\n## Limits\n- two files at most\n";

fn ask(staged: &mut Staged, request: Request, why: &str) -> DecisionId {
    let id = staged.run.operator.next_id();
    let asked_by = Some(AskedBy { call: "it0.scout".to_owned(), turn: 1, tool: "t1".to_owned() });
    staged.happen(DecisionAsked { id, request, why: why.to_owned(), asked_by });
    id
}

fn answered(staged: &mut Staged, id: DecisionId, answer: Answer) {
    staged.happen(DecisionAnswered { id, answer, note: None, by: "maria@tty1".to_owned() });
}

fn asked(request: Request, why: &str) -> Staged {
    let mut staged = Staged::running();
    ask(&mut staged, request, why);
    staged
}

fn open(staged: &Staged) -> Inbox {
    let mut inbox = Inbox::default();
    staged.screen(&mut inbox, 80, 20);
    inbox
}

fn order(response: &Response) -> Option<(DecisionId, Answer, Option<String>, Option<String>)> {
    match response.cmds.as_slice() {
        [Cmd::Order(Command::Answer { id, answer, note, document })] => {
            Some((*id, answer.clone(), note.clone(), document.clone()))
        }
        _ => None,
    }
}

fn plain(answer: Answer) -> Option<(DecisionId, Answer, Option<String>, Option<String>)> {
    Some((DecisionId(1), answer, None, None))
}

fn pause() -> Request {
    Request::HumanAction {
        instructions: "Log in to the staging host and approve the new certificate in the browser.\nThe address is https://staging.example.org/login.".to_owned(),
        verify: Some(["./check-login", "--host", "staging example"].map(str::to_owned).into()),
        timeout_seconds: 120,
    }
}

fn permission() -> Request {
    Request::Permission {
        tool: "shell".to_owned(),
        command: "cargo publish --token  \u{1b}[8m$TOKEN\u{202e} && \\\n    rm -rf target/package".to_owned(),
        directory: "/home/maria/dates".to_owned(),
        rule: "ask: cargo publish*".to_owned(),
    }
}

fn refinement() -> Request {
    Request::Refinement {
        path: "docs/PRD.md".to_owned(),
        before: Digest::of(BEFORE.as_bytes()),
        after: Digest::of(AFTER.as_bytes()),
    }
}

fn vision(severity: Severity) -> Request {
    let issue = |severity, text: &str, alternatives: &[&str]| VisionIssue {
        severity,
        text: text.to_owned(),
        alternatives: alternatives.iter().map(|text| (*text).to_owned()).collect(),
    };
    Request::Vision {
        issues: vec![
            issue(
                severity,
                "\"Fast\" is no outcome that a check can see.",
                &["p95 of a parse under 2 ms", "10k lines in 1 s"],
            ),
            issue(Severity::Soft, "Nothing is said about time zones.", &[]),
        ],
    }
}

fn question() -> Request {
    Request::Question {
        question: "Which calendar do dates before 1582 follow?".to_owned(),
        choices: vec!["Julian".to_owned(), "proleptic Gregorian, as ISO 8601 says".to_owned()],
    }
}

fn give(staged: &Staged, inbox: &mut Inbox, text: &[u8]) {
    let loaded = Loaded::Blob(Digest::of(text), Ok(Arc::from(text)));
    staged.with(|stage| inbox.take(&loaded, stage));
}

fn failed_check(id: DecisionId) -> DecisionSettled {
    let check = ProbeResult {
        end: ProbeEnd::Exited(1),
        output: Digest::of(OUTPUT),
        stdout_sha256: Digest::of(OUTPUT),
        output_bytes: OUTPUT.len() as u64,
        last_line: None,
        held_back: None,
        removed_lines: None,
        count: None,
        canary_shown: None,
        wrote: Vec::new(),
        complaints: None,
        steady_sha256: None,
        signature: None,
        fix: None,
        missing: None,
        millis: 3_200,
    };
    DecisionSettled { id, closed: false, check: Some(check), detail: "exit 1".to_owned() }
}

fn refining() -> (Staged, Inbox) {
    let staged = asked(refinement(), "Two items need another reading of the goal.");
    let mut inbox = open(&staged);
    give(&staged, &mut inbox, BEFORE.as_bytes());
    give(&staged, &mut inbox, AFTER.as_bytes());
    (staged, inbox)
}

#[test]
fn looks_by_kind() {
    for (name, request, why) in [
        ("pause", pause(), "The end-to-end test needs a session that only a person can open."),
        ("permission", permission(), "The command matches a rule that wants a person."),
        ("question", question(), "The specification is silent on this, and both readings pass the tests."),
        ("vision", vision(Severity::Hard), "The vision was examined before the first iteration."),
        (
            "tampering",
            Request::Tampering {
                iteration: 4,
                findings: vec!["tests/parse.rs lost 3 assertions in the iteration that turned AC-2 green".to_owned()],
                files: ["tests/parse.rs", ".ci/run"]
                    .map(|path| GuardFile { path: path.to_owned(), sha256: None })
                    .to_vec(),
                diff: None,
                trials: Vec::new(),
            },
            "AC-2 turned green together with a change of its guards.",
        ),
        (
            "escalation",
            Request::Escalation {
                problem: "Three fixes of the leap second test failed in the same way.".to_owned(),
                options: vec!["skip the item".to_owned(), "use the tz database".to_owned()],
            },
            "The same failure was seen three times.",
        ),
        (
            "spend_limit",
            Request::SpendLimit { detail: "The account has reached its monthly spend limit of 200 USD.".to_owned() },
            "The model server refuses further calls.",
        ),
    ] {
        let staged = asked(request, why);
        let mut inbox = Inbox::default();
        insta::assert_snapshot!(format!("inbox_{name}_80x20"), staged.screen(&mut inbox, 80, 20));
        staged.all_sizes(&mut inbox);
    }
}

#[test]
fn looks_wide_and_plain() {
    let mut staged = asked(question(), "The specification is silent on this.");
    answered(&mut staged, DecisionId(1), Answer::Text("Julian".to_owned()));
    ask(&mut staged, permission(), "The command matches a rule that wants a person.");
    let mut inbox = Inbox::default();
    insta::assert_snapshot!("inbox_list_120x36", staged.screen(&mut inbox, 120, 36));
    insta::assert_snapshot!("inbox_list_80x20", staged.screen(&mut inbox, 80, 20));
    staged.theme = Staged::running().ascii().theme;
    insta::assert_snapshot!("inbox_list_ascii", staged.screen(&mut inbox, 80, 20));
    insta::assert_snapshot!("inbox_list_ascii_40x12", staged.screen(&mut inbox, 40, 12));
    insta::assert_snapshot!("inbox_empty_80x20", Staged::running().screen(&mut Inbox::default(), 80, 20));
}

#[test]
fn a_pause_goes_on_only_when_its_check_passes() {
    let mut staged = asked(pause(), "Only a person can log in.");
    let mut inbox = open(&staged);
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('a'))), plain(Answer::Done));
    answered(&mut staged, DecisionId(1), Answer::Done);
    assert!(staged.screen(&mut inbox, 80, 20).contains("verification running"));
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('a'))), None, "it is answered");
    staged.happen(failed_check(DecisionId(1)));
    let cmds = staged.with(|stage| inbox.refresh(stage));
    assert_eq!(cmds, [Cmd::Load(Load::Blob(Digest::of(OUTPUT)))]);
    assert_eq!(staged.with(|stage| inbox.refresh(stage)), [], "it is asked for once");
    give(&staged, &mut inbox, OUTPUT);
    let screen = staged.screen(&mut inbox, 80, 24);
    assert!(screen.contains("d1: not yet: exit 1") && screen.contains("status 503"), "{screen}");
    assert!(!screen.contains('\u{1b}') && !screen.contains('\u{7}'));
    insta::assert_snapshot!("inbox_pause_failed_80x24", screen);
    // Said again, and this time it holds.
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('a'))), plain(Answer::Done));
    answered(&mut staged, DecisionId(1), Answer::Done);
    staged.screen(&mut inbox, 80, 20);
    let passed = failed_check(DecisionId(1)).check.map(|check| ProbeResult { end: ProbeEnd::Exited(0), ..check });
    staged.happen(DecisionSettled { id: DecisionId(1), closed: true, check: passed, detail: "exit 0".to_owned() });
    let screen = staged.screen(&mut inbox, 80, 20);
    assert!(screen.contains("d1 pause: done, resumed") && screen.contains("verified: exit 0"), "{screen}");
}

#[test]
fn the_output_of_a_real_check_is_shown() {
    let sample = crate::console::sample::Sample::demo();
    let failed = sample.events.iter().find_map(|stamped| match &stamped.event {
        Event::Iteration(IterationEvent::ProbeFinished(probe)) if !probe.result.end.passed() => {
            Some(probe.result.clone())
        }
        _ => None,
    });
    let check = failed.unwrap();
    let bytes = sample.blobs.get(&check.output).unwrap();
    let last = String::from_utf8_lossy(&bytes).lines().last().unwrap().trim().to_owned();
    let mut staged = asked(pause(), "why");
    answered(&mut staged, DecisionId(1), Answer::Done);
    let mut inbox = open(&staged);
    staged.happen(DecisionSettled { id: DecisionId(1), closed: false, check: Some(check), detail: String::new() });
    assert!(staged.screen(&mut inbox, 200, 60).contains("reading its output"));
    give(&staged, &mut inbox, &bytes);
    let screen = staged.screen(&mut inbox, 200, 60);
    assert!(screen.contains(&last), "{last}\n{screen}");
}

#[test]
fn a_question_is_answered_by_number_or_in_words() {
    let staged = asked(question(), "why");
    let mut inbox = open(&staged);
    assert!(staged.press(&mut inbox, KeyCode::Char('9')).cmds.is_empty());
    assert!(staged.press(&mut inbox, KeyCode::Char('2')).cmds.is_empty(), "it is read once more first");
    insta::assert_snapshot!("inbox_writing_80x20", staged.screen(&mut inbox, 80, 20));
    let response = staged.press(&mut inbox, KeyCode::Enter);
    assert_eq!(order(&response), plain(Answer::Text("proleptic Gregorian, as ISO 8601 says".to_owned())));

    let mut inbox = open(&staged);
    staged.press(&mut inbox, KeyCode::Enter);
    assert!(staged.press(&mut inbox, KeyCode::Enter).cmds.is_empty(), "nothing is no answer");
    staged.type_text(&mut inbox, "a 1");
    inbox.paste("\nb\u{1b}[2J");
    let response = staged.press(&mut inbox, KeyCode::Enter);
    assert_eq!(order(&response), plain(Answer::Text("a 1\nb[2J".to_owned())));

    // What was begun is not lost by stepping back.
    let mut inbox = open(&staged);
    staged.press(&mut inbox, KeyCode::Enter);
    staged.type_text(&mut inbox, "half a th");
    staged.all_sizes(&mut inbox);
    staged.press(&mut inbox, KeyCode::Esc);
    staged.press(&mut inbox, KeyCode::Enter);
    staged.type_text(&mut inbox, "ought");
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Enter)), plain(Answer::Text("half a thought".to_owned())));

    let mut inbox = open(&staged);
    let edit = staged.press(&mut inbox, KeyCode::Char('e'));
    assert!(matches!(edit.cmds.as_slice(), [Cmd::Edit { purpose: EditPurpose::Answer, .. }]));
    let edited = Loaded::Edited { purpose: EditPurpose::Answer, text: Some("from the editor\n".to_owned()) };
    staged.with(|stage| inbox.take(&edited, stage));
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Enter)), plain(Answer::Text("from the editor".to_owned())));
}

#[test]
fn a_permission_shows_the_whole_command_and_takes_three_answers() {
    let staged = asked(permission(), "why");
    let mut inbox = open(&staged);
    let screen = staged.screen(&mut inbox, 80, 20);
    assert!(screen.contains("--token  ") && screen.contains("rm -rf target/package"), "{screen}");
    assert!(!screen.contains('\u{1b}') && !screen.contains('\u{202e}'));
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('a'))), plain(Answer::Allow));
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('A'))), plain(Answer::AllowAlways));
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('r'))), plain(Answer::Deny));
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Enter)), None, "words are no permission");
    assert!(staged.screen(&mut inbox, 80, 20).contains("is not an answer to a permission"));
}

#[test]
fn a_command_is_read_to_its_end_before_it_is_allowed() {
    let command: String = (1..=40).map(|n| format!("echo {n}\n")).collect();
    let command = format!("{command}rm -rf /");
    let request =
        Request::Permission { tool: "shell".to_owned(), command, directory: "/".to_owned(), rule: "r".to_owned() };
    let staged = asked(request, "why");
    let mut inbox = open(&staged);
    for key in ['a', 'A'] {
        assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char(key))), None);
    }
    assert!(staged.screen(&mut inbox, 80, 20).contains("read to the end first"));
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('r'))), plain(Answer::Deny), "no is always possible");
    staged.press(&mut inbox, KeyCode::End);
    assert!(staged.screen(&mut inbox, 80, 20).contains("rm -rf /"));
    staged.press(&mut inbox, KeyCode::Home);
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('a'))), plain(Answer::Allow));
}

#[test]
fn a_note_goes_with_the_answer() {
    let staged = asked(permission(), "why");
    let mut inbox = open(&staged);
    staged.press(&mut inbox, KeyCode::Char('n'));
    staged.type_text(&mut inbox, "only this once");
    assert!(staged.press(&mut inbox, KeyCode::Enter).cmds.is_empty());
    assert!(staged.screen(&mut inbox, 80, 24).contains("Your note: only this once"));
    let response = staged.press(&mut inbox, KeyCode::Char('r'));
    assert_eq!(order(&response), Some((DecisionId(1), Answer::Deny, Some("only this once".to_owned()), None)));
}

#[test]
fn a_refinement_is_taken_by_change() {
    let (staged, mut inbox) = refining();
    insta::assert_snapshot!("inbox_refinement_80x20", staged.screen(&mut inbox, 80, 20));
    insta::assert_snapshot!("inbox_refinement_120x36", staged.screen(&mut inbox, 120, 36));
    let all = staged.press(&mut inbox, KeyCode::Char('a'));
    let result = Digest::of(AFTER.as_bytes());
    assert_eq!(order(&all), Some((DecisionId(1), Answer::Approve { result }, None, Some(AFTER.to_owned()))));
    // Leave the second of three.
    staged.press(&mut inbox, KeyCode::Down);
    staged.press(&mut inbox, KeyCode::Char(' '));
    let screen = staged.screen(&mut inbox, 80, 20);
    assert!(screen.contains("approve 2 of 3") && screen.contains("[ ] change 2 of 3"), "{screen}");
    let wanted = AFTER.replace("- week dates\n", "");
    let response = staged.press(&mut inbox, KeyCode::Char('a'));
    let result = Digest::of(wanted.as_bytes());
    assert_eq!(order(&response), Some((DecisionId(1), Answer::Approve { result }, None, Some(wanted))));
    staged.press(&mut inbox, KeyCode::Enter);
    insta::assert_snapshot!("inbox_preview_80x20", staged.screen(&mut inbox, 80, 20));
    staged.press(&mut inbox, KeyCode::Enter);
    staged.all_sizes(&mut inbox);
}

#[test]
fn a_refinement_of_which_nothing_is_taken_is_rejected() {
    let (staged, mut inbox) = refining();
    for _ in 0..3 {
        staged.press(&mut inbox, KeyCode::Char(' '));
        staged.press(&mut inbox, KeyCode::Down);
    }
    assert!(staged.screen(&mut inbox, 80, 20).contains("nothing is taken"));
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('a'))), plain(Answer::Reject));
    let (staged, mut inbox) = refining();
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('r'))), plain(Answer::Reject));
}

#[test]
fn an_edited_refinement_is_what_the_editor_left() {
    let (staged, mut inbox) = refining();
    let edit = staged.press(&mut inbox, KeyCode::Char('e'));
    let wanted = Cmd::Edit { purpose: EditPurpose::Refinement, name: "docs/PRD.md".to_owned(), text: AFTER.to_owned() };
    assert_eq!(edit.cmds, [wanted]);
    let mine = BEFORE.replace("Parse dates.", "Parse and print dates.");
    let edited = Loaded::Edited { purpose: EditPurpose::Refinement, text: Some(mine.clone()) };
    staged.with(|stage| inbox.take(&edited, stage));
    assert!(staged.screen(&mut inbox, 80, 20).contains("edited by you"));
    let response = staged.press(&mut inbox, KeyCode::Char('a'));
    let result = Digest::of(mine.as_bytes());
    assert_eq!(order(&response), Some((DecisionId(1), Answer::Approve { result }, None, Some(mine))));
    // An edit that nobody asked for changes nothing.
    let stray = Loaded::Edited { purpose: EditPurpose::Refinement, text: Some("stray".to_owned()) };
    staged.with(|stage| inbox.take(&stray, stage));
    assert!(!staged.screen(&mut inbox, 80, 20).contains("stray"));
}

#[test]
fn a_proposal_that_is_no_text_can_only_be_rejected() {
    let bytes: &[u8] = b"\xff\xfe";
    let request =
        Request::Refinement { path: "x".to_owned(), before: Digest::of(BEFORE.as_bytes()), after: Digest::of(bytes) };
    let staged = asked(request, "why");
    let mut inbox = open(&staged);
    give(&staged, &mut inbox, BEFORE.as_bytes());
    give(&staged, &mut inbox, bytes);
    assert!(staged.screen(&mut inbox, 80, 20).contains("it is not text"));
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('a'))), None);
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('r'))), plain(Answer::Reject));
}

#[test]
fn a_hard_issue_can_be_revised_but_not_waved_through() {
    let staged = asked(vision(Severity::Hard), "why");
    let mut inbox = open(&staged);
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('a'))), None);
    staged.press(&mut inbox, KeyCode::Enter);
    staged.type_text(&mut inbox, "narrower");
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Enter)), plain(Answer::Revise("narrower".to_owned())));
    let staged = asked(vision(Severity::Soft), "why");
    assert_eq!(order(&staged.press(&mut open(&staged), KeyCode::Char('a'))), plain(Answer::Acknowledge));
}

#[test]
fn the_other_kinds() {
    let tampering = || Request::Tampering {
        iteration: 1,
        findings: vec!["f".to_owned()],
        files: Vec::new(),
        diff: None,
        trials: Vec::new(),
    };
    let staged = asked(tampering(), "why");
    assert_eq!(order(&staged.press(&mut open(&staged), KeyCode::Char('a'))), plain(Answer::Accept));
    assert_eq!(order(&staged.press(&mut open(&staged), KeyCode::Char('r'))), plain(Answer::Reject));
    let staged = asked(Request::SpendLimit { detail: "spent".to_owned() }, "why");
    assert_eq!(order(&staged.press(&mut open(&staged), KeyCode::Char('a'))), plain(Answer::Retry));
    let options = vec!["skip".to_owned()];
    let staged = asked(Request::Escalation { problem: "p".to_owned(), options }, "why");
    let mut inbox = open(&staged);
    staged.press(&mut inbox, KeyCode::Char('1'));
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Enter)), plain(Answer::Text("skip".to_owned())));
}

#[test]
fn ending_the_run_asks_first() {
    let staged = asked(permission(), "why");
    let mut inbox = open(&staged);
    let response = staged.press(&mut inbox, KeyCode::Char('Q'));
    assert!(response.cmds.is_empty());
    let Next::Push(mut confirm) = response.next else { panic!("no question") };
    let response = staged.press(confirm.as_mut(), KeyCode::Char('y'));
    assert_eq!(order(&response), plain(Answer::Quit));
}

#[test]
fn who_may_only_look_answers_nothing() {
    let mut attached = asked(permission(), "why");
    attached.read_only = true;
    let mut earlier = asked(permission(), "why");
    earlier.live = false;
    let mut replay = asked(permission(), "why");
    replay.link = Link::Replay { playing: false, speed: 1, at: 3, of: 9 };
    for (staged, why) in [(attached, "read-only"), (earlier, "an earlier moment"), (replay, "a replay")] {
        let mut inbox = open(&staged);
        let screen = staged.screen(&mut inbox, 80, 20);
        assert!(screen.contains("Cannot be answered here") && screen.contains(why), "{screen}");
        assert!(!screen.contains("allow once"), "{screen}");
        for key in "aArneQ".chars() {
            let response = staged.press(&mut inbox, KeyCode::Char(key));
            assert!(response.cmds.is_empty() && matches!(response.next, Next::Stay), "{key} {why}");
        }
        assert!(matches!(inbox.mode, Mode::Browse));
    }
    let mut staged = asked(question(), "why");
    staged.read_only = true;
    let mut inbox = open(&staged);
    staged.press(&mut inbox, KeyCode::Char('1'));
    assert!(matches!(inbox.mode, Mode::Browse));
}

#[test]
fn a_run_that_stopped_for_an_answer_says_how_to_give_it() {
    let mut staged = asked(permission(), "why");
    staged.run.halt = Staged::ended().run.halt;
    let mut inbox = open(&staged);
    assert!(staged.screen(&mut inbox, 80, 20).contains("`nightloop answer d1`"));
    assert!(staged.press(&mut inbox, KeyCode::Char('a')).cmds.is_empty());
}

#[test]
fn it_opens_on_what_waits_and_goes_on_by_itself() {
    let mut staged = asked(question(), "first");
    answered(&mut staged, DecisionId(1), Answer::Text("Julian".to_owned()));
    ask(&mut staged, permission(), "second");
    let mut inbox = open(&staged);
    assert_eq!(inbox.selected, Some(DecisionId(2)));
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('a'))).unwrap().0, DecisionId(2));
    answered(&mut staged, DecisionId(2), Answer::Allow);
    let screen = staged.screen(&mut inbox, 80, 20);
    assert!(screen.contains("d2 permission: allow by maria@tty1"), "{screen}");
    ask(&mut staged, permission(), "third");
    let screen = staged.screen(&mut inbox, 80, 20);
    assert_eq!(inbox.selected, Some(DecisionId(3)));
    assert!(screen.contains("d2 permission: allow"), "what became of the last one is still there: {screen}");
    // A second press of the same key was meant for the one before.
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('a'))), None);
    assert!(staged.screen(&mut inbox, 80, 20).contains("a different decision: read it first"));
    staged.later_ms = READING_MS;
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('a'))).unwrap().0, DecisionId(3));
}

#[test]
fn what_is_typed_for_one_decision_never_answers_another() {
    let mut staged = asked(question(), "first");
    let mut inbox = open(&staged);
    staged.press(&mut inbox, KeyCode::Enter);
    staged.type_text(&mut inbox, "we take the Jul");
    answered(&mut staged, DecisionId(1), Answer::Text("Julian".to_owned()));
    ask(&mut staged, permission(), "second");
    staged.screen(&mut inbox, 80, 20);
    staged.later_ms = 10_000;
    for c in "ian one, A a".chars() {
        assert!(staged.press(&mut inbox, KeyCode::Char(c)).cmds.is_empty(), "{c}");
    }
    assert!(staged.press(&mut inbox, KeyCode::Enter).cmds.is_empty());
    let screen = staged.screen(&mut inbox, 80, 20);
    assert!(screen.contains("someone else answered while you were writing"), "{screen}");
    staged.press(&mut inbox, KeyCode::Esc);
    staged.screen(&mut inbox, 80, 20);
    assert_eq!(inbox.selected, Some(DecisionId(2)));
    staged.later_ms += READING_MS;
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('a'))).unwrap().0, DecisionId(2));
}

#[test]
fn another_run_is_another_inbox() {
    let mut staged = asked(question(), "first");
    let mut inbox = open(&staged);
    staged.press(&mut inbox, KeyCode::Char('n'));
    staged.type_text(&mut inbox, "a note");
    staged.press(&mut inbox, KeyCode::Enter);
    assert!(staged.screen(&mut inbox, 80, 20).contains("a note"));
    staged.run.started.run = serde_json::from_str("\"01ARZ3NDEKTSV4RRFFQ69G5FAV\"").unwrap();
    assert!(!staged.screen(&mut inbox, 80, 20).contains("a note"));
}

#[test]
fn one_who_reads_an_old_decision_is_not_carried_away() {
    let mut staged = asked(question(), "first");
    answered(&mut staged, DecisionId(1), Answer::Text("Julian".to_owned()));
    let mut inbox = open(&staged);
    ask(&mut staged, permission(), "second");
    staged.screen(&mut inbox, 80, 20);
    assert_eq!(inbox.selected, Some(DecisionId(2)), "it was only waiting for work");
    staged.press(&mut inbox, KeyCode::Right);
    assert_eq!(inbox.selected, Some(DecisionId(1)));
    let screen = staged.screen(&mut inbox, 80, 20);
    assert_eq!(inbox.selected, Some(DecisionId(1)));
    assert!(screen.contains("Answer: text by maria@tty1") && screen.contains("Julian"), "{screen}");
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Enter)), None);
    staged.press(&mut inbox, KeyCode::BackTab);
    assert_eq!(inbox.selected, Some(DecisionId(2)));
}

#[test]
fn a_refused_answer_is_told() {
    let staged = asked(permission(), "why");
    let mut inbox = open(&staged);
    let failed = Loaded::Failed(Safe::line("d1 is already answered"));
    staged.with(|stage| inbox.take(&failed, stage));
    assert!(staged.screen(&mut inbox, 80, 20).contains("d1 is already answered"));
}

#[test]
fn rebound_keys_are_the_keys_of_the_inbox() {
    let mut staged = asked(permission(), "why");
    staged.keymap = crate::console::keymap::Keymap::load("approve: f2\n", "k").unwrap();
    let mut inbox = open(&staged);
    assert!(staged.screen(&mut inbox, 80, 20).contains("f2 allow once"));
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::Char('a'))), None);
    assert_eq!(order(&staged.press(&mut inbox, KeyCode::F(2))), plain(Answer::Allow));
    let closing = staged.with(|stage| inbox.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL), stage));
    assert!(matches!(closing.next, Next::Close));
}

#[test]
fn long_texts_can_be_read_to_the_end() {
    let instructions: String = (1..=60).map(|n| format!("step {n}\n")).collect();
    let request = Request::HumanAction { instructions, verify: None, timeout_seconds: 1 };
    let staged = asked(request, "the last sentence");
    let mut inbox = open(&staged);
    assert!(!staged.screen(&mut inbox, 80, 20).contains("the last sentence"));
    for _ in 0..500 {
        staged.press(&mut inbox, KeyCode::Down);
    }
    assert!(staged.screen(&mut inbox, 80, 20).contains("the last sentence"));
    staged.press(&mut inbox, KeyCode::Up);
    staged.press(&mut inbox, KeyCode::Char('g'));
    assert!(staged.screen(&mut inbox, 80, 20).contains("│ step 1 "));
    staged.press(&mut inbox, KeyCode::Char(' '));
    assert!(!staged.screen(&mut inbox, 80, 20).contains("│ step 1 "));
}
