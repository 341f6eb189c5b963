//! Reads the hostile texts of `tests/fixtures/hostile.txt`. For tests only; suites outside the crate take this
//! file by its path, so it leans on nothing.

/// Every text of the fixture, in its order.
pub fn hostile() -> Vec<Vec<u8>> {
    parse(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/hostile.txt")))
}

fn parse(fixture: &str) -> Vec<Vec<u8>> {
    let lines = fixture.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let repeated = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
            match repeated.and_then(|(times, text)| Some((times.parse().ok()?, text))) {
                Some((times, text)) => unescape(text).repeat(times),
                None => unescape(line),
            }
        })
        .collect()
}

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.extend(c.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        match rest.next() {
            Some('e') => out.push(0x1b),
            Some('n') => out.push(b'\n'),
            Some('r') => out.push(b'\r'),
            Some('t') => out.push(b'\t'),
            Some('x') => {
                let digits: String = rest.by_ref().take(2).collect();
                out.extend(u8::from_str_radix(&digits, 16));
            }
            Some('u') => {
                let digits: String = rest.by_ref().skip(1).take_while(|c| *c != '}').collect();
                let c = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                out.extend(c.into_iter().flat_map(|c| c.to_string().into_bytes()));
            }
            Some(other) => out.extend(other.to_string().bytes()),
            None => {}
        }
    }
    out
}
