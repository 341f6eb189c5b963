//! `nightloop init`: writes a commented loop.yaml. Never overwrites anything.

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::{Args, ValueEnum};

use crate::engine::error::EngineError;
use crate::model::loop_file::ProgramProfile;

use super::doctor::programs;
use super::{Outcome, text};

#[derive(Debug, Default, Args)]
pub struct Options {
    /// What the loop is for.
    #[arg(long, value_enum, default_value = "green-tests")]
    template: Template,
    /// Who does the work. By default the API where its key is set, else the first agent program that is installed.
    #[arg(long, value_parser = Agent::parse, value_name = "AGENT")]
    agent: Option<Agent>,
}

/// Who does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agent {
    /// The Messages API; the key is in ANTHROPIC_API_KEY.
    Anthropic,
    /// A server on this machine that speaks chat completions (Ollama, llama.cpp, vLLM …).
    Local,
    Program(ProgramProfile),
}

impl Agent {
    /// Every agent by its name, programs in the order in which they are looked for.
    fn all() -> impl Iterator<Item = (&'static str, Self)> {
        let programs = ProgramProfile::ALL.into_iter().filter(|profile| *profile != ProgramProfile::Plain);
        let programs = programs.map(|profile| (profile.name(), Self::Program(profile)));
        [("anthropic", Self::Anthropic), ("local", Self::Local)].into_iter().chain(programs)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let known = Self::all().find(|(name, _)| *name == text).map(|(_, agent)| agent);
        known.ok_or_else(|| format!("one of: {}", Self::all().map(|(name, _)| name).collect::<Vec<_>>().join(", ")))
    }

    /// The line for loop.yaml; `None`: as the template has it.
    fn line(self) -> Option<String> {
        match self {
            Self::Anthropic => None,
            Self::Local => {
                Some(r#"{ backend: openai, base_url: "http://127.0.0.1:11434/v1", model: qwen3-coder }"#.to_owned())
            }
            Self::Program(profile) => Some(format!(r#"{{ backend: command, command: ["{}"] }}"#, profile.name())),
        }
    }

    /// Who works when nobody says.
    fn usual(has_key: bool, installed: impl Fn(&str) -> bool) -> Self {
        let program =
            |(name, agent): (&str, Self)| (matches!(agent, Self::Program(_)) && installed(name)).then_some(agent);
        if has_key { Self::Anthropic } else { Self::all().find_map(program).unwrap_or(Self::Anthropic) }
    }
}

/// A template with its agent put in.
fn declaration_text(template: Template, agent: Agent) -> String {
    let Some(line) = agent.line() else { return template.text().to_owned() };
    let put = |text: &str| match text.strip_prefix("  builder: ") {
        Some(_) => format!("  builder: {line}\n"),
        None => format!("{text}\n"),
    };
    template.text().lines().map(put).collect()
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
    /// From a vision and a PRD to delivered value.
    Vision,
}

impl Template {
    const fn text(self) -> &'static str {
        match self {
            Self::GreenTests => include_str!("../../assets/templates/green-tests.yaml"),
            Self::Benchmark => include_str!("../../assets/templates/benchmark.yaml"),
            Self::Extraction => include_str!("../../assets/templates/extraction.yaml"),
            Self::Research => include_str!("../../assets/templates/research.yaml"),
            Self::Security => include_str!("../../assets/templates/security.yaml"),
            Self::Vision => include_str!("../../assets/templates/vision.yaml"),
        }
    }

    /// What a loop of this kind reads besides its declaration.
    const fn documents(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Vision => &[("NORTHSTAR.md", VALUE_NORTHSTAR), ("VISION.md", VISION), ("PRD.md", PRD)],
            Self::GreenTests | Self::Benchmark | Self::Extraction | Self::Research | Self::Security => {
                &[("NORTHSTAR.md", NORTHSTAR)]
            }
        }
    }
}

const NORTHSTAR: &str = include_str!("../../assets/templates/NORTHSTAR.md");
const VALUE_NORTHSTAR: &str = include_str!("../../assets/templates/NORTHSTAR-value.md");
const VISION: &str = include_str!("../../assets/templates/VISION.md");
const PRD: &str = include_str!("../../assets/templates/PRD.md");

pub fn main(here: &Path, options: &Options) -> Outcome {
    let declaration = here.join("loop.yaml");
    let has_key = std::env::var_os("ANTHROPIC_API_KEY").is_some_and(|key| !key.is_empty());
    let agent = options.agent.unwrap_or_else(|| Agent::usual(has_key, |program| programs::find(program).is_ok()));
    if !write_new(&declaration, &declaration_text(options.template, agent))? {
        return Err(EngineError::usage(
            format!("{} exists already", declaration.display()),
            "edit it, or run `nightloop init` in another directory",
        ));
    }
    text::line(format!("wrote {}", declaration.display()));
    if let (None, Agent::Program(profile)) = (options.agent, agent) {
        text::line(format!("agent: {}, which is installed here (--agent chooses another)", profile.name()));
    }
    for (name, content) in options.template.documents() {
        let path = here.join(name);
        if write_new(&path, content)? {
            text::line(format!("wrote {}", path.display()));
        }
    }
    let own = match options.template {
        Template::Vision => "write VISION.md and PRD.md",
        Template::GreenTests | Template::Benchmark | Template::Extraction | Template::Research | Template::Security => {
            "make the goal and the checks your own"
        }
    };
    text::line(format!("next: {own}, then `nightloop doctor` and `nightloop run`"));
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
            for (_, agent) in Agent::all() {
                let parsed = loop_file::parse(&declaration_text(*template, agent), "loop.yaml");
                let parsed = parsed.unwrap_or_else(|e| panic!("{template:?}: {e}"));
                assert!(parsed.goal.is_some() && !parsed.criteria().is_empty(), "{template:?}");
                let (_, declared) = parsed.agents.iter().next().unwrap();
                assert_eq!(declared.backend == loop_file::BackendName::Anthropic, agent == Agent::Anthropic);
            }
        }
        for northstar in [NORTHSTAR, VALUE_NORTHSTAR] {
            assert!(!northstar::parse(northstar).unwrap().metrics.is_empty());
        }
    }

    #[test]
    fn the_key_comes_first_then_what_is_installed() {
        assert_eq!(Agent::usual(true, |_| true), Agent::Anthropic);
        assert_eq!(
            Agent::usual(false, |program| program == "codex" || program == "goose"),
            Agent::Program(ProgramProfile::Codex)
        );
        assert_eq!(Agent::usual(false, |_| false), Agent::Anthropic);
    }
}
