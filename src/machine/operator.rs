//! What people were asked and what they told the run, as folded from events.

use std::collections::BTreeSet;

use crate::model::decision::{ASK_TOOL, Answer, DecisionId, MAX_CHECKS, MAX_DECISIONS, MAX_TEXT, Patience, Request};

use super::call::{CallState, ToolPhase};
use super::event::{
    AskedBy, BudgetRaised, DecisionAnswered, DecisionAsked, DecisionSettled, Event, ProbeResult, SteerQueued,
};
use super::passes;
use super::run::RunState;
use super::state::State;

/// Words waiting for delivery at one time.
const MAX_STEERS_QUEUED: usize = 20;
/// The longest word of an operator.
pub const MAX_STEER: usize = 4_000;

/// Where a decision stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionStatus {
    Open,
    /// The answer is there and has to be carried out.
    Answered,
    Closed,
}

/// One decision of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub id: DecisionId,
    pub request: Request,
    pub why: String,
    pub asked_by: Option<AskedBy>,
    pub asked_ts: String,
    pub status: DecisionStatus,
    /// The latest answer.
    pub answer: Option<DecisionAnswered>,
    /// How often a verification ran.
    pub checks: u32,
    pub last_check: Option<ProbeResult>,
    /// What carrying the answer out came to.
    pub detail: String,
}

impl Decision {
    /// The answer that closed it.
    pub fn closed_with(&self) -> Option<&Answer> {
        let closed = self.status == DecisionStatus::Closed;
        self.answer.as_ref().filter(|_| closed).map(|answered| &answered.answer)
    }
}

/// Does the run hold because an operator said so?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pause {
    /// After the present step.
    Requested {
        by: String,
    },
    Holding {
        by: String,
        since: String,
    },
}

/// How far a word of the operator has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SteerStatus {
    Queued,
    Delivered {
        call: String,
    },
    /// The model answered a request that held it.
    Acknowledged {
        call: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steer {
    pub number: u32,
    pub text: String,
    pub by: String,
    pub ts: String,
    pub status: SteerStatus,
}

/// Everything that came from people.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Operator {
    /// What happens to a decision nobody answers.
    pub patience: Patience,
    pub decisions: Vec<Decision>,
    pub pause: Option<Pause>,
    /// Who asked for a stop at the end of this iteration.
    pub stop_after_iteration: Option<String>,
    pub steers: Vec<Steer>,
    /// Limits that an operator raised.
    pub overrides: Vec<BudgetRaised>,
    pub viewers: BTreeSet<String>,
    /// Time that the run waited for people; it is no budget time.
    pub waited_millis: u64,
}

impl Operator {
    /// Does nothing happen but for people? Until one acts, or while what one said is carried out.
    pub fn waits(&self) -> bool {
        matches!(self.pause, Some(Pause::Holding { .. }))
            || self.unsettled().is_some()
            || self.blocking().next().is_some()
    }

    /// Open decisions that the run waits for; others may stay open while it works.
    fn blocking(&self) -> impl Iterator<Item = &Decision> {
        self.open().filter(|decision| !decision.request.is_parked())
    }

