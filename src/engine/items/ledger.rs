//! The log, the last error and the progress of a PRD's items, as lines for people and for the next author.
//!
//! Invariants: what is in the files is never lost: lines that roll out of the log go to its archive, and the progress
//! only grows; an entry names its run and iteration, so that it is written once however often it is tried.

use crate::playbook::passes::event::{By, ItemSettled, PassJudged, PassVerdict};
use crate::playbook::passes::measure;
use crate::workspace::plain::{self, Bits, Durability};

use super::super::context::Context;
use super::super::error::EngineError;
use super::super::excerpt;
use super::beside::progress_path;
use super::{ARCHIVE, LAST_ERROR, LAST_PRD, LOG};

/// Lines of the log that stay in it.
pub const RADIUS: usize = 50;
/// The largest of these files that is still added to.
const MAX_FILE: usize = 8 << 20;
/// Of a check's output this much goes to whoever tries next.
pub const MAX_OUTPUT: usize = 6_000;
/// Concerns and actions that are written out.
const MAX_LINES: usize = 20;

pub(super) fn write(cx: &Context<'_>, judged: &PassJudged, settled: &ItemSettled) -> Result<(), EngineError> {
    let run = cx.state().run().as_str();
    let mark = format!("(run {}, iteration {})", &run[run.len().saturating_sub(8)..], judged.iteration);
    let date = cx.state().time.last_ts.get(..10).unwrap_or_default().to_owned();
    let attempt = cx.state().passes().chosen_in(judged.iteration).map_or(0, |chosen| chosen.pass);
    let entry = if settled.passes {
        format!("[OK] {date} {} passes, attempt {attempt} {mark}\n", judged.subject.as_deref().unwrap_or_default())
    } else {
        let why = settled.problem.as_deref().unwrap_or(&judged.detail);
        let why = why.lines().next().unwrap_or_default();
        let item = judged.subject.as_deref().unwrap_or_default();
        format!(
            "[ERROR] {date} {item}, attempt {attempt}: {why} {mark}\nSee {LAST_ERROR}\n",
            why = &why[..why.floor_char_boundary(300)]
        )
    };
    log(cx, &cx.secrets().redact(&entry), &mark)?;
    if let Some(sha256) = settled.sha256.filter(|_| settled.passes) {
        let text = cx.blobs().get(&sha256)?;
        replace(cx, LAST_PRD, &String::from_utf8_lossy(&text))?;
        return progress(cx, judged, &date, &mark);
    }
    let vector = error_vector(cx, judged, settled, attempt)?;
    replace(cx, LAST_ERROR, &cx.secrets().redact(&vector))
}

/// Adds to the log; what no longer fits goes to the archive first.
fn log(cx: &Context<'_>, entry: &str, mark: &str) -> Result<(), EngineError> {
    let log = current(cx, LOG)?;
    if log.contains(mark) {
        return Ok(());
    }
    let (out, kept) = rolled(&log, entry);
    if !out.is_empty() {
        let archived = current(cx, ARCHIVE)?;
        // A crash between the two files leaves the lines in both; the mark says that they are there already.
        if !archived.contains(mark) {
            replace(cx, ARCHIVE, &format!("{archived}# moved out of the log {mark}\n{out}"))?;
        }
    }
    replace(cx, LOG, &kept)
}

fn error_vector(
    cx: &Context<'_>,
    judged: &PassJudged,
    settled: &ItemSettled,
    attempt: u32,
) -> Result<String, EngineError> {
    let state = cx.state();
    let item = judged.subject.as_deref().unwrap_or_default();
    let mut text = format!("---- ERROR VECTOR ({item}, attempt {attempt}, {}) ----\n", judged.verdict.name());
    text.push_str(settled.problem.as_deref().unwrap_or(&judged.detail));
    text.push('\n');
    text.push_str(&concerns(judged));
    if let Some(iteration) = &state.current {
        for (name, result) in measure::failed_checks(state, iteration) {
            text.push_str(&format!("\n---- {name} ----\n"));
            text.push_str(&excerpt::of_blob(cx.blobs(), result.map(|result| result.output), MAX_OUTPUT)?);
        }
    }
    Ok(text)
}

/// In the style that the file has; a new one gets blocks.
fn progress(cx: &Context<'_>, judged: &PassJudged, date: &str, mark: &str) -> Result<(), EngineError> {
    let path = progress_path(cx);
    let known = current(cx, &path)?;
    if known.contains(mark) {
        return Ok(());
    }
    let item = judged.subject.as_deref().unwrap_or_default();
    let author = cx.state().current.as_ref().and_then(|iteration| iteration.author());
    let intent = author.map(|report| one_line(&report.intent)).unwrap_or_default();
    let learnings: Vec<String> = author
        .into_iter()
        .flat_map(|report| report.learnings.iter().take(MAX_LINES).map(|line| one_line(line)))
        .collect();
    let entry = if is_table(&known) {
        let learnt = if learnings.is_empty() { intent } else { learnings.join("; ") };
        format!("{date} | {item} | passes | {learnt} {mark}\n")
    } else {
        let mut entry = format!("## {date} - {item}\n- {intent} {mark}\n");
        if let Some(report) = author.filter(|report| !report.files_touched.is_empty()) {
            let files: Vec<_> = report.files_touched.iter().take(MAX_LINES).map(|file| one_line(file)).collect();
            entry.push_str(&format!("- Files changed: {}\n", files.join(", ")));
        }
        if !learnings.is_empty() {
            entry.push_str("- **Learnings for future iterations:**\n");
            learnings.iter().for_each(|line| entry.push_str(&format!("  - {line}\n")));
        }
        entry.push_str("---\n");
        entry
    };
    let head = if known.is_empty() { new_progress(date) } else { String::new() };
    let gap = if known.is_empty() || known.ends_with("\n\n") {
        ""
    } else if known.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    let entry = cx.secrets().redact(&entry).into_owned();
    replace(cx, &path, &format!("{known}{head}{gap}{entry}"))
}

