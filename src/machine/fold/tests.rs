//! The fold: the same events give the same run, whoever folds them; elapsed time follows the boot clock.

use proptest::prelude::*;

use super::{Stamped, apply, start};
use crate::machine::event::*;
use crate::machine::forbidden;
use crate::machine::legal::legal;
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::machine::testing::{GREEN, OneSolver, RED, Sim, World};
use crate::model::decision::Patience;
use crate::model::digest::Digest;

/// What may happen between two steps of the machine.
#[derive(Debug, Clone, Copy)]
enum Act {
    Step,
    Pause,
    GoOn,
    Stop,
    Speak,
    Watch,
    Crash,
    /// Something that does not belong here.
    Nonsense,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let one = prop_oneof![
        12 => Just(Act::Step),
        1 => Just(Act::Pause),
        2 => Just(Act::GoOn),
        1 => Just(Act::Stop),
        1 => Just(Act::Speak),
        1 => Just(Act::Watch),
        1 => Just(Act::Crash),
        1 => Just(Act::Nonsense),
    ];
    prop::collection::vec(one, 0..200)
}

fn resumed() -> RunResumed {
    RunResumed {
        engine_version: "0".into(),
        reducer_version: REDUCER_VERSION,
        attempt: 1,
        torn_bytes: 0,
        torn_sha256: None,
        patience: Patience::WAIT,
        raised: Vec::new(),
        end: None,
    }
}

