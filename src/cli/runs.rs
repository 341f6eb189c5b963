//! `nightloop runs`: every run of this user, newest last.

use clap::Args;
use serde_json::json;

use crate::engine::genesis;
use crate::engine::places::StateRoot;
use crate::engine::recorded;
use crate::journal::{RunDir, RunLock};
use crate::model::ids::RunId;

use super::{Outcome, text};

#[derive(Debug, Args)]
pub struct Options {
    #[arg(long)]
    json: bool,
}

pub fn main(options: &Options) -> Outcome {
    let root = StateRoot::locate()?;
    let runs = root.runs();
    if runs.is_empty() && !options.json {
        text::line("no runs yet: try `nightloop demo`");
    }
    for run in runs {
        let row = row(&root, &run);
        if options.json {
            text::json_line(&row);
        } else {
            let get = |key: &str| row[key].as_str().unwrap_or("–").to_owned();
            let waiting = match row["waiting"].as_u64() {
                Some(count) if count > 0 => format!("  ({count} waiting for you)"),
                Some(_) | None => String::new(),
            };
            text::line(format!(
                "{run}  {:<22} {:<20} residual {:<8} {}{waiting}",
                get("state"),
                get("started"),
                get("residual"),
                get("workspace")
            ));
        }
    }
    Ok(0)
}

/// A damaged run is listed with what is wrong; it must not hide the others.
fn row(root: &StateRoot, run: &RunId) -> serde_json::Value {
    let dir = root.run(run);
    let workspace = RunDir::open(&dir).ok().and_then(|dir| genesis::workspace_of(&dir).ok());
    let workspace = workspace.map(|path| text::safe(&path.to_string_lossy()));
    match recorded::read_state(root, run) {
        Ok(state) => json!({
            "run": run,
            "state": match (&state.halt, RunLock::owner(&dir)) {
                (None, None) => "interrupted".to_owned(),
                (None, Some(_)) | (Some(_), _) => state.state.name().to_owned(),
            },
            "started": state.started.started,
            "waiting": state.operator.open().count(),
            "residual": state.residual_history().last().copied().flatten().map(|r| r.to_string()),
            "workspace": workspace,
        }),
        Err(error) => json!({"run": run, "state": "unreadable", "workspace": workspace, "problem": error.to_string()}),
    }
}
