//! Runs the tool calls of a reply: announce, run, record. Nothing runs before its intent is durable.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::evidence::permit::{self, Permit, effect_name, effect_of};
use crate::journal;
use crate::machine::document;
use crate::machine::document::check_output_path;
use crate::machine::event::{
    AskedBy, DecisionAsked, Event, ReportAccepted, RunEvent, Text, ToolFinished, ToolIntended, ToolOutcomeKind, ToolUse,
};
use crate::machine::step::{self, Input};
use crate::model::decision::{ASK_TOOL, MAX_DECISIONS, Mode, Request as DecisionRequest};
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::learnings::{self, flatten};
use crate::model::purpose::Tool;
use crate::model::report::Report;
use crate::model::value::tools::Structured;
use crate::model::value::verification;
use crate::tool::process::Access;
use crate::tool::registry::{self, EffectClass, Limits, ToolContext, ToolOutcome};
use crate::tool::sandbox::Confinement;

use super::ask;
use super::driver::{Cutoff, Driver, Guarded};
use super::error::EngineError;

/// No file tool may write these; the engine owns or judges them.
pub(super) const PROTECTED: &[&str] = &["AGENTS.md", "NORTHSTAR.md", "evidence", "scratch/STOP", "loop.yaml"];
/// The repository as a whole.
const REPOSITORY: &[&str] = &[".git"];
/// What decides which programs git runs and where it looks.
const GIT_DECIDES: &[&str] = &[
    ".git/config",
    ".git/config.worktree",
    ".git/hooks",
    ".git/info",
    ".git/modules",
    ".git/HEAD",
    ".git/objects/info",
];
/// One line for people.
const MAX_SUMMARY: usize = 160;
/// Calls that only read and run at the same time.
const MAX_AT_ONCE: usize = 8;
/// The largest input of a tool.
const MAX_INPUT: usize = 1 << 20;

