//! Runs agent calls: builds conversations, asks the model, waits out what passes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::{self, Block, CallError, NextMove, Reply, Request, RetryClass, ToolInput};
use crate::machine::call::{CallState, CallTodo};
use crate::machine::event::{
    AgentEnd, AgentFinished, AgentStarted, ConversationExtended, DecisionAsked, ExtendedBecause, LlmFailed,
    LlmRequested, LlmResponded, Phase, Probe, ReplyMove, Signal, SteerDelivered, Text, ToolUse, Usage,
};
use crate::machine::iteration::{Iteration, call_key};
use crate::model::budget::{Dimension, Exhausted};
use crate::model::capsule::Capsule;
use crate::model::criterion::Proof;
use crate::model::decision::{MAX_DECISIONS, Mode, Request as DecisionRequest};
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::learnings::estimate_tokens;
use crate::model::report;
use crate::playbook::prompts;
use crate::tool::process::Access;
use crate::tool::registry;
use crate::tool::sandbox::Sandbox;

use super::ask;
use super::driver::{Cutoff, Driver, Guarded};
use super::error::EngineError;
use super::program;
use super::secrecy::Speaker;

/// The skeptic sees this much of the diff; the rest is in the evidence.
const MAX_DIFF_BYTES: usize = 60_000;
/// The skeptic sees this much of a check's output.
const MAX_OUTPUT_BYTES: usize = 4_000;
/// A model's maximum is not known here; a raise never goes beyond this.
const MAX_RAISED_TOKENS: u32 = 128_000;

