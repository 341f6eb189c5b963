//! Every form of a secret is found, nothing else is touched, and pieces make no difference.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use proptest::prelude::*;
use std::sync::Arc;

const KEY: &str = "sk-ant-canary-0123456789-abcdefghijklmnop";

fn secrets() -> Secrets {
    let mut secrets = Secrets::default();
    assert!(secrets.add("ANTHROPIC_API_KEY", KEY));
    assert!(secrets.add("DB_PASSWORD", "pa\"ss\\w/ord+é\nline"));
    secrets
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// By the book, bit by bit, with padding.
fn base32(bytes: &[u8]) -> String {
    let mut bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    while !bits.len().is_multiple_of(5) {
        bits.push('0');
    }
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".as_bytes();
    let groups = bits.as_bytes().chunks(5).map(|group| std::str::from_utf8(group).unwrap());
    let mut out: String = groups.map(|group| char::from(letters[usize::from_str_radix(group, 2).unwrap()])).collect();
    while !out.len().is_multiple_of(8) {
        out.push('=');
    }
    out
}

fn broken(text: &str, width: usize, by: &str) -> String {
    let pieces: Vec<&str> = text.as_bytes().chunks(width).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    pieces.join(by)
}

/// Both lists of docs/secrets.md: what is covered is found, what is not is not, and each is named there.
#[test]
fn the_documented_reach_is_the_real_one() {
    let (secrets, mut reversed) = (secrets(), KEY.to_owned().into_bytes());
    reversed.reverse();
    let third = KEY.len() / 3;
    let rot13 = |byte: u8| match byte {
        b'a'..=b'z' => (byte - b'a' + 13) % 26 + b'a',
        other => other,
    };
    let covered = [
        ("as it is", KEY.to_owned()),
        ("inside a JSON string", format!("{:?}", serde_json::to_string(KEY).unwrap())),
        ("percent-encoded", percent(KEY)),
        ("base64", STANDARD.encode(KEY)),
        ("base32", base32(KEY.as_bytes())),
        ("hexadecimal", hex(KEY.as_bytes())),
        ("one half", KEY[KEY.len() / 2..].to_owned()),
    ];
    let not_covered = [
        ("reversed", String::from_utf8(reversed).unwrap()),
        ("three or more parts", [&KEY[..third], &KEY[third..2 * third], &KEY[2 * third..]].join(" ")),
        ("one character per line", broken(KEY, 1, "\n")),
        ("shifted", KEY.bytes().map(|byte| char::from(rot13(byte))).collect()),
        ("encoded twice", STANDARD.encode(STANDARD.encode(KEY))),
    ];
    let page = include_str!("../../../docs/secrets.md");
    let (yes, no) = page.split_once("## What is not covered").expect("two lists");
    for (name, text) in covered {
        assert!(secrets.redact_known(&text).contains("[secret:ANTHROPIC_API_KEY]"), "{name}: {text}");
        assert!(yes.contains(name), "docs/secrets.md does not say: {name}");
    }
    for (name, text) in not_covered {
        assert_eq!(secrets.redact_known(&text), text, "{name} is covered: say so in docs/secrets.md");
        assert!(no.contains(name), "docs/secrets.md does not say: {name}");
    }
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn a_known_value_is_found_in_every_form() {
    let secrets = secrets();
    for value in [KEY, "pa\"ss\\w/ord+é\nline"] {
        let once = serde_json::to_string(value).unwrap();
        let twice = serde_json::to_string(&once).unwrap();
        let unicode: String = value.chars().map(|c| format!("\\u{:04X}", c as u32)).collect();
        let mut forms = vec![value.to_owned(), once, twice, percent(value)];
        if value.is_ascii() {
            forms.push(unicode);
        }
        for before in ["", "x", "xy"] {
            forms.push(STANDARD.encode(format!("{before}{value} and more")));
            forms.push(STANDARD.encode(format!("{before}{value}")).replace('+', "-").replace('/', "_"));
        }
        for before in ["", "x", "xy", "xyz", "wxyz"] {
            let text = base32(format!("{before}{value}").as_bytes());
            forms.extend([text.to_lowercase(), broken(&text, 8, "\n"), text]);
        }
        let hex = hex(value.as_bytes());
        forms.extend([hex.to_uppercase(), broken(&hex, 60, "\n"), broken(&hex, 2, ":"), broken(&hex, 4, " "), hex]);
        let wrapped: Vec<String> = STANDARD
            .encode(format!("A=1\nB={value}\nC=2"))
            .as_bytes()
            .chunks(20)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        forms.push(wrapped.join("\n"));
        forms.push(wrapped.join("\\n"));
        for form in forms {
            let text = format!("before {form} after");
            let clean = secrets.redact_known(&text);
            assert!(clean.contains("[secret:"), "{text} became {clean}");
            assert!(clean.starts_with("before ") && clean.ends_with(" after"), "{clean}");
            let left = clean.replace("[secret:ANTHROPIC_API_KEY]", "").replace("[secret:DB_PASSWORD]", "");
            assert!(left.len() < "before  after".len() + 40, "too much is left: {clean}");
        }
    }
}

#[test]
fn half_a_value_is_found_where_output_was_cut() {
    let secrets = secrets();
    for text in [&KEY[..30], &KEY[12..]] {
        assert!(secrets.redact_known(text).contains("[secret:ANTHROPIC_API_KEY]"), "{text}");
    }
    assert_eq!(secrets.redact_known(&KEY[..12]), &KEY[..12], "a beginning that all such keys share is no secret");
}

#[test]
fn what_looks_like_a_key_is_found_and_words_are_not() {
    let none = Secrets::default();
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nabc+/=\n-----END RSA PRIVATE KEY-----";
    for (text, expected) in [
        ("k=sk-ant-api03-abcdefghijklmnop0123 end", "k=[secret:anthropic-key] end"),
        ("\"sk-proj-abcdefghijklmnopqrstuvwx12\"", "\"[secret:api-key]\""),
        ("AKIAIOSFODNN7EXAMPLE", "[secret:aws-key-id]"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "[secret:github-token]"),
        ("github_pat_11ABCDEFG0abcdefghijkl_mnop", "[secret:github-token]"),
        ("xoxb-123456789012-abcdef", "[secret:slack-token]"),
        ("AIzaSyA0123456789abcdefghijklmnopqrstuv", "[secret:google-key]"),
        ("Authorization: Bearer eyJhbGciOi.JIUzI1NiIs0.abc", "Authorization: [secret:bearer-token]"),
        (&format!("a {pem} b"), "a [secret:private-key] b"),
        (r"one\nsk-ant-api03-abcdefghijklmnop0123\n", r"one\n[secret:anthropic-key]\n"),
    ] {
        assert_eq!(none.redact(text), expected);
        assert_eq!(none.redact_known(text), text, "known values only");
    }
    for text in [
        "task-ant-hills-are-everywhere-here",
        "sk-learn is a library",
        "sk-something-with-many-words-in-it",
        "Bearer of good news",
        "the bearer authentication_is_described_below",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "---------- a table ----------",
        "AKIA",
        "[secret:anthropic-key]",
    ] {
        assert!(matches!(none.redact(text), Cow::Borrowed(_)), "{text} became {}", none.redact(text));
    }
}

#[test]
fn an_unfinished_private_key_is_taken_as_far_as_it_goes() {
    let text = "x -----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nabc";
    assert_eq!(Secrets::default().redact(text), "x [secret:private-key]");
}

#[test]
fn short_values_are_left_alone() {
    let mut secrets = Secrets::default();
    assert!(!secrets.add("X_KEY", "hunter2"));
    assert!(!secrets.add("X_KEY", "   short   "));
    assert!(secrets.is_empty());
}

#[test]
fn json_is_cleaned_inside_its_texts_and_stays_json() {
    let mut secrets = secrets();
    // In the raw bytes of JSON this value would begin in the middle of an escape.
    assert!(secrets.add("ODD", "nABCDEFGH"));
    let mut value = serde_json::json!({"a": [KEY, {KEY: 1}], "b": "\nABCDEFGH", "c": "nABCDEFGH", "d": 1.5});
    assert!(secrets.redact_json(&mut value));
    let mark = "[secret:ANTHROPIC_API_KEY]";
    assert_eq!(value, serde_json::json!({"a": [mark, {mark: 1}], "b": "\nABCDEFGH", "c": "[secret:ODD]", "d": 1.5}));
    assert!(!secrets.redact_json(&mut value));
}

#[test]
fn a_name_that_holds_a_value_does_not_grow() {
    let mut secrets = Secrets::default();
    secrets.add("SOME_SECRET_NAME", "SECRET_NAME");
    let once = secrets.redact("a SECRET_NAME b").into_owned();
    assert_eq!(once, "a [secret:SOME_SECRET_NAME] b");
    assert_eq!(secrets.redact(&once), once);
}

#[test]
fn a_stream_holds_back_only_what_may_be_a_secret() {
    let secrets = Arc::new(secrets());
    let mut stream = Stream::new(secrets, Scope::Known);
    assert_eq!(stream.push("hello wor"), "hello wor");
    assert_eq!(stream.push("ld sk-ant-can"), "ld ");
    assert_eq!(stream.push("dy is sweet sk-ant-"), "sk-ant-candy is sweet ");
    assert_eq!(stream.push(&KEY["sk-ant-".len()..KEY.len() - 1]), "");
    assert_eq!(stream.push("p end p"), "[secret:ANTHROPIC_API_KEY] end ");
    assert_eq!(stream.flush(), "p");
    assert_eq!(stream.flush(), "");
}

#[test]
fn hostile_texts_take_no_long_time() {
    // Not a measurement: a quadratic scan would not come back.
    let secrets = secrets();
    for unit in ["sk-ant-", "-----BEGIN RSA PRIVATE KEY----", "%73%6b", "c2s", "[secret:", "\\u0073", "Bearer "] {
        let text = unit.repeat(400_000 / unit.len());
        let _ = secrets.redact(&text);
    }
}

#[test]
fn names_tell() {
    for name in ["ANTHROPIC_API_KEY", "gh_token", "MY_SECRET", "PGPASSWORD", "AWS_CREDENTIALS"] {
        assert!(looks_secret(name), "{name}");
    }
    for name in ["PATH", "HOME", "LANG", "OLLAMA_HOST", "KEYBOARD_LAYOUT", "TOKENIZERS_PARALLELISM"] {
        assert!(!looks_secret(name), "{name}");
    }
}

/// Texts in which secrets, parts of them and other things meet.
fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just(KEY.to_owned()),
        (0..KEY.len()).prop_map(|n| KEY[..n].to_owned()),
        (0..KEY.len()).prop_map(|n| KEY[n..].to_owned()),
        Just(STANDARD.encode(KEY)),
        Just(percent(KEY)),
        Just(hex(KEY.as_bytes())),
        (0..2 * KEY.len()).prop_map(|n| hex(KEY.as_bytes())[..n].to_owned()),
        Just(base32(KEY.as_bytes()).to_lowercase()),
        (0..60usize).prop_map(|n| base32(KEY.as_bytes())[..n].to_owned()),
        Just(broken(&hex(KEY.as_bytes()), 4, " ")),
        Just("sk-ant-api03-abcdefghijklmnop0123".to_owned()),
        Just("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----".to_owned()),
        Just("[secret:".to_owned()),
        Just("[secret:DB_PASSWORD]".to_owned()),
        Just("pa\"ss\\w/ord+é\nline".to_owned()),
        "[ -~é\n]{0,12}",
    ];
    proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn twice_is_once(text in texts()) {
        let secrets = secrets();
        let once = secrets.redact(&text).into_owned();
        prop_assert!(!once.contains(KEY));
        prop_assert_eq!(secrets.redact(&once), once.as_str());
        let known = secrets.redact_known(&text).into_owned();
        prop_assert_eq!(secrets.redact_known(&known), known.as_str());
    }

    #[test]
    fn pieces_make_no_difference(text in texts(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let secrets = Arc::new(secrets());
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        places.retain(|place| text.is_char_boundary(*place));
        places.sort();
        for scope in [Scope::Known, Scope::Everything] {
            let mut stream = Stream::new(Arc::clone(&secrets), scope);
            let (mut out, mut from) = (String::new(), 0);
            for place in &places {
                out.push_str(&stream.push(&text[from..*place]));
                from = *place;
            }
            out.push_str(&stream.push(&text[from..]));
            out.push_str(&stream.flush());
            let whole = secrets.text(&text, scope);
            prop_assert_eq!(out.as_str(), whole.as_ref());
        }
    }
}

#[test]
fn what_looks_like_a_key_does_not_break_up_a_known_one() {
    let text = format!("ghp_CANARYabcdefghijklmnopqrstuvwxyz0123{KEY}");
    let clean = secrets().redact(&text).into_owned();
    assert!(!clean.contains("canary") && clean.ends_with("[secret:ANTHROPIC_API_KEY]"), "{clean}");
    let bytes = secrets().redact_bytes(text.as_bytes()).into_owned();
    assert_eq!(String::from_utf8_lossy(&bytes), clean);
}
