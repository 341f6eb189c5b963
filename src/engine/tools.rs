//! Runs the tool calls of a reply: announce, run, record. Nothing runs before its intent is durable.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::journal;
use crate::machine::document;
use crate::machine::document::check_output_path;
use crate::machine::event::{
    AskedBy, DecisionAsked, Event, ReportAccepted, ToolFinished, ToolIntended, ToolOutcomeKind, ToolUse,
};
use crate::model::decision::{ASK_TOOL, MAX_DECISIONS, Mode, Request as DecisionRequest};
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::learnings::flatten;
use crate::model::purpose::Tool;
use crate::model::report::Report;
use crate::model::value::tools::Structured;
use crate::model::value::verification;
use crate::tool::output;
use crate::tool::permit::{self, Permit, effect_name, effect_of};
use crate::tool::registry::{self, EffectClass, Limits, ToolContext, ToolOutcome};

use super::ask;
use super::confine;
use super::context::{Context, Cutoff, Guarded};
use super::error::EngineError;
use super::secrecy;
use super::value;

/// One line for people.
const MAX_SUMMARY: usize = 160;
/// Calls that only read and run at the same time.
const MAX_AT_ONCE: usize = 8;
/// The largest input of a tool.
const MAX_INPUT: usize = 1 << 20;

pub(super) async fn run(cx: &mut Context<'_>, tool_use: ToolUse) -> Result<(), EngineError> {
    if cx.recorder.cut_if_exhausted().await? {
        return Ok(());
    }
    let (intended, manner) = consider(cx, &tool_use)?;
    match manner {
        Manner::Ask { request, why } => {
            let asked_by = asked_by(cx, &intended.id)?;
            let id = cx.state().operator.next_id();
            cx.record(DecisionAsked { id, request, why, asked_by: Some(asked_by) }).await
        }
        Manner::Run { input, role } => {
            if tool_use.name == registry::SHELL && !value::revive_services(cx, role).await? {
                return Ok(());
            }
            let key = intended.call.clone();
            let mut intents = vec![Event::from(intended)];
            let mut calls = vec![(tool_use, input)];
            join_readers(cx, role, &mut intents, &mut calls)?;
            cx.record_all(intents).await?;
            journal::failpoint("tool");
            perform(cx, &key, role, calls).await
        }
        Manner::Close(closing) => {
            let mut events = vec![Event::from(intended)];
            events.extend(closing);
            cx.record_all(events).await
        }
    }
}

/// Calls that only read run together with those right after them that only read, too.
fn join_readers(
    cx: &Context<'_>,
    role: Role,
    intents: &mut Vec<Event>,
    calls: &mut Vec<(ToolUse, Value)>,
) -> Result<(), EngineError> {
    let Some((first, _)) = calls.first().filter(|(first, _)| effect_of(role, &first.name) == EffectClass::Read) else {
        return Ok(());
    };
    let (spent, limits) = (&cx.state().spent, &cx.state().limits);
    let left = (limits.max_total_tool_calls.saturating_sub(spent.tool_calls))
        .min(limits.max_tool_calls_per_iteration.saturating_sub(spent.iteration_tool_calls));
    let most = MAX_AT_ONCE.min(usize::try_from(left).unwrap_or(MAX_AT_ONCE));
    let following: Vec<ToolUse> = cx.call()?.asked_after(&first.id).cloned().collect();
    for next in following {
        if calls.len() >= most || effect_of(role, &next.name) != EffectClass::Read {
            break;
        }
        let (intended, Manner::Run { input, .. }) = consider(cx, &next)? else { break };
        intents.push(intended.into());
        calls.push((next, input));
    }
    Ok(())
}

