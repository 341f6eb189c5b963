//! Claude Code (`claude -p --output-format stream-json --verbose`).
//!
//! Role: its command line and its stream. Read from the command line reference and from streams that
//! versions 2.1.220 to 2.1.285 printed.
//! Not its role: hooks, sub-agents as such; their lines are shown like any other.
//!
//! Shape: `system/init` names session and model; `assistant` lines carry one content block each, with the
//! usage of the whole message repeated on every line of it; `user` lines carry tool results; a
//! `rate_limit_event` says when a limit resets; one `result` ends the turn with the totals. A failed request
//! also ends in a `result` of subtype `success`, but with `is_error` set.
//!
//! Invariant: only a `result` with `is_error` false finishes a turn; usage is counted once per message.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::agent::error::ProgramFault;
use crate::agent::message::Usage;
use crate::agent::program::Task;
use crate::model::act::Act;
use crate::model::decimal::Exact;
use crate::model::loop_file::PromptBy;

use super::acts::{OpenEdits, plan, replaced, tell};
use super::argv::{self, Announce, Ends, Line};
use super::turn::{Turn, blocks_text, count, money, plus, since, string, text_of};
use super::{Facts, Invocation, fault};

pub(super) static FACTS: Facts = Facts {
    own_folders: &[".claude"],
    key_variables: &["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"],
    takes_tools: true,
    signed_in_files: &[".claude/.credentials.json"],
    version: &["--version"],
    status: Some(&["auth", "status"]),
    sign_in: "sign in once with `claude auth login`, or declare `env: [ANTHROPIC_API_KEY]` for the agent",
};

/// Messages whose usage may still be repeated.
const OPEN_MESSAGES: usize = 32;

pub(super) fn invocation(mut line: Line<'_>, task: &Task) -> Result<Invocation, String> {
    line.flag(&["-p", "--print"]);
    line.format(&["--output-format"], "stream-json")?;
    line.flag(&["--verbose"]);
    let unasked = line.gives(&["--dangerously-skip-permissions", "--allow-dangerously-skip-permissions"]);
    if !unasked {
        line.option(&["--permission-mode"], if task.only_told() { "plan" } else { "bypassPermissions" });
    }
    if let Some(model) = &task.model {
        line.option(&["--model"], model);
    }
    let goes_on = line.gives(&["--resume", "-r", "--continue", "-c"]);
    if let Some(session) = task.session.as_deref().filter(|_| !goes_on) {
        line.option(&["--resume"], session);
    }
    if let Some(offer) = &task.offer {
        let mut server = argv::server(offer)?;
        server["type"] = json!("stdio");
        let servers = json!({"mcpServers": {offer.name.as_str(): server}});
        // Joined to their flags: both take as many words as follow.
        line.add(&[&format!("--mcp-config={servers}"), &format!("--allowedTools=mcp__{}", offer.name)]);
    }
    // The system prompt is no part of a session: it is given every time.
    let system = task.system.trim();
    let by_flag = !system.is_empty() && line.option(&["--append-system-prompt"], system);
    let prompt = if by_flag { task.prompt.clone() } else { argv::with_system(task, false) };
    let ends =
        Ends { default: PromptBy::Stdin, before_prompt: &[], by_stdin: &[], by_argument: Announce::Words(&["--"]) };
    let mut invocation = line.build(1, prompt, ends)?;
    if task.offer.is_some() {
        // Else its model has to search for our tools before it can call one.
        invocation.env.push(("ENABLE_TOOL_SEARCH".into(), "false".into()));
    }
    Ok(invocation)
}

#[derive(Default)]
pub(super) struct Stream {
    /// Usage of messages that no longer change.
    settled: Usage,
    open: VecDeque<(String, Usage)>,
    edits: OpenEdits,
}

impl Stream {
    pub fn event(&mut self, event: &Value, line: &str, turn: &mut Turn, on_act: &mut dyn FnMut(Act)) {
        turn.name_session(string(event, "session_id"));
        match string(event, "type").unwrap_or_default() {
            "system" => system(event, turn, on_act),
            "assistant" => self.assistant(event, turn, on_act),
            "user" => self.results(event, on_act),
            "rate_limit_event" => rate_limit(event, turn, on_act),
            "result" => result(event, line, turn),
            _ => (),
        }
    }

