//! The gates, each with its paths; and that a run folded from any part of its journal goes on at the same place.

mod documents;
mod plan;
mod prd;
mod vision;

use crate::machine::event::{CallEvent, GitEvent, OperatorEvent, RunEvent};
use crate::playbook::value::event::{Document, DocumentsRead, StepBegan, StepFinished, TaskPut, ValueEvent};
use serde_json::json;

use crate::machine::event::*;
use crate::machine::step::{self, Input};
use crate::machine::todo::{Effect, Todo};
use crate::model::budget::{Dimension, Exhausted};
use crate::model::decision::Patience;
use crate::model::digest::Digest;
use crate::model::purpose::{Purpose, Tool};
use crate::model::report::Report;
use crate::model::stop::{ExitStatus, StopReason};
use crate::model::value::tools::Structured;
use crate::model::value::{Action, Gate, Outcome, Task};
use crate::playbook::value::testing::{LOOP, Sim, report, task};

const VISION: &str = "People are greeted by name.";
const PRD: &str = "A program that greets.";

/// A run at a gate, the ones before it passed.
struct At {
    text: String,
    patience: Patience,
    sim: Sim,
    /// Where the gate's own events begin.
    from: usize,
}

fn at(gate: Gate) -> At {
    at_with(gate, "")
}

/// The same with more lines of loop.yaml.
fn at_with(gate: Gate, more: &str) -> At {
    at_after(gate, more, documents(VISION, PRD), vec![task("T1")])
}

/// The same with these documents and this plan.
fn at_after(gate: Gate, more: &str, read: DocumentsRead, tasks: Vec<Task>) -> At {
    let (text, patience) = (format!("{LOOP}{more}\n"), Patience::WAIT);
    let mut sim = Sim::declared(&text, patience);
    for earlier in Gate::ALL.into_iter().take_while(|earlier| *earlier < gate) {
        let step = sim.run.value().steps_begun;
        sim.record(StepBegan { step, action: Action::Gate { gate: earlier }, why: String::new() });
        if earlier == Gate::Inputs {
            sim.record(read.clone());
        }
        for task in tasks.iter().filter(|_| earlier == Gate::PlanGenerated) {
            sim.record(TaskPut { task: Box::new(task.clone()), why: String::new() });
        }
        sim.record(StepFinished { step, outcome: Outcome::Passed, detail: String::new() });
    }
    let from = sim.events.len();
    At { text, patience, sim, from }
}

fn document(path: &str, text: &str) -> Document {
    let bytes = text.len() as u64;
    Document { path: path.to_owned(), text: Some(Digest::of(text.as_bytes())), bytes, problem: None }
}

fn documents(vision: &str, prd: &str) -> DocumentsRead {
    DocumentsRead { vision: document("VISION.md", vision), prd: document("PRD.md", prd) }
}

fn missing(path: &str) -> Document {
    Document { path: path.to_owned(), text: None, bytes: 0, problem: Some(format!("{path} is not there")) }
}

fn prepared(problem: Option<&str>) -> GitFinished {
    let facts = GitFacts { branch: Some("nightloop/x".into()), ..GitFacts::default() };
    GitFinished { operation: GitOperation::Prepare, facts, problem: problem.map(str::to_owned) }
}

impl At {
    /// The documents are read, as the machine wants.
    #[track_caller]
    fn reads(&mut self, vision: &str, prd: &str) {
        assert_eq!(self.sim.settle(), Todo::Effect(Effect::ReadDocuments));
        self.sim.record(documents(vision, prd));
    }

    /// How the gate ended.
    #[track_caller]
    fn ended(&mut self, gate: Gate) -> (Outcome, String) {
        while self.sim.todo() == Todo::Proceed && self.record_of(gate).is_none() {
            self.sim.proceed();
        }
        let found = self.record_of(gate);
        found.unwrap_or_else(|| panic!("{gate} goes on: {:?}", self.sim.todo()))
    }

    fn record_of(&self, gate: Gate) -> Option<(Outcome, String)> {
        let record = self.sim.run.value().log.last().filter(|record| record.action == Action::Gate { gate })?;
        Some((record.outcome, record.detail.clone()))
    }

    #[track_caller]
    fn passes(&mut self, gate: Gate) -> String {
        let (outcome, detail) = self.ended(gate);
        assert_eq!(outcome, Outcome::Passed, "{detail}");
        assert!(self.sim.run.value().gates.contains(&gate));
        self.comes_back();
        detail
    }

    /// The gate fails, and with it the run.
    #[track_caller]
    fn halts(&mut self, gate: Gate) -> RunHalted {
        let (outcome, detail) = self.ended(gate);
        assert_eq!(outcome, Outcome::Failed, "{detail}");
        assert_eq!(self.sim.settle(), Todo::Finished);
        let halted = self.sim.run.halt.clone().unwrap();
        assert!(halted.detail.contains(&detail) && halted.detail.contains(gate.name()), "{}", halted.detail);
        assert_eq!(halted.status, ExitStatus::ExitNeedInfo);
        self.comes_back();
        halted
    }

