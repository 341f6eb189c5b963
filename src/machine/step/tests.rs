//! What is decided where: the transitions of seed 001 section 3.4 and the order of the checks at the end of an iteration
//! (SPEC section 4).

use crate::machine::event::*;
use crate::machine::state::State;
use crate::machine::testing::{GREEN, RED, Sim, World};
use crate::machine::todo::Todo;
use crate::model::certificate::CertificateKind;
use crate::model::stop::{ExitStatus, ForbiddenState, StopReason};

fn path(sim: &Sim) -> Vec<&'static str> {
    let entered = sim.events.iter().filter_map(|event| match event {
        Event::Run(RunEvent::StateEntered(entered)) => Some(entered.to.name()),
        Event::Run(RunEvent::RunHalted(halted)) => Some(State::of_exit(halted.status).name()),
        _ => None,
    });
    entered.collect()
}

/// The states of one iteration, without the way out of BUDGET_CHECK.
const ITERATION: [&str; 6] =
    ["SPAWN_SUBAGENT", "COLLECT_ARTIFACTS", "CHECK_HALTING", "ACCUMULATE_LEARNINGS", "GLOW_CHECK", "BUDGET_CHECK"];

#[test]
fn a_run_goes_the_drawn_way() {
    let start = ["INTAKE_GOAL", "NULL_CHECK", "DREAM_GOAL"];
    let mut once = Sim::plain("");
    once.end(&GREEN);
    assert_eq!(path(&once), [&start[..], &ITERATION, &["EXIT_CONVERGED"]].concat());

    let mut twice = Sim::plain("");
    twice.end(&World { green_from: Some(1), ..GREEN });
    assert_eq!(path(&twice), [&start[..], &ITERATION, &ITERATION, &["EXIT_CONVERGED"]].concat());

    let mut first = Sim::plain("spec: \"1.0\"");
    first.end(&GREEN);
    let without_glow: Vec<_> = ITERATION.into_iter().filter(|state| *state != "GLOW_CHECK").collect();
    assert_eq!(path(&first), [&start[..], &without_glow, &["EXIT_CONVERGED"]].concat());
}

/// Whoever would be asked next: nobody, because the run is over.
#[test]
fn nothing_follows_an_end() {
    for world in [&GREEN, &RED] {
        let mut sim = Sim::plain("");
        sim.end(world);
        assert_eq!(sim.todo(), Todo::Finished);
        assert_eq!(super::step(&sim.run, super::Input::Proceed), []);
    }
}

struct End {
    status: ExitStatus,
    reason: StopReason,
    forbidden: Option<ForbiddenState>,
    last: State,
    /// The iteration that it ended in.
    iteration: u32,
}

const fn end(status: ExitStatus, reason: StopReason, last: State, iteration: u32) -> End {
    End { status, reason, forbidden: None, last, iteration }
}

#[track_caller]
fn assert_end(name: &str, mut sim: Sim, world: &World, expected: End) {
    let halted = sim.end(world).clone();
    let detail = &halted.detail;
    assert_eq!((halted.status, halted.stop_reason), (expected.status, expected.reason), "{name}: {detail}");
    assert_eq!(halted.forbidden_state, expected.forbidden, "{name}: {detail}");
    assert_eq!(
        (halted.last_state, sim.run.iteration_number()),
        (expected.last, expected.iteration),
        "{name}: {detail}"
    );
}

/// NULL_CHECK -> EXIT_NEED_INFO, if something is null.
#[test]
fn what_is_missing_is_asked_for() {
    use ExitStatus::ExitNeedInfo;
    let unread = World { northstar_problem: Some("it is not there"), ..GREEN };
    for (line, world, reason, missing) in [
        ("goal:", &GREEN, StopReason::NullInput, "goal"),
        ("goal: \" \"", &GREEN, StopReason::NullInput, "goal"),
        ("acceptance_criteria:", &GREEN, StopReason::NullInput, "acceptance_criteria"),
        ("halting_certificates:", &GREEN, StopReason::HaltingCriteriaMissing, "halting_certificates"),
        ("halting_certificates: [TIMEOUT]", &GREEN, StopReason::HaltingCriteriaMissing, "halting_certificates"),
        ("agents:", &GREEN, StopReason::NullInput, "agents"),
        ("", &unread, StopReason::NorthstarMissing, "northstar"),
    ] {
        let mut sim = Sim::plain(line);
        let halted = sim.end(world).clone();
        assert_eq!((halted.status, halted.stop_reason), (ExitNeedInfo, reason), "{line}");
        assert_eq!(halted.last_state, State::NullCheck, "{line}");
        assert_eq!(sim.run.missing.as_deref(), Some(&[missing.to_owned()][..]), "{line}");
    }
    let mut first = Sim::plain("spec: \"1.0\"");
    assert_eq!(first.end(&unread).status, ExitStatus::ExitConverged, "spec 1.0 has no Northstar");
}

