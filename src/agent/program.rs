//! An agent program: a command line tool with a model and tools of its own, asked for one turn.
//!
//! Role: what such a program is given, what comes back, and what it may ask meanwhile.
//! Not its role: starting processes, journaling, deciding. The engine does that.
//!
//! Invariant: a turn is [`Finished`] only when the program said so or ended with success; anything less is
//! a [`CallError`](super::CallError).

use std::path::PathBuf;

use tokio::sync::oneshot;

use crate::model::decimal::Exact;

use super::message::Usage;

/// One turn to be done.
#[derive(Debug, Clone)]
pub struct Task {
    /// The role's prompt.
    pub system: String,
    /// What to do: the first message, or the next one of a conversation that goes on.
    pub prompt: String,
    /// The program's own name for a conversation to go on in.
    pub session: Option<String>,
    pub model: Option<String>,
    pub workspace: PathBuf,
    /// Must the workspace stay as it is?
    pub read_only: bool,
    /// Does our sandbox hold the program? Then a sandbox or a mode of its own would only be in the way: inside ours some
    /// of them fail, and others keep it from reading and reporting.
    pub caged: bool,
    /// Our tools, offered as an MCP server.
    pub offer: Option<Offer>,
}

impl Task {
    /// Is the program's own word all that keeps it from writing?
    pub fn only_told(&self) -> bool {
        self.read_only && !self.caged
    }
}

/// An MCP server that the program may start to reach our tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The name of the server, as the program's own tool names may show it.
    pub name: String,
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
}

/// What a session had used before a turn that goes on in it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Earlier {
    pub usage: Usage,
    /// As far as it is known.
    pub cost_usd: Option<Exact>,
}

/// A finished turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Finished {
    /// Its last words.
    pub text: String,
    pub session: Option<String>,
    pub model: Option<String>,
    pub usage: Usage,
    /// What the program says it cost.
    pub cost_usd: Option<Exact>,
}

/// Something a program needs an answer to before it goes on.
#[derive(Debug)]
pub struct Ask {
    /// Which of its tools it wants to use, in its own words.
    pub tool: String,
    /// What exactly it would do.
    pub what: String,
    /// The same as our rules name it, as far as the program tells it; empty where it does not.
    pub deeds: Vec<Deed>,
    pub reply: oneshot::Sender<Allowed>,
}

/// Something that a program would do, as permission rules name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    Shell(String),
    Read(String),
    Write(String),
    /// A tool of an MCP server.
    Mcp {
        server: String,
        tool: String,
    },
}

/// The answer. A dropped sender means no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    Once,
    Always,
    No,
}
