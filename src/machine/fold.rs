//! The one fold: events in, [`RunState`] out. Six readers use it, so it decides nothing.
//!
//! A journal whose events do not fit together is reported, not smoothed over.

use crate::model::act::Act;
use crate::model::decimal::Exact;
use crate::model::decision::Mode;

use super::call::{CallState, CallSummary};
use super::event::{Event, Phase, RunStarted, Usage, of_passes, of_value_playbook};
use super::iteration::Iteration;
use super::ledger::{Row, add_cost};
use super::legal;
use super::operator::Pause;
use super::passes;
use super::run::RunState;
use super::state::State;
use super::value;

/// An event with its place in the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Stamped {
    pub seq: u64,
    pub ts: String,
    pub mono_ms: u64,
    pub boot: String,
    pub event: Event,
}

/// Events that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} ({kind}) does not fit the events before it: {why}")]
pub struct FoldError {
    pub seq: u64,
    pub kind: &'static str,
    pub why: String,
}

/// Folds the first event into a fresh state.
pub fn start(stamped: &Stamped) -> Result<RunState, FoldError> {
    let Event::RunStarted(started) = &stamped.event else {
        return Err(misfit(stamped, "the first event must be run.started"));
    };
    let mut state = RunState::new(RunStarted::clone(started));
    keep_time(&mut state, stamped);
    state.next_seq = stamped.seq + 1;
    Ok(state)
}

/// Folds one more event.
pub fn apply(state: &mut RunState, stamped: &Stamped) -> Result<(), FoldError> {
    legal::legal(state, &stamped.event).map_err(|why| misfit(stamped, &why))?;
    keep_time(state, stamped);
    apply_event(state, stamped).map_err(|why| misfit(stamped, why))?;
    state.next_seq = stamped.seq + 1;
    // Someone who watches or speaks is no progress.
    if !matches!(stamped.event, Event::RunResumed(_)) && !stamped.event.is_from_people() {
        state.stalled_resumes = 0;
    }
    Ok(())
}

fn misfit(stamped: &Stamped, why: &str) -> FoldError {
    FoldError { seq: stamped.seq, kind: stamped.event.kind(), why: why.to_owned() }
}

/// Elapsed time is the sum of the gaps between events while an engine was alive. It follows the boot
/// clock, so that a jump of the wall clock neither extends nor cuts a budget.
fn keep_time(state: &mut RunState, stamped: &Stamped) {
    let was_down = matches!(stamped.event, Event::RunResumed(_) | Event::RunStarted(_));
    let mut delta = 0;
    if !was_down && state.time.boot == stamped.boot {
        delta = stamped.mono_ms.saturating_sub(state.time.last_mono_ms);
        if state.waits_for_people() {
            // Waiting for a person is no budget time.
            state.operator.waited_millis += delta;
        } else {
            state.spent.millis += delta;
            if state.current.is_some() || state.value.step.is_some() {
                state.spent.iteration_millis += delta.saturating_sub(state.time.waiting_ms);
            }
            if let Some(iteration) = &mut state.current {
                iteration.spend.millis += delta;
            }
        }
    }
    state.time.waiting_ms = match &stamped.event {
        Event::LlmFailed(failed) => failed.wait_millis.unwrap_or(0),
        // What a person says meanwhile does not end the wait for the server.
        event if event.is_from_people() => state.time.waiting_ms.saturating_sub(delta),
        _ => 0,
    };
    state.time.boot.clone_from(&stamped.boot);
    state.time.last_mono_ms = stamped.mono_ms;
    state.time.last_ts.clone_from(&stamped.ts);
}

