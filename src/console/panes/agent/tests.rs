//! The agent pane, read as an operator would.

use ratatui::layout::Rect;

use super::*;
use crate::console::prose;
use crate::console::sample::{Sample, scene, screen};
use crate::console::theme::{Glyphs, Theme};
use crate::engine::hub::{LiveKind, LiveText};
use crate::machine::event::{CallEvent, Event, Text};
use crate::machine::fold::{self, Stamped};
use crate::machine::run::RunState;

/// Everything that the feed would tell, with bodies.
fn told(pane: &mut AgentPane, sample: &Sample, count: usize) -> RunState {
    let mut state = crate::playbook::start(&sample.events[0]).unwrap();
    for (index, stamped) in sample.events.iter().take(count).enumerate() {
        if index > 0 {
            fold::apply(&mut state, stamped).unwrap();
        }
        let body = body_of(sample, stamped);
        pane.learn(News::Event { stamped, state: &state, body: body.as_deref() });
    }
    state
}

fn body_of(sample: &Sample, stamped: &Stamped) -> Option<Vec<u8>> {
    match &stamped.event {
        Event::Call(CallEvent::LlmResponded(reply)) => Some(sample.blobs.get(&reply.message).unwrap()),
        Event::Call(CallEvent::ToolFinished(finished)) => match &finished.text {
            Text::Blob(digest) => Some(sample.blobs.get(digest).unwrap()),
            Text::Inline(_) => None,
        },
        _ => None,
    }
}

fn draw(pane: &mut AgentPane, state: &RunState, theme: &Theme, width: u16, height: u16) -> String {
    let scene = scene(state, theme);
    pane.resize(Rect::new(0, 0, width, height));
    pane.refresh(&scene);
    screen(width, height, |frame| pane.view(frame, frame.area(), &scene))
}

fn press(pane: &mut AgentPane, state: &RunState, actions: &[Action]) {
    let theme = Theme::dark();
    for action in actions {
        pane.act(*action, &scene(state, &theme));
    }
}

fn live(turn: u32, kind: LiveKind, text: &str) -> LiveText {
    LiveText { call: "it0.scout".into(), turn, kind, text: text.into() }
}

#[test]
fn it_reads_well() {
    let sample = Sample::demo();
    let mut pane = AgentPane::new();
    let state = told(&mut pane, &sample, 115);
    insta::assert_snapshot!("agent_80x20", draw(&mut pane, &state, &Theme::dark(), 80, 20));
    insta::assert_snapshot!("agent_120x36", draw(&mut pane, &state, &Theme::dark(), 120, 36));
    let ascii = Theme::plain().with_glyphs(Glyphs::ASCII);
    press(&mut pane, &state, &[Action::Up, Action::Up, Action::Up, Action::ToggleFold]);
    insta::assert_snapshot!("agent_ascii", draw(&mut pane, &state, &ascii, 80, 20));
    insta::assert_snapshot!("agent_40x12", draw(&mut pane, &state, &Theme::dark(), 40, 12));
}

#[test]
fn an_unfolded_call_shows_what_it_was_given_and_what_came_out() {
    let sample = Sample::demo();
    let mut pane = AgentPane::new();
    let state = told(&mut pane, &sample, 50);
    draw(&mut pane, &state, &Theme::dark(), 80, 20);
    let folded = draw(&mut pane, &state, &Theme::dark(), 80, 40);
    assert!(!folded.contains("Hello World') | tr"), "{folded}");
    press(&mut pane, &state, &[Action::ToggleAllFolds]);
    insta::assert_snapshot!("agent_unfolded", draw(&mut pane, &state, &Theme::dark(), 80, 40));
}

