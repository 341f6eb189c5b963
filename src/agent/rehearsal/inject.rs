//! Faults that are asked for from outside the script: at the Nth call of a run, whoever makes it.
//!
//! Role: count calls, say which one is struck by what, remember where that was.
//! Not its role: playing the fault ([`super::server`]), choosing the numbers.
//!
//! Invariants: each planned fault strikes once; trying again after a fault is no new call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::script::{Call, CallInput, Fault, Turn};
use super::select::{INJECTED, Position};

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    RateLimit,
    Overloaded,
    ServerError,
    Cut,
    Stall,
    BadJson,
    Refusal,
    SpendLimit,
    ContextFull,
    WrongReport,
}

impl FaultKind {
    pub const ALL: [Self; 10] = [
        Self::RateLimit,
        Self::Overloaded,
        Self::ServerError,
        Self::Cut,
        Self::Stall,
        Self::BadJson,
        Self::Refusal,
        Self::SpendLimit,
        Self::ContextFull,
        Self::WrongReport,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::RateLimit => "429",
            Self::Overloaded => "529",
            Self::ServerError => "500",
            Self::Cut => "cut",
            Self::Stall => "stall",
            Self::BadJson => "bad-json",
            Self::Refusal => "refusal",
            Self::SpendLimit => "spend-limit",
            Self::ContextFull => "context-full",
            Self::WrongReport => "wrong-report",
        }
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::RateLimit => "too many requests, wait 30 s",
            Self::Overloaded => "the service is overloaded",
            Self::ServerError => "a server error",
            Self::Cut => "the reply breaks off",
            Self::Stall => "the reply stops coming",
            Self::BadJson => "a tool call that is not JSON",
            Self::Refusal => "the model refuses",
            Self::SpendLimit => "the account's limit is reached",
            Self::ContextFull => "the conversation is full",
            Self::WrongReport => "a report that does not fit",
        }
    }

    /// The fault of the connection, where it is one.
    pub(super) fn wire(self) -> Option<Fault> {
        let http = |status, retry_after, message: Option<&str>| Fault::Http {
            status,
            retry_after,
            kind: None,
            code: None,
            message: message.map(str::to_owned),
        };
        match self {
            Self::RateLimit => Some(http(429, Some(30), None)),
            Self::Overloaded => Some(http(529, None, None)),
            Self::ServerError => Some(http(500, None, None)),
            Self::SpendLimit => {
                Some(http(400, None, Some("You have reached your specified workspace API usage limits (rehearsal).")))
            }
            Self::Cut => Some(Fault::CutAfterBytes(400)),
            // Longer than anybody waits; the reader gives up first.
            Self::Stall => Some(Fault::Stall { ms: 3_600_000 }),
            Self::BadJson | Self::Refusal | Self::ContextFull | Self::WrongReport => None,
        }
    }

    /// The reply of the model, where the fault is in what it says. `tools` are those of the request.
    pub(super) fn turn(self, tools: &[String]) -> Turn {
        let call = |tool: Option<&String>, input| {
            let tool = tool.cloned().unwrap_or_else(|| "no_such_tool".to_owned());
            Turn { calls: vec![Call { tool, input }], ..Turn::default() }
        };
        let says = |text: &str, stop: &str| Turn {
            text: Some(text.to_owned()),
            stop: Some(stop.to_owned()),
            ..Turn::default()
        };
        match self {
            Self::BadJson => call(tools.first(), CallInput::Raw("{\"command\": \"ls".to_owned())),
            // A role's report is its last tool.
            Self::WrongReport => call(tools.last(), CallInput::Json(serde_json::json!({"nonsense": true}))),
            Self::Refusal => says("I will not do that.", "refusal"),
            Self::ContextFull => says("", "model_context_window_exceeded"),
            Self::RateLimit | Self::Overloaded | Self::ServerError | Self::Cut | Self::Stall | Self::SpendLimit => {
                Turn { text: Some("This reply breaks off.".repeat(20)), ..Turn::default() }
            }
        }
    }
}

/// A fault at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    pub kind: FaultKind,
    /// From 1, over all roles.
    pub call: u64,
}

/// A fault that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Struck {
    pub planned: Planned,
    pub role: String,
    pub iteration: Option<u64>,
    /// Replies in the conversation before, as the engine counts them.
    pub turn: usize,
}

/// Where faults strike. Shared by all servers of a run.
#[derive(Debug, Default)]
pub struct Injector(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    left: Vec<Planned>,
    calls: u64,
    struck: Vec<Struck>,
    /// A call that failed and will be tried again.
    again: Option<Position>,
}

impl Injector {
    pub fn new(planned: Vec<Planned>) -> Self {
        Self(Mutex::new(State { left: planned, ..State::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn struck(&self) -> Vec<Struck> {
        self.state().struck.clone()
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// A request has come: is it struck?
    pub(super) fn strike(&self, at: &Position) -> Option<FaultKind> {
        let mut state = self.state();
        if state.again.take_if(|again| again == at).is_none() {
            state.calls += 1;
        }
        let calls = state.calls;
        let index = state.left.iter().position(|planned| planned.call == calls)?;
        let planned = state.left.remove(index);
        if planned.kind.wire().is_some() {
            state.again = Some(at.clone());
        }
        let turn = at.turn + at.injected;
        state.struck.push(Struck { planned, role: at.role.clone(), iteration: at.iteration, turn });
        Some(planned.kind)
    }
}

/// A position whose tool ids are known again as injected.
pub(super) fn marked(at: &Position) -> Position {
    let mark = INJECTED.trim_start_matches("toolu_").trim_end_matches('_');
    // Ids are made of the call where there is one: without it they begin with the mark.
    Position { role: format!("{mark}_{}_{}", at.injected, at.role), call: None, ..at.clone() }
}
