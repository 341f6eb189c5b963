//! What an operator sees, at the sizes that matter.

use super::*;
use crate::console::moment::{Moment, agent_at_work, asked, assert_harmless, rate_limited, sizes};
use crate::console::sample::{Sample, scene, screen};
use crate::console::theme::{Glyphs, Theme};
use crate::machine::event::{RunHalted, Signal};
use crate::machine::state::State;
use crate::model::purpose::Purpose;
use crate::model::stop::{ExitStatus, StopReason};
use crate::model::value::{Action as ValueAction, Gate};
use crate::playbook::value::event::StepBegan;
use crate::playbook::value::testing::{Sim, started};

fn pane(moment: &Moment) -> Overview {
    Overview { recent: moment.recent.clone(), ..Overview::new() }
}

fn drawn(pane: &Overview, moment: &Moment, width: u16, height: u16, theme: &Theme) -> String {
    screen(width, height, |frame| pane.view(frame, frame.area(), &scene(&moment.run, theme)))
}

fn working() -> Moment {
    let sample = Sample::demo();
    Moment::after(&sample, sample.first("tool.intended", 215))
}

fn ended() -> Moment {
    let sample = Sample::demo();
    Moment::after(&sample, sample.events.len())
}

fn stopped() -> Moment {
    working().then(RunHalted {
        status: ExitStatus::ExitBlocked,
        stop_reason: StopReason::BackpressureSignal,
        forbidden_state: None,
        last_state: State::SpawnSubagent,
        detail: "scratch/STOP exists".into(),
        exhausted: None,
        signal: Some(Signal::StopFile),
    })
}

#[test]
fn working_screens() {
    let moment = working();
    insta::assert_snapshot!(drawn(&pane(&moment), &moment, 80, 20, &Theme::dark()));
    insta::assert_snapshot!(drawn(&pane(&moment), &moment, 120, 36, &Theme::dark()));
    let ascii = Theme::plain().with_glyphs(Glyphs::ASCII);
    insta::assert_snapshot!(drawn(&pane(&moment), &moment, 80, 20, &ascii));
    insta::assert_snapshot!(drawn(&pane(&moment), &moment, 40, 8, &Theme::dark()));
    insta::assert_snapshot!(drawn(&pane(&moment), &moment, 200, 56, &Theme::dark()));
}

#[test]
fn ended_screens() {
    let moment = ended();
    insta::assert_snapshot!(drawn(&pane(&moment), &moment, 80, 20, &Theme::dark()));
    insta::assert_snapshot!(drawn(&pane(&moment), &moment, 120, 36, &Theme::dark()));
    let moment = stopped();
    insta::assert_snapshot!(drawn(&pane(&moment), &moment, 80, 20, &Theme::dark()));
}

#[test]
fn waiting_screens() {
    let moment = asked();
    insta::assert_snapshot!(drawn(&pane(&moment), &moment, 80, 20, &Theme::dark()));
    let moment = rate_limited();
    insta::assert_snapshot!(drawn(&pane(&moment), &moment, 80, 20, &Theme::dark()));
    let sample = Sample::demo();
    let moment = Moment::after(&sample, 1);
    insta::assert_snapshot!(drawn(&pane(&moment), &moment, 80, 20, &Theme::dark()));
}

#[test]
fn the_cursor_moves_over_the_chart_and_follows_at_the_end() {
    let moment = ended();
    let theme = Theme::plain();
    let scene = scene(&moment.run, &theme);
    let mut pane = pane(&moment);
    let title = |pane: &Overview| drawn(pane, &moment, 120, 36, &theme);
    assert!(title(&pane).contains("it3 residual 0 ↓ shrinking"));
    pane.act(Action::Left, &scene);
    assert!(title(&pane).contains("it2 residual 2 ↓ shrinking"));
    for _ in 0..9 {
        pane.act(Action::Left, &scene);
    }
    assert!(title(&pane).contains("baseline residual 5"));
    for _ in 0..9 {
        pane.act(Action::Right, &scene);
    }
    assert_eq!(pane.cursor, None, "it follows again");
    assert!(title(&pane).contains("linear"));
    pane.act(Action::ToggleScale, &scene);
    assert!(title(&pane).contains("log") && !title(&pane).contains("linear"));
    let copied = pane.act(Action::Copy, &scene);
    assert_eq!(copied, [Cmd::Copy { what: "residual", text: "it3 residual 0 ↓".to_owned() }]);
}

