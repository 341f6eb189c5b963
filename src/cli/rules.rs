//! `nightloop rules`: what was always allowed in this workspace, and how to take it back.

use std::path::Path;

use clap::Args;
use serde_json::json;

use crate::engine::genesis;
use crate::engine::places::StateRoot;
use crate::engine::remembered;

use super::{Outcome, order, text};

#[derive(Debug, Args)]
pub struct Options {
    /// Forget the rule with this number. Runs that have already started keep it.
    #[arg(long, value_name = "N")]
    forget: Option<usize>,
    #[arg(long)]
    json: bool,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let root = StateRoot::locate()?;
    let workspace = genesis::canonical_workspace(here)?;
    if let Some(number) = options.forget {
        order::refuse_tools()?;
        let rule = remembered::forget(&root, &workspace, number)?;
        text::line(format!("forgotten: {}", text::safe(&rule)));
        return Ok(0);
    }
    let rules = remembered::load(&root, &workspace)?;
    if options.json {
        text::json_line(&json!(rules));
        return Ok(0);
    }
    if rules.is_empty() {
        text::line("no rules are remembered for this workspace: `always` in the inbox adds one");
        return Ok(0);
    }
    for (index, rule) in rules.iter().enumerate() {
        text::line(format!("{:>3}  {}", index + 1, text::safe(rule)));
    }
    text::line(format!("kept in {}", text::safe(&remembered::path(&root, &workspace).to_string_lossy())));
    Ok(0)
}
