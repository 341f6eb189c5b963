//! Runs agent calls: builds conversations, asks the model, waits out what passes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::gate::{Verdict, Why};
use crate::agent::message::has_open_server_tool;
use crate::agent::{self, Block, CallError, Delta, NextMove, RateLimits, RateWindow, Reply, RetryClass, ToolInput};
use crate::machine::call::{CallState, CallTodo, PREFIX_MISMATCH};
use crate::machine::event::{
    AgentEnd, AgentFinished, AgentStarted, ConversationExtended, DecisionAsked, ExtendedBecause, LlmFailed,
    LlmRequested, LlmResponded, Phase, Probe, RateLeft, ReplyMove, Signal, SteerDelivered, Text, ToolUse,
};
use crate::machine::iteration::{Iteration, call_key};
use crate::model::budget::{Dimension, Exhausted};
use crate::model::capsule::Capsule;
use crate::model::criterion::Proof;
use crate::model::decimal::Exact;
use crate::model::decision::{MAX_DECISIONS, Mode, Request as DecisionRequest};
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::playbook::prompts;

use super::backends::Setup;
use super::conversation;
use super::driver::{Cutoff, Driver, Guarded};
use super::error::EngineError;
use super::program;
use super::rate::{self, RateGate, Ticket};
use super::secrecy::Speaker;
use super::spend::{self, Left, Meter, Size};

