//! What to be careful with before the result is believed or taken over.

use crate::machine::integrity;
use crate::machine::run::RunState;
use crate::machine::words;
use crate::model::decision::{Answer, Request};

use super::quoted;

pub(super) fn of(state: &RunState) -> Vec<String> {
    let mut risks = Vec::new();
    risks.push(match state.started.sandbox.as_str() {
        "none" => "No sandbox held the commands.".to_owned(),
        held => format!("The sandbox that held commands: {}.", quoted(held)),
    });
    for judged in state.operator.decisions.iter().filter(|decision| {
        matches!(decision.request, Request::Tampering { .. }) && matches!(decision.closed_with(), Some(Answer::Accept))
    }) {
        risks.push(format!("You accepted changed checks ({}): {}.", judged.id, quoted(&judged.request.gist())));
    }
    for raised in &state.operator.overrides {
        let (from, to) = (&raised.from, &raised.to);
        risks.push(format!("{} raised the limit for {} from {from} to {to}.", quoted(&raised.by), raised.dimension));
    }
    if state.denials.total > 0 {
        risks.push(format!("The rules denied {} tool calls of agents.", state.denials.total));
    }
    if let Some(words) = integrity::of(state).and_then(|integrity| integrity.words()) {
        risks.push(format!("{}.", quoted(&words)));
    }
    risks.extend(integrity::proves_nothing(state).into_iter().map(|id| quoted(&words::proves_nothing(&id))));
    for (iteration, undone) in &state.git.taken_back {
        risks.push(format!("Iteration {iteration} was taken back by {}.", quoted(&undone.by)));
    }
    if state.resumes > 0 {
        risks.push(format!("It was resumed {} times; each gap is in the time line.", state.resumes));
    }
    if let Some(facts) = &state.git.facts {
        let left = |what: &str, paths: &[String]| {
            (!paths.is_empty()).then(|| format!("{what}: {}.", quoted(&paths.join(", "))))
        };
        risks.extend(left("Left out of the commits because of their names", &facts.sensitive));
        risks.extend(left("Changed before the run, and not committed by it", &facts.foreign));
    }
    risks.extend(state.started.warnings.iter().map(|warning| quoted(warning)));
    risks
}
