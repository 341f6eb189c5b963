//! Files of items as people bring them: kinds, dependencies, commands of their own, the layout around them. The agents
//! are programs of their own, and every check is a command that is run.

use std::fs;

use serde_json::{Value, json};

use crate::case::{Case, Ran};

/// Does what `work.sh ITEM ATTEMPT` does, and reports in the words of a plain program.
const AUTHOR: &str = r#"in=$(cat)
id=$(printf '%s\n' "$in" | sed -n 's/^id: //p' | head -n 1)
nth=$(printf '%s\n' "$in" | sed -n 's/^attempt: //p' | head -n 1)
sh work.sh "$id" "$nth" || exit 1
retry=
[ "$nth" = 1 ] || retry=", \"retry\": {\"kind\": \"variable_changed\", \"what\": \"the words\", \"from\": \"$nth before\", \"to\": \"$nth\"}"
printf '%s\n' '```json' "{\"intent\": \"Work on $id.\", \"actions\": [\"Worked.\"], \"files_touched\": [\"out\"], \"notes\": \"done\", \"learnings\": [\"$id is small\"]$retry}" '```'
"#;

/// Finds every criterion met, by its number.
const CRITIC: &str = r#"in=$(cat)
n=$(printf '%s\n' "$in" | sed -n '/^acceptance criteria, by number:/,/^[^0-9a]/p' | grep -c '^[0-9][0-9]*\. ')
judged= i=1
while [ "$i" -le "$n" ]; do
  judged="$judged${judged:+, }{\"criterion\": \"$i\", \"met\": true, \"artifact\": \"work.sh\", \"why\": \"It is there.\"}"
  i=$((i + 1))
done
printf '%s\n' '```json' "{\"status\": \"VERIFIED\", \"can_further_iteration_help\": false, \"recommendation\": \"CONTINUE\", \"reason\": \"I looked.\", \"concerns\": [], \"judged\": [$judged]}" '```'
"#;

/// Programs over a file of items. `work`: a shell script that is told the item and the attempt.
pub fn project(file: &str, items: &str, work: &str) -> Case {
    let declared = json!({
        "spec": "1.0",
        "playbook": "prd",
        "goal": "What is asked for is there.",
        "acceptance_criteria": [{"id": "sound", "text": "Nothing is broken.", "check": ["sh", "-c", "test ! -f broken"]}],
        "halting_certificates": ["EXACT"],
        "budget": {"max_iterations": 20},
        "prd": {"file": file},
        "agents": {
            "worker": {"backend": "command", "command": ["sh", "-c", AUTHOR]},
            "judge": {"backend": "command", "command": ["sh", "-c", CRITIC]},
        },
        "roles": {"critic": "judge"},
    });
    let mut case = Case::of(&json!({}));
    case.declared = declared.as_object().unwrap().clone();
    case.file(file, items).file("work.sh", work)
}

/// The author writes the item's id into a file of that name.
pub const WRITES: &str = "mkdir -p out; echo \"$1\" > \"out/$1\"\n";

fn story(id: &str, more: &Value) -> Value {
    let story =
        json!({"id": id, "title": format!("Story {id}"), "acceptanceCriteria": ["it is there"], "passes": false});
    crate::support::case::with(story, more)
}

fn stories(stories: &[Value]) -> String {
    serde_json::to_string_pretty(&json!({"userStories": stories})).unwrap() + "\n"
}

#[track_caller]
fn status(ran: &Ran) -> String {
    ran.bench.nightloop(&["status"]).expect(0).stdout
}

// Kinds of files.

#[test]
fn a_feature_list_keeps_its_own_words() {
    let items = r#"[
  {"id": "F1", "behavior": "out/F1 is there", "verification": "test -f out/F1", "state": "failing", "evidence": ""},
  {"id": "F2", "behavior": "out/F2 is there", "verification": "somebody has seen it", "state": "not_started", "evidence": null}
]
"#;
    let ran = project("feature_list.json", items, WRITES).run().converged();
    assert_eq!(ran.chosen(), ["F1 1", "F2 1"]);
    let now = ran.text("feature_list.json");
    assert_eq!(now.matches("\"state\": \"passing\"").count(), 2, "{now}");
    let evidence = |nth: usize| {
        let list: Value = serde_json::from_str(&now).unwrap();
        list[nth]["evidence"].as_str().unwrap().to_owned()
    };
    assert!(evidence(0).contains("iteration 0: its checks pass"), "{}", evidence(0));
    assert!(evidence(1).contains("iteration 1: its checks pass"), "{}", evidence(1));
    // What is a command was run; what is a sentence was left to the critic.
    let probes: Vec<String> = ran.events("probe.finished").iter().map(|data| data["probe"].to_string()).collect();
    assert!(probes.iter().any(|probe| probe.contains("F1")) && !probes.iter().any(|probe| probe.contains("F2")));
}