/// The skeptic sees this much of the diff; the rest is in the evidence.
const MAX_DIFF_BYTES: usize = 60_000;
/// The skeptic sees this much of a check's output.
const MAX_OUTPUT_BYTES: usize = 4_000;
/// A wait at the gate that is shorter is not worth a record.
const SHORTEST_RECORDED_MS: u64 = 1_000;
/// Short looks at the gate before the wait is recorded all the same.
const SHORT_LOOKS: u32 = 50;

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
            let held = self.session.sandbox.holds_read_only();
            let web = self.agents.get(&name).and_then(|agent| agent.setup.web_for(role));
            conversation::tools_json(role, web, held)
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
        if self.waits_on().await? {
            return Ok(());
        }
        if self.agents.program(&self.call()?.started.agent).is_some() {
            return self.ask_program().await;
        }
        let call = self.call()?.clone();
        let (key, turn, attempt) = (call.started.call.clone(), call.turn, call.attempts);
        let agent = self
            .agents
            .get(&call.started.agent)
            .ok_or_else(|| EngineError::Internal(format!("agent {} was not prepared", call.started.agent)))?;
        let (backend, setup, gate) = (Arc::clone(&agent.backend), agent.setup.clone(), agent.gate.clone());
        let mut request = conversation::request(&call, &setup, &self.session.blobs, &mut self.messages)?;
        let mut size = Size::estimate(request.body().len());
        if Left::of(&self.session.state).is_near(size, setup.context) {
            let token = CancellationToken::new();
            let counting = async {
                tokio::select! {
                    tokens = backend.count_tokens(&request) => tokens,
                    () = token.cancelled() => None,
                }
            };
            match self.guarded(&token, Cutoff::Agent, counting).await? {
                Guarded::Done(tokens) => size = tokens.map_or(size, Size::counted),
                // What came first is recorded next.
                Guarded::Stopped(_) | Guarded::Cut(_) => return Ok(()),
            }
        }
        let searches = conversation::searches(call.role(), &setup);
        let fit = match spend::fit(&request, size, searches, &setup, &self.session.state) {
            Ok(fit) => fit,
            Err(exhausted) => return self.cut(exhausted).await,
        };
        request.max_tokens = fit.max_tokens;
        let ticket = match &gate {
            Some(gate) => match self.pass_gate(gate, &key, turn, attempt).await? {
                Some(ticket) => Some((gate.clone(), ticket)),
                None => return Ok(()),
            },
            None => None,
        };
        self.retry_now = false;
        self.record(LlmRequested {
            call: key.clone(),
            turn,
            attempt,
            request_sha256: Digest::of(&request.body()),
            reserved_tokens: size.tokens + u64::from(request.max_tokens),
            reserved_usd: fit.reserved_usd,
            drop_blocks: call.drop_blocks,
        })
        .await?;
        let mut meter = Meter::new(&fit, &setup, &self.session.state);
        let outcome = {
            let token = CancellationToken::new();
            let mut speaker = Speaker::new(self.hub.clone(), key.clone(), turn, Arc::clone(self.secrets()));
            let (cancelled, passed) = (token.clone(), token.clone());
            let effect = async {
                let mut on_delta = |delta: Delta<'_>| {
                    if let (Delta::Limits(limits), Some((gate, ticket))) = (&delta, &ticket) {
                        gate.heard(*ticket, limits, rate::now_ms());
                    }
                    if meter.take(&delta) {
                        passed.cancel();
                    }
                    speaker.hear(delta);
                };
                let result = tokio::select! {
                    biased;
                    () = cancelled.cancelled() => None,
                    result = backend.complete(&request, &mut on_delta) => Some(result),
                };
                speaker.finish();
                result
            };
            self.guarded(&token, Cutoff::Agent, effect).await?
        };
        if let Some((gate, ticket)) = &ticket {
            match &outcome {
                Guarded::Done(Some(Err(error))) if asks_to_wait(error) => {
                    gate.refused(*ticket, error.retry_after(), rate::now_ms());
                }
                Guarded::Done(_) | Guarded::Stopped(_) | Guarded::Cut(_) => gate.close(*ticket),
            }
        }
        match (outcome, meter.passed()) {
            (Guarded::Done(Some(Ok(reply))), _) => self.take_reply(&key, turn, reply, &setup).await,
            (Guarded::Done(Some(Err(error))), None) => {
                let owed = meter.owed();
                let cost = owed.as_ref().and_then(|usage| setup.cost(usage));
                self.take_failure(&key, turn, attempt, &error, owed, cost).await
            }
            (Guarded::Done(_), Some(dimension)) => {
                self.void(&key, turn, attempt, "a limit was passed in the middle of the reply", &meter, &setup).await?;
                self.cut_for(dimension).await
            }
            // Stopped: the signal is recorded next. Cut: the limit is recorded next. Either way the reply is void.
            (Guarded::Done(None) | Guarded::Stopped(_), _) => {
                self.void(&key, turn, attempt, "the run was stopped in the middle of the reply", &meter, &setup).await
            }
            (Guarded::Cut(_), _) => {
                self.void(&key, turn, attempt, "the time was up in the middle of the reply", &meter, &setup).await?;
                self.cut_if_exhausted().await.map(|_| ())
            }
        }
    }

    /// A run that was killed in a wait waits for the rest of it. `true`: what comes next is decided anew.
    async fn waits_on(&mut self) -> Result<bool, EngineError> {
        let Some((since, millis)) = self.call()?.wait.clone() else { return Ok(false) };
        let Ok(since) = since.parse::<jiff::Timestamp>() else { return Ok(false) };
        let waited = u64::try_from(jiff::Timestamp::now().as_millisecond() - since.as_millisecond()).unwrap_or(0);
        let left = Duration::from_millis(millis.saturating_sub(waited));
        if left.is_zero() || self.agents.hurries() {
            return Ok(false);
        }
        if left >= self.total_time_left() {
            self.signals.raise(Signal::RateLimit, "the wait that a server asked for does not fit the time left");
            return Ok(true);
        }
        self.wait_out(left).await?;
        Ok(true)
    }

    /// Waits until this run may call. `None`: it waited, was stopped, or there is no time left to wait; what comes
    /// next is decided anew.
    async fn pass_gate(
        &mut self,
        gate: &RateGate,
        key: &str,
        turn: u32,
        attempt: u32,
    ) -> Result<Option<Ticket>, EngineError> {
        // The operator's "retry now" goes past what other runs were told.
        for _ in 0..SHORT_LOOKS {
            let insist = std::mem::take(&mut self.retry_now);
            let (verdict, ticket) = gate.ask(rate::now_ms(), jitter(), insist);
            let Verdict::Wait { millis, why } = verdict else { return Ok(Some(ticket)) };
            if millis >= SHORTEST_RECORDED_MS {
                let message = match why {
                    Why::Told => "another run of yours was told to wait",
                    Why::UsedUp => "your runs together have used up what the server allows for now",
                    Why::Asking => "another run of yours is finding out how much is left",
                };
                return self
                    .wait_at_gate(key, turn, attempt, message, Duration::from_millis(millis))
                    .await
                    .map(|()| None);
            }
            if self.total_time_left().is_zero() {
                return Ok(None);
            }
            self.wait_out(Duration::from_millis(millis)).await?;
            if self.signals.seen().is_some() {
                return Ok(None);
            }
        }
        // Whoever asks has asked for long: it is a wait like any other now.
        let wait = Duration::from_millis(SHORTEST_RECORDED_MS);
        self.wait_at_gate(key, turn, attempt, "another run of yours is finding out how much is left", wait).await?;
        Ok(None)
    }

    /// No call was made, but the run waits for the server all the same, and says so.
    async fn wait_at_gate(
        &mut self,
        key: &str,
        turn: u32,
        attempt: u32,
        message: &str,
        wait: Duration,
    ) -> Result<(), EngineError> {
        let fits = wait < self.total_time_left();
        self.record(LlmFailed {
            call: key.to_owned(),
            turn,
            attempt,
            class: LlmFailed::RATE_LIMITED.to_owned(),
            message: message.to_owned(),
            wait_millis: fits.then(|| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            usage: None,
            cost_usd: None,
        })
        .await?;
        if fits {
            return self.wait_out(wait).await;
        }
        self.signals.raise(Signal::RateLimit, message.to_owned());
        Ok(())
    }

    /// A reply that will never end: what the server had counted is owed. Nothing counted, nothing recorded: the
    /// ledger then counts the request as lost.
    async fn void(
        &mut self,
        key: &str,
        turn: u32,
        attempt: u32,
        message: &str,
        meter: &Meter,
        setup: &Setup,
    ) -> Result<(), EngineError> {
        let Some(owed) = meter.owed() else { return Ok(()) };
        self.record(LlmFailed {
            call: key.to_owned(),
            turn,
            attempt,
            class: LlmFailed::CANCELLED.to_owned(),
            message: message.to_owned(),
            wait_millis: Some(0),
            usage: Some(spend::recorded(&owed)),
            cost_usd: setup.cost(&owed),
        })
        .await
    }

    /// A limit that the stream passed.
    async fn cut_for(&mut self, dimension: Dimension) -> Result<(), EngineError> {
        if self.cut_if_exhausted().await? {
            return Ok(());
        }
        // What we counted ourselves says so, though the server had not said it yet.
        let observed = match dimension {
            Dimension::CostUsd => self.session.state.spent.cost_usd.map(|cost| cost.to_string()),
            _ => Some(self.session.state.spent.tokens().to_string()),
        };
        let limit = self.session.state.limits.of(dimension).unwrap_or_default();
        self.cut(Exhausted { dimension, observed: observed.unwrap_or_else(|| "unknown".to_owned()), limit }).await
    }

    async fn take_reply(&mut self, key: &str, turn: u32, reply: Reply, setup: &Setup) -> Result<(), EngineError> {
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
            usage: spend::recorded(&reply.usage),
            cost_usd: setup.cost(&reply.usage),
            request_id: reply.request_id.clone(),
            rate: rate_left(&reply.limits),
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
        owed: Option<agent::Usage>,
        cost_usd: Option<Exact>,
    ) -> Result<(), EngineError> {
        let usage = owed.as_ref().map(spend::recorded);
        // Once: the server may leave out the block that no longer fits. A second refusal is final.
        let setup = self.agents.get(&self.call()?.started.agent).map(|agent| &agent.setup);
        let thinking = setup.and_then(|setup| setup.thinking);
        let can_drop = thinking.is_some_and(|thinking| thinking.dropping().is_some());
        if agent::retry::is_prefix_mismatch(error) && can_drop && !self.call()?.drop_blocks {
            let class = PREFIX_MISMATCH.to_owned();
            let (call, message) = (key.to_owned(), self.clean_error(error));
            let failed = LlmFailed { call, turn, attempt, class, message, wait_millis: Some(0), usage, cost_usd };
            return self.record(failed).await;
        }
        let class = agent::classify(error);
        let words = self.clean_error(error);
        let jitter = jitter();
        // Waits that a server asked for do not use up the tries of what breaks down.
        let tries = match class {
            RetryClass::Crashed | RetryClass::Transient => self.call()?.faults + 1,
            _ => attempt + 1,
        };
        let wait = agent::delay(class, tries, error.retry_after(), jitter);
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
            usage,
            cost_usd,
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
        // While the server's own tool is open, nothing but results may follow: the words wait for the next message.
        let reply = call.reply.as_ref().map(|reply| self.session.blobs.get(&reply.message)).transpose()?;
        let open = reply.is_some_and(|message| has_open_server_tool(&String::from_utf8_lossy(&message)));
        let words = if open { None } else { self.words(call.role()) };
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
        RetryClass::RateLimited => LlmFailed::RATE_LIMITED,
        RetryClass::Overloaded => LlmFailed::OVERLOADED,
        RetryClass::Transient => LlmFailed::TRANSIENT,
        RetryClass::Crashed => "crashed",
        RetryClass::Auth => "auth",
        RetryClass::TooLarge => "too_large",
        RetryClass::Fatal => "fatal",
    }
}

