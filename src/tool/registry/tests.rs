//! Every tool, through the one way in, on real files.

use std::fs;

use serde_json::json;

use super::*;

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
        run_marker: format!("tools-{}", crate::tool::process::new_call_id()),
        cancel: CancellationToken::new(),
        protected: vec!["AGENTS.md".into(), "evidence/".into()],
    };
    Bench { folder, ctx }
}

impl Bench {
    fn run(&self, tool: &str, input: Value) -> ToolOutcome {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
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
    let names = |access| {
        catalogue(access)
            .iter()
            .map(|tool| tool.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(Access::ReadOnly),
        ["glob_search", "grep_search", "read_file"]
    );
    let all = [
        "bash",
        "edit_file",
        "glob_search",
        "grep_search",
        "read_file",
        "write_file",
    ];
    assert_eq!(names(Access::ReadWrite), all);
    for tool in catalogue(Access::ReadWrite) {
        assert_eq!(
            tool.input_schema["additionalProperties"], false,
            "{}",
            tool.name
        );
        assert_eq!(tool.input_schema["type"], "object");
        assert!(
            tool.input_schema.get("$schema").is_none() && tool.input_schema.get("title").is_none()
        );
        for (name, field) in tool.input_schema["properties"].as_object().unwrap() {
            assert!(field["type"].is_string(), "{} {name}: {field}", tool.name);
        }
    }
    let bash = &catalogue(Access::ReadWrite)[0].input_schema;
    assert_eq!(bash["required"], json!(["command"]));
    assert_eq!(bash["properties"]["timeout_seconds"]["type"], "integer");
    let mut bench = bench();
    bench.ctx.access = Access::ReadOnly;
    for tool in ["bash", "write_file", "edit_file"] {
        assert!(
            bench
                .bad(tool, json!({}))
                .starts_with(&format!("Tool '{tool}' not found"))
        );
    }
}

#[test]
fn malformed_inputs_are_told() {
    let bench = bench();
    for tool in catalogue(Access::ReadWrite) {
        let field = tool.input_schema["required"][0]
            .as_str()
            .unwrap()
            .to_owned();
        let inputs = [
            json!(null),
            json!(3),
            json!("x"),
            json!([1]),
            json!({}),
            json!({ &field: 7 }),
            json!({ &field: "x", "bogus": 1 }),
        ];
        for input in inputs {
            let text = bench.bad(tool.name, input.clone());
            assert!(
                text.starts_with("Invalid input for") && text.contains("Expected {"),
                "{input}: {text}"
            );
            assert!(text.contains(&format!("\"{field}\": string")), "{text}");
        }
    }
    let text = bench.bad(&format!("evil\x1b[2J\n{}", "x".repeat(5000)), json!({}));
    assert!(
        text.starts_with("Tool 'evil")
            && text.len() < 400
            && !text.contains('\x1b')
            && !text.contains('\n')
    );
    assert!(bench.bad("bash", json!({"command": " "})).contains("empty"));
    assert!(
        bench
            .bad("bash", json!({"command": "ls", "timeout_seconds": 0}))
            .contains("timeout_seconds")
    );
    assert!(
        bench
            .bad("bash", json!({"command": "ls", "timeout_seconds": -1}))
            .contains("Expected")
    );
    assert!(
        bench
            .bad("grep_search", json!({"pattern": "("}))
            .contains("regular expression")
    );
    assert!(
        bench
            .bad("grep_search", json!({"pattern": "x{1000}{1000}{1000}"}))
            .contains("regular expression")
    );
    assert!(
        bench
            .bad("glob_search", json!({"pattern": "[a"}))
            .contains("glob")
    );
    assert!(
        bench
            .bad("glob_search", json!({"pattern": "*", "path": ".."}))
            .contains("..")
    );
}

#[test]
fn bash_shows_what_a_terminal_would() {
    let bench = bench();
    bench.file("here", "");
    let outcome = bench.run(
        "bash",
        json!({"command": "echo a; echo b >&2; echo c; ls; exit 3"}),
    );
    assert_eq!(outcome.text, "a\nb\nc\nhere\n[exit code 3]");
    assert_eq!(
        (outcome.exit_code, outcome.is_error, outcome.total_bytes),
        (Some(3), true, 11)
    );
    let fine = bench.run("bash", json!({"command": "printf x"}));
    assert_eq!(
        (fine.text.as_str(), fine.is_error),
        ("x\n[exit code 0]", false)
    );
    assert!(
        bench
            .bad("bash", json!({"command": "echo 'open"}))
            .contains("[exit code")
    );
}

#[test]
fn bash_is_bounded_in_time_and_size() {
    let mut bench = bench();
    bench.ctx.limits.bash_timeout_max = Duration::from_millis(200);
    let slow = bench.run(
        "bash",
        json!({"command": "echo begun; setsid sleep 600 & sleep 600", "timeout_seconds": 9999}),
    );
    assert!(
        slow.text.contains("timed out") && slow.is_error && slow.exit_code.is_none(),
        "{}",
        slow.text
    );
    assert!(crate::tool::process::survivors(&bench.ctx.run_marker).is_empty());
    bench.ctx.limits = Limits {
        model_text_bytes: 100,
        keep_bytes: 1000,
        ..Limits::default()
    };
    let long = bench.run(
        "bash",
        json!({"command": "head -c 100000 /dev/zero | tr '\\0' x; echo end"}),
    );
    assert!(
        long.text.len() < 250 && long.text.ends_with("xend\n[exit code 0]"),
        "{}",
        long.text
    );
    assert!(long.truncated && long.total_bytes == 100_004 && long.output.len() < 1100);
}

#[test]
fn a_cancelled_call_says_so() {
    let bench = bench();
    bench.file("a", "x");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
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
    assert!(crate::tool::process::survivors(&bench.ctx.run_marker).is_empty());
    assert!(bench.run("read_file", json!({"path": "a"})).cancelled);
}

#[test]
fn read_file_by_range() {
    let mut bench = bench();
    bench.file("a.txt", "one\ntwo\nthree");
    assert_eq!(
        bench.good("read_file", json!({"path": "a.txt"})),
        "     1\tone\n     2\ttwo\n     3\tthree\n"
    );
    let part = bench.good(
        "read_file",
        json!({"path": "a.txt", "offset": 2, "limit": 1}),
    );
    assert_eq!(
        part,
        "     2\ttwo\n[the file goes on (13 bytes in all); continue with offset=3]\n"
    );
    assert!(
        bench
            .bad("read_file", json!({"path": "a.txt", "offset": 4}))
            .contains("has 3 lines")
    );
    bench.bad("read_file", json!({"path": "a.txt", "offset": 0}));
    bench.bad("read_file", json!({"path": "a.txt", "limit": 0}));
    assert!(
        bench
            .bad("read_file", json!({"path": "none"}))
            .contains("does not exist")
    );
    assert!(
        bench
            .bad("read_file", json!({"path": "/etc/passwd"}))
            .contains("outside the workspace")
    );
    bench.file("bin", b"\x7fELF\0\0\xff");
    assert_eq!(
        bench.good("read_file", json!({"path": "bin"})),
        "[binary file, ELF program or library, 7 bytes; not shown]"
    );
    bench.file("empty", "");
    assert!(
        bench
            .good("read_file", json!({"path": "empty"}))
            .contains("empty")
    );
    // One giant line, then a last one: bounded, and the last one can be reached.
    bench.file("wide", format!("{}\nlast\n", "x".repeat(3_000_000)));
    let wide = bench.good("read_file", json!({"path": "wide"}));
    assert!(
        wide.len() < 5000
            && wide.contains("line of 3000000 bytes cut")
            && wide.ends_with("     2\tlast\n")
    );
    // Many lines: pages join without a gap.
    bench.ctx.limits.model_text_bytes = 500;
    let lines: Vec<String> = (1..=100).map(|n| format!("line {n}")).collect();
    bench.file("long", lines.join("\n"));
    let (mut offset, mut seen) = (1, Vec::new());
    loop {
        let page = bench.good("read_file", json!({"path": "long", "offset": offset}));
        seen.extend(
            page.lines()
                .filter_map(|line| line.split_once('\t'))
                .map(|(_, line)| line.to_owned()),
        );
        match page.split_once("offset=") {
            Some((_, next)) => offset = next.trim().trim_end_matches(']').parse::<u64>().unwrap(),
            None => break,
        }
    }
    assert_eq!(seen, lines);
}

#[test]
fn write_file_creates_and_replaces() {
    let mut bench = bench();
    assert_eq!(
        bench.good("write_file", json!({"path": "a/b.txt", "content": "hello"})),
        "Created a/b.txt (5 bytes)"
    );
    assert!(
        bench
            .good("write_file", json!({"path": "a/b.txt", "content": "x"}))
            .starts_with("Replaced")
    );
    assert_eq!(bench.content("a/b.txt"), "x");
    assert!(
        bench
            .bad("write_file", json!({"path": "evidence/x", "content": ""}))
            .contains("protected")
    );
    assert!(
        bench
            .bad("write_file", json!({"path": ".git/config", "content": ""}))
            .contains("git")
    );
    assert!(
        bench
            .bad("write_file", json!({"path": "../x", "content": ""}))
            .contains("..")
    );
    bench.ctx.limits.write_file_bytes = 3;
    assert!(
        bench
            .bad("write_file", json!({"path": "a/b.txt", "content": "four"}))
            .contains("3")
    );
    assert_eq!(bench.content("a/b.txt"), "x");
}

#[test]
fn edit_file_is_exact_and_unique() {
    let bench = bench();
    let source = "fn main() {\n    let a = 1;\n    let b = 1;\n}\n";
    bench.file("m.rs", source);
    let edit = |old: &str, new: &str, all: bool| json!({"path": "m.rs", "old_string": old, "new_string": new, "replace_all": all});
    let twice = bench.bad("edit_file", edit("= 1;", "= 2;", false));
    assert!(
        twice.contains("occurs 2 times") && twice.contains("lines 2, 3"),
        "{twice}"
    );
    let none = bench.bad("edit_file", edit("let  a = 1", "x", false));
    assert!(
        none.contains("0 times") && none.contains("line is 2") && none.contains("let a = 1;"),
        "{none}"
    );
    let spaces = bench.bad("edit_file", edit("fn main() {\nlet a = 1;", "x", false));
    assert!(spaces.contains("white space"), "{spaces}");
    bench.bad("edit_file", edit("", "x", false));
    bench.bad("edit_file", edit("a", "a", false));
    assert!(
        bench
            .bad(
                "edit_file",
                json!({"path": "none", "old_string": "a", "new_string": "b"})
            )
            .contains("does not exist")
    );
    assert_eq!(bench.content("m.rs"), source);
    bench.good("edit_file", edit("let a = 1;", "let a = 5;", false));
    assert!(
        bench
            .good("edit_file", edit("let ", "const ", true))
            .contains("2 occurrences")
    );
    assert_eq!(
        bench.content("m.rs"),
        "fn main() {\n    const a = 5;\n    const b = 1;\n}\n"
    );
    bench.file("AGENTS.md", "rule");
    assert!(
        bench
            .bad(
                "edit_file",
                json!({"path": "AGENTS.md", "old_string": "rule", "new_string": "x"})
            )
            .contains("protected")
    );
    bench.file("latin", b"caf\xe9");
    assert!(
        bench
            .bad(
                "edit_file",
                json!({"path": "latin", "old_string": "caf", "new_string": "x"})
            )
            .contains("UTF-8")
    );
}

fn searchable() -> Bench {
    let bench = bench();
    bench.file(".gitignore", "target/\n*.log\n");
    for path in [
        "src/b.rs",
        "src/a.rs",
        "src/deep/c.rs",
        "target/t.rs",
        "src/target/u.rs",
        "x.log",
        ".hidden.rs",
        ".git/g.rs",
    ] {
        bench.file(path, "before\nneedle Here\nafter\n");
    }
    bench.file("bin", b"needle\0\n");
    std::os::unix::fs::symlink("/etc", bench.folder.path().join("etc")).unwrap();
    bench
}

#[test]
fn glob_respects_gitignore_and_caps() {
    let mut bench = searchable();
    let find = |bench: &Bench, input: Value| bench.good("glob_search", input);
    assert_eq!(
        find(&bench, json!({"pattern": "*.rs"})),
        ".hidden.rs\nsrc/a.rs\nsrc/b.rs\nsrc/deep/c.rs\n"
    );
    assert_eq!(
        find(&bench, json!({"pattern": "src/*.rs"})),
        "src/a.rs\nsrc/b.rs\n"
    );
    assert_eq!(
        find(&bench, json!({"pattern": "deep/**/*", "path": "src"})),
        "src/deep/c.rs\n"
    );
    assert_eq!(
        find(&bench, json!({"pattern": "*", "path": "src/target"})),
        "No files match.\n"
    );
    assert_eq!(
        find(&bench, json!({"pattern": "passwd"})),
        "No files match.\n"
    );
    assert!(
        bench
            .bad("glob_search", json!({"pattern": "*", "path": "etc"}))
            .contains("leaves the workspace")
    );
    assert!(
        bench
            .bad("glob_search", json!({"pattern": "*", "path": "bin"}))
            .contains("file")
    );
    bench.ctx.limits.search_matches = 2;
    assert!(
        find(&bench, json!({"pattern": "*.rs"}))
            .ends_with("src/a.rs\n[2 of 4 files shown; narrow the pattern]\n")
    );
    bench.ctx.limits = Limits {
        search_files: 1,
        ..Limits::default()
    };
    assert!(find(&bench, json!({"pattern": "*"})).contains("only the first 1 files"));
    bench.ctx.limits = Limits {
        search_depth: 1,
        ..Limits::default()
    };
    assert_eq!(find(&bench, json!({"pattern": "*.rs"})), ".hidden.rs\n");
    assert_eq!(
        find(&bench, json!({"pattern": "*.rs", "path": "src"})),
        "src/a.rs\nsrc/b.rs\n"
    );
}

#[test]
fn grep_respects_gitignore_and_caps() {
    let mut bench = searchable();
    let find = |bench: &Bench, input: Value| bench.good("grep_search", input);
    let all = ".hidden.rs:2:needle Here\nsrc/a.rs:2:needle Here\nsrc/b.rs:2:needle Here\nsrc/deep/c.rs:2:needle Here\n";
    assert_eq!(find(&bench, json!({"pattern": "needle H"})), all);
    assert_eq!(find(&bench, json!({"pattern": "NEEDLE"})), "No matches.\n");
    assert_eq!(
        find(
            &bench,
            json!({"pattern": "NEEDLE h", "case_insensitive": true})
        ),
        all
    );
    assert_eq!(
        find(&bench, json!({"pattern": "^needle", "glob": "a.rs"})),
        "src/a.rs:2:needle Here\n"
    );
    assert_eq!(
        find(&bench, json!({"pattern": "needle", "path": "x.log"})),
        "x.log:2:needle Here\n"
    );
    let around = find(
        &bench,
        json!({"pattern": "needle", "path": "src/a.rs", "context": 1}),
    );
    assert_eq!(
        around,
        "src/a.rs-1-before\nsrc/a.rs:2:needle Here\nsrc/a.rs-3-after\n"
    );
    assert!(
        bench
            .bad(
                "grep_search",
                json!({"pattern": "root", "path": "etc/passwd"})
            )
            .contains("leaves")
    );
    bench.ctx.limits.search_matches = 2;
    let capped = find(&bench, json!({"pattern": "needle H"}));
    assert_eq!(capped.lines().count(), 3);
    assert!(
        capped.ends_with("[stopped after 2 matches; narrow the search]\n"),
        "{capped}"
    );
    bench.file("wide.txt", "w".repeat(2_000_000));
    assert!(find(&bench, json!({"pattern": "w", "path": "wide.txt"})).len() < 700);
}
