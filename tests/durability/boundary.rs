//! The engine dies at every event of a three-iteration run; `resume` must come out at the same place.

use std::collections::BTreeSet;
use std::fs;

use crate::harness::{Outcome, check, difference, for_each_case, outcome, run_with, small, thorough};

/// Events of a batch that is written at once: a torn write can keep the first and lose the rest.
const INSIDE_A_BATCH: &[&str] =
    &["tool.finished", "report.accepted", "certificate.issued", "learnings.recorded", "run.halted"];

/// What an undisturbed run looks like.
fn undisturbed() -> (Vec<String>, Outcome) {
    let bench = small();
    bench.nightloop(&["run"]).expect(0);
    let kinds: Vec<String> = bench.events().into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds.last().unwrap(), "run.halted");
    let found = outcome(&bench);
    assert_eq!(found.residuals.len(), 3, "{:?}", found.residuals);
    (kinds, found)
}

/// Dies at `point`, resumes, and compares with the undisturbed run.
fn die_and_resume(name: &str, point: &str, expected: &Outcome) -> Result<(), String> {
    let bench = small();
    let died = run_with(&bench, &["run"], &[(name, point)]);
    check(died.code == -1, || format!("{point}: ended with {} instead of dying", died.code))?;
    check(died.stderr.contains("planned crash"), || format!("{point}: {}", died.stderr))?;
    let resumed = bench.nightloop(&["resume"]);
    check(resumed.code == 0, || {
        format!("{point}: resume ended with {}\n{}{}", resumed.code, resumed.stdout, resumed.stderr)
    })?;
    if let Some(difference) = difference(expected, &outcome(&bench)) {
        return Err(format!("{point}: {difference}"));
    }
    let events = bench.events();
    for n in 0..3 {
        let began = events.iter().filter(|(kind, data)| kind == "iteration.began" && data["iteration"] == n).count();
        check(began == 1, || format!("{point}: iteration {n} began {began} times"))?;
    }
    let effects = fs::read_to_string(bench.workspace.join("effects.log")).unwrap_or_default();
    let unknown = events.iter().filter(|(kind, data)| kind == "tool.finished" && data["outcome"] == "unknown").count();
    for n in ["0", "1", "2"] {
        let times = effects.lines().filter(|line| *line == n).count();
        check(times <= 1, || format!("{point}: the effect of iteration {n} ran {times} times"))?;
        check(times == 1 || unknown == 1, || format!("{point}: effect {n} is missing and nobody was told"))?;
    }
    let verified = bench.nightloop(&["verify"]);
    check(verified.code == 0, || format!("{point}: verify says {}\n{}", verified.code, verified.stdout))
}

#[test]
fn a_crash_after_the_sync_of_any_event_changes_nothing() {
    let (kinds, expected) = undisturbed();
    let mut seen = BTreeSet::new();
    let points = (0..kinds.len()).filter(|seq| {
        // What comes next depends on the event and the one before it; a pair that was there already shows nothing new.
        let pair = (seq.checked_sub(1).map(|before| &kinds[before]), &kinds[*seq]);
        seen.insert(pair) || thorough()
    });
    let points: Vec<String> = points.map(|seq| format!("after_sync:{seq}")).collect();
    assert!(points.len() > 25, "{points:?}");
    for_each_case(&points, |point| die_and_resume("NIGHTLOOP_CRASH", point, &expected));
}

#[test]
fn a_crash_during_a_write_changes_nothing() {
    let (kinds, expected) = undisturbed();
    let mut points = Vec::new();
    // Before event 0 there is no run yet; `unborn` looks at that.
    for (seq, kind) in kinds.iter().enumerate().skip(1) {
        let chosen = thorough() || seq % 17 == 0;
        if chosen || INSIDE_A_BATCH.contains(&kind.as_str()) {
            points.push(format!("mid_write:{seq}"));
        }
        if chosen {
            points.push(format!("before_write:{seq}"));
            points.push(format!("after_write:{seq}"));
        }
    }
    for_each_case(&points, |point| die_and_resume("NIGHTLOOP_CRASH", point, &expected));
}

#[test]
fn a_crash_between_an_effect_and_its_event_changes_nothing() {
    let (_, expected) = undisturbed();
    let mut points: Vec<String> = Vec::new();
    for name in ["learnings", "artifacts"] {
        points.extend((1..=3).map(|nth| format!("{name}:{nth}")));
    }
    // Three tools per iteration run outside the engine: read, write, bash.
    points.extend((1..=9).map(|nth| format!("tool:{nth}")));
    points.extend((1..=100).step_by(if thorough() { 1 } else { 9 }).map(|nth| format!("step:{nth}")));
    for_each_case(&points, |point| die_and_resume("NIGHTLOOP_CRASH_AT", point, &expected));
}

#[test]
fn an_effect_of_unknown_outcome_is_told_and_never_repeated() {
    let undisturbed = small();
    undisturbed.nightloop(&["run"]).expect(0);
    let events = undisturbed.events();
    let intended = events.iter().position(|(kind, data)| kind == "tool.intended" && data["name"] == "bash").unwrap();
    let finished = format!("before_write:{}", intended + 1);
    // Before the command starts, and after it has acted: the engine cannot tell one from the other.
    for (name, point, ran) in [("NIGHTLOOP_CRASH_AT", "tool:3", 0), ("NIGHTLOOP_CRASH", finished.as_str(), 1)] {
        let bench = small();
        assert_eq!(run_with(&bench, &["run"], &[(name, point)]).code, -1);
        bench.nightloop(&["resume"]).expect(0);
        let effects = fs::read_to_string(bench.workspace.join("effects.log")).unwrap();
        assert_eq!(effects.lines().filter(|line| *line == "0").count(), ran, "{point}: {effects}");
        let events = bench.events();
        let told: Vec<_> = events.iter().filter(|(_, data)| data["outcome"] == "unknown").collect();
        assert_eq!(told.len(), 1, "{point}");
        assert_eq!((&told[0].0[..], &told[0].1["is_error"]), ("tool.finished", &true.into()), "{point}");
    }
}
