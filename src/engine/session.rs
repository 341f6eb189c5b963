//! Creates runs and opens them again: directories, locks, genesis, recovery.

use std::fs;
use std::path::{Path, PathBuf};

use crate::journal::{self, Anchors, Blobs, JournalError, RunDir, RunLock, SystemClock, Tail, Writer, WriterOptions};
use crate::machine::event::{BudgetRaised, Event, REDUCER_VERSION, RunResumed, RunStarted};
use crate::machine::fold;
use crate::machine::legal;
use crate::machine::run::RunState;
use crate::model::budget::Dimension;
use crate::model::decision::{Mode, Patience};
use crate::model::digest::Digest;
use crate::model::ids::RunId;
use crate::model::loop_file::{LoopFile, NetworkDecl, SandboxDecl};
use crate::playbook;
use crate::tool::process::{self, Marker};
use crate::tool::sandbox::{self, InForce, Sandbox};
use crate::workspace::plain::{self, Bits, Durability};

use super::claim::Claim;
use super::declaration::Declaration;
use super::ends;
use super::error::EngineError;
use super::genesis::{self, canonical_workspace, workspace_of};
use super::judges::Judges;
use super::keys;
use super::places::{StateRoot, private};
use super::recorded::{Found, draft, stamped};
use super::seal;
use super::start_files;
use super::unaccepted;

/// Recoveries in a row that got nowhere; then a person has to look.
const MAX_STALLED_RESUMES: u32 = 3;

/// A run that this process owns.
pub struct Session {
    pub root: StateRoot,
    pub run_dir: RunDir,
    pub workspace: PathBuf,
    pub writer: Writer,
    pub blobs: Blobs,
    pub state: RunState,
    /// What commands of this run wear.
    pub sandbox: Sandbox,
    _run_lock: RunLock,
    _claim: Claim,
}

/// What a person said about going on with a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Again {
    /// Although several recoveries in a row got nowhere.
    pub insist: bool,
    /// Although the journal is not the one that was anchored.
    pub unanchored: bool,
    /// Limits that go up: which, and to what.
    pub raise: Vec<(Dimension, String)>,
}

/// Is anybody expected to answer?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attendance {
    /// A console, or a socket that one can be attached to.
    Watched,
    /// Lines to a log.
    Headless,
}

impl Attendance {
    /// What is enforced around commands, or why the run may not start.
    pub fn sandbox(self, declared: &LoopFile) -> Result<InForce, EngineError> {
        let mut wanted = declared.sandbox.clone();
        // Services and those who use them meet on loopback. Where it cannot be had, there are none.
        if wanted.network.is_none() && declared.playbook.wants_loopback() && sandbox::level().loopback {
            wanted.network = Some(NetworkDecl::Loopback.into());
        }
        self.sandbox_of(&wanted)
    }

    /// The same for a run that goes on: what it had no network for at the start, it has none for now.
    fn sandbox_again(self, state: &RunState) -> Result<InForce, EngineError> {
        if state.started.sandbox.ends_with("network off") {
            return self.sandbox_of(&state.loop_file().sandbox);
        }
        self.sandbox(state.loop_file())
    }

    fn sandbox_of(self, declared: &SandboxDecl) -> Result<InForce, EngineError> {
        sandbox::decide(declared, self == Self::Headless)
            .map_err(|refusal| EngineError::usage(refusal.message, refusal.hint))
    }

    /// What loop.yaml says, else: wait where somebody can come, stop where not.
    fn patience(self, declared: &LoopFile) -> Patience {
        let usual = match self {
            Self::Watched => Mode::Wait,
            Self::Headless => Mode::Stop,
        };
        let declared = declared.decisions.as_ref();
        Patience {
            mode: declared.and_then(|decisions| decisions.mode).unwrap_or(usual),
            timeout_minutes: declared.and_then(|decisions| decisions.timeout_minutes).unwrap_or(0),
        }
    }
}

