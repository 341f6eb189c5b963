//! Compares what judges a run with how the run found it, and makes the trees that its checks are tried against.
//!
//! Role: the facts of `guards.compared`, and the files of a trial's layer. Not its role: what follows from them
//! (`machine::guards`), which file judges (`model::guard`), what a check sees besides (`checks`).
//! Invariants: the workspace is only read; the same trees give the same layer, so a trial may be repeated after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::machine;
use crate::machine::event::{CanaryMade, Change, ChangeKind, GuardChange, GuardsCompared, Phase, Probe, ToolsChanged};
use crate::machine::iteration::Iteration;
use crate::model::criterion::Proof;
use crate::model::digest::Digest;
use crate::model::guard::{self, Canary, Class, GuardSet, Readers};
use crate::workspace::layer;
use crate::workspace::plain::{self, Fault, FileKind};
use crate::workspace::tree::{self, TreeSnapshot};

use super::checks;
use super::context::Context;
use super::diff;
use super::error::EngineError;
use super::judges::{Judges, load};
use super::programs_at_start;
use super::start_files::{self, Kept};
use super::trees::{self, Trees};

/// Changed files that are listed in the record.
const MAX_LISTED: usize = 500;
/// Changed programs that are named.
const MAX_TOOLS: usize = 20;
/// Added programs that are taken away for a trial; more of them are an installation, not a trick.
const MAX_ADDED_TOOLS: usize = 5_000;
/// A text that is put back in parts.
const MAX_TEXT: usize = 1 << 20;
/// Files that are shown as just written.
const MAX_FRESH: usize = 5_000;
const MAX_FRESH_BYTES: u64 = 64 << 20;
/// Names at the root that are taken away for an empty workspace.
const MAX_NAMES: usize = 10_000;

/// Two trees and what lies between them.
struct Between {
    set: GuardSet,
    start: TreeSnapshot,
    now: TreeSnapshot,
    changes: Vec<(Change, Class)>,
}

fn judges<'a>(cx: &'a Context<'_>) -> Judges<'a> {
    Judges { state: cx.state(), run_dir: cx.run_dir().path(), blobs: cx.blobs() }
}

/// Records how what judges differs from the tree that is trusted.
pub(super) async fn compare(cx: &mut Context<'_>, trees: &mut Trees) -> Result<(), EngineError> {
    // The stop is recorded next; after a resume it is looked again.
    let Some((now, _)) = trees.snapshot(cx).await? else { return Ok(()) };
    let judges = judges(cx);
    let (trusted, since) = (judges.base(), judges.since());
    let changed_since = match &since {
        Some(since) => between(cx, since, now.clone())?.changes.iter().filter(|(_, class)| class.judges()).count(),
        None => 0,
    };
    let between = between(cx, &trusted, now)?;
    let kept_back = |change: &&(Change, Class)| change.1 != Class::Code;
    let mut listed: Vec<GuardChange> = between.changes.iter().filter(kept_back).map(listed).collect();
    let unlisted = u64::try_from(listed.len().saturating_sub(MAX_LISTED)).unwrap_or(u64::MAX);
    listed.truncate(MAX_LISTED);
    let shown: Vec<Change> = between.changes.iter().filter(kept_back).map(|(change, _)| change.clone()).collect();
    let patch = diff::patch(cx.run_dir().path(), cx.workspace(), &between.start, &shown);
    let diff = cx.blobs().put(cx.secrets().redact_known(&patch).as_bytes())?;
    let code = between.changes.iter().filter(|(_, class)| *class == Class::Code);
    let tests_in_code = code.clone().any(|(change, _)| with_tests_of_start(cx, &between, change).is_some());
    let compared = GuardsCompared {
        iteration: cx.state().iteration_number(),
        trusted,
        since,
        changed_since: u64::try_from(changed_since).unwrap_or(u64::MAX),
        without_replays: cx.sandbox().no_overlay(),
        changed: listed,
        unlisted,
        code_changed: u64::try_from(code.count()).unwrap_or(u64::MAX),
        tests_in_code,
        tools: tools_changed(cx),
        judge_at_start: judge_at_start(&between),
        canaries: canaries(cx, &between).into_iter().map(|(id, canary)| (id, canary.1)).collect(),
        not_kept: not_kept(cx, &between),
        diff,
    };
    cx.record(compared).await
}