    /// Decisions that wait for an answer, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &Decision> {
        self.decisions.iter().filter(|decision| decision.status == DecisionStatus::Open)
    }

    /// The answer that has to be carried out.
    pub fn unsettled(&self) -> Option<&Decision> {
        self.decisions.iter().find(|decision| decision.status == DecisionStatus::Answered)
    }

    pub fn decision(&self, id: DecisionId) -> Option<&Decision> {
        self.decisions.iter().find(|decision| decision.id == id)
    }

    /// The decision that a tool call asked for.
    pub fn asked_by(&self, by: &AskedBy) -> Option<&Decision> {
        self.decisions.iter().rev().find(|decision| decision.asked_by.as_ref() == Some(by))
    }

    pub fn next_id(&self) -> DecisionId {
        DecisionId(u32::try_from(self.decisions.len()).unwrap_or(u32::MAX).saturating_add(1))
    }

    /// Did somebody answer "end the run"?
    pub fn quit(&self) -> Option<&DecisionAnswered> {
        let quit = |decision: &&Decision| decision.closed_with() == Some(&Answer::Quit);
        self.decisions.iter().find(quit).and_then(|decision| decision.answer.as_ref())
    }

    /// Words that no call has received.
    pub fn queued(&self) -> impl Iterator<Item = &Steer> {
        self.steers.iter().filter(|steer| steer.status == SteerStatus::Queued)
    }

    pub fn next_steer(&self) -> u32 {
        u32::try_from(self.steers.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// A call for which the operator said "always": the same tool, the same command.
    pub fn always_allowed(&self, tool: &str, command: &str) -> Option<DecisionId> {
        let same = |decision: &&Decision| {
            decision.closed_with() == Some(&Answer::AllowAlways)
                && matches!(&decision.request, Request::Permission { tool: t, command: c, .. } if t == tool && c == command)
        };
        self.decisions.iter().find(same).map(|decision| decision.id)
    }

    fn position(&mut self, id: DecisionId) -> Result<&mut Decision, &'static str> {
        self.decisions.iter_mut().find(|decision| decision.id == id).ok_or("there is no such decision")
    }

    pub(super) fn ask(&mut self, asked: &DecisionAsked, ts: &str) {
        self.decisions.push(Decision {
            id: asked.id,
            request: asked.request.clone(),
            why: asked.why.clone(),
            asked_by: asked.asked_by.clone(),
            asked_ts: ts.to_owned(),
            status: DecisionStatus::Open,
            answer: None,
            checks: 0,
            last_check: None,
            detail: String::new(),
        });
    }

    pub(super) fn answer(&mut self, answered: &DecisionAnswered) -> Result<(), &'static str> {
        let decision = self.position(answered.id)?;
        let pending = decision.request.needs_settling(&answered.answer);
        decision.status = if pending { DecisionStatus::Answered } else { DecisionStatus::Closed };
        decision.answer = Some(answered.clone());
        Ok(())
    }

    /// An answer to the run's own escalation: its text is a word for the agent that was stuck.
    pub(super) fn hear_escalation(&mut self, answered: &DecisionAnswered, ts: &str) -> bool {
        let escalated =
            |decision: &Decision| decision.asked_by.is_none() && matches!(decision.request, Request::Escalation { .. });
        if !self.decision(answered.id).is_some_and(escalated) {
            return false;
        }
        if let Answer::Text(text) = &answered.answer {
            let queued = SteerQueued { number: self.next_steer(), text: text.clone(), by: answered.by.clone() };
            self.steer(&queued, ts);
        }
        true
    }

    pub(super) fn settle(&mut self, settled: &DecisionSettled) -> Result<(), &'static str> {
        let decision = self.position(settled.id)?;
        decision.status = if settled.closed { DecisionStatus::Closed } else { DecisionStatus::Open };
        decision.checks += u32::from(settled.check.is_some());
        decision.last_check.clone_from(&settled.check);
        decision.detail.clone_from(&settled.detail);
        Ok(())
    }

    pub(super) fn steer(&mut self, queued: &SteerQueued, ts: &str) {
        self.steers.push(Steer {
            number: queued.number,
            text: queued.text.clone(),
            by: queued.by.clone(),
            ts: ts.to_owned(),
            status: SteerStatus::Queued,
        });
    }

    pub(super) fn deliver(&mut self, numbers: &[u32], call: &str) {
        for steer in self.steers.iter_mut().filter(|steer| numbers.contains(&steer.number)) {
            steer.status = SteerStatus::Delivered { call: call.to_owned() };
        }
    }

    /// A call that ended without a reply to them gives its words back.
    pub(super) fn requeue(&mut self, call: &str) {
        for steer in &mut self.steers {
            if steer.status == (SteerStatus::Delivered { call: call.to_owned() }) {
                steer.status = SteerStatus::Queued;
            }
        }
    }

    /// A reply to a request acknowledges the words that stood in it.
    pub(super) fn acknowledge(&mut self, call: &str) {
        for steer in &mut self.steers {
            if steer.status == (SteerStatus::Delivered { call: call.to_owned() }) {
                steer.status = SteerStatus::Acknowledged { call: call.to_owned() };
            }
        }
    }
}

