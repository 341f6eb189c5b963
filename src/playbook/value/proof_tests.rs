//! Nothing but a passed exit gate is a success.

use crate::machine::event::*;
use crate::machine::legal::legal;
use crate::machine::measure;
use crate::machine::state::State;
use crate::model::certificate::CertificateKind;
use crate::model::digest::Digest;
use crate::model::value::{Action, Recommendation, Verification, VerificationStatus, VrcMode};
use crate::playbook::value::event::{StepBegan, VerificationPut, VerificationsFound};

use super::testing::{Sim, result, verification};

const CRITERION: &str = "acceptance_criteria:\n  - { id: greets, text: It greets., check: [\"true\"] }";

#[test]
fn a_high_value_score_and_a_green_criterion_are_no_passed_exit_gate() {
    let mut sim = Sim::working_with(CRITERION);
    sim.value(VrcMode::Full, "0.99", Recommendation::ShipReady);
    let iteration = sim.run.current.as_mut().unwrap();
    iteration.probes.insert((Phase::Iteration, Probe::Criterion("greets".into())), result(true));
    let iteration = sim.run.current.as_ref().unwrap();
    let certificate = measure::iteration_certificate(&sim.run, iteration);
    assert_eq!(certificate.verifiers_passed, 1);
    assert_eq!(certificate.kind, CertificateKind::None, "{}", certificate.why);
}

fn found(verifications: Vec<Verification>) -> Event {
    VerificationsFound { verifications, passed_over: Vec::new() }.into()
}

#[test]
fn no_check_is_gone_or_exchanged_in_a_forged_journal() {
    let mut sim = Sim::working();
    sim.verification("unit/green", VerificationStatus::Passed);
    sim.verification("unit/red", VerificationStatus::Failed);
    sim.record(StepBegan { step: sim.run.value().steps_begun, action: Action::GenerateQc, why: String::new() });
    let (green, red) =
        (verification("unit/green", VerificationStatus::Passed), verification("unit/red", VerificationStatus::Failed));
    let other = |one: &Verification| Verification { script: Digest::of(b"exit 0"), ..one.clone() };
    let is_legal = |event: Event| legal(&sim.run, &event).is_ok();
    assert!(is_legal(found(vec![green.clone(), red.clone()])));
    let anew = Verification { status: VerificationStatus::Pending, ..other(&red) };
    assert!(is_legal(found(vec![green.clone(), anew])), "what fails may be written anew");
    assert!(!is_legal(found(vec![green.clone()])), "a failing check is gone");
    assert!(!is_legal(found(vec![other(&green), red.clone()])), "a passing check is another");
    let put = |one: Verification| Event::from(VerificationPut { verification: Box::new(one), why: String::new() });
    assert!(is_legal(put(red.clone())));
    assert!(!is_legal(put(other(&red))), "a result does not change the script");
    assert!(!is_legal(put(verification("unit/new", VerificationStatus::Passed))), "nobody found it");
}

#[test]
fn steps_and_their_probes_have_their_place() {
    let mut sim = Sim::working();
    let begins = |sim: &Sim, action| {
        legal(&sim.run, &StepBegan { step: sim.run.value().steps_begun, action, why: String::new() }.into())
    };
    assert!(begins(&sim, Action::ExitGate).is_ok());
    sim.run.state = State::CheckHalting;
    assert!(begins(&sim, Action::ExitGate).is_err(), "nothing is passed while the result is measured");
    sim.run.state = State::SpawnSubagent;
    let probe = |sim: &Sim, step| {
        let finished =
            ProbeFinished { phase: Phase::Step(step), probe: Probe::Verification("x".into()), result: result(true) };
        legal(&sim.run, &finished.into())
    };
    let step = sim.run.value().steps_begun;
    assert!(probe(&sim, step).is_err(), "the step is not open");
    sim.record(StepBegan { step, action: Action::RunQc, why: String::new() });
    assert!(probe(&sim, step).is_ok() && probe(&sim, step - 1).is_err());
}
