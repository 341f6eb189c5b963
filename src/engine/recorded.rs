//! A run as its journal tells it: records become events, events a state.
//!
//! Not here: going on with it (`session`). Reading needs no lock and changes nothing; recovering does.

use crate::journal::{self, Anchor, Anchors, Draft, JournalError, Record, RunDir, RunLock};
use crate::machine::batch::Batch;
use crate::machine::event::Event;
use crate::machine::fold::{self, Stamped};
use crate::machine::run::RunState;
use crate::model::ids::RunId;
use crate::playbook;

use super::error::EngineError;
use super::places::StateRoot;

/// A run that is ours, folded; nothing of it is changed yet.
pub(super) struct Found {
    pub state: Option<RunState>,
    /// What the last decision still lacks.
    pub batch: Batch,
    scanned: journal::Scanned,
    /// It has no anchors, and a person said to go on: from where it is anchored again.
    anchor: Option<Anchor>,
}

impl Found {
    /// Folds everything. A journal that is not the one that was anchored is refused, unless a person said to go on
    /// `unanchored`.
    pub fn read(root: &StateRoot, run_dir: &RunDir, lock: &RunLock, unanchored: bool) -> Result<Self, EngineError> {
        let anchored = Anchors::in_root(root.path()).of_run(&run_dir.name())?;
        let mut connection = anchored.connect(run_dir.genesis_digest());
        let mut state: Option<RunState> = None;
        let mut batch = Batch::default();
        let mut last = None;
        let scanned = journal::scan(run_dir, lock, &mut |record| {
            let invalid = |e: EngineError| JournalError::Invalid { detail: e.to_string() };
            connection.see(record.seq, record.hash);
            last = Some((record.seq, record.hash));
            if let Some(state) = state.as_ref().filter(|_| record.kind != journal::SEGMENT_END) {
                let event = stamped(&record).map_err(invalid)?.event;
                batch.follow(state, &event);
            }
            fold_record(&mut state, &record).map_err(invalid)
        })?;
        let mut anchor = None;
        if let Some(why) = connection.broken() {
            if !unanchored {
                return Err(EngineError::Unanchored {
                    message: format!("run {} is not the one that was anchored: {why}", run_dir.name()),
                    hint:
                        "`nightloop verify` says more; if you know why, `nightloop resume --unanchored` continues with \
                           the journal as it is"
                            .to_owned(),
                });
            }
            anchor = last.filter(|_| anchored.is_empty()).map(|(seq, head)| Anchor { seq, head, seal: None });
        }
        Ok(Self { state, batch, scanned, anchor })
    }

    /// Cuts a torn tail off, and anchors again what has no anchor; `verify` says since when.
    pub fn repair(
        self,
        root: &StateRoot,
        run_dir: &RunDir,
    ) -> Result<(journal::Recovered, Option<RunState>, Batch), EngineError> {
        let recovered = self.scanned.repair(run_dir)?;
        if let Some(anchor) = &self.anchor {
            Anchors::in_root(root.path()).append(&run_dir.name(), anchor)?;
        }
        Ok((recovered, self.state, self.batch))
    }
}

/// Reads a run without owning it.
pub fn read_state(root: &StateRoot, run: &RunId) -> Result<RunState, EngineError> {
    read_through(root, run, |_, _| ())
}

/// The same, seen event by event with the state after each.
pub fn read_through(
    root: &StateRoot,
    run: &RunId,
    mut see: impl FnMut(&Stamped, &RunState),
) -> Result<RunState, EngineError> {
    let run_dir = RunDir::open(&root.run(run))?;
    let mut folded = None;
    for record in journal::read(&run_dir) {
        match record {
            Ok(record) => {
                if let (Some(stamped), Some(state)) = (fold_seen(&mut folded, &record)?, &folded) {
                    see(&stamped, state);
                }
            }
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
    fold_seen(folded, record).map(|_| ())
}

/// The same; the event, where the record is one.
fn fold_seen(folded: &mut Option<RunState>, record: &Record) -> Result<Option<Stamped>, EngineError> {
    if record.kind == journal::SEGMENT_END {
        return Ok(None);
    }
    let stamped = stamped(record)?;
    match folded {
        None => *folded = Some(playbook::start(&stamped)?),
        Some(state) => fold::apply(state, &stamped)?,
    }
    Ok(Some(stamped))
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
