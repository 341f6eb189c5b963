//! Damage to the bytes: torn tails are cut, everything else is refused.

use super::*;

#[test]
fn a_journal_cut_anywhere_recovers_to_the_whole_lines() {
    let (scratch, written) = Scratch::filled(6);
    let whole = scratch.bytes();
    for cut in 0..=whole.len() {
        scratch.set_bytes(&whole[..cut]);
        let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        let kept = whole[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let seen = read(&scratch.run).filter_map(Result::ok).count();
        assert_eq!(seen, lines, "cut at {cut}");
        let (records, recovered) = scratch.recover().unwrap();
        assert_eq!(hashes(&records), hashes(&written[..lines]), "cut at {cut}");
        assert_eq!(recovered.tail.offset, kept as u64);
        assert_eq!(scratch.bytes(), &whole[..kept]);
        match recovered.torn {
            None => assert_eq!(cut, kept),
            Some(torn) => {
                assert_eq!(fs::read(&torn.saved_as).unwrap(), &whole[kept..cut]);
                assert_eq!((torn.bytes, torn.sha256), ((cut - kept) as u64, Digest::of(&whole[kept..cut])));
                fs::remove_file(torn.saved_as).unwrap();
            }
        }
        assert_eq!(scratch.recover().unwrap().1.torn, None, "a second recovery finds nothing");
    }
}

#[test]
fn an_earlier_torn_tail_is_kept() {
    let (scratch, _) = Scratch::filled(1);
    let whole = scratch.bytes();
    let mut names = Vec::new();
    for garbage in ["one", "two", "three"] {
        scratch.set_bytes(&[&whole, garbage.as_bytes()].concat());
        names.push(scratch.recover().unwrap().1.torn.unwrap().saved_as);
    }
    let texts: Vec<String> = names.iter().map(|name| fs::read_to_string(name).unwrap()).collect();
    assert_eq!(texts, ["one", "two", "three"]);
    assert!(names[0].ends_with("00000001.torn") && names[2].ends_with("00000001.3.torn"), "{names:?}");
}

#[test]
fn garbage_behind_the_last_line_is_torn() {
    let (scratch, written) = Scratch::filled(2);
    let whole = scratch.bytes();
    let half_a_line = whole[..whole.len() / 3].to_vec();
    let endless = vec![b'x'; 3 << 20];
    let zeros = vec![0; 4096];
    for tail in [&b"garbage\n"[..], b"\n", b"\n\n\n", b"{}\n", b"\xff\xfe\n\x00", &zeros, &half_a_line, &endless] {
        scratch.set_bytes(&[&whole, tail].concat());
        let error = read(&scratch.run).find_map(Result::err).unwrap();
        assert!(matches!(error, JournalError::Torn { line: 3, seq: 2, .. }), "{error}");
        let (records, recovered) = scratch.recover().unwrap();
        assert_eq!(hashes(&records), hashes(&written));
        assert_eq!(recovered.torn.unwrap().bytes, tail.len() as u64);
        assert_eq!(scratch.bytes(), whole);
    }
}

/// Asserts that every door refuses the journal, and that none of them touched it.
fn assert_corrupt(scratch: &Scratch, bytes: &[u8], line: u64, seq: u64) {
    scratch.set_bytes(bytes);
    for error in [read(&scratch.run).find_map(Result::err).unwrap(), scratch.recover().unwrap_err()] {
        match &error {
            JournalError::Corrupt { segment, line: l, seq: s, .. } => {
                assert_eq!((*segment, *l, *s), (Some(1), Some(line), Some(seq)), "{error}");
            }
            _ => panic!("{error}"),
        }
    }
    let place = format!("journal/00000001.jsonl line {line} (seq {seq})");
    assert_eq!(scratch.verify().problems[0].place, place);
    assert_eq!(scratch.bytes(), bytes);
}

#[test]
fn damage_before_a_whole_line_is_corruption() {
    let (scratch, _) = Scratch::filled(4);
    let whole = scratch.bytes();
    let second = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for change in [b'\n', 0, b'X'] {
        let mut bytes = whole.clone();
        bytes[second + 10] = change;
        assert_corrupt(&scratch, &bytes, 2, 1);
    }
}

#[test]
fn a_changed_last_line_that_still_parses_is_corruption() {
    let (scratch, _) = Scratch::filled(2);
    let text = String::from_utf8(scratch.bytes()).unwrap();
    let changed = text.replace("\"n\":1", "\"n\":7");
    assert_ne!(changed, text);
    assert_corrupt(&scratch, changed.as_bytes(), 2, 1);
}

#[test]
fn removed_doubled_and_swapped_lines_are_corruption() {
    let (scratch, _) = Scratch::filled(4);
    let whole = scratch.bytes();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    for at in 0..3 {
        let mut removed = lines.clone();
        removed.remove(at);
        assert_corrupt(&scratch, &removed.concat(), at as u64 + 1, at as u64);
        let mut swapped = lines.clone();
        swapped.swap(at, at + 1);
        assert_corrupt(&scratch, &swapped.concat(), at as u64 + 1, at as u64);
    }
    for at in 0..4 {
        let mut doubled = lines.clone();
        doubled.insert(at, lines[at]);
        assert_corrupt(&scratch, &doubled.concat(), at as u64 + 2, at as u64 + 1);
    }
}

#[test]
fn a_newer_format_is_named_as_such() {
    let (scratch, _) = Scratch::filled(1);
    let whole = scratch.bytes();
    scratch.set_bytes(&[&whole, &b"{\"v\":2,\"seq\":1,\"what\":\"ever\"}\n"[..]].concat());
    for error in [read(&scratch.run).find_map(Result::err).unwrap(), scratch.recover().unwrap_err()] {
        assert!(matches!(error, JournalError::NewerVersion { line: 2, found: 2, known: 1, .. }), "{error}");
    }
}

/// Three segments of two events and an end mark each, the last one open.
fn three_segments() -> Scratch {
    let scratch = Scratch::new();
    let options = WriterOptions { segment_events: 2, ..WriterOptions::default() };
    let writer = scratch.writer(scratch.fresh(), options);
    for n in 0..5 {
        writer.append_blocking(vec![draft(n)]).unwrap();
    }
    writer.close().unwrap();
    scratch
}

#[test]
fn damage_in_an_older_segment_is_corruption() {
    let scratch = three_segments();
    let path = scratch.segment(2);
    let whole = fs::read(&path).unwrap();
    let last_line = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in [0, 10, last_line, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        let error = scratch.recover().unwrap_err();
        assert!(matches!(error, JournalError::Corrupt { segment: Some(2), .. }), "cut at {cut}: {error}");
        assert!(scratch.verify().problems[0].place.starts_with("journal/00000002.jsonl"));
    }
    fs::remove_file(&path).unwrap();
    let error = scratch.recover().unwrap_err();
    assert!(matches!(error, JournalError::Corrupt { segment: Some(2), .. }), "{error}");
    fs::remove_file(scratch.segment(1)).unwrap();
    fs::remove_file(scratch.segment(3)).unwrap();
    assert!(matches!(scratch.recover().unwrap_err(), JournalError::Corrupt { segment: Some(1), .. }));
}

#[test]
fn a_torn_last_segment_is_cut_whole() {
    let scratch = three_segments();
    let path = scratch.segment(3);
    fs::write(&path, "{\"v\":1,\"se").unwrap();
    let (records, recovered) = scratch.recover().unwrap();
    assert_eq!(records.len(), 6);
    assert_eq!((recovered.tail.segment, recovered.tail.offset), (3, 0));
    assert!(recovered.torn.unwrap().saved_as.ends_with("00000003.torn"));
}

#[test]
fn recovery_wants_the_lock_of_this_run() {
    let (one, two) = (Scratch::new(), Scratch::new());
    let lock = two.lock();
    let _mine = one.lock();
    let refused = recover(&one.run, &lock, &mut |_| Ok(()));
    assert!(matches!(refused, Err(JournalError::Invalid { .. })), "{refused:?}");
}

#[test]
fn an_error_of_the_caller_stops_recovery() {
    let (scratch, _) = Scratch::filled(3);
    let mut seen = 0;
    let stopped = recover(&scratch.run, &scratch.lock(), &mut |_| {
        seen += 1;
        Err(JournalError::Closed)
    });
    assert!(matches!(stopped, Err(JournalError::Closed)));
    assert_eq!(seen, 1);
}
