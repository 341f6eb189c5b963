//! Which key does what. Derived from the registry of actions; a file of the operator may change it.
//!
//! Role: looking keys up and showing them. Not its role: performing actions, reading the file system.
//! Invariants: a key means one action in any place. Where places lie over each other the nearer one wins:
//! overlay, then pane, then replay, then moving, then global; and such a win is only allowed where
//! `clash` lists it, so that no key silently changes its meaning.

mod clash;
mod file;
mod key;

use crossterm::event::{KeyEvent, KeyEventKind};

use super::action::{Action, Scope, Weight};
use crate::model::diagnose::Diagnostic;

pub use file::title as scope_title;
pub use key::Key;

/// Most useful first: what a footer shows of the actions that work everywhere.
const FOOTER: &[Action] = &[
    Action::GoLive,
    Action::OpenInbox,
    // Whoever knows nothing else must see how to learn more and how to leave.
    Action::Help,
    Action::Quit,
    Action::Pause,
    Action::Stop,
    Action::Why,
    Action::Steer,
    Action::Palette,
    Action::RetryNow,
    Action::RaiseBudget,
    Action::Search,
    Action::Select,
    Action::NextPane,
    Action::Copy,
    Action::OpenEditor,
    Action::StopAfterIteration,
    Action::Detach,
    Action::Freeze,
    Action::GoLive,
];

/// The keys of every action.
#[derive(Debug, Clone)]
pub struct Keymap {
    /// In the order of the registry.
    bindings: Vec<(Action, Vec<Key>)>,
    warnings: Vec<Diagnostic>,
}

impl PartialEq for Keymap {
    fn eq(&self, other: &Self) -> bool {
        self.bindings == other.bindings
    }
}

impl Default for Keymap {
    fn default() -> Self {
        let bindings = Action::ALL.iter().map(|action| (*action, default_keys(*action))).collect();
        Self { bindings, warnings: Vec::new() }
    }
}

impl Keymap {
    /// The default map with what the operator's file changes.
    pub fn load(text: &str, file: &str) -> Result<Self, Diagnostic> {
        file::load(text, file)
    }

    /// The default map as a commented file.
    pub fn document() -> String {
        file::document()
    }

    /// Keys that work, but perhaps not as hoped.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// What a key does where these scopes are in force. Their order does not matter.
    pub fn action(&self, scopes: &[Scope], event: KeyEvent) -> Option<Action> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        self.of_key(scopes, Key::from(event))
    }

    fn of_key(&self, scopes: &[Scope], key: Key) -> Option<Action> {
        self.bindings
            .iter()
            .filter(|(action, keys)| scopes.contains(&action.scope()) && keys.contains(&key))
            .map(|(action, _)| *action)
            .min_by_key(|action| rank(action.scope()))
    }

    /// The keys of an action as shown to people; empty when it has none.
    pub fn keys(&self, action: Action) -> Vec<String> {
        self.bound(action).iter().map(Key::to_string).collect()
    }

    /// The first key of an action, or a blank.
    pub fn first_key(&self, action: Action) -> String {
        self.bound(action).first().map(Key::to_string).unwrap_or_default()
    }

    fn bound(&self, action: Action) -> &[Key] {
        self.bindings.iter().find(|(bound, _)| *bound == action).map_or(&[], |(_, keys)| keys)
    }

    /// Keys with a word each, most useful first. A key that means something nearer is not shown twice.
    pub fn hints(&self, scopes: &[Scope], read_only: bool) -> Vec<(String, &'static str)> {
        self.hints_for(scopes, |action| !(read_only && action.weight() == Weight::Act))
    }

    /// The same for the actions that `may` be done.
    pub fn hints_for(&self, scopes: &[Scope], may: impl Fn(Action) -> bool) -> Vec<(String, &'static str)> {
        let near = Action::ALL.iter().filter(|action| !matches!(action.scope(), Scope::Move | Scope::Global));
        near.chain(FOOTER)
            .filter(|action| scopes.contains(&action.scope()))
            .filter(|action| may(**action))
            .filter_map(|action| {
                let key = self.bound(*action).iter().find(|key| self.of_key(scopes, **key) == Some(*action))?;
                Some((key.to_string(), action.hint()))
            })
            .collect()
    }
}

