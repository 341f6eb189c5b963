//! Role prompts: texts from `prompts/`, with the variables they declare and no others.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Environment, UndefinedBehavior, Value};

use crate::model::criterion::Criterion;
use crate::model::ids::Role;
use crate::model::report;

/// A prompt that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the prompt `{name}` cannot be used: {why}")]
pub struct PromptError {
    pub name: String,
    pub why: String,
}

/// The shipped text of a role's prompt.
const fn shipped(role: Role) -> &'static str {
    match role {
        Role::Scout => include_str!("../../prompts/scout.md"),
        Role::Solver => include_str!("../../prompts/solver.md"),
        Role::Skeptic => include_str!("../../prompts/skeptic.md"),
    }
}

/// Renders a role's system prompt.
pub fn render(role: Role, criteria: &[Criterion]) -> Result<String, PromptError> {
    let judged: Vec<String> =
        criteria.iter().filter(|c| c.is_judged()).map(|c| format!("{}: {}", c.id, c.text)).collect();
    let variables =
        BTreeMap::from([("report_tool", Value::from(report::tool_name(role))), ("judged", Value::from(judged))]);
    render_text(role.name(), shipped(role), &variables)
}

fn render_text(name: &str, text: &str, variables: &BTreeMap<&str, Value>) -> Result<String, PromptError> {
    let error = |why: String| PromptError { name: name.to_owned(), why };
    let (declared, body) = split(text).ok_or_else(|| error("its front matter names no variables".into()))?;
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(100_000));
    let template = environment.template_from_str(body).map_err(|e| error(e.to_string()))?;
    let used: BTreeSet<String> = template.undeclared_variables(false).into_iter().collect();
    if used != declared {
        return Err(error(format!("it declares {declared:?} but uses {used:?}")));
    }
    let context: BTreeMap<&str, Value> = variables
        .iter()
        .filter(|(key, _)| declared.contains(**key))
        .map(|(key, value)| (*key, value.clone()))
        .collect();
    template.render(context).map_err(|e| error(e.to_string()))
}

/// Front matter `variables: [a, b]` between `---` lines, then the body.
fn split(text: &str) -> Option<(BTreeSet<String>, &str)> {
    let rest = text.strip_prefix("---\n")?;
    let (head, body) = rest.split_once("\n---\n")?;
    let list = head.trim().strip_prefix("variables:")?.trim().strip_prefix('[')?.strip_suffix(']')?;
    let names = list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    Some((names.collect(), body))
}

/// The goal, restated without changing its meaning; `number` is 1 to 5.
pub fn paraphrase(goal: &str, number: u8) -> String {
    match number {
        1 => format!("The work counts as finished once this holds, and not before: {goal}"),
        2 => format!("Someone else describes the task like this: \"{goal}\" Judge it on those terms."),
        3 => format!("It would be a mistake to stop while this is not yet true: {goal}"),
        4 => format!("Assume that the goal is NOT reached. Look for what disproves that. The goal: {goal}"),
        _ => format!("In short, what the owner of this workspace asked for is this. {goal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::criterion::Proof;

    /// Beside goal, criteria and learnings an agent may get at most this much text from us.
    const OWN_TEXT_LIMIT: usize = 2048;

    #[test]
    fn every_role_prompt_renders_within_its_limit_and_names_its_tool() {
        for role in Role::ALL {
            let text = render(role, &[]).unwrap();
            assert!(text.len() <= OWN_TEXT_LIMIT, "{role}: {} bytes", text.len());
            assert!(text.contains(report::tool_name(role)), "{role}");
            assert!(!text.contains("{{") && !text.contains("---"), "{text}");
        }
    }

    #[test]
    fn judged_criteria_are_listed_for_the_skeptic_only() {
        let criterion =
            Criterion { id: "readable".into(), text: "It reads well.".into(), proof: Proof::Judged, protects: vec![] };
        let criteria = [criterion];
        assert!(render(Role::Skeptic, &criteria).unwrap().contains("- readable: It reads well."));
        assert!(!render(Role::Solver, &criteria).unwrap().contains("readable"));
    }

    #[test]
    fn undeclared_variables_are_refused() {
        let error = render_text("x", "---\nvariables: []\n---\n{{ secret }}", &BTreeMap::new()).unwrap_err();
        assert!(error.why.contains("secret"), "{error}");
    }

    #[test]
    fn paraphrases_differ_and_keep_the_goal() {
        let texts: BTreeSet<String> = (1..=5).map(|n| paraphrase("Ship it.", n)).collect();
        assert_eq!(texts.len(), 5);
        assert!(texts.iter().all(|text| text.contains("Ship it.")));
    }
}
