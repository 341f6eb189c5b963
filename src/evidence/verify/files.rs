//! What a run left behind: is it what the journal renders, and is the workspace still the recorded one?
//!
//! Role: compare evidence, seal, AGENTS.md, prd.json and the tree with the folded run. Everything is read through
//! [`Within`], because a workspace may be hostile.
//! Invariants: a file that differs contradicts; one that is missing, linked or not ours leaves the evidence
//! incomplete; what belongs to the user after the run (the tree, prd.json) is only ever "not proven".

use std::collections::BTreeSet;
use std::path::Path;

use crate::evidence::ours;
use crate::evidence::render;
use crate::evidence::store;
use crate::evidence::within::{Found, Within};
use crate::journal::{COMMIT_SUBJECT, RunDir, SubjectId, TREE_SUBJECT, read_seal};
use crate::machine::document::EVIDENCE_ROOT;
use crate::machine::run::RunState;
use crate::model::digest::Digest;
use crate::model::learnings;
use crate::model::rendered::Rendered;
use crate::workspace::document;
use crate::workspace::tree::{self, ChangeKind, Pace, TreeSnapshot};

use super::{Problem, RenderedPlace, Verification};

/// Names that are listed one by one.
const MAX_NAMED: usize = 10;
/// Files below the evidence of a run that are looked at.
const MAX_LISTED: usize = 20_000;
/// AGENTS.md and prd.json beyond this are not read.
const MAX_FILE: u64 = 64 << 20;

/// Everything that was rendered from the journal, at the place where it should be.
pub(super) fn check(run_dir: &RunDir, state: &RunState, place: &RenderedPlace, found: &mut Verification) {
    let files = match render::everything(state, &run_dir.blobs()) {
        Ok(files) => files,
        Err(error) => return found.contradict("blobs", error.to_string()),
    };
    check_seal(run_dir, state, &files, found);
    let (RenderedPlace::Workspace(root) | RenderedPlace::Packed(root)) = place else {
        found.not_proven.push("the evidence files: they are not available here".to_owned());
        return;
    };
    let within = match Within::open(root) {
        Ok(within) => within,
        Err(error) => return found.miss(&root.display().to_string(), format!("it cannot be opened: {error}")),
    };
    check_evidence(&within, state, &files, found);
    if let RenderedPlace::Workspace(workspace) = place {
        check_learnings(workspace, state, found);
        check_recorded_file(&within, state, found);
        check_tree(run_dir, state, workspace, found);
    }
}

/// The seal vouches for what the journal says, not merely for its head.
fn check_seal(run_dir: &RunDir, state: &RunState, files: &[Rendered], found: &mut Verification) {
    let Ok(Some(seal)) = read_seal(run_dir) else { return };
    for file in files {
        if seal.subject(&file.path) != Some(&SubjectId::Sha256(Digest::of(&file.bytes))) {
            found.contradict("seal.json", format!("it does not vouch for {} as the journal renders it", file.path));
        }
    }
    let tree = state.tree.map(SubjectId::Sha256);
    let commit = state.git.commit().map(|id| SubjectId::GitCommit(id.to_owned()));
    for (name, recorded) in [(TREE_SUBJECT, tree), (COMMIT_SUBJECT, commit)] {
        // Seals of older versions name no commit.
        if seal.subject(name).is_some_and(|sealed| Some(sealed) != recorded.as_ref()) {
            found.contradict("seal.json", format!("its {name} is not the one that the journal records"));
        }
    }
}

fn check_evidence(within: &Within, state: &RunState, files: &[Rendered], found: &mut Verification) {
    let dir = match place_of(within, state, files) {
        Ok(dir) => dir,
        Err((place, what)) => return found.miss(&place, what),
    };
    let mut ours = BTreeSet::new();
    for file in files {
        let below = file.path.strip_prefix(EVIDENCE_ROOT).unwrap_or(&file.path).trim_start_matches('/');
        let name = format!("{dir}/{below}");
        ours.insert(below);
        match within.read(&name, file.bytes.len() as u64) {
            Found::Bytes(bytes) if bytes == file.bytes => found.files_compared += 1,
            Found::Bytes(bytes) => {
                let place = format!("{} (byte {})", file.path, first_difference(&bytes, &file.bytes));
                found.contradict(&place, "differs from what the journal says");
            }
            Found::TooLarge => {
                let place = format!("{} (byte {})", file.path, file.bytes.len());
                found.contradict(&place, "is longer than what the journal says");
            }
            Found::Missing => found.miss(&file.path, "is missing"),
            Found::Linked(part) => found.miss(&file.path, format!("is not read through a link: {part} is one")),
            Found::NotAFile => found.miss(&file.path, "is not a file"),
            Found::Unreadable(why) => found.miss(&file.path, format!("cannot be read: {why}")),
        }
    }
    if found.files_compared == files.len() {
        found.proven.push(format!("evidence: {} files, each equal to what the journal renders", files.len()));
    }
    let Ok(listing) = within.list(&dir, MAX_LISTED) else { return };
    let extra: Vec<&String> = listing.names.iter().filter(|name| !ours.contains(name.as_str())).collect();
    if !extra.is_empty() {
        let count = extra.len();
        let named = named(extra.into_iter().map(String::as_str), count);
        found.miss(&dir, format!("holds files that are not part of this run: {named}"));
    }
    if listing.cut {
        found.miss(&dir, format!("holds more than {MAX_LISTED} files"));
    }
}