/// What a tool call means, from the stored reply, the rules and what people said. After a crash the
/// workspace or the operator's patience may have changed; what was announced is closed either way.
fn consider(cx: &Context<'_>, tool_use: &ToolUse) -> Result<(ToolIntended, Manner), EngineError> {
    let input = tool_input(cx, tool_use)?;
    let call = cx.call()?;
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
        permission(cx, tool_use, &input)?
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
        Manner::Close(vec![refusal(cx, &intended, &input.to_string())?])
    } else if input.to_string().len() > MAX_INPUT {
        let text = format!("The input has more than {MAX_INPUT} bytes. Send less at a time.");
        Manner::Close(vec![refusal(cx, &intended, &text)?])
    } else if void {
        let text = "Not executed: an earlier call in this message failed. Look at its result first.";
        Manner::Close(vec![refusal(cx, &intended, text)?])
    } else if is_report {
        Manner::Close(take_report(cx, &intended, report_tool, &input)?)
    } else if is_question {
        question(cx, &intended, &input)?
    } else {
        match permission {
            Permission::Run { .. } => Manner::Run { input, role },
            Permission::Ask { request } => {
                Manner::Ask { request, why: "a rule puts this call before a person".to_owned() }
            }
            Permission::Refuse { rule } => {
                let text =
                    format!("Not permitted: {rule}. Find another way, or say in your report what you would need.");
                Manner::Close(vec![refusal(cx, &intended, &text)?])
            }
        }
    };
    Ok((intended, manner))
}

/// What the rules and the operator say about a call.
fn permission(cx: &Context<'_>, tool_use: &ToolUse, input: &Value) -> Result<Permission, EngineError> {
    let by = asked_by(cx, &tool_use.id)?;
    let (rule, command) = match permit::permit(cx.state(), &cx.rules, &by, &tool_use.name, input) {
        Permit::Run { rule } => return Ok(Permission::Run { rule }),
        Permit::Refuse { rule } => return Ok(Permission::Refuse { rule }),
        Permit::Ask { rule, command } => (rule, command),
    };
    let operator = &cx.state().operator;
    let asked = operator.asked_by(&by).is_some();
    if asked || operator.patience.mode == Mode::Stop || operator.decisions.len() >= MAX_DECISIONS {
        let rule = format!("ask {rule}: nobody is there to answer, so it is denied");
        return Ok(Permission::Refuse { rule });
    }
    Ok(Permission::Ask {
        request: DecisionRequest::Permission {
            tool: flatten(&tool_use.name),
            command,
            directory: cx.workspace().to_string_lossy().into_owned(),
            rule,
        },
    })
}

/// Denied too often: the run waits for a person, whose words the agent gets.
pub(super) async fn escalate(cx: &mut Context<'_>, problem: String) -> Result<(), EngineError> {
    let id = cx.state().operator.next_id();
    let request = DecisionRequest::Escalation { problem, options: Vec::new() };
    let why = "what it wants is not permitted; your answer goes to the agent".to_owned();
    cx.record(DecisionAsked { id, request, why, asked_by: None }).await
}

/// The place of a tool call of the present reply.
fn asked_by(cx: &Context<'_>, tool: &str) -> Result<AskedBy, EngineError> {
    let call = cx.call()?;
    Ok(AskedBy { call: call.started.call.clone(), turn: call.turn, tool: tool.to_owned() })
}

/// A question to a person: ask it, or hand the answer on.
fn question(cx: &Context<'_>, intended: &ToolIntended, input: &Value) -> Result<Manner, EngineError> {
    let operator = &cx.state().operator;
    if let Some(decision) = operator.asked_by(&asked_by(cx, &intended.id)?) {
        let (call, id) = (intended.call.clone(), intended.id.clone());
        let finished = closed(cx, call, id, ToolOutcomeKind::Done, &ask::told(decision))?;
        return Ok(Manner::Close(vec![finished]));
    }
    if operator.decisions.len() >= MAX_DECISIONS {
        let text = "This run has asked too often. Decide yourself, or say in your report what you would need.";
        return Ok(Manner::Close(vec![refusal(cx, intended, text)?]));
    }
    match ask::request_of(cx, input) {
        Ok((request, why)) => Ok(Manner::Ask { request, why }),
        Err(why) => Ok(Manner::Close(vec![refusal(cx, intended, &why)?])),
    }
}

