//! The operator's keymap file: `action: key`, `action: [key, key]` or `action: null`, one action per line.
//!
//! Role: reading it with places for every complaint, and writing the default one out. Not its role: finding
//! the file. Invariant: a map that was loaded has no clash; what the file does not name stays as it was.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::super::action::{Action, Scope, Weight};
use super::clash::clashes;
use super::key::{ALLOWED, Key};
use super::{Diagnostic, Keymap};
use crate::model::diagnose::{from_yaml, nearest};
use crate::model::safe::Safe;

/// The entries in the order they are written, doubles included.
struct Entries(Vec<(String, serde_yaml::Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("lines of `action: key`")
            }

            fn visit_unit<E>(self) -> Result<Entries, E> {
                Ok(Entries(Vec::new()))
            }

            fn visit_none<E>(self) -> Result<Entries, E> {
                Ok(Entries(Vec::new()))
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Entries, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

/// A binding with the line it was written in; `None`: it is a default.
struct Bound {
    action: Action,
    key: Key,
    line: Option<usize>,
}

pub(super) fn load(text: &str, file: &str) -> Result<Keymap, Diagnostic> {
    let entries: Entries = serde_yaml::from_str(text).map_err(|error| from_yaml(file, &error))?;
    let mut keymap = Keymap::default();
    let mut written: Vec<(Action, Option<usize>)> = Vec::new();
    for (name, value) in &entries.0 {
        let nth = entries.0.iter().take_while(|(_, other)| !std::ptr::eq(other, value)).filter(|(n, _)| n == name);
        let line = line_of(text, name, nth.count());
        let action = known(name).map_err(|d| place(d, file, line))?;
        if written.iter().any(|(other, _)| *other == action) {
            return Err(place(Diagnostic::new(file, format!("`{name}` appears twice")), file, line));
        }
        let keys = keys(name, value).map_err(|d| place(d, file, line))?;
        for key in &keys {
            if let Some(caution) = key.caution() {
                keymap.warnings.push(place(Diagnostic::new(file, format!("`{name}`: {caution}")), file, line));
            }
        }
        written.push((action, line));
        if let Some(binding) = keymap.bindings.iter_mut().find(|(bound, _)| *bound == action) {
            binding.1 = keys;
        }
    }
    refuse_clashes(&keymap, &written, file)?;
    Ok(keymap)
}

fn place(diagnostic: Diagnostic, file: &str, line: Option<usize>) -> Diagnostic {
    Diagnostic { file: file.to_owned(), line, ..diagnostic }
}

fn known(name: &str) -> Result<Action, Diagnostic> {
    if let Some(action) = Action::ALL.iter().find(|action| action.name() == name) {
        return Ok(*action);
    }
    let hint = match nearest(name, Action::ALL.iter().map(|action| action.name())) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "the palette and assets/keymap.yaml list all actions".to_owned(),
    };
    Err(Diagnostic::new("", format!("there is no action `{}`", Safe::line(name))).with_hint(hint))
}

fn keys(name: &str, value: &serde_yaml::Value) -> Result<Vec<Key>, Diagnostic> {
    let one = |value: &serde_yaml::Value| {
        let text = match value {
            serde_yaml::Value::String(text) => text.clone(),
            // A digit is a key, too.
            serde_yaml::Value::Number(number) => number.to_string(),
            _ => return Err(Diagnostic::new("", format!("`{name}` needs a key, a list of keys, or null"))),
        };
        Key::parse(&text).ok_or_else(|| {
            Diagnostic::new("", format!("`{}` is not a valid key (for `{name}`)", Safe::line(&text)))
                .with_hint(format!("allowed: {ALLOWED}"))
        })
    };
    match value {
        serde_yaml::Value::Null => Ok(Vec::new()),
        serde_yaml::Value::Sequence(several) => several.iter().map(one).collect(),
        single => one(single).map(|key| vec![key]),
    }
}

/// The line of the `nth` entry with this name. The file is one flat mapping, so the name starts its line;
/// in other notations the place stays unknown rather than wrong.
fn line_of(text: &str, name: &str, nth: usize) -> Option<usize> {
    let starts = |line: &str| {
        let line = line.trim_start().trim_start_matches(['"', '\'']);
        let rest = line.strip_prefix(name).map(|rest| rest.trim_start_matches(['"', '\'']).trim_start());
        rest.is_some_and(|rest| rest.starts_with(':'))
    };
    text.lines().enumerate().filter(|(_, line)| starts(line)).nth(nth).map(|(index, _)| index + 1)
}

fn refuse_clashes(keymap: &Keymap, written: &[(Action, Option<usize>)], file: &str) -> Result<(), Diagnostic> {
    let mut seen: Vec<Bound> = Vec::new();
    for (action, keys) in &keymap.bindings {
        let ours = written.iter().find(|(bound, _)| bound == action);
        for key in keys {
            let bound = Bound { action: *action, key: *key, line: ours.and_then(|(_, line)| *line) };
            if let Some(other) = seen.iter().find(|other| other.key == *key && clashes(other.action, *action)) {
                return Err(clash(other, &bound, written, file));
            }
            seen.push(bound);
        }
    }
    Ok(())
}

fn clash(a: &Bound, b: &Bound, written: &[(Action, Option<usize>)], file: &str) -> Diagnostic {
    // The complaint stands where the operator wrote something; the later line is the likelier mistake.
    let is_written = |bound: &Bound| written.iter().any(|(action, _)| *action == bound.action);
    let (first, second) = match (is_written(a), is_written(b)) {
        (true, false) => (b, a),
        (true, true) if a.line > b.line => (b, a),
        _ => (a, b),
    };
    let origin = match first.line {
        Some(line) => format!("{file}:{line}"),
        None if is_written(first) => file.to_owned(),
        None => "default".to_owned(),
    };
    let (key, name, other) = (second.key, second.action.name(), first.action.name());
    let message = format!("`{key}` is bound to `{name}`, but also to `{other}` ({origin})");
    let hint = format!("give one of them another key, or none: `{other}: null`");
    place(Diagnostic::new(file, message).with_hint(hint), file, second.line)
}

/// The default map, written out.
pub(super) fn document() -> String {
    let mut out = String::from(
        "# The keys of nightloop, as they are without this file. Copy what you want to change to keymap.yaml.\n\
         #\n\
         #   action: key            one key\n\
         #   action: [key, key]     several\n\
         #   action: null           none\n\
         #\n",
    );
    for line in wrapped(&format!("A key is {ALLOWED}.")) {
        out.push_str(&format!("# {line}\n"));
    }
    out.push_str(
        "# Where scopes overlap, the nearest one wins: inbox, pane, replay, moving, everywhere. Two actions that are\n\
         # available at the same time cannot share a key. (acts) marks what read-only mode leaves out.\n",
    );
    let mut scope = None;
    for action in Action::ALL {
        if scope != Some(action.scope()) {
            scope = Some(action.scope());
            out.push_str(&format!("\n# {}\n", title(action.scope())));
        }
        let keys: Vec<String> = action.default_keys().split_whitespace().map(|key| format!("\"{key}\"")).collect();
        let value = match keys.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let acts = if action.weight() == Weight::Act { " (acts)" } else { "" };
        out.push_str(&format!("{:<44} # {}{acts}\n", format!("{}: {value}", action.name()), action.help()));
    }
    out
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < 108 => {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A scope as a heading.
pub const fn title(scope: Scope) -> &'static str {
    match scope {
        Scope::Global => "Everywhere",
        Scope::Move => "Moving",
        Scope::Overview => "Overview",
        Scope::Agent => "Agent",
        Scope::Learnings => "Learnings",
        Scope::Plan => "Plan",
        Scope::Evidence => "Evidence",
        Scope::Timeline => "Timeline",
        Scope::Changes => "Changes",
        Scope::Runs => "Runs",
        Scope::Ready => "Before the start",
        Scope::Replay => "Replay",
        Scope::Inbox => "Inbox",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn complaint(text: &str) -> String {
        Keymap::load(text, "keymap.yaml").unwrap_err().to_string()
    }

    #[test]
    fn the_shipped_file_is_the_registry_written_out() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/keymap.yaml");
        if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
            std::fs::write(&path, document()).unwrap();
        }
        let shipped = std::fs::read_to_string(&path).unwrap();
        assert_eq!(shipped, document(), "write it anew with INSTA_UPDATE=always");
        let loaded = Keymap::load(&shipped, "assets/keymap.yaml").unwrap();
        assert_eq!(loaded, Keymap::default());
        assert_eq!(loaded.warnings(), []);
        let named = serde_yaml::from_str::<Entries>(&shipped).unwrap().0.len();
        assert_eq!(named, Action::ALL.len());
    }

    #[test]
    fn keys_can_be_moved_added_and_taken_away() {
        let map = Keymap::load("# mine\npause: f5\nquit: [x, ctrl-q]\nnext-role: null\nshow-runs: 9\n", "k").unwrap();
        assert_eq!(map.keys(Action::Pause), ["f5"]);
        assert_eq!(map.keys(Action::Quit), ["x", "ctrl-q"]);
        assert_eq!(map.keys(Action::NextRole), Vec::<String>::new());
        assert_eq!(map.keys(Action::ShowRuns), ["9"]);
        assert_eq!(map.keys(Action::Help), ["?", "f1"]);
        assert_eq!(Keymap::load("", "k").unwrap(), Keymap::default());
        assert_eq!(Keymap::load("# nothing\n", "k").unwrap(), Keymap::default());
    }

    #[test]
    fn complaints_say_where_and_what_to_do() {
        assert_eq!(
            complaint("pause: p\npaus: x\n"),
            "keymap.yaml:2: there is no action `paus`\n  hint: did you mean `pause`?"
        );
        let bad = complaint("\n\npause: entr\n");
        assert!(
            bad.starts_with("keymap.yaml:3: `entr` is not a valid key (for `pause`)\n  hint: allowed: one character"),
            "{bad}"
        );
        assert_eq!(complaint("pause: {a: b}\n"), "keymap.yaml:1: `pause` needs a key, a list of keys, or null");
        assert_eq!(complaint("pause: x\nhelp: h\npause: y\n"), "keymap.yaml:3: `pause` appears twice");
        assert!(complaint("- pause\n").contains("lines of `action: key`"));
        assert!(complaint("pause: [x\n").starts_with("keymap.yaml:"));
    }

    #[test]
    fn a_clash_names_both_actions_and_their_lines() {
        assert_eq!(
            complaint("pause: s\n"),
            "keymap.yaml:1: `s` is bound to `pause`, but also to `steer` (default)\n  \
             hint: give one of them another key, or none: `steer: null`"
        );
        assert_eq!(
            complaint("toggle-fold: u\nfreeze: u\n"),
            "keymap.yaml:2: `u` is bound to `freeze`, but also to `toggle-fold` (keymap.yaml:1)\n  \
             hint: give one of them another key, or none: `toggle-fold: null`"
        );
        assert!(complaint("scrub: j\n").contains("`down`"));
        assert!(complaint("approve: S\n").contains("`stop`"), "no answer lies on the key that stops a run");
        assert!(Keymap::load("pause: s\nsteer: P\n", "k").is_ok());
        assert!(Keymap::load("follow: v\n", "k").is_ok(), "panes do not clash with each other");
    }

    #[test]
    fn the_prefix_of_tmux_is_worth_a_word() {
        let map = Keymap::load("\nfreeze: ctrl-b\n", "keymap.yaml").unwrap();
        assert_eq!(
            map.warnings()[0].to_string(),
            "keymap.yaml:2: `freeze`: ctrl-b is the prefix of tmux: inside tmux it has to be pressed twice"
        );
    }

    proptest! {
        #[test]
        fn no_file_panics(text in "([a-z-]{1,12}: ?(\\[?[a-z\"'?-]{0,8}\\]?|null|[0-9])\n){0,6}|\\PC{0,60}") {
            if let Err(complaint) = Keymap::load(&text, "k") {
                prop_assert!(!complaint.to_string().chars().any(|c| c.is_control() && c != '\n'));
            }
        }
    }
}
