//! The end of a run: evidence, seal, anchor, and no process left behind.

use std::path::Path;

use serde_json::json;

use crate::evidence::render;
use crate::evidence::store;
use crate::journal::{Anchor, Anchors, HEAD_SUBJECT, RunDir, Subject, TREE_SUBJECT, sign_seal, unsign, write_seal};
use crate::machine::run::RunState;
use crate::model::digest::Digest;
use crate::tool::process::{self, Marker};

use super::driver::Driver;
use super::error::EngineError;
use super::places::StateRoot;
use super::signer;

impl Driver<'_> {
    pub(super) async fn finish(self) -> Result<RunState, EngineError> {
        let run = self.session.state.run().as_str().to_owned();
        tokio::task::spawn_blocking(move || process::sweep(Marker::Run(&run)))
            .await
            .map_err(|e| EngineError::Internal(e.to_string()))?;
        let session = self.session;
        seal(&session.root, &session.run_dir, &session.workspace, &session.state, session.writer.head())?;
        session.writer.close()?;
        Ok(session.state)
    }
}

/// Renders, seals and anchors. Everything here can be repeated: a crash in between is mended by `resume`.
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
