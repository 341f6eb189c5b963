//! The tools that read, write and edit one file.

use super::*;

#[test]
fn read_file_by_range() {
    let mut bench = bench();
    bench.file("a.txt", "one\ntwo\nthree");
    assert_eq!(bench.good("read_file", json!({"path": "a.txt"})), "     1\tone\n     2\ttwo\n     3\tthree\n");
    let part = bench.good("read_file", json!({"path": "a.txt", "offset": 2, "limit": 1}));
    assert_eq!(part, "     2\ttwo\n[the file goes on (13 bytes in all); continue with offset=3]\n");
    assert!(bench.bad("read_file", json!({"path": "a.txt", "offset": 4})).contains("has 3 lines"));
    bench.bad("read_file", json!({"path": "a.txt", "offset": 0}));
    bench.bad("read_file", json!({"path": "a.txt", "limit": 0}));
    assert!(bench.bad("read_file", json!({"path": "none"})).contains("does not exist"));
    assert!(bench.bad("read_file", json!({"path": "/etc/passwd"})).contains("outside the workspace"));
    bench.file("bin", b"\x7fELF\0\0\xff");
    assert_eq!(
        bench.good("read_file", json!({"path": "bin"})),
        "[binary file, ELF program or library, 7 bytes; not shown]"
    );
    bench.file("empty", "");
    assert!(bench.good("read_file", json!({"path": "empty"})).contains("empty"));
    // One giant line, then a last one: bounded, and the last one can be reached.
    bench.file("wide", format!("{}\nlast\n", "x".repeat(3_000_000)));
    let wide = bench.good("read_file", json!({"path": "wide"}));
    assert!(wide.len() < 5000 && wide.contains("line of 3000000 bytes cut") && wide.ends_with("     2\tlast\n"));
    // Many lines: pages join without a gap.
    bench.ctx.limits.model_text_bytes = 500;
    let lines: Vec<String> = (1..=100).map(|n| format!("line {n}")).collect();
    bench.file("long", lines.join("\n"));
    let (mut offset, mut seen) = (1, Vec::new());
    loop {
        let page = bench.good("read_file", json!({"path": "long", "offset": offset}));
        seen.extend(page.lines().filter_map(|line| line.split_once('\t')).map(|(_, line)| line.to_owned()));
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
    assert_eq!(bench.good("write_file", json!({"path": "a/b.txt", "content": "hello"})), "Created a/b.txt (5 bytes)");
    assert!(bench.good("write_file", json!({"path": "a/b.txt", "content": "x"})).starts_with("Replaced"));
    assert_eq!(bench.content("a/b.txt"), "x");
    assert!(bench.bad("write_file", json!({"path": "evidence/x", "content": ""})).contains("protected"));
    assert!(bench.bad("write_file", json!({"path": ".git/config", "content": ""})).contains("git"));
    assert!(bench.bad("write_file", json!({"path": "../x", "content": ""})).contains(".."));
    bench.ctx.limits.write_file_bytes = 3;
    assert!(bench.bad("write_file", json!({"path": "a/b.txt", "content": "four"})).contains("3"));
    assert_eq!(bench.content("a/b.txt"), "x");
}

#[test]
fn edit_file_is_exact_and_unique() {
    let bench = bench();
    let source = "fn main() {\n    let a = 1;\n    let b = 1;\n}\n";
    bench.file("m.rs", source);
    let edit = |old: &str, new: &str, all: bool| json!({"path": "m.rs", "old_string": old, "new_string": new, "replace_all": all});
    let twice = bench.bad("edit_file", edit("= 1;", "= 2;", false));
    assert!(twice.contains("occurs 2 times") && twice.contains("lines 2, 3"), "{twice}");
    let none = bench.bad("edit_file", edit("let  a = 1", "x", false));
    assert!(none.contains("0 times") && none.contains("line is 2") && none.contains("let a = 1;"), "{none}");
    let spaces = bench.bad("edit_file", edit("fn main() {\nlet a = 1;", "x", false));
    assert!(spaces.contains("white space"), "{spaces}");
    bench.bad("edit_file", edit("", "x", false));
    bench.bad("edit_file", edit("a", "a", false));
    assert!(
        bench
            .bad("edit_file", json!({"path": "none", "old_string": "a", "new_string": "b"}))
            .contains("does not exist")
    );
    assert_eq!(bench.content("m.rs"), source);
    bench.good("edit_file", edit("let a = 1;", "let a = 5;", false));
    assert!(bench.good("edit_file", edit("let ", "const ", true)).contains("2 occurrences"));
    assert_eq!(bench.content("m.rs"), "fn main() {\n    const a = 5;\n    const b = 1;\n}\n");
    bench.file("AGENTS.md", "rule");
    assert!(
        bench
            .bad("edit_file", json!({"path": "AGENTS.md", "old_string": "rule", "new_string": "x"}))
            .contains("protected")
    );
    bench.file("latin", b"caf\xe9");
    assert!(bench.bad("edit_file", json!({"path": "latin", "old_string": "caf", "new_string": "x"})).contains("UTF-8"));
}