/// Does the server ask everybody with this key to wait?
fn asks_to_wait(error: &CallError) -> bool {
    matches!(agent::classify(error), RetryClass::RateLimited | RetryClass::Overloaded)
}

/// What is left, as the journal keeps it: the scarcest of the token limits, and the reset of what is scarcer.
fn rate_left(limits: &RateLimits) -> Option<RateLeft> {
    let tokens = [limits.tokens, limits.input_tokens, limits.output_tokens];
    let tokens = tokens.into_iter().filter(|window| window.remaining.is_some()).min_by_key(|w| w.remaining);
    let tokens = tokens.unwrap_or_default();
    if limits.requests.remaining.is_none() && tokens.remaining.is_none() {
        return None;
    }
    // Shares are compared by cross-multiplying: no floating point.
    let share = |window: &RateWindow| window.remaining.zip(window.limit.filter(|limit| *limit > 0));
    let tokens_scarcer = match (share(&limits.requests), share(&tokens)) {
        (Some((left, of)), Some((tokens_left, tokens_of))) => {
            u128::from(tokens_left) * u128::from(of) < u128::from(left) * u128::from(tokens_of)
        }
        (None, Some(_)) => true,
        (Some(_) | None, None) => false,
    };
    let reset = if tokens_scarcer { tokens.reset } else { limits.requests.reset.or(tokens.reset) };
    Some(RateLeft {
        requests: limits.requests.remaining,
        tokens: tokens.remaining,
        reset: reset.map(|at| at.to_string()),
    })
}

/// Random bits for the back-off. The hasher's keys are seeded by the system.
fn jitter() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
