//! What the words of real tools lead to: the right detour, the tool's own fix, an end before anything is spent. Agents
//! are programs here, and checks are real tools.

use serde_json::{Value, json};

use crate::case::{Case, Ran, critique, report, write};

const PYTHON: &str = "/usr/bin/python3";

/// A program that does `work` and prints what its role hands in.
fn program(work: &str, handed_in: &Value) -> Value {
    let script = format!("cat >/dev/null; {work}; printf '%s\\n' '```json' '{}' '```'", handed_in["input"]);
    json!({"backend": "command", "command": ["sh", "-c", script]})
}

/// A microloop whose author, critic and fixer are programs. The critic is content: the check has the word.
fn programs(check: &Value, author: &str, fixer: &str) -> Case {
    let agents = json!({
        "hand": program(author, &report(None)),
        "judge": program(":", &critique("VERIFIED", true, json!([]))),
        "mender": {"backend": "command", "command": ["sh", "-c", format!("cat >/dev/null; {fixer}; echo Done.")]},
    });
    Case::micro()
        .declare("acceptance_criteria", json!([{"id": "sound", "text": "It is sound.", "check": check}]))
        .declare("agents", agents)
        .declare("roles", json!({"author": "hand", "critic": "judge", "fixer": "mender"}))
}

/// Another comment in every pass, and nothing else.
const TINKERS: &str = "echo \"# again\" >> app.py";

/// The example of the seed: `missing_import_os`, twice.
#[test]
fn a_name_that_nothing_imports_goes_to_the_import_fixer() {
    let mends = "printf 'import os\\n%s\\n' \"$(cat app.py)\" > app.new && mv app.new app.py";
    let case = programs(&json!([PYTHON, "check.py"]), TINKERS, mends)
        .file("check.py", "import app\n\nassert app.here()\n")
        .file("app.py", "def here():\n    return os.getcwd()\n");
    let ran = case.run().converged();
    assert_eq!(ran.routes(), ["LOOP", "DETOUR import-fixer", "CONTINUE"]);
    assert!(ran.text("app.py").starts_with("import os\n"));
}

const FORMATTER: &str = "/usr/bin/gofmt";

/// A Go project whose author never formats; `None` where there is no gofmt, which is said.
fn unformatted(check: &str) -> Option<Case> {
    if !std::path::Path::new(FORMATTER).exists() {
        eprintln!("skipped: {FORMATTER} is not there");
        return None;
    }
    let case = programs(&json!(["sh", "-c", check]), "echo '// again' >> a.go", "touch fixer-was-called");
    Some(case.file("go.mod", "module example.org/app\n").file("a.go", "package app\n\nfunc  F( ) {}\n"))
}

const LISTS: &str = "found=$(gofmt -l .); echo \"$found\"; test -z \"$found\"";

/// No agent is paid for what the tool does by itself.
#[test]
fn a_formatter_mends_what_it_complains_of() {
    let Some(case) = unformatted(LISTS) else { return };
    let ran = case.run().converged();
    assert_eq!(ran.routes(), ["LOOP", "DETOUR gofmt", "CONTINUE"]);
    assert!(ran.text("a.go").contains("func F() {}\n"), "{}", ran.text("a.go"));
    assert!(!ran.bench.workspace.join("fixer-was-called").exists());
    let detour = ran.events("probe.started").into_iter().find(|data| data["phase"] == "detour").unwrap();
    assert_eq!(detour["argv"], json!(["gofmt", "-w", "."]));
}

/// Its own fix once; if that did not help, the agent of the catalogue has a look.
#[test]
fn a_fix_that_does_not_help_is_not_repeated() {
    let Some(case) = unformatted("echo a.go; exit 1") else { return };
    let routes = case.set("flow", json!("build")).run().routes();
    assert!(routes.contains(&"DETOUR auto-linter".to_owned()), "{routes:?}");
    assert_eq!(routes.iter().filter(|route| *route == "DETOUR gofmt").count(), 1, "{routes:?}");
}

/// A declared detour is what people want.
#[test]
fn a_declared_detour_comes_before_the_tools_own() {
    let detours = json!([{"for": "lint_errors", "command": ["sh", "-c", "gofmt -w . && touch ours"]}]);
    let Some(case) = unformatted(LISTS) else { return };
    let ran = case.set("detours", detours).run().converged();
    assert_eq!(ran.routes(), ["LOOP", "DETOUR auto-linter", "CONTINUE"]);
    assert!(ran.bench.workspace.join("ours").exists());
}

#[track_caller]
fn stopped_before_anybody_was_called(ran: Ran, words: &[&str]) {
    let ran = ran.ends(1).is("EXIT_BLOCKED", "ESCALATED");
    let detail = ran.detail();
    assert!(detail.starts_with("MISSING_SENSOR") && words.iter().all(|word| detail.contains(word)), "{detail}");
    assert!(ran.called().is_empty(), "{:?}", ran.called());
    assert!(ran.ended.stdout.contains(words[0]), "{}", ran.ended.stdout);
}

