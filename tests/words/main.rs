//! Every command is fed names that try to act on a terminal; every byte that comes back is looked at.
//!
//! Role: hold that whatever a command prints is harmless, wherever the words came from: arguments, folders,
//! declarations, state, variables.
//! Not its role: the console's own drawing (`tests/console/hostile.rs`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod stage;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;

use stage::{FORGED, HOSTILE, Stage, harmless, is_utf8};

/// The words of one call; `@` stands for the hostile word.
type Words = &'static [&'static str];

/// What every command is called with. A command that is missing here fails the test.
const CALLS: &[(&str, &[Words])] = &[
    ("demo", &[&["demo", "@"], &["demo", "--speed", "@"], &["demo", "micro", "--into", "@"]]),
    ("init", &[&["init"], &["init", "--from", "@"], &["init", "--agent", "@"], &["init", "--template", "@"]]),
    (
        "run",
        &[
            &["run"],
            &["run", "--file", "@"],
            &["run", "--record", "@"],
            &["run", "--json"],
            &["run", "--item", "@"],
            &["run", "--agent", "@"],
            &["run", "--model", "@"],
            &["run", "--until", "@"],
            &["run", "--@"],
        ],
    ),
    ("resume", &[&["resume"], &["resume", "@"], &["resume", "--json"]]),
    ("stop", &[&["stop"], &["stop", "@"]]),
    ("attach", &[&["attach"], &["attach", "@"]]),
    ("replay", &[&["replay", "@"]]),
    ("themes", &[&["themes"], &["themes", "@"], &["themes", "--names"]]),
    ("pause", &[&["pause"], &["pause", "@"]]),
    ("inbox", &[&["inbox", "--all"], &["inbox", "@"], &["inbox", "--all", "--json"]]),
    ("answer", &[&["answer", "@", "done"], &["answer", "D1", "@"], &["answer", "D1", "approve", "--with", "@"]]),
    ("retry", &[&["retry", "@"], &["retry", "@", "--hint", "@"]]),
    ("skip", &[&["skip", "@"]]),
    ("split", &[&["split", "@"], &["split", "@", "--with", "@"]]),
    ("steer", &[&["steer", "@"]]),
    ("undo", &[&["undo", "@"], &["undo", "0"]]),
    ("status", &[&["status"], &["status", "@"], &["status", "--json"]]),
    (
        "report",
        &[&["report"], &["report", "@"], &["report", "--json"], &["report", "--md", "@"], &["report", "--html", "@"]],
    ),
    ("runs", &[&["runs"], &["runs", "--json"], &["runs", "@"]]),
    ("rules", &[&["rules"], &["rules", "--json"], &["rules", "--forget", "@"]]),
    (
        "verify",
        &[&["verify"], &["verify", "@"], &["verify", "--replay"], &["verify", "--json"], &["verify", "--signer", "@"]],
    ),
    (
        "rehearse",
        &[&["rehearse"], &["rehearse", "--json"], &["rehearse", "--script", "@"], &["rehearse", "--fault", "@"]],
    ),
    ("export", &[&["export", "@", "@"], &["export", "@"]]),
    ("keys", &[&["keys"], &["keys", "export"], &["keys", "@"]]),
    ("doctor", &[&["doctor"]]),
    ("mcp", &[&["mcp"], &["mcp", "@"]]),
    ("completions", &[&["completions", "@"], &["completions", "bash"], &["completions", "zsh"]]),
    ("man", &[&["man"]]),
    ("", &[&[], &["@"], &["--@"], &["-C", "@", "status"], &["-C", "@"], &["--help"], &["--version"]]),
];

fn words(call: Words, hostile: &OsStr) -> Vec<OsString> {
    let put = |word: &&str| match word.split_once('@') {
        Some((before, _)) => {
            let mut whole = OsString::from(before);
            whole.push(hostile);
            whole
        }
        None => OsString::from(*word),
    };
    call.iter().map(put).collect()
}

