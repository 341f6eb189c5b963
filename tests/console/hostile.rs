//! Texts that try to act on a terminal, from everywhere they can come from, through everything that shows them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::case::{Case, call, sh, write};
use crate::corpus::hostile;
use crate::screen::{PANES, Screen};
use crate::sequences::spoken;
use crate::stage::{Stage, WIDE, scouted};

/// The fixture as text. What is no UTF-8 comes as bytes, by a file and by a command's output.
fn texts() -> Vec<String> {
    hostile().iter().map(|bytes| String::from_utf8_lossy(bytes).replace('\0', "")).collect()
}

/// All of it, in pieces that fit a limit.
fn pieces(limit: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for text in texts().iter().filter(|text| text.len() < limit) {
        if pieces.last().is_some_and(|piece| piece.len() + text.len() + 1 > limit) {
            pieces.push(String::new());
        }
        let piece = pieces.last_mut().unwrap();
        piece.push_str(text);
        piece.push('\n');
    }
    pieces
}

/// A script that creates files whose names are as hostile as a file system allows.
fn names() -> String {
    let mut script = String::new();
    for (number, bytes) in hostile().iter().enumerate().filter(|(number, _)| number % 7 == 0) {
        let name: Vec<u8> = bytes.iter().copied().filter(|byte| !matches!(byte, 0 | b'/')).take(120).collect();
        let mut octal = String::new();
        for byte in name {
            let _ = write!(octal, "\\{byte:03o}");
        }
        let _ = writeln!(script, "echo 1 > \"n{number}$(printf '{octal}')\"");
    }
    script
}

fn case() -> Case {
    let all: String = pieces(60_000).concat();
    let question = &pieces(3_000)[0];
    let choices: Vec<String> =
        texts().into_iter().filter(|text| !text.is_empty() && text.len() < 100).take(9).collect();
    let proposal = format!("# PRD\n\n{}", pieces(40_000).concat());
    let ask = |request: Value| json!({"calls": [call("ask_human", request)]});
    let short: Vec<String> = texts().into_iter().filter(|text| (1..60).contains(&text.len())).collect();
    let mut odd_tools: Vec<Value> = short.iter().step_by(40).map(|name| call(name, json!({"path": name}))).collect();
    odd_tools.push(call("bash", json!({"command": format!("echo '{}'", short[0].replace('\'', ""))})));
    let mut last = scouted();
    last["calls"][0]["input"]["plan"] = json!([question, short[1]]);
    let scout = json!([
        {"text": all, "thinking": pieces(20_000)[0], "calls": odd_tools},
        ask(json!({"kind": "question", "text": question, "choices": choices})),
        ask(json!({"kind": "document", "text": question, "path": "PRD.md", "content": proposal})),
        ask(json!({"kind": "escalation", "text": pieces(3_000)[1], "choices": choices})),
        last,
    ]);
    let criterion = json!([
        {"id": "a", "text": format!("a holds {}", short[2]), "check": ["sh", "-c", "cat bytes; test -f a"]},
        {"id": "b", "text": "b holds", "check": ["sh", "-c", "cat bytes >&2; test -f b"]},
    ]);
    let claim = |text: &str| json!({"lane": "C", "text": text});
    let verdict = json!({"failed": short.iter().step_by(30).map(|text| claim(text)).collect::<Vec<_>>()});
    // All of it in one conversation.
    let wide = json!({"context": 100_000_000});
    Case::two_steps()
        .declare("limits", json!({"scout": wide, "solver": wide, "skeptic": wide}))
        .declare("acceptance_criteria", criterion)
        .declare("name", json!(short[3]))
        .declare("goal", json!(format!("Every criterion holds. {}", short[4])))
        .file("PRD.md", "# PRD\n")
        .file("names.sh", &names())
        .solver(0, [sh("cat bytes"), sh("sh names.sh"), write("odd.md", &pieces(30_000)[0])])
        .turns("scout", 0, scout)
        .skeptic(0, verdict.clone())
        .skeptic(1, verdict)
}

/// YAML takes no control characters as they are.
fn escaped(json: &str) -> String {
    let mut out = String::new();
    for c in json.chars() {
        match u32::from(c) {
            code @ 0x7f..=0xffff => write!(out, "\\u{code:04x}").unwrap(),
            code @ 0x1_0000.. => write!(out, "\\U{code:08x}").unwrap(),
            _ => out.push(c),
        }
    }
    out
}

