//! loop.yaml as it is read from disk.

use std::path::Path;

use crate::model::digest::Digest;
use crate::model::loop_file::{self, LoopFile};
use crate::workspace::document;

use super::error::EngineError;

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