fn apply_event(state: &mut RunState, stamped: &Stamped) -> Result<(), &'static str> {
    let (event, ts) = (&stamped.event, stamped.ts.as_str());
    match event {
        Event::RunStarted(_) => return Err("a run starts once"),
        Event::RunResumed(resumed) => {
            resume(state);
            state.operator.patience = resumed.patience;
            // A pause that nobody can lift would hold for ever.
            if resumed.patience.mode == Mode::Stop {
                state.operator.pause = None;
            }
        }
        Event::StateEntered(entered) => {
            if entered.from != state.state {
                return Err("it leaves a state the run is not in");
            }
            enter(state, entered.to);
        }
        Event::InputRejected(_) => state.rejections += 1,
        Event::NorthstarRead(read) => state.northstar = Some(read.clone()),
        Event::NullChecked(checked) => state.missing = Some(checked.missing.clone()),
        Event::TreeTaken(taken) => match taken.purpose {
            super::event::TreePurpose::Baseline => {
                state.baseline.tree = Some(taken.tree);
                state.tree = Some(taken.tree);
            }
            super::event::TreePurpose::Frozen => {
                current(state)?.frozen = Some(taken.drifted.clone());
            }
            super::event::TreePurpose::BeforeReview => current(state)?.review_trees.0 = Some(taken.tree),
            super::event::TreePurpose::AfterReview => current(state)?.review_trees.1 = Some(taken.tree),
        },
        Event::ProbeStarted(started) => {
            state.open_probes.insert((started.phase, started.probe.clone()));
        }
        Event::ProbeFinished(finished) => {
            state.open_probes.remove(&(finished.phase, finished.probe.clone()));
            if let (Phase::Step(_), Some(step)) = (finished.phase, &mut state.value.step) {
                step.probes.insert(finished.probe.clone(), finished.result.clone());
            }
            if finished.phase == Phase::Baseline {
                state.baseline.probes.insert(finished.probe.clone(), finished.result.clone());
            } else {
                let probes = &mut current(state)?.probes;
                probes.insert((finished.phase, finished.probe.clone()), finished.result.clone());
            }
        }
        Event::PlanWritten(written) => state.plan = Some(written.sha256),
        Event::IterationBegan(began) => {
            if state.current.is_some() {
                return Err("an iteration is still running");
            }
            if usize::try_from(began.iteration) != Ok(state.done.len()) {
                return Err("iterations are numbered without gaps");
            }
            state.current = Some(Iteration::new(began.clone()));
            value::iteration_began(state, began.iteration);
            state.spent.iteration_millis = 0;
            state.spent.iteration_tool_calls = 0;
            state.cut = None;
        }
        Event::AgentStarted(started) => {
            state.call = Some(CallState::new(started.clone()));
        }
        Event::LlmRequested(requested) => {
            let row = row(state)?;
            state.ledger.requested(row, requested);
            state.spent.requests += 1;
            if let Some(iteration) = &mut state.current {
                iteration.spend.requests += 1;
            }
            let call = call(state)?;
            call.apply(event);
            call.wait = None;
        }
        Event::LlmResponded(reply) => {
            let row = row(state)?;
            state.ledger.responded(row, reply);
            charge(state, &reply.usage, reply.cost_usd);
            if reply.rate.is_some() {
                state.rate.clone_from(&reply.rate);
            }
            call(state)?.apply(event);
            state.operator.acknowledge(&reply.call);
        }
        Event::LlmFailed(failed) => {
            let row = row(state)?;
            state.ledger.failed(row, failed);
            if let Some(usage) = &failed.usage {
                charge(state, usage, failed.cost_usd);
            }
            if let Some(iteration) = &mut state.current {
                let spend = &mut iteration.spend;
                spend.waited_millis = spend.waited_millis.saturating_add(failed.wait_millis.unwrap_or(0));
            }
            let call = call(state)?;
            call.apply(event);
            call.wait = failed.wait_millis.map(|millis| (ts.to_owned(), millis));
        }
        Event::ToolIntended(_) => {
            count_tool_calls(state, 1);
            call(state)?.apply(event);
        }
        Event::AgentActed(acted) => {
            let calls = acted.acts.iter().filter(|act| matches!(act, Act::Called { .. })).count() as u64;
            count_tool_calls(state, calls);
        }
        Event::AgentCalled(_) => count_tool_calls(state, 1),
        Event::ToolFinished(finished) => {
            let denied = call(state)?.is_denial(finished);
            state.denials.total += u64::from(denied);
            call(state)?.apply(event);
        }
        Event::ConversationExtended(_) => call(state)?.apply(event),
        Event::ReportAccepted(accepted) => {
            let paraphrase = call(state)?.started.paraphrase;
            let purpose = call(state)?.purpose();
            call(state)?.apply(event);
            value::accept(state, accepted, purpose);
            if let Some(iteration) = &mut state.current {
                iteration.accept(accepted, paraphrase);
            }
        }
        Event::AgentFinished(finished) => {
            let call = state.call.take().ok_or("no agent is running")?;
            let summary = CallSummary {
                role: finished.role,
                purpose: call.purpose(),
                subject: call.started.subject.clone(),
                end: finished.end.clone(),
                turns: call.turn,
                paraphrase: call.started.paraphrase,
            };
            value::call_ended(state, &finished.call, &summary);
            if let Some(iteration) = &mut state.current {
                iteration.calls.insert(finished.call.clone(), summary);
            }
            state.ledger.lose();
            state.operator.requeue(&finished.call);
        }
        Event::ArtifactsCollected(collected) => {
            state.tree = Some(collected.tree);
            current(state)?.artifacts = Some(collected.clone());
        }
        Event::ResidualMeasured(measured) => match measured.iteration {
            None => state.baseline.residual = Some(measured.residual.clone()),
            Some(_) => {
                let iteration = current(state)?;
                iteration.residual = Some(measured.residual.clone());
                iteration.residual_why_null.clone_from(&measured.why_null);
            }
        },
        Event::CertificateIssued(issued) => current(state)?.certificate = Some(issued.certificate.clone()),
        Event::GlowScored(scored) => current(state)?.glow = Some(scored.glow.clone()),
        Event::LearningsRecorded(recorded) => {
            state.learnings_sha256 = Some(recorded.after);
            state.compacted_before = recorded.compacted_before;
            state.compactions.extend(recorded.compaction);
            state.spent.iterations += 1;
            let iteration = current(state)?;
            iteration.entry = Some(recorded.entry.clone());
            iteration.review.clone_from(&recorded.review);
            iteration.learnings_after = Some(recorded.after);
            iteration.learnings_before = recorded.before;
        }
        Event::GateJudged(judged) => current(state)?.gate = Some(judged.report.clone()),
        Event::BackpressureSeen(seen) => state.backpressure = Some(seen.clone()),
        Event::BudgetCut(cut) => state.cut = Some(cut.clone()),
        Event::DecisionAsked(asked) => {
            state.operator.ask(asked, ts);
            // A step asks between its calls; what is asked during one (money, denials) is no question of the step's.
            if let (None, None, Some(step)) = (&asked.asked_by, &state.call, &mut state.value.step) {
                step.ask(asked.id);
            }
        }
        Event::DecisionAnswered(answered) => {
            state.operator.answer(answered)?;
            passes::heard(state);
            if state.operator.hear_escalation(answered, ts) {
                state.denials.excused = state.denials.total;
                if let Some(call) = &mut state.call {
                    call.denied = 0;
                }
            }
        }
        Event::DecisionSettled(settled) => state.operator.settle(settled)?,
        Event::PauseRequested(requested) => {
            state.operator.pause = Some(Pause::Requested { by: requested.by.clone() });
        }
        Event::PauseBegan(_) => {
            if let Some(Pause::Requested { by }) = state.operator.pause.take() {
                state.operator.pause = Some(Pause::Holding { by, since: ts.to_owned() });
            }
        }
        Event::PauseLifted(_) => state.operator.pause = None,
        Event::StopScheduled(stop) => {
            state.operator.stop_after_iteration = stop.scheduled.then(|| stop.by.clone());
        }
        Event::SteerQueued(queued) => state.operator.steer(queued, ts),
        Event::SteerDelivered(delivered) => state.operator.deliver(&delivered.numbers, &delivered.call),
        Event::BudgetRaised(raised) => {
            state.limits =
                state.limits.raised(raised.dimension, &raised.to).map_err(|_| "a limit can only be raised")?;
            // What was cut for this limit goes on.
            if state.cut.as_ref().is_some_and(|cut| cut.exhausted.dimension == raised.dimension) {
                state.cut = None;
            }
            state.operator.overrides.push(raised.clone());
        }
        // "Now" means now, also after a resume.
        Event::RetryRequested(_) => {
            if let Some(call) = &mut state.call {
                call.wait = None;
            }
        }
        Event::ViewerAttached(attached) => {
            state.operator.viewers.insert(attached.viewer.clone());
        }
        Event::ViewerDetached(detached) => {
            state.operator.viewers.remove(&detached.viewer);
        }
        of_value_playbook!() => value::apply(state, event)?,
        of_passes!() => passes::apply(state, event)?,
        Event::RunHalted(halted) => {
            enter(state, State::of_exit(halted.status));
            state.halt = Some(halted.clone());
        }
    }
    Ok(())
}