impl Driver<'_> {
    pub(super) async fn run_tool(&mut self, tool_use: ToolUse) -> Result<(), EngineError> {
        if self.cut_if_exhausted().await? {
            return Ok(());
        }
        let (intended, manner) = self.consider(&tool_use)?;
        match manner {
            Manner::Ask { request, why } => {
                let asked_by = self.asked_by(&intended.id)?;
                let id = self.session.state.operator.next_id();
                self.record(DecisionAsked { id, request, why, asked_by: Some(asked_by) }).await
            }
            Manner::Run { input, role } => {
                let key = intended.call.clone();
                let mut intents = vec![Event::from(intended)];
                let mut calls = vec![(tool_use, input)];
                self.join_readers(role, &mut intents, &mut calls)?;
                self.record_all(intents).await?;
                journal::failpoint("tool");
                self.perform(&key, role, calls).await
            }
            Manner::Close(closing) => {
                let mut events = vec![Event::from(intended)];
                events.extend(closing);
                self.record_all(events).await
            }
        }
    }

    /// Calls that only read run together with those right after them that only read, too.
    fn join_readers(
        &self,
        role: Role,
        intents: &mut Vec<Event>,
        calls: &mut Vec<(ToolUse, Value)>,
    ) -> Result<(), EngineError> {
        let Some((first, _)) = calls.first().filter(|(first, _)| effect_of(role, &first.name) == EffectClass::Read)
        else {
            return Ok(());
        };
        let (spent, limits) = (&self.session.state.spent, &self.session.state.limits);
        let left = (limits.max_total_tool_calls.saturating_sub(spent.tool_calls))
            .min(limits.max_tool_calls_per_iteration.saturating_sub(spent.iteration_tool_calls));
        let most = MAX_AT_ONCE.min(usize::try_from(left).unwrap_or(MAX_AT_ONCE));
        let following: Vec<ToolUse> = self.call()?.asked_after(&first.id).cloned().collect();
        for next in following {
            if calls.len() >= most || effect_of(role, &next.name) != EffectClass::Read {
                break;
            }
            let (intended, Manner::Run { input, .. }) = self.consider(&next)? else { break };
            intents.push(intended.into());
            calls.push((next, input));
        }
        Ok(())
    }

    /// What a tool call means, from the stored reply, the rules and what people said. After a crash the
    /// workspace or the operator's patience may have changed; what was announced is closed either way.
    fn consider(&self, tool_use: &ToolUse) -> Result<(ToolIntended, Manner), EngineError> {
        let input = self.tool_input(tool_use)?;
        let call = self.call()?;
        let role = call.role();
        let purpose = call.purpose();
        let report_tool = Tool::of_name(&tool_use.name).filter(|tool| purpose.tools().contains(tool));
        let is_report = report_tool.is_some();
        let is_question = tool_use.name == ASK_TOOL && purpose.may_ask();
        let own_part = is_report || is_question;
        let effect = if own_part { EffectClass::Read } else { effect_of(role, &tool_use.name) };
        // What was to follow a call that failed leans on what is not there.
        let void = effect != EffectClass::Read && call.failed_before(&tool_use.id);
        let permission = if own_part {
            Permission::Run { rule: "its own part".to_owned() }
        } else if void {
            Permission::Refuse { rule: "not executed".to_owned() }
        } else {
            self.permission(tool_use, &input)?
        };
        let intended = ToolIntended {
            call: call.started.call.clone(),
            id: tool_use.id.clone(),
            name: flatten(&tool_use.name),
            input: Digest::of(input.to_string().as_bytes()),
            summary: summary(&tool_use.name, &input),
            effect: effect_name(effect).to_owned(),
            rule: permission.rule().to_owned(),
        };
        let manner = if tool_use.malformed {
            // The documented form: what it wrote, as data. The stored reply has that in the input's place already.
            Manner::Close(vec![self.refusal(&intended, &input.to_string())?])
        } else if input.to_string().len() > MAX_INPUT {
            let text = format!("The input has more than {MAX_INPUT} bytes. Send less at a time.");
            Manner::Close(vec![self.refusal(&intended, &text)?])
        } else if void {
            let text = "Not executed: an earlier call in this message failed. Look at its result first.";
            Manner::Close(vec![self.refusal(&intended, text)?])
        } else if is_report {
            Manner::Close(self.take_report(&intended, report_tool, &input)?)
        } else if is_question {
            self.question(&intended, &input)?
        } else {
            match permission {
                Permission::Run { .. } => Manner::Run { input, role },
                Permission::Ask { request } => {
                    Manner::Ask { request, why: "a rule puts this call before a person".to_owned() }
                }
                Permission::Refuse { rule } => {
                    let text =
                        format!("Not permitted: {rule}. Find another way, or say in your report what you would need.");
                    Manner::Close(vec![self.refusal(&intended, &text)?])
                }
            }
        };
        Ok((intended, manner))
    }

    /// What the rules and the operator say about a call.
    fn permission(&self, tool_use: &ToolUse, input: &Value) -> Result<Permission, EngineError> {
        let by = self.asked_by(&tool_use.id)?;
        let (rule, command) = match permit::permit(&self.session.state, &self.rules, &by, &tool_use.name, input) {
            Permit::Run { rule } => return Ok(Permission::Run { rule }),
            Permit::Refuse { rule } => return Ok(Permission::Refuse { rule }),
            Permit::Ask { rule, command } => (rule, command),
        };
        let operator = &self.session.state.operator;
        let asked = operator.asked_by(&by).is_some();
        if asked || operator.patience.mode == Mode::Stop || operator.decisions.len() >= MAX_DECISIONS {
            let rule = format!("ask {rule}: nobody is there to answer, so it is denied");
            return Ok(Permission::Refuse { rule });
        }
        Ok(Permission::Ask {
            request: DecisionRequest::Permission {
                tool: flatten(&tool_use.name),
                command,
                directory: self.session.workspace.to_string_lossy().into_owned(),
                rule,
            },
        })
    }

    /// Denied too often: the run waits for a person, whose words the agent gets.
    pub(super) async fn escalate(&mut self, problem: String) -> Result<(), EngineError> {
        let id = self.session.state.operator.next_id();
        let request = DecisionRequest::Escalation { problem, options: Vec::new() };
        let why = "what it wants is not permitted; your answer goes to the agent".to_owned();
        self.record(DecisionAsked { id, request, why, asked_by: None }).await
    }

    /// The place of a tool call of the present reply.
    fn asked_by(&self, tool: &str) -> Result<AskedBy, EngineError> {
        let call = self.call()?;
        Ok(AskedBy { call: call.started.call.clone(), turn: call.turn, tool: tool.to_owned() })
    }

    /// A question to a person: ask it, or hand the answer on.
    fn question(&self, intended: &ToolIntended, input: &Value) -> Result<Manner, EngineError> {
        let operator = &self.session.state.operator;
        if let Some(decision) = operator.asked_by(&self.asked_by(&intended.id)?) {
            let (call, id) = (intended.call.clone(), intended.id.clone());
            let finished = self.closed(call, id, ToolOutcomeKind::Done, &ask::told(decision))?;
            return Ok(Manner::Close(vec![finished]));
        }
        if operator.decisions.len() >= MAX_DECISIONS {
            let text = "This run has asked too often. Decide yourself, or say in your report what you would need.";
            return Ok(Manner::Close(vec![self.refusal(intended, text)?]));
        }
        match self.request_of(input) {
            Ok((request, why)) => Ok(Manner::Ask { request, why }),
            Err(why) => Ok(Manner::Close(vec![self.refusal(intended, &why)?])),
        }
    }

    /// What a command of this access wears.
    pub(super) fn confinement(&self, access: Access) -> Result<Option<Arc<Confinement>>, EngineError> {
        let confinement = self.session.sandbox.for_tool(access);
        confinement.map_err(|why| EngineError::Internal(format!("the sandbox cannot be set up: {why}")))
    }

    /// What nothing that runs for a loop may change: AGENTS.md, and the repository that the engine commits to. Where it
    /// does not commit, an agent may; but not say what git runs, nor where it looks.
    pub(super) fn sealed_from_all(&self) -> Vec<PathBuf> {
        let commits = self.session.state.git.facts.as_ref().is_some_and(|facts| facts.branch.is_some());
        let git = if commits { REPOSITORY } else { GIT_DECIDES };
        git.iter().chain(&[learnings::FILE]).map(PathBuf::from).collect()
    }

    /// What a check wears. It runs code that an agent wrote, so what an agent may not change is sealed from it, too.
    pub(super) fn check_confinement(&self) -> Result<Option<Arc<Confinement>>, EngineError> {
        let mut sealed = self.items_guarded();
        sealed.extend(self.sealed_from_all());
        let confinement = self.session.sandbox.for_tool_sealing(Access::ReadWrite, &sealed);
        confinement.map_err(|why| EngineError::Internal(format!("the sandbox cannot be set up: {why}")))
    }

    /// What the commands of an agent wear.
    fn role_confinement(&self, role: Role) -> Result<Option<Arc<Confinement>>, EngineError> {
        let sealed = self.sealed_from(role);
        let confinement = self.session.sandbox.for_tool_sealing(permit::access_of(role), &sealed);
        confinement.map_err(|why| EngineError::Internal(format!("the sandbox cannot be set up: {why}")))
    }

    /// The input as the model wrote it, from the stored reply.
    fn tool_input(&self, tool_use: &ToolUse) -> Result<Value, EngineError> {
        let call = self.call()?;
        let reply =
            call.reply.as_ref().ok_or_else(|| EngineError::Internal("a tool call without a reply".to_owned()))?;
        let message = self.session.blobs.get(&reply.message)?;
        Ok(permit::asked_for(&message, &tool_use.id).map_or(Value::Null, |(_, input)| input))
    }

    fn refusal(&self, intended: &ToolIntended, text: &str) -> Result<Event, EngineError> {
        self.closed(intended.call.clone(), intended.id.clone(), ToolOutcomeKind::Refused, text)
    }

    pub(super) fn text(&self, text: &str) -> Result<Text, EngineError> {
        if text.len() <= Text::MAX_INLINE {
            return Ok(Text::Inline(text.to_owned()));
        }
        Ok(Text::Blob(self.session.blobs.put(text.as_bytes())?))
    }

    /// The result of a call that ran no process.
    fn closed(&self, call: String, id: String, outcome: ToolOutcomeKind, text: &str) -> Result<Event, EngineError> {
        let text = self.text(text)?;
        let is_error = outcome != ToolOutcomeKind::Done;
        Ok(ToolFinished {
            call,
            id,
            outcome,
            is_error,
            exit_code: None,
            millis: 0,
            text,
            output: None,
            output_bytes: 0,
        }
        .into())
    }

    /// Runs calls at the same time and records their results in their order.
    async fn perform(&mut self, key: &str, role: Role, calls: Vec<(ToolUse, Value)>) -> Result<(), EngineError> {
        let token = CancellationToken::new();
        let context = ToolContext {
            workspace: self.session.workspace.clone(),
            access: permit::access_of(role),
            limits: Limits::default(),
            run_marker: self.session.state.run().as_str().to_owned(),
            cancel: token.clone(),
            protected: self.protected_from(role),
            within: (role == Role::Qc).then(|| PathBuf::from(verification::DIRECTORY)),
            confinement: self.role_confinement(role)?,
        };
        let running = calls.iter().map(|(tool_use, input)| registry::run(&context, &tool_use.name, input));
        let guarded = self.guarded(&token, Cutoff::Agent, join_all(running)).await?;
        let (outcomes, cut) = match guarded {
            Guarded::Done(outcomes) | Guarded::Stopped(outcomes) => (outcomes, false),
            Guarded::Cut(outcomes) => (outcomes, true),
        };
        let mut events = Vec::new();
        for ((tool_use, _), outcome) in calls.iter().zip(outcomes) {
            events.push(self.finished(key, &tool_use.id, outcome)?);
        }
        self.record_all(events).await?;
        if cut {
            self.cut_if_exhausted().await?;
        }
        Ok(())
    }

    fn finished(&self, key: &str, id: &str, outcome: ToolOutcome) -> Result<Event, EngineError> {
        let outcome = self.clean_outcome(outcome);
        let text = self.text(&outcome.text)?;
        let output = if outcome.output == outcome.text.as_bytes() {
            None
        } else {
            Some(self.session.blobs.put(&outcome.output)?)
        };
        let finished = ToolFinished {
            call: key.to_owned(),
            id: id.to_owned(),
            outcome: if outcome.cancelled { ToolOutcomeKind::Cancelled } else { ToolOutcomeKind::Done },
            is_error: outcome.is_error,
            exit_code: outcome.exit_code,
            millis: outcome.millis,
            text,
            output,
            output_bytes: outcome.total_bytes,
        };
        Ok(finished.into())
    }

    /// The engine died between intent and result. What only reads is repeated; what acts is not.
    pub(super) async fn recover_tool(&mut self, tool_use: ToolUse, effect: &str) -> Result<(), EngineError> {
        let (intended, manner) = self.consider(&tool_use)?;
        let repeatable = effect != effect_name(EffectClass::Effect) && self.session.state.cut.is_none();
        match manner {
            Manner::Run { input, role } if repeatable => {
                self.perform(&intended.call, role, vec![(tool_use, input)]).await
            }
            // It was refused before the engine died, and would be asked about now: it is refused all the same.
            Manner::Ask { .. } => {
                let text = "The engine was interrupted before this was answered. Ask again if you still need it.";
                let refused = self.closed(intended.call, tool_use.id, ToolOutcomeKind::Refused, text)?;
                self.record(refused).await
            }
            Manner::Run { .. } => {
                let text =
                    "The engine was interrupted while this ran; its outcome is unknown. Inspect before you repeat it.";
                let unknown = self.closed(intended.call, tool_use.id, ToolOutcomeKind::Unknown, text)?;
                self.record(unknown).await
            }
            Manner::Close(closing) => self.record_all(closing).await,
        }
    }

    /// Acceptance first: a report that is in must not be asked for again after a crash.
    fn take_report(
        &self,
        intended: &ToolIntended,
        tool: Option<Tool>,
        input: &Value,
    ) -> Result<Vec<Event>, EngineError> {
        let (call, id) = (intended.call.clone(), intended.id.clone());
        // The engine died between acceptance and answer.
        if self.call()?.has_accepted(&id) {
            return Ok(vec![self.closed(call, id, ToolOutcomeKind::Done, "Accepted.")?]);
        }
        let report = match tool.map_or_else(|| Err("there is no such tool".to_owned()), |tool| self.admit(tool, input))
        {
            Ok(report) => report,
            Err(why) => return Ok(vec![self.refusal(intended, &why)?]),
        };
        let links = self.resolve(&report)?;
        let sha256 = Digest::of(document::report(&report).as_bytes());
        let text = if report.ends_call() { "Report accepted." } else { "Accepted." };
        let accepted = ReportAccepted { call: call.clone(), id: id.clone(), report, links, sha256 };
        Ok(vec![accepted.into(), self.closed(call, id, ToolOutcomeKind::Done, text)?])
    }

    /// Reads what a structured tool was given, and asks the guardrails. The error goes back to the agent.
    pub(super) fn admit(&self, tool: Tool, input: &Value) -> Result<Report, String> {
        let report = Report::parse(tool, input)?;
        self.session.state.playbook().admit(&self.session.state, &report)?;
        // A person will be shown it as a document, so it is kept like one.
        if let Report::Value(Structured::ProposePrd(proposal)) = &report {
            self.session.blobs.put(proposal.text.as_bytes()).map_err(|e| e.to_string())?;
        }
        Ok(report)
    }

    /// The cited paths that exist now, with their digests: files of the tree, and outputs of the checks.
    pub(super) fn resolve(&self, report: &Report) -> Result<BTreeMap<String, Digest>, EngineError> {
        let cited = report.cited_paths();
        if cited.is_empty() {
            return Ok(BTreeMap::new());
        }
        let Some(iteration) = &self.session.state.current else { return Ok(BTreeMap::new()) };
        let mut known = BTreeMap::new();
        if let Some(tree) = &self.session.state.tree {
            let snapshot: crate::workspace::tree::TreeSnapshot = serde_json::from_slice(&self.session.blobs.get(tree)?)
                .map_err(|e| EngineError::Internal(format!("the tree cannot be read: {e}")))?;
            known.extend(snapshot.files.into_iter().map(|(path, file)| (path, file.sha256)));
        }
        for ((_, probe), result) in &iteration.probes {
            if let crate::machine::event::Probe::Criterion(id) = probe {
                known.insert(check_output_path(iteration.number(), id), result.output);
            }
        }
        let links = cited.into_iter().filter_map(|path| {
            let plain = path.strip_prefix("./").unwrap_or(path);
            let plain = plain.split_once('#').map_or(plain, |(path, _)| path);
            known.get(plain).map(|sha256| (path.to_owned(), *sha256))
        });
        Ok(links.collect())
    }

    /// Several events that belong together, each passed through the machine.
    pub(super) async fn record_all(&mut self, events: Vec<Event>) -> Result<(), EngineError> {
        let checked: Vec<Event> = events
            .into_iter()
            .flat_map(|event| step::step(&self.session.state, Input::Record(Box::new(event))))
            .collect();
        let rejected = checked.iter().find_map(|event| match event {
            Event::Run(RunEvent::InputRejected(rejected)) => {
                Some(format!("{} was rejected: {}", rejected.input, rejected.why))
            }
            _ => None,
        });
        self.append(checked).await?;
        // Going on would run the same effect again and again.
        rejected.map_or(Ok(()), |why| Err(EngineError::Internal(why)))
    }
}

