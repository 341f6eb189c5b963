//! Seed 001, section 3.6: each forbidden state, made by hand, is seen, and ends the run as written there.

use super::{detect, violation};
use crate::machine::call::CallState;
use crate::machine::event::{Event, RunEvent};
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::machine::step::{Input, step};
use crate::machine::testing::{GREEN, RED, Sim, World, started};
use crate::model::certificate::Residual;
use crate::model::decimal::Exact;
use crate::model::gate_report::{GateReport, check};
use crate::model::purpose::Purpose;
use crate::model::stop::ExitStatus::{self, ExitBlocked, ExitBudgetExceeded, ExitDiverged, ExitNeedInfo};
use crate::model::stop::ForbiddenState::{self, *};
use crate::model::stop::StopReason;

fn current(run: &mut RunState) -> &mut crate::machine::iteration::Iteration {
    run.current.as_mut().unwrap()
}

/// In SPAWN_SUBAGENT after three iterations.
fn after_three() -> Sim {
    let mut sim = Sim::plain("");
    sim.until(&RED, |run| run.done.len() == 3);
    sim
}

fn working() -> Sim {
    let mut sim = Sim::at(State::SpawnSubagent);
    sim.begin_iteration();
    sim
}

fn without_a_win() -> Sim {
    let mut sim = Sim::plain("");
    sim.until(&World { metric: &["0"], ..RED }, |run| run.state == State::GlowCheck && run.done.len() == 2);
    sim
}

/// The claim of a success that nothing stands behind.
fn claim(run: &mut RunState) {
    run.state = State::ExitConverged;
}

type Row = (ForbiddenState, fn() -> Sim, fn(&mut RunState), ExitStatus, StopReason);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    (InfiniteLoopWithoutHaltingCriteria, || Sim::at(State::DreamGoal), |run| run.certificates.clear(),
        ExitBlocked, StopReason::HaltingCriteriaMissing),
    (ContextBleedBetweenIterations, working, |run| current(run).began.bleeds = true,
        ExitBlocked, StopReason::InvariantViolation),
    (LearningsNotAccumulated, || Sim::at(State::GlowCheck), |run| current(run).entry = None,
        ExitBlocked, StopReason::InvariantViolation),
    (LearningsNotAccumulated, || Sim::at(State::GlowCheck),
        |run| current(run).learnings_before = current(run).learnings_after,
        ExitBlocked, StopReason::InvariantViolation),
    (ConvergenceClaimWithoutCertificate, || Sim::at(State::BudgetCheck),
        |run| { current(run).certificate = None; claim(run); },
        ExitBlocked, StopReason::ConvergenceClaimWithoutRpCertificate),
    (ConvergenceClaimWithoutCertificate, || Sim::at(State::BudgetCheck),
        |run| { current(run).certificate.as_mut().unwrap().residual = None; claim(run); },
        ExitBlocked, StopReason::ConvergenceClaimWithoutRpCertificate),
    (StackedSpeculativeIterations, || Sim::at(State::GlowCheck),
        |run| run.call = Some(CallState::new(started(run, Purpose::Solver, None))),
        ExitBlocked, StopReason::InvariantViolation),
    (BudgetIgnore, after_three, |run| run.limits.max_iterations = 3,
        ExitBudgetExceeded, StopReason::MaxIters),
    (SilentDivergence, after_three, |run| for (done, value) in run.done.iter_mut().zip(1..) {
            done.residual = Some(Some(Residual { value: Exact::from_u64(value), unmet_of: None }));
        },
        ExitDiverged, StopReason::SilentDivergenceDetected),
    (GlowWithoutNorthstarAlignment, without_a_win, |_| (),
        ExitBlocked, StopReason::NorthstarDrift),
    (PhucTestFailure, || Sim::at(State::BudgetCheck), |run| {
            let failed = check("Phuc Test 5", None, false, "", StopReason::PhucTestFailure5);
            current(run).gate = Some(GateReport { passed: false, rung_achieved: None, checks: vec![failed] });
            claim(run);
        },
        ExitBlocked, StopReason::PhucTestFailure5),
    (VerifySkipped, || Sim::at(State::GlowCheck), |run| current(run).certificate = None,
        ExitBlocked, StopReason::VerifySkipped),
    (NorthstarNotRead, || Sim::at(State::DreamGoal), |run| run.northstar = None,
        ExitNeedInfo, StopReason::NorthstarMissing),
];

#[test]
fn every_forbidden_state_is_seen_and_ends_the_run() {
    for (forbidden, reach, enter, status, reason) in TABLE {
        let mut run = reach().run;
        enter(&mut run);
        let found = violation(*forbidden, &run).unwrap_or_else(|| panic!("{forbidden} was not seen"));
        assert_eq!((found.status, found.stop_reason), (*status, *reason), "{forbidden}");
        let first = detect(&run).unwrap();
        let halted = step(&run, Input::Proceed);
        let [Event::Run(RunEvent::RunHalted(halted))] = halted.as_slice() else {
            panic!("{forbidden}: the run goes on: {halted:?}")
        };
        assert_eq!((halted.forbidden_state, halted.status), (Some(first.forbidden), first.status), "{forbidden}");
    }
    for forbidden in ForbiddenState::ALL {
        assert!(TABLE.iter().any(|(listed, ..)| listed == forbidden), "{forbidden} has no row");
    }
}

/// No run gets into one by itself, but for the one that the machine looks for in GLOW_CHECK.
#[test]
fn no_run_enters_one_by_itself() {
    let residuals = &["1", "2", "3"];
    for (line, world) in [
        ("", GREEN),
        ("", World { green_from: Some(2), ..GREEN }),
        ("budget: { max_iterations: 3 }", RED),
        ("spec: \"1.0\"", World { metric: &["0"], green_from: Some(4), ..GREEN }),
        ("residual: { metric: distance, command: [x] }", World { residuals, ..RED }),
        ("", World { changes: false, reports: false, ..GREEN }),
    ] {
        let mut sim = Sim::plain(line);
        sim.until(&world, |run| {
            assert_eq!(detect(run), None, "in {}", run.state);
            run.halt.is_some()
        });
    }
}