/// The input as the model wrote it, from the stored reply.
fn tool_input(cx: &Context<'_>, tool_use: &ToolUse) -> Result<Value, EngineError> {
    let call = cx.call()?;
    let reply = call.reply.as_ref().ok_or_else(|| EngineError::Internal("a tool call without a reply".to_owned()))?;
    let message = cx.blobs().get(&reply.message)?;
    Ok(permit::asked_for(&message, &tool_use.id).map_or(Value::Null, |(_, input)| input))
}

fn refusal(cx: &Context<'_>, intended: &ToolIntended, text: &str) -> Result<Event, EngineError> {
    closed(cx, intended.call.clone(), intended.id.clone(), ToolOutcomeKind::Refused, text)
}

/// The result of a call that ran no process.
fn closed(
    cx: &Context<'_>,
    call: String,
    id: String,
    outcome: ToolOutcomeKind,
    text: &str,
) -> Result<Event, EngineError> {
    let text = cx.text(text)?;
    let is_error = outcome != ToolOutcomeKind::Done;
    Ok(ToolFinished { call, id, outcome, is_error, exit_code: None, millis: 0, text, output: None, output_bytes: 0 }
        .into())
}

/// Runs calls at the same time and records their results in their order.
async fn perform(cx: &mut Context<'_>, key: &str, role: Role, calls: Vec<(ToolUse, Value)>) -> Result<(), EngineError> {
    let token = CancellationToken::new();
    let context = ToolContext {
        workspace: cx.workspace().to_owned(),
        access: permit::access_of(role),
        limits: Limits::default(),
        run_marker: cx.state().run().as_str().to_owned(),
        cancel: token.clone(),
        protected: confine::protected_from(cx, role),
        within: (role == Role::Qc).then(|| PathBuf::from(verification::DIRECTORY)),
        confinement: confine::of_role(cx, role)?,
        outputs: outputs(cx, &calls)?,
    };
    let running = calls.iter().map(|(tool_use, input)| registry::run(&context, &tool_use.name, input));
    let guarded = cx.guarded(&token, Cutoff::Agent, join_all(running)).await?;
    let (outcomes, cut) = match guarded {
        Guarded::Done(outcomes) | Guarded::Stopped(outcomes) => (outcomes, false),
        Guarded::Cut(outcomes) => (outcomes, true),
    };
    let mut events = Vec::new();
    let mut number = cx.call()?.outputs.len();
    for ((tool_use, _), outcome) in calls.iter().zip(outcomes) {
        let finished = finished(cx, key, &tool_use.id, outcome, number + 1)?;
        number += usize::from(finished.output.is_some());
        events.push(finished.into());
    }
    cx.record_all(events).await?;
    if cut {
        cx.recorder.cut_if_exhausted().await?;
    }
    Ok(())
}

/// The kept results that these calls read on in.
fn outputs(cx: &Context<'_>, calls: &[(ToolUse, Value)]) -> Result<BTreeMap<u32, Arc<[u8]>>, EngineError> {
    let known = &cx.call()?.outputs;
    let mut found = BTreeMap::new();
    for (_, input) in calls.iter().filter(|(tool_use, _)| tool_use.name == registry::READ_OUTPUT) {
        let Some(number) = input["output"].as_u64().and_then(|number| u32::try_from(number).ok()) else { continue };
        let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        if let Some(digest) = index.and_then(|index| known.get(index)) {
            found.insert(number, Arc::from(cx.blobs().get(digest)?));
        }
    }
    Ok(found)
}