/// What is to be done about a tool call.
enum Manner {
    /// Run it.
    Run { input: Value, role: Role },
    /// A person decides first.
    Ask { request: DecisionRequest, why: String },
    /// Nothing runs; these events close it.
    Close(Vec<Event>),
}

/// May a call run?
enum Permission {
    Run { rule: String },
    Ask { request: DecisionRequest },
    Refuse { rule: String },
}

impl Permission {
    fn rule(&self) -> &str {
        match self {
            Self::Run { rule } | Self::Refuse { rule } => rule,
            Self::Ask { .. } => "",
        }
    }
}

/// The part of an input that tells most.
fn summary(name: &str, input: &Value) -> String {
    let text_of = |key: &str| input.get(key).and_then(Value::as_str);
    let telling = ["command", "pattern", "path"].into_iter().find_map(text_of).map(str::to_owned);
    // Of the plan's tools: what happens to which task, or what was found.
    let task =
        || text_of("task_id").map(|task| text_of("action").map_or(task.to_owned(), |act| format!("{act} {task}")));
    let found = || ["verdict", "recommendation", "topic"].into_iter().find_map(text_of).map(str::to_owned);
    let text = flatten(&telling.or_else(task).or_else(found).unwrap_or_else(|| name.to_owned()));
    if text.chars().count() > MAX_SUMMARY { text.chars().take(MAX_SUMMARY).chain(['…']).collect() } else { text }
}
