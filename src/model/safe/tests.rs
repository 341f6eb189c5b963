//! What a [`Safe`] may hold, whatever it was made of.

use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::corpus::hostile;
use super::*;

/// Says what is wrong with a line, by rules of its own: none of the cleaner's code is asked.
fn fault(line: &str) -> Option<String> {
    if line.len() > 4096 {
        return Some(format!("{} bytes", line.len()));
    }
    for cluster in line.graphemes(true) {
        let marks = cluster.chars().filter(|c| matches!(c, '\u{300}'..='\u{36f}' | '\u{20d0}'..='\u{20ff}')).count();
        if marks > 3 {
            return Some(format!("{marks} marks on one sign"));
        }
    }
    line.chars().find_map(|c| {
        let bad = c.is_control()
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            || matches!(c, '\u{200b}' | '\u{200c}' | '\u{2060}' | '\u{feff}' | '\u{ad}' | '\u{34f}' | '\u{180e}')
            || matches!(c, '\u{e0000}'..='\u{e007f}' | '\u{2028}' | '\u{2029}');
        bad.then(|| format!("U+{:04X}", u32::from(c)))
    })
}

fn check(bytes: &[u8]) -> Result<(), String> {
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes.get(..80).unwrap_or(bytes)).escape_debug().to_string();
    let mut made = Safe::lines_of(bytes);
    made.push(Safe::line_of(bytes));
    for safe in made {
        if let Some(fault) = fault(safe.as_str()) {
            return Err(format!("{fault} in {safe:?}, from {}", shown(bytes)));
        }
        if Safe::line(safe.as_str()) != safe {
            return Err(format!("{safe:?} changes when cleaned again: {:?}", Safe::line(safe.as_str())));
        }
    }
    let text = String::from_utf8_lossy(bytes);
    let escaped = Safe::escaped(&text);
    let fault = escaped.as_str().chars().find(|c| is_forbidden(*c) || *c == '\u{200d}');
    if let Some(fault) = fault {
        return Err(format!("{fault:?} in the escaped form of {}", shown(bytes)));
    }
    let pasted = pasteable(&text);
    let acts = |c: &char| is_forbidden(*c) && !matches!(c, '\n' | '\t');
    if let Some(c) = pasted.chars().find(acts) {
        return Err(format!("{c:?} in the clipboard, from {}", shown(bytes)));
    }
    Ok(())
}

#[test]
fn no_hostile_text_comes_through() {
    let corpus = hostile();
    assert!(corpus.len() >= 300, "{}", corpus.len());
    let acting = corpus.iter().filter(|text| fault(&String::from_utf8_lossy(text)).is_some()).count();
    assert!(acting > 250, "only {acting} of the texts would act if nothing were done");
    for text in corpus {
        check(&text).unwrap();
    }
}

#[test]
fn what_is_read_of_sequences() {
    for (text, expected) in [
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("a\u{1b}]0;title\u{7}b", "ab"),
        ("a\u{1b}]52;c;AAAA\u{1b}\\b", "ab"),
        ("a\u{1b}]0;never ended", "a"),
        ("a\u{1b}Pq~~~\u{1b}\\b", "ab"),
        ("a\u{1b}_apc\u{1b}\\b", "ab"),
        ("a\u{1b}c", "a"),
        ("a\u{1b}", "a␛"),
        ("a\u{7}b\0", "a^Gb^@"),
        ("a\u{7f}", "a^?"),
        ("a\u{9b}31m", "a⟨U+009B⟩31m"),
        ("gpj\u{202e}exe", "gpj⟨U+202E⟩exe"),
        ("10%\r50%\r100%", "100%"),
        ("done\r", "done"),
        ("  indented\r\n", "  indented"),
        ("two\nlines\n", "two lines"),
    ] {
        assert_eq!(Safe::line(text).as_str(), expected, "{text:?}");
    }
    assert_eq!(Safe::line_of(b"a\xffb\x9b").as_str(), "a\\xFFb\\x9B");
}

#[test]
fn an_unended_sequence_hides_nothing_of_the_next_line() {
    let lines = Safe::lines("a\u{1b}]0;x\nb\n\n\tc\r\n");
    let texts: Vec<_> = lines.iter().map(Safe::as_str).collect();
    assert_eq!(texts, ["a", "b", "", "    c"]);
    assert!(Safe::lines("").is_empty());
}

#[test]
fn approval_shows_everything() {
    assert_eq!(Safe::escaped("rm\u{1b}[2K\r\n\tls").as_str(), "rm␛[2K␍␊␉ls");
    assert_eq!(Safe::escaped("a\u{200d}b☺\u{fe0f}").as_str(), "a⟨U+200D⟩b☺⟨U+FE0F⟩");
    // A text that imitates our marks is told from the marks.
    assert_ne!(Safe::escaped("␛[2K"), Safe::escaped("\u{1b}[2K"));
    assert_ne!(Safe::escaped("⟨U+202E⟩"), Safe::escaped("\u{202e}"));
    let long = format!("{}; rm -rf /", "x".repeat(10_000));
    assert_eq!(Safe::escaped(&long).as_str(), long);
}