/// Keeps a tree as one that later ones are compared with, and what no tree holds.
pub(super) fn keep(cx: &Context<'_>, tree: &TreeSnapshot) {
    let (run_dir, workspace) = (cx.run_dir().path(), cx.workspace());
    start_files::keep(run_dir, workspace, tree);
    if let Ok(ignored) = judges(cx).look_at_ignored(workspace, tree) {
        start_files::keep_ignored(run_dir, workspace, &ignored);
    }
    programs_at_start::keep(run_dir, workspace, judges(cx).set(tree).commands());
}

/// Keeps the tree of this iteration as one that later ones are compared with. Programs, and what git ignores, stay as
/// the run found them, unless a person accepted what became of them.
pub(super) fn trust(cx: &Context<'_>) -> Result<(), EngineError> {
    let Some(iteration) = cx.state().current.as_ref() else { return Ok(()) };
    let Some(tree) = iteration.artifacts.as_ref().map(|artifacts| artifacts.tree) else { return Ok(()) };
    let tree = load(cx.blobs(), &tree)?;
    if machine::guards::accepted(cx.state(), iteration) {
        keep(cx, &tree);
    } else {
        start_files::keep(cx.run_dir().path(), cx.workspace(), &tree);
    }
    Ok(())
}

fn between(cx: &Context<'_>, trusted: &Digest, now: TreeSnapshot) -> Result<Between, EngineError> {
    let judges = judges(cx);
    let (mut start, mut now) = (judges.tree(trusted)?, now);
    let unseen = with_ignored(cx, &mut start, &mut now);
    let set = judges.set(&start);
    let outputs = checks::outputs(cx);
    let named = |change: &tree::Change| !outputs.is_match(&change.path);
    let changes = tree::diff(&start, &now).into_iter().filter(named);
    let names: BTreeSet<String> = start.files.keys().cloned().collect();
    let read = |path: &str| start_files::text(cx.run_dir().path(), &start, path);
    let readers = Readers::of(&set, &names, &read);
    // By its name the work; by who reads it, a judge.
    let is_read_by_judges = |change: &Change| {
        change.kind != ChangeKind::Added && !set.hands_over(&change.path) && readers.judges(&change.path)
    };
    let changes = changes.map(trees::change).map(|change| {
        let class = match class_of(&set, &change, unseen.contains(&change.path)) {
            Class::Code if is_read_by_judges(&change) => Class::Guard,
            class => class,
        };
        (change, class)
    });
    let changes = changes.collect();
    Ok(Between { set, start, now, changes })
}

/// Adds what git ignores to both trees; which paths those are.
fn with_ignored(cx: &Context<'_>, start: &mut TreeSnapshot, now: &mut TreeSnapshot) -> BTreeSet<String> {
    let Some(mut then) = start_files::ignored(cx.run_dir().path()) else { return BTreeSet::new() };
    let Ok(mut found) = judges(cx).look_at_ignored(cx.workspace(), now) else { return BTreeSet::new() };
    judges(cx).as_found(&mut then.files);
    if then.cut || found.cut {
        then.files.retain(|path, _| guard::is_named_guard(path));
        found.files.retain(|path, _| guard::is_named_guard(path));
    }
    let paths = then.files.keys().chain(found.files.keys()).cloned().collect();
    // What the tree holds counts: a file may have come to be ignored, or not to be any more.
    for (ignored, tree) in [(then, start), (found, now)] {
        for (path, state) in ignored.files {
            tree.files.entry(path).or_insert(state);
        }
    }
    paths
}

