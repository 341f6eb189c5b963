//! Projects whose check is inferred, run to their end: a program as the agent, the project's real tests as the check.

use std::fs;

use serde_json::json;

use crate::support::Bench;

const PRD: &str = r#"{"items": [{"id": "A", "title": "Add up", "acceptance": ["shop adds up"], "passes": false}]}
"#;

const TESTS: &str = "import unittest

from shop import total


class Total(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2]), 3)
";

/// One program for every role: who is asked for a critique gives one, everybody else does the work.
fn agent(work: &str) -> String {
    let report =
        json!({"intent": "Add up.", "actions": ["Wrote it."], "files_touched": [], "notes": "n", "learnings": []});
    let critique = json!({
        "status": "VERIFIED", "can_further_iteration_help": false, "recommendation": "CONTINUE", "reason": "It adds up.",
        "concerns": [], "judged": [{"criterion": "1", "met": true, "artifact": "backend/shop.py", "why": "seen"}],
    });
    format!(
        "case \"$(cat)\" in\n*can_further_iteration_help*) r='{critique}' ;;\n*) {work}; r='{report}' ;;\nesac\n\
         printf '%s\\n' '```json' \"$r\" '```'\n"
    )
}

/// `init --from prd.json`, then the same declaration with that program.
fn started(bench: Bench, work: &str) -> (Bench, String) {
    let said = bench.nightloop(&["init", "--from", "prd.json", "--agent", "claude"]).expect(0).stdout;
    let text = fs::read_to_string(bench.workspace.join("loop.yaml")).unwrap();
    let builder = "  builder: { backend: command, command: [\"sh\", \"agent.sh\"] }";
    let text: Vec<&str> =
        text.lines().map(|line| if line.starts_with("  builder: ") { builder } else { line }).collect();
    (bench.file("loop.yaml", text.join("\n") + "\n").file("agent.sh", agent(work)), said)
}

/// A project file alone asks for nothing; the tests say that unittest runs them, in the part that they are of.
#[test]
fn a_part_with_unittest_is_checked_in_its_folder() {
    let bench = Bench::new()
        .file("prd.json", PRD)
        .file("pyproject.toml", "[project]\nname = \"shop\"\n")
        .file("backend/pyproject.toml", "[project]\nname = \"shop\"\n")
        .file("backend/test_shop.py", TESTS)
        .file("frontend/package.json", r#"{"scripts": {"test": "tsc -w"}}"#);
    let (bench, said) = started(bench, "printf 'def total(numbers):\\n    return sum(numbers)\\n' > backend/shop.py");
    let check = "check: cd backend && python3 -m unittest discover, inferred from backend/test_shop.py";
    assert!(said.contains(check) && !said.contains("frontend"), "{said}");
    let ended = bench.nightloop(&["run", "--headless"]).expect(0);
    assert!(ended.stdout.contains("EXIT_CONVERGED"), "{}", ended.stdout);
    bench.nightloop(&["verify"]).expect(0);
    assert!(fs::read_to_string(bench.workspace.join("prd.json")).unwrap().contains("\"passes\": true"));
}

/// What was inferred and is not installed is said before the agent is called.
#[test]
fn a_runner_that_is_not_installed_is_said_before_the_agent_is_called() {
    let package = r#"{"devDependencies": {"no-such-runner": "1"}, "scripts": {"test": "no-such-runner"}}"#;
    let bench = Bench::new().file("prd.json", PRD).file("web/package.json", package).file("web/yarn.lock", "");
    let (bench, said) = started(bench, "touch called");
    assert!(said.contains("cd web && yarn run test"), "{said}");
    let ended = bench.nightloop(&["run", "--headless"]).expect(1);
    assert!(
        ended.stdout.contains("MISSING_SENSOR") && ended.stdout.contains("No agent was called for it"),
        "{}",
        ended.stdout
    );
    assert!(!bench.workspace.join("called").exists());
}
