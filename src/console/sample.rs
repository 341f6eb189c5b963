//! A real run for tests: the journal of a finished demo, at any moment of it.

use std::path::Path;

use crate::engine::recorded;
use crate::journal::{self, Blobs, RunDir};
use crate::machine::event::{Event, OperatorEvent};
use crate::machine::fold::{self, Stamped};
use crate::machine::operator::{Decision, DecisionStatus};
use crate::machine::run::RunState;

use super::scene::{Link, Scene};
use super::theme::Theme;

pub struct Sample {
    pub events: Vec<Stamped>,
    pub blobs: Blobs,
}

impl Sample {
    pub fn demo() -> Self {
        Self::recorded("demo-run")
    }

    /// A newer demo: a person decides on a refinement and does something by hand.
    pub fn decided() -> Self {
        Self::recorded("demo-run-2")
    }

    fn recorded(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
        let run_dir = RunDir::open(&dir).unwrap();
        let records = journal::read(&run_dir).map(Result::unwrap).filter(|r| r.kind != journal::SEGMENT_END);
        Self { events: records.map(|record| recorded::stamped(&record).unwrap()).collect(), blobs: run_dir.blobs() }
    }

    /// The run after its first `count` events (at least one).
    pub fn after(&self, count: usize) -> RunState {
        let mut state = crate::playbook::start(&self.events[0]).unwrap();
        for stamped in self.events.iter().take(count).skip(1) {
            fold::apply(&mut state, stamped).unwrap();
        }
        state
    }

    pub fn ended(&self) -> RunState {
        self.after(self.events.len())
    }

    /// The number of events up to and including the first of this kind after `from`.
    pub fn first(&self, kind: &str, from: usize) -> usize {
        let found = self.events.iter().skip(from).position(|stamped| stamped.event.kind() == kind);
        from + found.unwrap() + 1
    }
}

/// Folds an event made by hand. Views show a decision of any kind at any place; who may ask for what, and
/// where, is the machine's affair.
pub fn fold_anyway(state: &mut RunState, stamped: &Stamped) {
    let Event::Operator(OperatorEvent::DecisionAsked(asked)) = &stamped.event else {
        return fold::apply(state, stamped).unwrap();
    };
    state.operator.decisions.push(Decision {
        id: asked.id,
        request: asked.request.clone(),
        why: asked.why.clone(),
        asked_by: asked.asked_by.clone(),
        asked_ts: stamped.ts.clone(),
        status: DecisionStatus::Open,
        answer: None,
        checks: 0,
        last_check: None,
        detail: String::new(),
    });
    state.next_seq = stamped.seq + 1;
    state.time.last_ts.clone_from(&stamped.ts);
    state.time.last_mono_ms = stamped.mono_ms;
}

/// A scene of a live in-process run, seen a minute after its last event.
pub fn scene<'a>(run: &'a RunState, theme: &'a Theme) -> Scene<'a> {
    let now_ms = super::scene::millis_of(&run.time.last_ts).unwrap_or(0) + 60_000;
    Scene {
        run,
        live: true,
        theme,
        now_ms,
        utc_offset_seconds: 0,
        link: &Link::InProcess,
        read_only: false,
        focused: true,
    }
}

/// What a view draws, as text.
pub fn screen(width: u16, height: u16, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> String {
    let mut terminal = ratatui::Terminal::new(ratatui::backend::TestBackend::new(width, height)).unwrap();
    terminal.draw(draw).unwrap();
    terminal.backend().to_string()
}

#[test]
fn the_newer_demo_has_decisions_that_were_answered() {
    let sample = Sample::decided();
    let open = sample.after(sample.first("decision.asked", 0));
    assert_eq!(open.operator.open().count(), 1);
    let ended = sample.ended();
    assert_eq!((ended.operator.decisions.len(), ended.operator.open().count()), (2, 0));
}
