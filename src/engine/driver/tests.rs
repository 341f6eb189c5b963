//! The effects on a real driver: a journal on disk, files in a workspace, processes.

use crate::playbook::value::event::{StepBegan, StepFinished, TaskPut};
use std::path::Path;

use tokio::sync::mpsc;

use super::*;
use crate::agent::rehearsal::Speed;
use crate::engine::backends::Agents;
use crate::engine::command::Order;
use crate::engine::declaration;
use crate::engine::hub::Hub;
use crate::engine::launch_options::LaunchOptions;
use crate::engine::observer::Observer;
use crate::engine::places::StateRoot;
use crate::engine::session::{Attendance, Session};
use crate::engine::signals::Signals;
use crate::engine::tools;
use crate::machine::event::*;
use crate::machine::fold::Stamped;
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::model::digest::Digest;
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::{Action, Gate, Outcome, Task, TaskSource, TaskStatus};

const LOOP: &str = "playbook: value\ngoal: Greet people.\nspec: \"1.0\"\nhalting_certificates: [EXACT]\n\
                    sandbox: { mode: off }\nagents:\n  a: { backend: command, command: [\"true\"] }\n";

/// Remembers what happened to probes, in order.
#[derive(Default)]
struct Heard(Vec<String>);

impl Observer for Heard {
    fn event(&mut self, _: &RunState, stamped: &Stamped) {
        match &stamped.event {
            Event::Iteration(IterationEvent::ProbeStarted(started)) => {
                self.0.push(format!("started {}", started.probe.name()))
            }
            Event::Iteration(IterationEvent::ProbeFinished(finished)) => {
                self.0.push(format!("{} {}", finished.probe.name(), finished.result.end.describe()));
            }
            _ => {}
        }
    }
}

struct Place {
    dir: tempfile::TempDir,
    _orders: mpsc::Sender<Order>,
}

impl Place {
    fn workspace(&self) -> std::path::PathBuf {
        self.dir.path().join("ws")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.workspace().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.workspace().join(path)).unwrap()
    }
}

async fn driver<'a>(more: &str, heard: &'a mut Heard) -> (Driver<'a>, Place) {
    let dir = tempfile::tempdir().unwrap();
    let workspace = dir.path().join("ws");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(workspace.join("loop.yaml"), format!("{LOOP}{more}")).unwrap();
    let declaration = declaration::read_declaration(&workspace.join("loop.yaml")).unwrap();
    let root = StateRoot::at(dir.path().join("state"));
    let agents = Agents::prepare(&declaration.file, &workspace, root.path(), &LaunchOptions::from(Speed::Instant))
        .await
        .unwrap();
    let session = Session::create(&root, &workspace, declaration, Attendance::Watched).unwrap();
    let signals = Signals::listen(Path::new(&workspace)).unwrap();
    let (sender, orders) = mpsc::channel(1);
    let driver = Driver::new(session, agents, signals, Ports { hub: Hub::default(), orders }, heard).unwrap();
    (driver, Place { dir, _orders: sender })
}

async fn begin(driver: &mut Driver<'_>, action: Action) {
    let step = driver.cx.state().value().steps_begun;
    driver.cx.record(StepBegan { step, action, why: String::new() }).await.unwrap();
}

async fn enter(driver: &mut Driver<'_>, states: &[State]) {
    for to in states {
        let from = driver.cx.state().state;
        driver.cx.record(StateEntered { from, to: *to, why: String::new() }).await.unwrap();
    }
}

/// In the first iteration, with an open step that runs scripts.
async fn working(driver: &mut Driver<'_>) {
    enter(driver, &[State::IntakeGoal, State::NullCheck, State::DreamGoal, State::SpawnSubagent]).await;
    iteration::begin(&mut driver.cx, &mut driver.evidence).await.unwrap();
    begin(driver, Action::RunQc).await;
}

fn script(id: &str) -> Probe {
    Probe::Verification(format!("unit/unit_{id}"))
}

