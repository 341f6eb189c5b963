//! Moments of runs for tests: the demo at any event, gone on with events made by hand.

use crate::machine::event::{DecisionAsked, Event, LlmFailed, LlmRequested};
use crate::machine::fold::Stamped;
use crate::machine::run::RunState;
use crate::model::decision::{DecisionId, Request};
use crate::model::digest::Digest;
use crate::model::failure::FailureClass;

use super::recent::Recent;
use super::sample::{Sample, fold_anyway};
use super::scene::{News, millis_of};

/// A run at some moment, with what a pane would have learnt.
pub struct Moment {
    pub run: RunState,
    pub recent: Recent,
    pub all: Vec<Stamped>,
}

impl Moment {
    pub fn after(sample: &Sample, count: usize) -> Self {
        let run = sample.after(count);
        let mut recent = Recent::default();
        for stamped in sample.events.iter().take(count) {
            recent.learn(News::Event { stamped, state: &run, body: None });
        }
        Self { run, recent, all: sample.events.iter().take(count).cloned().collect() }
    }

    /// One more event, a second later.
    pub fn then(mut self, event: impl Into<Event>) -> Self {
        let last = self.all.last().unwrap();
        let millis = millis_of(&last.ts).unwrap() + 1_000;
        let ts = jiff::Timestamp::from_millisecond(millis).unwrap().to_string();
        let (seq, mono_ms) = (last.seq + 1, last.mono_ms + 1_000);
        let stamped = Stamped { seq, ts, mono_ms, boot: last.boot.clone(), event: event.into() };
        fold_anyway(&mut self.run, &stamped);
        self.recent.learn(News::Event { stamped: &stamped, state: &self.run, body: None });
        self.all.push(stamped);
        self
    }
}

/// The third iteration, its first request about to go out.
pub fn agent_at_work() -> Moment {
    let sample = Sample::demo();
    Moment::after(&sample, sample.first("agent.started", 150))
}

pub fn requested(moment: Moment) -> Moment {
    let call = moment.run.call.as_ref().unwrap().started.call.clone();
    let request_sha256 = Digest::of(b"");
    moment.then(LlmRequested {
        call,
        turn: 0,
        attempt: 0,
        request_sha256,
        reserved_tokens: 0,
        reserved_usd: None,
        drop_blocks: false,
    })
}

pub fn rate_limited() -> Moment {
    let moment = requested(agent_at_work());
    let call = moment.run.call.as_ref().unwrap().started.call.clone();
    moment.then(LlmFailed {
        call,
        turn: 0,
        attempt: 0,
        class: FailureClass::RateLimited,
        message: "5-hour limit reached\u{1b}[2J".into(),
        wait_millis: Some(600_000),
        usage: None,
        cost_usd: None,
        facts: None,
    })
}

pub fn asked() -> Moment {
    agent_at_work().then(DecisionAsked {
        id: DecisionId(1),
        request: Request::Question { question: "Keep the old API?".into(), choices: Vec::new() },
        why: "the goal does not say".into(),
        asked_by: None,
    })
}

/// Sizes a view must bear: small ones of every kind, large ones around the limits of layouts, the extremes.
pub fn sizes() -> Vec<(u16, u16)> {
    let small = (1..=44).step_by(3).flat_map(|width| (1..=16).step_by(2).map(move |height| (width, height)));
    let large = [60, 76, 79, 80, 99, 120, 166, 200, 300].into_iter();
    let large = large.flat_map(|width| [1, 2, 8, 12, 20, 36, 120].map(|height| (width, height)));
    small.chain(large).collect()
}

/// No character on the screen may be a control character, whatever agents and files say.
pub fn assert_harmless(screen: &str) {
    let bad = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!screen.contains(bad), "{screen:?}");
}