#[test]
fn where_no_task_says_whether_it_passes_none_does() {
    let items = r#"{"phases": [
  {"name": "one", "tasks": [{"id": "1.1", "title": "First"}, {"id": "1.2", "title": "Second"}]},
  {"name": "two", "tasks": [{"id": "2.1", "title": "Third"}]}
]}
"#;
    let ran = project("prd.json", items, WRITES).run().converged();
    assert_eq!(ran.chosen(), ["1.1 1", "1.2 1", "2.1 1"]);
    let expected = items.replace("\"}", "\", \"passes\": true, \"notes\": \"done\"}");
    assert_eq!(ran.text("prd.json"), expected);
}

// Dependencies.

#[test]
fn an_item_comes_after_those_it_waits_for() {
    let items = [
        story("A", &json!({"priority": 1, "dependsOn": ["C", "Z"]})),
        story("B", &json!({"priority": 2, "blocked_by": "A"})),
        story("C", &json!({"priority": 3, "deps": []})),
    ];
    let ran = project("prd.json", &stories(&items), WRITES).run().converged();
    assert_eq!(ran.chosen(), ["C 1", "A 1", "B 1"]);
    assert!(ran.ended.stdout.contains("A waits for `Z`, which is no item"), "{}", ran.ended.stdout);
    let why: Vec<Value> = ran.events("item.chosen").iter().map(|data| data["why"].clone()).collect();
    assert_eq!(why[0], "the first in order that waits for no other");
    assert_eq!(why[1], "the first in order that does not pass");
}

#[test]
fn a_circle_is_said_and_begins_with_its_first_item() {
    let items = [story("A", &json!({"dependencies": ["B"]})), story("B", &json!({"dependencies": ["A"]}))];
    let ran = project("prd.json", &stories(&items), WRITES).run().converged();
    assert_eq!(ran.chosen(), ["A 1", "B 1"]);
    assert!(ran.ended.stdout.contains("A, B wait for each other: A comes first"), "{}", ran.ended.stdout);
}

#[test]
fn what_waits_for_a_stuck_item_is_shown_and_not_worked_on() {
    let items = [
        story("A", &json!({"testCommand": "grep -q A out/A || { cat out/A; exit 1; }"})),
        story("B", &json!({"dependsOn": ["A"]})),
        story("C", &json!({"dependsOn": ["B"]})),
        story("D", &json!({})),
    ];
    // `A` goes wrong in a way of its own at each attempt.
    let work = "mkdir -p out; word=$1; [ \"$1\" != A ] || word=$(echo wrong bad poor | cut -d ' ' -f \"$2\"); echo \"$word\" > \"out/$1\"\n";
    let ran = project("prd.json", &stories(&items), work).set("park_and_continue", json!(true)).run().waits();
    assert_eq!(ran.chosen(), ["A 1", "A 2", "A 3", "D 1"]);
    let said = ["B waits for A, which waits for a person", "C waits for B"];
    let shown = status(&ran);
    assert!(
        said.iter().all(|line| ran.ended.stdout.contains(line) && shown.contains(line)),
        "{}\n{shown}",
        ran.ended.stdout
    );
    let ran = ran.answer("d1", "skip").resume().ends(1).is("EXIT_BLOCKED", "ESCALATED");
    assert!(
        ran.detail().contains("skipped by a person: A; B waits for A, which was skipped; C waits for B"),
        "{}",
        ran.detail()
    );
    assert_eq!(ran.passing(), ["D"]);
}

// Commands of their own, and what an item is made of.