#[test]
fn long_lines_say_how_much_is_missing() {
    let exact = "x".repeat(4096);
    assert_eq!(Safe::line(&exact).as_str(), exact);
    let cut = Safe::line(&"x".repeat(10_000));
    assert_eq!(cut.as_str(), format!("{}… +{} bytes", "x".repeat(4064), 10_000 - 4064));
    let cut = Safe::line(&"é".repeat(5_000));
    assert_eq!(cut.as_str(), format!("{}… +{} bytes", "é".repeat(2032), 10_000 - 4064));
    // Only sequences: nothing to show, but it says that there was more than was looked at.
    let noise = Safe::line(&"\u{1b}[31m".repeat(100_000));
    assert!(noise.as_str().starts_with("… +"), "{noise}");
}

#[test]
fn left_out_lines_are_counted() {
    let text = "a\nb\nc\nd\n";
    let shown = |most| Safe::lines_capped(text, most).iter().map(Safe::to_string).collect::<Vec<_>>();
    assert_eq!(shown(4), ["a", "b", "c", "d"]);
    assert_eq!(shown(3), ["a", "b", "… +2 lines"]);
    assert_eq!(shown(1), ["… +4 lines"]);
    assert!(shown(0).is_empty());
}

#[test]
fn a_clipboard_keeps_lines_tabs_and_length() {
    let text = format!("\tif x {{\n\t\t\u{1b}[31my\u{7}\n{}\n", "z".repeat(9_000));
    assert_eq!(pasteable(&text), format!("\tif x {{\n\t\ty^G\n{}\n", "z".repeat(9_000)));
}

#[test]
fn cells_are_clean_or_not() {
    for clean in ["", " ", "a", "█", "日", "é", "e\u{301}", "👩‍💻", "☺\u{fe0f}", "─"] {
        assert!(is_clean(clean), "{clean:?}");
    }
    for foul in
        ["\u{1b}", "\u{9b}", "a\u{202e}", "\u{200d}", "\u{301}", "\u{1b}[2J", "e\u{301}\u{301}\u{301}\u{301}", "\t"]
    {
        assert!(!is_clean(foul), "{foul:?}");
    }
}

/// A line as long as a large file, and one whose sequence never ends: only the beginning is looked at.
#[test]
fn length_costs_nothing_but_a_search_for_its_end() {
    let huge = vec![b'x'; 100 << 20];
    assert!(Safe::line_of(&huge).as_str().ends_with(" bytes"));
    assert_eq!(Safe::lines_of(&huge).len(), 1);
    let unended = [b"\x1b]0;".as_slice(), &huge].concat();
    let mut cleaner = Cleaner::new(Manner::Read, Limits::LINE);
    cleaner.piece(&unended);
    assert!(cleaner.has_read() <= Limits::LINE.read + 4, "{}", cleaner.has_read());
    assert_eq!(cleaner.finish(unended.len()), format!("… +{} bytes", unended.len() - Limits::LINE.read));
}

/// Work that grows with the square of the text would not end within a test run.
#[test]
fn no_text_makes_it_quadratic() {
    for unit in ["👩\u{200d}", "\u{301}", "\u{1b}[", "\u{1b}]", "\r", "\n", "\t", "\u{202e}", "\u{1b}[1;"] {
        let text = unit.repeat((1 << 20) / unit.len());
        assert!(Safe::line(&text).as_str().len() <= 4096);
        assert!(Safe::lines_capped(&text, 100).len() <= 100);
        assert!(Safe::escaped(&text).as_str().len() <= 64 << 10);
        assert!(pasteable(&text).len() <= 20 * text.len());
    }
}

/// The short way for single characters says the same as the long one.
#[test]
fn single_characters_are_judged_alike() {
    for c in (0..0x3_0000).chain(0xe_0000..0xe_1000).filter_map(char::from_u32) {
        let text = c.to_string();
        let mut cleaner = Cleaner::new(Manner::Read, Limits::LINE);
        cleaner.piece(text.as_bytes());
        assert_eq!(is_clean(&text), cleaner.finish(text.len()) == text, "U+{:04X}", u32::from(c));
    }
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        any::<char>().prop_map(|c| c.to_string().into_bytes()),
        prop::sample::select(vec![
            "\u{1b}",
            "\u{1b}[",
            "\u{1b}]",
            "\u{1b}P",
            "\u{7}",
            "\u{1b}\\",
            "\r",
            "\n",
            "\t",
            ";",
            "m",
            "\u{200d}",
            "\u{fe0f}",
            "\u{301}",
            "👩",
            "🏽",
            "❤",
            "\u{202e}",
            "\u{e0041}",
            "\u{9b}",
            "\u{9c}",
            "e",
            "é",
            "日",
            " ",
            "\u{1161}",
            "\u{1100}",
            "🇩",
            "… +1 bytes",
            "\u{93f}",
            "\u{915}",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_become_harmless(bytes in pieces()) {
        check(&bytes).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn long_mixtures_become_harmless(bytes in pieces(), times in 1_usize..60) {
        check(&bytes.repeat(times)).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn approval_tells_texts_apart(one in pieces(), other in pieces()) {
        let (one, other) = (String::from_utf8_lossy(&one), String::from_utf8_lossy(&other));
        prop_assert_eq!(one == other, Safe::escaped(&one) == Safe::escaped(&other));
    }
}
