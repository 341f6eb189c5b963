//! The tool that replaces an exact text in a file.
//!
//! Guesses nothing: what is not found, or found more than once, is refused with what would help
//! to ask again. Invariant: a refused edit leaves the file as it was.

use std::collections::BTreeMap;
use std::io::Read;

use super::call::{ToolContext, ToolOutcome};
use super::inputs::{EditFile, bounded};
use crate::workspace::contain::Root;

pub(super) fn edit(ctx: &ToolContext, input: &EditFile) -> Result<ToolOutcome, String> {
    if input.old_string.is_empty() {
        return Err("old_string is empty; use write_file to create a file".to_owned());
    }
    if input.old_string == input.new_string {
        return Err("old_string and new_string are the same: nothing to change".to_owned());
    }
    let root = Root::open(&ctx.workspace)?;
    let relative = root.relative(&input.path)?;
    let path = bounded(&input.path);
    let most = ctx.limits.write_file_bytes;
    let mut bytes = Vec::new();
    let file = root.read(&relative)?;
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|error| format!("{path}: {error}"))?;
    if bytes.len() > most {
        return Err(format!("{path} is larger than {most} bytes, the most this tool edits"));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8 text"))?;

    let places: Vec<usize> = text.match_indices(&input.old_string).map(|(at, _)| at).collect();
    let all = input.replace_all.unwrap_or(false);
    match places.len() {
        0 => return Err(not_found(&path, &text, &input.old_string)),
        1 => {}
        _ if all => {}
        count => {
            let lines: Vec<String> = places.iter().take(10).map(|at| line_of(&text, *at).to_string()).collect();
            return Err(format!(
                "old_string occurs {count} times in {path} (lines {}); add lines around it to make it unique, or set replace_all",
                lines.join(", ")
            ));
        }
    }
    let grown = text.len() - input.old_string.len() * places.len();
    if grown.saturating_add(input.new_string.len().saturating_mul(places.len())) > most {
        return Err(format!("{path} would become larger than {most} bytes"));
    }
    let new = text.replace(&input.old_string, &input.new_string);
    let target = root.target_within(&relative, &ctx.protected, ctx.within.as_deref())?;
    target.replace(new.as_bytes()).map_err(|error| format!("{path} was not written: {error}"))?;
    let first = places.first().map_or(1, |at| line_of(&text, *at));
    Ok(ToolOutcome::text(format!("Replaced {} in {path}, first at line {first}", times(places.len()))))
}

fn times(count: usize) -> String {
    if count == 1 { "1 occurrence".to_owned() } else { format!("{count} occurrences") }
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

fn not_found(path: &str, text: &str, old: &str) -> String {
    let wanted = old.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    let mut message = format!("old_string occurs 0 times in {path}");
    if let Some((number, line)) = nearest(text, wanted) {
        message.push_str(&format!("; the nearest line is {number}: {:?}", bounded(line)));
        if line.trim() == wanted {
            message.push_str(" (the white space or the lines after it differ)");
        }
    }
    message
}

/// The line most like `wanted`, by shared pairs of bytes, if any is at all alike.
fn nearest<'t>(text: &'t str, wanted: &str) -> Option<(usize, &'t str)> {
    let scored = text.lines().enumerate().map(|(at, line)| (likeness(line.trim(), wanted), at + 1, line));
    // The first of equals: strictly greater wins.
    let best = scored.fold((0, 0, ""), |best, next| if next.0 > best.0 { next } else { best });
    (best.0 >= 300).then_some((best.1, best.2))
}

/// Per mille of shared byte pairs (Dice). Only the starts of very long lines are compared.
fn likeness(a: &str, b: &str) -> usize {
    let (a, b) = (&a.as_bytes()[..a.len().min(400)], &b.as_bytes()[..b.len().min(400)]);
    if a == b {
        return if a.is_empty() { 0 } else { 1000 };
    }
    let mut pairs: BTreeMap<&[u8], usize> = BTreeMap::new();
    a.windows(2).for_each(|pair| *pairs.entry(pair).or_default() += 1);
    let mut shared = 0usize;
    for pair in b.windows(2) {
        if let Some(left) = pairs.get_mut(pair).filter(|left| **left > 0) {
            *left -= 1;
            shared += 1;
        }
    }
    let all = a.len().saturating_sub(1) + b.len().saturating_sub(1);
    (2000 * shared).checked_div(all).unwrap_or(0)
}