    fn assistant(&mut self, event: &Value, turn: &mut Turn, on_act: &mut dyn FnMut(Act)) {
        let Some(message) = event.get("message") else { return };
        turn.name_model(string(message, "model"));
        if let Some(kind) = string(event, "error") {
            let words = message.get("content").map(blocks_text).unwrap_or_default();
            turn.trouble(reason(kind), &words);
        }
        if let (Some(id), Some(usage)) = (string(message, "id"), message.get("usage")) {
            self.count(id, usage_of(usage));
            turn.usage = self.open.iter().fold(self.settled, |sum, (_, usage)| plus(sum, usage));
        }
        for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
            match string(block, "type").unwrap_or_default() {
                "text" => tell(string(block, "text"), |text| Act::Said { text }, on_act),
                "thinking" => tell(string(block, "thinking"), |text| Act::Thought { text }, on_act),
                "tool_use" => self.called(block, on_act),
                _ => (),
            }
        }
    }

    fn count(&mut self, id: &str, usage: Usage) {
        if let Some((_, known)) = self.open.iter_mut().find(|(known, _)| known == id) {
            *known = usage;
            return;
        }
        self.open.push_back((id.chars().take(200).collect(), usage));
        if self.open.len() > OPEN_MESSAGES
            && let Some((_, oldest)) = self.open.pop_front()
        {
            self.settled = plus(self.settled, &oldest);
        }
    }

    fn called(&mut self, block: &Value, on_act: &mut dyn FnMut(Act)) {
        let id = string(block, "id").unwrap_or_default().to_owned();
        let tool = string(block, "name").unwrap_or_default().to_owned();
        let input = block.get("input").unwrap_or(&Value::Null);
        if tool == "TodoWrite"
            && let Some(steps) = plan(input.get("todos"), "content")
        {
            on_act(Act::Planned { steps }.bounded());
        }
        if let Some(edit) = edit(&tool, input) {
            self.edits.begin(&id, edit);
        }
        on_act(Act::Called { id, tool, input: text_of(input) }.bounded());
    }

    fn results(&mut self, event: &Value, on_act: &mut dyn FnMut(Act)) {
        let content = event.pointer("/message/content").and_then(Value::as_array);
        for block in content.into_iter().flatten().filter(|block| string(block, "type") == Some("tool_result")) {
            let id = string(block, "tool_use_id").unwrap_or_default().to_owned();
            let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or_default();
            let text = block.get("content").map(blocks_text).unwrap_or_default();
            self.edits.end(&id, is_error, on_act);
            on_act(Act::Returned { id, is_error, text }.bounded());
        }
    }
}

fn system(event: &Value, turn: &mut Turn, on_act: &mut dyn FnMut(Act)) {
    let note = |text: String, on_act: &mut dyn FnMut(Act)| on_act(Act::Noted { text }.bounded());
    match string(event, "subtype").unwrap_or_default() {
        "init" => turn.name_model(string(event, "model")),
        "compact_boundary" => note("it summarised the conversation to make room".into(), on_act),
        "api_retry" => {
            let status = event.get("error_status").map(text_of).unwrap_or_default();
            let wait = count(event, "retry_delay_ms") / 1000;
            note(format!("its service answered {status}; it tries again in {wait} s"), on_act);
        }
        _ => (),
    }
}

fn rate_limit(event: &Value, turn: &mut Turn, on_act: &mut dyn FnMut(Act)) {
    let Some(info) = event.get("rate_limit_info") else { return };
    let status = string(info, "status").unwrap_or_default();
    let resets = info.get("resetsAt").and_then(Value::as_i64).and_then(|at| Timestamp::from_second(at).ok());
    let kind = string(info, "rateLimitType").unwrap_or("its limit");
    match status {
        "rejected" => {
            turn.trouble(Some(ProgramFault::RateLimit), "");
            if let Some(at) = resets {
                turn.resets_at(at);
            }
            on_act(Act::Noted { text: format!("{kind} is used up") }.bounded());
        }
        "allowed_warning" => on_act(Act::Noted { text: format!("{kind} is nearly used up") }.bounded()),
        _ => (),
    }
}