/// Where the evidence of the run lies: current, or archived. Else the place that should be it, and what it is.
fn place_of(within: &Within, state: &RunState, files: &[Rendered]) -> Result<String, (String, String)> {
    let limit = files.iter().map(|file| file.bytes.len() as u64).max().unwrap_or(0).max(MAX_FILE);
    let manifest = within.read(&format!("{EVIDENCE_ROOT}/manifest.json"), limit);
    let other = match &manifest {
        Found::Bytes(bytes) => match store::owner_in(bytes) {
            Some(owner) if owner == state.run().as_str() => return Ok(EVIDENCE_ROOT.to_owned()),
            owner => owner,
        },
        _ => None,
    };
    let archived = store::archive_names(state.run().as_str());
    let archived = archived.take_while(|dir| within.list(dir, 1).is_ok()).last();
    match (archived, &manifest) {
        (Some(dir), _) => Ok(dir),
        (None, Found::Linked(part)) => Err((part.clone(), "is a link: nothing is read through it".to_owned())),
        (None, _) if other.is_some() => {
            let owner = other.unwrap_or_default();
            Err((EVIDENCE_ROOT.to_owned(), format!("belongs to run {owner}; the evidence of this run is missing")))
        }
        // Without an owner it may be ours, damaged: then every difference is named.
        (None, _) if within.list(EVIDENCE_ROOT, 1).is_ok() => Ok(EVIDENCE_ROOT.to_owned()),
        (None, _) => Err((EVIDENCE_ROOT.to_owned(), "the evidence of this run is missing".to_owned())),
    }
}

fn first_difference(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()))
}

/// The run's block in AGENTS.md holds every entry, as recorded.
fn check_learnings(workspace: &Path, state: &RunState, found: &mut Verification) {
    if state.entries().is_empty() {
        return;
    }
    // A link to another file of the workspace is the user's own arrangement.
    let bytes = match document::read(workspace, learnings::FILE, learnings::MAX_FILE) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return found.contradict("AGENTS.md", "the generated block of this run is missing"),
        Err(why) => return found.miss("AGENTS.md", why),
    };
    let what = match learnings::extract(&bytes, state.run()) {
        Ok(Some(block)) if block == state.learnings_document().as_bytes() => {
            found.proven.push("AGENTS.md: the block of this run is the recorded one".to_owned());
            return;
        }
        Ok(Some(_)) => "the generated block differs from the journal".to_owned(),
        Ok(None) => "the generated block of this run is missing".to_owned(),
        Err(e) => e.to_string(),
    };
    found.contradict("AGENTS.md", what);
}

/// After the run the file that its verdicts are about belongs to the user again: another one is no contradiction.
fn check_recorded_file(within: &Within, state: &RunState, found: &mut Verification) {
    let Some((file, recorded)) = state.playbook().recorded_file(state) else { return };
    match within.read(file, MAX_FILE) {
        Found::Bytes(bytes) if Digest::of(&bytes) == recorded => {
            found.proven.push(format!("{file}: as recorded"));
        }
        Found::Bytes(_) => found.not_proven.push(format!("{file}: it is no longer the recorded one")),
        Found::Missing => found.not_proven.push(format!("{file}: it is missing")),
        Found::Linked(_) | Found::NotAFile | Found::TooLarge | Found::Unreadable(_) => {
            found.not_proven.push(format!("{file}: it is not a readable file"));
        }
    }
}

/// After the run the workspace belongs to the user again: changes are named and no contradiction.
fn check_tree(run_dir: &RunDir, state: &RunState, workspace: &Path, found: &mut Verification) {
    let Some(digest) = state.tree else { return };
    let recorded = run_dir.blobs().get(&digest).map_err(|e| e.to_string());
    let recorded = recorded.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|e| e.to_string()));
    let recorded: TreeSnapshot = match recorded {
        Ok(recorded) => recorded,
        Err(why) => return found.contradict("blobs", format!("the recorded tree {digest} cannot be read: {why}")),
    };
    let excluded = ours::excluded(state);
    let excluded: Vec<&str> = excluded.iter().map(String::as_str).collect();
    let now = match tree::snapshot(workspace, &excluded, None, &|| Pace::Walk) {
        Ok(Some((now, _))) => now,
        Ok(None) => return,
        Err(error) => return found.not_proven.push(format!("the workspace: it cannot be read: {error}")),
    };
    let changes = tree::diff(&recorded, &now);
    if changes.is_empty() {
        let count = recorded.files.len();
        found.proven.push(format!("the workspace: its {count} files are those recorded at the end"));
        return;
    }
    let words = |kind| match kind {
        ChangeKind::Added => "new: ",
        ChangeKind::Modified => "changed: ",
        ChangeKind::Deleted => "gone: ",
    };
    let count = changes.len();
    let shown: Vec<String> =
        changes.iter().take(MAX_NAMED).map(|change| format!("{}{}", words(change.kind), change.path)).collect();
    let named = named(shown.iter().map(String::as_str), count);
    found.not_proven.push(format!("the workspace: it is no longer the recorded one ({named})"));
}

/// A few names, and how many more there are.
fn named<'a>(names: impl Iterator<Item = &'a str>, count: usize) -> String {
    let mut text = names.take(MAX_NAMED).collect::<Vec<&str>>().join(", ");
    if count > MAX_NAMED {
        text.push_str(&format!(" and {} more", count - MAX_NAMED));
    }
    text
}

impl Verification {
    pub(super) fn contradict(&mut self, place: &str, what: impl Into<String>) {
        self.problems.push(Problem { place: place.to_owned(), what: what.into() });
    }

    pub(super) fn miss(&mut self, place: &str, what: impl Into<String>) {
        self.incomplete.push(format!("{place}: {}", what.into()));
    }
}
