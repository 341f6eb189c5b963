//! When two actions may not share a key.
//!
//! Role: the rule and its listed exceptions. Not its role: which of two wins; that is the order of scopes.

use super::super::action::{Action, Scope};

/// Where a nearer action takes a key on purpose: it does there what the other one would mean.
const ON_PURPOSE: &[(Action, Action)] = &[
    (Action::Scrub, Action::Select),
    (Action::AttachRun, Action::Select),
    (Action::Start, Action::Select),
    (Action::PlayPause, Action::PageDown),
    (Action::WriteAnswer, Action::Select),
    (Action::ToggleHunk, Action::PageDown),
    (Action::AddNote, Action::NextMatch),
    // The inbox has all keys while it is open, and these are the words people look for there.
    (Action::Always, Action::StopAfterIteration),
    (Action::Reject, Action::RetryNow),
    (Action::EditAnswer, Action::OpenEditor),
];

/// Would one key for both leave an operator in doubt?
pub(super) fn clashes(a: Action, b: Action) -> bool {
    a != b && overlap(a.scope(), b.scope()) && !ON_PURPOSE.contains(&(a, b)) && !ON_PURPOSE.contains(&(b, a))
}

/// Can both scopes be in force, or in mind, at one time?
fn overlap(a: Scope, b: Scope) -> bool {
    let everywhere = |scope| matches!(scope, Scope::Global | Scope::Move);
    // A replay is shown through the panes; the ready screen and the inbox are no panes of it.
    let replayed = |a, b| a == Scope::Replay && !matches!(b, Scope::Ready | Scope::Inbox);
    a == b || everywhere(a) || everywhere(b) || replayed(a, b) || replayed(b, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_that_meet_clash_and_others_do_not() {
        assert!(clashes(Action::Pause, Action::ToggleFold), "global and a pane");
        assert!(clashes(Action::Up, Action::ToggleFold), "moving and a pane");
        assert!(clashes(Action::Up, Action::Pause), "moving and global");
        assert!(clashes(Action::StepBack, Action::FilterEvents), "a replay and a pane");
        assert!(clashes(Action::Approve, Action::Stop), "the inbox and global");
        assert!(!clashes(Action::Follow, Action::FilterLane), "two panes");
        assert!(!clashes(Action::Start, Action::AttachRun), "the ready screen and a pane");
        assert!(!clashes(Action::Scrub, Action::Select) && !clashes(Action::Select, Action::Scrub), "on purpose");
        assert!(!clashes(Action::Up, Action::Up));
    }
}