#[tokio::test]
async fn documents_are_read_written_and_briefed_before_the_first_iteration() {
    let mut heard = Heard::default();
    let (mut driver, place) = driver("", &mut heard).await;
    place.write("VISION.md", "Everyone is greeted.\n");
    enter(&mut driver, &[State::IntakeGoal, State::NullCheck, State::DreamGoal]).await;
    begin(&mut driver, Action::Gate { gate: Gate::Inputs }).await;
    driver.make(Effect::ReadDocuments).await.unwrap();
    let read = driver.cx.state().value().documents.clone().unwrap();
    assert_eq!(driver.cx.blobs().get(&read.vision.text.unwrap()).unwrap(), b"Everyone is greeted.\n");
    assert!(read.prd.problem.unwrap().starts_with("PRD.md is not there: write down"));

    let text = driver.cx.blobs().put(b"R1: it greets.\n").unwrap();
    driver.make(Effect::WriteDocument { path: "PRD.md".to_owned(), text }).await.unwrap();
    let read = driver.cx.state().value().documents.clone().unwrap();
    assert_eq!((read.prd.text, read.prd.problem), (Some(text), None));
    assert_eq!(place.read("PRD.md"), "R1: it greets.\n");
    assert!(driver.make(Effect::WriteDocument { path: "loop.yaml".to_owned(), text }).await.is_err());

    let message = value::message(&driver.cx, Purpose::Plan, None).unwrap();
    assert!(message.starts_with("CAPSULE\n{") && message.contains("\"subagent_role\": \"reasoner\""), "{message}");
    assert!(message.contains("\nCALL {\"nth\":1,\"purpose\":\"plan\"}\n"), "{message}");
    // Every call has its number, counted for each purpose and subject.
    for (purpose, subject) in [(Purpose::Plan, None), (Purpose::Execute, Some("T1".to_owned()))] {
        let call = driver.cx.state().next_call_key(purpose, None);
        let role = purpose.role();
        let started = AgentStarted {
            call: call.clone(),
            role,
            purpose: Some(purpose),
            subject,
            agent: "a".to_owned(),
            backend: "command".to_owned(),
            model: "m".to_owned(),
            system: text,
            tools: text,
            message: text,
            paraphrase: None,
            bounds: None,
        };
        driver.cx.record(started).await.unwrap();
        driver
            .cx
            .record(AgentFinished { call, role, end: AgentEnd::NoReport, handover: None, moved: None })
            .await
            .unwrap();
    }
    let call = |purpose, subject| value::message(&driver.cx, purpose, subject).unwrap();
    assert!(call(Purpose::Plan, None).contains("\nCALL {\"nth\":2,\"purpose\":\"plan\"}\n"));
    assert!(call(Purpose::Execute, Some("T1")).contains("CALL {\"nth\":2,"));
    assert!(call(Purpose::Execute, Some("T2")).contains("CALL {\"nth\":1,"));

    // Who looks at the result for the first time is not told what others thought of it.
    place.write("AGENTS.md", "The judge before was too harsh.\n");
    for (purpose, told) in [(Purpose::VrcFull, true), (Purpose::ExitGate, false), (Purpose::CriticalEval, false)] {
        assert_eq!(call(purpose, None).contains("too harsh"), told, "{purpose}");
    }

    // A proposed text can be put before a person as a document.
    let proposal = serde_json::json!({"text": "R1: it greets by name.", "note": "names were missing"});
    tools::admit(&driver.cx, Tool::ProposePrd, &proposal).unwrap();
    let kept = Digest::of(b"R1: it greets by name.");
    assert_eq!(driver.cx.blobs().get(&kept).unwrap(), b"R1: it greets by name.");
    let finished = StepFinished { step: 0, outcome: Outcome::Passed, detail: String::new() };
    driver.cx.record(finished).await.unwrap();
}

