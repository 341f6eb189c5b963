//! How much one agent call may use: its turns, tool calls and seconds in one conversation, and how many conversations.
//!
//! Role: the declared form, the defaults of each role, what is in force for a call. Not its role: counting, or what
//! follows when a limit is reached (`machine::handover`).
//!
//! Invariants: what a call was begun with is recorded with it, so that a later default changes nothing that was decided;
//! these limits lie inside those of the iteration and of the run, and raise none of them.

use serde::{Deserialize, Serialize};

use super::ids::Role;

/// A model whose window nobody knows is taken to hold this much. Where that is too much, its server says so, and the
/// call goes on in a fresh conversation all the same.
pub const ASSUMED_WINDOW: u64 = 128_000;
/// Conversations after the first one, where nobody says.
const CONTINUATIONS: u32 = 3;
/// Seconds for each turn that a role may take.
const SECONDS_PER_TURN: u64 = 60;
/// Tool calls for each turn that a role may take: models ask for several at once.
const CALLS_PER_TURN: u32 = 2;

/// Limits of a call as declared, for a role or for an agent. What is left out has its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallLimits {
    /// Replies in one conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Tool calls in one conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u32>,
    /// Seconds for one conversation, looked at between two turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Fresh conversations that may follow the first one, each with a handover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuations: Option<u32>,
    /// Tokens that the model can hold, where nightloop does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
}

/// Limits in force for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBounds {
    pub turns: u32,
    pub tool_calls: u32,
    pub seconds: u64,
    pub continuations: u32,
    /// Tokens that the model can hold; `None`: it is a program's own affair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Nobody knows the window: this is [`ASSUMED_WINDOW`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub window_assumed: bool,
}

/// How many turns a role has when nobody says: the table of the value playbook's requirements; who does the same work
/// in another playbook has the same.
const fn turns(role: Role) -> u32 {
    match role {
        Role::Builder | Role::Solver | Role::Author => 60,
        Role::Reasoner | Role::Evaluator | Role::Scout | Role::Skeptic | Role::Critic | Role::Qc => 40,
        Role::Researcher => 30,
        Role::Fixer => 25,
        Role::Classifier => 5,
    }
}

/// The window of the model behind a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    Known(u64),
    Unknown,
    /// A program keeps its own conversation.
    Own,
}

impl CallLimits {
    /// What is in force: as the role says, else as the agent says, else the role's default.
    pub fn in_force(role: Role, by_role: Option<&Self>, by_agent: Option<&Self>, window: Window) -> CallBounds {
        let none = Self::default();
        let (by_role, by_agent) = (by_role.unwrap_or(&none), by_agent.unwrap_or(&none));
        let turns = by_role.turns.or(by_agent.turns).unwrap_or(turns(role));
        let tool_calls = by_role.tool_calls.or(by_agent.tool_calls);
        let seconds = by_role.seconds.or(by_agent.seconds);
        let (window, window_assumed) = match (by_role.context.or(by_agent.context), window) {
            (_, Window::Own) => (None, false),
            (Some(declared), Window::Known(_) | Window::Unknown) => (Some(declared), false),
            (None, Window::Known(known)) => (Some(known), false),
            (None, Window::Unknown) => (Some(ASSUMED_WINDOW), true),
        };
        CallBounds {
            turns,
            tool_calls: tool_calls.unwrap_or_else(|| turns.saturating_mul(CALLS_PER_TURN)),
            seconds: seconds.unwrap_or_else(|| u64::from(turns).saturating_mul(SECONDS_PER_TURN)),
            continuations: by_role.continuations.or(by_agent.continuations).unwrap_or(CONTINUATIONS),
            window,
            window_assumed,
        }
    }

    /// What is wrong with it: the key, and what it may be.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let number = |key, value: Option<u64>, least: u64, most: u64| match value {
            Some(value) if !(least..=most).contains(&value) => {
                Err((key, format!("`{key}: {value}` is out of range: {least} to {most}")))
            }
            Some(_) | None => Ok(()),
        };
        number("turns", self.turns.map(u64::from), 1, 10_000)?;
        number("tool_calls", self.tool_calls.map(u64::from), 1, 100_000)?;
        number("seconds", self.seconds, 60, 604_800)?;
        number("continuations", self.continuations.map(u64::from), 0, 100)?;
        number("context", self.context, 4_000, 100_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_outweighs_its_agent_and_both_the_default() {
        let agent = CallLimits { turns: Some(7), seconds: Some(90), ..CallLimits::default() };
        let role = CallLimits { turns: Some(9), ..CallLimits::default() };
        let bounds = CallLimits::in_force(Role::Builder, Some(&role), Some(&agent), Window::Known(1_000));
        assert_eq!((bounds.turns, bounds.tool_calls, bounds.seconds), (9, 18, 90));
        let usual = CallLimits::in_force(Role::Builder, None, None, Window::Unknown);
        assert_eq!((usual.turns, usual.tool_calls, usual.seconds, usual.continuations), (60, 120, 3_600, 3));
        assert_eq!((usual.window, usual.window_assumed), (Some(ASSUMED_WINDOW), true));
        assert_eq!(CallLimits::in_force(Role::Fixer, None, None, Window::Own).window, None);
    }

    #[test]
    fn a_limit_has_a_range() {
        assert!(CallLimits { turns: Some(0), ..CallLimits::default() }.check().is_err());
        assert!(CallLimits { context: Some(1), ..CallLimits::default() }.check().is_err());
        assert!(CallLimits { continuations: Some(0), ..CallLimits::default() }.check().is_ok());
    }
}