#[test]
fn live_text_grows_and_is_then_replaced() {
    let sample = Sample::demo();
    let mut pane = AgentPane::new();
    let at = sample.first("llm.responded", 0);
    let state = told(&mut pane, &sample, at - 1);
    for piece in ["I look at", " the script.\nThen", " I plan\u{1b}[2J."] {
        pane.learn(News::Live(&live(0, LiveKind::Text, piece)));
    }
    let shown = draw(&mut pane, &state, &Theme::dark(), 60, 12);
    assert!(shown.contains("I look at the script."), "{shown}");
    assert!(shown.contains("Then I plan"), "{shown}");
    assert!(!shown.contains('\u{1b}'));

    press(&mut pane, &state, &[Action::Up]);
    let mut after = state.clone();
    let stamped = &sample.events[at - 1];
    fold::apply(&mut after, stamped).unwrap();
    let body = br#"{"role":"assistant","content":[{"type":"text","text":"I look at the script.\nThen I plan."}]}"#;
    pane.learn(News::Event { stamped, state: &after, body: Some(body) });
    let shown = draw(&mut pane, &after, &Theme::dark(), 60, 12);
    assert_eq!(shown.matches("I look at the script.").count(), 1, "{shown}");
    assert!(shown.contains("→ I look at the script."), "the reader stays on the line: {shown}");
}

#[test]
fn live_text_that_comes_too_early_or_too_late_is_neither_lost_nor_doubled() {
    let sample = Sample::demo();
    let mut pane = AgentPane::new();
    let at = sample.first("llm.responded", 0);
    let state = told(&mut pane, &sample, at - 1);
    pane.learn(News::Live(&live(0, LiveKind::Text, "of this reply")));
    pane.learn(News::Live(&live(1, LiveKind::Text, "of the next")));
    let stamped = &sample.events[at - 1];
    let mut after = state.clone();
    fold::apply(&mut after, stamped).unwrap();
    let body = br#"{"role":"assistant","content":[{"type":"text","text":"of this reply, whole"}]}"#;
    pane.learn(News::Event { stamped, state: &after, body: Some(body) });
    pane.learn(News::Live(&live(0, LiveKind::Text, ", whole")));
    pane.learn(News::Live(&live(1, LiveKind::Text, " one")));
    let shown = draw(&mut pane, &after, &Theme::dark(), 60, 12);
    assert_eq!(shown.matches("of this reply").count(), 1, "{shown}");
    assert_eq!(shown.matches(", whole").count(), 1, "{shown}");
    assert!(shown.contains("of the next one"), "{shown}");
}

#[test]
fn a_reader_is_not_moved_by_what_comes_in() {
    let sample = Sample::demo();
    let mut pane = AgentPane::new();
    let state = told(&mut pane, &sample, 60);
    draw(&mut pane, &state, &Theme::dark(), 80, 12);
    press(&mut pane, &state, &[Action::PageUp]);
    let before = draw(&mut pane, &state, &Theme::dark(), 80, 12);
    for text in ["more\n", "and more\n", "and more\n"] {
        pane.learn(News::Live(&live(9, LiveKind::Text, text)));
    }
    let after = draw(&mut pane, &state, &Theme::dark(), 80, 12);
    let inside = |screen: &str| screen.lines().skip(1).take(10).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(inside(&before), inside(&after));
    assert!(after.contains("▼ 4 new below"), "{after}");
    press(&mut pane, &state, &[Action::Bottom]);
    let end = draw(&mut pane, &state, &Theme::dark(), 80, 12);
    assert!(end.contains("following") && end.contains("and more") && !end.contains("new below"), "{end}");
}

#[test]
fn searching_goes_around_and_unfolds() {
    let sample = Sample::demo();
    let mut pane = AgentPane::new();
    let state = told(&mut pane, &sample, 115);
    let theme = Theme::dark();
    draw(&mut pane, &state, &theme, 80, 20);
    pane.search("expect() {", &scene(&state, &theme));
    let shown = draw(&mut pane, &state, &theme, 80, 20);
    let count = pane.transcript.matches.len();
    assert!(count >= 2, "{shown}");
    assert!(shown.contains("expect() {"), "{shown}");
    assert!(shown.contains(&format!("/{count}")), "{shown}");
    let first = pane.cursor_row();
    for _ in 0..count {
        press(&mut pane, &state, &[Action::NextMatch]);
    }
    assert_eq!(pane.cursor_row(), first);
    pane.search("", &scene(&state, &theme));
    assert!(!draw(&mut pane, &state, &theme, 80, 20).contains("/2"));
}

