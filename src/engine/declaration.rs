//! loop.yaml as it is read from disk.

use std::path::Path;

use crate::model::digest::Digest;
use crate::model::feasible::{self, Obstacle};
use crate::model::loop_file::{self, LoopFile};
use crate::model::northstar;
use crate::workspace::document;

use super::error::EngineError;

/// A declaration as read from disk.
#[derive(Debug, Clone)]
pub struct Declaration {
    pub file: LoopFile,
    pub sha256: Digest,
    /// What the operator should know before the start.
    pub notes: Vec<String>,
    /// What the operator typed beside it; it is part of `file` already.
    pub typed: Vec<String>,
    /// Its text, where it was not read from a file of the workspace; the run's evidence keeps it.
    pub text: Option<String>,
    /// NORTHSTAR.md for a workspace that has none; written when the run starts.
    pub northstar: Option<String>,
}

/// The declaration that words of a command line stand for. It is read like any other.
pub fn stands_for(text: &str) -> Result<Declaration, EngineError> {
    let file = loop_file::parse(text, "the loop that --goal stands for").map_err(EngineError::Declaration)?;
    let (sha256, text) = (Digest::of(text.as_bytes()), Some(text.to_owned()));
    Ok(Declaration { file, sha256, notes: Vec::new(), typed: Vec::new(), text, northstar: None })
}

/// Reads loop.yaml with its limits. Nothing is written.
pub fn read_declaration(path: &Path) -> Result<Declaration, EngineError> {
    let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let missing = || {
        EngineError::usage(
            format!("{} does not exist", path.display()),
            "`nightloop init` writes one, `nightloop run --goal … --check …` needs none; `nightloop demo` shows a whole run",
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
    Ok(Declaration {
        file,
        sha256: Digest::of(&bytes),
        notes: Vec::new(),
        typed: Vec::new(),
        text: None,
        northstar: None,
    })
}

/// What keeps the loop from succeeding, as far as it can be known before it starts.
pub fn obstacles(workspace: &Path, declared: &LoopFile) -> Vec<Obstacle> {
    let text = document::read(workspace, declared.northstar_file(), northstar::MOST_BYTES).ok().flatten();
    let parsed = text.and_then(|bytes| northstar::parse(&String::from_utf8_lossy(&bytes)).ok());
    feasible::obstacles(declared, &parsed.map(|northstar| northstar.metrics).unwrap_or_default())
}
