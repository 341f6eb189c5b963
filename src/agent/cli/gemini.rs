//! Gemini CLI (`gemini --output-format stream-json`, the prompt on its standard input).
//!
//! Role: its command line and its stream. Read from its sources of 2026, up to 0.65, and its headless reference.
//! Not its role: MCP servers; they live in its settings files only, so a report comes in the last words.
//!
//! Shape: `init` names session and model; `message` lines of the assistant are pieces (`delta`); `tool_use`
//! and `tool_result`; `error` is a warning or worse; `result` ends the turn with a status and the counts
//! (`input_tokens` includes `cached`; thoughts are only in `total_tokens`). Exit codes name some faults.
//!
//! Invariant: only a `result` of status `success` finishes a turn.

use serde_json::Value;

use crate::agent::error::ProgramFault;
use crate::agent::message::Usage;
use crate::agent::program::Task;
use crate::model::act::Act;
use crate::model::loop_file::PromptBy;

use super::acts::{OpenEdits, plan, replaced, tell};
use super::argv::{Announce, Ends, Line, with_system};
use super::turn::{Turn, count, string, text_of};
use super::{Exit, Facts, Invocation};

pub(super) static FACTS: Facts = Facts {
    own_folders: &[".gemini"],
    key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"],
    takes_tools: false,
    signed_in_files: &[".gemini/oauth_creds.json", ".gemini/gemini-credentials.json"],
    version: &["--version"],
    status: None,
    sign_in: "sign in once by starting `gemini` in a terminal, or declare `env: [GEMINI_API_KEY]` for the agent",
};

/// Text that is held back until it is worth showing.
const SHOWN_AT: usize = 2 * 1024;

pub(super) fn invocation(mut line: Line<'_>, task: &Task) -> Result<Invocation, String> {
    line.format(&["--output-format", "-o"], "stream-json")?;
    if !line.gives(&["--yolo", "-y"]) {
        line.option(&["--approval-mode"], if task.only_told() { "plan" } else { "yolo" });
    }
    if let Some(model) = &task.model {
        line.option(&["--model", "-m"], model);
    }
    let goes_on = line.gives(&["--resume", "-r"]);
    let session = task.session.as_deref().filter(|_| !goes_on);
    if let Some(session) = session {
        line.option(&["--resume"], session);
    }
    let ends =
        Ends { default: PromptBy::Stdin, before_prompt: &[], by_stdin: &[], by_argument: Announce::Joined("--prompt") };
    let mut invocation = line.build(1, with_system(task, session.is_some()), ends)?;
    // Without it a folder that nobody has trusted by hand falls back to asking.
    invocation.env.push(("GEMINI_CLI_TRUST_WORKSPACE".into(), "true".into()));
    Ok(invocation)
}

/// Exit codes with a meaning of their own.
pub(super) fn end(turn: &mut Turn, exit: Exit) {
    let (fault, words) = match exit {
        Exit::Code(41) => (Some(ProgramFault::Auth), ""),
        Exit::Code(42) => (None, "it did not accept its input"),
        Exit::Code(44) => (None, "its own sandbox could not be started"),
        Exit::Code(52) => (None, "its settings are not valid"),
        Exit::Code(53) => (None, "it reached its own limit of turns"),
        _ => return,
    };
    let silent = turn.trouble.as_ref().is_none_or(|known| known.words.is_empty());
    // What it said itself is better than what the code means in general.
    if fault.is_some() || silent {
        turn.trouble(fault, if silent { words } else { "" });
    }
}

#[derive(Default)]
pub(super) struct Stream {
    unshown: String,
    edits: OpenEdits,
}

impl Stream {
    pub fn event(&mut self, event: &Value, turn: &mut Turn, on_act: &mut dyn FnMut(Act)) {
        let kind = string(event, "type").unwrap_or_default();
        if kind != "message" {
            self.show(on_act);
        }
        match kind {
            "init" => {
                turn.name_session(string(event, "session_id"));
                turn.name_model(string(event, "model"));
            }
            "message" if string(event, "role") == Some("assistant") => {
                let text = string(event, "content").unwrap_or_default();
                turn.keep_words(text);
                self.unshown.push_str(text);
                if self.unshown.len() > SHOWN_AT || event.get("delta").and_then(Value::as_bool) != Some(true) {
                    self.show(on_act);
                }
            }
            "tool_use" => {
                turn.forget_words();
                self.called(event, on_act);
            }
            "tool_result" => {
                turn.forget_words();
                self.returned(event, on_act);
            }
            "error" => {
                let words = string(event, "message");
                if string(event, "severity") == Some("error") {
                    turn.trouble(None, words.unwrap_or_default());
                }
                tell(words, |text| Act::Noted { text }, on_act);
            }
            "result" => result(event, turn),
            _ => (),
        }
    }

    fn show(&mut self, on_act: &mut dyn FnMut(Act)) {
        let text = std::mem::take(&mut self.unshown);
        tell(Some(&text), |text| Act::Said { text }, on_act);
    }

    fn called(&mut self, event: &Value, on_act: &mut dyn FnMut(Act)) {
        let id = string(event, "tool_id").unwrap_or_default().to_owned();
        let tool = string(event, "tool_name").unwrap_or_default().to_owned();
        let input = event.get("parameters").unwrap_or(&Value::Null);
        if tool == "write_todos"
            && let Some(steps) = plan(input.get("todos"), "description")
        {
            on_act(Act::Planned { steps }.bounded());
        }
        let diff = match tool.as_str() {
            "write_file" => string(input, "content").map(|new| replaced("", new)),
            "replace" => string(input, "old_string").zip(string(input, "new_string")).map(|(a, b)| replaced(a, b)),
            _ => None,
        };
        if let (Some(path), Some(diff)) = (string(input, "file_path"), diff) {
            self.edits.begin(&id, Act::Changed { path: path.to_owned(), diff });
        }
        on_act(Act::Called { id, tool, input: text_of(input) }.bounded());
    }

    fn returned(&mut self, event: &Value, on_act: &mut dyn FnMut(Act)) {
        let id = string(event, "tool_id").unwrap_or_default().to_owned();
        let is_error = string(event, "status") == Some("error");
        self.edits.end(&id, is_error, on_act);
        let told = string(event, "output").or_else(|| event.pointer("/error/message").and_then(Value::as_str));
        on_act(Act::Returned { id, is_error, text: told.unwrap_or_default().to_owned() }.bounded());
    }
}

fn result(event: &Value, turn: &mut Turn) {
    if let Some(stats) = event.get("stats") {
        turn.usage = usage(stats);
    }
    if string(event, "status") == Some("success") {
        turn.finish_well();
        return;
    }
    turn.finished = true;
    let error = event.get("error").unwrap_or(&Value::Null);
    let fault = match string(error, "type").unwrap_or_default() {
        "FatalAuthenticationError" | "UnauthorizedError" => Some(ProgramFault::Auth),
        _ => None,
    };
    turn.trouble(fault, string(error, "message").unwrap_or_default());
}

fn usage(stats: &Value) -> Usage {
    let (input, output) = (count(stats, "input_tokens"), count(stats, "output_tokens"));
    let cached = count(stats, "cached");
    let thoughts = count(stats, "total_tokens").saturating_sub(input).saturating_sub(output);
    Usage {
        input_tokens: input.saturating_sub(cached),
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: cached,
        output_tokens: output.saturating_add(thoughts),
        thinking_tokens: thoughts,
        ..Default::default()
    }
}
