//! Events of the repository: what is announced, what came of it, what was taken back.

use crate::machine::event::GitEvent;
use crate::machine::run::RunState;

/// May this event follow? The error says why not.
pub(in crate::machine) fn legal(state: &RunState, event: &GitEvent) -> Result<(), String> {
    match event {
        GitEvent::GitIntended(_) | GitEvent::GitFinished(_) => state.playbook().legal_git(state),
        GitEvent::IterationUndone(undone) if state.git.undo == Some(undone.iteration) => Ok(()),
        GitEvent::IterationUndone(_) => Err("nobody asked for that".to_owned()),
    }
}

/// Folds an event that was found legal.
pub(in crate::machine) fn apply(state: &mut RunState, event: &GitEvent) -> Result<(), &'static str> {
    match event {
        GitEvent::GitIntended(intended) => state.git.open = Some(intended.operation.clone()),
        GitEvent::GitFinished(finished) => state.git.finish(finished),
        GitEvent::IterationUndone(undone) => state.git.take_back(undone),
    }
    Ok(())
}

/// May a person take this iteration back?
pub(in crate::machine) fn legal_undo(state: &RunState, iteration: u32) -> Result<(), String> {
    let git = &state.git;
    state.playbook().may_undo(state)?;
    if let Some(other) = git.undo {
        return Err(format!("iteration {other} is already being undone"));
    }
    if !state.done.iter().any(|done| done.number() == iteration) {
        return Err(format!("iteration {iteration} is not finished"));
    }
    if git.undone.contains(&iteration) {
        return Err(format!("iteration {iteration} is already undone"));
    }
    if git.branch().is_none() {
        return Err("the run has no branch of its own in a git repository".to_owned());
    }
    if !git.starts.contains_key(&iteration) {
        return Err(format!("where iteration {iteration} began is not on the run's branch"));
    }
    Ok(())
}
