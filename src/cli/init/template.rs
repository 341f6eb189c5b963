//! The loops that `nightloop init` knows, and what each of them reads besides its declaration.

use clap::ValueEnum;

use super::agent::Agent;

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
    /// The items of a prd.json, one by one (for an existing one: --from).
    Prd,
    /// An author and a critic, until no serious issue is left.
    Review,
}

const NORTHSTAR: &str = include_str!("../../../assets/templates/NORTHSTAR.md");
const VALUE_NORTHSTAR: &str = include_str!("../../../assets/templates/NORTHSTAR-value.md");
const VISION: &str = include_str!("../../../assets/templates/VISION.md");
const PRD_TEXT: &str = include_str!("../../../assets/templates/PRD.md");
const PRD_ITEMS: &str = include_str!("../../../assets/templates/prd.json");

impl Template {
    const fn text(self) -> &'static str {
        match self {
            Self::GreenTests => include_str!("../../../assets/templates/green-tests.yaml"),
            Self::Benchmark => include_str!("../../../assets/templates/benchmark.yaml"),
            Self::Extraction => include_str!("../../../assets/templates/extraction.yaml"),
            Self::Research => include_str!("../../../assets/templates/research.yaml"),
            Self::Security => include_str!("../../../assets/templates/security.yaml"),
            Self::Vision => include_str!("../../../assets/templates/vision.yaml"),
            Self::Prd => include_str!("../../../assets/templates/prd.yaml"),
            Self::Review => include_str!("../../../assets/templates/review.yaml"),
        }
    }

    /// The declaration with its agent put in.
    pub fn declaration(self, agent: Agent) -> String {
        let Some(line) = agent.line() else { return self.text().to_owned() };
        let put = |text: &str| match text.strip_prefix("  builder: ") {
            Some(_) => format!("  builder: {line}\n"),
            None => format!("{text}\n"),
        };
        self.text().lines().map(put).collect()
    }

    /// What a loop of this kind reads besides its declaration.
    pub const fn documents(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Vision => &[("NORTHSTAR.md", VALUE_NORTHSTAR), ("VISION.md", VISION), ("PRD.md", PRD_TEXT)],
            Self::Prd => &[("prd.json", PRD_ITEMS)],
            Self::Review => &[],
            Self::GreenTests | Self::Benchmark | Self::Extraction | Self::Research | Self::Security => {
                &[("NORTHSTAR.md", NORTHSTAR)]
            }
        }
    }

    /// What is left to do by hand.
    pub const fn to_do(self) -> &'static str {
        match self {
            Self::Vision => "write VISION.md and PRD.md",
            Self::Prd => "write prd.json, make the check your own",
            Self::GreenTests | Self::Benchmark | Self::Extraction | Self::Research | Self::Security | Self::Review => {
                "make the goal and the checks your own"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::learnings::SpecVersion;
    use crate::model::prd::Prd;
    use crate::model::{loop_file, northstar};

    #[test]
    fn every_template_is_a_valid_declaration() {
        for template in Template::value_variants() {
            for (_, agent) in Agent::all() {
                let parsed = loop_file::parse(&template.declaration(agent), "loop.yaml");
                let parsed = parsed.unwrap_or_else(|e| panic!("{template:?}: {e}"));
                assert!(parsed.goal.is_some() && !parsed.criteria().is_empty(), "{template:?}");
                let (_, declared) = parsed.agents.iter().next().unwrap();
                assert_eq!(declared.backend == loop_file::BackendName::Anthropic, agent == Agent::Anthropic);
            }
        }
    }

    /// Nothing that a loop needs is left for the operator to find out.
    #[test]
    fn every_template_brings_what_it_reads() {
        for template in Template::value_variants() {
            let parsed = loop_file::parse(template.text(), "loop.yaml").unwrap();
            let brings =
                |name: &str| template.documents().iter().find(|(file, _)| *file == name).map(|(_, text)| *text);
            let northstar = brings(parsed.northstar_file());
            assert_eq!(northstar.is_some(), parsed.spec() == SpecVersion::V2, "{template:?}");
            assert!(northstar.is_none_or(|text| !northstar::parse(text).unwrap().metrics.is_empty()));
            if parsed.playbook == loop_file::Playbook::Prd {
                let prd = Prd::read(brings(&parsed.prd().file).unwrap().as_bytes()).unwrap();
                assert_eq!(prd.counts().passing, 0);
                let attempts = u64::from(prd.counts().all * loop_file::LOOPS_PER_ITEM);
                assert!(parsed.budget.max_iterations.is_some_and(|most| most >= attempts));
            }
        }
    }

    #[test]
    fn the_usual_agent_is_the_one_of_the_templates() {
        let line = format!("  builder: {}\n", super::super::agent::USUAL);
        assert!(Template::GreenTests.text().contains(&line) && Template::Prd.text().contains(&line));
    }

    /// The detours that stand in the template as comments can be taken as they are.
    #[test]
    fn commented_detours_are_right_when_uncommented() {
        for template in [Template::Prd, Template::Review] {
            let text: String = template
                .text()
                .lines()
                .map(|line| {
                    match line
                        .strip_prefix("  # ")
                        .filter(|rest| rest.starts_with("detours:") || rest.starts_with("  - {"))
                    {
                        Some(rest) => format!("  {rest}\n"),
                        None => format!("{line}\n"),
                    }
                })
                .collect();
            let parsed = loop_file::parse(&text, "loop.yaml").unwrap_or_else(|e| panic!("{template:?}: {e}"));
            assert!(!parsed.detours().is_empty(), "{template:?}");
        }
    }
}
