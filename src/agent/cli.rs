//! Agent programs as we know them: what to start for one turn, and how to read what they print.
//!
//! Role: one profile per program (its command line, its stream, its faults), behind the same few functions.
//! Not its role: starting, ending or sandboxing processes, journaling, waiting. The engine does that.
//!
//! Invariants:
//! * A flag that the operator gave is neither repeated nor dropped; prompt text never reaches a shell.
//! * A turn is [`Finished`] only when the program said that it had finished and ended with code 0, as its
//!   profile defines it. Text that a model wrote decides nothing as long as the turn is finished.
//! * No bytes make the [`Reader`] panic or grow without limit.

mod acts;
mod aider;
mod argv;
mod claude;
mod codex;
mod fault;
mod gemini;
mod goose;
mod lines;
mod opencode;
mod plain;
mod report;
mod reset;
mod turn;

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod invocation_tests;
#[cfg(test)]
mod reader_tests;

use crate::model::act::Act;
use crate::model::decimal::Exact;
use crate::model::loop_file::{ProgramProfile, PromptBy};

use super::error::CallError;
use super::message::Usage;
use super::program::{Earlier, Finished, Task};

pub use report::{fenced_report, unreadable_report};

/// What to start for one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    pub argv: Vec<String>,
    /// What to write to its standard input before closing it. None: nothing to read there.
    pub stdin: Option<Vec<u8>>,
    /// Variables to set besides the usual ones.
    pub env: Vec<(String, String)>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// How `nightloop doctor` looks at a program without spending anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkup {
    /// Arguments after the program's name that print its version.
    pub version_argv: Vec<&'static str>,
    /// Files, relative to HOME, of which one is there when somebody signed in.
    pub signed_in_files: &'static [&'static str],
    /// Variables of which one is enough to be signed in.
    pub signed_in_variables: &'static [&'static str],
    /// Arguments after the program's name that say whether it is signed in, where it can.
    pub status_argv: Option<Vec<&'static str>>,
}

/// What is fixed about a program.
pub(crate) struct Facts {
    pub own_folders: &'static [&'static str],
    pub key_variables: &'static [&'static str],
    pub takes_tools: bool,
    pub signed_in_files: &'static [&'static str],
    pub version: &'static [&'static str],
    pub status: Option<&'static [&'static str]>,
    /// How an operator signs in.
    pub sign_in: &'static str,
}

fn facts(profile: ProgramProfile) -> &'static Facts {
    match profile {
        ProgramProfile::Claude => &claude::FACTS,
        ProgramProfile::Codex => &codex::FACTS,
        ProgramProfile::Gemini => &gemini::FACTS,
        ProgramProfile::Opencode => &opencode::FACTS,
        ProgramProfile::Goose => &goose::FACTS,
        ProgramProfile::Aider => &aider::FACTS,
        ProgramProfile::Plain => &plain::FACTS,
    }
}

/// What to start so that the program does `task`. `declared` is the operator's own command line.
/// The error says what is wrong with it and what to do.
pub fn invocation(
    profile: ProgramProfile,
    declared: &[String],
    prompt_by: Option<PromptBy>,
    task: &Task,
) -> Result<Invocation, String> {
    let line = argv::Line::new(declared, prompt_by, task)?;
    let invocation = match profile {
        ProgramProfile::Claude => claude::invocation(line, task),
        ProgramProfile::Codex => codex::invocation(line, task),
        ProgramProfile::Gemini => gemini::invocation(line, task),
        ProgramProfile::Opencode => opencode::invocation(line, task),
        ProgramProfile::Goose => goose::invocation(line, task),
        ProgramProfile::Aider => aider::invocation(line, task),
        ProgramProfile::Plain => plain::invocation(line, task),
    }?;
    argv::check(&invocation)?;
    Ok(invocation)
}

/// Folders of its own that the program must be able to write, relative to HOME.
pub fn own_folders(profile: ProgramProfile) -> &'static [&'static str] {
    facts(profile).own_folders
}

/// Environment variables it is usually signed in with. Never passed unless declared.
pub fn key_variables(profile: ProgramProfile) -> &'static [&'static str] {
    facts(profile).key_variables
}

/// Can it be given our tools on its command line? Else its report comes as a fenced JSON block.
pub fn takes_tools(profile: ProgramProfile) -> bool {
    facts(profile).takes_tools
}

