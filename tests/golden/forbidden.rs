//! Every forbidden state: forged events on top of a real journal are rejected, or found with the right exit.

use std::sync::LazyLock;

use nightloop::machine::event::{Event, IterationBegan, IterationEvent, RunEvent, RunHalted, StateEntered};
use nightloop::machine::fold::{self, Stamped};
use nightloop::machine::forbidden;
use nightloop::machine::run::RunState;
use nightloop::machine::state::State;
use nightloop::machine::step::{Input, step};
use nightloop::model::certificate::CertificateKind;
use nightloop::model::decimal::Exact;
use nightloop::model::loop_file::CertificateName;
use nightloop::model::stop::{ExitStatus, ForbiddenState, StopReason};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::case::{Case, write};
use crate::sealed::{Expect, check};

#[derive(Deserialize)]
struct Line {
    seq: u64,
    ts: String,
    mono: u64,
    boot: String,
    #[serde(rename = "type")]
    kind: String,
    data: Box<RawValue>,
}

/// The journal of a run of four iterations that reached EXACT.
static JOURNAL: LazyLock<Vec<Stamped>> = LazyLock::new(|| {
    let case = Case::new().check("a", "test -f a").residuals(&["5", "4", "3", "0"]).solver(3, [write("a", "1\n")]);
    let ran = case.run();
    check(&ran, &Expect::exact(&["5", "4", "3", "0"]));
    let dir = std::fs::read_dir(ran.bench.run_dir().join("journal")).unwrap();
    let mut segments: Vec<_> = dir.map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    let text: String = segments.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    text.lines().map(|line| stamped(&serde_json::from_str(line).unwrap())).collect()
});

fn stamped(line: &Line) -> Stamped {
    let event = nightloop::playbook::parse(&line.kind, line.data.get()).unwrap().unwrap();
    Stamped { seq: line.seq, ts: line.ts.clone(), mono_ms: line.mono, boot: line.boot.clone(), event }
}

/// Folds the journal until the state is as wanted. `edit` forges events, or drops them by saying `false`.
fn folded(mut edit: impl FnMut(&mut Event) -> bool, until: impl Fn(&RunState) -> bool) -> RunState {
    let mut events = JOURNAL.iter().cloned().filter_map(|mut stamped| edit(&mut stamped.event).then_some(stamped));
    let mut state = nightloop::playbook::start(&events.next().unwrap()).unwrap();
    for stamped in events {
        if until(&state) {
            return state;
        }
        fold::apply(&mut state, &stamped).unwrap();
    }
    panic!("the journal ends in {} before the wanted state", state.state)
}

fn keep(_: &mut Event) -> bool {
    true
}

/// One more event, as the engine would record it.
fn push(state: &mut RunState, event: impl Into<Event>) {
    let last = JOURNAL.last().unwrap();
    let stamped = Stamped { seq: state.next_seq, event: event.into(), ..last.clone() };
    fold::apply(state, &stamped).unwrap();
}

/// The machine finds the forbidden state by itself, ends the run, and the end is legal.
#[track_caller]
fn found(mut state: RunState, name: ForbiddenState, status: ExitStatus, reason: StopReason) {
    let violation = forbidden::detect(&state).unwrap_or_else(|| panic!("{name} was not found"));
    assert_eq!((violation.forbidden, violation.status, violation.stop_reason), (name, status, reason));
    let events = step(&state, Input::Proceed);
    let [Event::Run(RunEvent::RunHalted(halted))] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((halted.forbidden_state, halted.status, halted.stop_reason), (Some(name), status, reason));
    push(&mut state, halted.clone());
    assert_eq!(state.state, State::of_exit(status));
}