/// Documents, new data, what lies with the code, and what a check looks at are what the work is about.
fn class_of(set: &GuardSet, change: &Change, is_ignored: bool) -> Class {
    let class = if is_ignored { set.class_of_ignored(&change.path) } else { set.class(&change.path) };
    let path = change.path.as_str();
    // Named by a check that only looks at it, and by nothing that runs: `grep -q dist .gitignore`.
    let is_looked_at = || set.looks_at(path) && !set.found().contains_key(path) && !set.is_declared(path);
    let is_work = match class {
        Class::Unknown => guard::is_work(path, change.kind == ChangeKind::Added) || is_looked_at(),
        Class::Guard | Class::Manifest => is_looked_at() && !set.shadows(path),
        // What only reads the text of tests is not judged by them.
        Class::Test => set.only_lints() && !set.is_declared(path),
        Class::Tool | Class::Cache | Class::Output | Class::Code => false,
    };
    if is_work { Class::Code } else { class }
}

/// Which paths judge, by the tree that counts. What lies there and is in no tree is ignored by git: what was built judges
/// nothing, whoever builds it again.
pub(super) fn judge_names(cx: &Context<'_>) -> Option<impl Fn(&String) -> bool> {
    let judges = judges(cx);
    let set = judges.set(&judges.tree(&judges.base()).ok()?);
    let seen = cx.state().tree.and_then(|tree| load(cx.blobs(), &tree).ok());
    Some(move |path: &String| {
        let is_ignored = seen.as_ref().is_some_and(|tree| !tree.files.contains_key(path));
        let class = if is_ignored { set.class_of_ignored(path) } else { set.class(path) };
        matches!(class, Class::Guard | Class::Test | Class::Manifest)
    })
}

fn listed((change, class): &(Change, Class)) -> GuardChange {
    GuardChange { path: change.path.clone(), class: *class, kind: change.kind, sha256: change.sha256 }
}

/// Was anything there that a check is made of?
fn judge_at_start(between: &Between) -> bool {
    let found = between.set.found().keys().any(|path| between.start.files.contains_key(path));
    let judges = |path: &String| {
        between.set.is_declared(path) || matches!(between.set.class(path), Class::Test | Class::Manifest)
    };
    found || between.start.files.keys().any(judges)
}

fn tools_changed(cx: &Context<'_>) -> ToolsChanged {
    let differs = programs_at_start::differ(cx.run_dir().path(), cx.workspace(), MAX_TOOLS);
    ToolsChanged {
        changed: differs.changed,
        changed_in_all: differs.changed_in_all + differs.removed_in_all,
        added_in_all: differs.added_in_all,
        cut: differs.cut,
    }
}

/// What would have to be put back, and cannot be.
fn not_kept(cx: &Context<'_>, between: &Between) -> Vec<String> {
    let lost = between
        .changes
        .iter()
        .filter(|(change, _)| change.kind != ChangeKind::Added)
        .filter(|(change, _)| start_files::file(cx.run_dir().path(), &between.start, &change.path).is_none());
    lost.map(|(change, _)| change.path.clone()).take(MAX_LISTED).collect()
}

fn text_now(cx: &Context<'_>, path: &str) -> Option<String> {
    let file = plain::read(cx.workspace(), path, MAX_TEXT).ok().flatten()?;
    String::from_utf8(file.bytes).ok()
}

/// A changed file of code with the tests in it as they were; `None`: it holds none, or they are as they were.
fn with_tests_of_start(cx: &Context<'_>, between: &Between, change: &Change) -> Option<String> {
    if change.kind != ChangeKind::Modified || !change.path.ends_with(".rs") {
        return None;
    }
    let start = start_files::text(cx.run_dir().path(), &between.start, &change.path)?;
    let now = text_now(cx, &change.path)?;
    guard::restore_tests(&start, &now).filter(|restored| *restored != now)
}

