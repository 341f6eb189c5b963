//! The seal of a run that has ended: evidence, statement, signature, anchor.
//!
//! Everything here can be repeated: a crash in between is mended by `resume`.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::evidence::render;
use crate::evidence::store;
use crate::journal::{
    self, Anchor, Anchors, HEAD_SUBJECT, RunDir, RunLock, Subject, TREE_SUBJECT, sign_seal, unsign, write_seal,
};
use crate::machine::run::RunState;
use crate::model::digest::Digest;
use crate::model::ids::RunId;

use super::claim::Claim;
use super::error::EngineError;
use super::genesis::workspace_of;
use super::places::StateRoot;
use super::recorded::Found;
use super::signer;

/// Renders, seals and anchors.
pub(super) fn seal(
    root: &StateRoot,
    run_dir: &RunDir,
    workspace: &Path,
    state: &RunState,
    (next_seq, head): (u64, Digest),
) -> Result<(), EngineError> {
    let files = render::everything(state, &run_dir.blobs())?;
    store::write_copies(workspace, &files)
        .and_then(|_| store::remove_outdated(workspace, &files))
        .and_then(|()| store::write_synced(workspace, &files))
        .map_err(|e| EngineError::io("cannot write the evidence", workspace, e))?;
    let mut subjects = vec![Subject::sha256(HEAD_SUBJECT, head)];
    subjects.extend(state.tree.map(|tree| Subject::sha256(TREE_SUBJECT, tree)));
    subjects.extend(state.git.commit().map(Subject::commit));
    subjects.extend(files.iter().map(|file| Subject::sha256(file.path.clone(), Digest::of(&file.bytes))));
    let mut predicate = predicate(state, next_seq);
    // Without a key the run ends unsigned; the commands say why.
    let key = signer::key(root).ok();
    if let Some(key) = &key {
        predicate["signer"] = json!(key.public().fingerprint());
    }
    // A signature of an earlier seal must not be found beside this one.
    unsign(run_dir)?;
    let sealed = write_seal(run_dir, &subjects, predicate)?;
    if let Some(key) = &key {
        sign_seal(run_dir, &sealed, key)?;
    }
    let anchor = Anchor { seq: next_seq.saturating_sub(1), head, seal: Some(Digest::of(&sealed)) };
    Anchors::in_root(root.path()).append(state.run().as_str(), &anchor)?;
    Ok(())
}

fn predicate(state: &RunState, events: u64) -> serde_json::Value {
    let halted = state.halt.as_ref();
    json!({
        "run": state.run(),
        "verdict": halted.map(|h| h.status),
        "stop_reason": halted.map(|h| h.stop_reason),
        "events": events,
        "iterations": state.spent.iterations,
        "tool_calls": state.spent.tool_calls,
        "tokens": state.spent.tokens(),
        "limits": state.limits,
        "resumes": state.resumes,
        "started": state.started.started,
        "ended": state.time.last_ts,
        "sandbox": state.started.sandbox,
    })
}

/// A new seal is written at the next halt; the old one vouches for an older head. The signature goes first: one
/// without its seal would be a contradiction.
pub(super) fn set_aside(run: &Path, next_seq: u64) -> Result<(), EngineError> {
    for ending in ["dsse.json", "json"] {
        let (seal, kept) = (run.join(format!("seal.{ending}")), run.join(format!("seal-{next_seq}.{ending}")));
        if seal.exists() {
            fs::rename(&seal, &kept).map_err(|e| EngineError::io("cannot set the old seal aside", &seal, e))?;
        }
    }
    Ok(())
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
    let (recovered, folded, _) = Found::read(root, &run_dir, &run_lock, unanchored)?.repair(root, &run_dir)?;
    let state = folded.ok_or_else(|| EngineError::Internal("an ended run without events".to_owned()))?;
    // Another run may have written there since.
    store::archive_foreign(&workspace, run)
        .map_err(|e| EngineError::io("cannot archive other evidence", &workspace, e))?;
    seal(root, &run_dir, &workspace, &state, (recovered.tail.next_seq, recovered.tail.head))
}