/// May a person's event follow? Only what an event itself cannot show is asked of the state.
pub(super) fn legal(state: &RunState, event: &Event) -> Result<(), String> {
    let operator = &state.operator;
    match event {
        Event::DecisionAsked(asked) => {
            if asked.id != operator.next_id() {
                return Err("decisions are numbered without gaps".to_owned());
            }
            if operator.decisions.len() >= MAX_DECISIONS {
                return Err(format!("a run asks at most {MAX_DECISIONS} times"));
            }
            if operator.blocking().next().is_some() || operator.unsettled().is_some() {
                return Err("another decision is open".to_owned());
            }
            legal_asker(state, asked)
        }
        Event::DecisionAnswered(answered) => {
            let decision =
                operator.decision(answered.id).ok_or_else(|| format!("there is no decision {}", answered.id))?;
            if decision.status != DecisionStatus::Open {
                return Err(format!("{} is already answered", answered.id));
            }
            if answered.note.as_ref().is_some_and(|note| note.len() > MAX_TEXT) {
                return Err("the note is too long".to_owned());
            }
            let most = max_checks(state, decision);
            if answered.answer == Answer::Done && decision.checks >= most {
                return Err(format!("the verification failed {most} times: `quit`, and look at the command itself"));
            }
            decision.request.permits(&answered.answer).map_err(str::to_owned)
        }
        Event::DecisionSettled(settled) => match operator.decision(settled.id).map(|decision| decision.status) {
            Some(DecisionStatus::Answered) => legal_settling(operator, settled),
            Some(DecisionStatus::Open | DecisionStatus::Closed) | None => {
                Err(format!("{} has no answer to carry out", settled.id))
            }
        },
        Event::PauseRequested(_) if operator.pause.is_some() => Err("the run is already paused".to_owned()),
        Event::PauseBegan(_) if !matches!(operator.pause, Some(Pause::Requested { .. })) => {
            Err("nobody asked for a pause".to_owned())
        }
        Event::PauseLifted(_) if operator.pause.is_none() => Err("the run is not paused".to_owned()),
        Event::StopScheduled(stop) if stop.scheduled == operator.stop_after_iteration.is_some() => {
            Err("that is already so".to_owned())
        }
        Event::SteerQueued(steer) => {
            if steer.number != operator.next_steer() {
                return Err("words are numbered without gaps".to_owned());
            }
            if steer.text.trim().is_empty() || steer.text.len() > MAX_STEER {
                return Err(format!("a word of the operator has 1 to {MAX_STEER} bytes"));
            }
            if operator.queued().count() >= MAX_STEERS_QUEUED {
                return Err(format!("{MAX_STEERS_QUEUED} words are waiting already"));
            }
            Ok(())
        }
        Event::SteerDelivered(delivered) => {
            let queued = |number: &u32| operator.queued().any(|steer| steer.number == *number);
            if delivered.numbers.iter().all(queued) { Ok(()) } else { Err("that word is not waiting".to_owned()) }
        }
        Event::BudgetRaised(raised) => {
            if state.limits.of(raised.dimension).as_ref() != Some(&raised.from) {
                return Err(format!("the limit for {} is not {}", raised.dimension, raised.from));
            }
            state.limits.raised(raised.dimension, &raised.to).map(|_| ())
        }
        Event::PauseRequested(_)
        | Event::PauseBegan(_)
        | Event::PauseLifted(_)
        | Event::StopScheduled(_)
        | Event::RetryRequested(_)
        | Event::ViewerAttached(_)
        | Event::ViewerDetached(_) => Ok(()),
        other => Err(format!("{} does not come from people", other.kind())),
    }
}

/// How often a verification may fail: a pause of the value playbook has a limit of its own.
fn max_checks(state: &RunState, decision: &Decision) -> u32 {
    let of_step = decision.asked_by.is_none() && state.value.step.is_some();
    if of_step { state.value_settings().max_pause_checks.min(MAX_CHECKS) } else { MAX_CHECKS }
}

