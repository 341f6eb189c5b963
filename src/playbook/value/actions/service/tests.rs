//! Tests of SERVICE_FIX.

use super::super::play::*;
use super::*;
use crate::machine::event::AgentEnd;
use crate::model::value::Action;
use crate::playbook::value::testing::Sim;

fn fixing() -> Sim {
    let mut sim = Sim::working();
    begin(&mut sim, Action::ServiceFix { services: vec!["db".into()] });
    sim
}

#[test]
fn a_healthy_service_is_left_alone() {
    let mut sim = fixing();
    services_are(&mut sim, true);
    assert_eq!(ends(&mut sim).0, Outcome::Neutral);
}

#[test]
fn a_fix_is_tried_once_looked_at_again_and_never_counts() {
    for healthy in [true, false] {
        let mut sim = fixing();
        services_are(&mut sim, false);
        let failed = AgentEnd::Failed { class: "x".into(), message: "y".into() };
        sim.agent_ends(Purpose::ServiceFix, Vec::new(), failed);
        services_are(&mut sim, healthy);
        let (outcome, detail) = ends(&mut sim);
        assert_eq!(outcome, Outcome::Neutral);
        assert_eq!(detail.contains("db"), !healthy, "{detail}");
        assert_eq!(sim.run.value().no_progress, 0);
    }
}
