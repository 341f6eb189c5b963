//! Creates runs and opens them again: directories, locks, genesis, recovery.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::evidence::store;
use crate::journal::{
    self, Anchor, Anchors, Blobs, Draft, JournalError, Record, RunDir, RunLock, SystemClock, Tail, Writer,
    WriterOptions,
};
use crate::machine::batch::Batch;
use crate::machine::event::{Event, REDUCER_VERSION, RunResumed, RunStarted};
use crate::machine::fold::{self, Stamped};
use crate::machine::run::RunState;
use crate::model::budget;
use crate::model::canonical;
use crate::model::decision::{Mode, Patience};
use crate::model::digest::Digest;
use crate::model::ids::RunId;
use crate::model::loop_file::{self, LoopFile};
use crate::playbook;
use crate::tool::process::{self, Marker};
use crate::tool::sandbox::{self, InForce, Sandbox};
use crate::workspace::document;

use super::claim::Claim;
use super::error::EngineError;
use super::keys;
use super::places::{StateRoot, private};

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Again {
    /// Although several recoveries in a row got nowhere.
    pub insist: bool,
    /// Although the journal is not the one that was anchored.
    pub unanchored: bool,
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
        sandbox::decide(&declared.sandbox, self == Self::Headless)
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

/// A declaration as read from disk.
#[derive(Debug, Clone)]
pub struct Declaration {
    pub file: LoopFile,
    pub sha256: Digest,
    /// What the operator should know before the start.
    pub notes: Vec<String>,
}

/// Reads loop.yaml with its limits. Nothing is written.
pub fn read_declaration(path: &Path) -> Result<Declaration, EngineError> {
    let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let missing = || {
        EngineError::usage(
            format!("{} does not exist", path.display()),
            "`nightloop init` writes one; `nightloop demo` shows a whole run",
        )
    };
    if !folder.is_dir() {
        return Err(missing());
    }
    let most = usize::try_from(loop_file::MAX_BYTES).unwrap_or(usize::MAX);
    let bytes = document::read(folder, &name, most)
        .map_err(|why| {
            EngineError::usage(
                format!("the declaration cannot be read: {why}"),
                "loop.yaml is a short file; move data into files that the checks read",
            )
        })?
        .ok_or_else(missing)?;
    let text = std::str::from_utf8(&bytes).map_err(|e| {
        EngineError::usage(format!("{name} is not UTF-8 (byte {})", e.valid_up_to()), "save it as UTF-8")
    })?;
    let file = loop_file::parse(text, &name).map_err(EngineError::Declaration)?;
    if file.acceptance_criteria.as_ref().is_some_and(Vec::is_empty) {
        let line = text.lines().position(|line| line.starts_with("acceptance_criteria")).map(|index| index + 1);
        return Err(EngineError::NeedInfo(crate::model::diagnose::Diagnostic {
            file: name,
            line,
            column: None,
            message: "acceptance_criteria is empty: a loop without criteria can never be done".to_owned(),
            hint: Some("add at least one criterion with a `check`".to_owned()),
        }));
    }
    Ok(Declaration { file, sha256: Digest::of(&bytes), notes: Vec::new() })
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
        let patience = attendance.patience(&declaration.file);
        let in_force = attendance.sandbox(&declaration.file)?;
        let (run, run_lock) = new_run(root)?;
        let path = root.run(&run);
        let unborn = Unborn(&path);
        journal::failpoint("run_locked");
        let remembered = super::remembered::load(root, &workspace)?;
        let sandbox = open_sandbox(root, &workspace, &run, &declaration.file, in_force)?;
        let started = run_started(&run, declaration, patience, remembered, sandbox.in_force());
        let genesis = genesis(&run, &workspace, &started)?;
        // Before the run is there: one that has no anchor later has lost it.
        Anchors::in_root(root.path()).begin(run.as_str(), Digest::of(genesis.as_bytes()))?;
        let run_dir = RunDir::create(&path, genesis.as_bytes())?;
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

    /// Opens a run again, repairs a torn tail, and records that it goes on.
    pub fn resume(root: &StateRoot, run: &RunId, attendance: Attendance, again: Again) -> Result<Self, EngineError> {
        let path = root.run(run);
        let run_dir = RunDir::open(&path)?;
        let workspace = workspace_of(&run_dir)?;
        let mut claim = Claim::in_state(root, &workspace)?;
        let run_lock = RunLock::acquire(&path)?;
        // What a killed engine left running must neither race with what comes next nor hold the workspace. It is
        // ours to end: nobody else has this run.
        process::sweep(Marker::Run(run.as_str()));
        claim.complete(&workspace)?;
        let (recovered, folded, cut) = recover(root, &run_dir, &run_lock, again.unanchored)?;
        let state = folded.ok_or_else(|| {
            EngineError::usage(
                format!("run {run} was created but never started: its journal is empty"),
                "start a new run with `nightloop run`",
            )
        })?;
        let in_force = attendance.sandbox(state.loop_file())?;
        not_weaker(&state, &in_force)?;
        if state.stalled_resumes >= MAX_STALLED_RESUMES && !again.insist {
            return Err(EngineError::Resumable {
                message: format!("run {run} was resumed {MAX_STALLED_RESUMES} times without progress"),
                hint: "the engine ends at the same place each time: `nightloop status` shows where, \
                       `nightloop resume --insist` tries again"
                    .to_owned(),
            });
        }
        let sandbox = open_sandbox(root, &workspace, run, state.loop_file(), in_force)?;
        remember_run(root, &workspace, run)?;
        set_seal_aside(&path, recovered.tail.next_seq)?;
        let writer = Writer::start(&run_dir, recovered.tail, Box::new(SystemClock), WriterOptions::default())?;
        let blobs = run_dir.blobs();
        let mut session = Self {
            root: root.clone(),
            run_dir,
            workspace,
            writer,
            blobs,
            state,
            sandbox,
            _run_lock: run_lock,
            _claim: claim,
        };
        let resumed = RunResumed {
            engine_version: env!("CARGO_PKG_VERSION").to_owned(),
            reducer_version: REDUCER_VERSION,
            attempt: session.state.stalled_resumes + 1,
            torn_bytes: recovered.torn.as_ref().map_or(0, |torn| torn.bytes),
            torn_sha256: recovered.torn.as_ref().map(|torn| torn.sha256),
            patience: attendance.patience(session.state.loop_file()),
        };
        let event = Event::from(resumed);
        crate::machine::legal::legal(&session.state, &event)
            .map_err(|why| EngineError::usage(why, "start a new run with `nightloop run`"))?;
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

/// A new seal is written at the next halt; the old one vouches for an older head. The signature goes first: one
/// without its seal would be a contradiction.
pub(super) fn set_seal_aside(run: &Path, next_seq: u64) -> Result<(), EngineError> {
    for ending in ["dsse.json", "json"] {
        let (seal, kept) = (run.join(format!("seal.{ending}")), run.join(format!("seal-{next_seq}.{ending}")));
        if seal.exists() {
            fs::rename(&seal, &kept).map_err(|e| EngineError::io("cannot set the old seal aside", &seal, e))?;
        }
    }
    Ok(())
}

/// Repairs a torn tail and folds everything. The batch is what the last decision still lacks. A journal that is not
/// the one that was anchored is refused, unless a person said to go on `unanchored`.
pub(super) fn recover(
    root: &StateRoot,
    run_dir: &RunDir,
    lock: &RunLock,
    unanchored: bool,
) -> Result<(journal::Recovered, Option<RunState>, Batch), EngineError> {
    let anchors = Anchors::in_root(root.path());
    let anchored = anchors.of_run(&run_dir.name())?;
    let mut connection = anchored.connect(run_dir.genesis_digest());
    let mut folded: Option<RunState> = None;
    let mut batch = Batch::default();
    let recovered = journal::recover(run_dir, lock, &mut |record| {
        let invalid = |e: EngineError| JournalError::Invalid { detail: e.to_string() };
        connection.see(record.seq, record.hash);
        if let Some(state) = folded.as_ref().filter(|_| record.kind != journal::SEGMENT_END) {
            let event = stamped(&record).map_err(invalid)?.event;
            batch.follow(state, &event);
        }
        fold_record(&mut folded, &record).map_err(invalid)
    })?;
    if let Some(why) = connection.broken() {
        if !unanchored {
            return Err(EngineError::Unanchored {
                message: format!("run {} is not the one that was anchored: {why}", run_dir.name()),
                hint: "`nightloop verify` says more; if you know why, `nightloop resume --unanchored` continues with \
                       the journal as it is"
                    .to_owned(),
            });
        }
        if let (true, Some(seq)) = (anchored.is_empty(), recovered.tail.next_seq.checked_sub(1)) {
            // From here on it is anchored again, and `verify` says since when.
            anchors.append(&run_dir.name(), &Anchor { seq, head: recovered.tail.head, seal: None })?;
        }
    }
    Ok((recovered, folded, batch))
}

/// Reads a run without owning it.
pub fn read_state(root: &StateRoot, run: &RunId) -> Result<RunState, EngineError> {
    let run_dir = RunDir::open(&root.run(run))?;
    let mut folded = None;
    for record in journal::read(&run_dir) {
        match record {
            Ok(record) => fold_record(&mut folded, &record)?,
            // The owner is writing this line right now, or died while it did.
            Err(JournalError::Torn { .. }) => break,
            Err(error) => return Err(error.into()),
        }
    }
    folded.ok_or_else(|| {
        EngineError::usage(
            format!("run {run} was created but never started: its journal is empty"),
            "if it is starting right now, try again in a moment; else start a new run with `nightloop run`",
        )
    })
}

/// Folds one journal record; the journal's own bookkeeping is passed over.
pub fn fold_record(folded: &mut Option<RunState>, record: &Record) -> Result<(), EngineError> {
    if record.kind == journal::SEGMENT_END {
        return Ok(());
    }
    let stamped = stamped(record)?;
    match folded {
        None => *folded = Some(playbook::start(&stamped)?),
        Some(state) => fold::apply(state, &stamped)?,
    }
    Ok(())
}

/// A journal record as an event.
pub fn stamped(record: &Record) -> Result<Stamped, EngineError> {
    let event = playbook::parse(&record.kind, record.data.get())
        .ok_or_else(|| EngineError::NewerEvents { kind: record.kind.clone() })?
        .map_err(|e| EngineError::Journal(JournalError::Invalid { detail: format!("event {}: {e}", record.seq) }))?;
    Ok(Stamped { seq: record.seq, ts: record.ts.clone(), mono_ms: record.mono_ms, boot: record.boot.clone(), event })
}

/// An event as a journal draft.
pub fn draft(iteration: Option<u32>, event: &Event) -> Result<Draft, EngineError> {
    let data = event.data().map_err(|e| EngineError::Internal(format!("cannot write {}: {e}", event.kind())))?;
    Ok(Draft { iter: iteration, kind: event.kind().to_owned(), data })
}

/// Where keys are kept, as far as we know: no command may read there.
pub fn key_places(declared: &LoopFile) -> Vec<PathBuf> {
    let keys = declared.agents.iter().filter_map(|(_, agent)| agent.api_key_file.as_deref().map(keys::expand));
    keys.chain(super::places::config_dir()).chain(super::places::signing_key()).collect()
}

fn open_sandbox(
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
    let budget = budget::effective(&declaration.file.budget, declaration.file.profile);
    let clamps = budget.clamps.iter().map(|c| format!("{} {} was raised to {}", c.limit, c.requested, c.used));
    let warnings = clamps.chain(in_force.warnings.iter().cloned()).chain(declaration.notes).collect();
    RunStarted {
        run: run.clone(),
        engine_version: env!("CARGO_PKG_VERSION").to_owned(),
        reducer_version: REDUCER_VERSION,
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        loop_sha256: declaration.sha256,
        declaration: Box::new(declaration.file),
        budget,
        sandbox: in_force.level.name.clone(),
        remembered,
        warnings,
        patience,
    }
}

fn genesis(run: &RunId, workspace: &Path, started: &RunStarted) -> Result<String, EngineError> {
    let value = json!({
        "nightloop": 1,
        "run": run,
        "workspace": workspace.to_string_lossy(),
        "loop_sha256": started.loop_sha256,
        "engine_version": started.engine_version,
        "reducer_version": started.reducer_version,
        "sandbox": started.sandbox,
        "started": started.started,
    });
    canonical::pretty(&value).map_err(|e| EngineError::Internal(e.to_string()))
}

/// The workspace a run belongs to.
pub fn workspace_of(run_dir: &RunDir) -> Result<PathBuf, EngineError> {
    let value: Value = serde_json::from_slice(run_dir.genesis())
        .map_err(|e| EngineError::Journal(JournalError::Invalid { detail: format!("genesis.json: {e}") }))?;
    let path = value.get("workspace").and_then(Value::as_str);
    path.map(PathBuf::from)
        .ok_or_else(|| EngineError::Journal(JournalError::Invalid { detail: "genesis.json names no workspace".into() }))
}

/// One spelling for one directory.
pub fn canonical_workspace(workspace: &Path) -> Result<PathBuf, EngineError> {
    workspace.canonicalize().map_err(|e| EngineError::io("cannot find the workspace", workspace, e))
}

fn remember_run(root: &StateRoot, workspace: &Path, run: &RunId) -> Result<(), EngineError> {
    Ok(journal::write_whole(&root.workspace(workspace), "run", format!("{run}\n").as_bytes())?)
}

/// Is the seal there, signed if it is to be, and does the latest anchor name it?
pub fn is_sealed(root: &StateRoot, run: &RunId) -> bool {
    let path = root.run(run);
    let seal = RunDir::open(&path).and_then(|run_dir| Ok((journal::read_seal(&run_dir)?, run_dir)));
    let Ok((Some(seal), run_dir)) = seal else { return false };
    let signed = match journal::read_envelope(&run_dir) {
        Ok(Some(envelope)) => envelope.check(&seal.bytes).is_ok(),
        Ok(None) => seal.signer().is_none(),
        Err(_) => false,
    };
    let anchored = Anchors::in_root(root.path()).of_run(run.as_str());
    let named = anchored.is_ok_and(|anchored| anchored.latest().and_then(|anchor| anchor.seal) == Some(seal.digest));
    signed && named
}

/// Renders and seals a run that ended while its engine died.
pub fn seal_ended(root: &StateRoot, run: &RunId, unanchored: bool) -> Result<(), EngineError> {
    let path = root.run(run);
    let run_dir = RunDir::open(&path)?;
    let workspace = workspace_of(&run_dir)?;
    let _claim = Claim::take(root, &workspace)?;
    let run_lock = RunLock::acquire(&path)?;
    let (recovered, folded, _) = recover(root, &run_dir, &run_lock, unanchored)?;
    let state = folded.ok_or_else(|| EngineError::Internal("an ended run without events".to_owned()))?;
    // Another run may have written there since.
    store::archive_foreign(&workspace, run)
        .map_err(|e| EngineError::io("cannot archive other evidence", &workspace, e))?;
    super::finish::seal(root, &run_dir, &workspace, &state, (recovered.tail.next_seq, recovered.tail.head))
}
