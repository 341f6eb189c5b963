//! `nightloop demo PLAYBOOK`: whole runs, offline, answered by themselves.

use serde_json::{Value, json};

use crate::support::Bench;

#[test]
fn the_demo_ends_with_the_exit_gate_passed() {
    let bench = Bench::new();
    let place = bench.workspace.join("demo");
    let ended = bench.nightloop(&["demo", "value", "--headless", "--into", place.to_str().unwrap()]).expect(0);
    assert!(ended.stdout.contains("EXIT_CONVERGED") && ended.stdout.contains("verified"), "{}", ended.stdout);
    let report = std::fs::read_to_string(place.join("DELIVERY_REPORT.md")).unwrap();
    assert!(report.contains("Delivered") && report.contains("exit gate tried 2 time(s)"), "{report}");

    let events = bench.events();
    let of =
        |kind: &str| -> Vec<&Value> { events.iter().filter(|(name, _)| name == kind).map(|(_, data)| data).collect() };
    // Each kind of question that it is there to show.
    let asked: Vec<&Value> = of("decision.asked").into_iter().map(|asked| &asked["request"]["kind"]).collect();
    assert_eq!(asked, ["vision", "refinement", "human_action"]);

    let steps: Vec<(&str, &Value)> = of("step.began")
        .into_iter()
        .map(|began| {
            let finished = of("step.finished").into_iter().find(|finished| finished["step"] == began["step"]);
            (began["action"].as_str().unwrap(), finished.unwrap())
        })
        .collect();
    // A task breaks what passed; the very next step mends it.
    let broke = |(action, finished): &(&str, &Value)| {
        *action == "execute" && finished["detail"].as_str().unwrap().contains("but broke ")
    };
    let at = steps.iter().position(broke).unwrap_or_else(|| panic!("no regression: {steps:#?}"));
    let (next, fixed) = steps[at + 1];
    assert_eq!((next, &fixed["outcome"]), ("fix", &json!("progress")), "{steps:#?}");
    // The exit gate fails once and then passes.
    let gates = steps.iter().filter(|(action, _)| *action == "exit_gate");
    let outcomes: Vec<&Value> = gates.map(|(_, finished)| &finished["outcome"]).collect();
    assert_eq!(outcomes, ["failed", "passed"]);
}

/// A service that the plan declares does not come up, is mended, and asked over HTTP by every check.
#[test]
fn the_service_demo_delivers_a_web_service() {
    if !super::services::has_python() {
        return;
    }
    let bench = Bench::new();
    let place = bench.workspace.join("demo");
    let ended = bench.nightloop(&["demo", "service", "--headless", "--into", place.to_str().unwrap()]).expect(0);
    assert!(ended.stdout.contains("EXIT_CONVERGED") && ended.stdout.contains("verified: chain"), "{}", ended.stdout);
    let events = bench.events();
    let actions: Vec<&Value> =
        events.iter().filter(|(kind, _)| kind == "step.began").map(|(_, data)| &data["action"]).collect();
    assert_eq!(actions.iter().filter(|action| **action == "service_fix").count(), 1, "{actions:?}");
    let checked: Vec<&Value> = events
        .iter()
        .filter(|(kind, _)| kind == "services.checked")
        .map(|(_, data)| &data["services"][0]["healthy"])
        .collect();
    assert!(checked.contains(&&json!(false)) && checked.last() == Some(&&json!(true)), "{checked:?}");
}

/// The author of this demo marks items as done by itself, and is not believed.
#[test]
fn the_prd_demo_ends_with_every_item_passed_by_the_engine() {
    let bench = Bench::new();
    let place = bench.workspace.join("demo");
    let ended = bench.nightloop(&["demo", "prd", "--headless", "--into", place.to_str().unwrap()]).expect(0);
    assert!(ended.stdout.contains("EXIT_CONVERGED") && ended.stdout.contains("verified: chain"), "{}", ended.stdout);
    let read = |name: &str| std::fs::read_to_string(place.join(name)).unwrap();
    assert_eq!(read("prd.json").matches("\"passes\": true").count(), 3);
    let settled: Vec<_> = bench.events().into_iter().filter(|(kind, _)| kind == "item.settled").collect();
    let order: Vec<_> =
        settled.iter().map(|(_, data)| (data["item"].as_str().unwrap(), data["passes"] == true)).collect();
    let tried = |count| std::iter::repeat_n(("US-002", false), count);
    let expected: Vec<_> = [("US-001", true)].into_iter().chain(tried(3)).collect();
    assert_eq!(order[..4], expected, "what the others depend on comes first, whatever the place in the file");
    assert_eq!(order[4..], [("US-003", true), ("US-002", true)], "the second story is parked meanwhile");
    let asked: Vec<_> = bench.events().into_iter().filter(|(kind, _)| kind == "decision.asked").collect();
    assert_eq!((asked.len(), asked[0].1["request"]["parked"].clone()), (1, json!(true)));
    assert!(read("loop/log.txt").contains("[ERROR]") && read("progress.txt").contains("US-003"));
}

#[test]
fn the_micro_demo_takes_a_detour_and_is_verified() {
    let bench = Bench::new();
    let place = bench.workspace.join("demo");
    let ended = bench.nightloop(&["demo", "micro", "--headless", "--into", place.to_str().unwrap()]).expect(0);
    assert!(ended.stdout.contains("EXIT_CONVERGED") && ended.stdout.contains("verified: chain"), "{}", ended.stdout);
    let routes: Vec<_> = bench.events().into_iter().filter(|(kind, _)| kind == "route.decided").collect();
    let names: Vec<String> = routes.iter().map(|(_, data)| data["route"].to_string()).collect();
    assert_eq!(names, [r#""LOOP""#, r#""LOOP""#, r#"{"DETOUR":"auto-linter"}"#, r#""CONTINUE""#]);
}
