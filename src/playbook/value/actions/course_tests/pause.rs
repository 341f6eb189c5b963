//! INTERACTIVE_PAUSE.

use super::*;
use crate::machine::event::{DecisionAnswered, DecisionSettled, OperatorEvent, RunEvent};
use crate::machine::operator::{Decision, DecisionStatus};
use crate::machine::step::{self, Input};
use crate::model::decision::{Answer, DecisionId, MAX_DECISIONS, Request};
use crate::model::purpose::Purpose;
use crate::model::value::{Outcome, VerificationStatus};
use crate::playbook::value::testing::result;

fn blocked(sim: &mut Sim, id: &str, reason: &str) {
    sim.task(id, TaskStatus::Blocked, &[]);
    sim.run.value_mut().tasks.last_mut().unwrap().blocked_reason = Some(reason.to_owned());
}

fn waiting() -> Sim {
    let mut sim = Sim::working();
    blocked(&mut sim, "T1", "HUMAN_ACTION: get an API key");
    blocked(&mut sim, "T2", "HUMAN_ACTION: get an API key");
    blocked(&mut sim, "T3", "HUMAN_ACTION: sign the contract");
    blocked(&mut sim, "T4", "tried too often");
    sim
}

fn instructions() -> Structured {
    let input = json!({
        "action": "Get a key.", "instructions": "1. Open the account page.\n2. Copy the key.", "blocked_task_id": "T1",
        "verification_command": ["test", "-s", "key.txt"],
    });
    report(Tool::RequestHumanAction, input)
}

fn asked(sim: &Sim) -> &Request {
    &sim.run.operator.open().next().expect("nobody is asked").request
}

#[test]
fn a_pause_holds_until_the_command_passes_and_then_only_what_waited_for_it_goes_on() {
    let mut sim = waiting();
    begin(&mut sim, Action::InteractivePause);
    sim.agent(Purpose::InteractivePause, vec![instructions()]);
    assert_eq!(sim.settle(), Todo::AwaitPerson);
    let Request::HumanAction { instructions, verify, timeout_seconds } = asked(&sim) else { panic!() };
    assert!(instructions.contains("Open the account page"));
    assert_eq!(verify.as_deref().unwrap(), ["test", "-s", "key.txt"]);
    assert_eq!(*timeout_seconds, 30);
    let id = DecisionId(1);
    sim.answer(Answer::Done);
    assert_eq!(sim.todo(), Todo::Settle(id));
    sim.record(DecisionSettled { id, closed: false, check: Some(result(false)), detail: String::new() });
    assert_eq!(sim.todo(), Todo::AwaitPerson, "it is not done yet");
    assert_eq!(status(&sim, "T1"), TaskStatus::Blocked);
    sim.answer(Answer::Done);
    sim.record(DecisionSettled { id, closed: true, check: Some(result(true)), detail: String::new() });
    let before = sim.run.value().no_progress;
    assert_eq!(finish(&mut sim).outcome, Outcome::Neutral);
    assert_eq!(sim.run.value().no_progress, before);
    let after: Vec<_> = ["T1", "T2", "T3", "T4"].map(|id| status(&sim, id)).to_vec();
    use TaskStatus::{Blocked, Pending};
    assert_eq!(after, [Pending, Pending, Blocked, Blocked]);
    assert_eq!(sim.run.value().task("T1").unwrap().blocked_reason, None);
}

#[test]
fn without_instructions_the_reason_itself_is_asked() {
    let mut sim = waiting();
    begin(&mut sim, Action::InteractivePause);
    sim.agent_ends(Purpose::InteractivePause, Vec::new(), failed());
    sim.settle();
    let Request::HumanAction { instructions, verify, .. } = asked(&sim) else { panic!() };
    assert_eq!((instructions.as_str(), verify), ("get an API key", &None));
    sim.answer(Answer::Done);
    finish(&mut sim);
    assert_eq!(status(&sim, "T2"), TaskStatus::Pending);
}

