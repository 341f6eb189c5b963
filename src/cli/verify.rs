//! `nightloop verify`: may this run be believed?

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::engine::error::EngineError;
use crate::engine::host::runtime;
use crate::engine::places::StateRoot;
use crate::engine::session::{self, Attendance};
use crate::evidence::verify::{self, RenderedPlace, Verdict, Verification};
use crate::journal::RunDir;
use crate::machine::run::RunState;
use crate::model::criterion::Proof;
use crate::tool::process::{self, Access, CommandSpec, End};
use crate::tool::sandbox::Sandbox;

use super::{Outcome, select, text};

#[derive(Debug, Args)]
pub struct Options {
    /// A run id, or the path of a (copied) run directory; default: the run of this directory.
    run: Option<String>,
    /// Also run the executable criteria again, in the workspace.
    #[arg(long)]
    replay: bool,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let (run_dir, anchors, place) = locate(here, options)?;
    let found = verify::verify(&run_dir, anchors.as_deref(), &place);
    report(&run_dir, &found);
    let mut code = found.verdict().exit_code();
    if let (true, Some(state), RenderedPlace::Workspace(workspace)) = (options.replay, &found.state, &place)
        && !replay(state, workspace)?
    {
        code = code.max(1);
    }
    Ok(code)
}

fn locate(
    here: &Path,
    options: &Options,
) -> Result<(RunDir, Option<PathBuf>, RenderedPlace), crate::engine::error::EngineError> {
    let as_path = options.run.as_ref().map(PathBuf::from).filter(|path| path.join("genesis.json").is_file());
    if let Some(path) = as_path {
        let run_dir = RunDir::open(&path)?;
        // A copy is verified by itself; the workspace it came from may be gone.
        return Ok((run_dir, None, RenderedPlace::Nowhere));
    }
    let root = StateRoot::locate()?;
    let selected = select::run(&root, here, options.run.as_deref())?;
    if let Some(note) = &selected.note {
        text::line(note);
    }
    let run_dir = RunDir::open(&root.run(&selected.run))?;
    // An unreadable genesis is the chain's problem to report.
    let place = session::workspace_of(&run_dir).map_or(RenderedPlace::Nowhere, RenderedPlace::Workspace);
    Ok((run_dir, Some(root.anchors()), place))
}

fn report(run_dir: &RunDir, found: &Verification) {
    let run = run_dir.name();
    match found.verdict() {
        Verdict::Ok => text::line(format!("run {run}: verified")),
        Verdict::Tampered => text::line(format!("run {run}: NOT AS WRITTEN")),
        Verdict::Incomplete => text::line(format!("run {run}: incomplete")),
    }
    for problem in &found.problems {
        text::line(format!("  {}: {}", text::safe(&problem.place), text::safe(&problem.what)));
    }
    for reason in &found.incomplete {
        text::line(format!("  {}", text::safe(reason)));
    }
    text::line(format!("  {} events, head {}", found.events, found.head.short()));
    if let Some(state) = &found.state {
        text::line(format!("  {} rendered files compared", found.files_compared));
        if let Some(halted) = &state.halt {
            text::line(format!(
                "  {} ({}), every decision made again from the facts",
                halted.status, halted.stop_reason
            ));
        }
    }
}

/// Runs the checks on the workspace as it is now.
fn replay(state: &RunState, workspace: &Path) -> Result<bool, EngineError> {
    let runtime = runtime()?;
    let declared = state.loop_file();
    let in_force = Attendance::Watched.sandbox(declared)?;
    let marker = format!("verify-{}", std::process::id());
    let root = StateRoot::locate()?;
    let sandbox =
        Sandbox::open(&declared.sandbox, in_force, workspace, root.path(), session::key_places(declared), &marker)
            .map_err(|e| EngineError::io("cannot make a temporary folder", &std::env::temp_dir(), e))?;
    let recorded = state.iterations().rev().find_map(|iteration| iteration.certificate.as_ref());
    let mut same = true;
    for criterion in &state.criteria {
        let Proof::Check { argv, timeout_seconds } = &criterion.proof else { continue };
        let mut spec = CommandSpec::new(argv.clone(), workspace, marker.as_str());
        spec.timeout = Duration::from_secs(*timeout_seconds);
        let worn = sandbox.for_tool(Access::ReadWrite);
        spec.confinement = worn.map_err(|why| EngineError::Internal(format!("the sandbox cannot be put up: {why}")))?;
        let outcome = runtime.block_on(process::run(spec, &CancellationToken::new()));
        let met = outcome.end == End::Exited(0);
        let was = recorded.and_then(|certificate| {
            certificate.acceptance_criteria_checklist.iter().find(|f| f.id == criterion.id).map(|f| f.met)
        });
        let verdict = if was == Some(met) { "as recorded" } else { "DIFFERS from the record" };
        same &= was == Some(met);
        text::line(format!("  replay {}: {} – {verdict}", criterion.id, if met { "met" } else { "not met" }));
    }
    Ok(same)
}
