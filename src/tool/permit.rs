//! May this call run? One answer for the engine before it runs, and for `verify` afterwards.
//!
//! From the rules, the folded run and the stored reply alone; whether somebody is there to be asked is the engine's
//! concern. Invariant: the same facts give the same words, so that a forged rule or approval does not fit.

use serde_json::Value;

use super::access::Access;
use super::permission::{self, RuleError, Rules, Ruling};
use super::registry::{self, EffectClass};
use crate::machine::event::AskedBy;
use crate::machine::run::RunState;
use crate::model::decision::{Answer, MAX_TEXT, Request};
use crate::model::ids::Role;
use crate::model::loop_file::PermissionsDecl;

/// What the rules and people say about a call, in the words that are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permit {
    Run {
        rule: String,
    },
    Refuse {
        rule: String,
    },
    /// A person has to decide about exactly this command.
    Ask {
        rule: String,
        command: String,
    },
}

/// The rules of a run: what was declared, and what its operator had remembered when it began.
pub fn rules(state: &RunState) -> Result<Rules, RuleError> {
    let declared: &PermissionsDecl = &state.loop_file().permissions;
    Rules::of(declared, &state.started.remembered)
}

pub fn permit(state: &RunState, rules: &Rules, by: &AskedBy, tool: &str, input: &Value) -> Permit {
    if tool == registry::READ_OUTPUT {
        return Permit::Run { rule: "its own output".to_owned() };
    }
    let rule = match rules.decide(tool, input) {
        Ruling::Allowed { rule } => return Permit::Run { rule: format!("allow {rule}") },
        Ruling::Denied { rule } => return Permit::Refuse { rule: format!("deny {rule}") },
        Ruling::Ask { rule } => rule,
    };
    let command = permission::exact_text(input);
    if command.len() > MAX_TEXT {
        // What is approved must be all that runs.
        let rule = format!("ask {rule}: with {} bytes it is too long to be put before a person", command.len());
        return Permit::Refuse { rule };
    }
    // An answer counts for what was asked, and for nothing else.
    let same = |request: &Request| matches!(request, Request::Permission { command: asked, .. } if *asked == command);
    if let Some(decision) = state.operator.asked_by(by).filter(|decision| same(&decision.request)) {
        let answered = decision.answer.as_ref();
        let by = answered.map_or("nobody", |answered| answered.by.as_str());
        return match decision.closed_with() {
            Some(Answer::Allow | Answer::AllowAlways) => {
                Permit::Run { rule: format!("ask {rule}: allowed in {} by {by}", decision.id) }
            }
            _ => {
                let note = answered.and_then(|answered| answered.note.clone());
                let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
                Permit::Refuse { rule: format!("ask {rule}: denied in {} by {by}{note}", decision.id) }
            }
        };
    }
    // A critical call is asked about every time.
    let always = state.operator.always_allowed(tool, &command).filter(|_| !permission::is_critical(&rule));
    match always {
        Some(id) => Permit::Run { rule: format!("ask {rule}: always allowed since {id}") },
        None => Permit::Ask { rule, command },
    }
}

/// The name and the input of a tool call, as the model wrote them into the stored reply.
pub fn asked_for(message: &[u8], id: &str) -> Option<(String, Value)> {
    let message: Value = serde_json::from_slice(message).ok()?;
    let blocks = message.get("content")?.as_array()?;
    let block = blocks.iter().find(|block| block.get("id").and_then(Value::as_str) == Some(id))?;
    let name = block.get("name").and_then(Value::as_str)?;
    Some((name.to_owned(), block.get("input").cloned().unwrap_or(Value::Null)))
}

pub const fn access_of(role: Role) -> Access {
    if role.may_write() { Access::ReadWrite } else { Access::ReadOnly }
}

/// What repeating a call would do. Unknown tools run nothing, so repeating them is harmless.
pub fn effect_of(role: Role, name: &str) -> EffectClass {
    let known = registry::catalogue(access_of(role), true).into_iter().find(|tool| tool.name == name);
    known.map_or(EffectClass::Read, |tool| tool.effect)
}

pub const fn effect_name(effect: EffectClass) -> &'static str {
    match effect {
        EffectClass::Read => "read",
        EffectClass::Idempotent => "idempotent",
        EffectClass::Effect => "effect",
    }
}