impl Session {
    /// Starts a new run in a workspace.
    pub fn create(
        root: &StateRoot,
        workspace: &Path,
        declaration: Declaration,
        attendance: Attendance,
    ) -> Result<Self, EngineError> {
        let workspace = canonical_workspace(workspace)?;
        if workspace.to_str().is_none() {
            return Err(EngineError::usage(
                format!("the path of the workspace is not UTF-8: {}", workspace.display()),
                "rename the folder: the record of a run names its workspace in UTF-8",
            ));
        }
        let claim = Claim::take(root, &workspace)?;
        root.clear_unborn();
        write_northstar(&workspace, &declaration)?;
        let patience = attendance.patience(&declaration.file);
        let in_force = attendance.sandbox(&declaration.file)?;
        let (run, run_lock) = new_run(root)?;
        let path = root.run(&run);
        let unborn = Unborn(&path);
        journal::failpoint("run_locked");
        let remembered = super::remembered::load(root, &workspace)?;
        let sandbox = open_sandbox(root, &workspace, &run, &declaration.file, in_force)?;
        hidden_places(&declaration.file, &workspace, &sandbox)
            .map_err(|(message, hint)| EngineError::usage(message, hint))?;
        let started = RunStarted {
            overlays: sandbox.overlays(),
            unaccepted: unaccepted::load(root, &workspace)?,
            ..run_started(&run, declaration, patience, remembered, sandbox.in_force())
        };
        let genesis = genesis::text(&run, &workspace, &started)?;
        // Before the run is there: one that has no anchor later has lost it.
        Anchors::in_root(root.path()).begin(run.as_str(), Digest::of(genesis.as_bytes()))?;
        let run_dir = RunDir::create(&path, genesis.as_bytes())?;
        unaccepted::hand_over(root, &workspace, run_dir.path(), &started.unaccepted);
        journal::failpoint("run_genesis");
        remember_run(root, &workspace, &run)?;
        journal::failpoint("run_remembered");
        let tail = Tail::fresh(run_dir.genesis_digest());
        let writer = Writer::start(&run_dir, tail, Box::new(SystemClock), WriterOptions::default())?;
        let records = writer.append_blocking(vec![draft(None, &started.into())?])?;
        let first = records.first().ok_or_else(|| EngineError::Internal("no first event".to_owned()))?;
        let state = playbook::start(&stamped(first)?)?;
        unborn.lives();
        let blobs = run_dir.blobs();
        Ok(Self {
            root: root.clone(),
            run_dir,
            workspace,
            writer,
            blobs,
            state,
            sandbox,
            _run_lock: run_lock,
            _claim: claim,
        })
    }

    /// Ends whatever the run left behind, then seals it. Returns the final state.
    pub(super) async fn finish(self) -> Result<RunState, EngineError> {
        let run = self.state.run().as_str().to_owned();
        tokio::task::spawn_blocking(move || process::sweep(Marker::Run(&run)))
            .await
            .map_err(|e| EngineError::Internal(e.to_string()))?;
        let judges = Judges { state: &self.state, run_dir: self.run_dir.path(), blobs: &self.blobs };
        unaccepted::settle(&self.root, &self.workspace, judges)?;
        // A stop can be resumed, and then needs what the checks left.
        if self.state.halt.as_ref().is_some_and(|halt| halt.signal.is_none()) {
            start_files::clear(self.run_dir.path());
        }
        seal::seal(&self.root, &self.run_dir, &self.workspace, &self.state, self.writer.head())?;
        self.writer.close()?;
        Ok(self.state)
    }
}

/// A run that is ours again: its journal is folded, and nothing of it is changed yet.
pub struct Reopened {
    root: StateRoot,
    run_dir: RunDir,
    pub workspace: PathBuf,
    pub state: RunState,
    found: Found,
    run_lock: RunLock,
    claim: Claim,
    raise: Vec<(Dimension, String)>,
}

impl Reopened {
    pub fn open(root: &StateRoot, run: &RunId, again: Again) -> Result<Self, EngineError> {
        let path = root.run(run);
        let run_dir = RunDir::open(&path)?;
        let workspace = workspace_of(&run_dir)?;
        if !workspace.is_dir() {
            return Err(EngineError::usage(
                format!("the workspace of run {run} is gone: {}", workspace.display()),
                "restore it, then run `nightloop resume` again",
            ));
        }
        let mut claim = Claim::in_state(root, &workspace)?;
        let run_lock = RunLock::acquire(&path)?;
        // What a killed engine left running must neither race with what comes next nor hold the workspace. It is
        // ours to end: nobody else has this run.
        process::sweep(Marker::Run(run.as_str()));
        claim.complete(&workspace)?;
        let mut found = Found::read(root, &run_dir, &run_lock, again.unanchored)?;
        let state = found.state.take().ok_or_else(|| {
            EngineError::usage(
                format!("run {run} was created but never started: its journal is empty"),
                "start a new run with `nightloop run`",
            )
        })?;
        if state.stalled_resumes >= MAX_STALLED_RESUMES && !again.insist {
            return Err(EngineError::Resumable {
                message: format!("run {run} was resumed {MAX_STALLED_RESUMES} times without progress"),
                hint: "the engine ends at the same place each time: `nightloop status` shows where, \
                       `nightloop resume --insist` tries again"
                    .to_owned(),
            });
        }
        let raise = again.raise;
        Ok(Self { root: root.clone(), run_dir, workspace, state, found, run_lock, claim, raise })
    }

