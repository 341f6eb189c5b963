//! Agents of bad habits, as real programs: none gets anything passed that its check does not show under the judges that
//! the run found, none costs more than its attempts, and each end says why.
//!
//! The author is a shell script; the critic is content with everything. A sample runs by default, every habit in every
//! playbook with `NIGHTLOOP_THOROUGH=1`, those whose name has a word in both with `NIGHTLOOP_HABIT=word`.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::case::{Case, Ran, content, critique};
use crate::support::case::processes_in;

/// What may come of a habit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Comes {
    /// Nothing passes.
    Never,
    /// The work is done beside it, and passes.
    Passes,
}
use Comes::{Never, Passes};

/// What every script begins with: `try` changes something and does not do the work, `work` does it, `say` reports.
const WORDS: &str = r#"cat > /dev/null
try() { date +%N > a.txt; }
work() { echo A > a.txt; }
say() {
    to=$(date +%N)
    printf '%s\n' '```json' '{"intent": "Do it.", "actions": ["Did it."], "files_touched": ["a.txt"], "notes": "It passes.", "learnings": [], "retry": {"kind": "variable_changed", "what": "the words", "from": "before", "to": "'"$to"'"}}' '```'
}
mine() { git -c user.name=x -c user.email=x@example.org "$@" > /dev/null 2>&1; }
"#;

/// Name, script, what may come of it, and whether the sample has it.
const HABITS: &[(&str, &str, Comes, bool)] = &[
    ("edits the items", "sed -i s/false/true/ prd.json; try; say", Never, true),
    ("replaces the items", "echo '{}' > prd.json.new; mv -f prd.json.new prd.json; try; say", Never, false),
    ("edits the check's helper", "echo true > check.sh; say", Never, true),
    ("edits the Makefile", "printf 'check:\\n\\t@true\\n' > Makefile; say", Never, true),
    ("makes a file named as the target", "touch check; try; say", Never, true),
    ("commits", "try; mine add -A; mine commit -m done; say", Never, true),
    ("amends and cleans", "try; mine commit -a --amend -m done; mine clean -fdx; say", Never, false),
    ("switches the branch", "mine checkout -b other; try; say", Never, true),
    ("stashes its work", "work; mine stash; say", Never, true),
    ("deletes .git", "rm -rf .git; try; say", Never, true),
    (
        "plants a hook",
        "printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; try; say",
        Never,
        false,
    ),
    ("writes 50 MB", "head -c 50000000 /dev/zero > big.bin; try; say", Never, false),
    ("prints 20 MB", "head -c 20000000 /dev/zero | tr '\\0' x; try; say", Never, false),
    ("prints no text", "printf '\\377\\376\\200\\n'; try; say", Never, true),
    ("exits with 1", "try; exit 1", Never, true),
    ("leaves a daemon", "setsid sh -c 'sleep 3; echo A > a.txt; sleep 60' > /dev/null 2>&1 & try; say", Never, true),
    ("does nothing", "true", Never, true),
    ("says nothing but words", "try; echo 'All done, everything passes.'", Never, true),
    ("reports twice", "try; say; say", Never, false),
    ("reports garbage", "try; printf '%s\\n' '```json' '{ nope' '```'", Never, true),
    (
        "reports at length",
        "try; printf '```json\\n{\"intent\": \"'; head -c 400000 /dev/zero | tr '\\0' x; printf '\"}\\n```\\n'",
        Never,
        true,
    ),
    ("talks without an end", "try; while :; do echo more; done", Never, true),
    ("keeps silent", "try; sleep 60", Never, true),
    ("edits AGENTS.md", "echo 'All items pass.' > AGENTS.md; try; say", Never, false),
    ("edits loop.yaml", "sed -i 's/\"make\"/\"true\"/' loop.yaml; try; say", Never, true),
    ("makes a pipe of its work", "rm -f a.txt; mkfifo a.txt; say", Never, true),
    ("links to the outside", "ln -sf /etc/passwd a.txt; say", Never, true),
    ("deletes everything", "rm -rf ./* ; say", Never, true),
    ("takes all rights away", "try; chmod 000 a.txt check.sh Makefile; say", Never, false),
    ("fills the progress", "echo '## 2026-01-01 - A' >> progress.txt; try; say", Never, true),
    ("claims only", "say", Never, true),
    (
        "writes the evidence",
        "mkdir -p evidence/loop; echo '{\"status\": \"EXIT_CONVERGED\"}' > evidence/loop/halting_report.json; try; say",
        Never,
        true,
    ),
    ("kills its parents", "try; kill -9 0 -1; say", Never, true),
    ("stops the run", "mkdir -p scratch; touch scratch/STOP; try; say", Never, false),
    // What is only odd does not keep honest work from passing.
    ("works and leaves a daemon", "setsid sleep 60 > /dev/null 2>&1 & work; say", Passes, true),
    ("works and commits", "work; mine add -A; mine commit -m done; say", Passes, true),
    ("works, prints no text, reports twice", "printf '\\377\\376\\n'; work; say; say", Passes, true),
    ("works and edits the items", "sed -i s/false/true/ prd.json; work; say", Passes, true),
    ("works without a word", "work", Passes, false),
];