fn enter(state: &mut RunState, to: State) {
    let edge = (state.state, to);
    *state.edges.entry(edge).or_default() += 1;
    *state.visits.entry(to).or_default() += 1;
    state.last_edge = Some(edge);
    // The loop back to SPAWN_SUBAGENT closes the iteration.
    if state.state == State::BudgetCheck
        && to == State::SpawnSubagent
        && let Some(finished) = state.current.take()
    {
        state.done.push(finished);
    }
    state.state = to;
}

fn resume(state: &mut RunState) {
    state.ledger.lose();
    state.resumes += 1;
    state.stalled_resumes += 1;
    state.backpressure = None;
    state.operator.viewers.clear();
    let was_stopped = state.halt.is_some();
    if let Some(halted) = state.halt.take() {
        // Whoever resumes a run that stopped wants it to go on. After a crash an order still stands.
        state.operator.pause = None;
        state.operator.stop_after_iteration = None;
        state.state = halted.last_state;
    }
    if let Some(call) = &mut state.call {
        call.failed = None;
        if was_stopped {
            call.wait = None;
        }
    }
}

fn count_tool_calls(state: &mut RunState, calls: u64) {
    state.spent.tool_calls = state.spent.tool_calls.saturating_add(calls);
    state.spent.iteration_tool_calls = state.spent.iteration_tool_calls.saturating_add(calls);
    if let Some(iteration) = &mut state.current {
        iteration.spend.tool_calls = iteration.spend.tool_calls.saturating_add(calls);
    }
}