/// The machine asks about tampering, money and calls denied too often; everything else is asked by a tool call that waits for it.
fn legal_asker(state: &RunState, asked: &DecisionAsked) -> Result<(), String> {
    let call = state.call.as_ref();
    let Some(by) = &asked.asked_by else {
        return match (&asked.request, call) {
            (Request::Tampering { .. }, None) if state.state == State::CheckHalting => Ok(()),
            (Request::SpendLimit { .. }, Some(call)) if !call.request_open => Ok(()),
            (Request::Escalation { .. }, Some(_)) if state.denied_too_often().is_some() => Ok(()),
            // A step of the value playbook asks for itself, between its calls.
            (
                Request::HumanAction { .. }
                | Request::Question { .. }
                | Request::Refinement { .. }
                | Request::Vision { .. }
                | Request::Escalation { .. },
                None,
            ) if state.value.step.is_some() => Ok(()),
            // Between two iterations the playbooks with passes ask for themselves.
            (Request::Stuck { .. } | Request::HumanAction { .. }, None) if passes::may_ask(state) => Ok(()),
            (request, _) => Err(format!("nobody asks for a {} here", request.name())),
        };
    };
    if let Some(call) = call.filter(|call| call.is_program()) {
        return legal_asker_of_program(call, by, &asked.request);
    }
    let waits = |call: &&CallState| {
        let mut tools = call.tools.iter().filter(|tool| tool.tool_use.id == by.tool && tool.phase == ToolPhase::Asked);
        call.started.call == by.call && call.turn == by.turn && tools.next().is_some()
    };
    let Some(call) = call.filter(waits) else { return Err("no tool call waits for this".to_owned()) };
    let asks = call.tools.iter().any(|tool| tool.tool_use.id == by.tool && tool.tool_use.name == ASK_TOOL);
    match &asked.request {
        Request::Tampering { .. } | Request::SpendLimit { .. } | Request::Stuck { .. } => {
            Err("no tool asks this".to_owned())
        }
        Request::Permission { .. } if !asks => Ok(()),
        Request::Permission { .. } => Err("asking needs no permission".to_owned()),
        Request::HumanAction { .. }
        | Request::Question { .. }
        | Request::Refinement { .. }
        | Request::Vision { .. }
        | Request::Escalation { .. } => {
            if asks {
                Ok(())
            } else {
                Err(format!("only {ASK_TOOL} asks this"))
            }
        }
    }
}

/// A program asks in the middle of its turn. It names its asks itself; the engine makes the names.
fn legal_asker_of_program(call: &CallState, by: &AskedBy, request: &Request) -> Result<(), String> {
    if call.started.call != by.call || call.turn != by.turn {
        return Err("another turn asks this".to_owned());
    }
    // A report that came as text is an ordinary tool call; that asks for nothing.
    if !call.request_open {
        return Err("no program is at work".to_owned());
    }
    match request {
        Request::Tampering { .. } | Request::SpendLimit { .. } | Request::Stuck { .. } => {
            Err("no program asks this".to_owned())
        }
        Request::HumanAction { .. }
        | Request::Question { .. }
        | Request::Permission { .. }
        | Request::Refinement { .. }
        | Request::Vision { .. }
        | Request::Escalation { .. } => Ok(()),
    }
}

/// What was carried out must be what the answer asked for, and come out as it is said.
fn legal_settling(operator: &Operator, settled: &DecisionSettled) -> Result<(), String> {
    let request = operator.decision(settled.id).map(|decision| &decision.request);
    match (request, &settled.check) {
        (Some(Request::HumanAction { .. }), Some(check)) if settled.closed == check.end.passed() => Ok(()),
        (Some(Request::HumanAction { .. }), _) => Err("only its verification closes a pause".to_owned()),
        (Some(_), None) => Ok(()),
        (Some(_), Some(_)) | (None, _) => Err("there is nothing to verify".to_owned()),
    }
}