#[test]
fn advice_names_the_operators_own_keys() {
    let moment = asked();
    let mut pane = pane(&moment);
    assert!(drawn(&pane, &moment, 80, 20, &Theme::plain()).contains("i inbox;"));
    pane.set_keys(&|action| if action == Action::OpenInbox { "F9".to_owned() } else { default_key(action) });
    assert!(drawn(&pane, &moment, 80, 20, &Theme::plain()).contains("F9 inbox;"));
}

#[test]
fn the_verdict_never_hides_the_next_action() {
    for (width, height) in [(80, 20), (60, 14), (120, 36), (40, 10)] {
        let text = drawn(&pane(&stopped()), &stopped(), width, height, &Theme::plain());
        assert!(text.contains("BLOCKED") && text.contains("next"), "{width}x{height}:\n{text}");
    }
}

#[test]
fn a_run_that_only_began_says_what_is_not_known_yet() {
    let sample = Sample::demo();
    let moment = Moment::after(&sample, 1);
    let text = drawn(&pane(&moment), &moment, 120, 36, &Theme::plain());
    for part in ["not measured yet", "no iteration is scored yet", "no forecast before"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn no_size_is_too_small_or_too_large() {
    let moments = [working(), ended(), asked(), agent_at_work()];
    for (width, height) in sizes() {
        for moment in &moments {
            drawn(&pane(moment), moment, width, height, &Theme::dark());
        }
    }
}

#[test]
fn every_moment_of_a_run_can_be_seen() {
    let sample = Sample::demo();
    for count in (1..=sample.events.len()).step_by(6) {
        let moment = Moment::after(&sample, count);
        let text = drawn(&pane(&moment), &moment, 80, 20, &Theme::dark());
        assert!(text.contains(&format!("Machine {}", moment.run.state)), "{count}:\n{text}");
    }
}

#[test]
fn hostile_text_reaches_no_cell() {
    let mut moment = rate_limited();
    let hostile = "\u{1b}]52;c;aGk=\u{7}\u{9b}2J\r\u{202e}evil";
    moment.run.started.declaration.goal = Some(hostile.to_owned());
    moment.run.started.declaration.name = Some(hostile.to_owned());
    for iteration in &mut moment.run.done {
        iteration.glow.as_mut().unwrap().because[0] = hostile.to_owned();
    }
    assert_harmless(&drawn(&pane(&moment), &moment, 120, 36, &Theme::dark()));
    let mut stopped = stopped();
    stopped.run.halt.as_mut().unwrap().detail = hostile.to_owned();
    assert_harmless(&drawn(&pane(&stopped), &stopped, 120, 36, &Theme::dark()));
}

#[test]
fn spec_one_says_that_it_has_no_glow() {
    let mut moment = agent_at_work();
    moment.run.started.declaration.spec = Some(crate::model::learnings::SpecVersion::V1);
    moment.run.done.iter_mut().for_each(|iteration| iteration.glow = None);
    assert!(drawn(&pane(&moment), &moment, 80, 20, &Theme::plain()).contains("spec 1.0 has no GLOW"));
    assert!(drawn(&pane(&moment), &moment, 40, 9, &Theme::plain()).contains("spec 1.0 has no GLOW"));
}

#[test]
fn a_value_run_names_its_gate_its_step_and_its_agent() {
    let theme = Theme::plain();
    let draw = |sim: &Sim| screen(120, 40, |frame| Overview::new().view(frame, frame.area(), &scene(&sim.run, &theme)));
    let mut sim = Sim::preparing();
    sim.record(StepBegan { step: 0, action: ValueAction::Gate { gate: Gate::VisionValidated }, why: String::new() });
    let text = draw(&sim);
    assert!(text.contains("DREAM_GOAL [gate 2 of 16: vision refined]"), "{text}");
    assert!(text.contains("1 - value score, linear"), "{text}");
    sim.record(started(&sim.run, Purpose::VisionExtract, None));
    let text = draw(&sim);
    assert!(text.contains("reasoner: extract the vision [gate 2 of 16] "), "{text}");

    let mut sim = Sim::working();
    let (step, action) = (sim.run.value().steps_begun, ValueAction::Execute { task: "T1".into() });
    sim.record(StepBegan { step, action, why: String::new() });
    assert!(draw(&sim).contains("SPAWN_SUBAGENT [EXECUTE T1]"), "{}", draw(&sim));
    sim.record(started(&sim.run, Purpose::Execute, Some("T1\u{1b}[2J")));
    let text = draw(&sim);
    assert!(text.contains("builder: execute T1") && !text.contains("[EXECUTE"), "{text}");
    assert_harmless(&text);
}
