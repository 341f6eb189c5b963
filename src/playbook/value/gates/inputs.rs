//! Inputs: the vision and the PRD can be read, and the repository is fit for the work.

use crate::machine::event::GitOperation;
use crate::machine::run::RunState;
use crate::machine::todo::{Effect, Todo};
use crate::playbook::value::event::Document;
use crate::playbook::value::state::OpenStep;

use super::{Move, fail, need, pass};

/// Less than this is hardly a vision; it only warns.
const HARDLY_ANYTHING: u64 = 100;

pub(super) fn script(run: &RunState, step: &OpenStep) -> Move {
    let Some(documents) = run.value().documents.as_ref().filter(|_| step.documents_read) else {
        return need(Todo::Effect(Effect::ReadDocuments));
    };
    let both = [&documents.vision, &documents.prd];
    let problems: Vec<String> = both.into_iter().filter_map(unusable).collect();
    if !problems.is_empty() {
        return fail(&problems);
    }
    let Some(git) = step.git.last() else {
        return need(Todo::Effect(Effect::Git(GitOperation::Prepare)));
    };
    if let Some(problem) = &git.problem {
        return fail(std::slice::from_ref(problem));
    }
    let mut detail: Vec<String> = both.into_iter().map(|one| format!("{}: {} bytes", one.path, one.bytes)).collect();
    for one in both.into_iter().filter(|one| one.bytes < HARDLY_ANYTHING) {
        detail.push(format!("warning: {} is very short", one.path));
    }
    detail.push(match &git.facts.branch {
        Some(branch) => format!("works on branch {branch}"),
        None => "works without a repository".to_owned(),
    });
    pass(step, detail.join("; "))
}

/// Why a document cannot be worked from.
pub(super) fn unusable(document: &Document) -> Option<String> {
    match (&document.problem, &document.text) {
        (Some(problem), _) => Some(problem.clone()),
        (None, None) => Some(format!("{} cannot be read", document.path)),
        (None, Some(_)) => None,
    }
}
