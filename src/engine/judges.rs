//! The trees whose judges count, and what each path is to the checks.
//!
//! The base is the tree of the start, or the latest one whose changed judges a person accepted; what an earlier run left
//! changed is in it as that run found it (`unaccepted`). Beside it stands the tree of the last item that passed: what
//! items bring judges the next ones, too, but never replaces what was there. Not here: what is done with them (`guards`).
//! Invariant: from recorded facts and kept copies alone, so that a resumed run sees the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::evidence::ours;
use crate::journal::Blobs;
use crate::machine::event::ArtifactsCollected;
use crate::machine::run::RunState;
use crate::model::criterion::Proof;
use crate::model::decision::{Answer, Request};
use crate::model::digest::Digest;
use crate::model::guard::{self, GuardSet};
use crate::playbook::passes;
use crate::workspace::tree::{self, FileState, Ignored, TreeSnapshot};

use super::error::EngineError;
use super::start_files;

/// A text that is searched for what it names.
const MAX_TEXT: usize = 1 << 20;

/// A tree that the journal names.
pub(super) fn load(blobs: &Blobs, digest: &Digest) -> Result<TreeSnapshot, EngineError> {
    let bytes = blobs.get(digest)?;
    serde_json::from_slice(&bytes).map_err(|e| EngineError::Internal(format!("tree {}: {e}", digest.short())))
}

/// A run and where its copies are.
#[derive(Clone, Copy)]
pub(super) struct Judges<'a> {
    pub state: &'a RunState,
    pub run_dir: &'a Path,
    pub blobs: &'a Blobs,
}

impl<'a> Judges<'a> {
    fn artifacts(&self, number: u32) -> Option<&'a ArtifactsCollected> {
        self.state.iterations().find(|iteration| iteration.number() == number)?.artifacts.as_ref()
    }

    /// The latest iteration before this one whose changed judges a person accepted.
    fn accepted(&self) -> Option<u32> {
        let current = self.state.current.as_ref().map(|iteration| iteration.number());
        let decisions = self.state.operator.decisions.iter().rev();
        let mut accepted = decisions.filter(|decision| decision.closed_with() == Some(&Answer::Accept));
        accepted.find_map(|decision| match &decision.request {
            Request::Tampering { iteration, .. } if Some(*iteration) != current => Some(*iteration),
            _ => None,
        })
    }

    /// The tree whose judges count.
    pub fn base(&self) -> Digest {
        if let Some(compared) = self.state.current.as_ref().and_then(|iteration| iteration.guards.as_ref()) {
            return compared.trusted;
        }
        let accepted = self.accepted().and_then(|number| self.artifacts(number)).map(|artifacts| artifacts.tree);
        accepted.or(self.state.baseline.tree).unwrap_or_else(|| Digest::of(b""))
    }

    /// The tree of the last item that passed, if that was after the base.
    pub fn since(&self) -> Option<Digest> {
        if let Some(compared) = self.state.current.as_ref().and_then(|iteration| iteration.guards.as_ref()) {
            return compared.since;
        }
        let number = self.state.playbook().trusted_iteration(self.state)?;
        self.artifacts(number).filter(|_| Some(number) > self.accepted()).map(|artifacts| artifacts.tree)
    }

    /// A tree as it counts.
    pub fn tree(&self, digest: &Digest) -> Result<TreeSnapshot, EngineError> {
        let mut tree = load(self.blobs, digest)?;
        if Some(*digest) == self.state.baseline.tree {
            self.as_found(&mut tree.files);
        }
        Ok(tree)
    }

    /// What an earlier run changed and nobody accepted is as that run found it; what a person changed since is theirs.
    pub fn as_found(&self, files: &mut BTreeMap<String, FileState>) {
        for file in &self.state.started.unaccepted {
            let left_so = files.get(&file.path).map(|state| state.sha256) == file.left;
            match start_files::found_earlier(self.run_dir, file).filter(|_| left_so) {
                Some(state) => drop(files.insert(file.path.clone(), state)),
                None if left_so && file.found.is_none() => drop(files.remove(&file.path)),
                // No copy of it is left.
                None => {}
            }
        }
    }

    /// What git ignores and a check may read all the same.
    pub fn look_at_ignored(&self, workspace: &Path, tree: &TreeSnapshot) -> std::io::Result<Ignored> {
        let own = ours::excluded(self.state);
        let enter = |path: &Path| {
            let is_own = own.iter().any(|prefix| path.starts_with(prefix.trim_end_matches('/')));
            !is_own && path.to_str().is_none_or(guard::may_decide_unseen)
        };
        tree::ignored(workspace, tree, &enter, &guard::is_named_guard)
    }

    /// The checks as people declared them.
    pub fn declared(&self) -> Vec<Vec<String>> {
        let checks = self.state.criteria.iter().filter_map(|criterion| match &criterion.proof {
            Proof::Check { argv, .. } => Some(argv.clone()),
            Proof::Judged | Proof::ExitGate | Proof::Items | Proof::Verified => None,
        });
        checks.chain(passes::measure::own_checks(self.state)).collect()
    }

    /// What the commands of the run depend on, in a tree.
    pub fn set(&self, tree: &TreeSnapshot) -> GuardSet {
        let declared = self.state.loop_file();
        let criteria = &self.state.criteria;
        let mut commands = self.declared();
        commands.extend(declared.security.iter().map(|security| security.command.clone()));
        let mut measures: Vec<Vec<String>> = declared.residual.iter().filter_map(|one| one.command.clone()).collect();
        measures.extend(declared.northstar.iter().flat_map(|northstar| northstar.measure.values().cloned()));
        measures.extend(declared.api_surface.iter().map(|surface| surface.command.clone()));
        let protects: Vec<String> = criteria.iter().flat_map(|criterion| criterion.protects.clone()).collect();
        let names: BTreeSet<String> = tree.files.keys().cloned().collect();
        let read = |path: &str| start_files::text(self.run_dir, tree, path).filter(|text| text.len() <= MAX_TEXT);
        GuardSet::of(&commands, &measures, &protects, &names, &read)
    }
}
