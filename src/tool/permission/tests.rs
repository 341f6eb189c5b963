//! The permission table.

use serde_json::json;

use super::*;

fn rules(allow: &[&str], ask: &[&str], deny: &[&str]) -> Rules {
    let own = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect::<Vec<_>>();
    Rules::parse(&own(allow), &own(ask), &own(deny)).unwrap()
}

fn bash(rules: &Rules, command: &str) -> Verdict {
    rules.decide("bash", &json!({ "command": command }))
}

fn denied(rule: &str) -> Verdict {
    Verdict::Denied { rule: rule.to_owned() }
}

fn allowed(rule: &str) -> Verdict {
    Verdict::Allowed { rule: rule.to_owned() }
}

#[test]
fn any_part_that_is_denied_denies_the_whole() {
    let rules = rules(&["bash"], &[], &["bash(rm -rf *)", "shell(git push*)"]);
    let commands = [
        "rm -rf /",
        "rm   -rf\t/",
        "ls && rm -rf /",
        "ls; rm -rf x",
        "ls || rm -rf x",
        "ls | rm -rf x",
        "ls & rm -rf x",
        "ls\nrm -rf x",
        "echo $(rm -rf x)",
        "echo `rm -rf x`",
        "(rm -rf x)",
        "{ rm -rf x; }",
        "cat <(rm -rf x)",
        "sudo rm -rf x",
        "sudo -n rm -rf x",
        "A=1 B=2 rm -rf x",
        "env A=1 rm -rf x",
        "timeout 5 rm -rf x",
        "/bin/rm -rf x",
        "\"rm\" -rf x",
        "r\\m -rf x",
        "rm \\\n-rf x",
        "if true; then rm -rf x; fi",
        "ls &>out rm -rf x",
        ">out rm -rf x",
        "rm -rf x 2>&1",
    ];
    for command in commands {
        assert_eq!(bash(&rules, command), denied("bash(rm -rf *)"), "{command}");
    }
    assert_eq!(bash(&rules, "git push"), denied("shell(git push*)"));
    assert_eq!(bash(&rules, "git push --force"), denied("shell(git push*)"));
    for command in ["rm x", "git status", "echo hi", ""] {
        assert!(matches!(bash(&rules, command), Verdict::Allowed { .. }), "{command}");
    }
}

#[test]
fn allow_needs_every_part() {
    let rules = rules(&["bash(git *)", "bash(cargo test)"], &["bash(curl *)"], &[]);
    assert_eq!(bash(&rules, "git status"), allowed("bash(git *)"));
    assert_eq!(bash(&rules, "git"), allowed("bash(git *)"));
    assert_eq!(bash(&rules, "git status 2>&1"), allowed("bash(git *)"));
    assert_eq!(bash(&rules, "git add . && cargo test"), allowed("bash(git *), bash(cargo test)"));
    assert_eq!(bash(&rules, "git status; make"), allowed("default"));
    assert_eq!(bash(&rules, "git log $(make)"), allowed("default"));
    assert_eq!(bash(&rules, "gitk"), allowed("default"));
    assert_eq!(bash(&rules, "cargo test --all"), allowed("default"));
    assert_eq!(bash(&rules, "git pull && curl x"), Verdict::Ask { rule: "bash(curl *)".to_owned() });
}

#[test]
fn order_is_deny_ask_allow() {
    let all = rules(&["bash"], &["bash(x*)"], &["bash(xy*)"]);
    assert_eq!(bash(&all, "xyz"), denied("bash(xy*)"));
    assert_eq!(bash(&all, "xz"), Verdict::Ask { rule: "bash(x*)".to_owned() });
    assert_eq!(bash(&all, "z"), allowed("bash"));
    assert_eq!(bash(&Rules::default(), "z"), allowed("default"));
    assert_eq!(bash(&rules(&[], &[], &["*"]), "z"), denied("*"));
}

#[test]
fn paths() {
    let rules = rules(&["write(src/*)"], &["edit(docs/*)"], &["write(secrets/*)", "read(**/.env)"]);
    let on = |tool: &str, path: &str| rules.decide(tool, &json!({ "path": path }));
    for path in ["secrets/a", "./secrets/a", "x/../secrets/a/b", "/work/secrets/a", "secrets//a"] {
        assert_eq!(on("write_file", path), denied("write(secrets/*)"), "{path}");
        assert_eq!(on("edit_file", path), denied("write(secrets/*)"), "{path}");
    }
    assert_eq!(on("read_file", "secrets/a"), allowed("default"));
    assert_eq!(on("read_file", "a/.env"), denied("read(**/.env)"));
    assert_eq!(on("read_file", ".env"), denied("read(**/.env)"));
    assert_eq!(on("grep_search", ".env"), denied("read(**/.env)"));
    assert_eq!(on("write_file", "docs/a"), Verdict::Ask { rule: "edit(docs/*)".to_owned() });
    assert_eq!(on("write_file", "src/a/b"), allowed("write(src/*)"));
    assert_eq!(on("write_file", "src/../a"), allowed("default"));
}

#[test]
fn odd_inputs_are_decided_too() {
    let rules = rules(&["bash(git *)"], &[], &["read(secret)"]);
    for input in [json!(null), json!([]), json!({ "command": 3 }), json!({ "path": {} }), json!("rm")] {
        for tool in ["bash", "read_file", "nonsense"] {
            assert_eq!(rules.decide(tool, &input), allowed("default"));
        }
    }
}

#[test]
fn bad_rules_are_refused() {
    let parse = |rule: &str| Rules::parse(&[], &[], &[rule.to_owned()]);
    for rule in ["bash(rm", "bash()", "bash( )", "", "(x)"] {
        assert!(matches!(parse(rule), Err(RuleError::Shape(_))), "{rule}");
    }
    assert!(matches!(parse("bsh(rm)"), Err(RuleError::Tool { .. })));
    assert!(parse(" bash(echo (x)) ").is_ok());
}

#[test]
fn stars_do_not_explode() {
    let pattern = "*a".repeat(50);
    assert!(!matches(&pattern, &"b".repeat(10_000)));
    assert!(wild(b"*", b"") && wild(b"a*b*c", b"aXbYc") && !wild(b"a*b", b"a"));
}