/// How a progress file begins.
pub(super) fn new_progress(date: &str) -> String {
    format!("# Progress Log\nStarted: {date}\n---\n")
}

/// The files that people of such a project expect, empty where there are none.
pub(super) fn begin(cx: &Context<'_>) -> Result<(), EngineError> {
    for path in [LOG, LAST_ERROR, &progress_path(cx)] {
        if plain::kind(cx.workspace(), path).is_ok_and(|kind| kind.is_none()) {
            replace(cx, path, "")?;
        }
    }
    Ok(())
}

pub(super) fn current(cx: &Context<'_>, path: &str) -> Result<String, EngineError> {
    let odd = |why: String| EngineError::Resumable {
        message: why,
        hint: "move the file away, then run `nightloop resume`".to_owned(),
    };
    let file = plain::read(cx.workspace(), path, MAX_FILE).map_err(|fault| odd(fault.to_string()))?;
    let bytes = file.map(|file| file.bytes).unwrap_or_default();
    String::from_utf8(bytes).map_err(|_| odd(format!("{path} is not UTF-8")))
}

pub(super) fn replace(cx: &Context<'_>, path: &str, text: &str) -> Result<(), EngineError> {
    plain::put(cx.workspace(), path, text.as_bytes(), Bits::Kept, Durability::Synced).map_err(|fault| {
        EngineError::Resumable {
            message: format!("the log of the items cannot be written: {fault}"),
            hint: "free some space, or move away what is in the way, then run `nightloop resume`".to_owned(),
        }
    })
}

/// What leaves the log, and what stays in it with the new entry.
fn rolled(log: &str, entry: &str) -> (String, String) {
    let gap = if log.is_empty() { "" } else { "\n" };
    let ended = if log.is_empty() || log.ends_with('\n') { "" } else { "\n" };
    let whole = format!("{log}{ended}{gap}{entry}");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let out = lines.len().saturating_sub(RADIUS);
    (lines[..out].concat(), lines[out..].concat())
}

/// One line an entry: `date | item | outcome | what was learnt`.
fn is_table(progress: &str) -> bool {
    let entries = progress.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let (table, all) = entries.fold((0, 0), |(table, all), line| {
        let is_row = line.get(..4).is_some_and(|year| year.bytes().all(|b| b.is_ascii_digit()))
            && line.matches(" | ").count() >= 2;
        (table + usize::from(is_row), all + 1)
    });
    table > 0 && table * 2 >= all
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn concerns(judged: &PassJudged) -> String {
    let mut text = String::new();
    for concern in judged.concerns.iter().take(MAX_LINES) {
        text.push_str(&format!(
            "- {} {}: {} -> {}\n",
            concern.severity.name(),
            one_line(&concern.location),
            one_line(&concern.description),
            one_line(&concern.recommendation)
        ));
    }
    text
}

/// What the last pass came to, for whoever goes on.
pub fn last_pass(judged: &PassJudged) -> String {
    let who = match &judged.by {
        By::Author => "the author".to_owned(),
        By::Detour(name) => format!("the detour {name}"),
    };
    let mut text = format!("{} by {who}: {}\n", judged.verdict.name(), judged.detail);
    if judged.verdict == PassVerdict::Refused {
        text.push_str("Change something this time.\n");
    }
    text.push_str(&concerns(judged));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_keeps_fifty_lines_and_loses_none() {
        let mut log = String::new();
        let mut archive = String::new();
        for number in 0..60 {
            let (out, kept) = rolled(&log, &format!("[OK] entry {number}\n"));
            archive.push_str(&out);
            log = kept;
            assert!(log.lines().count() <= RADIUS, "{number}");
        }
        let all = format!("{archive}{log}");
        for number in 0..60 {
            assert!(all.contains(&format!("entry {number}\n")), "{number}");
        }
        assert_eq!(all.lines().count(), 60 * 2 - 1);
        // A last line without an end counts, and gets one.
        let (out, kept) = rolled("x\n".repeat(49).trim_end(), "new\n");
        assert_eq!((out.as_str(), kept.lines().count()), ("x\n", RADIUS));
    }

    #[test]
    fn a_progress_file_keeps_its_style() {
        assert!(is_table("# progress\n\n2026-02-01 | SHELL-001 | passes | tests are slow\n"));
        assert!(!is_table("# Ralph Progress Log\nStarted: x\n---\n\n## 2026 - US-001\n- did it\n---\n"));
        assert!(!is_table(""));
    }
}