#[test]
fn the_command_of_an_item_is_run_beside_the_checks() {
    let items = [story(
        "A",
        &json!({
            "verificationCommand": "grep -qx good out/A",
            "acceptanceCriteria": [{"text": "it is good", "passes": false, "evidence": ""}],
            "subtasks": [{"title": "write it", "done": false}],
        }),
    )];
    let work = "mkdir -p out; { [ \"$2\" = 1 ] && echo bad || echo good; } > out/A\n";
    let ran = project("prd.json", &stories(&items), work).run().converged();
    assert_eq!((ran.chosen().len(), ran.verdicts()), (2, vec!["UNVERIFIED".to_owned(), "VERIFIED".into()]));
    assert_eq!(ran.events("pass.judged")[0]["failed"], json!(["check of item A"]));
    let item = &ran.prd()["userStories"][0];
    assert_eq!((&item["acceptanceCriteria"][0]["passes"], &item["subtasks"][0]["done"]), (&json!(true), &json!(true)));
    assert!(item["acceptanceCriteria"][0]["evidence"].as_str().unwrap().contains("iteration 1"), "{item}");
}

#[test]
fn the_check_of_the_declaration_wins_over_the_command_of_the_file() {
    let items = [story("A", &json!({"verificationCommand": "false"}))];
    let case = project("prd.json", &stories(&items), WRITES);
    let ran = case.prd_item("A", json!({"check": ["test", "-f", "out/A"]})).run().converged();
    assert_eq!(ran.chosen(), ["A 1"]);
}

/// The command comes from a file that people own: what an agent makes of it does not count.
#[test]
fn an_author_cannot_make_the_command_easier() {
    let items = [story("A", &json!({"verificationCommand": "grep -qx good out/A"}))];
    let work = "mkdir -p out; [ \"$2\" = 1 ] && { echo bad > out/A; sed -i 's/grep -qx good/true/' prd.json; exit 0; }; echo good > out/A\n";
    let ran = project("prd.json", &stories(&items), work).unconfined().run().converged();
    assert_eq!(ran.verdicts(), ["UNVERIFIED", "VERIFIED"]);
    assert!(ran.text("prd.json").contains("grep -qx good"));
}

/// A command that reads a script is guarded like every check.
#[test]
fn a_script_that_a_command_runs_is_a_guard() {
    let items = [story("A", &json!({"testCommand": "sh checks/a.sh"}))];
    let work = "mkdir -p out; echo bad > out/A; echo 'exit 0' > checks/a.sh\n";
    let case = project("prd.json", &stories(&items), work).file("checks/a.sh", "grep -qx good out/A\n");
    let ran = case.run();
    assert_ne!(ran.ended.code, 0, "{}", ran.ended.stdout);
    assert!(
        ran.flipped().is_empty() && fs::read_to_string(ran.path("prd.json")).unwrap().contains("\"passes\": false")
    );
}

// Files beside the items.

const RALPH: &str = "scripts/ralph/prd.json";

fn with_branch(branch: &str, all: &[Value]) -> String {
    let document = json!({"project": "small", "branchName": branch, "userStories": all});
    serde_json::to_string_pretty(&document).unwrap() + "\n"
}

const PROGRESS: &str = "# Ralph Progress Log\nStarted: Mon Nov  2\n\n## Codebase Patterns\n- Scripts are plain sh\n---\n\n## 2026-11-02 - US-000\n- began\n---\n";

#[test]
fn the_files_beside_the_items_are_read_and_gone_on_with() {
    let items = [
        story("US-001", &json!({"passes": true})),
        story("US-002", &json!({"estimate": 1.50, "files": ["a.sh"], "dependsOn": ["US-001"]})),
        story("US-003", &json!({})),
    ];
    let case = project(RALPH, &with_branch("ralph/small", &items), WRITES);
    let case =
        case.file("scripts/ralph/progress.txt", PROGRESS).file("CLAUDE.md", "Be brief.\n").file("GEMINI.md", "\n");
    let ran = case.run().converged();
    let prompt = ran.prompt_of("author", 1);
    for part in [
        "its other fields:\n",
        "\n  estimate: 1.5\n",
        "\n  files: [ \"a.sh\" ]\n",
        "\n  dependsOn: [ \"US-001\" ]\n",
        "file: scripts/ralph/prd.json (the engine alone changes it)\nproject: small\nbranch: ralph/small\n",
        "[x] US-001 Story US-001\n[>] US-002 Story US-002\n[ ] US-003 Story US-003\n",
        "PROGRESS (scripts/ralph/progress.txt, the engine alone writes it)\n# Ralph Progress Log\n",
        "- Scripts are plain sh\n",
        "How to work here stands in: CLAUDE.md, ",
        "GEMINI.md\n",
    ] {
        assert!(prompt.contains(part), "{part}\nis missing in\n{prompt}");
    }
    assert!(!ran.prompt_of("critic", 1).contains("PROGRESS"), "whoever judges is told nothing of it");
    let progress = ran.text("scripts/ralph/progress.txt");
    let new = progress.strip_prefix(PROGRESS).expect("what stood there stands there still");
    assert!(new.contains("- US-002\n") && new.contains("- US-003\n"), "{new}");
    assert!(ran.prompt_of("author", 2).contains("- US-002\n"), "the next one reads it");
    assert!(!ran.path("progress.txt").exists(), "nothing at the top");
    assert_eq!(ran.text("scripts/ralph/.last-branch"), "ralph/small\n");
}

