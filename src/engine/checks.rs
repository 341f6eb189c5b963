//! What a check sees: the workspace through an overlay, so that what it writes is its own.
//!
//! The checks of one round (a phase of an iteration) share a layer: a count may be read from what the tests wrote. What
//! tools keep to be faster stays in that layer for the next round; all else is dropped. Trials of the judges see further
//! layers over the workspace (`guards`), and what they write is thrown away. Where no overlay can be had, a check sees the
//! workspace itself.
//!
//! Not here: which layers a trial needs (`guards`), how an overlay is mounted (`tool::sandbox`).
//! Invariants: no layer lies where an agent can reach it; a declared output, and nothing else, reaches the workspace; a
//! check whose files are held back runs with them or not at all, and leaves nothing that another command could read.

use std::fs;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobSet, GlobSetBuilder};
use tempfile::TempDir;

use crate::machine::event::{Phase, Probe};
use crate::model::criterion::Criterion;
use crate::model::guard;
use crate::tool::sandbox::Overlay;
use crate::workspace::layer::{self, WrittenKind};
use crate::workspace::plain::{self, Bits, Durability};
use crate::workspace::tree;

use super::confine;
use super::context::Context;
use super::error::EngineError;
use super::guards;
use super::start_files;

/// Names that are looked at for declared outputs.
const MAX_WRITTEN: usize = 50_000;
/// Files that are named as changed by a check.
const MAX_CHANGED: usize = 100;
/// A declared output larger than this stays in the layer.
const MAX_OUTPUT: usize = 64 << 20;

/// What one command sees.
#[derive(Debug)]
pub(super) struct View {
    pub overlay: Overlay,
    /// Settings that keep it from stale leftovers.
    pub env: Vec<(String, String)>,
    /// A temporary folder of its own, where its files are held back; gone with the view.
    pub apart: Option<TempDir>,
    /// A temporary folder that no agent could fill; gone with the view.
    _fresh: Option<TempDir>,
    /// Declared outputs reach the workspace.
    lets_through: bool,
}

/// The view of a command; `None`: the workspace itself.
pub(super) fn view(cx: &mut Context<'_>, phase: Phase, probe: &Probe) -> Result<Option<View>, EngineError> {
    let hidden = hidden_of(cx, probe);
    if !through_overlay(probe) {
        return Ok(None);
    }
    if !cx.state().started.overlays || !cx.sandbox().overlays() {
        return if hidden.is_some() { Err(not_in_the_open(cx, probe)) } else { Ok(None) };
    }
    let base = start_files::layers(cx.run_dir().path());
    let common = base.join("common");
    let (work, thrown) = (base.join("work"), base.join("thrown"));
    for folder in [&common, &work, &thrown] {
        fs::create_dir_all(folder).map_err(|e| EngineError::io("cannot make a layer for checks", folder, e))?;
    }
    begin_round(cx, phase, &common)?;
    // What a check writes that was shown held-back files is for no other check, and for no workspace.
    let apart = hidden.as_ref().map(|_| confine::put_up(cx.sandbox().apart())).transpose()?;
    let Some(trial) = trial_of(phase) else {
        let Some(hidden) = hidden else {
            let overlay = Overlay { over: Vec::new(), upper: common, work };
            return Ok(Some(View { overlay, env: Vec::new(), apart, _fresh: None, lets_through: true }));
        };
        emptied(&thrown)?;
        let overlay = Overlay { over: vec![hidden, common], upper: thrown, work };
        return Ok(Some(View { overlay, env: Vec::new(), apart, _fresh: None, lets_through: false }));
    };
    let folder = base.join(trial);
    let of_probe = matches!(phase, Phase::Canary | Phase::CanaryAtStart).then(|| probe.clone());
    let wanted = (cx.state().iteration_number(), phase, of_probe);
    if cx.checks.prepared.as_ref() != Some(&wanted) {
        emptied(&folder)?;
        guards::fill(cx, phase, probe, &folder)?;
        cx.checks.prepared = Some(wanted);
    }
    emptied(&thrown)?;
    let over = hidden.into_iter().chain([folder, common]).collect();
    // What was compiled or kept from other text than the one that is seen counts as nothing: no agent has been here.
    let fresh = match (&apart, cx.sandbox().shared_folder()) {
        (None, Some(shared)) => Some(tempfile::Builder::new().prefix("trial-").tempdir_in(shared).map_err(no_folder)?),
        (Some(_), _) | (None, None) => None,
    };
    let mut env = Vec::new();
    if let Some(folder) = apart.as_ref().or(fresh.as_ref()).map(|folder| folder.path().to_string_lossy().into_owned()) {
        env.push(("PYTHONPYCACHEPREFIX".to_owned(), format!("{folder}/compiled")));
        if fresh.is_some() {
            env.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name.to_owned(), folder.clone())));
        }
    }
    Ok(Some(View { overlay: Overlay { over, upper: thrown, work }, env, apart, _fresh: fresh, lets_through: false }))
}