/// A test that must fail, for each criterion whose check can be given one.
fn canaries(cx: &Context<'_>, between: &Between) -> BTreeMap<String, (Canary, CanaryMade)> {
    let names: BTreeSet<String> = between.now.files.keys().cloned().collect();
    let mut made = BTreeMap::new();
    for criterion in &cx.state().criteria {
        let Proof::Check { argv, .. } = &criterion.proof else { continue };
        let probe = Probe::Criterion(criterion.id.clone());
        let shown = cx.state().baseline.probes.get(&probe);
        let shown = shown.and_then(|result| cx.blobs().get(&result.held_back.unwrap_or(result.output)).ok());
        let shown = shown.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let read = |path: &str| text_now(cx, path);
        if let Some(canary) = guard::canary_for(argv, &between.set, &names, &read, &shown) {
            let note = CanaryMade { path: canary.path.clone(), marker: canary.marker.clone() };
            made.insert(criterion.id.clone(), (canary, note));
        }
    }
    made
}

/// Fills the layer of a trial.
pub(super) fn fill(cx: &Context<'_>, phase: Phase, probe: &Probe, folder: &Path) -> Result<(), EngineError> {
    if phase == Phase::Empty {
        return hide_everything(cx, folder).map_err(unfilled);
    }
    let tree = cx.state().tree.ok_or_else(|| EngineError::Internal("no tree was taken".to_owned()))?;
    let judges = judges(cx);
    let trusted = match phase {
        // Only this item's work is taken back.
        Phase::Reverted | Phase::PristineSince => judges.since().unwrap_or_else(|| judges.base()),
        _ => judges.base(),
    };
    let between = between(cx, &trusted, load(cx.blobs(), &tree)?)?;
    let layer = Layer { cx, between: &between, folder };
    match phase {
        Phase::Pristine => layer.pristine(true),
        Phase::PristineWithTools | Phase::PristineSince => layer.pristine(false),
        Phase::Reverted => layer.put_back(|class| matches!(class, Class::Code | Class::Output)),
        Phase::Canary => layer.canary(probe),
        Phase::CanaryAtStart => layer.put_back(|_| true).and_then(|()| layer.canary_at_start(probe)),
        Phase::AtStart => layer.put_back(|_| true),
        Phase::Replay(_) => layer.fresh(),
        Phase::Baseline | Phase::Scouted | Phase::Iteration | Phase::Gate | Phase::Detour => Ok(()),
        Phase::Step(_) | Phase::StepAgain(..) | Phase::ReplayAgain(..) | Phase::Empty => Ok(()),
    }
    .map_err(unfilled)
}

fn unfilled(fault: Fault) -> EngineError {
    EngineError::Internal(format!("a layer for checks: {fault}"))
}

fn hide_everything(cx: &Context<'_>, folder: &Path) -> Result<(), Fault> {
    for (name, _) in plain::list(cx.workspace(), "", MAX_NAMES)? {
        layer::hide(folder, &name)?;
    }
    Ok(())
}

/// A layer that is being filled.
struct Layer<'a, 'b> {
    cx: &'a Context<'b>,
    between: &'a Between,
    folder: &'a Path,
}

impl Layer<'_, '_> {
    /// The work with the judges of the start. `strictly`: without programs that were added, too.
    fn pristine(&self, strictly: bool) -> Result<(), Fault> {
        // What a check is told to read by name is no judge beside it; a target of make is no file.
        let set = &self.between.set;
        let declared = judges(self.cx).declared();
        let named = |path: &str| declared.iter().flatten().any(|word| word == path) && !set.shadows(path);
        for (change, class) in &self.between.changes {
            match class {
                Class::Code => {
                    if let Some(text) = with_tests_of_start(self.cx, self.between, change) {
                        layer::put(self.folder, &change.path, text.as_bytes(), false)?;
                    }
                }
                Class::Unknown => {}
                Class::Manifest if change.kind == ChangeKind::Modified => self.merge(change)?,
                Class::Tool if change.kind == ChangeKind::Added && !strictly => {}
                Class::Guard | Class::Test if change.kind == ChangeKind::Added && named(&change.path) => {}
                Class::Guard | Class::Test | Class::Manifest | Class::Tool | Class::Cache | Class::Output => {
                    self.revert(change)?;
                }
            }
        }
        if !strictly {
            return Ok(());
        }
        let differs = programs_at_start::differ(self.cx.run_dir().path(), self.cx.workspace(), MAX_ADDED_TOOLS);
        differs.added.iter().try_for_each(|path| layer::hide(self.folder, path))
    }