const RESIDUAL: &str = "residual: { metric: distance, command: [x] }";

/// Every way out of an iteration, one row each.
#[test]
fn an_iteration_ends_for_one_reason() {
    use ExitStatus::*;
    use State::{BudgetCheck, CollectArtifacts, GlowCheck};
    use StopReason::*;
    let drift = |last, iteration| End {
        forbidden: Some(ForbiddenState::GlowWithoutNorthstarAlignment),
        ..end(ExitBlocked, NorthstarDrift, last, iteration)
    };
    let plain = || Sim::plain("");
    let measured = || Sim::plain(RESIDUAL);
    let three = || Sim::plain("budget: { max_iterations: 3 }");
    let rows: Vec<(&str, Sim, World, End)> = vec![
        // COLLECT_ARTIFACTS
        (
            "no file, no report",
            plain(),
            World { changes: false, reports: false, ..GREEN },
            end(ExitBlocked, EvidenceIncomplete, CollectArtifacts, 0),
        ),
        (
            "our block of AGENTS.md was changed",
            plain(),
            World { artifacts: |found| found.learnings_intact = false, ..GREEN },
            end(ExitBlocked, InvariantViolation, CollectArtifacts, 0),
        ),
        (
            "NORTHSTAR.md was changed",
            plain(),
            World { artifacts: |found| found.northstar_sha256 = None, ..GREEN },
            drift(CollectArtifacts, 0),
        ),
        // GLOW_CHECK
        ("three iterations without a win", plain(), World { metric: &["0"], ..RED }, drift(GlowCheck, 2)),
        ("further from the Northstar", plain(), World { metric: &["9", "8", "7", "6"], ..RED }, drift(GlowCheck, 2)),
        // BUDGET_CHECK
        (
            "three residuals in a row that grow",
            measured(),
            World { residuals: &["1", "2", "3"], ..RED },
            end(ExitDiverged, SilentDivergenceDetected, BudgetCheck, 2),
        ),
        ("EXACT", plain(), GREEN, end(ExitConverged, Pass, BudgetCheck, 0)),
        ("CONVERGED", measured(), World { residuals: &["0.09"], ..GREEN }, end(ExitConverged, Pass, BudgetCheck, 0)),
        (
            "R_p itself is not below R_p",
            measured(),
            World { residuals: &["0.1", "0.09"], ..GREEN },
            end(ExitConverged, Pass, BudgetCheck, 1),
        ),
        (
            "a replay that fails",
            plain(),
            World { replays: false, ..GREEN },
            end(ExitBlocked, NonReproducible, BudgetCheck, 0),
        ),
        (
            "artifacts that replays change",
            plain(),
            World { drifted: &["file0"], ..GREEN },
            end(ExitBlocked, NonReproducible, BudgetCheck, 0),
        ),
        (
            "no residual, three times",
            measured(),
            World { residuals: &["soon"], ..RED },
            end(ExitBlocked, EvidenceIncomplete, BudgetCheck, 2),
        ),
        ("all iterations are used up", three(), RED, end(ExitBudgetExceeded, MaxIters, BudgetCheck, 2)),
        (
            "green in the last one",
            three(),
            World { green_from: Some(2), ..GREEN },
            end(ExitConverged, Pass, BudgetCheck, 2),
        ),
    ];
    for (name, sim, world, expected) in rows {
        assert_end(name, sim, &world, expected);
    }
}