    /// Repairs a torn tail and records that the run goes on.
    pub fn go_on(self, attendance: Attendance) -> Result<Session, EngineError> {
        let Self { root, run_dir, workspace, state, found, run_lock, claim, raise } = self;
        let run = state.run().clone();
        let in_force = attendance.sandbox_again(&state)?;
        not_weaker(&state, &in_force)?;
        let sandbox = open_sandbox(&root, &workspace, &run, state.loop_file(), in_force)?;
        // A check that is held back never runs without its files: the run waits for a place that has them.
        hidden_places(state.loop_file(), &workspace, &sandbox).map_err(|(message, hint)| EngineError::Resumable {
            message,
            hint: format!("{hint}; once the folder and the overlays are back, `nightloop resume` goes on"),
        })?;
        let (recovered, _, cut) = found.repair(&root, &run_dir)?;
        let resumed = RunResumed {
            engine_version: env!("CARGO_PKG_VERSION").to_owned(),
            reducer_version: REDUCER_VERSION,
            attempt: state.stalled_resumes + 1,
            torn_bytes: recovered.torn.as_ref().map_or(0, |torn| torn.bytes),
            torn_sha256: recovered.torn.as_ref().map(|torn| torn.sha256),
            patience: attendance.patience(state.loop_file()),
            raised: raised(&state, raise),
            end: ends::of(state.loop_file()),
        };
        let event = Event::from(resumed);
        legal::legal(&state, &event).map_err(|why| EngineError::usage(why, "start a new run with `nightloop run`"))?;
        remember_run(&root, &workspace, &run)?;
        seal::set_aside(run_dir.path(), recovered.tail.next_seq)?;
        let writer = Writer::start(&run_dir, recovered.tail, Box::new(SystemClock), WriterOptions::default())?;
        let blobs = run_dir.blobs();
        let mut session =
            Session { root, run_dir, workspace, writer, blobs, state, sandbox, _run_lock: run_lock, _claim: claim };
        // A decision that was cut in the middle stands: its rest is recorded before anything else happens.
        let iteration = session.state.current.as_ref().map(|iteration| iteration.number());
        let mut drafts = vec![draft(None, &event)?];
        for event in cut.into_rest() {
            drafts.push(draft(iteration, &event)?);
        }
        let records = session.writer.append_blocking(drafts)?;
        for record in &records {
            fold::apply(&mut session.state, &stamped(record)?)?;
        }
        Ok(session)
    }
}

/// The limits that the operator raises with the resume. What is not limited has nothing to be raised from.
fn raised(state: &RunState, raise: Vec<(Dimension, String)>) -> Vec<BudgetRaised> {
    let raised = raise.into_iter().map(|(dimension, to)| {
        let from = state.limits.of(dimension).unwrap_or_default();
        BudgetRaised { dimension, from, to, by: "operator".to_owned() }
    });
    raised.collect()
}

/// A loop without a file brings its Northstar, where the workspace has none. The workspace is ours by now.
fn write_northstar(workspace: &Path, declaration: &Declaration) -> Result<(), EngineError> {
    let Some(text) = &declaration.northstar else { return Ok(()) };
    let name = declaration.file.northstar_file();
    let failed = |fault: plain::Fault| EngineError::io("cannot write", &workspace.join(name), fault.into_io());
    if plain::kind(workspace, name).map_err(failed)?.is_none() {
        plain::put(workspace, name, text.as_bytes(), Bits::Kept, Durability::Synced).map_err(failed)?;
    }
    Ok(())
}

/// A directory for a new run, locked. Whoever clears up may have taken it for an old one: then there is another.
fn new_run(root: &StateRoot) -> Result<(RunId, RunLock), EngineError> {
    const TRIES: usize = 3;
    for _ in 0..TRIES {
        let run = RunId::parse(&ulid::Ulid::generate().to_string())
            .ok_or_else(|| EngineError::Internal("a generated run id is not valid".to_owned()))?;
        let path = root.run(&run);
        fs::create_dir_all(&path).map_err(|e| EngineError::io("cannot create the run directory", &path, e))?;
        private(&path)?;
        journal::failpoint("run_made");
        match RunLock::acquire(&path) {
            Ok(lock) if lock.covers(&path) => return Ok((run, lock)),
            Ok(_) | Err(JournalError::Locked { .. }) => {}
            Err(error) if path.exists() => return Err(error.into()),
            Err(_) => {}
        }
    }
    Err(EngineError::Internal(format!("the run directory disappeared {TRIES} times")))
}

