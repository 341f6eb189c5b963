//! The end of a run: evidence, seal, anchor, and no process left behind.

use serde_json::json;

use crate::evidence::render;
use crate::evidence::store::Durability;
use crate::journal::{Anchor, Anchors, HEAD_SUBJECT, write_seal};
use crate::machine::run::RunState;
use crate::model::digest::Digest;
use crate::tool::process;

use super::driver::Driver;
use super::error::EngineError;

impl Driver<'_> {
    /// Everything here can be repeated: a crash in between is mended by the next `resume` or `verify`.
    pub(super) async fn finish(self) -> Result<RunState, EngineError> {
        let run = self.session.state.run().as_str().to_owned();
        tokio::task::spawn_blocking(move || process::sweep(&run))
            .await
            .map_err(|e| EngineError::Internal(e.to_string()))?;
        let files = render::everything(&self.session.state, &self.session.blobs)?;
        self.write_evidence(&files, Durability::Synced)?;
        let (next_seq, head) = self.session.writer.head();
        let mut subjects = vec![(HEAD_SUBJECT.to_owned(), head)];
        subjects.extend(self.session.state.tree.map(|tree| ("workspace/tree".to_owned(), tree)));
        subjects.extend(files.iter().map(|file| (file.path.clone(), Digest::of(&file.bytes))));
        let seal = write_seal(&self.session.run_dir, subjects, predicate(&self.session.state, next_seq))?;
        let anchor = Anchor { seq: next_seq.saturating_sub(1), head, seal: Some(seal) };
        Anchors::in_root(self.session.root.path()).append(self.session.state.run().as_str(), &anchor)?;
        self.session.writer.close()?;
        Ok(self.session.state)
    }
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