#[test]
fn iterations_and_roles_are_found() {
    let sample = Sample::demo();
    let mut pane = AgentPane::new();
    let state = told(&mut pane, &sample, sample.events.len());
    let theme = Theme::dark();
    draw(&mut pane, &state, &theme, 80, 20);
    press(&mut pane, &state, &[Action::Top, Action::NextIteration, Action::NextIteration]);
    let shown = draw(&mut pane, &state, &theme, 80, 20);
    assert!(shown.lines().nth(1).unwrap().contains("iteration 1, scout"), "{shown}");
    press(&mut pane, &state, &[Action::PreviousIteration]);
    let shown = draw(&mut pane, &state, &theme, 80, 20);
    assert!(shown.lines().nth(1).unwrap().contains("iteration 0, scout"), "{shown}");
    press(&mut pane, &state, &[Action::NextRole, Action::NextRole]);
    let shown = draw(&mut pane, &state, &theme, 80, 20);
    assert!(shown.contains("solver only") && !shown.contains(", scout "), "{shown}");
}

#[test]
fn an_earlier_moment_shows_only_what_had_happened() {
    let sample = Sample::demo();
    let mut pane = AgentPane::new();
    let state = told(&mut pane, &sample, sample.events.len());
    let theme = Theme::dark();
    draw(&mut pane, &state, &theme, 80, 20);
    // After a tool was announced and before it ended.
    let at = sample.first("tool.intended", 40);
    let then = sample.after(at);
    let mut scene = scene(&then, &theme);
    scene.live = false;
    pane.refresh(&scene);
    let shown = screen(80, 20, |frame| pane.view(frame, frame.area(), &scene));
    assert!(shown.contains("earlier moment"), "{shown}");
    let last = shown.lines().rev().find(|line| line.contains("write_file")).unwrap();
    assert!(last.contains("running"), "{shown}");
    assert!(!shown.contains("iteration 1"), "{shown}");
    scene.live = true;
    pane.refresh(&scene);
    let shown = screen(80, 20, |frame| pane.view(frame, frame.area(), &scene));
    assert!(shown.contains("EXIT_CONVERGED"), "{shown}");
}

#[test]
fn copying_takes_the_item_under_the_cursor() {
    let sample = Sample::demo();
    let mut pane = AgentPane::new();
    let state = told(&mut pane, &sample, sample.first("tool.finished", 44));
    let theme = Theme::dark();
    draw(&mut pane, &state, &theme, 80, 20);
    let cmds = pane.act(Action::Copy, &scene(&state, &theme));
    let [Cmd::Copy { text, .. }] = cmds.as_slice() else { panic!("{cmds:?}") };
    assert!(text.starts_with("bash sh checks/run.sh lowercase"), "{text}");
    assert!(text.contains("lowercase passes"), "{text}");
}

/// A run that says a great deal.
fn filled(keep: Keep, items: usize, lines: usize) -> (AgentPane, RunState) {
    let sample = Sample::demo();
    let mut pane = AgentPane::with(keep);
    let state = told(&mut pane, &sample, sample.first("llm.requested", 0));
    let template = sample.events[sample.first("llm.responded", 0) - 1].clone();
    let text: String = (0..lines).map(|line| format!("line {line} of what is said\\n")).collect();
    let body = format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}"#);
    for _ in 0..items {
        pane.learn(News::Event { stamped: &template, state: &state, body: Some(body.as_bytes()) });
    }
    (pane, state)
}

#[test]
fn a_frame_of_a_hundred_thousand_lines_touches_what_is_shown() {
    let (mut pane, state) = filled(Keep::default(), 1_000, 100);
    let area = Rect::new(0, 0, 80, 20);
    pane.resize(area);
    assert!(pane.transcript.total_rows() >= 100_000);
    let theme = Theme::dark();
    prose::work::take();
    for action in [Action::Bottom, Action::PageUp, Action::Top, Action::PageDown, Action::NextIteration, Action::Up] {
        pane.act(action, &scene(&state, &theme));
        screen(80, 20, |frame| pane.view(frame, frame.area(), &scene(&state, &theme)));
        let touched = prose::work::take();
        assert!((1..=40).contains(&touched), "{action:?} touched {touched} lines for a page of 18");
    }
    // One more piece of live text lays out what is new, whatever stands before it.
    for _ in 0..1_000 {
        pane.learn(News::Live(&live(5, LiveKind::Text, "word word word\n")));
        let touched = prose::work::take();
        assert!((1..=4).contains(&touched), "one line more touched {touched}");
    }
    let live_item = pane.transcript.item(pane.transcript.place_at(pane.last_row()).unwrap().item).unwrap();
    assert_eq!(live_item.body.len(), 1_001);
    // The first layout at another width looks at every line once.
    pane.resize(Rect::new(0, 0, 60, 20));
    let touched = prose::work::take();
    assert!((100_000..110_000).contains(&touched), "{touched}");
    pane.resize(Rect::new(0, 0, 60, 20));
    assert_eq!(prose::work::take(), 0);
}

