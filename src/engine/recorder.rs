//! The record of a run: what happened becomes durable, is folded, and is shown; in this order.
//!
//! Role: the one way into the journal, and what is known of the run from it. Not its role: deciding what happened
//! (`machine::step` does), or doing anything about it. Invariant: no event is folded before it is durable.

use std::time::Duration;

use crate::journal;
use crate::machine::call::CallState;
use crate::machine::event::{BudgetCut, Event, RunEvent, Text};
use crate::machine::fold::{self, Stamped};
use crate::machine::run::RunState;
use crate::machine::step::{self, Input};
use crate::model::budget::{self, Exhausted, Spent};

use super::error::EngineError;
use super::hub::Hub;
use super::observer::Observer;
use super::recorded;
use super::session::Session;

/// Records what happens to one run.
pub struct Recorder<'a> {
    pub(super) session: Session,
    pub(super) hub: Hub,
    observer: &'a mut dyn Observer,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(session: Session, hub: Hub, observer: &'a mut dyn Observer) -> Self {
        Self { session, hub, observer }
    }

    pub(super) fn state(&self) -> &RunState {
        &self.session.state
    }

    /// The agent call that is open.
    pub(super) fn call(&self) -> Result<&CallState, EngineError> {
        let call = self.session.state.call.as_ref();
        call.ok_or_else(|| EngineError::Internal("no agent call is open".to_owned()))
    }

    /// A text as an event carries it.
    pub(super) fn text(&self, text: &str) -> Result<Text, EngineError> {
        if text.len() <= Text::MAX_INLINE {
            return Ok(Text::Inline(text.to_owned()));
        }
        Ok(Text::Blob(self.session.blobs.put(text.as_bytes())?))
    }

    /// Passes one event through the machine and records what it says.
    pub(super) async fn record(&mut self, event: impl Into<Event>) -> Result<(), EngineError> {
        self.record_all(vec![event.into()]).await
    }

    /// Several events that belong together, each passed through the machine.
    pub(super) async fn record_all(&mut self, events: Vec<Event>) -> Result<(), EngineError> {
        let state = &self.session.state;
        let checked: Vec<Event> =
            events.into_iter().flat_map(|event| step::step(state, Input::Record(Box::new(event)))).collect();
        let rejected = rejection(&checked).map(|(input, why)| format!("{input} was rejected: {why}"));
        self.append(checked).await?;
        // Going on would run the same effect again and again.
        rejected.map_or(Ok(()), |why| Err(EngineError::Internal(why)))
    }

    /// Makes events durable, folds them, shows them.
    pub(super) async fn append(&mut self, events: Vec<Event>) -> Result<(), EngineError> {
        let iteration = self.session.state.current.as_ref().map(|iteration| iteration.number());
        let drafts: Result<Vec<_>, _> = events.iter().map(|event| recorded::draft(iteration, event)).collect();
        let records = self.session.writer.append(drafts?).await?;
        for (record, event) in records.iter().zip(events) {
            let stamped = Stamped {
                seq: record.seq,
                ts: record.ts.clone(),
                mono_ms: record.mono_ms,
                boot: record.boot.clone(),
                event,
            };
            fold::apply(&mut self.session.state, &stamped)?;
            self.observer.event(&self.session.state, &stamped);
        }
        self.hub.grown(self.session.state.next_seq);
        Ok(())
    }

    /// Spent so far, with the time since the last event. While people are waited for, the clock stands still.
    pub(super) fn spent_now(&self) -> Spent {
        let mut spent = self.session.state.spent.clone();
        if self.session.state.waits_for_people() {
            return spent;
        }
        let since = journal::mono_ms().saturating_sub(self.session.state.time.last_mono_ms);
        spent.millis += since;
        spent.iteration_millis += since.saturating_sub(self.session.state.time.waiting_ms);
        spent
    }

    /// What is left of the run's time.
    pub(super) fn total_time_left(&self) -> Duration {
        let limit = self.session.state.limits.max_total_seconds * 1_000;
        Duration::from_millis(limit.saturating_sub(self.spent_now().millis))
    }

    /// How long an agent may go on before a time limit is reached.
    pub(super) fn time_left(&self) -> Duration {
        let limits = &self.session.state.limits;
        let spent = self.spent_now();
        let total = (limits.max_total_seconds * 1_000).saturating_sub(spent.millis);
        let iteration = (limits.max_seconds_per_iteration * 1_000).saturating_sub(spent.iteration_millis);
        // A little past the limit, so that the clock agrees that it was reached.
        Duration::from_millis(total.min(iteration).saturating_add(5))
    }

    /// Records a limit that has been reached; `true` if one has.
    pub(super) async fn cut_if_exhausted(&mut self) -> Result<bool, EngineError> {
        if self.session.state.cut.is_some() {
            return Ok(true);
        }
        match budget::iteration_exhausted(&self.session.state.limits, &self.spent_now()) {
            Some(exhausted) => {
                self.cut(exhausted).await?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    pub(super) async fn cut(&mut self, exhausted: Exhausted) -> Result<(), EngineError> {
        let limit = self.session.state.limits.of(exhausted.dimension);
        // A limit that was raised meanwhile cuts nothing.
        if self.session.state.cut.is_none() && limit.as_ref() == Some(&exhausted.limit) {
            self.record(BudgetCut { exhausted }).await?;
        }
        Ok(())
    }
}

/// What the machine would not take, and why.
pub(super) fn rejection(events: &[Event]) -> Option<(&str, &str)> {
    events.iter().find_map(|event| match event {
        Event::Run(RunEvent::InputRejected(rejected)) => Some((rejected.input.as_str(), rejected.why.as_str())),
        _ => None,
    })
}
