//! Every tool, through the one way in, on real files.

use std::fs;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;

mod files;
mod output;
mod search;

struct Bench {
    folder: tempfile::TempDir,
    ctx: ToolContext,
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let ctx = ToolContext {
        workspace: folder.path().to_owned(),
        access: Access::ReadWrite,
        limits: Limits::default(),
        run_marker: format!("tools-{}", crate::tool::environment::new_call_id()),
        cancel: CancellationToken::new(),
        protected: vec!["AGENTS.md".into(), "evidence/".into()],
        within: None,
        confinement: None,
        outputs: std::collections::BTreeMap::new(),
    };
    Bench { folder, ctx }
}

impl Bench {
    fn run(&self, tool: &str, input: Value) -> ToolOutcome {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(&self.ctx, tool, &input))
    }

    fn good(&self, tool: &str, input: Value) -> String {
        let outcome = self.run(tool, input);
        assert!(!outcome.is_error, "{}", outcome.text);
        outcome.text
    }

    fn bad(&self, tool: &str, input: Value) -> String {
        let outcome = self.run(tool, input);
        assert!(outcome.is_error, "{}", outcome.text);
        outcome.text
    }

    fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn content(&self, path: &str) -> String {
        fs::read_to_string(self.folder.path().join(path)).unwrap()
    }
}

#[test]
fn catalogue_depends_on_access() {
    let names = |access| catalogue(access, false).iter().map(|tool| tool.name).collect::<Vec<_>>();
    assert_eq!(names(Access::ReadOnly), ["glob_search", "grep_search", "read_file", "read_output"]);
    let all = ["bash", "edit_file", "glob_search", "grep_search", "read_file", "read_output", "write_file"];
    assert_eq!(names(Access::ReadWrite), all);
    let held: Vec<_> = catalogue(Access::ReadOnly, true).iter().map(|tool| tool.name).collect();
    assert_eq!(held, ["bash", "glob_search", "grep_search", "read_file", "read_output"]);
    for tool in catalogue(Access::ReadWrite, false) {
        assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
        assert_eq!(tool.input_schema["type"], "object");
        assert!(tool.input_schema.get("$schema").is_none() && tool.input_schema.get("title").is_none());
        for (name, field) in tool.input_schema["properties"].as_object().unwrap() {
            assert!(field["type"].is_string(), "{} {name}: {field}", tool.name);
        }
    }
    let bash = &catalogue(Access::ReadWrite, false)[0].input_schema;
    assert_eq!(bash["required"], json!(["command"]));
    assert_eq!(bash["properties"]["timeout_seconds"]["type"], "integer");
    let mut bench = bench();
    bench.ctx.access = Access::ReadOnly;
    for tool in ["bash", "write_file", "edit_file"] {
        assert!(bench.bad(tool, json!({})).starts_with(&format!("Tool '{tool}' not found")));
    }
}

#[test]
fn malformed_inputs_are_told() {
    let bench = bench();
    for tool in catalogue(Access::ReadWrite, false) {
        let field = tool.input_schema["required"][0].as_str().unwrap().to_owned();
        let kind = tool.input_schema["properties"][&field]["type"].as_str().unwrap().to_owned();
        let (wrong, right) = if kind == "integer" { (json!("x"), json!(7)) } else { (json!(7), json!("x")) };
        let inputs = [
            json!(null),
            json!(3),
            json!("x"),
            json!([1]),
            json!({}),
            json!({ &field: wrong }),
            json!({ &field: right, "bogus": 1 }),
        ];
        for input in inputs {
            let text = bench.bad(tool.name, input.clone());
            assert!(text.starts_with("Invalid input for") && text.contains("Expected {"), "{input}: {text}");
            assert!(text.contains(&format!("\"{field}\": {kind}")), "{text}");
        }
    }
    let text = bench.bad(&format!("evil\x1b[2J\n{}", "x".repeat(5000)), json!({}));
    assert!(text.starts_with("Tool 'evil") && text.len() < 400 && !text.contains('\x1b') && !text.contains('\n'));
    assert!(bench.bad("bash", json!({"command": " "})).contains("empty"));
    assert!(bench.bad("bash", json!({"command": "ls", "timeout_seconds": 0})).contains("timeout_seconds"));
    assert!(bench.bad("bash", json!({"command": "ls", "timeout_seconds": -1})).contains("Expected"));
    assert!(bench.bad("grep_search", json!({"pattern": "("})).contains("regular expression"));
    assert!(bench.bad("grep_search", json!({"pattern": "x{1000}{1000}{1000}"})).contains("regular expression"));
    assert!(bench.bad("glob_search", json!({"pattern": "[a"})).contains("glob"));
    assert!(bench.bad("glob_search", json!({"pattern": "*", "path": ".."})).contains(".."));
}

#[test]
fn bash_shows_what_a_terminal_would() {
    let bench = bench();
    bench.file("here", "");
    let outcome = bench.run("bash", json!({"command": "echo a; echo b >&2; echo c; ls; exit 3"}));
    assert_eq!(outcome.text, "a\nb\nc\nhere\n[exit code 3]");
    assert_eq!((outcome.exit_code, outcome.is_error, outcome.total_bytes), (Some(3), true, 11));
    let fine = bench.run("bash", json!({"command": "printf x"}));
    assert_eq!((fine.text.as_str(), fine.is_error), ("x\n[exit code 0]", false));
    assert!(bench.bad("bash", json!({"command": "echo 'open"})).contains("[exit code"));
}

#[test]
fn bash_is_bounded_in_time_and_size() {
    let mut bench = bench();
    bench.ctx.limits.bash_timeout_max = Duration::from_millis(200);
    let slow =
        bench.run("bash", json!({"command": "echo begun; setsid sleep 600 & sleep 600", "timeout_seconds": 9999}));
    assert!(slow.text.contains("timed out") && slow.is_error && slow.exit_code.is_none(), "{}", slow.text);
    assert!(crate::tool::process::survivors(crate::tool::process::Marker::Run(&bench.ctx.run_marker)).is_empty());
    bench.ctx.limits = Limits { model_text_bytes: 100, keep_bytes: 1000, ..Limits::default() };
    let long = bench.run("bash", json!({"command": "head -c 100000 /dev/zero | tr '\\0' x; echo end"}));
    assert!(long.text.len() < 250 && long.text.ends_with("xend\n[exit code 0]"), "{}", long.text);
    assert!(long.truncated && long.total_bytes == 100_004 && long.output.len() < 1100);
}

#[test]
fn a_cancelled_call_says_so() {
    let bench = bench();
    bench.file("a", "x");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(async {
        let input = json!({"command": "touch begun; sleep 600"});
        let call = run(&bench.ctx, "bash", &input);
        let cancel = async {
            while !bench.folder.path().join("begun").exists() {
                tokio::task::yield_now().await;
            }
            bench.ctx.cancel.cancel();
        };
        tokio::join!(call, cancel).0
    });
    assert!(outcome.cancelled && outcome.is_error);
    assert!(crate::tool::process::survivors(crate::tool::process::Marker::Run(&bench.ctx.run_marker)).is_empty());
    assert!(bench.run("read_file", json!({"path": "a"})).cancelled);
}
