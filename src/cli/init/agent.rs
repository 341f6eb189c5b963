//! Who does the work, as `--agent` names it and as loop.yaml declares it.

use crate::model::loop_file::ProgramProfile;

/// As the templates have it.
pub const USUAL: &str = "{ backend: anthropic, model: claude-sonnet-5-5 }     # key: ANTHROPIC_API_KEY";

/// Who does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// The Messages API; the key is in ANTHROPIC_API_KEY.
    Anthropic,
    /// A server on this machine that speaks chat completions (Ollama, llama.cpp, vLLM …).
    Local,
    Program(ProgramProfile),
}

impl Agent {
    /// Every agent by its name, programs in the order in which they are looked for.
    pub fn all() -> impl Iterator<Item = (&'static str, Self)> {
        let programs = ProgramProfile::ALL.into_iter().filter(|profile| *profile != ProgramProfile::Plain);
        let programs = programs.map(|profile| (profile.name(), Self::Program(profile)));
        [("anthropic", Self::Anthropic), ("local", Self::Local)].into_iter().chain(programs)
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        let known = Self::all().find(|(name, _)| *name == text).map(|(_, agent)| agent);
        known.ok_or_else(|| format!("one of: {}", Self::all().map(|(name, _)| name).collect::<Vec<_>>().join(", ")))
    }

    /// The line for loop.yaml; `None`: as the template has it.
    pub fn line(self) -> Option<String> {
        match self {
            Self::Anthropic => None,
            Self::Local => {
                Some(r#"{ backend: openai, base_url: "http://127.0.0.1:11434/v1", model: qwen3-coder }"#.to_owned())
            }
            Self::Program(profile) => Some(format!(r#"{{ backend: command, command: ["{}"] }}"#, profile.name())),
        }
    }

    /// Who works when nobody says.
    pub fn usual(has_key: bool, installed: impl Fn(&str) -> bool) -> Self {
        let program =
            |(name, agent): (&str, Self)| (matches!(agent, Self::Program(_)) && installed(name)).then_some(agent);
        if has_key { Self::Anthropic } else { Self::all().find_map(program).unwrap_or(Self::Anthropic) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