/// A progress at the top, where some people keep it while the items lie in a folder, is gone on with there.
#[test]
fn a_progress_at_the_top_stays_at_the_top() {
    let case = project("plans/prd.json", &stories(&[story("A", &json!({}))]), WRITES).file("progress.txt", PROGRESS);
    let ran = case.run().converged();
    assert!(ran.text("progress.txt").starts_with(PROGRESS) && ran.text("progress.txt").contains("- A\n"));
    assert!(!ran.path("plans/progress.txt").exists());
}

#[test]
fn a_new_branch_begins_with_the_last_ones_progress_kept() {
    let case = project(RALPH, &with_branch("ralph/one", &[story("A", &json!({}))]), WRITES);
    let ran = case.file("scripts/ralph/progress.txt", PROGRESS).run().converged();
    let (first, done) = (ran.text("scripts/ralph/progress.txt"), ran.text(RALPH));
    ran.put(RALPH, &with_branch("ralph/two", &[story("B", &json!({}))]));
    let ran = Ran::of(ran.bench, &["run", "--headless"]).converged();
    let archive = ran.path("scripts/ralph/archive");
    let folders: Vec<String> =
        fs::read_dir(&archive).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let [folder] = folders.as_slice() else { panic!("{folders:?}") };
    assert!(folder.ends_with("-one") && folder.len() == "2026-11-19-one".len(), "{folder}");
    assert_eq!(fs::read_to_string(archive.join(folder).join("progress.txt")).unwrap(), first);
    assert_eq!(fs::read_to_string(archive.join(folder).join("prd.json")).unwrap(), done);
    let now = ran.text("scripts/ralph/progress.txt");
    assert!(now.starts_with("# Progress Log\nStarted: ") && now.contains("- B\n") && !now.contains("- A\n"), "{now}");
    assert_eq!(ran.text("scripts/ralph/.last-branch"), "ralph/two\n");
    assert!(ran.ended.stdout.contains("the last branch's are in scripts/ralph/archive/"), "{}", ran.ended.stdout);
    // The same branch again keeps nothing again.
    ran.put(RALPH, &with_branch("ralph/two", &[story("C", &json!({}))]));
    let ran = Ran::of(ran.bench, &["run", "--headless"]).converged();
    assert_eq!(fs::read_dir(&archive).unwrap().count(), 1);
    assert!(ran.text("scripts/ralph/progress.txt").contains("- B\n"));
}

// A file that is done.

#[test]
fn a_finished_file_is_done_and_what_is_red_is_named() {
    let items = [
        story("A", &json!({"passes": true, "testCommand": "test -f out/A"})),
        story("B", &json!({"passes": true, "testCommand": "test -f out/B"})),
    ];
    let done = || project("prd.json", &stories(&items), WRITES).file("out/A", "A\n");
    let ran = done().file("out/B", "B\n").run().expect(0);
    assert!(ran.ended.stdout.contains("Already met: 3 of 3 checks are green"), "{}", ran.ended.stdout);

    let ran = done().file("broken", "").run().expect(3);
    let said = &ran.ended.stderr;
    assert!(
        said.contains("the project's check sound: ") && said.contains("B (Story B): `sh -c test -f out/B`, exit 1"),
        "{said}"
    );
    assert!(!said.contains("A (Story A)") && said.contains("hint: "), "{said}");
    assert!(!ran.path("evidence").exists(), "nothing was started");

    let half = story("A", &json!({"passes": true, "acceptanceCriteria": [{"text": "x", "passes": false}]}));
    let ran = project("prd.json", &stories(&[half]), WRITES).run().expect(3);
    assert!(ran.ended.stderr.contains("A says that it passes, but 1 of its 1 criteria"), "{}", ran.ended.stderr);
}
