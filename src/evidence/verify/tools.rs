//! Did every tool call that had an effect follow from the rules, or from a person's word?
//!
//! Made again from the stored reply: what the model asked for is in a blob, what was declared and remembered is in the
//! first event, what people said is folded. Journals from before there were such rules are left alone.

use crate::journal::Blobs;
use crate::machine::call::{CallState, ToolPhase};
use crate::machine::event::{AskedBy, CallEvent, Event, ToolFinished, ToolIntended, ToolOutcomeKind};
use crate::machine::run::RunState;
use crate::model::digest::Digest;
use crate::model::learnings::flatten;
use crate::tool::permission::Rules;
use crate::tool::registry::EffectClass;

use crate::tool::permit::{self, Permit};

/// Since this reducer the rules are pure and complete enough to be asked again.
const FIRST_REDUCER: u32 = 3;

pub(super) struct Tools {
    rules: Option<Rules>,
}

impl Tools {
    pub(super) fn new() -> Self {
        Self { rules: None }
    }

    pub(super) fn check(&mut self, state: &RunState, blobs: &Blobs, event: &Event) -> Result<(), String> {
        if state.started.reducer_version < FIRST_REDUCER {
            return Ok(());
        }
        let call = state.call.as_ref();
        match (event, call) {
            (Event::Call(CallEvent::ToolIntended(intended)), Some(call)) => check_intent(call, blobs, intended),
            (Event::Call(CallEvent::ToolFinished(finished)), Some(call))
                if finished.outcome != ToolOutcomeKind::Refused =>
            {
                self.check_result(state, call, blobs, finished)
            }
            _ => Ok(()),
        }
    }

    fn check_result(
        &mut self,
        state: &RunState,
        call: &CallState,
        blobs: &Blobs,
        finished: &ToolFinished,
    ) -> Result<(), String> {
        let Some(tool) = call.tools.iter().find(|tool| tool.tool_use.id == finished.id) else { return Ok(()) };
        if tool.tool_use.malformed {
            return Err("a malformed call was run".to_owned());
        }
        let ToolPhase::Intended { rule, .. } = &tool.phase else { return Ok(()) };
        let (name, input) = asked_for(call, blobs, &finished.id)?;
        if permit::effect_of(call.role(), &name) == EffectClass::Read {
            return Ok(());
        }
        if self.rules.is_none() {
            self.rules = Some(permit::rules(state).map_err(|e| e.to_string())?);
        }
        let Some(rules) = &self.rules else { return Ok(()) };
        let by = AskedBy { call: finished.call.clone(), turn: call.turn, tool: finished.id.clone() };
        match permit::permit(state, rules, &by, &name, &input) {
            Permit::Run { rule: follows } if follows == *rule => Ok(()),
            Permit::Run { rule: follows } => {
                Err(format!("it ran by the rule `{rule}`, but from the facts follows `{follows}`"))
            }
            Permit::Refuse { rule } => Err(format!("it ran although the rules refuse it: {rule}")),
            Permit::Ask { rule, .. } => Err(format!("it ran although nobody allowed it: ask {rule}")),
        }
    }
}

/// What is announced is what the model asked for.
fn check_intent(call: &CallState, blobs: &Blobs, intended: &ToolIntended) -> Result<(), String> {
    let Some(tool) = call.tools.iter().find(|tool| tool.tool_use.id == intended.id) else {
        return Err("the reply before it asks for no such call".to_owned());
    };
    if tool.phase != ToolPhase::Asked {
        return Err("it was announced before".to_owned());
    }
    let (name, input) = asked_for(call, blobs, &intended.id)?;
    if name != tool.tool_use.name || flatten(&name) != intended.name {
        return Err(format!("the stored reply asks for another tool: {}", flatten(&name)));
    }
    if Digest::of(input.to_string().as_bytes()) != intended.input {
        return Err("its input is not the one in the stored reply".to_owned());
    }
    Ok(())
}

fn asked_for(call: &CallState, blobs: &Blobs, id: &str) -> Result<(String, serde_json::Value), String> {
    let reply = call.reply.as_ref().ok_or("a tool call without a reply")?;
    let message = blobs.get(&reply.message).map_err(|e| e.to_string())?;
    permit::asked_for(&message, id).ok_or_else(|| "the stored reply does not ask for this call".to_owned())
}
