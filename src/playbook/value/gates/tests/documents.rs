//! Inputs, the size of the vision, context discovery.

use super::*;
use crate::model::decision::{Answer, Request};
use crate::playbook::value::event::{DocumentsRead, EpicStatus};

pub fn discovery(questions: &[&str]) -> Vec<Structured> {
    let input = json!({ "deliverable_type": "software", "project_type": "a program", "codebase_state": "greenfield",
        "value_proofs": ["someone is greeted"], "unresolved_questions": questions });
    vec![report(Tool::ReportDiscovery, input)]
}

fn epics(count: usize, too_large: bool) -> Vec<Structured> {
    let epic = |n| json!({ "title": format!("slice {n}"), "value_statement": "v", "deliverables": ["d"], "completion_criteria": ["c"] });
    let epics: Vec<_> = (0..count).map(epic).collect();
    let decomposition = json!({ "epics": epics, "vision_too_large": too_large, "rationale": "it is so" });
    vec![Structured::ReportEpicDecomposition(serde_json::from_value(decomposition).unwrap())]
}

#[test]
fn what_is_missing_stops_the_run_with_everything_that_is() {
    let mut at = at(Gate::Inputs);
    assert_eq!(at.sim.settle(), Todo::Effect(Effect::ReadDocuments));
    at.sim.record(DocumentsRead { vision: missing("VISION.md"), prd: missing("PRD.md") });
    let halted = at.halts(Gate::Inputs);
    assert_eq!(halted.stop_reason, StopReason::NullInput);
    assert!(halted.detail.contains("1) VISION.md is not there; 2) PRD.md is not there"), "{}", halted.detail);
}

#[test]
fn a_repository_that_is_not_fit_stops_the_run() {
    let mut at = at(Gate::Inputs);
    at.reads(VISION, PRD);
    assert_eq!(at.sim.settle(), Todo::Effect(Effect::Git(GitOperation::Prepare)));
    at.sim.record(prepared(Some("the tree has changes of your own")));
    assert!(at.halts(Gate::Inputs).detail.contains("changes of your own"));
}

#[test]
fn a_short_document_only_warns() {
    let mut at = at(Gate::Inputs);
    at.reads(VISION, &"x".repeat(100));
    assert_eq!(at.sim.settle(), Todo::Effect(Effect::Git(GitOperation::Prepare)));
    at.sim.record(prepared(None));
    let detail = at.passes(Gate::Inputs);
    assert!(detail.contains("warning: VISION.md") && !detail.contains("warning: PRD.md"), "{detail}");
}

const EPICS: &str = "value: { epics: { mode: auto } }";

/// At the classification, with documents of this size together.
fn sized(bytes: usize) -> At {
    let read = documents(&"v".repeat(bytes - 100), &"p".repeat(100));
    at_after(Gate::VisionClassified, EPICS, read, Vec::new())
}

#[test]
fn without_epics_and_for_a_small_vision_nobody_is_called() {
    assert!(at(Gate::VisionClassified).passes(Gate::VisionClassified).contains("not needed"));
    assert!(sized(500).passes(Gate::VisionClassified).contains("single run"));
}

#[test]
fn a_large_vision_is_sliced_and_the_first_slice_begins() {
    let mut at = sized(501);
    at.sim.agent(Purpose::EpicDecompose, epics(3, false));
    at.passes(Gate::VisionClassified);
    let epics: Vec<_> = at.sim.run.value().epics.iter().map(|epic| (epic.epic, epic.status)).collect();
    assert_eq!(epics, [(0, EpicStatus::InProgress), (1, EpicStatus::Pending), (2, EpicStatus::Pending)]);
}

#[test]
fn one_slice_or_no_word_is_a_single_run_and_too_many_are_too_large() {
    let mut one = sized(501);
    one.session(Purpose::EpicDecompose, epics(1, false), AgentEnd::Reported);
    one.passes(Gate::VisionClassified);
    assert!(one.sim.run.value().epics.is_empty());

    let mut silent = sized(501);
    silent.breaks_down(Purpose::EpicDecompose);
    silent.breaks_down(Purpose::EpicDecompose);
    assert!(silent.passes(Gate::VisionClassified).contains("it is down"));

    for (count, too_large) in [(6, false), (2, true)] {
        let mut at = sized(501);
        at.session(Purpose::EpicDecompose, epics(count, too_large), AgentEnd::Reported);
        at.asks_again(Gate::VisionClassified);
    }
}

#[test]
fn questions_are_asked_one_by_one_and_the_answers_are_there() {
    let mut at = at(Gate::ContextDiscovered);
    at.sim.agent(Purpose::DiscoverContext, discovery(&["Which port?", "Which name?"]));
    for (asked, said) in [("Which port?", "80"), ("Which name?", "Ada")] {
        assert_eq!(at.sim.settle(), Todo::AwaitPerson);
        let open = at.sim.run.operator.open().next().unwrap().request.clone();
        assert_eq!(open, Request::Question { question: asked.into(), choices: Vec::new() });
        at.sim.answer(Answer::Text(said.into()));
    }
    at.passes(Gate::ContextDiscovered);
    assert_eq!(at.sim.run.operator.decisions.len(), 2);
}

#[test]
fn no_more_than_ten_questions_are_asked_and_the_rest_is_noted() {
    let mut at = at(Gate::ContextDiscovered);
    let many: Vec<String> = (0..12).map(|n| format!("question {n}?")).collect();
    at.sim.agent(Purpose::DiscoverContext, discovery(&many.iter().map(String::as_str).collect::<Vec<_>>()));
    for _ in 0..10 {
        at.sim.settle();
        at.sim.answer(Answer::Text("so".into()));
    }
    assert!(at.passes(Gate::ContextDiscovered).contains("question 11?"));
}

#[test]
fn without_a_discovery_there_is_no_ground_to_plan_on() {
    let mut at = at(Gate::ContextDiscovered);
    at.sim.agent(Purpose::DiscoverContext, Vec::new());
    at.breaks_down(Purpose::DiscoverContext);
    assert!(at.asks_again(Gate::ContextDiscovered).contains("it is down"));
}