#[test]
fn no_command_is_forgotten() {
    let help = Stage::new(HOSTILE[0], stage::LOOP).call(&["--help".into()]);
    let help = String::from_utf8(help.stdout).unwrap();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let listed: BTreeSet<&str> =
        listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next()).collect();
    let called: BTreeSet<&str> = CALLS.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
    assert!(listed.len() > 15, "{help}");
    assert_eq!(listed, called, "tests/words calls every command");
}

#[test]
fn no_command_says_a_hostile_word() {
    for hostile in HOSTILE {
        let stage = Stage::new(hostile, stage::LOOP);
        if is_utf8(hostile) {
            let ran = stage.call(&["run".into()]);
            assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
            harmless(&["run".into()], &ran);
        }
        for (_, calls) in CALLS {
            for call in *calls {
                let words = words(call, &stage.name());
                harmless(&words, &stage.call(&words));
            }
        }
    }
}

#[test]
fn no_declaration_reaches_the_terminal() {
    for (number, declaration) in stage::declarations().into_iter().enumerate() {
        let stage = Stage::new(HOSTILE[0], &declaration);
        for call in [&["run"][..], &["rehearse"], &["doctor"], &["run", "--json"]] {
            let words: Vec<OsString> = call.iter().map(OsString::from).collect();
            let ended = stage.call(&words);
            assert_ne!(ended.status.code(), Some(101), "declaration {number}");
            harmless(&words, &ended);
        }
    }
}

#[test]
fn nothing_in_the_state_reaches_the_terminal() {
    let stage = Stage::new(HOSTILE[0], stage::LOOP);
    assert_eq!(stage.call(&["run".into()]).status.code(), Some(0));
    let run = fs::read_dir(stage.state().join("runs")).unwrap().next().unwrap().unwrap().path();
    // A run that somebody else wrote: every text in it is theirs.
    let genesis = fs::read_to_string(run.join("genesis.json")).unwrap();
    let name = String::from_utf8_lossy(HOSTILE[0]).into_owned();
    let forged = serde_json::to_string(&format!("/gone/{name}")).unwrap();
    let (before, after) = genesis.split_once("\"workspace\": \"").unwrap();
    let after = after.split_once("\"\n").or_else(|| after.split_once("\",")).unwrap().1;
    fs::write(run.join("genesis.json"), format!("{before}\"workspace\": {forged},{after}")).unwrap();
    fs::write(run.join("run.lock"), HOSTILE[0]).unwrap();
    for call in [&["status"][..], &["runs"], &["runs", "--json"], &["verify"], &["resume"], &["stop"], &["inbox"]] {
        let words: Vec<OsString> = call.iter().map(OsString::from).collect();
        harmless(&words, &stage.call(&words));
    }
    // Of another kind: what a command cannot read is named, not shown.
    fs::write(run.join("journal/00000001.jsonl"), [HOSTILE[0], b"\n", HOSTILE[2], b"\n"].concat()).unwrap();
    for call in [&["status"][..], &["runs"], &["runs", "--json"], &["verify"], &["resume"]] {
        let words: Vec<OsString> = call.iter().map(OsString::from).collect();
        harmless(&words, &stage.call(&words));
    }
}

#[test]
fn a_terminal_hears_only_colours() {
    let stage = Stage::new(HOSTILE[0], &stage::declarations()[0]);
    let hostile = stage.name();
    for words in
        [vec!["run".into()], vec![hostile.clone()], vec!["status".into(), hostile.clone()], vec!["doctor".into()]]
    {
        let said = stage.on_a_terminal(&words);
        let text = String::from_utf8(said).unwrap().replace("\r\n", "\n");
        let plain = stage::without_colours(&text);
        assert!(!plain.is_empty(), "{words:?}");
        stage::is_harmless(&plain).unwrap_or_else(|what| panic!("{words:?}: {what} in {text:?}"));
        assert!(!plain.contains(FORGED) || plain.lines().all(|line| !line.starts_with(FORGED)), "{plain}");
    }
}
