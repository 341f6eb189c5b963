//! Codex (`codex exec --json`).
//!
//! Role: its command line and its stream. Read from the sources of `codex exec` (events, flags and error
//! texts) of 2026, versions 0.150 to 0.156.
//! Not its role: its interactive modes.
//!
//! Shape: `thread.started` names the session; items start, change and complete; `turn.completed` ends the
//! turn with the usage of the whole session so far (cached input is part of the input); `turn.failed` and
//! `error` carry a message only, and an `error` may be one that it goes on from.
//!
//! Invariant: only `turn.completed` finishes a turn; an item is shown once.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::agent::message::Usage;
use crate::agent::program::Task;
use crate::model::act::{Act, PlanStep};
use crate::model::loop_file::PromptBy;

use super::acts::tell;
use super::argv::{self, Announce, Ends, Line};
use super::turn::{Turn, blocks_text, count, since, string, text_of};
use super::{Facts, Invocation};

pub(super) static FACTS: Facts = Facts {
    own_folders: &[".codex"],
    key_variables: &["CODEX_API_KEY", "OPENAI_API_KEY"],
    takes_tools: true,
    signed_in_files: &[".codex/auth.json"],
    version: &["--version"],
    status: Some(&["login", "status"]),
    sign_in: "sign in once with `codex login`, or declare `env: [CODEX_API_KEY]` for the agent",
};

/// Calls whose start was shown.
const OPEN_CALLS: usize = 256;

pub(super) fn invocation(mut line: Line<'_>, task: &Task) -> Result<Invocation, String> {
    let exec = line.find(&["exec", "e"]);
    if exec.is_none() {
        line.add(&["exec"]);
    }
    line.flag(&["--json", "--experimental-json"]);
    line.flag(&["--skip-git-repo-check"]);
    let own_choice = line.gives(&[
        "--sandbox",
        "-s",
        "--dangerously-bypass-approvals-and-sandbox",
        "--yolo",
        "--full-auto",
        "--not-so-yolo",
    ]);
    match (own_choice, task.only_told()) {
        (true, _) => (),
        // Its newer sandbox mounts file systems, which is refused inside ours; the older one nests.
        (false, true) => line.add(&["--sandbox", "read-only", "-c", "features.use_legacy_landlock=true"]),
        (false, false) => line.add(&["--dangerously-bypass-approvals-and-sandbox"]),
    }
    if let Some(model) = &task.model {
        line.option(&["--model", "-m"], model);
    }
    if let Some(offer) = &task.offer {
        let (command, args) = argv::command_of(offer)?;
        let server = format!("mcp_servers.{}", offer.name);
        line.add(&["-c", &format!("{server}.command={}", json!(command))]);
        line.add(&["-c", &format!("{server}.args={}", json!(args))]);
        if !offer.env.is_empty() {
            let pairs = offer.env.iter().map(|(name, value)| format!("{}={}", json!(name), json!(value)));
            line.add(&["-c", &format!("{server}.env={{{}}}", pairs.collect::<Vec<_>>().join(","))]);
        }
        // There is nobody to ask; our own server decides what a call may do.
        line.add(&["-c", &format!("{server}.default_tools_approval_mode=\"approve\"")]);
    }
    let goes_on = line.find(&["resume"]).is_some();
    let session = task.session.as_deref().filter(|_| !goes_on);
    let resume = session.map(|session| ["resume", session]);
    let ends = Ends {
        default: PromptBy::Stdin,
        before_prompt: resume.as_ref().map_or(&[], |words| words.as_slice()),
        by_stdin: &["-"],
        by_argument: Announce::Words(&["--"]),
    };
    let at = exec.map(|at| at + 1).or(line.place()).unwrap_or(usize::MAX);
    line.build(at, argv::with_system(task, session.is_some()), ends)
}

#[derive(Default)]
pub(super) struct Stream {
    started: VecDeque<String>,
}

impl Stream {
    pub fn event(&mut self, event: &Value, turn: &mut Turn, on_act: &mut dyn FnMut(Act)) {
        match string(event, "type").unwrap_or_default() {
            "thread.started" => turn.name_session(string(event, "thread_id")),
            kind @ ("item.started" | "item.updated" | "item.completed") => {
                if let Some(item) = event.get("item") {
                    self.item(kind == "item.completed", item, turn, on_act);
                }
            }
            "turn.completed" => {
                turn.usage = since(event.get("usage").map(usage).unwrap_or_default(), &turn.earlier.usage);
                turn.finish_well();
            }
            "turn.failed" => {
                turn.finished = false;
                turn.trouble(None, event.pointer("/error/message").and_then(Value::as_str).unwrap_or_default());
            }
            "error" => {
                let words = string(event, "message").unwrap_or_default();
                turn.trouble(None, words);
                tell(Some(words), |text| Act::Noted { text }, on_act);
            }
            _ => (),
        }
    }

