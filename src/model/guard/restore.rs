//! Rust files hold their tests beside the code: the test modules of the start are put back by name.
//!
//! A careful scanner, no parser: strings, characters, comments and braces are told apart, nothing else. `None` where a
//! file cannot be read so.

/// A test module: its name, and where its attribute and its body stand.
struct Module {
    name: String,
    start: usize,
    end: usize,
}

/// The file as it is now with the test modules of the start in it; `None`: there is nothing to put back, or it cannot
/// be told.
pub fn restore_tests(start: &str, now: &str) -> Option<String> {
    let before = modules(start)?;
    if before.is_empty() {
        return None;
    }
    let mut text = now.to_owned();
    let mut missing = String::new();
    for module in &before {
        let original = &start[module.start..module.end];
        // What was put behind another condition stands there under the same name.
        let found = all_modules(&text)?.into_iter().find(|there| there.name == module.name);
        match found {
            Some(there) => text.replace_range(there.start..there.end, original),
            None => missing.push_str(&format!("\n{original}\n")),
        }
    }
    text.push_str(&missing);
    Some(without_test_macros(&text, start))
}

/// Macros for tests only that were not there at the start: they can make every assertion say nothing.
fn without_test_macros(text: &str, start: &str) -> String {
    let mut out = text.to_owned();
    while let Some(at) = out.find("#[cfg(test)]\nmacro_rules!") {
        let Some(end) = block_end(&out, at) else { break };
        if start.contains(&out[at..end]) {
            break;
        }
        out.replace_range(at..end, "");
    }
    out
}

fn modules(text: &str) -> Option<Vec<Module>> {
    Some(all_modules(text)?.into_iter().filter(|module| text[module.start..module.end].contains("test")).collect())
}

/// Modules with a body that stand behind an attribute which speaks of tests.
fn all_modules(text: &str) -> Option<Vec<Module>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(offset) = text[from..].find("#[cfg(") {
        let start = from + offset;
        let attribute_end = start + text[start..].find("]")? + 1;
        from = attribute_end;
        if !text[start..attribute_end].contains("test") || in_comment(text, start) {
            continue;
        }
        let rest = without_attributes(text[attribute_end..].trim_start());
        let Some(name) = rest.strip_prefix("mod ").or_else(|| rest.strip_prefix("pub mod ")) else { continue };
        let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let Some(end) = block_end(text, attribute_end) else { continue };
        found.push(Module { name, start, end });
        from = end;
    }
    Some(found)
}

/// What follows further attributes.
fn without_attributes(mut rest: &str) -> &str {
    while rest.starts_with("#[") {
        let Some(end) = rest.find(']') else { return rest };
        rest = rest[end + 1..].trim_start();
    }
    rest
}

fn in_comment(text: &str, at: usize) -> bool {
    let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
    text[line..at].trim_start().starts_with("//")
}

/// The end of the first block after `from`; `None`: there is none, or a `;` comes first.
fn block_end(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (from, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b';' if depth == 0 => return None,
            b'{' => depth += 1,
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => at += text[at..].find('\n').unwrap_or(text.len() - at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => at += text[at..].find("*/")? + 1,
            b'"' => at = string_end(bytes, at)?,
            b'r' if is_raw(bytes, at) => at = raw_end(text, at)?,
            b'\'' => at = char_end(bytes, at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn string_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn is_raw(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|at| bytes[at]);
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && bytes.get(at + 1 + hashes) == Some(&b'"')
}

fn raw_end(text: &str, at: usize) -> Option<usize> {
    let hashes = text[at + 1..].bytes().take_while(|byte| *byte == b'#').count();
    let body = at + 2 + hashes;
    let close = format!("\"{}", "#".repeat(hashes));
    Some(body + text.get(body..)?.find(&close)? + close.len() - 1)
}

/// The end of a character, or the same place for a lifetime.
fn char_end(bytes: &[u8], from: usize) -> usize {
    match (bytes.get(from + 1), bytes.get(from + 2), bytes.get(from + 3)) {
        (Some(b'\\'), Some(_), Some(b'\'')) => from + 3,
        (Some(_), Some(b'\''), _) => from + 2,
        _ => from,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: &str = "fn add() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {\n        assert_eq!(1, '{' as u8 - 122);\n    }\n}\n";

    #[test]
    fn weakened_tests_are_put_back_and_code_stays() {
        let now = START.replace("assert_eq!(1,", "assert_ne!(1,").replace("fn add() {}", "fn add() { 5 }");
        let restored = restore_tests(START, &now).unwrap();
        assert_eq!(restored, START.replace("fn add() {}", "fn add() { 5 }"));
        let hidden = START.replace("#[cfg(test)]", "#[cfg(all(test, feature = \"full\"))]");
        assert_eq!(restore_tests(START, &hidden).unwrap(), START);
        assert!(restore_tests(START, "fn add() {}\n").unwrap().contains("mod tests"));
        let fooled = format!("#[cfg(test)]\nmacro_rules! assert_eq {{\n    ($($t:tt)*) => {{}};\n}}\n{START}");
        assert_eq!(restore_tests(START, &fooled).unwrap().trim_start(), START);
        assert_eq!(restore_tests("fn a() {}", START), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(start in ".{0,200}", now in "(#\\[cfg\\(test\\)\\]|mod tests|[{}\"'/*r# \\n]|.){0,80}") {
            let _ = restore_tests(&start, &now);
            let _ = restore_tests(&now, &start);
        }
    }
}
