//! Answers for a run that no process drives: recorded now, acted upon when it is resumed.

use std::fs;

use crate::evidence::store;
use crate::journal::{RunDir, RunLock, SystemClock, Writer, WriterOptions};
use crate::machine::event::{DecisionAnswered, Event};
use crate::machine::fold;
use crate::machine::legal;
use crate::machine::run::RunState;
use crate::model::ids::RunId;

use super::claim::Claim;
use super::error::EngineError;
use super::genesis;
use super::places::StateRoot;
use super::recorded::{self, Found};
use super::remembered;
use super::seal;

/// Records an answer, with the document it approves. A run that had stopped is sealed again.
pub fn answer(
    root: &StateRoot,
    run: &RunId,
    answered: DecisionAnswered,
    document: Option<&str>,
) -> Result<RunState, EngineError> {
    let path = root.run(run);
    let run_dir = RunDir::open(&path)?;
    let workspace = genesis::workspace_of(&run_dir)?;
    let _claim = Claim::take(root, &workspace)?;
    let run_lock = RunLock::acquire(&path)?;
    let (recovered, folded, _) = Found::read(root, &run_dir, &run_lock, false)?.repair(root, &run_dir)?;
    let mut state = folded.ok_or_else(|| EngineError::usage("the run has no events", "start a new one"))?;
    let event = Event::from(answered);
    legal::legal(&state, &event).map_err(|why| EngineError::usage(why, "`nightloop inbox` shows what is waiting"))?;
    if let Some(text) = document {
        run_dir.blobs().put(text.as_bytes())?;
    }
    seal::set_aside(&path, recovered.tail.next_seq)?;
    let writer = Writer::start(&run_dir, recovered.tail, Box::new(SystemClock), WriterOptions::default())?;
    for record in writer.append_blocking(vec![recorded::draft(None, &event)?])? {
        fold::apply(&mut state, &recorded::stamped(&record)?)?;
    }
    remembered::keep(root, &workspace, &state, &event);
    if state.halt.is_some() {
        // Another run may have written there since.
        store::archive_foreign(&workspace, run)
            .map_err(|e| EngineError::io("cannot archive other evidence", &workspace, e))?;
        seal::seal(root, &run_dir, &workspace, &state, writer.head())?;
    }
    writer.close()?;
    Ok(state)
}

/// Is some process driving this run?
pub fn is_driven(root: &StateRoot, run: &RunId) -> bool {
    fs::metadata(root.run(run)).is_ok() && RunLock::owner(&root.run(run)).is_some()
}
