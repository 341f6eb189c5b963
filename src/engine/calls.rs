//! The agent calls of a run: how each begins, what it is told on the way, how it ends.
//!
//! Not here: its first message (`opening`), asking the model (`asking`) or the program (`program`), running tools
//! (`tools`). Invariant: what is said is a blob before it is an event, and an event before it is sent.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::agent::message::has_open_server_tool;
use crate::machine::call::CallTodo;
use crate::machine::event::{AgentStarted, ConversationExtended, ExtendedBecause, SteerDelivered, Text};
use crate::model::call_limits::{CallBounds, CallLimits, Window};
use crate::model::decision::DecisionId;
use crate::model::ids::Role;
use crate::model::purpose::{Purpose, Tool};

use super::backends::Agents;
use super::context::Context;
use super::conversation::{self, Messages};
use super::error::EngineError;
use super::trees::Trees;
use super::{asking, git, handover, opening, program, tools, value, waiting};

/// The agents, and what is remembered of the open call.
pub(super) struct Calls {
    agents: Agents,
    /// Messages of the open conversation, so that blobs are read once.
    messages: Messages,
    /// Decisions whose answer an agent program got from this engine: leave to act once is given once.
    handed_out: BTreeSet<DecisionId>,
    /// Where the repository was when the open call began; unknown after a resume in the middle of one.
    head: Option<String>,
}

impl Calls {
    pub fn new(agents: Agents) -> Self {
        Self { agents, messages: Messages::new(), handed_out: BTreeSet::new(), head: None }
    }

    pub async fn start(
        &mut self,
        cx: &mut Context<'_>,
        purpose: Purpose,
        paraphrase: Option<u8>,
        subject: Option<String>,
    ) -> Result<(), EngineError> {
        self.messages.clear();
        self.head = git::head(cx.workspace());
        start(cx, &self.agents, purpose, paraphrase, subject).await
    }

    pub async fn go_on(&mut self, cx: &mut Context<'_>, trees: &mut Trees, todo: CallTodo) -> Result<(), EngineError> {
        match todo {
            CallTodo::Ask => self.ask(cx).await,
            CallTodo::RunTool(tool_use) => tools::run(cx, tool_use).await,
            CallTodo::RecoverTool { tool_use, effect } => tools::recover(cx, tool_use, &effect).await,
            CallTodo::ReturnResults => return_results(cx).await,
            CallTodo::Remind(why) => remind(cx, why).await,
            CallTodo::Escalate(problem) => tools::escalate(cx, problem).await,
            CallTodo::AskHandover(reason) => handover::ask(cx, trees, reason, self.head.as_deref()).await,
            CallTodo::HandOver(reason) => {
                self.messages.clear();
                handover::hand_over(cx, trees, reason).await
            }
            CallTodo::End(end) => handover::end(cx, trees, end, self.head.as_deref()).await,
        }
    }

    async fn ask(&mut self, cx: &mut Context<'_>) -> Result<(), EngineError> {
        if cx.recorder.cut_if_exhausted().await? || waiting::goes_on(cx).await? {
            return Ok(());
        }
        let name = cx.call()?.started.agent.clone();
        if let Some(program) = self.agents.program(&name) {
            return program::ask(cx, program, &mut self.handed_out).await;
        }
        let agent = self.agents.get(&name);
        let agent = agent.ok_or_else(|| EngineError::Internal(format!("agent {name} was not prepared")))?;
        asking::ask(cx, agent, &mut self.messages).await
    }
}

async fn start(
    cx: &mut Context<'_>,
    agents: &Agents,
    purpose: Purpose,
    paraphrase: Option<u8>,
    subject: Option<String>,
) -> Result<(), EngineError> {
    if cx.recorder.cut_if_exhausted().await? {
        return Ok(());
    }
    let role = purpose.role();
    if role == Role::Qc {
        value::restore_scripts(cx)?;
    }
    let declared = cx.state().loop_file();
    let (name, _) = declared
        .agent_for(role)
        .ok_or_else(|| EngineError::usage(format!("no agent is declared for the {role}"), "add one under `agents`"))?;
    let name = name.to_owned();
    let (backend, model) = match (agents.get(&name), agents.program(&name)) {
        (Some(agent), _) => (agent.backend_name, agent.model.clone()),
        (None, Some(program)) => (program.backend_name(), program.model.clone().unwrap_or_else(|| program.name())),
        (None, None) => return Err(EngineError::Internal(format!("agent {name} was not prepared"))),
    };
    let backend = backend.to_owned();
    let tools = if agents.program(&name).is_some() {
        Value::Array(conversation::program_tools(purpose)).to_string()
    } else {
        let held = cx.sandbox().holds_read_only();
        let web = agents.get(&name).and_then(|agent| agent.setup.web_for(role));
        conversation::tools_json(purpose, web, held)
    };
    let system = agents.prompts().render(purpose, &cx.state().criteria)?;
    let own_prompt = agents.prompts().replaced().any(|name| name == purpose.name());
    let mut content = opening::message(cx, purpose, paraphrase, subject.as_deref(), own_prompt)?;
    if let Some(left) = cx.state().left_over(purpose, subject.as_deref()) {
        content.push('\n');
        content.push_str(&handover::left_over(cx, &left)?);
    }
    let words = words(cx, role);
    if let Some((text, _)) = &words {
        content.push('\n');
        content.push_str(text);
    }
    let message = json!({"role": "user", "content": content});
    let bounds = bounds(cx, agents, role, &name);
    let started = AgentStarted {
        call: cx.state().next_call_key(purpose, paraphrase),
        role,
        purpose: (purpose != Purpose::from(role)).then_some(purpose),
        subject,
        agent: name,
        backend,
        model,
        system: cx.blobs().put(system.as_bytes())?,
        tools: cx.blobs().put(tools.as_bytes())?,
        message: cx.blobs().put(message.to_string().as_bytes())?,
        paraphrase,
        bounds: Some(bounds),
    };
    let call = started.call.clone();
    cx.record(started).await?;
    delivered(cx, words, call).await
}