fn no_folder(error: std::io::Error) -> EngineError {
    EngineError::io("cannot make a temporary folder for a check", &std::env::temp_dir(), error)
}

/// Without its files it would be another check.
fn not_in_the_open(cx: &Context<'_>, probe: &Probe) -> EngineError {
    let why = cx.sandbox().no_overlay().unwrap_or_else(|| "the run began without overlays".to_owned());
    EngineError::Resumable {
        message: format!("{} cannot be shown what is held back: {why}", probe.name()),
        hint: "once overlays can be had here again, `nightloop resume` goes on".to_owned(),
    }
}

/// Known fixes act, and the scripts of the value playbook have folders of their own.
const fn through_overlay(probe: &Probe) -> bool {
    match probe {
        Probe::Criterion(_)
        | Probe::Residual
        | Probe::Metric(_)
        | Probe::SubGoal
        | Probe::Item(_)
        | Probe::Security
        | Probe::SecurityVersion
        | Probe::ApiSurface => true,
        Probe::Verification(_) | Probe::Task(_) | Probe::Detour(_) => false,
    }
}

/// The folder of a trial's layer; `None` where the workspace is seen as it is.
const fn trial_of(phase: Phase) -> Option<&'static str> {
    match phase {
        // The second replay sees every file as just written, so that nothing stale stands in for it.
        Phase::Replay(2) => Some("fresh"),
        Phase::Pristine => Some("pristine"),
        Phase::PristineWithTools => Some("pristine-with-tools"),
        Phase::Reverted => Some("reverted"),
        Phase::PristineSince => Some("pristine-since"),
        Phase::Canary | Phase::CanaryAtStart => Some("canary"),
        Phase::AtStart => Some("at-start"),
        Phase::Empty => Some("empty"),
        Phase::Baseline
        | Phase::Scouted
        | Phase::Iteration
        | Phase::Replay(_)
        | Phase::ReplayAgain(..)
        | Phase::Gate
        | Phase::Step(_)
        | Phase::StepAgain(..)
        | Phase::Detour => None,
    }
}

/// A new round begins with what tools keep to be faster, and nothing else.
fn begin_round(cx: &mut Context<'_>, phase: Phase, common: &Path) -> Result<(), EngineError> {
    let round = (cx.state().iteration_number(), phase);
    if cx.checks.round == Some(round) {
        return Ok(());
    }
    let workspace = cx.workspace().to_owned();
    let there = |path: &str| plain::kind(&workspace, path) == Ok(Some(plain::FileKind::File));
    layer::prune(common, &|path| guard::is_kept_by_tools(path) && guard::is_cache_here(path, &there))
        .map_err(cannot)?;
    cx.checks.round = Some(round);
    Ok(())
}

fn emptied(folder: &Path) -> Result<(), EngineError> {
    layer::remove(folder).map_err(cannot)?;
    fs::create_dir_all(folder).map_err(|e| EngineError::io("cannot make a layer for checks", folder, e))
}

fn cannot(fault: plain::Fault) -> EngineError {
    EngineError::Internal(format!("a layer for checks: {fault}"))
}

