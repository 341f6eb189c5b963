//! Statuses, proof, and what the pane looks like.

use super::*;
use crate::console::moment::{assert_harmless, sizes};
use crate::console::sample::{Sample, scene, screen};
use crate::console::theme::Glyphs;
use crate::machine::event::GuardsTouched;
use crate::machine::run::RunState;
use crate::model::plan_row::Since;
use rows::rows;

fn midway() -> RunState {
    let sample = Sample::demo();
    sample.after(sample.first("iteration.began", 150))
}

fn drawn(plan: &Plan, run: &RunState, width: u16, height: u16, theme: &Theme) -> String {
    screen(width, height, |frame| plan.view(frame, frame.area(), &scene(run, theme)))
}

fn status(run: &RunState, id: &str) -> RowStatus {
    rows(run).into_iter().find(|item| item.id.as_str() == id).unwrap().status
}

#[test]
fn screens() {
    let mut plan = Plan::new();
    insta::assert_snapshot!(drawn(&plan, &midway(), 80, 20, &Theme::dark()));
    plan.cursor.set(5);
    insta::assert_snapshot!(drawn(&plan, &midway(), 120, 36, &Theme::dark()));
    insta::assert_snapshot!(drawn(&plan, &midway(), 80, 20, &Theme::plain().with_glyphs(Glyphs::ASCII)));
    insta::assert_snapshot!(drawn(&plan, &midway(), 40, 9, &Theme::dark()));
}

#[test]
fn each_status_comes_from_facts() {
    let sample = Sample::demo();
    let fresh = sample.after(3);
    assert_eq!(status(&fresh, "lowercase"), RowStatus::NotJudged);
    let baseline = sample.after(sample.first("plan.written", 0));
    assert_eq!(
        (status(&baseline, "lowercase"), status(&baseline, "documented")),
        (RowStatus::NotMet, RowStatus::NotJudged)
    );
    let ended = sample.ended();
    assert!(rows(&ended).iter().all(|item| item.status == RowStatus::Met && item.proof.is_some()));
}

#[test]
fn green_with_changed_guards_is_not_accepted() {
    let sample = Sample::demo();
    let mut run = sample.ended();
    let iteration = run.current.as_mut().unwrap();
    let touched = GuardsTouched { script: Vec::new(), others: vec!["tests/a.rs".into()] };
    iteration.artifacts.as_mut().unwrap().guards_touched.insert("trim".into(), touched);
    let findings = &mut iteration.certificate.as_mut().unwrap().acceptance_criteria_checklist;
    let finding = findings.iter_mut().find(|finding| finding.id == "trim").unwrap();
    finding.met = false;
    finding.why = "not accepted: tests/a.rs changed, which guards it".into();
    assert_eq!(status(&run, "trim"), RowStatus::NotAccepted);
    assert_eq!(status(&run, "empty"), RowStatus::Met);
    let mut plan = Plan::new();
    plan.cursor.set(3);
    let text = drawn(&plan, &run, 80, 20, &Theme::plain());
    assert!(text.contains("! not accepted") && text.contains("tests/a.rs changed"), "{text}");
}

#[test]
fn since_is_the_beginning_of_the_latest_row() {
    let ended = Sample::demo().ended();
    let since: Vec<_> = rows(&ended).into_iter().map(|item| (item.id.to_string(), item.since.unwrap())).collect();
    let of = |id: &str| since.iter().find(|(name, _)| name == id).unwrap().1;
    assert_eq!(of("trim"), Since::Iteration(3));
    assert_eq!(of("spaces"), Since::Iteration(2));
}

#[test]
fn keys_move_search_copy_and_open_the_proof() {
    let run = Sample::demo().ended();
    let theme = Theme::plain();
    let scene = scene(&run, &theme);
    let mut plan = Plan::new();
    plan.search("DASH", &scene);
    let at = |plan: &Plan| rows(&run)[plan.cursor.at(6)].id.to_string();
    assert_eq!(at(&plan), "spaces");
    plan.act(Action::NextMatch, &scene);
    assert_eq!(at(&plan), "trim");
    let opened = plan.act(Action::Select, &scene);
    assert_eq!(opened, [Cmd::OpenFile("evidence/loop/iter_3/checks/trim.txt".into())]);
    let copied = plan.act(Action::Copy, &scene);
    let [Cmd::Copy { text, .. }] = copied.as_slice() else { panic!("{copied:?}") };
    assert!(text.starts_with("trim: Blanks at the ends") && text.contains("#"), "{text}");
    plan.act(Action::Bottom, &scene);
    assert_eq!(at(&plan), "documented");
}

#[test]
fn no_size_is_too_small_or_too_large() {
    let run = midway();
    for (width, height) in sizes() {
        drawn(&Plan::new(), &run, width, height, &Theme::dark());
    }
}

#[test]
fn hostile_text_reaches_no_cell() {
    let mut run = midway();
    for criterion in &mut run.criteria {
        criterion.text = "\u{1b}[2J\u{9d}0;title\u{7}\u{202e}".to_owned();
    }
    assert_harmless(&drawn(&Plan::new(), &run, 80, 20, &Theme::dark()));
}
