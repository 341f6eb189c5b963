//! Every template as it is shipped, with an honest agent that is slow: one step an iteration, five steps to go.
//!
//! Only the agents are a rehearsal, and what is not on this machine is a script of the workspace.

use serde_json::{Value, json};

use crate::support::Bench;
use crate::support::case::{Ran, call, write};

/// Steps to go at the start.
const STEPS: u32 = 5;

const SCRIPTS: [(&str, &str); 9] = [
    ("suite.sh", "n=$(grep -c open src/list.txt); for i in $(seq $n); do echo \"test $i FAILED\"; done; exit $n\n"),
    ("audit.sh", "echo audit 1.0\n"),
    ("scripts/score-at-least", "#!/bin/sh\ntest $(grep -c open src/list.txt) = 0\n"),
    ("scripts/regression-check", "#!/bin/sh\nexit 0\n"),
    ("scripts/gap-to-target", "#!/bin/sh\necho 0.$(grep -c open src/list.txt)\n"),
    ("scripts/check-sources", "#!/bin/sh\ntest -s REPORT.md && test $(grep -c open src/list.txt) = 0\n"),
    ("scripts/count-unsourced", "#!/bin/sh\ngrep -c open src/list.txt || :\n"),
    ("scripts/exploit-is-blocked", "#!/bin/sh\ntest $(grep -c open src/list.txt) = 0\n"),
    ("scripts/print-public-api", "#!/bin/sh\necho 'fn f()'\n"),
];
const SAME: [(&str, &str); 2] =
    [("scripts/coverage-at-least", "scripts/score-at-least"), ("scripts/uncovered-share", "scripts/gap-to-target")];

/// What is still to be done, a line each: the work itself, and what the scripts count.
fn list(left: u32) -> String {
    (0..STEPS).map(|step| if step < left { "open\n" } else { "done\n" }).collect()
}

/// What each role does in one iteration.
fn steps(judged: Option<&str>) -> Vec<Value> {
    let one = |iteration: u32| {
        let left = STEPS - 1 - iteration;
        let solved = [
            write("src/list.txt", &list(left)),
            write("REPORT.md", &format!("{left} to go\n")),
            call("submit_solver_report", json!({"intent": "One step.", "actions": [format!("Step {iteration}.")]})),
        ];
        let verdict =
            judged.map(|id| json!([{"criterion": id, "met": left == 0, "why": "seen", "artifact": "REPORT.md"}]));
        let report = json!({"status": "FAIL", "succeeded": [], "failed": [], "judged": verdict.unwrap_or(json!([])),
            "open_questions": [format!("What is left after step {iteration}?")]});
        let step =
            |role: &str, calls: Value| json!({"role": role, "iteration": iteration, "turns": [{"calls": calls}]});
        [
            step("scout", json!([call("submit_scout_report", json!({"plan": [format!("Step {iteration}.")]}))])),
            step("solver", json!(solved)),
            step("skeptic", json!([call("submit_skeptic_report", report)])),
        ]
    };
    (0..STEPS).flat_map(one).collect()
}

/// The template with agents that play a script, and with commands that exist here.
fn shipped(template: &str, judged: Option<&str>) -> Bench {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::in_memory().file("src/list.txt", list(STEPS)).file("QUESTION.md", "Why?\n");
    bench.nightloop(&["init", "--template", template, "--agent", "anthropic"]).expect(0);
    let text = std::fs::read_to_string(bench.workspace.join("loop.yaml")).unwrap();
    let agent = |line: &str| match line.split_once(": { backend:") {
        Some((name, _)) => format!("{name}: {{ backend: rehearsal, script: rehearsal.yaml }}\n"),
        None => format!("{line}\n"),
    };
    let text: String = text.lines().map(agent).collect();
    let text = text
        .replace("\"cargo\", \"test\", \"-q\"", "\"sh\", \"suite.sh\"")
        .replace("cargo test -q --no-fail-fast", "sh suite.sh")
        .replace("\"cargo\", \"audit\"", "\"sh\", \"audit.sh\"");
    let script = json!({"rehearsal": 1, "model": "m", "steps": steps(judged)});
    let scripts = SCRIPTS
        .into_iter()
        .chain(SAME.map(|(name, other)| (name, SCRIPTS.iter().find(|(known, _)| *known == other).unwrap().1)));
    let bench = bench.file("loop.yaml", text).file("rehearsal.yaml", script.to_string());
    scripts.fold(bench, |bench, (name, content)| {
        let bench = bench.file(name, content);
        let path = bench.workspace.join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        bench
    })
}

#[test]
fn a_slow_honest_run_of_every_template_ends_well() {
    for (template, judged) in [
        ("green-tests", None),
        ("benchmark", None),
        ("extraction", Some("entries")),
        ("research", Some("answers")),
        ("security", None),
    ] {
        let ran = Ran::of(shipped(template, judged), &["run", "--headless"]);
        assert_eq!(ran.ended.code, 0, "{template}: {}\n{}", ran.ended.stdout, ran.ended.stderr);
        let report = ran.report();
        assert_eq!(report["iterations_completed"], STEPS, "{template}: {report}");
        ran.verified();
    }
}
