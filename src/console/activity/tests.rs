//! Each thing that can go on has its name, its beginning and its place in the order.

use super::*;
use crate::console::moment::{Moment, agent_at_work, asked, rate_limited, requested};
use crate::console::sample::{Sample, scene};
use crate::console::theme::Theme;
use crate::machine::event::{PauseBegan, PauseRequested};

fn sentence(moment: &Moment) -> String {
    let theme = Theme::plain();
    let scene = scene(&moment.run, &theme);
    let now = now(&scene, &moment.recent);
    format!("{} {}", now.subject(), now.detail(&scene))
}

#[test]
fn each_thing_that_can_go_on_is_named() {
    let sample = Sample::demo();
    let at = |kind: &str, from: usize| sentence(&Moment::after(&sample, sample.first(kind, from)));
    assert_eq!(at("tool.intended", 43), "solver runs bash: sh checks/run.sh lowercase; sh slug.sh 'Hello World'");
    assert_eq!(at("probe.started", 60), "check punctuation sh checks/run.sh punctuation");
    assert_eq!(at("probe.started", 0), "check lowercase (baseline) sh checks/run.sh lowercase");
    assert_eq!(at("llm.requested", 30), "scout waiting for rehearsal-1 to reply, turn 2");
    assert_eq!(at("artifacts.collected", 0), "COLLECT_ARTIFACTS collecting what the agents changed");
    assert!(at("run.halted", 0).starts_with("CONVERGED EXACT: residual 0"));
}

#[test]
fn a_limit_names_its_cause_and_its_end_and_is_harmless() {
    let text = sentence(&rate_limited());
    assert!(text.starts_with("waiting for the model server until "), "{text}");
    assert!(text.contains("9 min left (solver); rate_limited: 5-hour limit reached"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn people_come_before_machines() {
    assert_eq!(sentence(&asked()), "waiting for you: d1 question: Keep the old API?");
    let paused = agent_at_work().then(PauseRequested { by: "ada".into() }).then(PauseBegan {});
    assert!(sentence(&paused).starts_with("paused by ada since "), "{}", sentence(&paused));
}

#[test]
fn an_earlier_moment_does_not_age() {
    let theme = Theme::plain();
    let moment = requested(agent_at_work());
    let live = scene(&moment.run, &theme);
    let past = Scene { live: false, ..live };
    let replay = Link::Replay { playing: false, speed: 1, at: 1, of: 2 };
    for past in [past, Scene { link: &replay, ..live }] {
        assert_eq!(now(&past, &moment.recent).for_millis(&past), 0);
        assert_eq!(elapsed(&past), moment.run.spent.millis);
    }
    assert_eq!(now(&live, &moment.recent).for_millis(&live), 60_000);
}

#[test]
fn time_stands_still_while_a_person_is_waited_for() {
    let theme = Theme::plain();
    let moment = agent_at_work();
    assert_eq!(elapsed(&scene(&moment.run, &theme)), moment.run.spent.millis + 60_000);
    let asked = asked();
    assert_eq!(elapsed(&scene(&asked.run, &theme)), asked.run.spent.millis);
}