/// A run without its first event: nothing was done in its name, and nothing stays of it.
struct Unborn<'a>(&'a Path);

impl Unborn<'_> {
    fn lives(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unborn<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0);
    }
}

/// Where keys are kept, as far as we know: no command may read there.
pub fn key_places(declared: &LoopFile) -> Vec<PathBuf> {
    let keys = declared.agents.iter().filter_map(|(_, agent)| agent.api_key_file.as_deref().map(keys::expand));
    // What is held back from agents is out of their reach like a key.
    let hidden =
        declared.criteria().into_iter().filter_map(|criterion| criterion.hidden).map(|path| keys::expand(&path));
    keys.chain(hidden).chain(super::places::config_dir()).chain(super::places::signing_key()).collect()
}

/// Files that are held back must be there, outside of the workspace, and be kept from agents. The error: what is wrong,
/// and what to do.
pub(super) fn hidden_places(
    declared: &LoopFile,
    workspace: &Path,
    sandbox: &Sandbox,
) -> Result<(), (String, &'static str)> {
    for criterion in declared.criteria() {
        let Some(hidden) = &criterion.hidden else { continue };
        let place = keys::expand(hidden);
        let wrong = |why: &str, hint: &'static str| {
            Err((format!("the check of `{}` holds back {}: {why}", criterion.id, place.display()), hint))
        };
        let real = place.canonicalize().ok().filter(|real| place.is_absolute() && real.is_dir());
        let Some(real) = real else {
            return wrong("it is not a folder with an absolute path", "give a folder such as ~/checks/project");
        };
        if real.starts_with(workspace) || workspace.starts_with(&real) {
            return wrong("it lies in the workspace, or around it", "put it where no agent works");
        }
        if let Some(why) = sandbox.no_overlay() {
            return wrong(&why, "nothing can be held back where no overlay can be had: leave `hidden` out");
        }
    }
    Ok(())
}

pub(super) fn open_sandbox(
    root: &StateRoot,
    workspace: &Path,
    run: &RunId,
    declared: &LoopFile,
    in_force: InForce,
) -> Result<Sandbox, EngineError> {
    Sandbox::open(&declared.sandbox, in_force, workspace, root.path(), key_places(declared), run.as_str())
        .map_err(|e| EngineError::io("cannot create the run's temporary directory", &std::env::temp_dir(), e))
}

/// A run that began in a sandbox does not go on without one: its record says that it had one.
fn not_weaker(state: &RunState, in_force: &InForce) -> Result<(), EngineError> {
    let began = state.started.sandbox.as_str();
    if in_force.is_confined() || matches!(began, "none" | "off") {
        return Ok(());
    }
    Err(EngineError::usage(
        format!("the run started in a sandbox ({began}), and there is none here: {}", in_force.level),
        "resume it on a machine that has one, or start a new run",
    ))
}

fn run_started(
    run: &RunId,
    declaration: Declaration,
    patience: Patience,
    remembered: Vec<String>,
    in_force: &InForce,
) -> RunStarted {
    let budget = declaration.file.budget_in_force();
    let end = ends::of(&declaration.file);
    let clamps = budget.clamps.iter().map(|c| format!("{} {} was raised to {}", c.limit, c.requested, c.used));
    let warnings = clamps.chain(in_force.warnings.iter().cloned()).chain(declaration.notes).collect();
    RunStarted {
        run: run.clone(),
        engine_version: env!("CARGO_PKG_VERSION").to_owned(),
        reducer_version: REDUCER_VERSION,
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        loop_sha256: declaration.sha256,
        declaration: Box::new(declaration.file),
        declared_text: declaration.text,
        typed: declaration.typed,
        end,
        budget,
        sandbox: in_force.level.name.clone(),
        overlays: false,
        unaccepted: Vec::new(),
        remembered,
        warnings,
        patience,
    }
}

fn remember_run(root: &StateRoot, workspace: &Path, run: &RunId) -> Result<(), EngineError> {
    Ok(journal::write_whole(&root.workspace(workspace), "run", format!("{run}\n").as_bytes())?)
}
