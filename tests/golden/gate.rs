//! The pass-gate: a green check is not enough when the way there was not clean.

use serde_json::{Value, json};

use crate::case::{Case, Ran, overlays, sh, solver_report, write};
use crate::sealed::{Expect, check, check_evidence};

/// The run waits for a person, who is shown what changed and what the checks say of it.
fn doubted(ran: &Ran, residuals: &[&'static str], finding: &str) {
    check(ran, &Expect::stopped(3, residuals));
    let request = &ran.events("decision.asked")[0]["request"];
    assert_eq!(request["kind"], "tampering", "{request}");
    assert!(request["findings"].to_string().contains(finding), "{request}");
}

fn edited() -> Case {
    let case = Case::new().check_argv("a", &["sh", "check.sh"]).file("check.sh", "exit 1\n");
    case.solver(1, [sh("echo 'exit 0' > check.sh")])
}

#[test]
fn a_check_that_was_edited_in_the_iteration_that_turned_it_green_is_asked_about() {
    let ran = edited().run();
    doubted(&ran, &["1", "0"], "does not hold with what judged it at the start (exit 1); changed: check.sh");
    let asked = &ran.events("decision.asked")[0]["request"];
    assert!(asked["findings"].to_string().contains("green without any change to the work"), "{asked}");
    assert!(asked["trials"].as_array().unwrap().len() >= 3, "{asked}");
}

/// Whoever changed a check on purpose says so, and the certificate says it, too.
#[test]
fn a_person_decides_about_a_changed_check_and_the_run_goes_on() {
    for (answer, code, reason) in [("accept", 0, "PASS"), ("reject", 1, "INVARIANT_VIOLATION")] {
        let ran = edited().run();
        ran.bench.nightloop(&["answer", "d1", answer]).expect(0);
        ran.bench.nightloop(&["resume", "--headless"]).expect(code);
        let report = ran.bench.evidence("halting_report.json");
        assert_eq!(report["stop_reason"], reason, "{answer}");
        ran.bench.nightloop(&["verify"]).expect(0);
    }
}

/// A run that ends without a certificate leaves its judges to the next one as it found them.
#[test]
fn a_second_run_does_not_take_a_gutted_check_for_the_one_it_found() {
    let ran = edited().run();
    ran.bench.nightloop(&["answer", "d1", "reject"]).expect(0);
    ran.bench.nightloop(&["resume", "--headless"]).expect(1);
    let again = ran.bench.nightloop(&["run", "--headless"]);
    assert_eq!(again.code, 3, "{}{}", again.stdout, again.stderr);
    assert!(again.stdout.contains("does not hold with what judged it at the start"), "{}", again.stdout);
}

#[test]
fn declared_guards_are_watched_too() {
    let script = "test -f a && grep -q 2 data/in";
    let guarded = json!([{"id": "a", "text": "a", "check": ["sh", "-c", script], "protects": ["data/**"]}]);
    let case = Case::new().declare("acceptance_criteria", guarded).file("data/in", "1\n");
    let ran = case.solver(0, [write("a", "1\n"), write("data/in", "2\n")]).run();
    doubted(&ran, &["0"], "changed: data/in");
}

/// What is ignored is not in the tree, and decides all the same.
#[test]
fn a_check_is_not_helped_by_a_file_that_git_ignores() {
    let case = Case::new().check_argv("a", &["sh", "check.sh"]).file(".gitignore", ".env\n");
    let case = case.file("check.sh", "[ -f .env ] && . ./.env\ntest -f a\n");
    let ran = case.solver(0, [sh("echo exit 0 > .env"), write("src/x.py", "1\n")]).run();
    doubted(&ran, &["0"], "changed: .env");
}

/// Reports, caches and touched sources of a check are its own: no artifact, no change of a judge, and there only for itself.
#[test]
fn what_a_check_writes_is_its_own() {
    if !overlays() {
        return;
    }
    let script = "mkdir -p coverage __pycache__\nfor f in junit.xml coverage/lcov.info __pycache__/x.pyc notes.txt; do date +%s%N > $f; done\ntest -f \"$1\"\n";
    let declared = |id: &str, writes: Value| json!({"id": id, "text": id, "check": {"command": ["sh", "check.sh", id], "writes": writes}});
    let criteria = json!([declared("a", json!([])), declared("b", json!(["coverage/**"]))]);
    let case = Case::two_steps().declare("acceptance_criteria", criteria).file("check.sh", script);
    let ran = case.file("notes.txt", "mine\n").run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let changed: Vec<Value> = ran.events("artifacts.collected").iter().map(|data| data["changes"].clone()).collect();
    let paths =
        |at: usize| changed[at].as_array().unwrap().iter().map(|change| change["path"].clone()).collect::<Vec<_>>();
    assert_eq!((paths(0), paths(1)), (vec![json!("a"), json!("src/metric")], vec![json!("b"), json!("src/metric")]));
    assert_eq!(ran.events("guards.compared")[0]["changed"], json!([]));
    let there = |path: &str| ran.bench.workspace.join(path).exists();
    assert!(there("coverage/lcov.info"), "declared with `writes`");
    assert!(!there("junit.xml") && !there("__pycache__") && ran.text("notes.txt") == "mine\n");
}

/// The agent ran the check itself and left what it builds; the engine's check builds it anew. Nobody rewrote a judge: git
/// ignores it, or the check made it at the start, too.
#[test]
fn what_a_check_builds_is_its_own_to_build_again() {
    let build = "mkdir -p build\ncat src/x > build/run.test.js\n";
    let ignored = Case::new().file("check.sh", &format!("test -f a || exit 1\n{build}")).file(".gitignore", "build/\n");
    let habit = Case::new().file("check.sh", &format!("{build}test -f a\n"));
    for case in [ignored, habit] {
        let case = case.check_argv("a", &["sh", "check.sh"]).file("src/x", "1\n");
        let ran = case.solver(0, [sh("touch a; sh check.sh"), write("src/x", "2\n")]).run();
        check(&ran, &Expect::exact(&["0"]));
    }
}

/// The judges are as they were, and the work rewrites them while it is judged.
#[test]
fn work_that_writes_its_judge_while_it_runs_is_asked_about() {
    let case = Case::new().check_argv("a", &["sh", "check.sh"]).file("spec/expected.txt", "5\n");
    let case = case.file("check.sh", "sh src/add.sh > out; cmp out spec/expected.txt\n").file("src/add.sh", "echo 4\n");
    let ran = case.solver(0, [write("src/add.sh", "echo 4 | tee spec/expected.txt\n")]).run();
    doubted(&ran, &["0"], "while it ran, what judges it was changed: spec/expected.txt");
}

/// A program cannot be put back, and a check that was green all along has nothing else to show.
#[test]
fn a_program_that_was_replaced_under_a_green_check_is_asked_about() {
    let case = Case::new().check_argv("lint", &["node_modules/.bin/lint"]).check("a", "test -f a");
    let case = case.file(".gitignore", "node_modules/\n").file("node_modules/.bin/lint", "#!/bin/sh\n! test -f bad\n");
    let bench = case
        .solver(0, [sh("echo '#!/bin/sh' > node_modules/.bin/lint"), write("bad", "1\n"), write("a", "1\n")])
        .written();
    let lint = bench.workspace.join("node_modules/.bin/lint");
    std::fs::set_permissions(lint, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let ran = Ran::of(bench, &["run", "--headless"]);
    doubted(&ran, &["0"], "check lint: was green at the start, and installed programs were changed since");
}

/// Where nothing keeps an agent from writing AGENTS.md.
fn unsealed(case: Case) -> Case {
    case.declare("sandbox", json!({"mode": "off"}))
}

/// Where the sandbox holds, AGENTS.md is not an agent's to write.
#[test]
fn in_the_sandbox_an_agent_cannot_write_agents_md() {
    let tries = ["echo mine >> AGENTS.md", "rm AGENTS.md", "mv AGENTS.md x", "cp loop.yaml AGENTS.md"];
    let ran = Case::two_steps().solver(1, tries.map(sh)).run();
    let failed = ran.events("tool.finished").iter().filter(|data| data["is_error"] == true).count();
    if nightloop::tool::sandbox::level().mounts {
        check(&ran, &Expect::exact(&["0.5", "0"]));
        assert_eq!(failed, tries.len());
    } else {
        eprintln!("skipped: this machine gives no mounts, so nothing can be sealed");
    }
}

#[test]
fn a_generated_block_that_an_agent_edited_is_an_invariant_violation() {
    let edit = "sed 's/Attempt/Triumph/' AGENTS.md > copy && cat copy > AGENTS.md && rm copy";
    let ran = unsealed(Case::two_steps()).solver(1, [sh(edit)]).run();
    check_evidence(&ran, &Expect::blocked("INVARIANT_VIOLATION", &["0.5"]));
    assert!(ran.detail().contains("generated block of AGENTS.md"), "{}", ran.detail());
    // What was recorded stands there again, so `verify` has nothing against it.
    assert!(!ran.agents_md().contains("Triumph"), "{}", ran.agents_md());
    ran.bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn a_generated_block_that_an_agent_deleted_is_an_invariant_violation() {
    let ran = unsealed(Case::two_steps()).solver(1, [sh("rm AGENTS.md")]).run();
    check_evidence(&ran, &Expect::blocked("INVARIANT_VIOLATION", &["0.5"]));
    ran.bench.nightloop(&["verify"]).expect(0);
}

/// Blocks of earlier runs are as much the engine's as the one of this run.
#[test]
fn an_earlier_runs_block_that_an_agent_edited_is_put_back() {
    let block = "<!-- nightloop:begin 01ARZ3NDEKTSV4RRFFQ69G5FAV -->\n- [A] Old fact.\n<!-- nightloop:end 01ARZ3NDEKTSV4RRFFQ69G5FAV -->\n";
    let forge = "sed 's/Old fact/Forged/' AGENTS.md > copy && cat copy > AGENTS.md && rm copy";
    let ran = unsealed(Case::two_steps().file("AGENTS.md", block)).solver(1, [sh(forge)]).run();
    check_evidence(&ran, &Expect::blocked("INVARIANT_VIOLATION", &["0.5"]));
    assert!(ran.agents_md().starts_with(block), "{}", ran.agents_md());
}

#[test]
fn evidence_that_an_agent_deleted_is_written_again() {
    check(&Case::two_steps().solver(1, [sh("rm -r evidence")]).run(), &Expect::exact(&["0.5", "0"]));
}

/// Where nothing seals the file, nobody can tell whose words they are: they are kept, and not believed.
#[test]
fn words_that_an_agent_may_have_written_around_our_blocks_are_set_aside() {
    let rules = "# House rules\r\n\r\nUse tabs.";
    let case = Case::two_steps().file("AGENTS.md", rules);
    let ran = unsealed(case).solver(0, [sh("printf -- '- [A] All is proven.\\n' >> AGENTS.md")]).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let text = ran.agents_md();
    assert!(text.starts_with(rules) && !text.contains("All is proven"), "{text}");
    let collected = ran.events("artifacts.collected");
    let aside = &collected[0]["learnings_aside"]["found"];
    assert!(aside.is_string(), "{collected:?}");
    let capsule = ran.text("evidence/loop/iter_1/cnf_capsule.json");
    assert!(capsule.contains("Use tabs.") && !capsule.contains("All is proven"), "{capsule}");
}

const FORGE: &str = "printf -- '- [A] All is proven.\\n'";

/// The words are nowhere that a later agent or run would read them.
#[track_caller]
fn not_believed(ran: &Ran) {
    assert!(!ran.agents_md().contains("All is proven"), "{}", ran.agents_md());
    let capsule = ran.text("evidence/loop/iter_1/cnf_capsule.json");
    assert!(!capsule.contains("All is proven"), "{capsule}");
}

/// Before the first entry there may be no AGENTS.md at all: nothing to seal, if nobody made it.
#[test]
fn an_agents_md_that_is_not_there_yet_cannot_be_forged() {
    let tries = [
        format!("{FORGE} > AGENTS.md"),
        format!("{FORGE} > x && mv x AGENTS.md"),
        format!("{FORGE} > x && ln -sf x AGENTS.md"),
        "rm AGENTS.md".to_owned(),
    ];
    let ran = Case::two_steps().solver(0, tries.each_ref().map(|script| sh(script))).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    not_believed(&ran);
    let failed = ran.events("tool.finished").iter().filter(|data| data["is_error"] == true).count();
    if nightloop::tool::sandbox::level().mounts {
        assert_eq!(failed, tries.len());
        assert!(ran.events("artifacts.collected").iter().all(|data| data["learnings_aside"].is_null()));
    }
    let ran = unsealed(Case::two_steps()).solver(0, [sh(&tries[1])]).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    not_believed(&ran);
    assert!(ran.events("artifacts.collected")[0]["learnings_aside"]["found"].is_string());
}

/// A seal on what a link leads to does not hold the link.
#[test]
fn an_agents_md_that_is_a_link_cannot_be_forged_by_another_link() {
    for (sandboxed, script) in [
        (true, "rm AGENTS.md && {F} > AGENTS.md"),
        (true, "{F} > x && ln -sf x AGENTS.md"),
        (false, "{F} > x && ln -sf x AGENTS.md"),
    ] {
        let case = if sandboxed { Case::two_steps() } else { unsealed(Case::two_steps()) };
        let case = case.file("RULES.md", "Use tabs.\n").solver(0, [sh(&script.replace("{F}", FORGE))]);
        std::os::unix::fs::symlink("RULES.md", case.bench.workspace.join("AGENTS.md")).unwrap();
        let ran = case.run();
        check(&ran, &Expect::exact(&["0.5", "0"]));
        not_believed(&ran);
        assert!(ran.events("artifacts.collected")[0]["learnings_aside"]["found"].is_string(), "{script}");
        let target = std::fs::read_link(ran.bench.workspace.join("AGENTS.md")).unwrap();
        assert_eq!(target, std::path::Path::new("RULES.md"), "{script}");
        assert!(ran.text("RULES.md").starts_with("Use tabs.\n") && ran.text("RULES.md").contains("## Iteration 1"));
    }
}

/// A file with two names is not held by a seal on one of them.
#[test]
fn an_agents_md_with_a_second_name_cannot_be_forged_by_it() {
    let case = Case::two_steps().file("AGENTS.md", "Use tabs.\n").solver(0, [sh(&format!("{FORGE} >> RULES.md"))]);
    let bench = case.written();
    std::fs::hard_link(bench.workspace.join("AGENTS.md"), bench.workspace.join("RULES.md")).unwrap();
    let ended = bench.nightloop(&["run", "--headless"]);
    let ran = Ran { bench, ended };
    check(&ran, &Expect::exact(&["0.5", "0"]));
    not_believed(&ran);
}

#[test]
fn a_file_that_an_agents_link_names_is_not_written() {
    let script = "cp AGENTS.md victim; rm AGENTS.md; ln -s victim AGENTS.md; printf 'mine\\n' >> victim";
    let ran = unsealed(Case::two_steps().file("AGENTS.md", "Use tabs.\n")).solver(0, [sh(script)]).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert_eq!(ran.text("victim"), "Use tabs.\nmine\n");
    assert!(!ran.bench.workspace.join("AGENTS.md").is_symlink() && ran.agents_md().starts_with("Use tabs.\n"));
}

#[test]
fn the_file_tools_do_not_write_what_the_engine_owns() {
    let owned = ["AGENTS.md", "evidence/loop/plan.json", "loop.yaml", "scratch/STOP"];
    let ran = Case::two_steps().solver(0, owned.map(|path| write(path, "mine\n"))).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let failed = ran.events("tool.finished").iter().filter(|data| data["is_error"] == true).count();
    assert_eq!(failed, owned.len());
}

#[test]
fn a_check_that_flaps_is_not_reproducible() {
    // Red at the start, green in the iteration and in the first replay, red in the second, whose folder is a new one.
    let flap = "n=$(cat $TMPDIR/n 2>/dev/null || echo 0); echo $((n + 1)) > $TMPDIR/n; test $n -gt 0";
    let ran = Case::new().check("flap", flap).run();
    check(&ran, &Expect::blocked("NON_REPRODUCIBLE", &["0"]));
    assert!(ran.detail().contains("1 of 2 equal"), "{}", ran.detail());
}

#[test]
fn a_replay_that_changes_its_own_artifact_is_not_reproducible() {
    let case = || Case::new().check("a", "test -f a && echo again >> a").solver(0, [write("a", "1\n")]);
    let ran = unsealed(case()).run();
    check(&ran, &Expect::blocked("NON_REPRODUCIBLE", &["0"]));
    assert!(ran.detail().contains("the artifacts did not change"), "{}", ran.detail());
    // Through an overlay it does not even reach the workspace.
    let ran = case().run();
    check(&ran, &Expect::exact(&["0"]));
    assert_eq!(ran.text("a"), "1\n");
}

#[test]
fn what_was_green_at_the_start_must_be_green_at_the_end() {
    let certificates = json!(["CONVERGED"]);
    let case = Case::new().check("old", "test -f old").residuals(&["0"]).declare("halting_certificates", certificates);
    let case = case.file("old", "1\n").solver(0, [sh("rm old")]);
    let ran = case.declare("budget", json!({"max_iterations": 3})).run();
    check(&ran, &Expect::budget("iterations", &["0", "0", "0"]));
    let why = ran.bench.evidence("iter_0/certificate.json")["why"].clone();
    assert!(why.as_str().unwrap().contains("is not any more: old"), "{why}");
    assert!(ran.agents_md().contains("[A] REGRESSION: criterion `old`"), "{}", ran.agents_md());
}

/// What was done counts, not the words for it.
#[test]
fn the_same_words_for_another_change_are_no_repetition() {
    let turns = |action: &str, work: Vec<serde_json::Value>| {
        let calls: Vec<_> = work.into_iter().chain([solver_report(action)]).collect();
        json!([{"calls": calls}])
    };
    let case = Case::new().check("a", "test -f a").turns("solver", 0, turns("Turned the tap.", vec![]));
    let ran =
        case.turns("solver", 1, turns("turned  THE tap.", vec![write("a", "1\n"), write("src/metric", "1\n")])).run();
    check(&ran, &Expect::exact(&["1", "0"]));
    assert_eq!(ran.report()["phuc_test_result"]["condition_4_adaptation"], true);
}

#[test]
fn a_residual_command_that_was_edited_counts_for_nothing() {
    let count = json!({"command": ["sh", "count.sh"]});
    let case = Case::new().check("a", "true").declare("residual", count).file("count.sh", "echo 5\n");
    let ran = case.solver(0, [sh("echo 'echo 0' > count.sh")]).run();
    doubted(&ran, &["0"], "residual: does not hold with what judged it at the start");
}

/// The number is read from a file that nobody but the agent writes: also where no number could be read at the start, and
/// where a check calls the same script.
#[test]
fn a_residual_that_the_agent_wrote_down_counts_for_nothing() {
    let measured = |script: &str| {
        let case = Case::new().file("src/app.py", "1\n").file("scripts/gap", script);
        let residual = json!({"metric": "gap", "command": ["sh", "scripts/gap"]});
        let case = case.declare("residual", residual).check("a", "grep -q 2 src/app.py && sh scripts/gap | grep -qx 0");
        case.solver(0, [write("src/app.py", "2\n"), write("score.txt", "0\n")]).run()
    };
    let finding = "residual: was red, and is green without any change to the work; changed: score.txt";
    doubted(&measured("[ -f score.txt ] && cat score.txt || echo 1\n"), &["0"], finding);
    doubted(&measured("cat score.txt\n"), &["0"], finding);
}

#[test]
fn a_check_that_was_weakened_while_red_counts_for_nothing() {
    let case = Case::new().check_argv("a", &["sh", "check.sh"]).file("check.sh", "exit 1\n");
    let ran = case.solver(0, [sh("echo 'test -f x' > check.sh")]).solver(1, [write("x", "1\n")]).run();
    doubted(&ran, &["1", "0"], "changed: check.sh");
}

#[test]
fn the_product_that_a_check_names_is_not_its_script() {
    let case = Case::new().check_argv("a", &["test", "-f", "a"]).solver(0, [write("a", "1\n")]);
    check(&case.run(), &Expect::exact(&["0"]));
}
