//! The Northstar as it lies in the workspace.

use crate::machine::event::NorthstarRead;
use crate::model::digest::Digest;
use crate::model::learnings::SpecVersion;
use crate::model::northstar;
use crate::workspace::document;

use std::path::Path;

use super::context::Context;
use super::error::EngineError;

/// A larger NORTHSTAR.md is refused by its parser; this only bounds the read.
const MAX_NORTHSTAR_BYTES: usize = 2 << 20;

pub(super) async fn read(cx: &mut Context<'_>) -> Result<(), EngineError> {
    let file = cx.state().loop_file().northstar_file().to_owned();
    let read = match bytes(cx.workspace(), &file) {
        Err(problem) => NorthstarRead { file, sha256: None, metrics: Vec::new(), problem: Some(problem) },
        Ok(bytes) => {
            let sha256 = Some(Digest::of(&bytes));
            match northstar::parse(&String::from_utf8_lossy(&bytes)) {
                Ok(parsed) => NorthstarRead { file, sha256, metrics: parsed.metrics, problem: None },
                Err(e) => NorthstarRead { file, sha256, metrics: Vec::new(), problem: Some(e.to_string()) },
            }
        }
    };
    cx.record(read).await
}

/// Its digest now; `None` where there is none.
pub(super) fn now(cx: &Context<'_>) -> Option<Digest> {
    if cx.state().spec() == SpecVersion::V1 {
        return None;
    }
    let file = cx.state().loop_file().northstar_file();
    bytes(cx.workspace(), file).ok().map(|bytes| Digest::of(&bytes))
}

/// Reads the Northstar. The error is for the operator.
fn bytes(workspace: &Path, file: &str) -> Result<Vec<u8>, String> {
    document::read(workspace, file, MAX_NORTHSTAR_BYTES)?.ok_or_else(|| format!("{file} is not there"))
}