impl Driver<'_> {
    pub(super) async fn start_agent(&mut self, role: Role, paraphrase: Option<u8>) -> Result<(), EngineError> {
        if self.cut_if_exhausted().await? {
            return Ok(());
        }
        let declared = self.session.state.loop_file();
        let (name, _) = declared.agent_for(role).ok_or_else(|| {
            EngineError::usage(format!("no agent is declared for the {role}"), "add one under `agents`")
        })?;
        let name = name.to_owned();
        let (backend, model) = match (self.agents.get(&name), self.agents.program(&name)) {
            (Some(agent), _) => (agent.backend_name, agent.model.clone()),
            (None, Some(program)) => (program.backend_name(), program.model.clone().unwrap_or_else(|| program.name())),
            (None, None) => return Err(EngineError::Internal(format!("agent {name} was not prepared"))),
        };
        let backend = backend.to_owned();
        let tools = if self.agents.program(&name).is_some() {
            Value::Array(program::tools_of(role)).to_string()
        } else {
            tools_json(role, &self.session.sandbox)
        };
        let system = self.agents.prompts().render(role, &self.session.state.criteria)?;
        let mut content = self.first_message(role, paraphrase)?;
        let words = self.words(role);
        if let Some((text, _)) = &words {
            content.push('\n');
            content.push_str(text);
        }
        let message = json!({"role": "user", "content": content});
        let started = AgentStarted {
            call: call_key(self.session.state.iteration_number(), role, paraphrase),
            role,
            agent: name,
            backend,
            model,
            system: self.session.blobs.put(system.as_bytes())?,
            tools: self.session.blobs.put(tools.as_bytes())?,
            message: self.session.blobs.put(message.to_string().as_bytes())?,
            paraphrase,
        };
        self.messages.clear();
        let call = started.call.clone();
        self.record(started).await?;
        self.delivered(words, call).await
    }

    /// Capsule first, then the typed output of the role before. No prose of another agent.
    fn first_message(&self, role: Role, paraphrase: Option<u8>) -> Result<String, EngineError> {
        let state = &self.session.state;
        let iteration =
            state.current.as_ref().ok_or_else(|| EngineError::Internal("an agent without an iteration".to_owned()))?;
        let bytes = self.session.blobs.get(&iteration.began.capsule)?;
        let mut capsule: Capsule = serde_json::from_slice(&bytes)
            .map_err(|e| EngineError::Internal(format!("the capsule cannot be read: {e}")))?;
        capsule.subagent_role = role.name().to_owned();
        if let Some(number) = paraphrase {
            capsule.goal_statement = prompts::paraphrase(&capsule.goal_statement, number);
        }
        let mut text = String::from("CAPSULE\n");
        text.push_str(&capsule.text().map_err(|e| EngineError::Internal(e.to_string()))?);
        match role {
            Role::Scout => {}
            Role::Solver => {
                text.push_str("\nSCOUT_REPORT\n");
                text.push_str(&json!(iteration.scout()).to_string());
            }
            Role::Skeptic => {
                text.push_str("\nDIFF\n");
                let diff = iteration.artifacts.as_ref().map(|artifacts| artifacts.diff);
                text.push_str(&self.excerpt(diff, MAX_DIFF_BYTES)?);
                text.push_str("\nCHECK_RESULTS\n");
                text.push_str(&self.check_results(iteration)?.to_string());
            }
        }
        Ok(text)
    }

    fn excerpt(&self, digest: Option<Digest>, limit: usize) -> Result<String, EngineError> {
        let Some(digest) = digest else { return Ok(String::new()) };
        let bytes = self.session.blobs.get(&digest)?;
        if bytes.len() <= limit {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        let (head, tail) = (&bytes[..limit / 2], &bytes[bytes.len() - limit / 2..]);
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        Ok(format!("{head}\n[… {} bytes left out …]\n{tail}", bytes.len() - limit))
    }

    fn check_results(&self, iteration: &Iteration) -> Result<Value, EngineError> {
        let mut results = Vec::new();
        for criterion in self.session.state.criteria.iter().filter(|c| matches!(c.proof, Proof::Check { .. })) {
            let Some(result) = iteration.probe(Phase::Iteration, &Probe::Criterion(criterion.id.clone())) else {
                continue;
            };
            results.push(json!({
                "criterion": criterion.id,
                "result": result.end.describe(),
                "output_path": crate::machine::measure::check_output_path(iteration.number(), &criterion.id),
                "output": self.excerpt(Some(result.output), MAX_OUTPUT_BYTES)?,
            }));
        }
        Ok(Value::Array(results))
    }

    pub(super) async fn go_on_with_call(&mut self, todo: CallTodo) -> Result<(), EngineError> {
        match todo {
            CallTodo::Ask => self.ask().await,
            CallTodo::RunTool(tool_use) => self.run_tool(tool_use).await,
            CallTodo::RecoverTool { tool_use, effect } => self.recover_tool(tool_use, &effect).await,
            CallTodo::ReturnResults => self.return_results().await,
            CallTodo::Remind(why) => self.remind(why).await,
            CallTodo::Escalate(problem) => self.escalate(problem).await,
            CallTodo::End(end) => self.end_call(end).await,
        }
    }

    pub(super) fn call(&self) -> Result<&CallState, EngineError> {
        let call = self.session.state.current.as_ref().and_then(|iteration| iteration.call.as_ref());
        call.ok_or_else(|| EngineError::Internal("no agent call is open".to_owned()))
    }

    async fn end_call(&mut self, end: AgentEnd) -> Result<(), EngineError> {
        let call = self.call()?;
        let finished = AgentFinished { call: call.started.call.clone(), role: call.role(), end };
        self.record(finished).await
    }

    async fn ask(&mut self) -> Result<(), EngineError> {
        if self.cut_if_exhausted().await? {
            return Ok(());
        }
        if self.agents.program(&self.call()?.started.agent).is_some() {
            return self.ask_program().await;
        }
        let request = self.request()?;
        let body_tokens = estimate_tokens(request.body().len()) as u64;
        let Some(request) = self.fit_token_budget(request, body_tokens).await? else { return Ok(()) };
        let call = self.call()?;
        let (key, turn, attempt) = (call.started.call.clone(), call.turn, call.attempts);
        let agent = self
            .agents
            .get(&call.started.agent)
            .ok_or_else(|| EngineError::Internal(format!("agent {} was not prepared", call.started.agent)))?;
        let backend = Arc::clone(&agent.backend);
        self.record(LlmRequested {
            call: key.clone(),
            turn,
            attempt,
            request_sha256: Digest::of(&request.body()),
            reserved_tokens: body_tokens + u64::from(request.max_tokens),
            reserved_usd: None,
            drop_blocks: false,
        })
        .await?;
        let outcome = {
            let token = CancellationToken::new();
            let mut speaker = Speaker::new(self.hub.clone(), key.clone(), turn, Arc::clone(self.secrets()));
            let cancelled = token.clone();
            let effect = async {
                let mut on_delta = |delta: agent::Delta<'_>| speaker.hear(delta);
                let result = tokio::select! {
                    result = backend.complete(&request, &mut on_delta) => Some(result),
                    () = cancelled.cancelled() => None,
                };
                speaker.finish();
                result
            };
            self.guarded(&token, Cutoff::Agent, effect).await?
        };
        match outcome {
            Guarded::Done(Some(Ok(reply))) => self.take_reply(&key, turn, reply).await,
            Guarded::Done(Some(Err(error))) => self.take_failure(&key, turn, attempt, &error).await,
            // Stopped: the signal is recorded next. Cut: the limit is recorded next. Either way the reply is void.
            Guarded::Done(None) | Guarded::Stopped(_) => Ok(()),
            Guarded::Cut(_) => self.cut_if_exhausted().await.map(|_| ()),
        }
    }

    fn request(&mut self) -> Result<Request, EngineError> {
        let call = self.call()?.clone();
        let mut messages = Vec::with_capacity(call.messages.len());
        for digest in &call.messages {
            messages.push(self.message(digest)?);
        }
        let agent = self
            .agents
            .get(&call.started.agent)
            .ok_or_else(|| EngineError::Internal(format!("agent {} was not prepared", call.started.agent)))?;
        let tools = String::from_utf8(self.session.blobs.get(&call.started.tools)?).unwrap_or_default();
        let raised = 1u32 << call.raised.min(3);
        Ok(Request {
            model: call.started.model.clone(),
            max_tokens: agent.max_tokens.saturating_mul(raised).min(MAX_RAISED_TOKENS.max(agent.max_tokens)),
            system: String::from_utf8_lossy(&self.session.blobs.get(&call.started.system)?).into_owned(),
            tools: RawValue::from_string(tools).map_err(|e| EngineError::Internal(e.to_string()))?,
            messages,
            thinking: agent.thinking,
            effort: agent.effort.clone(),
        })
    }

    fn message(&mut self, digest: &Digest) -> Result<Arc<RawValue>, EngineError> {
        if let Some(message) = self.messages.get(digest) {
            return Ok(Arc::clone(message));
        }
        let text = String::from_utf8(self.session.blobs.get(digest)?).unwrap_or_default();
        let raw = RawValue::from_string(text)
            .map_err(|e| EngineError::Internal(format!("message {}: {e}", digest.short())))?;
        let message: Arc<RawValue> = Arc::from(raw);
        self.messages.insert(*digest, Arc::clone(&message));
        Ok(message)
    }

    /// Reserves tokens: a call that cannot fit is not made, one that can is bounded to what is left.
    async fn fit_token_budget(
        &mut self,
        mut request: Request,
        body_tokens: u64,
    ) -> Result<Option<Request>, EngineError> {
        let Some(limit) = self.session.state.limits.max_total_tokens else { return Ok(Some(request)) };
        let spent = self.session.state.spent.tokens();
        let left = limit.saturating_sub(spent).saturating_sub(body_tokens);
        if left == 0 {
            let observed = (spent + body_tokens).to_string();
            self.cut(Exhausted { dimension: Dimension::TotalTokens, observed, limit: limit.to_string() }).await?;
            return Ok(None);
        }
        request.max_tokens = request.max_tokens.min(u32::try_from(left).unwrap_or(u32::MAX));
        Ok(Some(request))
    }

    async fn take_reply(&mut self, key: &str, turn: u32, reply: Reply) -> Result<(), EngineError> {
        let reply = self.clean_reply(reply);
        let mut tool_uses: Vec<ToolUse> = Vec::new();
        for block in &reply.blocks {
            if let Block::ToolUse { id, name, input } = block {
                let malformed = !matches!(input, ToolInput::Json(Value::Object(_)));
                match tool_uses.iter_mut().find(|other| other.id == *id) {
                    // One id, two calls: nobody can tell which result belongs to which. Run neither.
                    Some(repeated) => repeated.malformed = true,
                    None => tool_uses.push(ToolUse { id: id.clone(), name: name.clone(), malformed }),
                }
            }
        }
        let agent = self.agents.get(&self.call()?.started.agent);
        let responded = LlmResponded {
            call: key.to_owned(),
            turn,
            message: self.session.blobs.put(reply.message.get().as_bytes())?,
            stop: match &reply.stop_details {
                Some(details) => format!("{}: {details}", reply.stop),
                None => reply.stop.to_string(),
            },
            next: reply_move(agent::next_move(&reply.stop, &reply.blocks)),
            empty: reply.blocks.is_empty(),
            tool_uses,
            usage: Usage {
                input: reply.usage.input_tokens,
                cache_write: reply.usage.cache_creation_input_tokens,
                cache_read: reply.usage.cache_read_input_tokens,
                output: reply.usage.output_tokens,
                thinking: reply.usage.thinking_tokens,
                web_searches: 0,
            },
            cost_usd: agent.and_then(|agent| agent.cost(&reply.usage)),
            request_id: reply.request_id.clone(),
            rate: None,
            session: None,
        };
        self.record(responded).await
    }

    pub(super) async fn take_failure(
        &mut self,
        key: &str,
        turn: u32,
        attempt: u32,
        error: &CallError,
    ) -> Result<(), EngineError> {
        let class = agent::classify(error);
        let words = self.clean_error(error);
        let jitter = jitter();
        let wait = agent::delay(class, attempt + 1, error.retry_after(), jitter);
        let fits = wait.is_some_and(|wait| wait < self.total_time_left());
        // Where people are waited for, one can raise the account's limit.
        let operator = &self.session.state.operator;
        let asks = class == RetryClass::SpendLimit
            && operator.patience.mode == Mode::Wait
            && operator.decisions.len() < MAX_DECISIONS;
        let asked = asks.then(|| DecisionAsked {
            id: operator.next_id(),
            request: DecisionRequest::SpendLimit { detail: words.clone() },
            why: "the account's spend limit is reached; no retry helps before it is raised".to_owned(),
            asked_by: None,
        });
        let wait = if asks { Some(Duration::ZERO) } else { wait };
        let stop = match class {
            RetryClass::SpendLimit if asks => None,
            RetryClass::SpendLimit => Some(Signal::SpendLimit),
            RetryClass::Auth => Some(Signal::DownstreamUnavailable),
            RetryClass::RateLimited | RetryClass::Overloaded if !fits => Some(Signal::RateLimit),
            RetryClass::Transient | RetryClass::Crashed if wait.is_none() || !fits => {
                Some(Signal::DownstreamUnavailable)
            }
            RetryClass::RateLimited
            | RetryClass::Overloaded
            | RetryClass::Transient
            | RetryClass::Crashed
            | RetryClass::TooLarge
            | RetryClass::Fatal => None,
        };
        let wait = if stop.is_some() { None } else { wait };
        self.record(LlmFailed {
            call: key.to_owned(),
            turn,
            attempt,
            class: class_name(class).to_owned(),
            message: words.clone(),
            wait_millis: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        })
        .await?;
        if let Some(signal) = stop {
            self.signals.raise(signal, words);
        }
        match (wait, asked) {
            (_, Some(asked)) => self.record(asked).await,
            (Some(wait), None) => self.wait_out(wait).await,
            (None, None) => Ok(()),
        }
    }

    async fn return_results(&mut self) -> Result<(), EngineError> {
        let call = self.call()?;
        let key = call.started.call.clone();
        let mut content = Vec::new();
        for (tool_use, text, is_error) in call.results() {
            let text = match text {
                Text::Inline(text) => text.clone(),
                Text::Blob(digest) => String::from_utf8_lossy(&self.session.blobs.get(digest)?).into_owned(),
            };
            content.push(
                json!({"type": "tool_result", "tool_use_id": tool_use.id, "content": text, "is_error": is_error}),
            );
        }
        let words = self.words(self.call()?.role());
        if let Some((text, _)) = &words {
            content.push(json!({"type": "text", "text": text}));
        }
        self.extend(key.clone(), json!({"role": "user", "content": content}), ExtendedBecause::ToolResults).await?;
        self.delivered(words, key).await
    }

    /// What the operator wants the next request to say, with the numbers of the words. Nobody whispers to the
    /// judge: its words wait for the next worker.
    fn words(&self, role: Role) -> Option<(String, Vec<u32>)> {
        if role == Role::Skeptic {
            return None;
        }
        let queued: Vec<_> = self.session.state.operator.queued().collect();
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
    async fn delivered(&mut self, words: Option<(String, Vec<u32>)>, call: String) -> Result<(), EngineError> {
        match words {
            Some((_, numbers)) => self.record(SteerDelivered { numbers, call }).await,
            None => Ok(()),
        }
    }

    async fn remind(&mut self, why: ExtendedBecause) -> Result<(), EngineError> {
        let call = self.call()?;
        let text = match why {
            ExtendedBecause::EmptyReply => "Please go on.".to_owned(),
            ExtendedBecause::ReportMissing | ExtendedBecause::ToolResults => {
                format!("Your part is not finished: hand in your report with `{}` now.", call.report_tool())
            }
        };
        let key = call.started.call.clone();
        self.extend(key, json!({"role": "user", "content": text}), why).await
    }

    async fn extend(&mut self, call: String, message: Value, why: ExtendedBecause) -> Result<(), EngineError> {
        let message = self.session.blobs.put(message.to_string().as_bytes())?;
        self.record(ConversationExtended { call, message, why }).await
    }
}

/// The tools of a role, in a fixed order: they are part of the prefix that is sent again and again.
fn tools_json(role: Role, sandbox: &Sandbox) -> String {
    let access = if role.may_write() { Access::ReadWrite } else { Access::ReadOnly };
    // Readers get a shell only where it cannot write.
    let mut tools: Vec<Value> = registry::catalogue(access, sandbox.holds_read_only())
        .into_iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}))
        .collect();
    // The judge asks nobody.
    if role != Role::Skeptic {
        tools.push(ask::specification());
    }
    tools.push(json!({
        "name": report::tool_name(role),
        "description": "Hand in your report. This ends your part of the iteration.",
        "input_schema": report::schema(role),
    }));
    Value::Array(tools).to_string()
}

const fn reply_move(next: NextMove) -> ReplyMove {
    match next {
        NextMove::Finish => ReplyMove::Finish,
        NextMove::RunTools => ReplyMove::RunTools,
        NextMove::SendBack => ReplyMove::SendBack,
        NextMove::RaiseMaxTokens => ReplyMove::RaiseMaxTokens,
        NextMove::Nudge => ReplyMove::Nudge,
        NextMove::StartFresh => ReplyMove::StartFresh,
        NextMove::Refused => ReplyMove::Refused,
        NextMove::Stop => ReplyMove::Stop,
    }
}

const fn class_name(class: RetryClass) -> &'static str {
    match class {
        RetryClass::SpendLimit => "spend_limit",
        RetryClass::RateLimited => "rate_limited",
        RetryClass::Overloaded => "overloaded",
        RetryClass::Transient => "transient",
        RetryClass::Crashed => "crashed",
        RetryClass::Auth => "auth",
        RetryClass::TooLarge => "too_large",
        RetryClass::Fatal => "fatal",
    }
}

/// Random bits for the back-off. The hasher's keys are seeded by the system.
fn jitter() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
