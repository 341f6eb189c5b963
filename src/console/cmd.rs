//! What the pure part of the console asks the shell to do, and what comes back.

use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::command::Command;
use crate::machine::run::RunState;
use crate::model::digest::Digest;
use crate::model::ids::RunId;
use crate::model::safe::Safe;

use super::screens::welcome::Choice;

/// Something for the shell to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Cmd {
    /// Tell the run.
    Order(Command),
    /// Read something that is not in memory. The answer is a [`Loaded`].
    Load(Load),
    /// To the clipboard of the terminal, and to a file.
    Copy {
        what: &'static str,
        text: String,
    },
    /// Open a file of the workspace in $EDITOR, to look at.
    OpenFile(PathBuf),
    /// Open a text in $EDITOR; the result comes back as [`Loaded::Edited`].
    Edit {
        purpose: EditPurpose,
        name: String,
        text: String,
    },
    /// Start the run that the ready screen shows.
    Start,
    /// Watch another run.
    Watch(RunId),
    Detach,
    /// Leave at once (nothing runs, or nothing of ours).
    Leave,
    Suspend,
    Redraw,
    SetMouse(bool),
    NextTheme,
    /// Move a replay.
    Replay(ReplayMove),
    /// Tell an operator who looks elsewhere.
    Notify {
        title: Safe,
        body: Safe,
    },
    /// What the terminal's title says.
    Title(Safe),
    /// A shell in the workspace, until it ends.
    Shell,
    /// What was chosen on the welcome screen.
    Choose(Choice),
}

/// What an edited text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditPurpose {
    /// The document of a refinement.
    Refinement,
    /// The text of an answer.
    Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayMove {
    Toggle,
    Forward,
    Back,
    Faster,
    Slower,
}

/// Something to read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Load {
    /// A blob of the run.
    Blob(Digest),
    /// AGENTS.md of the workspace as it is now.
    Learnings,
    /// A file of the evidence, by its path relative to the workspace.
    Evidence(String),
    /// The run as it was after this event.
    Moment(u64),
    /// `verify` of this run.
    Verify,
    /// All runs of this machine.
    Runs,
}

/// What was read.
#[derive(Debug, Clone)]
pub enum Loaded {
    Blob(Digest, Result<Arc<[u8]>, Safe>),
    Learnings(Result<Arc<[u8]>, Safe>),
    Evidence(String, Result<Arc<[u8]>, Safe>),
    Moment(u64, Box<RunState>),
    Verified(Verified),
    Runs(Vec<RunRow>),
    Edited {
        purpose: EditPurpose,
        text: Option<String>,
    },
    /// Something could not be read or done.
    Failed(Safe),
    /// Something was done: a line for the operator.
    Done(Safe),
}

/// What `verify` said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub events: u64,
    pub files: usize,
    pub verdict: VerifiedAs,
    /// Place and what is wrong with it.
    pub problems: Vec<(Safe, Safe)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifiedAs {
    Ok,
    Tampered,
    Incomplete,
}

/// One run of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    pub run: RunId,
    pub workspace: Safe,
    pub name: Safe,
    /// The state, the exit, or why it cannot be read.
    pub state: Safe,
    pub running: bool,
    pub waiting: usize,
    pub iterations: u64,
    pub residual: Option<Safe>,
    /// `None`: unknown.
    pub cost: Option<Safe>,
    pub started: Safe,
}