/// The numbers of a `result` whose digits matter.
#[derive(Deserialize)]
struct Money<'a> {
    #[serde(borrow)]
    total_cost_usd: Option<&'a RawValue>,
}

fn result(event: &Value, line: &str, turn: &mut Turn) {
    if let Ok(read) = serde_json::from_str::<Money<'_>>(line)
        && let Some(cost) = money(read.total_cost_usd)
    {
        // The total of the session. One that is smaller than before was begun anew.
        let earlier = turn.earlier.cost_usd.unwrap_or(Exact::ZERO);
        turn.cost_usd = Some(cost.checked_sub(earlier).unwrap_or(cost));
    }
    // `usage` counts this turn without helpers and sub-agents, `modelUsage` the whole session with them.
    let main = event.get("usage").map(usage_of).unwrap_or_default();
    let all = event.get("modelUsage").and_then(Value::as_object).into_iter().flatten();
    let all = all.fold(Usage::default(), |sum, (_, usage)| plus(sum, &model_usage(usage)));
    let all = since(all, &turn.earlier.usage);
    let total = if all.total() > main.total() { all } else { main };
    if total.total() > 0 {
        turn.usage = total;
    }
    let subtype = string(event, "subtype").unwrap_or_default();
    let words = string(event, "result").unwrap_or_default();
    let failed = event.get("is_error").and_then(Value::as_bool).unwrap_or(subtype != "success");
    if subtype == "success" && !failed {
        turn.say(words);
        turn.finish_well();
        return;
    }
    turn.finished = true;
    let listed = event.get("errors").map(blocks_text).unwrap_or_default();
    let told = [words, listed.as_str(), subtype].into_iter().find(|words| !words.is_empty()).unwrap_or_default();
    let known = match subtype {
        "error_max_budget_usd" => Some(ProgramFault::SpendLimit),
        // A spend limit and a full context come with statuses that other faults have too: words first.
        _ if fault::in_words(told, false).is_some() => None,
        _ => fault::in_status(count(event, "api_error_status")),
    };
    turn.trouble(known, told);
}

/// The reason that an `error` field names.
fn reason(kind: &str) -> Option<ProgramFault> {
    match kind {
        "authentication_failed" | "oauth_org_not_allowed" => Some(ProgramFault::Auth),
        "billing_error" => Some(ProgramFault::SpendLimit),
        "rate_limit" | "overloaded" => Some(ProgramFault::RateLimit),
        _ => None,
    }
}

fn usage_of(usage: &Value) -> Usage {
    Usage {
        input_tokens: count(usage, "input_tokens"),
        cache_creation_input_tokens: count(usage, "cache_creation_input_tokens"),
        cache_read_input_tokens: count(usage, "cache_read_input_tokens"),
        output_tokens: count(usage, "output_tokens"),
        thinking_tokens: 0,
        ..Default::default()
    }
}

fn model_usage(usage: &Value) -> Usage {
    Usage {
        input_tokens: count(usage, "inputTokens"),
        cache_creation_input_tokens: count(usage, "cacheCreationInputTokens"),
        cache_read_input_tokens: count(usage, "cacheReadInputTokens"),
        output_tokens: count(usage, "outputTokens"),
        thinking_tokens: 0,
        ..Default::default()
    }
}

/// What an editing tool is about to change.
fn edit(tool: &str, input: &Value) -> Option<Act> {
    let path = string(input, "file_path").or_else(|| string(input, "notebook_path"))?.to_owned();
    let diff = match tool {
        "Edit" => replaced(string(input, "old_string")?, string(input, "new_string")?),
        "Write" => replaced("", string(input, "content")?),
        "MultiEdit" => {
            let edits = input.get("edits")?.as_array()?.iter().take(50);
            let texts =
                edits.filter_map(|edit| Some(replaced(string(edit, "old_string")?, string(edit, "new_string")?)));
            texts.collect::<Vec<_>>().join("…\n")
        }
        "NotebookEdit" => replaced("", string(input, "new_source").unwrap_or_default()),
        _ => return None,
    };
    Some(Act::Changed { path, diff })
}
