//! The reader against tables, against random text, and against a real shell.

use std::process::{Command as Process, Stdio};

use proptest::prelude::*;

use super::*;

/// The argvs, holes shown as `□`.
fn argvs(text: &str) -> Vec<Vec<String>> {
    let commands = read(text).unwrap_or_else(|why| panic!("{text}: {why}"));
    let shown = |word: &Word| word.shape().replace(HOLE, "□");
    let argvs = commands.iter().map(|command| command.words.iter().map(shown).collect::<Vec<_>>());
    argvs.filter(|argv| !argv.is_empty()).collect()
}

#[track_caller]
fn reads(text: &str, expected: &[&str]) {
    let mut found: Vec<String> = argvs(text).iter().map(|argv| argv.join("·")).collect();
    let mut expected: Vec<String> = expected.iter().map(|text| (*text).to_owned()).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn words() {
    reads("a 'b c' \"d e\" f\\ g h\\\ni ''", &["a·b c·d e·f g·hi·"]);
    reads("a \"x\\\"y\\$z\\q\" '$x' \\$y $ a$", &["a·x\"y$z\\q·$x·$y·$·a$"]);
    reads(
        "a $x ${y:-$(b)} \"$z\"w *.rs ~/c a~ [ab] x[1]y {c,d} {} {e} $'f' $1 $?",
        &["a·□·□·□w·□.rs·□/c·a~·□·□·□·{}·{e}·□·□·□", "b"],
    );
    reads("a # b\nc#d", &["a", "c#d"]);
    reads("echo '# no comment' \"a;b\" c\\;d", &["echo·# no comment·a;b·c;d"]);
    reads("a $((1 + $(b))) $(( (1) ))", &["a·□·□", "b"]);
    reads("echo $((a); (b))", &["echo·□", "a", "b"]);
}

#[test]
fn lists_groups_and_substitutions() {
    reads("a; b & c && d || e | f |& g\nh", &["a", "b", "c", "d", "e", "f", "g", "h"]);
    reads("(a; (b)) { c; } `d \\`e\\`` <(f) >(g)", &["a", "b", "□·□·□", "c", "d·□", "e", "f", "g"].map(|text| text));
    reads("a \"$(b \"$(c 'd')\")\"", &["a·□", "b·□", "c·d"]);
    reads("! time -p a", &["a"]);
}

#[test]
fn keywords() {
    reads("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]);
    reads("while a; do b; done; until c; do d; done > x", &["a", "b", "c", "d"]);
    reads("for x in a $(b) c; do d $x; done", &["b", "d·□"]);
    reads("for x\ndo a; done", &["a"]);
    reads("for ((i=0; i<$(a); i++)); do b; done", &["a", "b"]);
    reads("case $x in a|b) c;; (d) e ;& *) f; esac; g", &["c", "e", "f", "g"]);
    reads("case x in esac; a", &["a"]);
    reads("f() { a; }; function g { b; }; function h() ( c )", &["a", "b", "c"]);
    reads("[[ -f $(a) && x < y ]] && b", &["[[·-f·□·&·&·x·<·y·]]", "a", "b"]);
    reads("((i++)); a", &["a"]);
    reads("echo if then fi", &["echo·if·then·fi"]);
}

#[test]
fn assignments_and_redirections() {
    let commands = read("A=1 b+=$(x) c[2]=3 cmd D=4 >out 2>>\"er r\" </in 2>&1 >&- <<<text &>both").unwrap();
    let command = &commands[0];
    let names: Vec<&str> = command.assignments.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["A", "b", "c"]);
    assert_eq!(command.words.iter().map(Word::raw).collect::<Vec<_>>(), ["cmd", "D=4"]);
    let files: Vec<(bool, &str)> = command.redirects.iter().map(|r| (r.writes, r.target.raw())).collect();
    assert_eq!(files, [(true, "out"), (true, "er r"), (false, "/in"), (true, "both")]);
    assert_eq!(command.input.as_ref().unwrap().raw(), "text");
    assert_eq!(read("a=(b $(c) d)").unwrap().len(), 2);
    assert!(read("{ a; } > out").unwrap().iter().any(|command| command.redirects.len() == 1));
}

#[test]
fn here_documents() {
    let text = "cat <<A <<-'B'; c\n$(d) $x\nA\n\t$(e)\n\tB\nf";
    reads(text, &["cat", "c", "d", "f"]);
    let commands = read(text).unwrap();
    assert_eq!(commands[0].input.as_ref().unwrap().literal(), Some("$(e)\n"));
    // What stands inside a substitution is not the outer document's text.
    reads("cat <<A $(\nrm x\n)\nbody\nA\nb", &["cat·□", "rm·x", "b"]);
    assert!(read("a $(cat <<A)\nrm x\nA\n").is_err());
}

#[test]
fn what_cannot_be_read_is_said() {
    for text in ["'", "\"", "$(", "`", "${", "a (b)", ")", "a >", "case x", "case x in a", "[[ a", "x=(", ";;", "${x"] {
        assert!(read(text).is_err(), "{text}");
    }
    assert_eq!(read(&"a".repeat(MAX_BYTES + 1)), Err("it is too long"));
    assert_eq!(read("a\0b"), Err("it holds a zero byte"));
    // Nothing takes long: each of these is tried as arithmetic first.
    for text in ["$((".repeat(5_000), "((".repeat(9_000), "`".repeat(9_001), "$(".repeat(MAX_BYTES / 2)] {
        assert!(read(&text).is_err());
    }
}

/// The arguments that a real shell passes, one command per inner list.
fn real_argvs(script: &str) -> Vec<Vec<String>> {
    let stub = "show() { for word; do printf '%s\\0' \"$word\"; done; printf '\\1\\0'; }\n";
    let output = Process::new("bash").args(["-c", &format!("{stub}{script}")]).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut argvs = vec![Vec::new()];
    for word in text.split_terminator('\0') {
        match word {
            "\u{1}" => argvs.push(Vec::new()),
            word => argvs.last_mut().unwrap().push(word.to_owned()),
        }
    }
    argvs.pop();
    argvs
}

/// A piece of a word as a shell may write it.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z./=,:@%+-]{1,4}",
        "[ -~]{0,6}".prop_map(|text| format!("'{}'", text.replace('\'', ""))),
        "[ #-~]{0,6}".prop_map(|text| format!("\"{}\"", text.replace(['$', '`', '\\', '"', '!'], ""))),
        "[ -~]".prop_map(|text| format!("\\{text}")),
        Just("\"a\\\"b\\\\\"".to_owned()),
        Just("\\\n".to_owned()),
        Just("\"x\\y\\\nz\"".to_owned()),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let word = proptest::collection::vec(piece(), 1..4).prop_map(|pieces| pieces.concat());
    let command = proptest::collection::vec(word, 0..4).prop_map(|words| format!("show {}", words.join(" ")));
    let separator = prop_oneof![Just("; "), Just("\n"), Just(" && "), Just(" # x'y\n"), Just("; true | true; ")];
    proptest::collection::vec((command, separator), 1..4)
        .prop_map(|parts| parts.into_iter().flat_map(|(command, separator)| [command, separator.to_owned()]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text_never_breaks_it(text in "[ -~\n\t]{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn random_syntax_never_breaks_it(
        parts in proptest::collection::vec(
            prop::sample::select(vec![
                "a", " ", "\n", ";", "&", "|", "(", ")", "{", "}", "$", "$(", "${", "`", "'", "\"", "\\", "<", ">", "<<A",
                "A", "if", "case", "in", "esac", "for", "do", "done", "[[", "]]", "((", "))", "=", "#", "*", "[", "]", "~", "é",
            ]),
            0..60,
        ),
    ) {
        let _ = read(&parts.concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_reads_what_a_real_shell_passes(line in line()) {
        // A joined line at the very end of a comment or text is where shells differ; a newline after it is not.
        let line = format!("{line}\ntrue\n");
        let read: Vec<Vec<String>> = argvs(&line)
            .into_iter()
            .filter(|argv| argv.first().is_some_and(|program| program == "show"))
            .map(|argv| argv[1..].to_vec())
            .collect();
        // Globs, tildes and braces are unknown to the reader; the shell leaves them alone in an empty folder.
        prop_assume!(!read.iter().flatten().any(|word| word.contains('□')));
        prop_assert_eq!(read, real_argvs(&line), "{}", line);
    }
}
