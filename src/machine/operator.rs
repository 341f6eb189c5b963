//! What people were asked and what they told the run, as folded from events.

use std::collections::BTreeSet;

use crate::model::decision::{Answer, DecisionId, Patience, Request};

use super::event::{AskedBy, BudgetRaised, DecisionAnswered, DecisionAsked, DecisionSettled, ProbeResult, SteerQueued};

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
    pub(super) fn blocking(&self) -> impl Iterator<Item = &Decision> {
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
