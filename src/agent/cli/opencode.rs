//! opencode (`opencode run --format json`, the prompt on its standard input).
//!
//! Role: its command line and its stream. Read from the sources of `opencode run` of 2026 (1.x) and from
//! streams that it printed.
//! Not its role: its server and its own event bus; `run` prints another, smaller set of events.
//!
//! Shape: every line has `type` and `sessionID`; `text`, `reasoning` and `tool_use` come when complete;
//! each `step_finish` carries the tokens and the cost of that step alone, and the reason it ended;
//! `error` carries a named error; newer versions end with `done`.
//!
//! Invariant: a turn is finished by a step that ended for another reason than to call tools, or by `done`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::agent::error::ProgramFault;
use crate::agent::message::Usage;
use crate::agent::program::Task;
use crate::model::act::Act;
use crate::model::loop_file::PromptBy;

use super::acts::{plan, tell};
use super::argv::{self, Announce, Ends, Line, with_system};
use super::turn::{Turn, count, money, plus, string, text_of};
use super::{Facts, Invocation, fault};

pub(super) static FACTS: Facts = Facts {
    own_folders: &[".local/share/opencode", ".local/state/opencode", ".cache/opencode", ".config/opencode"],
    key_variables: &["OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"],
    takes_tools: true,
    signed_in_files: &[".local/share/opencode/auth.json"],
    version: &["--version"],
    status: Some(&["auth", "list"]),
    sign_in: "sign in once with `opencode auth login`, or declare the key of its provider in the agent's `env`",
};

pub(super) fn invocation(mut line: Line<'_>, task: &Task) -> Result<Invocation, String> {
    let run = line.find(&["run"]);
    if run.is_none() {
        line.add(&["run"]);
    }
    line.format(&["--format"], "json")?;
    if task.only_told() {
        line.option(&["--agent"], "plan");
    }
    if let Some(model) = &task.model {
        line.option(&["--model", "-m"], model);
    }
    let goes_on = line.gives(&["--session", "-s", "--continue", "-c"]);
    let session = task.session.as_deref().filter(|_| !goes_on);
    if let Some(session) = session {
        line.option(&["--session"], session);
    }
    let ends =
        Ends { default: PromptBy::Stdin, before_prompt: &[], by_stdin: &[], by_argument: Announce::Words(&["--"]) };
    let mut invocation = line.build(run.map_or(1, |at| at + 1), with_system(task, session.is_some()), ends)?;
    invocation.env.push(("OPENCODE_CONFIG_CONTENT".into(), settings(task)?));
    Ok(invocation)
}

/// Settings that go over the operator's own ones for this turn: what would be asked is decided here.
fn settings(task: &Task) -> Result<String, String> {
    let edit = if task.only_told() { "deny" } else { "allow" };
    let mut settings = json!({"permission": {"edit": edit, "bash": "allow", "webfetch": "allow"}});
    if let Some(offer) = &task.offer {
        argv::command_of(offer)?;
        let server = json!({
            "type": "local", "command": offer.argv, "environment": argv::variables(offer), "enabled": true
        });
        settings["mcp"] = json!({offer.name.as_str(): server});
    }
    Ok(settings.to_string())
}

/// The numbers of a step whose digits matter.
#[derive(Deserialize)]
struct Step<'a> {
    #[serde(borrow)]
    part: Part<'a>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    cost: Option<&'a RawValue>,
}

pub(super) fn event(event: &Value, line: &str, turn: &mut Turn, on_act: &mut dyn FnMut(Act)) {
    turn.name_session(string(event, "sessionID"));
    let part = event.get("part").unwrap_or(&Value::Null);
    match string(event, "type").unwrap_or_default() {
        // A step that begins after one that ended: it goes on.
        "step_start" => turn.finished = false,
        "text" => {
            turn.say(string(part, "text").unwrap_or_default());
            tell(string(part, "text"), |text| Act::Said { text }, on_act);
        }
        "reasoning" => tell(string(part, "text"), |text| Act::Thought { text }, on_act),
        "tool_use" => tool(part, on_act),
        "step_finish" => {
            let usage = part.get("tokens").map(usage).unwrap_or_default();
            turn.usage = plus(turn.usage, &usage);
            if let Ok(step) = serde_json::from_str::<Step<'_>>(line) {
                turn.add_cost(money(step.part.cost));
            }
            turn.name_model(string(part, "modelID"));
            match string(part, "reason") {
                Some("tool-calls" | "tool_calls" | "error") | None => (),
                Some(_) => turn.finish_well(),
            }
        }
        "done" => turn.finished = true,
        "error" => error(event.get("error").unwrap_or(&Value::Null), turn),
        _ => (),
    }
}

fn tool(part: &Value, on_act: &mut dyn FnMut(Act)) {
    let id = string(part, "callID").or_else(|| string(part, "id")).unwrap_or_default().to_owned();
    let tool = string(part, "tool").unwrap_or_default().to_owned();
    let state = part.get("state").unwrap_or(&Value::Null);
    let input = state.get("input").unwrap_or(&Value::Null);
    let is_error = string(state, "status") == Some("error");
    if tool == "todowrite"
        && let Some(steps) = plan(input.get("todos"), "content")
    {
        on_act(Act::Planned { steps }.bounded());
    }
    on_act(Act::Called { id: id.clone(), tool: tool.clone(), input: text_of(input) }.bounded());
    if let Some(path) = string(input, "filePath").filter(|_| !is_error && matches!(tool.as_str(), "edit" | "write")) {
        let diff = state.pointer("/metadata/diff").and_then(Value::as_str);
        let diff = diff.or_else(|| string(input, "content")).unwrap_or_default().to_owned();
        on_act(Act::Changed { path: path.to_owned(), diff }.bounded());
    }
    let text = string(state, if is_error { "error" } else { "output" }).unwrap_or_default().to_owned();
    on_act(Act::Returned { id, is_error, text }.bounded());
}

fn error(error: &Value, turn: &mut Turn) {
    turn.finished = false;
    let data = error.get("data").unwrap_or(&Value::Null);
    let name = string(error, "name").unwrap_or_default();
    let told = string(data, "message").or_else(|| string(error, "message")).or_else(|| error.as_str());
    let words = told.unwrap_or(name);
    let known = match name {
        "ProviderAuthError" => Some(ProgramFault::Auth),
        "ContextOverflowError" => Some(ProgramFault::ContextFull),
        _ if fault::in_words(words, false).is_some() => None,
        _ => fault::in_status(count(data, "statusCode")),
    };
    turn.trouble(known, words);
}

fn usage(tokens: &Value) -> Usage {
    let cache = tokens.get("cache").unwrap_or(&Value::Null);
    let thinking = count(tokens, "reasoning");
    Usage {
        input_tokens: count(tokens, "input"),
        cache_creation_input_tokens: count(cache, "write"),
        cache_read_input_tokens: count(cache, "read"),
        // Its output leaves thinking out; ours includes it.
        output_tokens: count(tokens, "output").saturating_add(thinking),
        thinking_tokens: thinking,
        ..Default::default()
    }
}