#[test]
fn what_is_kept_is_bounded_and_says_so() {
    let keep = Keep { lines: 1_000, bytes: 1 << 20 };
    let (mut pane, state) = filled(keep, 100, 50);
    let shown = draw(&mut pane, &state, &Theme::dark(), 80, 20);
    assert!(pane.transcript.total_rows() <= 1_000);
    let all = pane.transcript.dropped_lines() + pane.transcript.total_rows();
    assert!((5_000..5_010).contains(&all), "{all}");
    assert!(shown.contains("older lines are not kept here; `nightloop replay"), "{shown}");
    let keep = Keep { lines: 1_000_000, bytes: 50_000 };
    let (pane, _) = filled(keep, 100, 50);
    assert!(pane.transcript.dropped_lines() > 3_000);
}

#[test]
fn any_size_is_survived() {
    let sample = Sample::demo();
    let mut pane = AgentPane::new();
    let state = told(&mut pane, &sample, 115);
    pane.act(Action::ToggleAllFolds, &scene(&state, &Theme::dark()));
    pane.search("the", &scene(&state, &Theme::dark()));
    for width in [1u16, 2, 3, 4, 5, 7, 11, 20, 40, 79, 80, 133, 300] {
        for height in [1u16, 2, 3, 4, 6, 12, 33, 120] {
            draw(&mut pane, &state, &Theme::dark(), width, height);
            press(&mut pane, &state, &[Action::Up, Action::PageDown, Action::Top, Action::NextMatch]);
        }
    }
}

/// A reply and a tool call of our own making.
fn hostile_turn(pane: &mut AgentPane, state: &RunState, sample: &Sample, text: &str, code: i32, lines: usize) {
    let reply = sample.events[sample.first("llm.responded", 0) - 1].clone();
    let message = serde_json::json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": format!("First I weigh it.\n{text}")},
        {"type": "redacted_thinking", "data": "xx"},
        {"type": "text", "text": text},
        {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": text, "n": 3}},
    ]});
    pane.learn(News::Event { stamped: &reply, state, body: Some(message.to_string().as_bytes()) });
    let seq = reply.seq + 1;
    let intended = crate::machine::event::ToolIntended {
        call: "it0.scout".into(),
        id: "t1".into(),
        name: "bash".into(),
        input: crate::model::digest::Digest::of(b"x"),
        summary: text.into(),
        effect: "effect".into(),
        rule: "allow default".into(),
    };
    pane.learn(News::Event { stamped: &Stamped { seq, event: intended.into(), ..reply.clone() }, state, body: None });
    let finished = crate::machine::event::ToolFinished {
        call: "it0.scout".into(),
        id: "t1".into(),
        outcome: crate::machine::event::ToolOutcomeKind::Done,
        is_error: code != 0,
        exit_code: Some(code),
        millis: 83_000,
        text: Text::Blob(crate::model::digest::Digest::of(b"y")),
        output: None,
        output_bytes: 12,
    };
    let output = format!("{text}\n").repeat(lines);
    let stamped = Stamped { seq: seq + 1, event: finished.into(), ..reply };
    pane.learn(News::Event { stamped: &stamped, state, body: Some(output.as_bytes()) });
}

#[test]
fn thinking_is_labelled_and_a_failing_call_is_marked_and_folded() {
    let sample = Sample::demo();
    let mut pane = AgentPane::new();
    let state = told(&mut pane, &sample, sample.first("llm.requested", 0));
    hostile_turn(&mut pane, &state, &sample, "cargo test --all", 101, 30);
    insta::assert_snapshot!("agent_failing", draw(&mut pane, &state, &Theme::dark(), 80, 14));
}

