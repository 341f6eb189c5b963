//! Tests of failure signatures.

use proptest::prelude::*;

use super::*;

fn of(text: &str) -> Signature {
    Signature::of_check(&[], text.as_bytes())
}

#[track_caller]
fn same(one: &str, other: &str) {
    assert_eq!(of(one), of(other), "{:?} {:?}", normal::normal(one), normal::normal(other));
}

#[track_caller]
fn differ(one: &str, other: &str) {
    assert_ne!(of(one), of(other), "{:?}", normal::normal(one));
}

#[test]
fn the_same_error_elsewhere_and_at_another_time_is_the_same() {
    same("Error: no greeting\n", "  ERROR: no   greeting");
    same("\u{1b}[31mfailed\u{1b}[0m: a != b", "failed: a != b");
    same("\u{1b}]0;title\u{7}failed", "failed");
    same("one\r\ntwo", "one\ntwo");
    same("src/lib.rs:10:5: mismatch", "/home/a/src/lib.rs:210:17: mismatch");
    same("File \"/tmp/x/app.py\", line 3, in main", "File \"/srv/y/app.py\", line 44, in main");
    same("at C:\\work\\a.js:3", "at D:\\b\\a.js:9");
    same("app.ts(3,14): bad", "app.ts(55,2): bad");
    same("2026-11-16T10:00:00Z failed", "2025-01-02T23:59:59.123+02:00 failed");
    same("2026-11-16 10:00:00,123 failed", "2025-01-02 23:59:59 failed");
    same("<Foo object at 0x7f00aa12> is wrong", "<Foo object at 0x55ab> is wrong");
    same("id 123e4567-e89b-12d3-a456-426614174000 gone", "id 00000000-e89b-12d3-a456-426614174fff gone");
    same("1 failed in 0.12s", "1 failed in 3.40s");
    same("1 failed (took 12 ms)", "1 failed (took 9 ms)");
    same("timeout=1.5s", "timeout=20s");
}

#[test]
fn other_errors_differ() {
    differ("expected 1, got 2", "expected 1, got 3");
    differ("2 tests failed", "3 tests failed");
    differ("a.rs:1:1: mismatch", "b.rs:1:1: mismatch");
    differ("no module named os", "no module named sys");
    differ("connection refused", "connection reset");
    differ("failed at 2026-11-16", "failed");
    differ("http://localhost/a is down", "http://localhost/b is down");
}

/// What a critic says is no output; what runs of old were told apart by is kept.
#[test]
fn words_have_classes_of_their_own() {
    for (words, class) in [
        ("missing_import_os", Class::MissingImport),
        ("The import of `os` is missing in app.py.", Class::MissingImport),
        ("`os` is not imported", Class::MissingImport),
        ("mismatched types in f()", Class::TypeMismatch),
        ("the file is not formatted", Class::LintErrors),
        ("it should be shorter", Class::Unknown),
    ] {
        assert_eq!(Signature::of_words(words).class, class, "{words}");
    }
    let earlier = |words| Signature::by_phrases(words).class;
    assert_eq!((earlier("eslint is unhappy"), earlier("no module named x")), (Class::LintErrors, Class::MissingImport));
    assert_eq!(earlier("missing_import_os"), Class::Unknown);
}

#[test]
fn it_is_written_as_class_and_hash() {
    let text = of("TypeError: unsupported operand type(s)").to_string();
    let (class, hash) = text.split_once(':').unwrap();
    assert_eq!((class, hash.len()), ("type_mismatch", 16));
    assert!(hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(of(" \n\r\n ").to_string(), "unknown:");
}

#[test]
fn of_a_long_output_the_end_counts() {
    let long = |start: &str| format!("{}{} the end", start.repeat(10), "x".repeat(MAX_INPUT));
    same(&long("a"), &long("b"));
}

#[test]
fn deep_and_wide_texts_are_no_burden() {
    for piece in ["a=", "0x", ":1", "\u{1b}", "1m", "(", "a/", "line 1 "] {
        let _ = of(&piece.repeat(MAX_INPUT));
    }
}

proptest! {
    #[test]
    fn any_bytes_have_a_signature(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let signature = Signature::of_check(&[], &bytes);
        prop_assert_eq!(&signature, &Signature::of_check(&[], &bytes));
        prop_assert!(signature.hash.len() <= 16);
    }

    #[test]
    fn any_text_of_error_like_pieces_has_a_signature(text in "[a-z0-9 :/\\\\().,=<>\\-\u{1b}\\[\\]éµx]{0,120}") {
        prop_assert!(of(&text).hash.len() <= 16);
    }

    #[test]
    fn line_numbers_never_matter(a in 1u32..100_000, b in 1u32..100_000) {
        let at = |n: u32| of(&format!("src/x.rs:{n}:{n} broken at line {n}, column {n}"));
        prop_assert_eq!(at(a), at(b));
    }
}
