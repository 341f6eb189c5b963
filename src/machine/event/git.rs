//! Events of the repository that a run works in: what was done to it, and what came of it.

use serde::{Deserialize, Serialize};

use crate::machine::words::{Place, Told, Topic::Run};

use super::family::family;

family! {
    /// What happened to the repository.
    GitEvent {
        GitIntended = "git.intended", Fact;
        GitFinished = "git.finished", Fact;
        IterationUndone = "iteration.undone", Fact;
    }
}

impl GitEvent {
    pub fn told(&self, _at: &Place) -> Told {
        let bad = |text: String| Told::judged(Run, false, text);
        match self {
            Self::GitIntended(_) => Told::quiet(Run, "git.intended"),
            Self::GitFinished(done) => match (&done.problem, &done.operation) {
                (Some(problem), _) => bad(format!("git: {problem}")),
                (None, GitOperation::Prepare) => match &done.facts.branch {
                    Some(branch) => {
                        let notes: String = done.facts.notes.iter().map(|note| format!("; {note}")).collect();
                        Told::new(Run, format!("works on branch {branch}{notes}"))
                    }
                    None => Told::new(Run, "works without a repository"),
                },
                (None, GitOperation::Commit { what } | GitOperation::CommitItem { message: what }) => {
                    Told::new(Run, format!("committed: {what}"))
                }
                (None, GitOperation::Checkpoint { label }) => Told::judged(Run, true, format!("checkpoint {label}")),
                (None, GitOperation::Restore { why, .. }) => Told::new(Run, format!("files put back: {why}")),
            },
            Self::IterationUndone(undone) => match &undone.problem {
                Some(problem) => bad(format!("iteration {} is not undone: {problem}", undone.iteration)),
                None => {
                    let files = undone.files.len();
                    Told::new(Run, format!("iteration {} is undone, {files} file(s)", undone.iteration))
                }
            },
        }
    }
}

/// What is done to the repository. Announced before, recorded after: a rollback that was interrupted is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "operation")]
pub enum GitOperation {
    /// Look at the repository, go to the branch that the work belongs on, or to one of the run's own.
    Prepare,
    /// Commit what the run changed.
    Commit { what: String },
    /// Commit what the run changed, in exactly these words.
    CommitItem { message: String },
    /// Commit, and remember the place with what passed there.
    Checkpoint { label: String },
    /// Put the files of the run back as they were at a commit.
    Restore { commit: String, why: String },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GitIntended {
    #[serde(flatten)]
    pub operation: GitOperation,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GitFacts {
    /// `None`: there is no repository, or it is not to be used.
    pub branch: Option<String>,
    pub original: Option<String>,
    /// The commit the run's branch is at.
    pub head: Option<String>,
    /// Paths that were changed or untracked before the run; they are never touched.
    pub foreign: Vec<String>,
    /// Files that were committed or put back.
    pub files: Vec<String>,
    /// Files that were left out because of their names.
    pub sensitive: Vec<String>,
    /// How commits of this repository speak of an item, with `{id}` and `{title}`; found when it is first looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
    /// What else was left out, or is worth knowing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GitFinished {
    #[serde(flatten)]
    pub operation: GitOperation,
    pub facts: GitFacts,
    /// Why it was not done; the run goes on without it, or stops where that is not safe.
    pub problem: Option<String>,
}

/// Its changes are taken back; its evidence no longer stands for the workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationUndone {
    pub iteration: u32,
    pub files: Vec<String>,
    /// The commit the run's branch is at now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    pub problem: Option<String>,
}
