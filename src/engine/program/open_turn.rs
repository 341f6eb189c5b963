//! The open turn of an agent program, as it is attended: what it did, what it spent, what it waits for.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::agent;
use crate::agent::program::{Ask, Finished};
use crate::engine::attempt::{Attempt, Owed};
use crate::engine::context::Context;
use crate::engine::error::EngineError;
use crate::engine::offer;
use crate::machine::event::AgentActed;
use crate::model::act::Act;
use crate::model::budget::{Exhausted, iteration_exhausted};
use crate::model::decimal::Exact;
use crate::model::decision::DecisionId;
use crate::model::ids::Role;

use super::declared::Program;

/// Acts are recorded together, at the latest after this long.
const GATHER: Duration = Duration::from_millis(500);
/// Acts that fit one event.
const ACTS_PER_EVENT: usize = 32;
/// Acts that one turn may have recorded; the rest is counted.
const MAX_ACTS: usize = 5_000;

/// Something the program waits for.
pub(super) enum Waiting {
    Call(offer::Call),
    Permission(Ask),
}

/// What is known of the turn that is going on.
pub(super) struct OpenTurn<'a> {
    pub attempt: Attempt,
    pub role: Role,
    /// Decisions whose answer a program got from this engine.
    pub handed_out: &'a mut BTreeSet<DecisionId>,
    acts: Vec<Act>,
    /// When the oldest act that is not recorded came.
    since: Option<Instant>,
    recorded: usize,
    left_out: usize,
    /// Asks that wait for their turn: one decision is open at a time.
    pub queue: VecDeque<Waiting>,
    /// The decision that is open, and who waits for it.
    pub open: Option<(DecisionId, Waiting)>,
    /// When the person began to be waited for.
    pub waiting_since: Option<Instant>,
    /// How long people were waited for.
    pub held: Duration,
    pub asked: u32,
    pub reported_at: Option<Instant>,
    /// The limit that what it told so far has reached.
    pub passed: Option<Exhausted>,
    /// Usage so far.
    pub usage: agent::Usage,
    pub cost: Option<Exact>,
    /// The model that it says it uses.
    pub model: Option<String>,
}

impl<'a> OpenTurn<'a> {
    pub fn new(attempt: Attempt, role: Role, handed_out: &'a mut BTreeSet<DecisionId>) -> Self {
        Self {
            attempt,
            role,
            handed_out,
            acts: Vec::new(),
            since: None,
            recorded: 0,
            left_out: 0,
            queue: VecDeque::new(),
            open: None,
            waiting_since: None,
            held: Duration::ZERO,
            asked: 0,
            reported_at: None,
            passed: None,
            usage: agent::Usage::default(),
            cost: None,
            model: None,
        }
    }

    /// What it owes: its own figure where it gave one, else by the declared price. One that would have told its cost and
    /// was ended before is counted by the known price of the model that it named. A turn that used nothing owes nothing.
    pub fn owed(&self, program: &Program) -> Owed {
        let usage = (self.usage.total() > 0).then_some(self.usage);
        Owed { usage, cost_usd: self.cost.or_else(|| program.cost(&usage?, self.model.as_deref())) }
    }

    /// The turn as far as it came.
    pub fn cut_short(&self, text: String) -> Finished {
        let model = self.model.clone();
        Finished { text, model, usage: self.usage, cost_usd: self.cost, ..Finished::default() }
    }

    /// Until the acts gathered so far are recorded.
    pub fn flush_in(&self) -> Option<Duration> {
        self.since.map(|since| GATHER.saturating_sub(since.elapsed()))
    }

    /// How much longer a person is waited for.
    pub fn patience_left(&self, cx: &Context<'_>) -> Option<Duration> {
        let minutes = cx.state().operator.patience.timeout_minutes;
        let since = self.waiting_since?;
        (minutes > 0).then(|| Duration::from_secs(minutes.saturating_mul(60)).saturating_sub(since.elapsed()))
    }

    /// Has the turn used up tokens, money or tool calls? What it reports so far counts on top of what is settled.
    pub fn passed_a_limit(&self, cx: &Context<'_>) -> Option<Exhausted> {
        let mut spent = cx.recorder.spent_now();
        let usage = &self.usage;
        spent.input_tokens = spent.input_tokens.saturating_add(usage.total().saturating_sub(usage.output_tokens));
        spent.output_tokens = spent.output_tokens.saturating_add(usage.output_tokens);
        if let Some(cost) = self.cost {
            spent.cost_usd = spent.cost_usd.and_then(|total| total.checked_add(cost));
            spent.known_cost_usd = spent.known_cost_usd.unwrap_or(Exact::ZERO).checked_add(cost);
        }
        iteration_exhausted(&cx.state().limits, &spent)
    }

    /// Something it did. Its words lose known values and whatever looks like a key.
    pub async fn acted(&mut self, cx: &mut Context<'_>, act: Act) -> Result<(), EngineError> {
        let secrets = cx.secrets();
        let act = act.with_texts(|text| secrets.redact(&text).into_owned());
        if self.recorded + self.acts.len() >= MAX_ACTS {
            self.left_out += 1;
            return Ok(());
        }
        self.acts.push(act.bounded());
        self.since.get_or_insert_with(Instant::now);
        if self.acts.len() >= ACTS_PER_EVENT {
            return self.flush(cx).await;
        }
        Ok(())
    }

    /// Something that we note about it, recorded at once.
    pub async fn record_now(&mut self, cx: &mut Context<'_>, act: Act) -> Result<(), EngineError> {
        self.acts.push(act.bounded());
        self.flush(cx).await
    }

    /// Records the acts gathered so far.
    pub async fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), EngineError> {
        self.since = None;
        let mut acts = std::mem::take(&mut self.acts);
        if self.left_out > 0 && self.recorded < MAX_ACTS + 1 {
            acts.push(Act::Noted { text: format!("more than {MAX_ACTS} acts: the rest is not recorded") });
        }
        if acts.is_empty() {
            return Ok(());
        }
        self.recorded += acts.len();
        cx.record(AgentActed { call: self.attempt.call.clone(), turn: self.attempt.turn, acts }).await
    }
}