/// How much a call of this role by this agent may use.
fn bounds(cx: &Context<'_>, agents: &Agents, role: Role, name: &str) -> CallBounds {
    let declared = cx.state().loop_file();
    let by_agent = declared.agents.get(name).and_then(|(_, agent)| agent.limits.as_ref());
    let window = match agents.get(name) {
        Some(agent) => agent.setup.context.map_or(Window::Unknown, Window::Known),
        None => Window::Own,
    };
    CallLimits::in_force(role, declared.limits.get(&role), by_agent, window)
}

/// The results of the tool calls of the latest reply, as blocks of a message.
pub(super) fn results(cx: &Context<'_>) -> Result<Vec<Value>, EngineError> {
    let mut content = Vec::new();
    for (tool_use, text, is_error) in cx.call()?.results() {
        let text = match text {
            Text::Inline(text) => text.clone(),
            Text::Blob(digest) => String::from_utf8_lossy(&cx.blobs().get(digest)?).into_owned(),
        };
        content.push(json!({"type": "tool_result", "tool_use_id": tool_use.id, "content": text, "is_error": is_error}));
    }
    Ok(content)
}

/// The text of a message's content: a string, or its text blocks.
pub(super) fn words_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

async fn return_results(cx: &mut Context<'_>) -> Result<(), EngineError> {
    let call = cx.call()?;
    let key = call.started.call.clone();
    let mut content = results(cx)?;
    // While the server's own tool is open, nothing but results may follow: the words wait for the next message.
    let reply = call.reply.as_ref().map(|reply| cx.blobs().get(&reply.message)).transpose()?;
    let open = reply.is_some_and(|message| has_open_server_tool(&String::from_utf8_lossy(&message)));
    let words = if open { None } else { words(cx, call.role()) };
    if let Some((text, _)) = &words {
        content.push(json!({"type": "text", "text": text}));
    }
    extend(cx, key.clone(), json!({"role": "user", "content": content}), ExtendedBecause::ToolResults).await?;
    delivered(cx, words, key).await
}

/// What the operator wants the next request to say, with the numbers of the words. Nobody whispers to the
/// judge: its words wait for the next worker.
fn words(cx: &Context<'_>, role: Role) -> Option<(String, Vec<u32>)> {
    if role.judges() {
        return None;
    }
    let queued: Vec<_> = cx.state().operator.queued().collect();
    if queued.is_empty() {
        return None;
    }
    let mut text = String::from("OPERATOR\n");
    for steer in &queued {
        text.push_str(&steer.text);
        text.push('\n');
    }
    Some((text, queued.iter().map(|steer| steer.number).collect()))
}

/// After the message itself: a crash in between says a word twice rather than never.
async fn delivered(cx: &mut Context<'_>, words: Option<(String, Vec<u32>)>, call: String) -> Result<(), EngineError> {
    match words {
        Some((_, numbers)) => cx.record(SteerDelivered { numbers, call }).await,
        None => Ok(()),
    }
}

async fn remind(cx: &mut Context<'_>, why: ExtendedBecause) -> Result<(), EngineError> {
    let call = cx.call()?;
    let text = match why {
        ExtendedBecause::EmptyReply => "Please go on.".to_owned(),
        ExtendedBecause::ReportMissing | ExtendedBecause::ToolResults | ExtendedBecause::Handover => {
            let tool = call.closing_tool().map_or("its tool", Tool::name);
            format!("Your part is not finished: hand in your report with `{tool}` now.")
        }
    };
    let key = call.started.call.clone();
    extend(cx, key, json!({"role": "user", "content": text}), why).await
}

async fn extend(cx: &mut Context<'_>, call: String, message: Value, why: ExtendedBecause) -> Result<(), EngineError> {
    let message = cx.blobs().put(message.to_string().as_bytes())?;
    cx.record(ConversationExtended { call, message, why, handover: None }).await
}