/// Nearest first.
const fn rank(scope: Scope) -> u8 {
    match scope {
        Scope::Inbox => 0,
        Scope::Overview
        | Scope::Agent
        | Scope::Learnings
        | Scope::Plan
        | Scope::Evidence
        | Scope::Timeline
        | Scope::Changes
        | Scope::Runs
        | Scope::Ready => 1,
        Scope::Replay => 2,
        Scope::Move => 3,
        Scope::Global => 4,
    }
}

fn default_keys(action: Action) -> Vec<Key> {
    action.default_keys().split_whitespace().filter_map(Key::parse).collect()
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};

    use super::*;

    fn press(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn every_default_key_can_be_read() {
        for action in Action::ALL {
            assert_eq!(default_keys(*action).len(), action.default_keys().split_whitespace().count(), "{action:?}");
        }
    }

    #[test]
    fn the_nearer_scope_wins_whatever_the_order() {
        let keymap = Keymap::default();
        let enter = press(KeyCode::Enter);
        assert_eq!(keymap.action(&[Scope::Move, Scope::Global], enter), Some(Action::Select));
        assert_eq!(keymap.action(&[Scope::Global, Scope::Move, Scope::Timeline], enter), Some(Action::Scrub));
        assert_eq!(keymap.action(&[Scope::Timeline, Scope::Move], enter), Some(Action::Scrub));
        let space = press(KeyCode::Char(' '));
        assert_eq!(keymap.action(&[Scope::Agent, Scope::Move, Scope::Replay], space), Some(Action::PlayPause));
        assert_eq!(keymap.action(&[Scope::Agent, Scope::Move], space), Some(Action::PageDown));
        assert_eq!(keymap.action(&[Scope::Move], press(KeyCode::Char('p'))), None);
        let mut released = press(KeyCode::Char('p'));
        released.kind = KeyEventKind::Release;
        assert_eq!(keymap.action(&[Scope::Global], released), None);
    }

    #[test]
    fn keys_are_shown_as_people_write_them() {
        let keymap = Keymap::default();
        assert_eq!(keymap.keys(Action::Palette), [":", "ctrl-p"]);
        assert_eq!(keymap.keys(Action::PageDown), ["pagedown", "ctrl-d", "space"]);
        assert_eq!(keymap.first_key(Action::Bottom), "end");
        let unbound = Keymap::load("freeze: null\n", "keymap.yaml").unwrap();
        assert_eq!(unbound.keys(Action::Freeze), Vec::<String>::new());
        assert_eq!(unbound.action(&[Scope::Global], press(KeyCode::Char('z'))), None);
    }

    #[test]
    fn hints_name_the_pane_first_and_no_danger_when_only_looking() {
        let keymap = Keymap::default();
        let scopes = [Scope::Timeline, Scope::Move, Scope::Global];
        let hints = keymap.hints(&scopes, false);
        assert_eq!(hints[0], ("f".to_owned(), "filter"));
        assert_eq!(hints[1], ("enter".to_owned(), "go to moment"));
        assert_eq!(hints[2], ("L".to_owned(), "live"));
        assert_eq!(hints[3], ("i".to_owned(), "inbox"));
        assert!(!hints.iter().any(|(key, does)| key == "enter" && *does == "open"), "{hints:?}");
        assert!(hints.iter().any(|(_, does)| *does == "STOP"));
        let looking = keymap.hints(&scopes, true);
        assert!(!looking.iter().any(|(_, does)| ["STOP", "pause", "steer", "budget"].contains(does)), "{looking:?}");
    }
}
