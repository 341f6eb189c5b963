//! Why something cannot be done now, in a few words. Used by the palette and by every box that acts.
//!
//! Not here: whether the run agrees. It may still refuse, with a reason of its own.

use super::super::action::{Action, Scope, Weight};
use super::super::keymap::scope_title;
use super::super::scene::Link;
use super::Stage;

/// What only looks, but has nothing to look at before there is a run.
const NEEDS_RUN: &[Action] = &[
    Action::ShowAgent,
    Action::ShowLearnings,
    Action::ShowPlan,
    Action::ShowEvidence,
    Action::ShowTimeline,
    Action::ShowChanges,
    Action::NextPane,
    Action::PreviousPane,
    Action::OpenInbox,
    Action::Why,
    Action::Copy,
    Action::OpenEditor,
    Action::Freeze,
    Action::GoLive,
    Action::Detach,
    Action::Search,
    Action::NextMatch,
    Action::PreviousMatch,
];

/// Why the run cannot be told anything from here.
pub fn barred(stage: &Stage<'_>) -> Option<&'static str> {
    let Some(scene) = stage.scene else { return Some("there is no run yet") };
    if stage.read_only || scene.read_only {
        return Some("this console is read-only");
    }
    match scene.link {
        Link::Replay { .. } => return Some("a replay accepts no answers or commands"),
        Link::Lost(_) => return Some("the run cannot be reached"),
        Link::InProcess | Link::Attached => {}
    }
    if !scene.live {
        return Some("an earlier moment is shown: go live first");
    }
    scene.run.halt.as_ref().map(|_| "the run has ended")
}

/// Why an action cannot be done now, where these scopes are in force.
pub fn why_not(action: Action, scopes: &[Scope], stage: &Stage<'_>) -> Option<String> {
    let replaying = stage.scene.is_some_and(|scene| matches!(scene.link, Link::Replay { .. }));
    match action {
        Action::Start if stage.scene.is_some() => return Some("the run has already started".to_owned()),
        Action::Start if stage.read_only => return Some("this console is read-only".to_owned()),
        Action::Start => return None,
        _ if action.scope() == Scope::Replay && !replaying => return Some("only while replaying".to_owned()),
        _ if action.scope() != Scope::Global && !scopes.contains(&action.scope()) => {
            return Some(format!("only in: {}", scope_title(action.scope())));
        }
        _ => {}
    }
    if action.weight() == Weight::Act
        && let Some(reason) = barred(stage)
    {
        return Some(reason.to_owned());
    }
    let Some(scene) = stage.scene else {
        return NEEDS_RUN.contains(&action).then(|| "there is no run yet".to_owned());
    };
    let reason = match action {
        Action::RetryNow if scene.run.time.waiting_ms == 0 => "the run is not waiting for a model server",
        Action::UndoIteration if scene.run.git.facts.as_ref().is_none_or(|facts| facts.branch.is_none()) => {
            "the run has no branch of its own in a git repository"
        }
        Action::GoLive if scene.live && !replaying => "this is already live",
        Action::Detach if replaying => "nothing is running here: use quit",
        Action::Detach if scene.run.halt.is_some() && scene.live => "the run has ended: use quit",
        _ => return None,
    };
    Some(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::stages::Staged;
    use super::*;

    #[test]
    fn reasons_are_given_in_the_order_an_operator_can_do_something_about_them() {
        let staged = Staged::running();
        let scopes = [Scope::Agent, Scope::Move, Scope::Global];
        staged.with(|stage| {
            assert_eq!(barred(stage), None);
            assert_eq!(why_not(Action::Pause, &scopes, stage), None);
            assert_eq!(why_not(Action::GoLive, &scopes, stage).as_deref(), Some("this is already live"));
            assert_eq!(why_not(Action::Start, &scopes, stage).as_deref(), Some("the run has already started"));
            assert_eq!(why_not(Action::StepBack, &scopes, stage).as_deref(), Some("only while replaying"));
            assert_eq!(why_not(Action::ToggleScale, &scopes, stage).as_deref(), Some("only in: Overview"));
            assert_eq!(why_not(Action::ToggleFold, &scopes, stage), None);
            assert!(why_not(Action::RetryNow, &scopes, stage).unwrap().contains("not waiting"));
            let looking = Stage { read_only: true, ..*stage };
            assert!(why_not(Action::Stop, &scopes, &looking).unwrap().contains("read-only"));
            assert_eq!(why_not(Action::Help, &scopes, &looking), None);
            let none = Stage { scene: None, ..*stage };
            assert_eq!(barred(&none), Some("there is no run yet"));
            assert_eq!(why_not(Action::Start, &scopes, &none), None);
            assert_eq!(why_not(Action::Why, &scopes, &none).as_deref(), Some("there is no run yet"));
            assert_eq!(why_not(Action::Quit, &scopes, &none), None);
        });
        Staged::ended().with(|stage| assert_eq!(barred(stage), Some("the run has ended")));
    }
}
