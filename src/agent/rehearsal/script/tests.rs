//! Tests of the script format.

use super::*;
use crate::model::call_place::CallPlace;

#[test]
fn the_documented_example_parses() {
    let page = include_str!("../../../../docs/rehearsal.md");
    let examples: Vec<&str> = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty());
    let script = Script::parse(examples[0], "docs/rehearsal.md").unwrap();
    let faults: Vec<&Fault> = script.steps.iter().flat_map(|s| &s.turns).flat_map(|t| &t.faults).collect();
    let shows = |wanted: fn(&Fault) -> bool| faults.iter().any(|fault| wanted(fault));
    assert!(shows(|f| matches!(f, Fault::Http { code: Some(_), .. })));
    assert!(shows(|f| matches!(f, Fault::Http { retry_after: Some(_), .. })));
    assert!(shows(|f| matches!(f, Fault::CutAfterBytes(_))));
    assert!(shows(|f| matches!(f, Fault::Reset)));
    assert!(shows(|f| matches!(f, Fault::StreamError { .. })));
    assert!(shows(|f| matches!(f, Fault::Stall { .. })));
    assert!(shows(|f| matches!(f, Fault::Html { .. })));
    assert!(shows(|f| matches!(f, Fault::MalformedSse)));
}

fn with_turn(turn: &str) -> Result<Script, ScriptError> {
    Script::parse(&format!("rehearsal: 1\nsteps:\n  - role: scout\n    turns:\n      - {turn}\n"), "s.yaml")
}

#[test]
fn mistakes_are_refused_with_their_place() {
    for (turn, words) in [
        ("{ txt: a }", "unknown field"),
        ("{ text: a, calls: [{ tool: b, input: {}, raw_input: '{' }] }", "either"),
        ("{ text: a, calls: [{ tool: '' }] }", "empty"),
        ("{ text: a, calls: [{ tool: b, inputs: {} }] }", "unknown field"),
        ("{ text: a, faults: [{ http: 529, html: 502 }] }", "one kind"),
        ("{ text: a, faults: [{}] }", "names one of"),
        ("{ text: a, faults: [{ http: 200 }] }", "400 to 599"),
        ("{ text: a, faults: [{ cut: hair }] }", "reset"),
        ("{ text: a, faults: [{ stall_ms: 5, code: x }] }", "belong"),
        ("{ text: a, faults: [{ html: 502, message: x }] }", "belongs"),
        ("{ text: a, faults: [{ malformed_sse: false }] }", "leave it out"),
        ("{ text: a, usage: { tokens: 1 } }", "unknown field"),
        ("{ text: a, delay_ms: -1 }", "delay_ms"),
    ] {
        let error = with_turn(turn).unwrap_err();
        assert!(error.message.contains(words), "{turn}: {error}");
        assert!(error.line.is_some() && error.column.is_some(), "{turn}: {error:?}");
        assert!(error.to_string().starts_with("s.yaml:"), "{error}");
    }
}

