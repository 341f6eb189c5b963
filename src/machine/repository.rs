//! The repository that a run works in, as folded from events: a sibling of the playbook's own part.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{GitFacts, GitFinished, GitOperation, IterationUndone};

/// An iteration that a person took back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    pub by: String,
    pub files: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct GitState {
    /// `None`: not looked at yet.
    pub facts: Option<GitFacts>,
    /// Announced and not finished.
    pub open: Option<GitOperation>,
    /// Why the repository cannot be used.
    pub problem: Option<String>,
    /// Did the latest operation succeed? Then everything of the run was committed there.
    pub committed: bool,
    /// Where each iteration began on the branch, with everything before it committed.
    pub starts: BTreeMap<u32, String>,
    /// The iteration that a person wants taken back, and who that is.
    pub undo: Option<u32>,
    pub undo_by: Option<String>,
    pub undone: BTreeSet<u32>,
    /// The iterations in `undone`, with what was taken back.
    pub taken_back: BTreeMap<u32, Undone>,
}

impl GitState {
    /// The branch of the run's own.
    pub fn branch(&self) -> Option<&str> {
        self.facts.as_ref()?.branch.as_deref()
    }

    /// The commit that the run's own branch is at.
    pub fn commit(&self) -> Option<&str> {
        self.facts.as_ref().filter(|facts| facts.branch.is_some())?.head.as_deref()
    }

    /// An iteration begins: it can be taken back only if all before it is committed.
    pub(super) fn begin_iteration(&mut self, iteration: u32) {
        let head = self.commit().filter(|_| self.committed && self.open.is_none()).map(str::to_owned);
        if let Some(head) = head {
            self.starts.insert(iteration, head);
        }
    }

    pub(super) fn finish(&mut self, finished: &GitFinished) {
        self.open = None;
        self.committed = finished.problem.is_none();
        let prepared = finished.operation == GitOperation::Prepare;
        if finished.problem.is_none() {
            if prepared {
                self.facts = Some(finished.facts.clone());
            }
            if let Some(facts) = &mut self.facts {
                facts.head.clone_from(&finished.facts.head);
            }
        } else if prepared {
            // Looked at, and not to be used; the playbook decides whether the run may go on so.
            self.facts = Some(GitFacts { branch: None, ..finished.facts.clone() });
            self.problem.clone_from(&finished.problem);
        }
    }

    pub(super) fn take_back(&mut self, undone: &IterationUndone) {
        self.undo = None;
        let by = self.undo_by.take().unwrap_or_default();
        if undone.problem.is_some() {
            return;
        }
        self.undone.insert(undone.iteration);
        self.taken_back.insert(undone.iteration, Undone { by, files: undone.files.clone() });
        if let (Some(facts), Some(head)) = (&mut self.facts, &undone.head) {
            facts.head = Some(head.clone());
        }
    }
}