    /// The gate is not passed: a person is asked what is to become of it. What the question says.
    #[track_caller]
    fn asks_again(&mut self, gate: Gate) -> String {
        assert_eq!(self.sim.settle(), Todo::AwaitPerson);
        let question = self.sim.run.operator.open().next().unwrap().request.gist();
        assert!(question.starts_with(gate.title()) && question.contains("Answer `retry`"), "{question}");
        assert!(!self.sim.run.value().gates.contains(&gate));
        self.comes_back();
        question
    }

    /// Whatever part of the journal is there: the machine wants just what came next.
    #[track_caller]
    fn comes_back(&self) {
        for cut in self.from..self.sim.events.len() {
            let mut again = Sim::declared(&self.text, self.patience);
            let skip = again.events.len();
            for event in &self.sim.events[skip..cut] {
                again.record(event.clone());
            }
            let next = &self.sim.events[cut];
            let wants = again.todo();
            if let Some(work) = next.work::<ValueEvent>() {
                match work {
                    ValueEvent::DocumentsRead(_) => {
                        assert!(matches!(wants, Todo::Effect(Effect::ReadDocuments | Effect::WriteDocument { .. })));
                    }
                    ValueEvent::PreflightChecked(_) => assert_eq!(wants, Todo::Effect(Effect::CheckPreflight)),
                    ValueEvent::StepBegan(_)
                    | ValueEvent::StepFinished(_)
                    | ValueEvent::RoundKept(_)
                    | ValueEvent::RoundClosed(_)
                    | ValueEvent::EpicPut(_)
                    | ValueEvent::VrcTaken(_) => {
                        assert_eq!(wants, Todo::Proceed, "before {next:?}");
                        let decided = step::step(&again.run, Input::Proceed);
                        assert_eq!(decided.first(), Some(next));
                    }
                    _ => {}
                }
            }
            match next {
                Event::Call(CallEvent::AgentStarted(started)) => {
                    let Todo::StartAgent { purpose, subject, .. } = wants else { panic!("{wants:?} before {next:?}") };
                    assert_eq!((Some(purpose), subject), (started.purpose, started.subject.clone()));
                }
                Event::Git(GitEvent::GitFinished(_)) => assert!(matches!(wants, Todo::Effect(Effect::Git(_)))),
                Event::Operator(OperatorEvent::DecisionAnswered(_)) => {
                    assert!(matches!(wants, Todo::AwaitPerson | Todo::Finished))
                }
                Event::Operator(OperatorEvent::DecisionAsked(_)) | Event::Run(RunEvent::RunHalted(_)) => {
                    assert_eq!(wants, Todo::Proceed, "before {next:?}");
                    let decided = step::step(&again.run, Input::Proceed);
                    assert_eq!(decided.first(), Some(next));
                }
                _ => {}
            }
        }
    }

    /// Plays a session that hands things in which nobody judges here.
    #[track_caller]
    fn session(&mut self, purpose: Purpose, reports: Vec<Structured>, end: AgentEnd) {
        let Todo::StartAgent { purpose: wanted, subject, .. } = self.sim.settle() else {
            panic!("no agent is wanted, but {:?}", self.sim.todo());
        };
        assert_eq!(wanted, purpose);
        let (call, blob) = (self.sim.run.next_call_key(purpose, None), Digest::of(b"blob"));
        self.sim.record(AgentStarted {
            call: call.clone(),
            role: purpose.role(),
            purpose: Some(purpose),
            subject,
            agent: "a".into(),
            backend: "anthropic".into(),
            model: "m".into(),
            system: blob,
            tools: blob,
            message: blob,
            paraphrase: None,
            bounds: None,
        });
        for (number, report) in reports.into_iter().enumerate() {
            let (call, report) = (call.clone(), Report::Value(report));
            self.sim.record(ReportAccepted {
                call,
                id: format!("t{number}"),
                report,
                links: Default::default(),
                sha256: blob,
            });
        }
        self.sim.record(AgentFinished { call, role: purpose.role(), end, handover: None });
    }

    /// An agent that breaks down.
    #[track_caller]
    fn breaks_down(&mut self, purpose: Purpose) {
        let end = AgentEnd::Failed { class: "server".into(), message: "it is down".into() };
        self.session(purpose, Vec::new(), end);
    }

    fn put(&mut self, task: Task) {
        self.sim.settle();
        self.sim.record(TaskPut { task: Box::new(task), why: String::new() });
    }
}

fn notes(purpose: Purpose) -> Vec<Structured> {
    vec![report(Tool::ReportVisionPass, json!({ "notes": format!("what {purpose} saw") }))]
}

