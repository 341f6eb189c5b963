//! `nightloop init`: writes a commented loop.yaml. Never overwrites anything.

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::{Args, ValueEnum};

use crate::engine::error::EngineError;

use super::{Outcome, text};

#[derive(Debug, Default, Args)]
pub struct Options {
    /// What the loop is for.
    #[arg(long, value_enum, default_value = "green-tests")]
    template: Template,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Template {
    /// Run until the tests pass.
    #[default]
    GreenTests,
    /// Improve a score until it converges.
    Benchmark,
    /// Extract knowledge until coverage is reached.
    Extraction,
    /// Answer a question with sources.
    Research,
    /// Security or interface work, with the gates of rung 65537.
    Security,
}

impl Template {
    const fn text(self) -> &'static str {
        match self {
            Self::GreenTests => include_str!("../../assets/templates/green-tests.yaml"),
            Self::Benchmark => include_str!("../../assets/templates/benchmark.yaml"),
            Self::Extraction => include_str!("../../assets/templates/extraction.yaml"),
            Self::Research => include_str!("../../assets/templates/research.yaml"),
            Self::Security => include_str!("../../assets/templates/security.yaml"),
        }
    }
}

const NORTHSTAR: &str = include_str!("../../assets/templates/NORTHSTAR.md");

pub fn main(here: &Path, options: &Options) -> Outcome {
    let declaration = here.join("loop.yaml");
    if !write_new(&declaration, options.template.text())? {
        return Err(EngineError::usage(
            format!("{} exists already", declaration.display()),
            "edit it, or run `nightloop init` in another directory",
        ));
    }
    text::line(format!("wrote {}", declaration.display()));
    let northstar = here.join("NORTHSTAR.md");
    if write_new(&northstar, NORTHSTAR)? {
        text::line(format!("wrote {}", northstar.display()));
    }
    text::line("next: make the goal and the checks your own, then `nightloop doctor` and `nightloop run`");
    Ok(0)
}

/// `false` when the file is there already.
fn write_new(path: &Path, content: &str) -> Result<bool, EngineError> {
    let created = fs::OpenOptions::new().write(true).create_new(true).open(path);
    match created {
        Ok(mut file) => {
            file.write_all(content.as_bytes()).map_err(|e| EngineError::io("cannot write", path, e))?;
            Ok(true)
        }
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(EngineError::io("cannot write", path, e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{loop_file, northstar};

    #[test]
    fn every_template_is_a_valid_declaration() {
        for template in Template::value_variants() {
            let parsed = loop_file::parse(template.text(), "loop.yaml");
            let parsed = parsed.unwrap_or_else(|e| panic!("{template:?}: {e}"));
            assert!(
                parsed.goal.is_some() && !parsed.criteria().is_empty() && !parsed.agents.is_empty(),
                "{template:?}"
            );
        }
        assert!(!northstar::parse(NORTHSTAR).unwrap().metrics.is_empty());
    }
}