/// Adds what the server counted for one attempt.
fn charge(state: &mut RunState, usage: &Usage, cost: Option<Exact>) {
    // The server's numbers are foreign: they may be anything, and must not wrap.
    let cached = usage.cache_read.saturating_add(usage.cache_write);
    let input = usage.input.saturating_add(cached);
    state.spent.input_tokens = state.spent.input_tokens.saturating_add(input);
    state.spent.output_tokens = state.spent.output_tokens.saturating_add(usage.output);
    state.spent.cost_usd = add_cost(state.spent.cost_usd, cost);
    if let Some(cost) = cost {
        let known = state.spent.known_cost_usd.unwrap_or(Exact::ZERO).checked_add(cost);
        state.spent.known_cost_usd = known.or(state.spent.known_cost_usd);
    }
    if let Some(iteration) = &mut state.current {
        let spend = &mut iteration.spend;
        spend.input_tokens = spend.input_tokens.saturating_add(input);
        spend.output_tokens = spend.output_tokens.saturating_add(usage.output);
    }
}

/// The ledger's row of the open call.
fn row(state: &mut RunState) -> Result<Row, &'static str> {
    // What is spent before the first iteration stands with the first one.
    let iteration = state.iteration_number();
    let call = call(state)?;
    Ok(Row { iteration, role: call.role(), model: call.started.model.clone() })
}

fn current(state: &mut RunState) -> Result<&mut Iteration, &'static str> {
    state.current.as_mut().ok_or("no iteration is running")
}

fn call(state: &mut RunState) -> Result<&mut CallState, &'static str> {
    state.call.as_mut().ok_or("no agent is running")
}
