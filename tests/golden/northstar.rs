//! The Northstar gate: work that advances no metric does not go on.

use serde_json::{Value, json};

use crate::case::{Case, argv, sh, write};
use crate::sealed::{Expect, check};

#[test]
fn three_iterations_without_a_win_drift() {
    let ran = Case::new().stale().check("never", "false").run();
    check(&ran, &Expect::drifted(&["1", "1", "1"]));
    let wins: Vec<Value> = (0..3).map(|n| ran.bench.evidence(&format!("iter_{n}/glow.json"))["W"].clone()).collect();
    assert_eq!(wins, [0, 0, 0]);
    let log = ran.text("evidence/loop/northstar_drift.log");
    assert!(log.contains("iteration 2: W=0") && log.contains("NORTHSTAR_DRIFT"), "{log}");
}

#[test]
fn a_win_in_between_starts_the_count_again() {
    let case = Case::new().stale().check("a", "test -f a").check("never", "false").solver(2, [write("a", "1\n")]);
    check(&case.run(), &Expect::drifted(&["1", "1", "0.5", "0.5", "0.5", "0.5"]));
}

#[test]
fn a_growing_distance_drifts_although_criteria_turn_true() {
    // The criteria serve a metric that nothing measures, so that they win; the measured one moves away.
    let second = "- vc-1: steps | 0 | 100\n- vc-2: criteria | 0 | 4\n";
    let served = json!({"a": ["vc-2"], "b": ["vc-2"], "c": ["vc-2"], "d": ["vc-2"]});
    let measured = json!({"vc-1": argv("cat src/metric")});
    let mut case = Case::new().stale().file("src/metric", "60\n").file("NORTHSTAR.md", second);
    case = case.declare("northstar", json!({"links": served, "measure": measured}));
    for (number, id) in (0..).zip(["a", "b", "c", "d"]) {
        let metric = format!("{}\n", 50 - 10 * number);
        case =
            case.check(id, &format!("test -f {id}")).solver(number, [write(id, "1\n"), write("src/metric", &metric)]);
    }
    let ran = case.run();
    check(&ran, &Expect::drifted(&["0.75", "0.5", "0.25"]));
    assert!(ran.detail().contains("distance"), "{}", ran.detail());
    assert_eq!(ran.bench.evidence("iter_2/glow.json")["W"], 15);
    assert!(ran.text("evidence/loop/northstar_drift.log").contains("iteration 2: W=15 distance=0.85 drifting=true"));
}

#[test]
fn a_metric_that_moved_away_is_not_advanced() {
    let case = Case::new().stale().file("src/metric", "60\n").check("a", "test -f a").check("never", "false");
    let ran = case.solver(0, [write("a", "1\n"), write("src/metric", "50\n")]).run();
    let glow = ran.bench.evidence("iter_0/glow.json");
    assert_eq!((&glow["W"], &glow["northstar_metric_advanced"]), (&json!(0), &Value::Null));
}

/// Nobody measures vc-1: it follows the residual, which shrinks, also by one judged criterion at a time.
#[test]
fn a_shrinking_residual_is_progress() {
    let bound = |case: Case| case.stale().declare("northstar", json!({}));
    let residuals = ["90", "70", "50", "30", "10", "0"];
    let case = bound(Case::new()).check("a", "test $(cat src/residual) = 0").residuals(&residuals);
    let ran = case.run();
    check(&ran, &Expect::exact(&residuals));
    let glow = ran.bench.evidence("iter_1/glow.json");
    assert_eq!((&glow["W"], &glow["northstar_metric_advanced"]), (&json!(20), &json!("vc-1")));

    let mut case = bound(Case::new()).check("here", "test -f f");
    for (number, id) in (0..).zip(["a", "b", "c", "d"]) {
        let met: Vec<Value> = ["a", "b", "c", "d"][..=number as usize]
            .iter()
            .map(|id| json!({"criterion": id, "met": true, "artifact": "f", "why": "It does."}))
            .collect();
        case = case
            .judged(id)
            .solver(number, [write("f", &format!("{number}\n"))])
            .skeptic(number, json!({"judged": met}));
    }
    check(&case.run(), &Expect::exact(&["0.6", "0.4", "0.2", "0"]));
}

#[test]
fn a_link_to_a_metric_that_does_not_exist_is_refused() {
    let ran = Case::two_steps().declare("northstar", json!({"links": {"a": ["no-such-metric"]}})).run().expect(3);
    assert!(ran.detail().contains("`no-such-metric`"), "{}", ran.detail());
    assert!(ran.events("llm.requested").is_empty(), "something was spent");
}