#[test]
fn hostile_text_stays_text() {
    let sample = Sample::demo();
    let mut pane = AgentPane::new();
    let state = told(&mut pane, &sample, sample.first("llm.requested", 0));
    let text = "a\u{1b}]52;c;aGk=\u{7}b\u{9b}2J\u{202e}c\r\u{8}d\u{0}\u{2028}e";
    hostile_turn(&mut pane, &state, &sample, text, 0, 3);
    pane.learn(News::Live(&live(3, LiveKind::ToolInput, text)));
    press(&mut pane, &state, &[Action::ToggleAllFolds]);
    let shown = draw(&mut pane, &state, &Theme::dark(), 80, 60);
    let bad = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{2028}".contains(c);
    assert!(!shown.contains(bad), "{shown:?}");
    let copied = pane.act(Action::Copy, &scene(&state, &Theme::dark()));
    let [Cmd::Copy { text, .. }] = copied.as_slice() else { panic!("{copied:?}") };
    assert!(!text.contains(bad), "{text:?}");
}

/// A turn of an agent program, as it told it; the last words come again with the reply.
#[test]
fn a_programs_own_account_reads_like_any_transcript() {
    use crate::machine::event::{AgentActed, AgentCalled};
    use crate::model::act::{Act, PlanStep};
    let sample = Sample::demo();
    let mut pane = AgentPane::new();
    let at = sample.first("llm.responded", 0) - 1;
    let state = told(&mut pane, &sample, at);
    let reply = sample.events[at].clone();
    let text = |text: &str| text.to_owned();
    let steps = vec![PlanStep { text: text("read the script"), status: text("completed") }];
    let acts = vec![
        Act::Thought { text: text("Where is the bug?") },
        Act::Planned { steps },
        Act::Called { id: text("t1"), tool: text("Bash\u{1b}[2J"), input: text("sh checks/all.sh") },
        Act::Returned { id: text("t1"), is_error: true, text: text("2 of 4 fail") },
        Act::Changed { path: text("slug.sh"), diff: text("-old\n+new") },
        Act::Said { text: text("The script lowers the case now.") },
    ];
    let acted = AgentActed { call: text("it0.scout"), turn: 0, acts };
    let stamped = Stamped { event: acted.into(), ..reply.clone() };
    pane.learn(News::Event { stamped: &stamped, state: &state, body: None });
    let called = AgentCalled {
        call: text("it0.scout"),
        turn: 0,
        id: text("m1"),
        name: text("report_scout"),
        input: crate::model::digest::Digest::of(b"{}"),
        is_error: false,
        text: Text::Inline(text("Report accepted.")),
    };
    let stamped = Stamped { seq: reply.seq + 1, event: called.into(), ..reply.clone() };
    pane.learn(News::Event { stamped: &stamped, state: &state, body: None });
    let body = br#"{"role":"assistant","content":[{"type":"text","text":"The script lowers the case now."}]}"#;
    let stamped = Stamped { seq: reply.seq + 2, ..reply };
    pane.learn(News::Event { stamped: &stamped, state: &state, body: Some(body) });
    let shown = draw(&mut pane, &state, &Theme::dark(), 80, 24);
    assert_eq!(shown.matches("The script lowers").count(), 1, "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    insta::assert_snapshot!("agent_program", shown);
}

#[test]
fn calls_of_one_role_are_told_apart_by_what_they_are_for() {
    use crate::model::purpose::Purpose;
    use crate::playbook::value::testing::{Sim, started};
    let mut pane = AgentPane::new();
    let calls = [
        (Sim::preparing(), Purpose::VisionForces, None),
        (Sim::working(), Purpose::Execute, Some("T1")),
        (Sim::working(), Purpose::Execute, Some("T2")),
    ];
    for (sim, purpose, subject) in &calls {
        let event = started(&sim.run, *purpose, *subject).into();
        let stamped = Stamped { seq: 1, ts: "2026-01-01T00:00:00Z".into(), mono_ms: 1, boot: "b".into(), event };
        pane.learn(News::Event { stamped: &stamped, state: &sim.run, body: None });
    }
    let text = draw(&mut pane, &calls[0].0.run, &Theme::plain(), 80, 20);
    for heading in ["preparing, reasoner: forces of the vision", "iteration 0, builder: execute T1", "execute T2"] {
        assert!(text.contains(heading), "{heading} is missing:\n{text}");
    }
}