/// The machine does not let the event in, and says why.
#[track_caller]
fn rejected(state: &RunState, event: impl Into<Event>, why: &str) {
    let event = event.into();
    let events = step(state, Input::Record(event.clone().into()));
    let [Event::Run(RunEvent::InputRejected(rejection))] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((rejection.input.as_str(), rejection.state), (event.kind(), state.state));
    assert!(rejection.why.contains(why), "{}", rejection.why);
    // A journal that holds it all the same does not fold.
    let forged = Stamped { seq: state.next_seq, event, ..JOURNAL[0].clone() };
    assert!(fold::apply(&mut state.clone(), &forged).is_err());
}

fn claim(state: &RunState) -> RunHalted {
    RunHalted {
        status: ExitStatus::ExitConverged,
        stop_reason: StopReason::Pass,
        forbidden_state: None,
        last_state: state.state,
        detail: "EXACT: trust me".to_owned(),
        exhausted: None,
        signal: None,
    }
}

fn began() -> IterationBegan {
    let began = JOURNAL.iter().find_map(|stamped| match &stamped.event {
        Event::Iteration(IterationEvent::IterationBegan(began)) => Some(began.clone()),
        _ => None,
    });
    began.unwrap()
}

fn between_iterations(done: usize) -> impl Fn(&RunState) -> bool {
    move |state| state.state == State::SpawnSubagent && state.current.is_none() && state.done.len() == done
}

fn in_state(wanted: State, done: usize) -> impl Fn(&RunState) -> bool {
    move |state| state.state == wanted && state.done.len() == done
}

/// Drives the machine towards one forbidden state. No wildcard: a new one needs its proof here.
#[track_caller]
fn prove(name: ForbiddenState) {
    let blocked = ExitStatus::ExitBlocked;
    match name {
        ForbiddenState::InfiniteLoopWithoutHaltingCriteria => {
            let only_timeout = |event: &mut Event| {
                if let Event::Run(RunEvent::RunStarted(started)) = event {
                    let certificates = vec![CertificateName(CertificateKind::Timeout)];
                    started.declaration.halting_certificates = Some(certificates);
                }
                true
            };
            let state = folded(only_timeout, in_state(State::DreamGoal, 0));
            found(state, name, blocked, StopReason::HaltingCriteriaMissing);
        }
        ForbiddenState::ContextBleedBetweenIterations => {
            let mut state = folded(keep, between_iterations(0));
            push(&mut state, IterationBegan { bleeds: true, ..began() });
            found(state, name, blocked, StopReason::InvariantViolation);
        }
        ForbiddenState::LearningsNotAccumulated => {
            let mut state = folded(keep, in_state(State::AccumulateLearnings, 0));
            let (from, to) = (State::AccumulateLearnings, State::GlowCheck);
            push(&mut state, StateEntered { from, to, why: "forged".to_owned() });
            found(state, name, blocked, StopReason::InvariantViolation);
        }
        ForbiddenState::ConvergenceClaimWithoutCertificate => {
            let mut state = folded(keep, in_state(State::BudgetCheck, 0));
            rejected(&state, claim(&state), name.name());
            // A state that got there all the same is still found.
            state.state = State::ExitConverged;
            let violation = forbidden::violation(name, &state).unwrap();
            assert_eq!(violation.stop_reason, StopReason::ConvergenceClaimWithoutRpCertificate);
        }
        ForbiddenState::StackedSpeculativeIterations => {
            let state = folded(keep, |state| state.call.is_some());
            let started = state.call.as_ref().unwrap().started.clone();
            rejected(&state, started, name.name());
            rejected(&state, IterationBegan { iteration: 1, ..began() }, "still running");
        }
        ForbiddenState::BudgetIgnore => {
            let tight = |event: &mut Event| {
                if let Event::Run(RunEvent::RunStarted(started)) = event {
                    started.budget.limits.max_iterations = 3;
                }
                true
            };
            let state = folded(tight, between_iterations(3));
            found(state, name, ExitStatus::ExitBudgetExceeded, StopReason::MaxIters);
        }
        ForbiddenState::SilentDivergence => {
            let rising = |event: &mut Event| {
                if let Event::Iteration(IterationEvent::ResidualMeasured(measured)) = event
                    && let (Some(iteration), Some(residual)) = (measured.iteration, &mut measured.residual)
                {
                    residual.value = Exact::from_u64(u64::from(iteration));
                }
                true
            };
            let state = folded(rising, between_iterations(3));
            found(state, name, ExitStatus::ExitDiverged, StopReason::SilentDivergenceDetected);
        }
        ForbiddenState::GlowWithoutNorthstarAlignment => {
            let no_wins = |event: &mut Event| {
                if let Event::Iteration(IterationEvent::GlowScored(scored)) = event {
                    scored.glow.w = 0;
                }
                true
            };
            let state = folded(no_wins, in_state(State::GlowCheck, 2));
            found(state, name, blocked, StopReason::NorthstarDrift);
        }
        ForbiddenState::PhucTestFailure => {
            let failing = |event: &mut Event| {
                if let Event::Iteration(IterationEvent::GateJudged(judged)) = event {
                    judged.report.passed = false;
                }
                true
            };
            let judged = |state: &RunState| state.current.as_ref().is_some_and(|it| it.gate.is_some());
            let mut state = folded(failing, judged);
            rejected(&state, claim(&state), "no certificate that passed the gate");
            state.state = State::ExitConverged;
            let violation = forbidden::violation(name, &state).unwrap();
            assert_eq!((violation.status, violation.stop_reason), (blocked, StopReason::PhucTestFailure5));
        }
        ForbiddenState::VerifySkipped => {
            let uncertified =
                |event: &mut Event| !matches!(event, Event::Iteration(IterationEvent::CertificateIssued(_)));
            let state = folded(uncertified, in_state(State::GlowCheck, 0));
            found(state, name, blocked, StopReason::VerifySkipped);
        }
        ForbiddenState::NorthstarNotRead => {
            let unread = |event: &mut Event| !matches!(event, Event::Run(RunEvent::NorthstarRead(_)));
            let state = folded(unread, in_state(State::DreamGoal, 0));
            found(state, name, ExitStatus::ExitNeedInfo, StopReason::NorthstarMissing);
        }
    }
}