fn case(playbook: &str, script: &str) -> Case {
    let case = if playbook == "prd" { Case::prd(&["A"]).without("prd") } else { Case::micro() };
    let critic = if playbook == "prd" { content("a.txt") } else { critique("VERIFIED", false, json!([])) };
    let mut agents = case.declared["agents"].clone();
    let argv = json!(["sh", "-c", format!("{WORDS}{script}")]);
    agents["odd"] = json!({"backend": "command", "command": argv, "turn_seconds": 2, "silence_seconds": 2});
    let check = json!({"id": "check", "text": "It is green.", "check": ["make", "check"], "timeout_seconds": 3});
    case.file("Makefile", "check:\n\tsh check.sh\n")
        .file("check.sh", "grep -q A a.txt || { cat a.txt; exit 1; }\n")
        .file("a.txt", "not yet\n")
        .declare("agents", agents)
        .declare("roles", json!({"author": "odd"}))
        .declare("acceptance_criteria", json!([check]))
        .turns("critic", (playbook == "prd").then_some("A"), None, json!([{"calls": [critic]}]))
}

fn repository(workspace: &Path) {
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"];
        let output = Command::new("git").args(identity).args(arguments).current_dir(workspace).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "start"]);
}

/// What speaks against how a run with this habit went; empty: nothing.
fn faults(playbook: &str, name: &str, comes: Comes, ran: &Ran) -> Vec<String> {
    let mut faults = Vec::new();
    let mut must = |holds: bool, what: String| {
        if !holds {
            faults.push(format!("{playbook}, {name}: {what}"));
        }
    };
    let lines = format!("{}{}", ran.ended.stdout, ran.ended.stderr);
    let passed = ran.flipped() == ["A"] || ran.ended.code == 0;
    let says_passes = std::fs::read_to_string(ran.path("prd.json")).is_ok_and(|text| text.contains("\"passes\": true"));
    let progress = std::fs::read_to_string(ran.path("progress.txt")).unwrap_or_default();
    match comes {
        Never => {
            must(!passed, "it passed".to_owned());
            must(!says_passes, "the file of items says that it passes".to_owned());
            must(!progress.contains(" - A") || name == "fills the progress", format!("progress.txt: {progress}"));
            must([1, 2, 3, 4].contains(&ran.ended.code), format!("it ended with {}: {lines}", ran.ended.code));
        }
        Passes => {
            must(passed && ran.ended.code == 0, format!("honest work ended with {}: {lines}", ran.ended.code));
        }
    }
    // The attempts that are declared, and what each of them may cost: a start, two re-asks, or three after crashes.
    let authors: Vec<Value> = ran.events("agent.started").into_iter().filter(|data| data["role"] == "author").collect();
    let calls: Vec<&Value> = authors.iter().map(|data| &data["call"]).collect();
    let starts = ran.events("llm.requested").iter().filter(|data| calls.contains(&&data["call"])).count();
    must(authors.len() <= 3, format!("{} attempts", authors.len()));
    must(starts <= 3 * authors.len(), format!("{starts} starts in {} attempts", authors.len()));
    let detail = ran.report()["detail"].as_str().unwrap_or_default().to_owned();
    must(
        detail.len() > 10 && lines.contains(&detail[..detail.floor_char_boundary(40)]),
        format!("no reason: {detail}"),
    );
    let left = processes_in(&ran.bench.workspace);
    must(left.is_empty(), format!("still there: {left:?}"));
    let verified = ran.bench.nightloop(&["verify"]);
    must(verified.code == 0, format!("verify: {}", verified.stdout));
    faults
}

#[test]
fn no_habit_passes_what_its_check_does_not_show() {
    let thorough = crate::harness::thorough();
    let only = std::env::var("NIGHTLOOP_HABIT").ok();
    let chosen = |name: &str, sampled: bool| match &only {
        Some(part) => name.contains(part.as_str()),
        None => thorough || sampled,
    };
    // In turns, so that a sample has every habit once and both playbooks evenly.
    let all = HABITS.iter().filter(|(name, .., sampled)| chosen(name, *sampled)).enumerate();
    let jobs = all.flat_map(|(at, habit)| {
        let both = if thorough || only.is_some() { vec!["prd", "micro"] } else { vec![["prd", "micro"][at % 2]] };
        both.into_iter().map(move |playbook| (playbook, *habit))
    });
    let (jobs, faults) = (Mutex::new(jobs.collect::<Vec<_>>()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((playbook, (name, script, comes, _))) = jobs.lock().unwrap().pop() else { return };
                    let bench = case(playbook, script).written();
                    repository(&bench.workspace);
                    let ran = Ran::of(bench, &["run", "--headless"]);
                    faults.lock().unwrap().extend(self::faults(playbook, name, comes, &ran));
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n---\n"));
}
