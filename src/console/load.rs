//! Reads what views ask for. Runs on a thread where waiting is allowed; knows nothing of screens.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::genesis;
use crate::engine::places::StateRoot;
use crate::engine::recorded;
use crate::evidence::store;
use crate::evidence::verify::{self, RenderedPlace, VerifyVerdict};
use crate::journal::{self, JournalError, RunDir, RunLock};
use crate::machine::document::EVIDENCE_ROOT;
use crate::machine::run::RunState;
use crate::model::ids::RunId;
use crate::model::learnings;
use crate::model::safe::Safe;
use crate::workspace::{document, plain};

use super::cmd::{Load, Loaded, RunRow, Verified, VerifiedAs};

/// A file longer than this is not shown.
const MAX_FILE: usize = 16 * 1024 * 1024;
/// The newest runs are listed; older ones are in `nightloop runs`.
const MAX_RUNS: usize = 100;

/// Where the things of one run are.
#[derive(Debug, Clone)]
pub struct RunFiles {
    pub root: StateRoot,
    pub run: Option<(RunId, RunDir, PathBuf)>,
}

impl RunFiles {
    pub fn load(&self, load: Load) -> Loaded {
        if load == Load::Runs {
            return Loaded::Runs(self.runs());
        }
        let Some((run, run_dir, workspace)) = &self.run else {
            return Loaded::Failed(Safe::line("there is no run yet"));
        };
        match load {
            Load::Runs => Loaded::Runs(self.runs()),
            Load::Blob(digest) => {
                Loaded::Blob(digest, run_dir.blobs().get(&digest).map(Arc::from).map_err(|e| safe(&e)))
            }
            Load::Learnings => {
                let found = document::read(workspace, learnings::FILE, learnings::MAX_FILE);
                let missing = || Safe::line("it does not exist yet; the first iteration writes it");
                Loaded::Learnings(found.map_err(|e| safe(&e)).and_then(|file| file.map(Arc::from).ok_or_else(missing)))
            }
            Load::Evidence(path) => {
                let found = evidence(workspace, run, &path);
                Loaded::Evidence(path, found)
            }
            Load::Moment(seq) => match moment(run_dir, seq) {
                Ok(state) => Loaded::Moment(seq, Box::new(state)),
                Err(why) => Loaded::Failed(Safe::line(&why)),
            },
            Load::Verify => Loaded::Verified(self.verify(run_dir, workspace)),
        }
    }

    fn verify(&self, run_dir: &RunDir, workspace: &Path) -> Verified {
        let place = RenderedPlace::Workspace(workspace.to_owned());
        let found = verify::verify(run_dir, Some(&self.root.anchors()), &place);
        let mut problems: Vec<(Safe, Safe)> =
            found.problems.iter().map(|problem| (Safe::line(&problem.place), Safe::line(&problem.what))).collect();
        problems.extend(found.incomplete.iter().map(|what| (Safe::line("not complete"), Safe::line(what))));
        let verdict = match found.verdict() {
            VerifyVerdict::Ok => VerifiedAs::Ok,
            VerifyVerdict::Tampered => VerifiedAs::Tampered,
            VerifyVerdict::Incomplete => VerifiedAs::Incomplete,
        };
        Verified { events: found.events, files: found.files_compared, verdict, problems }
    }

    /// Newest first.
    fn runs(&self) -> Vec<RunRow> {
        self.root.runs().into_iter().rev().take(MAX_RUNS).map(|run| self.row(run)).collect()
    }

    fn row(&self, run: RunId) -> RunRow {
        let dir = self.root.run(&run);
        let running = RunLock::owner(&dir).is_some();
        let workspace = RunDir::open(&dir).ok().and_then(|dir| genesis::workspace_of(&dir).ok());
        let workspace = workspace.map_or_else(Safe::default, |path| Safe::line(&path.to_string_lossy()));
        match recorded::read_state(&self.root, &run) {
            Ok(state) => RunRow {
                workspace,
                running,
                name: Safe::line(state.loop_file().name.as_deref().unwrap_or("–")),
                state: Safe::line(state.state.name()),
                waiting: state.operator.open().count(),
                iterations: state.spent.iterations,
                residual: state.residual_history().last().copied().flatten().map(|r| Safe::line(&r.to_string())),
                cost: state.spent.cost_usd.map(|cost| Safe::line(&cost.dollars())),
                started: Safe::line(&state.started.started),
                run,
            },
            Err(error) => RunRow {
                workspace,
                running,
                name: Safe::line("–"),
                state: safe(&error),
                waiting: 0,
                iterations: 0,
                residual: None,
                cost: None,
                started: Safe::default(),
                run,
            },
        }
    }
}

fn safe(error: &impl ToString) -> Safe {
    Safe::line(&error.to_string())
}

/// A file of the run's evidence, where it is now: current or archived.
fn evidence(workspace: &Path, run: &RunId, path: &str) -> Result<Arc<[u8]>, Safe> {
    let dir = store::find(workspace, run).ok_or_else(|| Safe::line("the evidence of this run is missing"))?;
    let relative = path.strip_prefix(EVIDENCE_ROOT).unwrap_or(path).trim_start_matches('/');
    let file = plain::read(workspace, format!("{dir}/{relative}"), MAX_FILE).map_err(|fault| safe(&fault))?;
    file.map(|file| Arc::from(file.bytes)).ok_or_else(|| Safe::line("the file does not exist"))
}

/// The run as it was after event `seq`.
fn moment(run_dir: &RunDir, seq: u64) -> Result<RunState, String> {
    let mut folded = None;
    for record in journal::read(run_dir) {
        match record {
            Ok(record) if record.seq > seq => break,
            Ok(record) => recorded::fold_record(&mut folded, &record).map_err(|e| e.to_string())?,
            Err(JournalError::Torn { .. }) => break,
            Err(error) => return Err(error.to_string()),
        }
    }
    folded.ok_or_else(|| "there is no such moment".to_owned())
}
