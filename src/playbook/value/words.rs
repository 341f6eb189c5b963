//! The events of this playbook in one line each, for logs and lists. The text of agents in them is not cleaned.

use crate::machine::event::{Event, GitOperation};

/// What happened, and how it went; `None` in the second place: neither well nor badly.
pub fn line(event: &Event) -> Option<(String, Option<bool>)> {
    use crate::model::value::Outcome;
    Some(match event {
        Event::StepBegan(began) => (format!("step {} begins: {} ({})", began.step, began.action, began.why), None),
        Event::StepFinished(finished) => {
            let well = match finished.outcome {
                Outcome::Progress | Outcome::Passed => Some(true),
                Outcome::NoProgress | Outcome::Failed => Some(false),
                Outcome::Neutral => None,
            };
            (format!("step {}: {}, {}", finished.step, finished.outcome.name(), finished.detail), well)
        }
        Event::TaskPut(put) => (format!("task {} is {}: {}", put.task.id, put.task.status.name(), put.why), None),
        Event::DocumentsRead(read) => {
            let problem = read.vision.problem.as_ref().or(read.prd.problem.as_ref());
            match problem {
                Some(problem) => (problem.clone(), Some(false)),
                None => (format!("{} and {} are read", read.vision.path, read.prd.path), None),
            }
        }
        Event::VerificationsFound(found) => {
            (format!("{} verification script(s) found", found.verifications.len()), None)
        }
        Event::VerificationPut(put) => {
            let one = &put.verification;
            (format!("verification {} is {}: {}", one.id, one.status.name(), put.why), None)
        }
        Event::VrcTaken(taken) => {
            let vrc = &taken.vrc;
            let carried = if vrc.carried { ", carried forward" } else { "" };
            (format!("value score {} ({}{carried})", vrc.value_score, vrc.recommendation.name()), None)
        }
        Event::ServicesChecked(checked) => {
            let sick: Vec<_> =
                checked.services.iter().filter(|one| !one.healthy).map(|one| one.name.as_str()).collect();
            if sick.is_empty() {
                (format!("{} service(s) are healthy", checked.services.len()), Some(true))
            } else {
                (format!("not healthy: {}", sick.join(", ")), Some(false))
            }
        }
        Event::PreflightChecked(checked) => {
            let missing =
                [&checked.missing_tools[..], &checked.missing_variables, &checked.placeholder_variables].concat();
            if missing.is_empty() {
                ("tools and variables are there".to_owned(), Some(true))
            } else {
                (format!("missing: {}", missing.join(", ")), Some(false))
            }
        }
        Event::RoundKept(kept) => {
            let what = format!("{} refinement, round {}", kept.target.name(), kept.round);
            match kept.issues.len() {
                0 => (format!("{what} is kept"), None),
                1 => (format!("{what}: 1 issue"), None),
                count => (format!("{what}: {count} issues"), None),
            }
        }
        Event::RoundClosed(closed) => {
            let what = format!("{} refinement, round {}", closed.target.name(), closed.round);
            // No consensus yet is not a failure: another round follows.
            (format!("{what}: {}", closed.how), closed.consensus.then_some(true))
        }
        Event::ResearchKept(kept) => (format!("research: {}", kept.brief.topic), None),
        Event::GitIntended(_) => return None,
        Event::GitFinished(done) => match (&done.problem, &done.operation) {
            (Some(problem), _) => (format!("git: {problem}"), Some(false)),
            (None, GitOperation::Prepare) => match &done.facts.branch {
                Some(branch) => (format!("works on branch {branch}"), None),
                None => ("works without a repository".to_owned(), None),
            },
            (None, GitOperation::Commit { what }) => (format!("committed: {what}"), None),
            (None, GitOperation::Checkpoint { label }) => (format!("checkpoint {label}"), Some(true)),
            (None, GitOperation::Restore { why, .. }) => (format!("files put back: {why}"), None),
        },
        Event::UndoRequested(undo) => (format!("{} takes iteration {} back", undo.by, undo.iteration), None),
        Event::IterationUndone(undone) => match &undone.problem {
            Some(problem) => (format!("iteration {} is not undone: {problem}", undone.iteration), Some(false)),
            None => (format!("iteration {} is undone, {} file(s)", undone.iteration, undone.files.len()), None),
        },
        Event::EpicPut(put) => (format!("epic {}: {}", put.epic + 1, put.title), None),
        _ => return None,
    })
}