#[tokio::test]
async fn scripts_run_together_as_they_were_left_and_are_recorded_in_order() {
    let mut heard = Heard::default();
    {
        let (mut driver, place) = driver("", &mut heard).await;
        working(&mut driver).await;
        place.write(".loop/verifications/unit_a.sh", "test -d $TEST_DATA_DIR && echo $PORT");
        place.write(".loop/verifications/unit_b.sh", "exit 1");
        let cheat = "echo exit 0 > .loop/verifications/unit_c.sh; exit 0";
        place.write(".loop/verifications/unit_c.sh", cheat);
        driver.make(Effect::FindVerifications).await.unwrap();
        assert_eq!(driver.cx.state().value().verifications.len(), 3);
        // Somebody makes the failing one pass and takes another away.
        place.write(".loop/verifications/unit_b.sh", "exit 0");
        std::fs::remove_file(place.workspace().join(".loop/verifications/unit_a.sh")).unwrap();
        // An engine that died had announced one already.
        let argv = vec!["sh".to_owned()];
        driver.cx.record(ProbeStarted { phase: Phase::Step(0), probe: script("b"), argv }).await.unwrap();
        driver.make(Effect::RunProbes(vec![script("c"), script("b"), script("a")])).await.unwrap();
        let step = driver.cx.state().value().step.as_ref().unwrap();
        assert_eq!(step.probes[&script("b")].end, ProbeEnd::Exited(1));
        assert_eq!(step.probes[&script("a")].last_line.as_deref(), Some("3102"));
        assert!(step.probes[&script("c")].end.describe().contains("changed while it ran"));
        assert_eq!(place.read(".loop/verifications/unit_b.sh"), "exit 1");
        assert_eq!(place.read(".loop/verifications/unit_c.sh"), cheat);
        // What a builder changes is not taken for the work of the role that looks next.
        place.write(".loop/verifications/unit_b.sh", "exit 0");
        value::restore_scripts(&driver.cx).unwrap();
        driver.make(Effect::FindVerifications).await.unwrap();
        assert_eq!(place.read(".loop/verifications/unit_b.sh"), "exit 1");
    }
    let changed = "did not start: its script was changed while it ran, so what it showed does not count";
    let expected = [
        "started verification unit/unit_b".to_owned(),
        "started verification unit/unit_c".to_owned(),
        "started verification unit/unit_a".to_owned(),
        format!("verification unit/unit_c {changed}"),
        "verification unit/unit_b exit 1".to_owned(),
        "verification unit/unit_a exit 0".to_owned(),
    ];
    assert_eq!(heard.0, expected);
}

#[tokio::test]
async fn a_check_that_the_rules_deny_does_not_run() {
    let mut heard = Heard::default();
    let (mut driver, place) = driver("permissions: { deny: [\"bash(touch *)\"] }\n", &mut heard).await;
    working(&mut driver).await;
    let mut task = Task {
        id: "T1".to_owned(),
        status: TaskStatus::Pending,
        source: TaskSource::Plan,
        description: String::new(),
        value: String::new(),
        acceptance: String::new(),
        prd_section: None,
        dependencies: Vec::new(),
        phase: None,
        epic: None,
        files_expected: Vec::new(),
        check: Some(["touch", "made"].map(str::to_owned).to_vec()),
        blocked_reason: None,
        retries: 0,
        files_created: Vec::new(),
        files_modified: Vec::new(),
        notes: String::new(),
        health_checked: false,
        created_in: 0,
        done_in: None,
        broken_by: None,
        dispute: None,
    };
    driver.cx.record(TaskPut { task: Box::new(task.clone()), why: String::new() }).await.unwrap();
    task.id = "T2".to_owned();
    task.check = Some(["sh", "-c", "test -n \"$PORT\""].map(str::to_owned).to_vec());
    driver.cx.record(TaskPut { task: Box::new(task), why: String::new() }).await.unwrap();
    let probes = ["T1", "T2"].map(|id| Probe::Task(id.to_owned()));
    driver.make(Effect::RunProbes(probes.to_vec())).await.unwrap();
    let step = driver.cx.state().value().step.as_ref().unwrap();
    assert!(step.probes[&probes[0]].end.describe().contains("not permitted: deny"));
    assert!(!place.workspace().join("made").exists());
    assert!(step.probes[&probes[1]].end.passed(), "{:?}", step.probes);
}

/// What stops the run already is the reason that is kept; only to be told to go outweighs it.
#[tokio::test]
async fn a_stop_that_was_decided_is_not_replaced_by_one_that_is_seen_later() {
    let mut heard = Heard::default();
    let (mut driver, _place) = driver("", &mut heard).await;
    enter(&mut driver, &[State::IntakeGoal, State::NullCheck, State::DreamGoal]).await;
    driver.cx.record(BackpressureSeen { signal: Signal::RateLimit, detail: String::new() }).await.unwrap();
    let reason = |driver: &Driver<'_>| driver.cx.state().backpressure.as_ref().map(|seen| seen.signal);
    for (seen, kept) in [(Signal::StopFile, Signal::RateLimit), (Signal::Terminated, Signal::Terminated)] {
        driver.cx.signals.raise(seen, "");
        driver.watch_signals().await.unwrap();
        assert_eq!(reason(&driver), Some(kept), "{seen:?}");
    }
}
