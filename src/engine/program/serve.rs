//! What a program wants from us in the middle of its turn: our tools, and leave to act.
//!
//! Not here: running the turn. Invariants: what the program is told is recorded before it is told; one decision is
//! open at a time, the rest waits in order; where nobody is waited for, the answer is no; a "once" is handed out once.

use tokio::time::Instant;

use crate::agent::program::{Allowed, Ask};
use crate::engine::context::Context;
use crate::engine::error::EngineError;
use crate::engine::{ask, offer, people, tools};
use crate::machine::document;
use crate::machine::event::{AgentCalled, AskedBy, DecisionAsked, ReportAccepted, Signal};
use crate::machine::operator::Decision;
use crate::model::act::Act;
use crate::model::decision::{ASK_TOOL, Answer, MAX_DECISIONS, MAX_TEXT, Mode, Request};
use crate::model::digest::Digest;
use crate::model::learnings::flatten;
use crate::model::purpose::Tool;
use crate::tool::permission::{Ruling, is_critical};

use super::leave;
use super::open_turn::{OpenTurn, Waiting};

/// Answers what waits, in order, until a person is needed.
pub(super) async fn serve(cx: &mut Context<'_>, open: &mut OpenTurn<'_>) -> Result<(), EngineError> {
    while open.open.is_none() {
        let Some(next) = open.queue.pop_front() else { return Ok(()) };
        match next {
            Waiting::Call(call) => serve_call(cx, open, call).await?,
            Waiting::Permission(ask) => serve_permission(cx, open, ask).await?,
        }
    }
    Ok(())
}

async fn serve_call(cx: &mut Context<'_>, open: &mut OpenTurn<'_>, call: offer::Call) -> Result<(), EngineError> {
    let purpose = cx.call()?.purpose();
    if let Some(tool) = Tool::of_name(&call.name).filter(|tool| purpose.tools().contains(tool)) {
        return serve_report(cx, open, call, tool).await;
    }
    if call.name != ASK_TOOL || !purpose.may_ask() {
        let text = format!("Tool '{}' not found.", flatten(&call.name).chars().take(64).collect::<String>());
        return told(cx, open, call, text, true).await;
    }
    let (request, why) = match ask::request_of(cx, &call.input) {
        Ok(request) => request,
        Err(why) => return told(cx, open, call, why, true).await,
    };
    // A program that is started again asks again; the answer is there already.
    let earlier = cx.state().operator.decisions.iter().rev().find(|decision| {
        let same_call = decision.asked_by.as_ref().is_some_and(|by| by.call == open.attempt.call);
        same_call && decision.request == request && decision.closed_with().is_some()
    });
    if let Some(decision) = earlier {
        let text = ask::told(decision);
        return told(cx, open, call, text, false).await;
    }
    if cx.state().operator.decisions.len() >= MAX_DECISIONS {
        let text = "This run has asked too often. Decide yourself, or say in your report what you would need.";
        return told(cx, open, call, text.to_owned(), true).await;
    }
    put_before_a_person(cx, open, request, why, Waiting::Call(call)).await
}

async fn serve_report(
    cx: &mut Context<'_>,
    open: &mut OpenTurn<'_>,
    call: offer::Call,
    tool: Tool,
) -> Result<(), EngineError> {
    if cx.call()?.report_accepted {
        return told(cx, open, call, "Your report is in already.".to_owned(), true).await;
    }
    match tools::admit(cx, tool, &call.input) {
        Err(why) => {
            let why = tools::re_ask(cx, Some(tool), why)?;
            told(cx, open, call, why, true).await
        }
        Ok(report) => {
            let accepted = ReportAccepted {
                call: open.attempt.call.clone(),
                id: call.id.clone(),
                links: tools::resolve(cx, &report)?,
                sha256: Digest::of(document::report(&report).as_bytes()),
                report,
            };
            open.flush(cx).await?;
            let ends = accepted.report.ends_call();
            cx.record(accepted).await?;
            if ends {
                open.reported_at = Some(Instant::now());
            }
            let text = if ends { "Report accepted. Your part is done; stop now." } else { "Accepted." };
            told(cx, open, call, text.to_owned(), false).await
        }
    }
}

/// Records a call of one of our tools and answers it. Recorded first: what the program was told, it was told.
async fn told(
    cx: &mut Context<'_>,
    open: &mut OpenTurn<'_>,
    call: offer::Call,
    text: String,
    is_error: bool,
) -> Result<(), EngineError> {
    let called = AgentCalled {
        call: open.attempt.call.clone(),
        turn: open.attempt.turn,
        id: call.id.clone(),
        name: flatten(&call.name).chars().take(64).collect(),
        input: cx.blobs().put(call.input.to_string().as_bytes())?,
        is_error,
        text: cx.text(&text)?,
    };
    open.flush(cx).await?;
    cx.record(called).await?;
    // It may be gone; then nobody waits.
    let _ = call.reply.send(offer::Answer { text, is_error });
    Ok(())
}

