//! The normal form of an error text: lower case, without colours, places, times, addresses and other numbers that
//! change from run to run.
//!
//! Whatever is taken out leaves a mark in angle brackets, so that two different errors do not become equal by
//! becoming empty.

/// The text without colours, each line by itself.
pub fn plain(text: &str) -> String {
    without_escapes(text).replace("\r\n", "\n").replace('\r', "\n")
}

/// The normal form of a plain text.
pub fn normal(plain: &str) -> String {
    let lower = plain.to_lowercase();
    let lines = lower.lines().map(line).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Removes ANSI escape sequences; one that does not end takes the rest with it.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        match chars.next() {
            // CSI: ends with a letter or another final byte.
            Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
            // OSC: ends with BEL, or with ESC and a backslash.
            Some(']') => {
                while let Some(c) = chars.next() {
                    if c == '\u{7}' {
                        break;
                    }
                    if c == '\u{1b}' {
                        chars.next();
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    out
}

fn line(line: &str) -> String {
    let words: Vec<String> = line.split_whitespace().map(word).collect();
    without_numbers_of_places(&without_clocks(words)).join(" ")
}

/// `<date> 10:00:01` is one moment; so is a time of day alone.
fn without_clocks(words: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in words {
        if word == "<time>" && out.last().is_some_and(|last| last == "<time>") {
            continue;
        }
        out.push(word);
    }
    out
}

/// `line 12, column 3` and `in 0.12 s`: the number follows or precedes a word that says what it is.
fn without_numbers_of_places(words: &[String]) -> Vec<String> {
    const PLACES: [&str; 7] = ["line", "lines", "ln", "column", "col", "char", "character"];
    const UNITS: [&str; 14] = [
        "s",
        "ms",
        "us",
        "ns",
        "sec",
        "secs",
        "second",
        "seconds",
        "milliseconds",
        "min",
        "mins",
        "minute",
        "minutes",
        "hours",
    ];
    let core = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let mut out = Vec::with_capacity(words.len());
    for (n, word) in words.iter().enumerate() {
        let number = is_number(&core(word));
        let before = n.checked_sub(1).and_then(|n| words.get(n)).map(|word| core(word)).unwrap_or_default();
        let after = words.get(n + 1).map(|word| core(word)).unwrap_or_default();
        if number && PLACES.contains(&before.as_str()) {
            out.push(word.replace(&core(word), "<n>"));
        } else if number && UNITS.contains(&after.as_str()) {
            out.push(word.replace(&core(word), "<duration>"));
        } else {
            out.push(word.clone());
        }
    }
    out
}

/// One word without what changes; of `key=value` each part by itself.
fn word(word: &str) -> String {
    let parts = word.split('=').map(|part| {
        let (before, core, after) = shelled(part);
        format!("{before}{}{after}", normal_core(core))
    });
    parts.collect::<Vec<_>>().join("=")
}

/// A word, and the punctuation around it.
fn shelled(word: &str) -> (&str, &str, &str) {
    let open = |c: char| matches!(c, '(' | '[' | '{' | '"' | '\'' | '`' | '<' | ',');
    let close = |c: char| matches!(c, ')' | ']' | '}' | '"' | '\'' | '`' | '>' | ',' | ';' | '.' | '!' | '?');
    let core = word.trim_start_matches(open);
    let before = &word[..word.len() - core.len()];
    let kept = core.trim_end_matches(close);
    (before, kept, &core[kept.len()..])
}

fn normal_core(core: &str) -> String {
    if is_moment(core) {
        return "<time>".to_owned();
    }
    if is_uuid(core) {
        return "<uuid>".to_owned();
    }
    if is_duration(core) {
        return "<duration>".to_owned();
    }
    let (path, numbers) = split_place(core);
    format!("{}{numbers}", without_addresses(base_name(path)))
}

/// `src/a.rs:12:3` without its numbers; `a.py(12,3)` too.
fn split_place(core: &str) -> (&str, &'static str) {
    let mut rest = core.trim_end_matches(':');
    let colon = rest.len() < core.len();
    let mut numbers = 0;
    while let Some((before, digits)) = rest.rsplit_once(':')
        && is_digits(digits)
        && !before.is_empty()
        && numbers < 3
    {
        rest = before;
        numbers += 1;
    }
    if let Some((before, inner)) = rest.rsplit_once('(')
        && !before.is_empty()
        && inner.split(',').all(|digits| is_digits(digits.trim_end_matches(')')))
    {
        rest = before;
        numbers += 1;
    }
    match (numbers > 0, colon) {
        (true, _) => (rest, ":<n>"),
        (false, true) => (rest, ":"),
        (false, false) => (rest, ""),
    }
}

/// The last part of a path; what is no path stays.
fn base_name(word: &str) -> &str {
    let is_path = word.contains(['/', '\\']) && !word.contains("://");
    match is_path {
        true => word.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(word),
        false => word,
    }
}

/// `0x7ffe12ab` anywhere in a word becomes `0x<addr>`.
fn without_addresses(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find("0x") {
        let (before, found) = rest.split_at(at + 2);
        out.push_str(before);
        let digits = found.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        if digits.len() < found.len() {
            out.push_str("<addr>");
        }
        rest = digits;
    }
    out.push_str(rest);
    out
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_number(text: &str) -> bool {
    match text.split_once('.') {
        Some((whole, part)) => is_digits(whole) && is_digits(part),
        None => is_digits(text),
    }
}

/// `12ms`, `0.3s`, `1m2.5s`: numbers, each with a unit.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 8] = ["ms", "us", "µs", "ns", "min", "s", "m", "h"];
    let mut rest = text;
    let mut parts = 0;
    while !rest.is_empty() && parts < 4 {
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if !is_number(&rest[..rest.len() - unit.len()]) {
            return false;
        }
        let Some(known) = UNITS.iter().find(|known| unit.starts_with(**known)) else { return false };
        rest = &unit[known.len()..];
        parts += 1;
    }
    parts > 0 && rest.is_empty()
}

/// `2026-11-16`, `2026-11-16t10:00:00.5z`, `10:00:00,123`: groups of digits as dates and clocks have them.
fn is_moment(text: &str) -> bool {
    let (date, clock) = match text.split_once('t') {
        Some((date, clock)) => (Some(date), Some(clock)),
        None if text.contains(':') => (None, Some(text)),
        None => (Some(text), None),
    };
    date.is_none_or(is_date) && clock.is_none_or(is_clock)
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['-', '/']).collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    parts.iter().all(|part| is_digits(part)) && matches!(lengths[..], [4, 2, 2] | [2, 2, 4])
}

fn is_clock(text: &str) -> bool {
    let zoneless = text.trim_end_matches('z');
    let zoneless = match zoneless.rsplit_once(['+', '-']) {
        Some((clock, zone)) if zone.bytes().all(|b| b.is_ascii_digit() || b == b':') => clock,
        _ => zoneless,
    };
    let whole = zoneless.split(['.', ',']).next().unwrap_or(zoneless);
    let parts: Vec<&str> = whole.split(':').collect();
    matches!(parts.len(), 2 | 3) && parts.iter().all(|part| part.len() == 2 && is_digits(part))
}

fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