#[test]
fn a_pause_has_a_limit_of_failed_verifications() {
    let mut sim = Sim::working_with("value: { max_pause_checks: 2 }");
    blocked(&mut sim, "T1", "HUMAN_ACTION: get an API key");
    begin(&mut sim, Action::InteractivePause);
    sim.agent(Purpose::InteractivePause, vec![instructions()]);
    sim.settle();
    let id = DecisionId(1);
    let say = |sim: &Sim, answer| {
        let answered = DecisionAnswered { id, answer, note: None, by: "tester".into() };
        let input = Input::Record(Box::new(answered.into()));
        step::step(&sim.run, input).remove(0)
    };
    for _ in 0..2 {
        assert!(matches!(say(&sim, Answer::Done), Event::Operator(OperatorEvent::DecisionAnswered(_))));
        sim.answer(Answer::Done);
        sim.record(DecisionSettled { id, closed: false, check: Some(result(false)), detail: String::new() });
    }
    assert!(matches!(say(&sim, Answer::Done), Event::Run(RunEvent::InputRejected(_))));
    assert!(matches!(say(&sim, Answer::Quit), Event::Operator(OperatorEvent::DecisionAnswered(_))));
}

#[test]
fn where_no_task_waits_a_person_is_asked_for_a_word_and_nothing_more_is_granted() {
    let mut sim = Sim::working();
    sim.task("T1", TaskStatus::Pending, &[]);
    sim.verification("unit/bad", VerificationStatus::Failed);
    begin(&mut sim, Action::InteractivePause);
    assert_eq!(sim.settle(), Todo::AwaitPerson, "no agent is needed for that");
    let Request::Escalation { problem, .. } = asked(&sim) else { panic!() };
    assert!(problem.contains("unit/bad") && problem.contains("T1"), "{problem}");
    let before = sim.run.value().clone();
    sim.answer(Answer::Text("try harder".into()));
    assert_eq!(finish(&mut sim).outcome, Outcome::Neutral);
    assert_eq!((&sim.run.value().tasks, &sim.run.value().verifications), (&before.tasks, &before.verifications));
    assert_eq!(sim.run.operator.queued().count(), 1);
}

#[test]
fn a_run_that_may_ask_no_more_does_not_come_back_to_the_pause() {
    let mut sim = waiting();
    let asked_before = Decision {
        id: DecisionId(1),
        request: Request::Question { question: "?".into(), choices: Vec::new() },
        why: String::new(),
        asked_by: None,
        asked_ts: String::new(),
        status: DecisionStatus::Closed,
        answer: None,
        checks: 0,
        last_check: None,
        detail: String::new(),
    };
    sim.run.operator.decisions = vec![asked_before; MAX_DECISIONS];
    begin(&mut sim, Action::InteractivePause);
    sim.agent(Purpose::InteractivePause, vec![instructions()]);
    assert_eq!(finish(&mut sim).outcome, Outcome::Neutral);
    let first = sim.run.value().task("T1").unwrap();
    assert!(first.status == TaskStatus::Blocked && !first.needs_person(), "{first:?}");
    assert!(sim.run.value().task("T3").unwrap().needs_person());
}

#[test]
fn the_request_that_blocked_the_task_needs_no_other_agent() {
    let mut sim = waiting();
    sim.run.value_mut().tasks[0].blocked_reason = Some("HUMAN_ACTION: Get a key.".into());
    let Structured::RequestHumanAction(of_builder) = instructions() else { panic!() };
    sim.run.value_mut().human_requests.push(of_builder);
    begin(&mut sim, Action::InteractivePause);
    assert_eq!(sim.settle(), Todo::AwaitPerson);
    assert!(matches!(asked(&sim), Request::HumanAction { verify: Some(_), .. }));
    sim.answer(Answer::Done);
    let (id, check) = (DecisionId(1), Some(result(true)));
    sim.record(DecisionSettled { id, closed: true, check, detail: String::new() });
    finish(&mut sim);
    assert_eq!((status(&sim, "T1"), status(&sim, "T2")), (TaskStatus::Pending, TaskStatus::Blocked));
}
