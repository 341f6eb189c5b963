//! `nightloop export`: a run in one file, to be verified anywhere.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::engine::error::EngineError;
use crate::engine::offline;
use crate::engine::places::StateRoot;
use crate::evidence::pack::{self, PackError};
use crate::evidence::render;
use crate::evidence::verify::{self, RenderedPlace, VerifyVerdict};
use crate::journal::{Anchors, RunDir};

use super::{Outcome, select, text};

#[derive(Debug, Args)]
pub struct Options {
    /// The run.
    run: String,
    /// The file to write, for example run.nlrun. It must not exist yet.
    file: PathBuf,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let root = StateRoot::locate()?;
    let selected = select::run(&root, here, Some(&options.run))?;
    if offline::is_driven(&root, &selected.run) {
        return Err(EngineError::Busy {
            message: format!("run {} is still running", selected.run),
            hint: "export it once it has ended; `nightloop stop` ends it".to_owned(),
        });
    }
    let out = here.join(&options.file);
    if out.symlink_metadata().is_ok() {
        let shown = text::safe(&options.file.to_string_lossy());
        return Err(EngineError::usage(format!("{shown} already exists"), "choose another name, or remove it"));
    }
    let run_dir = RunDir::open(&root.run(&selected.run))?;
    // The evidence is what the journal renders, wherever the workspace is now.
    let found = verify::verify(&run_dir, Some(&root.anchors()), &RenderedPlace::Nowhere);
    let evidence = match &found.state {
        Some(state) if found.sealed => render::everything(state, &run_dir.blobs())?,
        Some(_) | None => Vec::new(),
    };
    let count = pack::pack(&run_dir, &Anchors::in_root(root.path()), evidence, &out).map_err(failed)?;
    text::line(format!("run {}: {count} files in {}", selected.run, text::safe(&options.file.to_string_lossy())));
    match found.verdict() {
        VerifyVerdict::Ok => {}
        VerifyVerdict::Tampered => {
            text::complaint("the run was changed after it was written; `nightloop verify` says where")
        }
        VerifyVerdict::Incomplete => {
            text::complaint("the run is not complete; `nightloop verify` says what is missing")
        }
    }
    text::line("check it anywhere: nightloop verify FILE --signer ALLOWED_SIGNERS");
    Ok(0)
}

fn failed(error: PackError) -> EngineError {
    match error {
        PackError::Io { path, source } => EngineError::io("cannot write the file", &path, source),
        PackError::Journal(error) => error.into(),
        PackError::Cut(_) | PackError::Refused(_) => {
            EngineError::usage(error.to_string(), "`nightloop verify` says more about the run")
        }
    }
}