/// Looks at everything that this console can show.
fn look_around(screen: &mut Screen) {
    for (pane, _) in PANES {
        screen.show_pane(pane);
        // Folds, filters, lists and their ends. A key that means nothing here does nothing.
        screen.press("O enter down down space G [ ] g");
        screen.press("esc");
    }
    screen.press("1 w");
    screen.press("esc");
}

/// The screen holds nothing but visible characters.
#[track_caller]
fn is_plain(screen: &Screen) {
    let text = screen.text();
    let odd: Vec<char> = text.chars().filter(|c| c.is_control() && *c != '\n').collect();
    assert!(odd.is_empty(), "{odd:?}\n{text}");
}

/// Everything that was said to the terminal is ours.
#[track_caller]
fn is_ours(screen: &Screen) {
    let said = spoken(&screen.raw());
    assert!(said.foreign.is_empty(), "{:?}", said.foreign);
    assert!(said.controls.is_empty(), "{:?}", said.controls);
    assert!(said.hidden.is_empty(), "{:?}", said.hidden);
    assert_eq!(said.clipboard, 0);
    assert_eq!(said.bells, said.notices, "a bell that is no notice");
    assert!(said.titles.iter().all(|title| title.starts_with("nightloop ")), "{:?}", said.titles);
    let told = screen.told();
    assert!(told.copied.is_empty() && told.asked_to_paste == 0);
    assert!(told.titles.iter().all(|title| !title.starts_with("owned")), "{:?}", told.titles);
}

#[test]
fn nothing_that_is_shown_acts() {
    let stage = Stage::of(case());
    let mut bytes = Vec::new();
    for text in hostile() {
        bytes.extend_from_slice(&text);
        bytes.push(b'\n');
    }
    std::fs::write(stage.path("bytes"), bytes).unwrap();
    for name in ["loop.yaml", "rehearsal.yaml"] {
        stage.write(name, &escaped(&stage.read(name)));
    }

    // What is opened in an editor is the editor's business.
    let mut screen = stage.open(&["run"], WIDE, &[("EDITOR", "true")]);
    screen.sees("Nothing has been spent.");
    screen.press("space space space");
    screen.press("enter");
    for (id, kind, answer) in
        [("d1", "question", "blue"), ("d2", "refinement", "approve"), ("d3", "escalation", "go on")]
    {
        screen.sees("1 waiting");
        look_around(&mut screen);
        screen.press("i");
        screen.sees(&format!("{id} {kind}"));
        screen.press("space down down G enter");
        screen.press("esc esc");
        is_plain(&screen);
        let shown = stage.nightloop(&["inbox"]).expect(0).stdout;
        let odd: Vec<char> = shown.chars().filter(|c| c.is_control() && *c != '\n').collect();
        assert!(odd.is_empty(), "{odd:?}");
        stage.nightloop(&["answer", id, answer]).expect(0);
        screen.wait_for("the decision to be closed", |view| !view.has(&format!("{id} waits")));
    }
    screen.sees_end("CONVERGED");
    look_around(&mut screen);
    // The texts were really there.
    screen.show_pane("2");
    screen.sees("beforeafter");
    screen.show_pane("7");
    screen.press("[");
    screen.sees("n0beforeafter");
    is_plain(&screen);
    assert!(screen.told().titles.iter().any(|title| title.contains("beforeafter")), "{:?}", screen.told().titles);
    screen.press("1 q");
    let end = screen.ends_with(0);
    assert!(end.restored() && screen.has_old_mode(), "{}", end.text);
    is_plain(&screen);
    is_ours(&screen);
    stage.verify(0);
    let run = stage.bench.run_dir();
    let arguments = ["replay", run.to_str().unwrap(), "--speed", "1024"];
    let mut replay = stage.open(&arguments, WIDE, &[("EDITOR", "true")]);
    replay.sees_end("CONVERGED");
    look_around(&mut replay);
    replay.press("q");
    replay.ends_with(0);
    is_ours(&replay);
    for arguments in [&["status"][..], &["runs"], &["verify"], &["inbox", "--all"]] {
        let ended = stage.nightloop(arguments);
        let odd: Vec<char> = ended.stdout.chars().filter(|c| c.is_control() && *c != '\n').collect();
        assert!(odd.is_empty(), "{arguments:?}: {odd:?}");
    }
}
