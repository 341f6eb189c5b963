//! A limit that an operator raises: the run goes past the old one, and the report says who did it.

use serde_json::json;

use crate::case::{Case, call, write};
use crate::stage::{Stage, question, scouted};

/// Needs a fourth iteration, and may have three.
fn short() -> Case {
    let case = Case::new().check("a", "test -f a").declare("budget", json!({"max_iterations": 3}));
    let ask = json!({"calls": [call("ask_human", question())]});
    case.solver(3, [write("a", "1\n")]).turns("scout", 0, json!([ask, scouted()]))
}

#[test]
fn without_help_the_limit_holds() {
    let stage = Stage::of(short());
    let mut screen = stage.screen(&["run", "--start"]);
    screen.sees("1 waiting");
    stage.nightloop(&["answer", "d1", "blue"]).expect(0);
    screen.sees_end("BUDGET_EXCEEDED");
    screen.press("q");
    screen.ends_with(2);
    stage.verify(0);
}

#[test]
fn a_raised_limit_is_used_and_named() {
    let stage = Stage::of(short());
    let mut screen = stage.screen(&["run", "--start"]);
    screen.sees("1 waiting");
    screen.press("b");
    screen.sees("Raise a limit");
    screen.enter_text("2");
    screen.press("enter");
    screen.sees("a limit can only be raised");
    assert_eq!(stage.count("budget.raised"), 0);
    screen.enter_text("\u{7f}5");
    screen.press("enter");
    screen.sees("raised by maria");
    screen.press("esc");
    stage.nightloop(&["answer", "d1", "blue"]).expect(0);
    screen.sees_end("CONVERGED");
    screen.press("q");
    screen.ends_with(0);
    assert_eq!(stage.count("iteration.began"), 4);
    let report = stage.bench.evidence("halting_report.json").to_string();
    assert!(report.contains("maria (console)") && report.contains("\"to\":\"5\""), "{report}");
    stage.verify(0);
}