#[test]
fn a_program_that_is_missing_behind_make_or_a_shell_ends_it_before_anything_is_spent() {
    let make = "check:\n\tno-such-linter src\n";
    let ran = programs(&json!(["make", "check"]), TINKERS, ":").file("Makefile", make).run();
    stopped_before_anybody_was_called(ran, &["`no-such-linter`", "install `no-such-linter`"]);
    let package = r#"{"devDependencies": {"no-such-runner": "1"}, "scripts": {"test": "no-such-runner"}}"#;
    let ran = programs(&json!(["sh", "-c", "no-such-runner --all"]), TINKERS, ":").file("package.json", package).run();
    stopped_before_anybody_was_called(ran, &["`no-such-runner`", "`npm install`"]);
    let module = format!("{PYTHON} -S -m pytest -q");
    let ran = programs(&json!(["sh", "-c", module]), TINKERS, ":").run();
    stopped_before_anybody_was_called(ran, &["`pytest`", "`pip install pytest`"]);
}

#[test]
fn a_missing_program_stops_items_too() {
    let mut case = Case::prd(&["A"]).file("Makefile", "check:\n\tno-such-linter src\n");
    case.declared["acceptance_criteria"][0]["check"] = json!(["make", "check"]);
    stopped_before_anybody_was_called(case.run(), &["`no-such-linter`"]);
}

/// The check of one item is seen when its turn comes; what was done before stays done.
#[test]
fn a_missing_program_of_one_item_is_said_before_its_author_is_called() {
    let case = Case::prd(&["A", "B"]).prd_item("B", json!({"check": ["sh", "-c", "no-such-linter b.txt"]}));
    let ran = case.run().ends(1).is("EXIT_BLOCKED", "ESCALATED");
    assert!(ran.detail().contains("`check of item B` needs `no-such-linter`"), "{}", ran.detail());
    assert_eq!((ran.passing(), ran.called()), (vec!["A".to_owned()], vec!["author A".into(), "critic A".into()]));
}

/// What the work is to make is not there before it.
#[test]
fn work_that_makes_the_missing_thing_begins() {
    let make = "printf '#!/bin/sh\\ntrue\\n' > count && chmod +x count";
    let ran = programs(&json!(["sh", "-c", "./count < /dev/null"]), make, ":").run().converged();
    assert_eq!(ran.routes(), ["CONTINUE"]);
    let module = "mkdir -p shop && echo 'print(1)' > shop/__main__.py";
    programs(&json!([PYTHON, "-m", "shop"]), module, ":").run().converged();
}

/// Once it is installed, starting again is all there is to do.
#[test]
fn after_the_installation_the_run_begins() {
    let ran = Case::micro()
        .declare("acceptance_criteria", json!([{"id": "word", "text": "It has the word.", "check": ["make", "check"]}]))
        .file("Makefile", "export PATH := $(CURDIR)/bin:$(PATH)\ncheck:\n\tno-such-linter a.txt\n")
        .writes(1, "A\n")
        .says(1, critique("VERIFIED", false, json!([])))
        .run()
        .ends(1);
    let bench = ran.bench.file("bin/no-such-linter", "#!/bin/sh\ngrep -q A \"$1\"\n");
    std::fs::set_permissions(
        bench.workspace.join("bin/no-such-linter"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    Ran::of(bench, &["run", "--headless"]).converged();
}

/// A check that formats what it looks at; a second time it finds nothing to do.
const FORMATS: &str = "sed -i 's/  */ /g' a.txt && grep -q '^A b$' a.txt";

fn formatting() -> Case {
    let mut case = Case::prd(&["A"]).prd_item("A", json!({"check": ["sh", "-c", "grep -q A a.txt"]}));
    case.declared["acceptance_criteria"][0]["check"] = json!(["sh", "-c", FORMATS]);
    case.author("A", Some(1), &[write("a.txt", "A   b\n"), report(None)])
}

#[test]
fn a_check_that_formats_is_certified_where_it_has_a_layer_of_its_own() {
    let ran = formatting().run().converged();
    assert_eq!((ran.passing(), ran.text("a.txt").as_str()), (vec!["A".to_owned()], "A   b\n"));
}

/// Without a layer it changes the work that was judged: that is said, and what to do.
#[test]
fn where_it_changes_the_work_itself_the_run_says_so() {
    let ran = formatting().unconfined().run().ends(1).is("EXIT_BLOCKED", "NON_REPRODUCIBLE");
    let detail = ran.detail();
    assert!(detail.contains("a.txt: changed by the checks after it was collected"), "{detail}");
    assert!(detail.contains("`--check`") && detail.contains("writes:"), "{detail}");
    // A check that only looks is certified there, too.
    let mut looks = formatting().unconfined();
    looks.declared["acceptance_criteria"][0]["check"] = json!(["sh", "-c", "grep -q '^A  *b$' a.txt"]);
    looks.run().converged();
}
