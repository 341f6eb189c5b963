//! `nightloop demo`: a whole run in a fresh directory, offline, with a scripted model and real checks.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::agent::rehearsal::Speed;
use crate::engine::error::EngineError;
use crate::engine::places::StateRoot;
use crate::engine::session;
use crate::evidence::verify::{self, RenderedPlace, Verdict};
use crate::journal::RunDir;

use super::headless::Format;
use super::{Outcome, run, text};

#[derive(Debug, Args)]
pub struct Options {
    /// Play the model's pauses this many times as fast as written; without it there are none.
    #[arg(long, value_name = "N")]
    speed: Option<f64>,
    /// Put the workspace here instead of a fresh temporary directory.
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Print one JSON object per event.
    #[arg(long)]
    json: bool,
}

/// The demo's workspace.
const FILES: &[(&str, &str)] = &[
    ("loop.yaml", include_str!("../../assets/demo/loop.yaml")),
    ("NORTHSTAR.md", include_str!("../../assets/demo/NORTHSTAR.md")),
    ("rehearsal.yaml", include_str!("../../assets/demo/rehearsal.yaml")),
    ("slug.sh", include_str!("../../assets/demo/slug.sh")),
    ("checks/run.sh", include_str!("../../assets/demo/checks/run.sh")),
    ("checks/count-failing.sh", include_str!("../../assets/demo/checks/count-failing.sh")),
    ("checks/count-passing.sh", include_str!("../../assets/demo/checks/count-passing.sh")),
];

pub fn main(options: &Options) -> Outcome {
    let workspace = workspace(options.into.as_deref())?;
    let speed = match options.speed {
        Some(factor) if factor.is_finite() && factor > 0.0 => Speed::Times(factor),
        Some(factor) => {
            return Err(EngineError::usage(format!("--speed {factor} is no speed"), "give a number above 0"));
        }
        None => Speed::Instant,
    };
    let format = if options.json { Format::Json } else { Format::Lines };
    let code = run::start(&workspace, "loop.yaml", format, speed)?;
    if format == Format::Lines {
        tell(&workspace)?;
    }
    Ok(code)
}

fn workspace(into: Option<&Path>) -> Result<PathBuf, EngineError> {
    let dir = match into {
        Some(dir) => {
            let empty = fs::read_dir(dir).map_or(true, |mut entries| entries.next().is_none());
            if !empty {
                return Err(EngineError::usage(
                    format!("{} is not empty", dir.display()),
                    "the demo wants a directory of its own",
                ));
            }
            fs::create_dir_all(dir).map_err(|e| EngineError::io("cannot create the workspace", dir, e))?;
            dir.to_owned()
        }
        None => {
            let temp = std::env::temp_dir();
            let made = tempfile::Builder::new().prefix("nightloop-demo-").tempdir_in(&temp);
            made.map_err(|e| EngineError::io("cannot create the workspace", &temp, e))?.keep()
        }
    };
    for (name, content) in FILES {
        let path = dir.join(name);
        let parent = path.parent().unwrap_or(&dir);
        fs::create_dir_all(parent).map_err(|e| EngineError::io("cannot create the workspace", parent, e))?;
        fs::write(&path, content).map_err(|e| EngineError::io("cannot write the workspace", &path, e))?;
    }
    Ok(dir)
}

/// Verifies the run it has just made, and says where everything is.
fn tell(workspace: &Path) -> Result<(), EngineError> {
    let root = StateRoot::locate()?;
    let workspace = session::canonical_workspace(workspace)?;
    let Some(run) = root.run_of(&workspace) else { return Ok(()) };
    let run_dir = RunDir::open(&root.run(&run))?;
    let found = verify::verify(&run_dir, Some(&root.anchors()), &RenderedPlace::Workspace(workspace.clone()));
    let verdict = match found.verdict() {
        Verdict::Ok => "verified: chain, decisions and files agree",
        Verdict::Tampered => "NOT AS WRITTEN",
        Verdict::Incomplete => "incomplete",
    };
    text::line(format!("  {verdict} ({} events)", found.events));
    text::line("");
    text::line(format!("workspace  {}", workspace.display()));
    text::line(format!("learnings  {}", workspace.join("AGENTS.md").display()));
    text::line(format!("evidence   {}", workspace.join("evidence/loop").display()));
    text::line(format!("journal    {}", run_dir.path().display()));
    Ok(())
}