/// How to look at the program without spending.
pub fn checkup(profile: ProgramProfile) -> Checkup {
    let facts = facts(profile);
    Checkup {
        version_argv: facts.version.to_vec(),
        signed_in_files: facts.signed_in_files,
        signed_in_variables: facts.key_variables,
        status_argv: facts.status.map(<[_]>::to_vec),
    }
}

/// Reads a program's standard output as it comes.
pub struct Reader {
    profile: ProgramProfile,
    lines: lines::Lines,
    turn: turn::Turn,
    stream: Stream,
}

/// What one profile remembers from line to line.
enum Stream {
    Claude(claude::Stream),
    Codex(codex::Stream),
    Gemini(gemini::Stream),
    Opencode,
    Goose(goose::Stream),
    Aider(aider::Stream),
    Plain,
}

impl Reader {
    pub fn new(profile: ProgramProfile) -> Self {
        let stream = match profile {
            ProgramProfile::Claude => Stream::Claude(claude::Stream::default()),
            ProgramProfile::Codex => Stream::Codex(codex::Stream::default()),
            ProgramProfile::Gemini => Stream::Gemini(gemini::Stream::default()),
            ProgramProfile::Opencode => Stream::Opencode,
            ProgramProfile::Goose => Stream::Goose(goose::Stream::default()),
            ProgramProfile::Aider => Stream::Aider(aider::Stream::default()),
            ProgramProfile::Plain => Stream::Plain,
        };
        Self { profile, lines: lines::Lines::default(), turn: turn::Turn::default(), stream }
    }

    /// The turn goes on in a session that has used this much before: some programs count it again.
    #[must_use]
    pub fn after(mut self, earlier: Earlier) -> Self {
        self.turn.earlier = earlier;
        self
    }

    /// The model that the program says it uses.
    pub fn model(&self) -> Option<&str> {
        self.turn.model.as_deref()
    }

    /// Takes what came, in whatever pieces.
    pub fn push(&mut self, bytes: &[u8], on_act: &mut dyn FnMut(Act)) {
        let Self { lines, turn, stream, .. } = self;
        lines.push(bytes, &mut |line| take(stream, turn, line, on_act));
    }

    /// Tokens so far.
    pub fn usage(&self) -> &Usage {
        &self.turn.usage
    }

    /// What it has cost so far, if the program says so.
    pub fn cost_usd(&self) -> Option<Exact> {
        self.turn.cost_usd
    }

    /// The program has ended. `stderr` may be all of it; only its end is looked at.
    pub fn finish(self, exit: Exit, stderr: &[u8]) -> Result<Finished, CallError> {
        self.finish_at(exit, stderr, &jiff::Zoned::now())
    }

    fn finish_at(self, exit: Exit, stderr: &[u8], now: &jiff::Zoned) -> Result<Finished, CallError> {
        let Self { profile, lines, mut turn, mut stream } = self;
        // The last line may lack its end. Nobody is left to be shown what it did.
        lines.end(&mut |line| take(&mut stream, &mut turn, line, &mut |_| ()));
        match stream {
            Stream::Gemini(_) => gemini::end(&mut turn, exit),
            // Such a program has no other way to say that it is done.
            Stream::Plain => turn.finished = exit == Exit::Code(0),
            Stream::Claude(_) | Stream::Codex(_) | Stream::Opencode | Stream::Goose(_) | Stream::Aider(_) => (),
        }
        turn.conclude(profile, exit, stderr, now)
    }
}

fn take(stream: &mut Stream, turn: &mut turn::Turn, line: lines::Line<'_>, on_act: &mut dyn FnMut(Act)) {
    let text = match line {
        lines::Line::Whole(bytes) => String::from_utf8_lossy(bytes),
        lines::Line::TooLong => {
            turn.note(format!("a line of more than {} MiB was skipped", lines::MAX_LINE >> 20), on_act);
            return;
        }
    };
    let text = text.as_ref();
    match stream {
        Stream::Aider(stream) => stream.line(text, turn, on_act),
        Stream::Plain => plain::line(text, turn, on_act),
        _ if text.trim().is_empty() => (),
        Stream::Claude(stream) => turn.event(text, on_act, |event, turn, act| stream.event(event, text, turn, act)),
        Stream::Codex(stream) => turn.event(text, on_act, |event, turn, act| stream.event(event, turn, act)),
        Stream::Gemini(stream) => turn.event(text, on_act, |event, turn, act| stream.event(event, turn, act)),
        Stream::Opencode => turn.event(text, on_act, |event, turn, act| opencode::event(event, text, turn, act)),
        Stream::Goose(stream) => turn.event(text, on_act, |event, turn, act| stream.event(event, turn, act)),
    }
}
