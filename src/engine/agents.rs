//! The conversation of an agent call: its first message, results, reminders, its end.
//!
//! Not here: asking the model (`asking`) or the program (`program`), running tools (`tools`). Invariant: what is said is a
//! blob before it is an event, and an event before it is sent.

use serde_json::{Value, json};

use crate::agent::message::has_open_server_tool;
use crate::machine::call::{CallState, CallTodo};
use crate::machine::event::{
    AgentEnd, AgentFinished, AgentStarted, ConversationExtended, ExtendedBecause, Phase, Probe, SteerDelivered, Text,
};
use crate::machine::iteration::Iteration;
use crate::model::capsule::Capsule;
use crate::model::criterion::Proof;
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::purpose::{Purpose, Tool};
use crate::playbook::prompts;

use super::conversation;
use super::driver::Driver;
use super::error::EngineError;
use super::program;

/// The skeptic sees this much of the diff; the rest is in the evidence.
const MAX_DIFF_BYTES: usize = 60_000;
/// The skeptic sees this much of a check's output.
const MAX_OUTPUT_BYTES: usize = 4_000;

impl Driver<'_> {
    pub(super) async fn start_agent(
        &mut self,
        purpose: Purpose,
        paraphrase: Option<u8>,
        subject: Option<String>,
    ) -> Result<(), EngineError> {
        if self.cut_if_exhausted().await? {
            return Ok(());
        }
        let role = purpose.role();
        if role == Role::Qc {
            self.restore_scripts()?;
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
            Value::Array(program::tools_of(purpose)).to_string()
        } else {
            let held = self.session.sandbox.holds_read_only();
            let web = self.agents.get(&name).and_then(|agent| agent.setup.web_for(role));
            conversation::tools_json(purpose, web, held)
        };
        let system = self.agents.prompts().render(purpose, &self.session.state.criteria)?;
        let mut content = match purpose {
            Purpose::Scout | Purpose::Solver | Purpose::Skeptic => self.first_message(role, paraphrase)?,
            Purpose::Author | Purpose::Critic | Purpose::Detour => self.pass_message(purpose, subject.as_deref())?,
            _ => self.value_message(purpose, subject.as_deref())?,
        };
        let words = self.words(role);
        if let Some((text, _)) = &words {
            content.push('\n');
            content.push_str(text);
        }
        let message = json!({"role": "user", "content": content});
        let started = AgentStarted {
            call: self.session.state.next_call_key(purpose, paraphrase),
            role,
            purpose: (purpose != Purpose::from(role)).then_some(purpose),
            subject,
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
            Role::Solver => {
                text.push_str("\nSCOUT_REPORT\n");
                text.push_str(&json!(iteration.scout()).to_string());
            }
            Role::Skeptic | Role::Critic => {
                text.push_str("\nDIFF\n");
                let diff = iteration.artifacts.as_ref().map(|artifacts| artifacts.diff);
                text.push_str(&self.excerpt(diff, MAX_DIFF_BYTES)?);
                text.push_str("\nCHECK_RESULTS\n");
                text.push_str(&self.check_results(iteration)?.to_string());
            }
            _ => {}
        }
        Ok(text)
    }

    /// The first message of a pass: the capsule, which call it is, what it is about, and what the last pass came to.
    fn pass_message(&self, purpose: Purpose, subject: Option<&str>) -> Result<String, EngineError> {
        let role = purpose.role();
        let mut text = self.first_message(role, None)?;
        text.push('\n');
        text.push_str(&self.call_line(purpose, subject)?);
        text.push_str(&self.pass_brief(role)?);
        if purpose == Purpose::Detour {
            text.push_str("\nDETOUR\n");
            text.push_str(subject.unwrap_or_default());
            text.push('\n');
        }
        Ok(text)
    }

    pub(super) fn excerpt(&self, digest: Option<Digest>, limit: usize) -> Result<String, EngineError> {
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
                "output_path": crate::machine::document::check_output_path(iteration.number(), &criterion.id),
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
        let call = self.session.state.call.as_ref();
        call.ok_or_else(|| EngineError::Internal("no agent call is open".to_owned()))
    }

    async fn end_call(&mut self, end: AgentEnd) -> Result<(), EngineError> {
        let call = self.call()?;
        let finished = AgentFinished { call: call.started.call.clone(), role: call.role(), end };
        self.record(finished).await
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
        if role.judges() {
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
                let tool = call.closing_tool().map_or("its tool", Tool::name);
                format!("Your part is not finished: hand in your report with `{tool}` now.")
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