    fn item(&mut self, complete: bool, item: &Value, turn: &mut Turn, on_act: &mut dyn FnMut(Act)) {
        let text = string(item, "text");
        match string(item, "type").or_else(|| string(item, "item_type")).unwrap_or_default() {
            "agent_message" | "assistant_message" if complete => {
                turn.say(text.unwrap_or_default());
                tell(text, |text| Act::Said { text }, on_act);
            }
            "reasoning" if complete => tell(text, |text| Act::Thought { text }, on_act),
            "plan" if complete => tell(text, |text| Act::Noted { text }, on_act),
            "command_execution" => {
                self.start(item, "shell", string(item, "command").unwrap_or_default().to_owned(), on_act);
                if complete {
                    let code = item.get("exit_code").and_then(Value::as_i64);
                    let output = string(item, "aggregated_output").unwrap_or_default().to_owned();
                    self.end(item, code != Some(0), output, on_act);
                }
            }
            "mcp_tool_call" => {
                let tool = format!(
                    "{}.{}",
                    string(item, "server").unwrap_or_default(),
                    string(item, "tool").unwrap_or_default()
                );
                self.start(item, &tool, item.get("arguments").map(text_of).unwrap_or_default(), on_act);
                if complete {
                    let error = item.pointer("/error/message").and_then(Value::as_str);
                    let failed = error.is_some() || string(item, "status") == Some("failed");
                    let content = item.pointer("/result/content").map(blocks_text).unwrap_or_default();
                    self.end(item, failed, error.map_or(content, str::to_owned), on_act);
                }
            }
            "web_search" if complete => {
                self.start(item, "web_search", string(item, "query").unwrap_or_default().to_owned(), on_act);
                self.end(item, false, String::new(), on_act);
            }
            "file_change" if complete => changed(item, on_act),
            "todo_list" => planned(item, on_act),
            "error" if complete => tell(string(item, "message"), |text| Act::Noted { text }, on_act),
            _ => (),
        }
    }

    fn start(&mut self, item: &Value, tool: &str, input: String, on_act: &mut dyn FnMut(Act)) {
        let id = string(item, "id").unwrap_or_default();
        if self.started.iter().any(|known| known == id) {
            return;
        }
        self.started.push_back(id.chars().take(200).collect());
        if self.started.len() > OPEN_CALLS {
            self.started.pop_front();
        }
        on_act(Act::Called { id: id.to_owned(), tool: tool.to_owned(), input }.bounded());
    }

    fn end(&mut self, item: &Value, is_error: bool, text: String, on_act: &mut dyn FnMut(Act)) {
        let id = string(item, "id").unwrap_or_default();
        self.started.retain(|known| known != id);
        on_act(Act::Returned { id: id.to_owned(), is_error, text }.bounded());
    }
}

fn changed(item: &Value, on_act: &mut dyn FnMut(Act)) {
    let done = string(item, "status") != Some("failed");
    for change in item.get("changes").and_then(Value::as_array).into_iter().flatten().take(200) {
        let path = string(change, "path").unwrap_or_default().to_owned();
        let kind = string(change, "kind").unwrap_or("update");
        on_act(
            if done {
                Act::Changed { path, diff: kind.to_owned() }
            } else {
                Act::Noted { text: format!("its {kind} of {path} failed") }
            }
            .bounded(),
        );
    }
}

fn planned(item: &Value, on_act: &mut dyn FnMut(Act)) {
    let items = item.get("items").and_then(Value::as_array).into_iter().flatten();
    let steps: Vec<PlanStep> = items
        .map(|step| {
            let done = step.get("completed").and_then(Value::as_bool).unwrap_or_default();
            PlanStep {
                text: string(step, "text").unwrap_or_default().to_owned(),
                status: if done { "completed" } else { "pending" }.to_owned(),
            }
        })
        .collect();
    if !steps.is_empty() {
        on_act(Act::Planned { steps }.bounded());
    }
}

fn usage(usage: &Value) -> Usage {
    let cached = count(usage, "cached_input_tokens");
    let written = count(usage, "cache_write_input_tokens");
    Usage {
        input_tokens: count(usage, "input_tokens").saturating_sub(cached).saturating_sub(written),
        cache_creation_input_tokens: written,
        cache_read_input_tokens: cached,
        output_tokens: count(usage, "output_tokens"),
        thinking_tokens: count(usage, "reasoning_output_tokens"),
        ..Default::default()
    }
}