macro_rules! proofs {
    ($($test:ident => $variant:ident),+ $(,)?) => {
        $(#[test]
        fn $test() {
            prove(ForbiddenState::$variant);
        })+

        #[test]
        fn every_forbidden_state_has_its_proof() {
            assert_eq!(ForbiddenState::ALL, [$(ForbiddenState::$variant,)+]);
        }
    };
}

proofs! {
    a_loop_that_cannot_succeed_is_found => InfiniteLoopWithoutHaltingCriteria,
    a_capsule_that_bleeds_is_found => ContextBleedBetweenIterations,
    learnings_that_are_missing_are_found => LearningsNotAccumulated,
    a_claim_without_a_certificate_is_rejected => ConvergenceClaimWithoutCertificate,
    a_second_agent_is_rejected => StackedSpeculativeIterations,
    a_loop_past_its_budget_is_found => BudgetIgnore,
    a_silent_divergence_is_found => SilentDivergence,
    work_without_a_northstar_is_found => GlowWithoutNorthstarAlignment,
    a_claim_past_a_failed_gate_is_rejected => PhucTestFailure,
    learnings_without_a_certificate_are_found => VerifySkipped,
    a_northstar_that_was_not_read_is_found => NorthstarNotRead,
}

#[test]
fn the_real_journal_passes_every_detector_at_every_step() {
    let mut state = nightloop::playbook::start(&JOURNAL[0]).unwrap();
    for stamped in &JOURNAL[1..] {
        assert_eq!(forbidden::detect(&state), None, "before event {}", stamped.seq);
        fold::apply(&mut state, stamped).unwrap();
    }
    assert_eq!(state.state, State::ExitConverged);
    rejected(&state, began(), "the run has ended");
}
