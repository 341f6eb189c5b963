//! What the ready screen shows, read from the disk. Nothing is written, nothing is spent.

use std::path::Path;

use crate::console::screens::ready::Ready;
use crate::engine::clues;
use crate::engine::declaration::{self, Declaration};
use crate::engine::genesis;
use crate::engine::host::{self, Wanted};
use crate::engine::places::{self, StateRoot};
use crate::engine::recorded;
use crate::engine::session::Attendance;
use crate::engine::signals::{self, STOP_FILE};
use crate::model::feasible::Obstacle;
use crate::model::loop_file::{BackendName, LoopFile};
use crate::model::prd::{self, Prd};
use crate::model::project_check;
use crate::model::ready_line::{ItemCounts, Items};
use crate::model::safe::Safe;
use crate::model::stop::StopReason;
use crate::playbook;
use crate::workspace::{document, head};

/// The ready screen of a new run; a run that goes on has none.
pub fn screen(root: &StateRoot, wanted: &Wanted) -> Option<Ready> {
    let Wanted::New { workspace, declaration } = wanted else { return None };
    let Declaration { file, .. } = declaration.as_ref();
    let playbook = playbook::of(file.playbook);
    let prompt =
        places::prompts().unwrap_or_default().render(playbook.first_call(), &file.criteria()).unwrap_or_default();
    let mut notes = match host::preflight(file, Attendance::Watched) {
        Ok(()) => Vec::new(),
        Err(error) => Safe::lines(&error.to_string()),
    };
    let place = genesis::canonical_workspace(workspace).unwrap_or_else(|_| workspace.clone());
    if signals::stop_is_there(&place) {
        notes.push(Safe::line(&format!("{STOP_FILE} exists: a run would stop at once; remove it first")));
    }
    notes.extend(obstacles(&place, file));
    notes.extend(missing_keys(file));
    notes.extend(earlier_run(root, &place));
    let shown = Safe::line(&place.to_string_lossy());
    let mut ready = Ready::new(file.clone(), shown, Safe::lines(&prompt), notes);
    if let Some(items_file) = playbook.items_file(file) {
        ready.items = Some(items(&place, items_file));
        ready.inferred = project_check::infer(&clues::find(&place));
    }
    if let Ok(in_force) = Attendance::Watched.sandbox(file) {
        ready.notes.extend(in_force.warnings.iter().map(|warning| Safe::line(warning)));
        ready.sandbox = Safe::line(&in_force.level.to_string());
    }
    Some(ready)
}

/// What keeps the loop from succeeding, as far as it can be known before it starts.
fn obstacles(workspace: &Path, declared: &LoopFile) -> Vec<Safe> {
    let told = |obstacle: Obstacle| {
        let cannot = if obstacle.fatal.is_some() { "this loop cannot succeed: " } else { "" };
        Safe::line(&format!("{cannot}{}; {}", obstacle.message, obstacle.hint))
    };
    declaration::obstacles(workspace, declared).into_iter().map(told).collect()
}

/// The items as they are in the file now. The run reads it again: this is only shown.
fn items(workspace: &Path, file: &str) -> Items {
    let missing = || format!("{file} does not exist: write one, or name another file with `prd: {{ file: … }}`");
    let read = document::read(workspace, file, prd::MOST_BYTES)
        .and_then(|bytes| bytes.ok_or_else(missing))
        .and_then(|bytes| Prd::read(&bytes).map_err(|e| e.diagnostic(file).to_string()));
    let current = head::branch(workspace).map(|branch| Safe::line(&branch));
    read.map(|prd| ItemCounts { current, ..ItemCounts::from(&prd) }).map_err(|problem| Safe::lines(&problem))
}

/// Keys that the start would ask for.
fn missing_keys(declared: &LoopFile) -> Vec<Safe> {
    let keyless = declared.agents.iter().filter(|(_, agent)| {
        let variable = agent.api_key_env.as_deref().unwrap_or("ANTHROPIC_API_KEY");
        agent.backend == BackendName::Anthropic && agent.base_url.is_none() && std::env::var_os(variable).is_none()
    });
    keyless
        .map(|(name, agent)| {
            let variable = agent.api_key_env.as_deref().unwrap_or("ANTHROPIC_API_KEY");
            Safe::line(&format!("agent `{name}` needs a key: set {variable} before you start"))
        })
        .collect()
}

/// A run of this directory that could go on instead.
fn earlier_run(root: &StateRoot, workspace: &Path) -> Option<Safe> {
    let run = root.run_of(workspace)?;
    let state = recorded::read_state(root, &run).ok()?;
    let goes_on = "`nightloop resume` continues it; starting here begins a new run";
    let halted = state.halt.as_ref();
    match halted.map(|halted| halted.stop_reason) {
        None => Some(Safe::line(&format!("run {run} was interrupted in {}: {goes_on}", state.state))),
        Some(StopReason::BackpressureSignal) => Some(Safe::line(&format!("run {run} was stopped: {goes_on}"))),
        Some(_) => None,
    }
}
