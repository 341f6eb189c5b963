//! The tools that search.

use super::*;

fn searchable() -> Bench {
    let bench = bench();
    bench.file(".gitignore", "target/\n*.log\n");
    for path in
        ["src/b.rs", "src/a.rs", "src/deep/c.rs", "target/t.rs", "src/target/u.rs", "x.log", ".hidden.rs", ".git/g.rs"]
    {
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
    assert_eq!(find(&bench, json!({"pattern": "*.rs"})), ".hidden.rs\nsrc/a.rs\nsrc/b.rs\nsrc/deep/c.rs\n");
    assert_eq!(find(&bench, json!({"pattern": "src/*.rs"})), "src/a.rs\nsrc/b.rs\n");
    assert_eq!(find(&bench, json!({"pattern": "deep/**/*", "path": "src"})), "src/deep/c.rs\n");
    assert_eq!(find(&bench, json!({"pattern": "*", "path": "src/target"})), "No files match.\n");
    assert_eq!(find(&bench, json!({"pattern": "passwd"})), "No files match.\n");
    assert!(bench.bad("glob_search", json!({"pattern": "*", "path": "etc"})).contains("leaves the workspace"));
    assert!(bench.bad("glob_search", json!({"pattern": "*", "path": "bin"})).contains("file"));
    bench.ctx.limits.search_matches = 2;
    assert!(find(&bench, json!({"pattern": "*.rs"})).ends_with("src/a.rs\n[2 of 4 files shown; narrow the pattern]\n"));
    bench.ctx.limits = Limits { search_files: 1, ..Limits::default() };
    assert!(find(&bench, json!({"pattern": "*"})).contains("only the first 1 files"));
    bench.ctx.limits = Limits { search_depth: 1, ..Limits::default() };
    assert_eq!(find(&bench, json!({"pattern": "*.rs"})), ".hidden.rs\n");
    assert_eq!(find(&bench, json!({"pattern": "*.rs", "path": "src"})), "src/a.rs\nsrc/b.rs\n");
}

#[test]
fn grep_respects_gitignore_and_caps() {
    let mut bench = searchable();
    let find = |bench: &Bench, input: Value| bench.good("grep_search", input);
    let all = ".hidden.rs:2:needle Here\nsrc/a.rs:2:needle Here\nsrc/b.rs:2:needle Here\nsrc/deep/c.rs:2:needle Here\n";
    assert_eq!(find(&bench, json!({"pattern": "needle H"})), all);
    assert_eq!(find(&bench, json!({"pattern": "NEEDLE"})), "No matches.\n");
    assert_eq!(find(&bench, json!({"pattern": "NEEDLE h", "case_insensitive": true})), all);
    assert_eq!(find(&bench, json!({"pattern": "^needle", "glob": "a.rs"})), "src/a.rs:2:needle Here\n");
    assert_eq!(find(&bench, json!({"pattern": "needle", "path": "x.log"})), "x.log:2:needle Here\n");
    let around = find(&bench, json!({"pattern": "needle", "path": "src/a.rs", "context": 1}));
    assert_eq!(around, "src/a.rs-1-before\nsrc/a.rs:2:needle Here\nsrc/a.rs-3-after\n");
    assert!(bench.bad("grep_search", json!({"pattern": "root", "path": "etc/passwd"})).contains("leaves"));
    bench.ctx.limits.search_matches = 2;
    let capped = find(&bench, json!({"pattern": "needle H"}));
    assert_eq!(capped.lines().count(), 3);
    assert!(capped.ends_with("[stopped after 2 matches; narrow the search]\n"), "{capped}");
    bench.file("wide.txt", "w".repeat(2_000_000));
    assert!(find(&bench, json!({"pattern": "w", "path": "wide.txt"})).len() < 700);
}