fn act(sim: &mut Sim, act: Act, world: &World) {
    let by = || "p".to_owned();
    let event: Event = match act {
        Act::Step if sim.run.halt.is_some() || sim.run.operator.waits() => return,
        Act::Step if sim.run.operator.pause.is_some() && sim.todo() == crate::machine::todo::Todo::BeginPause => {
            PauseBegan {}.into()
        }
        Act::Step => return sim.perform(world),
        Act::Pause => PauseRequested { by: by() }.into(),
        Act::GoOn => PauseLifted { by: by() }.into(),
        Act::Stop => StopScheduled { by: by(), scheduled: true }.into(),
        Act::Speak => SteerQueued { number: sim.run.operator.next_steer(), text: "Try it.".into(), by: by() }.into(),
        Act::Watch => ViewerAttached { viewer: by(), may_act: false }.into(),
        Act::Crash => resumed().into(),
        Act::Nonsense => PlanWritten { sha256: Digest::of(b"plan") }.into(),
    };
    for event in crate::machine::step::step(&sim.run, crate::machine::step::Input::Record(Box::new(event))) {
        sim.record(event);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever people, crashes and wrong inputs do to a run: its events make it again, it never is in a forbidden
    /// state, and after its end nothing comes but rejections.
    #[test]
    fn events_make_the_run(acts in acts(), green_from in prop::option::of(0u32..4)) {
        let world = World { green_from, ..GREEN };
        let mut sim = Sim::plain("budget: { max_iterations: 4 }");
        for one in acts {
            let ended = sim.run.halt.clone();
            act(&mut sim, one, &world);
            prop_assert_eq!(forbidden::detect(&sim.run), None);
            if ended.is_some() && sim.run.halt.is_some() {
                prop_assert_eq!(&sim.run.halt, &ended);
            }
        }
        prop_assert_eq!(sim.refolded(), sim.run);
    }

    /// A journal that was cut anywhere is a run, too, and says what is to be done next.
    #[test]
    fn every_beginning_is_a_run(cut in 0usize..60) {
        let mut whole = Sim::plain("");
        whole.end(&World { green_from: Some(1), ..GREEN });
        let mut part = Sim::plain("");
        for event in whole.events.iter().take(cut) {
            part.record(event.clone());
        }
        part.record(resumed_if(&part.run));
        part.until(&World { green_from: Some(1), ..GREEN }, |run| run.halt.is_some());
        prop_assert_eq!(&part.run.halt, &whole.run.halt);
        prop_assert_eq!(&part.run.edges, &whole.run.edges);
    }
}

/// A crash, where the run has not ended: else something that changes nothing.
fn resumed_if(run: &RunState) -> Event {
    let rejected = InputRejected { state: run.state, input: String::new(), why: String::new() };
    if run.halt.is_none() { resumed().into() } else { rejected.into() }
}

/// Every event of a whole run may follow in no more than its own place: put somewhere else, nearly all are refused, and
/// what is refused leaves no trace.
#[test]
fn what_does_not_fit_is_refused_and_leaves_no_trace() {
    let mut sim = Sim::plain("");
    sim.end(&RED);
    let mut run = Sim::plain("").run;
    for event in sim.events.iter().rev().take(20) {
        let before = run.clone();
        let stamped = Stamped { seq: run.next_seq, ts: "t".into(), mono_ms: 1, boot: "b".into(), event: event.clone() };
        let error = apply(&mut run, &stamped).unwrap_err();
        assert_eq!((error.seq, error.kind), (before.next_seq, event.kind()));
        assert_eq!(run, before);
        assert!(legal(&run, event).is_err());
    }
}

fn at(seq: u64, mono_ms: u64, boot: &str, event: impl Into<Event>) -> Stamped {
    Stamped { seq, ts: "t".into(), mono_ms, boot: boot.into(), event: event.into() }
}

fn told() -> InputRejected {
    InputRejected { state: State::Init, input: "x".into(), why: "y".into() }
}

fn begun() -> RunState {
    let started = Sim::plain("").run.started;
    start(&at(0, 1_000, "b", started), |_| &OneSolver).unwrap()
}

#[test]
fn a_run_begins_with_its_start() {
    let error = start(&at(0, 0, "b", told()), |_| &OneSolver).unwrap_err();
    assert_eq!(error.why, "the first event must be run.started");
    let mut run = begun();
    let again = Sim::plain("").run.started;
    assert!(apply(&mut run, &at(1, 0, "b", again)).is_err(), "a run starts once");
}

/// Gaps between events are budget time while an engine was alive; downtime, other boots and people's time are not.
#[test]
fn time_counts_while_the_engine_works() {
    let mut run = begun();
    let mut seq = 0;
    let mut after = |run: &mut RunState, mono_ms, boot, event: Event| {
        seq += 1;
        apply(run, &at(seq, mono_ms, boot, event)).unwrap();
        (run.spent.millis, run.operator.waited_millis)
    };
    let pause = PauseRequested { by: "p".into() };
    let lifted = PauseLifted { by: "p".into() };
    for (name, mono_ms, boot, event, expected) in [
        ("work", 1_500, "b", told().into(), (500, 0)),
        ("a clock that goes back", 1_200, "b", told().into(), (500, 0)),
        ("down, then up again", 9_000, "b", resumed().into(), (500, 0)),
        ("work", 9_100, "b", told().into(), (600, 0)),
        ("another boot", 50, "c", told().into(), (600, 0)),
        ("work", 60, "c", Event::from(pause), (610, 0)),
        ("work until the pause", 70, "c", PauseBegan {}.into(), (620, 0)),
        ("paused", 1_070, "c", lifted.into(), (620, 1_000)),
        ("work", 1_075, "c", told().into(), (625, 1_000)),
    ] {
        assert_eq!(after(&mut run, mono_ms, boot, event), expected, "{name}");
    }
}

/// Someone who watches or speaks is no progress; anything else is.
#[test]
fn recoveries_without_progress_are_counted() {
    let mut run = begun();
    let watch = || ViewerAttached { viewer: "v".into(), may_act: false }.into();
    let rows: [(Event, u32); 5] =
        [(resumed().into(), 1), (watch(), 1), (resumed().into(), 2), (told().into(), 0), (resumed().into(), 1)];
    for (seq, (event, stalled)) in (1..).zip(rows) {
        apply(&mut run, &at(seq, 1_000, "b", event)).unwrap();
        assert_eq!(run.stalled_resumes, stalled, "after event {seq}");
    }
}