#[test]
fn the_frame_is_checked_too() {
    let step = "{ role: a, turns: [{ text: x }] }";
    for (yaml, words) in [
        (format!("rehearsal: 2\nsteps: [{step}]"), "rehearsal: 1"),
        (format!("steps: [{step}]"), "rehearsal"),
        ("rehearsal: 1\nsteps: [{ role: a, paraphrase: 1, turns: [] }]".to_owned(), "unknown field"),
        ("rehearsal: 1\nsteps: [{ turns: [{ text: x }] }]".to_owned(), "role"),
        ("rehearsal: 1\nsteps: [{ role: '', turns: [{ text: x }] }]".to_owned(), "empty role"),
        ("rehearsal: 1\nsteps: [{ role: a, turns: [] }]".to_owned(), "no turns"),
        ("rehearsal: 1\nsteps: [{ purpose: exekute, turns: [{ text: x }] }]".to_owned(), "did you mean `execute`"),
        ("rehearsal: 1\nsteps: [{ role: a, subject: T1, turns: [{ text: x }] }]".to_owned(), "go with a `purpose`"),
        ("rehearsal: 1\nsteps: [{ role: a, nth: 1, turns: [{ text: x }] }]".to_owned(), "go with a `purpose`"),
        ("rehearsal: 1\nsteps: [{ purpose: fix, nth: 0, turns: [{ text: x }] }]".to_owned(), "counted from 1"),
        (
            "rehearsal: 1\nsteps: [{ purpose: fix, nth: 1, turns: [{}] }, { purpose: fix, nth: 1, turns: [{}] }]"
                .to_owned(),
            "step 2 repeats step 1: purpose fix, nth 1",
        ),
        (format!("rehearsal: 1\nsteps: [{step}, {step}]"), "step 2 repeats step 1"),
        ("rehearsal: [".to_owned(), ""),
        (" ".repeat(MAX_SCRIPT_BYTES + 1), "limit"),
    ] {
        let error = Script::parse(&yaml, "s.yaml").unwrap_err();
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
fn a_named_iteration_wins_over_any() {
    let yaml = "rehearsal: 1\nsteps:\n- { role: a, turns: [{ text: any }] }\n- { role: a, iteration: 3, turns: [{ text: three }] }\n- { role: b, iteration: 0, turns: [{ text: b }] }\n";
    let script = Script::parse(yaml, "s").unwrap();
    let text = |role: &str, iteration| {
        let at = Position { role: role.to_owned(), iteration, ..Position::default() };
        script.step(&at).and_then(|step| step.turns[0].text.clone())
    };
    assert_eq!(text("a", Some(3)).as_deref(), Some("three"));
    assert_eq!(text("a", Some(4)).as_deref(), Some("any"));
    assert_eq!(text("a", None).as_deref(), Some("any"));
    assert_eq!(text("b", Some(0)).as_deref(), Some("b"));
    assert_eq!(text("b", Some(1)), None);
    assert_eq!(text("b", None), None);
    assert_eq!(text("c", Some(0)), None);
}

#[test]
fn the_most_specific_step_for_a_purpose_wins() {
    let yaml = "rehearsal: 1
steps:
- { role: builder, turns: [{ text: role }] }
- { purpose: execute, turns: [{ text: plain }] }
- { purpose: execute, iteration: 7, turns: [{ text: iteration }] }
- { purpose: execute, nth: 2, turns: [{ text: nth }] }
- { purpose: execute, subject: T1, turns: [{ text: subject }] }
- { purpose: execute, subject: T1, nth: 2, turns: [{ text: both }] }
- { purpose: execute, subject: T3, turns: [{ text: third }] }
- { role: reasoner, purpose: plan_health_check, turns: [{ text: health }] }
";
    let script = Script::parse(yaml, "s").unwrap();
    let text = |role: &str, purpose, subject: Option<&str>, nth, iteration| {
        let call = CallPlace { purpose, subject: subject.map(str::to_owned), nth };
        let at = Position { role: role.to_owned(), call: Some(call), iteration, ..Position::default() };
        script.step(&at).and_then(|step| step.turns[0].text.clone()).unwrap_or_default()
    };
    use Purpose::{Execute, Fix, PlanHealth};
    assert_eq!(text("builder", Execute, Some("T1"), 2, Some(7)), "both");
    assert_eq!(text("builder", Execute, Some("T1"), 1, Some(7)), "subject");
    assert_eq!(text("builder", Execute, Some("T3"), 2, Some(7)), "third", "a subject is more than an nth");
    assert_eq!(text("builder", Execute, Some("T2"), 2, Some(7)), "nth");
    assert_eq!(text("builder", Execute, Some("T2"), 1, Some(7)), "iteration");
    assert_eq!(text("builder", Execute, None, 1, None), "plain");
    assert_eq!(text("builder", Fix, None, 1, None), "role");
    assert_eq!(text("fixer", Fix, None, 1, None), "", "a step of another role does not fit");
    assert_eq!(text("reasoner", PlanHealth, None, 1, None), "health");
    assert_eq!(text("other", PlanHealth, None, 1, None), "", "a step may ask for both");
    let no_call = Position { role: "builder".into(), ..Position::default() };
    assert_eq!(script.step(&no_call).and_then(|step| step.turns[0].text.as_deref()), Some("role"));
}