/// A program asks before it acts: rules first, then a person.
async fn serve_permission(cx: &mut Context<'_>, open: &mut OpenTurn<'_>, ask: Ask) -> Result<(), EngineError> {
    let what = ask.what.clone();
    if what.len() > MAX_TEXT {
        // What is approved must be all that runs.
        return permission_told(cx, open, ask, Allowed::No, "too long to be put before a person").await;
    }
    let tool = flatten(&ask.tool).chars().take(64).collect::<String>();
    let rule = match leave::by_rules(cx, &ask.deeds) {
        Ruling::Denied { rule } => {
            return permission_told(cx, open, ask, Allowed::No, &format!("deny {rule}")).await;
        }
        Ruling::Allowed { rule } => {
            return permission_told(cx, open, ask, Allowed::Once, &format!("allow {rule}")).await;
        }
        Ruling::Ask { rule } => rule,
    };
    // What is critical is asked about every time.
    let critical = is_critical(&rule);
    let operator = &cx.state().operator;
    let same = |decision: &&Decision| matches!(&decision.request, Request::Permission { tool: t, command: c, .. } if *t == tool && *c == what);
    let handed_out = &*open.handed_out;
    let before = operator.decisions.iter().rev().filter(same).find_map(|decision| {
        let by = decision.asked_by.as_ref().filter(|by| by.call == open.attempt.call);
        // An answer that came while no program was there to hear it is for the turn that asked, begun again by
        // another engine. One that this engine handed out is used up: "once" does not become "always".
        let unheard = by.is_some_and(|by| by.turn == open.attempt.turn) && !handed_out.contains(&decision.id);
        match decision.closed_with()? {
            Answer::AllowAlways if !critical => Some((decision.id, Allowed::Always)),
            Answer::Allow | Answer::AllowAlways if unheard => Some((decision.id, Allowed::Once)),
            Answer::Deny if by.is_some() => Some((decision.id, Allowed::No)),
            _ => None,
        }
    });
    if let Some((id, allowed)) = before {
        open.handed_out.insert(id);
        return permission_told(cx, open, ask, allowed, &format!("as in {id}")).await;
    }
    if operator.patience.mode == Mode::Stop || operator.decisions.len() >= MAX_DECISIONS {
        let hint = leave::allowing(&ask.deeds).map(|rule| format!("; a rule that would allow it: {rule}"));
        let why = format!("ask {rule}: nobody is there to answer{}", hint.unwrap_or_default());
        return permission_told(cx, open, ask, Allowed::No, &why).await;
    }
    let directory = cx.workspace().to_string_lossy().into_owned();
    let request = Request::Permission { tool, command: what, directory, rule };
    let why = "the program asks before it acts".to_owned();
    put_before_a_person(cx, open, request, why, Waiting::Permission(ask)).await
}

async fn permission_told(
    cx: &mut Context<'_>,
    open: &mut OpenTurn<'_>,
    ask: Ask,
    allowed: Allowed,
    why: &str,
) -> Result<(), EngineError> {
    let verdict = if allowed == Allowed::No { "denied" } else { "allowed" };
    let text = format!("{} {verdict} ({why}): {}", flatten(&ask.tool), flatten(&ask.what));
    let act = if allowed == Allowed::No { Act::Denied { text } } else { Act::Noted { text } };
    open.record_now(cx, act).await?;
    let _ = ask.reply.send(allowed);
    Ok(())
}

async fn put_before_a_person(
    cx: &mut Context<'_>,
    open: &mut OpenTurn<'_>,
    request: Request,
    why: String,
    waiting: Waiting,
) -> Result<(), EngineError> {
    open.flush(cx).await?;
    open.asked += 1;
    let id = cx.state().operator.next_id();
    let tool = match &waiting {
        Waiting::Call(call) => call.id.clone(),
        Waiting::Permission(_) => format!("p{}", open.asked),
    };
    let asked_by = AskedBy { call: open.attempt.call.clone(), turn: open.attempt.turn, tool };
    cx.record(DecisionAsked { id, request, why, asked_by: Some(asked_by) }).await?;
    open.open = Some((id, waiting));
    open.waiting_since = Some(Instant::now());
    if cx.state().operator.patience.mode == Mode::Stop {
        cx.signals.raise(Signal::DecisionNeeded, format!("{id} waits for an answer"));
    }
    Ok(())
}

/// An order may have answered what the program waits for.
pub(super) async fn answer_waiting(cx: &mut Context<'_>, open: &mut OpenTurn<'_>) -> Result<(), EngineError> {
    while let Some(unsettled) = cx.state().operator.unsettled().map(|decision| decision.id) {
        people::settle(cx, unsettled).await?;
        let still = cx.state().operator.unsettled().map(|decision| decision.id);
        // A stop came first.
        if still == Some(unsettled) {
            return Ok(());
        }
    }
    let Some((id, _)) = &open.open else { return Ok(()) };
    let Some(decision) = cx.state().operator.decision(*id) else { return Ok(()) };
    let Some(answer) = decision.closed_with().cloned() else { return Ok(()) };
    let words = ask::told(decision);
    let critical = matches!(&decision.request, Request::Permission { rule, .. } if is_critical(rule));
    let by = decision.answer.as_ref().map_or("nobody", |answered| answered.by.as_str()).to_owned();
    if let Some(since) = open.waiting_since.take() {
        open.held += since.elapsed();
    }
    let Some((id, waiting)) = open.open.take() else { return Ok(()) };
    match waiting {
        Waiting::Call(call) => told(cx, open, call, words, false).await?,
        Waiting::Permission(ask) => {
            let allowed = match answer {
                Answer::Allow => Allowed::Once,
                Answer::AllowAlways if critical => Allowed::Once,
                Answer::AllowAlways => Allowed::Always,
                _ => Allowed::No,
            };
            open.handed_out.insert(id);
            permission_told(cx, open, ask, allowed, &format!("{id} by {by}")).await?;
        }
    }
    Box::pin(serve(cx, open)).await
}