/// Does it see what agents may not? Then they get no word of what it shows.
pub(super) fn is_held_back(cx: &Context<'_>, probe: &Probe) -> bool {
    hidden_of(cx, probe).is_some()
}

/// Files that are held back from agents, shown to this check alone.
fn hidden_of(cx: &Context<'_>, probe: &Probe) -> Option<PathBuf> {
    let Probe::Criterion(id) = probe else { return None };
    let criterion = cx.state().criteria.iter().find(|criterion| criterion.id == *id)?;
    criterion.hidden.as_deref().map(|path| cx.workspace().join(super::keys::expand(path)))
}

/// Lets declared outputs through. What cannot be written is left out: the check said what it had to say.
pub(super) fn close(cx: &Context<'_>, view: &View, probe: &Probe) {
    let Some(globs) = writes_of(cx.state().criteria.iter(), probe).filter(|_| view.lets_through) else { return };
    let Ok(written) = layer::written(&view.overlay.upper, MAX_WRITTEN) else { return };
    for file in written.iter().filter(|file| file.kind == WrittenKind::File && globs.is_match(&file.path)) {
        if let Ok(Some(found)) = plain::read(&view.overlay.upper, &file.path, MAX_OUTPUT) {
            let bits = Bits::Executable(found.executable);
            let _ = plain::put(cx.workspace(), &file.path, &found.bytes, bits, Durability::Replaceable);
        }
    }
}

/// Files of the workspace that the command changed while it ran: the code under test must not write its own judge.
/// Looked at where the layer holds this command's writes alone, or the first ones of all.
pub(super) fn changed_meanwhile(cx: &Context<'_>, phase: Phase, view: &View) -> Vec<String> {
    if !matches!(phase, Phase::Baseline | Phase::Replay(2) | Phase::Pristine) {
        return Vec::new();
    }
    let Ok(written) = layer::written(&view.overlay.upper, MAX_WRITTEN) else { return Vec::new() };
    let judges = guards::judge_names(cx).filter(|_| phase != Phase::Baseline);
    let changed = written.into_iter().filter(|file| match file.kind {
        // What it made at the start is its habit as much as what it changed.
        WrittenKind::File | WrittenKind::Link if phase == Phase::Baseline => true,
        WrittenKind::File | WrittenKind::Link | WrittenKind::Removed => is_changed(cx, &view.overlay.upper, &file.path),
        WrittenKind::Folder | WrittenKind::NewFolder | WrittenKind::Other => false,
    });
    let names = changed.map(|file| tree::name_of(&file.path)).filter(|name| !guard::is_kept_by_tools(name));
    names.filter(|name| judges.as_ref().is_none_or(|judges| judges(name))).take(MAX_CHANGED).collect()
}

/// Was it there, and is it other now? A file that was only opened for writing is as it was.
fn is_changed(cx: &Context<'_>, upper: &Path, path: &Path) -> bool {
    let read = |root: &Path| plain::read(root, path, MAX_OUTPUT).ok().flatten().map(|file| file.bytes);
    read(cx.workspace()).is_some_and(|before| read(upper) != Some(before))
}

fn writes_of<'a>(mut criteria: impl Iterator<Item = &'a Criterion>, probe: &Probe) -> Option<GlobSet> {
    let Probe::Criterion(id) = probe else { return None };
    let criterion = criteria.find(|criterion| criterion.id == *id).filter(|criterion| !criterion.writes.is_empty())?;
    Some(globs(criterion.writes.iter()))
}

/// What the checks of a run may write into the workspace: theirs, no agent's.
pub(super) fn outputs(cx: &Context<'_>) -> GlobSet {
    globs(cx.state().criteria.iter().flat_map(|criterion| &criterion.writes))
}

fn globs<'a>(patterns: impl Iterator<Item = &'a String>) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in patterns.filter_map(|pattern| Glob::new(pattern).ok()) {
        builder.add(glob);
    }
    builder.build().unwrap_or_else(|_| GlobSet::empty())
}