/// 39 → 45 of `>= 40` is an arrival, not a drift.
#[test]
fn beyond_a_bound_is_at_the_target() {
    let measure = json!({"measure": {"vc-1": argv("cat src/metric")}});
    let case = Case::new().stale().file("NORTHSTAR.md", "- vc-1: stars | 39 | >= 40\n").file("src/metric", "39\n");
    let case = case.declare("northstar", measure).check("a", "test -f a");
    let ran = case.solver(0, [write("a", "1\n"), write("src/metric", "45\n")]).run();
    check(&ran, &Expect::exact(&["0"]));
}

#[test]
fn a_northstar_that_an_agent_changes_ends_the_run() {
    let ran = Case::two_steps().solver(1, [sh("echo >> NORTHSTAR.md")]).run();
    check(&ran, &Expect::drifted(&["0.5"]));
    assert!(ran.detail().contains("NORTHSTAR.md changed"), "{}", ran.detail());
    assert_eq!(ran.exit()["last_known_state"], "COLLECT_ARTIFACTS");
}

#[test]
fn a_northstar_that_an_agent_deletes_ends_the_run() {
    let ran = Case::two_steps().solver(1, [sh("rm NORTHSTAR.md")]).run();
    check(&ran, &Expect::drifted(&["0.5"]));
}

#[test]
fn the_file_tools_do_not_write_the_northstar() {
    let ran = Case::two_steps().solver(0, [write("NORTHSTAR.md", "- vc-1: steps | 100 | 100\n")]).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert!(ran.text("NORTHSTAR.md").contains("| vc-1 | steps | 0 | 100 |"));
}

/// A claim that moves no metric: the residual was 0 all along and only a judgement is new.
fn neutral(northstar: Value) -> Case {
    let judged = json!({"judged": [{"criterion": "doc", "met": true, "artifact": "doc.md", "why": "It is there."}]});
    let case = Case::new().stale().judged("doc").residual("echo 0").declare("northstar", northstar);
    case.solver(0, [write("doc.md", "text\n")]).skeptic(0, judged)
}

#[test]
fn a_success_that_advances_nothing_needs_a_reason() {
    let blocked = Expect::blocked("GLOW_WITHOUT_NORTHSTAR_ALIGNMENT", &["0"]);
    check(&neutral(json!({})).run(), &blocked.forbidden("GLOW_WITHOUT_NORTHSTAR_ALIGNMENT"));
    let ran = neutral(json!({"neutral_reason": "Plumbing."})).run();
    check(&ran, &Expect::exact(&["0"]));
    assert_eq!(ran.report()["northstar_alignment_certificate"]["reason"], "Plumbing.");
}

#[test]
fn a_sub_goal_that_its_check_proves_is_a_small_win() {
    let sub_goal = json!({"text": "A step.", "check": argv("test -f step")});
    let scout =
        json!([{"calls": [crate::case::call("submit_scout_report", json!({"plan": ["A."], "sub_goal": sub_goal}))]}]);
    let case = Case::new().stale().check("never", "false").turns("scout", 1, scout).solver(1, [write("step", "1\n")]);
    let ran = case.run();
    check(&ran, &Expect::drifted(&["1", "1", "1", "1", "1"]));
    assert_eq!(ran.bench.evidence("iter_1/glow.json")["W"], 5);
    assert_eq!(ran.bench.evidence("iter_1/glow.json")["northstar_metric_advanced"], "vc-1");
}

#[test]
fn a_metric_that_can_no_longer_be_measured_is_no_win() {
    let measure = json!({"measure": {"vc-1": argv("cat src/metric")}});
    let case = Case::new().stale().check("never", "false").declare("northstar", measure).file("src/metric", "50\n");
    let case = case.file("NORTHSTAR.md", "- vc-1: steps | 60 | 100\n").solver(0, [sh("rm src/metric")]);
    let ran = case.run();
    assert_eq!(ran.bench.evidence("iter_0/glow.json")["W"], 0);
}

#[test]
fn an_empty_iteration_does_not_change_the_distance() {
    let talk = json!([{"text": "Done."}, {"text": "Done."}, {"text": "Done."}]);
    let ran = Case::two_steps().turns("scout", 1, talk.clone()).turns("solver", 1, talk).run();
    check(&ran, &Expect::blocked("EVIDENCE_INCOMPLETE", &["0.5", "null"]));
    assert_eq!(ran.report()["northstar_alignment_certificate"]["northstar_distance_end"], "0.99");
}
