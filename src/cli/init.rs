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
    /// Who does the work. By default the API where its key is set, else the first agent program that is installed.
    #[arg(long, value_enum)]
    agent: Option<Agent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Agent {
    /// The Messages API; the key is in ANTHROPIC_API_KEY.
    Anthropic,
    /// A server on this machine that speaks chat completions (Ollama, llama.cpp, vLLM …).
    Local,
    Claude,
    Codex,
    Gemini,
    Opencode,
    Goose,
    Aider,
}

impl Agent {
    /// The programs that are looked for, in this order.
    const PROGRAMS: [Self; 6] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Goose, Self::Aider];

    /// The line for loop.yaml; `None`: as the template has it.
    const fn line(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => None,
            Self::Local => Some(r#"{ backend: openai, base_url: "http://127.0.0.1:11434/v1", model: qwen3-coder }"#),
            Self::Claude => Some(r#"{ backend: command, command: ["claude"] }"#),
            Self::Codex => Some(r#"{ backend: command, command: ["codex"] }"#),
            Self::Gemini => Some(r#"{ backend: command, command: ["gemini"] }"#),
            Self::Opencode => Some(r#"{ backend: command, command: ["opencode"] }"#),
            Self::Goose => Some(r#"{ backend: command, command: ["goose"] }"#),
            Self::Aider => Some(r#"{ backend: command, command: ["aider"] }"#),
        }
    }

    fn program(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Who works when nobody says.
    fn usual(has_key: bool, installed: impl Fn(&str) -> bool) -> Self {
        if has_key {
            return Self::Anthropic;
        }
        Self::PROGRAMS.into_iter().find(|agent| installed(&agent.program())).unwrap_or(Self::Anthropic)
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

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
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
    let has_key = std::env::var_os("ANTHROPIC_API_KEY").is_some_and(|key| !key.is_empty());
    let agent = options.agent.unwrap_or_else(|| Agent::usual(has_key, is_installed));
    if !write_new(&declaration, &declaration_text(options.template, agent))? {
        return Err(EngineError::usage(
            format!("{} exists already", declaration.display()),
            "edit it, or run `nightloop init` in another directory",
        ));
    }
    text::line(format!("wrote {}", declaration.display()));
    if options.agent.is_none() && agent != Agent::Anthropic {
        text::line(format!("agent: {}, which is installed here (--agent chooses another)", agent.program()));
    }
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
            for agent in Agent::value_variants() {
                let parsed = loop_file::parse(&declaration_text(*template, *agent), "loop.yaml");
                let parsed = parsed.unwrap_or_else(|e| panic!("{template:?}: {e}"));
                assert!(parsed.goal.is_some() && !parsed.criteria().is_empty(), "{template:?}");
                let (_, declared) = parsed.agents.iter().next().unwrap();
                assert_eq!(declared.backend == loop_file::BackendName::Anthropic, *agent == Agent::Anthropic);
            }
        }
        assert!(!northstar::parse(NORTHSTAR).unwrap().metrics.is_empty());
    }

    #[test]
    fn the_key_comes_first_then_what_is_installed() {
        assert_eq!(Agent::usual(true, |_| true), Agent::Anthropic);
        assert_eq!(Agent::usual(false, |program| program == "codex" || program == "goose"), Agent::Codex);
        assert_eq!(Agent::usual(false, |_| false), Agent::Anthropic);
    }
}