/// The verdict on a vision with these issues: (id, HARD or SOFT, category).
fn verdict(verdict: &str, issues: &[(&str, &str, &str)]) -> Vec<Structured> {
    let dimension = if verdict == "PASS" { "ADEQUATE" } else { "WEAK" };
    let issues: Vec<_> = issues
        .iter()
        .map(|(id, severity, category)| {
            json!({ "id": id, "severity": severity, "category": category,
                    "description": "why it may fail", "evidence": "nobody said how" })
        })
        .collect();
    let input = json!({ "verdict": verdict, "reason": "as it is", "strengths": ["it is short"], "issues": issues,
        "dimensions": { "outcome_grounded": "STRONG", "adoption_realistic": "STRONG",
                        "causally_sound": dimension, "failure_aware": "ADEQUATE" } });
    vec![report(Tool::ReportVisionValidation, input)]
}

#[test]
fn every_gate_is_passed_in_its_order_and_then_the_machine_goes_on() {
    let mut at = at(Gate::Inputs);
    at.reads(VISION, PRD);
    assert_eq!(at.sim.settle(), Todo::Effect(Effect::Git(GitOperation::Prepare)));
    at.sim.record(prepared(None));
    for purpose in [Purpose::VisionExtract, Purpose::VisionForces, Purpose::VisionCauses, Purpose::VisionPremortem] {
        at.sim.agent(purpose, notes(purpose));
    }
    at.sim.agent(Purpose::VisionValidate, verdict("PASS", &[]));
    at.sim.agent(Purpose::DiscoverContext, documents::discovery(&[]));
    at.sim.agent(Purpose::PrdCritique, prd::critique("APPROVE"));
    at.put(task("T1"));
    for purpose in [
        Purpose::Plan,
        Purpose::Craap,
        Purpose::Clarity,
        Purpose::Validate,
        Purpose::Connect,
        Purpose::Break,
        Purpose::Prune,
        Purpose::Tidy,
    ] {
        at.sim.agent(purpose, Vec::new());
    }
    at.sim.agent(Purpose::VrcFull, plan::vrc("0.1"));
    assert_eq!(at.sim.settle(), Todo::Effect(Effect::CheckPreflight));
    at.sim.record(plan::preflight(&[]));
    assert_eq!(at.sim.settle(), Todo::TakeTree(TreePurpose::Baseline));
    let passed: Vec<_> = at.sim.run.value().log.iter().map(|record| (record.action.clone(), record.outcome)).collect();
    assert_eq!(passed, Gate::ALL.map(|gate| (Action::Gate { gate }, Outcome::Passed)));
    at.comes_back();
}

#[test]
fn a_limit_in_a_gate_ends_the_run_and_begins_nothing() {
    let mut at = at(Gate::VisionValidated);
    at.sim.agent(Purpose::VisionExtract, notes(Purpose::VisionExtract));
    let dimension = Dimension::TotalToolCalls;
    let limit = at.sim.run.limits.of(dimension).unwrap();
    let exhausted = Exhausted { dimension, observed: limit.clone(), limit };
    at.sim.record(BudgetCut { exhausted: exhausted.clone() });
    assert_eq!(at.sim.settle(), Todo::Finished);
    let halted = at.sim.run.halt.clone().unwrap();
    assert_eq!((halted.status, halted.exhausted), (ExitStatus::ExitBudgetExceeded, Some(exhausted)));
    assert!(!at.sim.run.value().gates.contains(&Gate::VisionValidated));
    at.comes_back();
}

#[test]
fn without_anybody_to_ask_the_run_stops_at_the_question_and_goes_on_after_the_answer() {
    let mut at = at(Gate::VisionValidated);
    vision::analysed(&mut at, verdict("NEEDS_REVISION", &[("V1", "SOFT", "weak_evidence")]));
    assert_eq!(at.sim.settle(), Todo::AwaitPerson);
    at.sim.record(BackpressureSeen { signal: Signal::DecisionNeeded, detail: "d1".into() });
    assert_eq!(at.sim.settle(), Todo::Finished);
    assert_eq!(at.sim.run.halt.as_ref().unwrap().stop_reason, StopReason::BackpressureSignal);
    at.sim.answer(crate::model::decision::Answer::Acknowledge);
    at.sim.record(RunResumed {
        engine_version: "0".into(),
        reducer_version: REDUCER_VERSION,
        attempt: 1,
        torn_bytes: 0,
        torn_sha256: None,
        patience: Patience::STOP,
        raised: Vec::new(),
        end: None,
    });
    let calls = at.sim.run.value().step.as_ref().unwrap().calls.len();
    assert_eq!(calls, 5);
    at.passes(Gate::VisionValidated);
    assert_eq!(at.sim.run.value().vision.consensus.as_deref(), Some("acknowledged"));
}

#[test]
fn texts_are_bounded_at_a_character() {
    assert_eq!(super::bounded("äöü", 6), "äöü");
    assert_eq!(super::bounded("äöü€", 6), "ä…");
    assert_eq!(super::list(&["a".into(), "b".into()]), "1) a; 2) b");
}