/// `number`: what its kept output is called, if it has one.
fn finished(
    cx: &Context<'_>,
    key: &str,
    id: &str,
    outcome: ToolOutcome,
    number: usize,
) -> Result<ToolFinished, EngineError> {
    let outcome = secrecy::clean_outcome(cx.secrets(), outcome);
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let more = output::reads_on(&outcome, number, Limits::default().model_text_bytes).unwrap_or_default();
    let text = cx.text(&format!("{}{more}", outcome.text))?;
    let output = if outcome.output == outcome.text.as_bytes() { None } else { Some(cx.blobs().put(&outcome.output)?) };
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
    Ok(finished)
}

/// The engine died between intent and result. What only reads is repeated; what acts is not.
pub(super) async fn recover(cx: &mut Context<'_>, tool_use: ToolUse, effect: &str) -> Result<(), EngineError> {
    let (intended, manner) = consider(cx, &tool_use)?;
    let repeatable = effect != effect_name(EffectClass::Effect) && cx.state().cut.is_none();
    match manner {
        Manner::Run { input, role } if repeatable => perform(cx, &intended.call, role, vec![(tool_use, input)]).await,
        // It was refused before the engine died, and would be asked about now: it is refused all the same.
        Manner::Ask { .. } => {
            let text = "The engine was interrupted before this was answered. Ask again if you still need it.";
            let refused = closed(cx, intended.call, tool_use.id, ToolOutcomeKind::Refused, text)?;
            cx.record(refused).await
        }
        Manner::Run { .. } => {
            let text =
                "The engine was interrupted while this ran; its outcome is unknown. Inspect before you repeat it.";
            let unknown = closed(cx, intended.call, tool_use.id, ToolOutcomeKind::Unknown, text)?;
            cx.record(unknown).await
        }
        Manner::Close(closing) => cx.record_all(closing).await,
    }
}

/// Acceptance first: a report that is in must not be asked for again after a crash.
fn take_report(
    cx: &Context<'_>,
    intended: &ToolIntended,
    tool: Option<Tool>,
    input: &Value,
) -> Result<Vec<Event>, EngineError> {
    let (call, id) = (intended.call.clone(), intended.id.clone());
    // The engine died between acceptance and answer.
    if cx.call()?.has_accepted(&id) {
        return Ok(vec![closed(cx, call, id, ToolOutcomeKind::Done, "Accepted.")?]);
    }
    let report = match tool.map_or_else(|| Err("there is no such tool".to_owned()), |tool| admit(cx, tool, input)) {
        Ok(report) => report,
        Err(why) => return Ok(vec![refusal(cx, intended, &why)?]),
    };
    let links = resolve(cx, &report)?;
    let sha256 = Digest::of(document::report(&report).as_bytes());
    let text = if report.ends_call() { "Report accepted." } else { "Accepted." };
    let accepted = ReportAccepted { call: call.clone(), id: id.clone(), report, links, sha256 };
    Ok(vec![accepted.into(), closed(cx, call, id, ToolOutcomeKind::Done, text)?])
}

/// Reads what a structured tool was given, and asks the guardrails. The error goes back to the agent.
pub(super) fn admit(cx: &Context<'_>, tool: Tool, input: &Value) -> Result<Report, String> {
    let report = Report::parse(tool, input)?;
    cx.state().playbook().admit(cx.state(), &report)?;
    // A person will be shown it as a document, so it is kept like one.
    if let Report::Value(Structured::ProposePrd(proposal)) = &report {
        cx.blobs().put(proposal.text.as_bytes()).map_err(|e| e.to_string())?;
    }
    Ok(report)
}

/// The cited paths that exist now, with their digests: files of the tree, and outputs of the checks.
pub(super) fn resolve(cx: &Context<'_>, report: &Report) -> Result<BTreeMap<String, Digest>, EngineError> {
    let cited = report.cited_paths();
    if cited.is_empty() {
        return Ok(BTreeMap::new());
    }
    let Some(iteration) = &cx.state().current else { return Ok(BTreeMap::new()) };
    let mut known = BTreeMap::new();
    if let Some(tree) = &cx.state().tree {
        let snapshot: crate::workspace::tree::TreeSnapshot = serde_json::from_slice(&cx.blobs().get(tree)?)
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
