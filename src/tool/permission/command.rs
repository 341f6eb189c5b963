//! Takes a shell command apart, roughly and on the safe side.
//!
//! Not a shell parser: quotes do not protect a separator, so a harmless `echo "a; rm b"` reads
//! as if it ran `rm b`. That errs towards refusing. Invariant: what a shell would run as a
//! command of its own, written plainly, is among the parts.

/// Words that stand before a command and run it.
const CARRIERS: [&str; 22] = [
    "sudo", "doas", "env", "command", "builtin", "exec", "nohup", "time", "nice", "setsid", "xargs", "eval", "timeout",
    "if", "then", "else", "elif", "while", "until", "do", "!", "{",
];

/// The commands in a command line: cut at separators, and inside substitutions too.
pub(super) fn parts(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut rest = text.as_str();
    while let Some(character) = rest.chars().next() {
        // `2>&1` and `>&-` copy a handle; the ampersand there starts nothing.
        if let Some(tail) = rest.strip_prefix(">&")
            && tail.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        {
            part.push_str(">&");
            rest = tail;
            continue;
        }
        match character {
            '&' | '|' | ';' | '\n' | '\r' | '`' | '(' | ')' => parts.push(std::mem::take(&mut part)),
            other => part.push(other),
        }
        rest = &rest[character.len_utf8()..];
    }
    parts.push(part);
    let spaced = parts.iter().map(|part| one_space(part.strip_suffix('$').unwrap_or(part)));
    spaced.filter(|part| !part.is_empty()).collect()
}

/// Every text that a refusal is compared with: the whole, each part, and each part as it would
/// read without quotes, variables in front, carriers (`sudo`, `env` …) and the program's folder.
pub(super) fn readings(text: &str) -> Vec<String> {
    let mut readings = vec![text.trim().to_owned(), one_space(text)];
    for part in parts(text) {
        let bare: String = part.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
        let bare = one_space(&bare);
        let mut words: &str = &bare;
        loop {
            readings.push(words.to_owned());
            readings.push(without_folder(words));
            let (first, rest) = words.split_once(' ').unwrap_or((words, ""));
            if rest.is_empty() || !leads(first) {
                break;
            }
            words = rest;
            // Options and numbers of the carrier: `sudo -u x`, `timeout 5`.
            while let Some((option, rest)) = words.split_once(' ') {
                if !option.starts_with('-') && !option.starts_with(|c: char| c.is_ascii_digit()) {
                    break;
                }
                readings.push(rest.to_owned());
                words = rest;
            }
        }
        readings.push(part);
    }
    readings.sort();
    readings.dedup();
    readings
}

/// Whether a word stands before a command: a carrier, `NAME=value`, or a redirection.
fn leads(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    CARRIERS.contains(&name) || word.contains('=') || word.contains(['>', '<'])
}

fn without_folder(words: &str) -> String {
    let (program, rest) = words.split_once(' ').unwrap_or((words, ""));
    let name = program.rsplit('/').next().unwrap_or(program);
    if rest.is_empty() { name.to_owned() } else { format!("{name} {rest}") }
}

fn one_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