    /// A manifest says by some keys what a check is, and by others what the work needs.
    fn merge(&self, change: &Change) -> Result<(), Fault> {
        let start = start_files::text(self.cx.run_dir().path(), &self.between.start, &change.path);
        let now = text_now(self.cx, &change.path);
        match start.zip(now).and_then(|(start, now)| guard::merge(&change.path, &start, &now)) {
            Some(merged) => layer::put(self.folder, &change.path, merged.as_bytes(), false),
            None => self.revert(change),
        }
    }

    fn put_back(&self, which: impl Fn(Class) -> bool) -> Result<(), Fault> {
        self.between.changes.iter().filter(|(_, class)| which(*class)).try_for_each(|(change, _)| self.revert(change))
    }

    /// One file as it was. What was not kept is taken away: that turns nothing green that was red.
    fn revert(&self, change: &Change) -> Result<(), Fault> {
        match start_files::file(self.cx.run_dir().path(), &self.between.start, &change.path) {
            Some(Kept::File { bytes, executable }) => layer::put(self.folder, &change.path, &bytes, executable),
            Some(Kept::Link(target)) => layer::put_link(self.folder, &change.path, &target),
            None => layer::hide(self.folder, &change.path),
        }
    }

    fn canary(&self, probe: &Probe) -> Result<(), Fault> {
        let Probe::Criterion(id) = probe else { return Ok(()) };
        match canaries(self.cx, self.between).remove(id) {
            Some((canary, _)) => layer::put(self.folder, &canary.path, canary.text.as_bytes(), false),
            None => Ok(()),
        }
    }

    /// The same test in the file as it was at the start.
    fn canary_at_start(&self, probe: &Probe) -> Result<(), Fault> {
        let Probe::Criterion(id) = probe else { return Ok(()) };
        let made = self.cx.state().current.as_ref().and_then(|iteration: &Iteration| iteration.guards.as_ref());
        let Some(path) = made.and_then(|made| made.canaries.get(id)).map(|made| made.path.clone()) else {
            return Ok(());
        };
        let start = start_files::text(self.cx.run_dir().path(), &self.between.start, &path).unwrap_or_default();
        match guard::canary_in(&path, &start) {
            Some(canary) => layer::put(self.folder, &canary.path, canary.text.as_bytes(), false),
            None => Ok(()),
        }
    }

    /// Every file as just written, as far as the bounds go; tests and settings first.
    fn fresh(&self) -> Result<(), Fault> {
        let judges = |path: &str| !matches!(self.between.set.class(path), Class::Code | Class::Unknown);
        let (first, then): (Vec<_>, Vec<_>) = self.between.now.files.iter().partition(|(path, _)| judges(path));
        let mut left = MAX_FRESH_BYTES;
        for (path, file) in first.into_iter().chain(then).take(MAX_FRESH) {
            let Some(rest) = left.checked_sub(file.size) else { break };
            left = rest;
            if plain::kind(self.cx.workspace(), path) == Ok(Some(FileKind::File))
                && let Ok(Some(found)) = plain::read(self.cx.workspace(), path, MAX_FRESH_BYTES as usize)
            {
                layer::put(self.folder, path, &found.bytes, found.executable)?;
            }
        }
        Ok(())
    }
}
