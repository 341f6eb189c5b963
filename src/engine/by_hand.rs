//! What a person changes in the file of items through us: an item is split.
//!
//! Role: read and replace the file through the door. Not its role: what may stand in it (`model::prd`), or what a run
//! makes of it: it reads the file like any other change of a person.
//! Invariant: nothing is written over a change that came meanwhile.

use std::path::Path;

use crate::model::prd::{self, Prd};
use crate::workspace::document;

use super::confine::protected;
use super::error::EngineError;

/// A draft of the parts of an item.
pub fn draft(workspace: &Path, file: &str, item: &str) -> Result<String, EngineError> {
    let (_, prd) = read(workspace, file)?;
    prd.split_draft(item).map_err(|why| refused(file, why))
}

/// Puts the parts behind the item. Returns their ids.
pub fn split(workspace: &Path, file: &str, item: &str, parts: &str) -> Result<Vec<String>, EngineError> {
    let (before, prd) = read(workspace, file)?;
    let (text, ids) = prd.with_split(item, parts).map_err(|why| refused(file, why))?;
    if read(workspace, file)?.0 != before {
        return Err(EngineError::usage(format!("{file} was changed meanwhile: nothing was written"), "try again"));
    }
    document::replace(workspace, file, text.as_bytes(), &protected()).map_err(|why| refused(file, why))?;
    Ok(ids)
}

fn read(workspace: &Path, file: &str) -> Result<(Vec<u8>, Prd), EngineError> {
    let bytes = document::read(workspace, file, prd::MOST_BYTES).map_err(|why| refused(file, why))?;
    let bytes = bytes.ok_or_else(|| refused(file, "it does not exist".to_owned()))?;
    let prd = Prd::read(&bytes).map_err(|e| EngineError::usage(e.diagnostic(file).to_string(), "mend it first"))?;
    Ok((bytes, prd))
}

fn refused(file: &str, why: String) -> EngineError {
    EngineError::usage(format!("{file}: {why}"), "nothing was changed")
}