/// SPEC section 4: 2 GLOW_CHECK, 3 DIVERGED, 4 success through the gate, 5 BACKPRESSURE, 6 budget, 7 continue.
#[test]
fn the_checks_come_in_their_order() {
    use ExitStatus::*;
    use State::{BudgetCheck, GlowCheck};
    let rising = &["1", "2", "3"];
    let three = "residual: { metric: distance, command: [x] }\nbudget: { max_iterations: 3 }";
    let drift = End {
        forbidden: Some(ForbiddenState::GlowWithoutNorthstarAlignment),
        ..end(ExitBlocked, StopReason::NorthstarDrift, GlowCheck, 2)
    };
    let world = World { metric: &["0"], residuals: rising, ..RED };
    assert_end("2 before 3: no win, and the residuals grow", Sim::plain(three), &world, drift);
    let diverged = end(ExitDiverged, StopReason::SilentDivergenceDetected, BudgetCheck, 2);
    let world = World { residuals: rising, ..RED };
    assert_end("3 before 6: the residuals grow in the last iteration", Sim::plain(three), &world, diverged);

    let stop = |line: &str, world: &World, iteration: u32| {
        let mut sim = Sim::plain(line);
        sim.until(world, |run| run.state == State::GlowCheck && run.iteration_number() == iteration);
        sim.record(BackpressureSeen { signal: Signal::StopFile, detail: String::new() });
        sim
    };
    let success = end(ExitConverged, StopReason::Pass, BudgetCheck, 0);
    assert_end("4 before 5: a success, and a stop", stop("", &GREEN, 0), &GREEN, success);
    let blocked = |iteration| end(ExitBlocked, StopReason::BackpressureSignal, BudgetCheck, iteration);
    assert_end("5 before 7: a stop, and budget is left", stop("", &RED, 0), &RED, blocked(0));
    let few = "budget: { max_iterations: 3 }";
    assert_end("5 before 6: a stop in the last iteration", stop(few, &RED, 2), &RED, blocked(2));
}

/// EXACT and CONVERGED as SPEC section 4 has them; a declared type is the only one there is.
#[test]
fn a_certificate_is_what_was_declared() {
    for (declared, residuals, green, kind) in [
        ("[EXACT]", "0", true, CertificateKind::Exact),
        ("[EXACT, CONVERGED]", "0", true, CertificateKind::Exact),
        ("[CONVERGED]", "0", true, CertificateKind::Converged),
        ("[EXACT]", "0.05", true, CertificateKind::None),
        ("[EXACT]", "0", false, CertificateKind::None),
        ("[EXACT, CONVERGED]", "0.2", true, CertificateKind::None),
        ("[EXACT, CONVERGED]", "none", true, CertificateKind::None),
    ] {
        let residuals: &'static [&'static str] = vec![residuals].leak();
        let world = World { residuals, green_from: green.then_some(0), ..GREEN };
        let mut sim = Sim::plain(&format!("halting_certificates: {declared}\n{RESIDUAL}"));
        sim.until(&world, |run| run.state == State::AccumulateLearnings);
        let certificate = sim.run.current.as_ref().unwrap().certificate.as_ref().unwrap();
        assert_eq!(certificate.kind, kind, "{declared} {residuals:?} {green}: {}", certificate.why);
    }
}

/// The last `divergence_window` residuals strictly increase; a null breaks the row.
#[test]
fn divergence_needs_a_whole_row() {
    for (residuals, diverges_in) in [
        (&["1", "2", "3"][..], Some(2)),
        (&["5", "1", "2", "3"], Some(3)),
        (&["1", "2", "2", "3", "3"], None),
        (&["1", "2", "null", "3", "4"], None),
        (&["1", "2", "1", "2", "1"], None),
        (&["1", "1.0001", "1.00010001"], Some(2)),
    ] {
        let world = World { residuals, ..RED };
        let mut sim = Sim::plain(&format!("{RESIDUAL}\nbudget: {{ max_iterations: 5 }}"));
        let halted = sim.end(&world).clone();
        let diverged = halted.status == ExitStatus::ExitDiverged;
        assert_eq!(diverged.then(|| sim.run.iteration_number()), diverges_in, "{residuals:?}: {}", halted.detail);
    }
}

/// Stops are obeyed before every spawn, in every state but where an entry is being written.
#[test]
fn a_stop_is_obeyed_at_once_or_after_the_entry() {
    use State::*;
    for state in [Init, IntakeGoal, NullCheck, DreamGoal, SpawnSubagent, CollectArtifacts, CheckHalting] {
        let mut sim = Sim::at(state);
        sim.record(BackpressureSeen { signal: Signal::StopFile, detail: String::new() });
        // What agents changed so far is looked at once, then it ends.
        let halted = sim.end(&RED);
        assert_eq!((halted.stop_reason, halted.last_state), (StopReason::BackpressureSignal, state));
    }
    for state in [AccumulateLearnings, GlowCheck] {
        let mut sim = Sim::plain("");
        sim.until(&RED, |run| run.state == state);
        sim.record(BackpressureSeen { signal: Signal::StopFile, detail: String::new() });
        let halted = sim.end(&RED).clone();
        assert_eq!((halted.stop_reason, halted.last_state), (StopReason::BackpressureSignal, BudgetCheck), "{state}");
        assert!(sim.run.current.as_ref().unwrap().entry.is_some());
    }
}
