//! Tests of what is read off the run about services, and of which declarations are taken.

use serde_json::json;

use crate::machine::event::Phase;
use crate::machine::todo::{Effect, Todo};
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::tools::{ManageService, Service, ServiceAction};
use crate::model::value::{Action, TaskStatus};
use crate::playbook::value::actions::play::*;
use crate::playbook::value::event::{ServiceEnded, ServiceHealth, ServiceStarted, ServicesChecked, ValueEvent};
use crate::playbook::value::legal;
use crate::playbook::value::testing::*;

use super::*;

fn web(file: &str) -> Service {
    serde_json::from_value(json!({"name": "web", "health_type": "http", "start": ["python3", file],
        "health_url": "http://127.0.0.1:8080/"}))
    .unwrap()
}

fn put(service: Service) -> ManageService {
    ManageService { action: ServiceAction::Put, reason: "r".into(), service: Some(service), name: None }
}

/// At work on T1, with a service that an agent declared.
fn building() -> Sim {
    let mut sim = Sim::working();
    sim.run.value_mut().declared.push(web("a.py"));
    sim.task("T1", TaskStatus::Pending, &[]);
    begin(&mut sim, Action::Execute { task: "T1".into() });
    sim
}

fn comes_up(sim: &mut Sim, file: &str, start: u32) {
    sim.record(ServiceStarted { service: Box::new(web(file)), start, why: String::new() });
    seen(sim, true);
}

fn seen(sim: &mut Sim, healthy: bool) {
    let one = ServiceHealth { name: "web".into(), healthy, detail: String::new(), log: String::new() };
    sim.record(ServicesChecked { services: vec![one] });
}

#[test]
fn a_builder_finds_it_up_and_checks_find_it_started_anew() {
    let mut sim = building();
    assert_eq!(advance(&mut sim), Some(Todo::Effect(Effect::CheckServices)));
    comes_up(&mut sim, "a.py", 0);
    assert!(is_current(&sim.run, &web("a.py")));
    let complete = json!({"task_id": "T1", "files_created": [], "files_modified": []});
    sim.agent(Purpose::Execute, vec![report(Tool::ReportTaskComplete, complete)]);
    assert!(!is_current(&sim.run, &web("a.py")), "its files are other ones now");
    assert_eq!(advance(&mut sim), Some(Todo::Effect(Effect::CheckServices)));
    sim.record(ServiceEnded { name: "web".into(), how: "ended by the engine".into(), asked: true, log: None });
    comes_up(&mut sim, "a.py", 1);
    assert!(is_current(&sim.run, &web("a.py")) && !is_current(&sim.run, &web("b.py")));
    assert!(ends(&mut sim).1.contains("T1 is done"));
}

#[test]
fn one_that_was_never_up_is_mended_once_nothing_is_left_to_build() {
    let mut sim = building();
    sim.task("T2", TaskStatus::Pending, &["T1"]);
    sim.record(ServiceStarted { service: Box::new(web("a.py")), start: 0, why: String::new() });
    sim.record(ServiceEnded { name: "web".into(), how: "it ended".into(), asked: false, log: None });
    seen(&mut sim, false);
    assert!(!is_to_be_mended(&sim.run, "web") && down(&sim.run) == Some("web"));
    for task in &mut sim.run.value_mut().tasks {
        task.status = TaskStatus::Done;
    }
    assert!(is_to_be_mended(&sim.run, "web"));
    assert!(is_to_be_mended(&sim.run, "of somebody else"));
}

#[test]
fn only_what_an_engine_could_have_done_is_legal() {
    let sim = building();
    let start = |file: &str, start| ServiceStarted { service: Box::new(web(file)), start, why: String::new() };
    let end = ServiceEnded { name: "web".into(), how: String::new(), asked: true, log: None };
    let legal = |sim: &Sim, event: ValueEvent| legal::legal(&sim.run, &event);
    assert!(legal(&sim, ValueEvent::ServiceStarted(start("a.py", 0))).is_ok());
    assert!(legal(&sim, ValueEvent::ServiceStarted(start("b.py", 0))).unwrap_err().contains("declared"));
    assert!(legal(&sim, ValueEvent::ServiceStarted(start("a.py", 1))).unwrap_err().contains("start 1"));
    assert!(legal(&sim, ValueEvent::ServiceEnded(end)).unwrap_err().contains("does not run"));
    let mut up = building();
    up.record(start("a.py", 0));
    assert!(legal(&up, ValueEvent::ServiceStarted(start("a.py", 1))).unwrap_err().contains("runs already"));
    let between = Sim::working();
    assert!(legal(&between, ValueEvent::ServiceStarted(start("a.py", 0))).unwrap_err().contains("no step"));
}

#[test]
fn agents_declare_but_neither_weaken_nor_overrule_a_person() {
    let mut sim = building();
    let listens: Service =
        serde_json::from_value(json!({"name": "web", "health_type": "tcp", "port": 8080, "start": ["x"]})).unwrap();
    assert!(admit(&sim.run, &put(web("b.py"))).is_ok());
    assert!(admit(&sim.run, &put(listens)).unwrap_err().contains("show less"));
    let gone = |name: &str| ManageService {
        action: ServiceAction::Remove,
        reason: "r".into(),
        service: None,
        name: Some(name.into()),
    };
    assert!(admit(&sim.run, &gone("web")).unwrap_err().contains("make it work"), "not by a builder");
    assert!(admit(&sim.run, &gone("other")).unwrap_err().contains("no service"));
    let with = "value: { services: [{ name: web, health_type: http, start: [x], health_url: 'http://127.0.0.1:1/' }] }";
    let owned = Sim::working_with(with);
    assert!(admit(&owned.run, &put(web("b.py"))).unwrap_err().contains("loop.yaml"));
    assert!(admit(&owned.run, &gone("web")).unwrap_err().contains("loop.yaml"));
    manage(sim.run.value_mut(), &put(web("b.py")));
    assert_eq!(super::started(&sim.run).collect::<Vec<_>>(), [&web("b.py")]);
    manage(sim.run.value_mut(), &gone("web"));
    assert_eq!(declared(&sim.run).count(), 0);
}

#[test]
fn outside_of_steps_they_are_looked_at_once_for_each_round_of_checks() {
    let mut sim = building();
    let wanted = Some(Todo::Effect(Effect::CheckServices));
    assert_eq!(before_checks(&sim.run, Phase::Iteration), wanted);
    sim.run.value_mut().services_for = Some((0, Phase::Iteration));
    assert_eq!(before_checks(&sim.run, Phase::Iteration), None);
    assert_eq!(before_checks(&sim.run, Phase::Replay(1)), wanted);
    assert_eq!(before_checks(&Sim::working().run, Phase::Replay(1)), None, "without services nothing is looked at");
    // After a crash nothing runs any more.
    comes_up(&mut sim, "a.py", 0);
    engine_ended(sim.run.value_mut());
    assert_eq!(before_checks(&sim.run, Phase::Iteration), wanted);
    assert!(!is_current(&sim.run, &web("a.py")));
}
