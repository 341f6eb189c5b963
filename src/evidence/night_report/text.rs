//! The report for a terminal: at most 80 columns, nothing but lines.

use crate::model::amount::{count, duration};
use crate::model::decimal::Exact;

use super::{NightReport, clock};

/// The widest line.
const WIDTH: usize = 80;
/// Files that are listed; the other forms list more.
const FILES: usize = 12;

/// The report as lines.
pub fn text(report: &NightReport, utc_offset_seconds: i32) -> Vec<String> {
    let mut lines = Vec::new();
    let at = |ts: &str| clock(ts, utc_offset_seconds);
    let name = report.name.as_deref().unwrap_or("loop");
    push(&mut lines, "", &format!("{name} · run {}", report.run));
    if let Some(goal) = &report.goal {
        push(&mut lines, "  ", goal);
    }
    let wall = millis(report.time.wall);
    let times = format!("{} to {} ({})", at(&report.started), at(&report.ended), duration(wall));
    push(&mut lines, "  ", &format!("{times} · {} iterations · {}", report.iterations, cost(report)));

    if !report.waits.is_empty() {
        heading(&mut lines, "Waits for you");
        for waiting in &report.waits {
            push(&mut lines, "  ", &format!("{} {} (since {})", waiting.id, waiting.what, at(&waiting.since)));
            push(&mut lines, "     ", &waiting.about);
            push(&mut lines, "     ", &waiting.command);
        }
    }
    verdict(&mut lines, report);
    changes(&mut lines, report);
    money(&mut lines, report);
    night(&mut lines, report);
    list(&mut lines, "Be careful with", &report.risks);
    list(&mut lines, "Check it", &report.checking);
    list(&mut lines, "Take it over", &report.taking_over);
    lines
}

fn verdict(lines: &mut Vec<String>, report: &NightReport) {
    heading(lines, "Verdict");
    let verdict = &report.verdict;
    push(lines, "  ", &verdict.words);
    let names: Vec<&str> = [verdict.status, verdict.stop_reason, verdict.certificate].into_iter().flatten().collect();
    if !names.is_empty() {
        push(lines, "  ", &format!("({})", names.join(" · ")));
    }
    if let Some(detail) = verdict.detail.as_ref().filter(|detail| !detail.is_empty()) {
        push(lines, "  ", detail);
    }
    for criterion in &report.criteria {
        push(lines, if criterion.met { "  ✓ " } else { "  ✗ " }, &criterion.text);
        if !criterion.met {
            push(lines, "      ", &criterion.why);
        } else if let Some(proof) = &criterion.proof {
            push(lines, "      ", proof);
        }
    }
    if let Some(proven) = &verdict.proven {
        push(lines, "  ", &format!("proven: {proven}"));
    }
    if let Some(not_proven) = verdict.not_proven {
        push(lines, "  ", &format!("not proven: {not_proven}"));
    }
}

fn changes(lines: &mut Vec<String>, report: &NightReport) {
    heading(lines, "What changed");
    push(lines, "  ", &report.changes.in_words());
    for file in report.changes.files.iter().take(FILES) {
        let role = if file.role == "judges" { " (judges the work)" } else { "" };
        push(lines, "  ", &format!("{:<8} {}{role}", file.kind, file.path));
    }
    let left = report.changes.files.len().saturating_sub(FILES);
    if left > 0 {
        push(lines, "  ", &format!("… and {left} more; `nightloop report --md FILE` lists them"));
    }
    let mut newly = |what: &str, names: &[String]| {
        if !names.is_empty() {
            push(lines, "  ", &format!("{what}: {}", names.join(", ")));
        }
    };
    newly("now green, red at the start", &report.newly.passing);
    newly("now red, green at the start", &report.newly.failing);
    if let Some(names) = &report.newly.failing_since_last_run {
        newly("now red, green in the run before", names);
    }
    if let Some(names) = &report.newly.passing_since_last_run {
        newly("now green, red in the run before", names);
    }
}

fn money(lines: &mut Vec<String>, report: &NightReport) {
    heading(lines, "Money");
    let money = &report.money;
    let limit = match (money.limit_usd, money.left_usd) {
        (Some(limit), Some(left)) => format!(" of {}, {} left", limit.dollars(), left.dollars()),
        (Some(limit), None) => format!(" of {}", limit.dollars()),
        (None, _) => String::new(),
    };
    let tokens = count(money.tokens);
    push(lines, "  ", &format!("{}{limit} · {tokens} tokens · {} requests", cost(report), count(money.requests)));
    for share in money.by_role.iter().chain(&money.by_model) {
        let tokens = count(share.tokens);
        push(lines, "  ", &format!("{:<24} {:>10} {:>14} tokens", share.of, dollars(share.cost_usd), tokens));
    }
    if money.lost > 0 {
        let most =
            money.lost_at_most_usd.map_or_else(|| "unknown".to_owned(), |usd| format!("at most {}", usd.dollars()));
        push(lines, "  ", &format!("{} requests with unknown outcome: {most}", money.lost));
    }
}

fn night(lines: &mut Vec<String>, report: &NightReport) {
    heading(lines, "The night");
    let glyph = |doing: &Option<&str>| match doing {
        Some("work") => '█',
        Some("check") => '▒',
        Some("limit") => 'L',
        Some("human") => '?',
        Some("stalled") => '!',
        Some(_) => '×',
        None => ' ',
    };
    let line: String = report.time.columns.iter().map(glyph).collect();
    push(lines, "  ", &line);
    let parts: Vec<String> =
        report.time.parts.iter().map(|part| format!("{} {}", part.doing, duration(millis(part.millis)))).collect();
    push(lines, "  ", &parts.join(" · "));
    let lost: i64 = report.time.parts.iter().filter(|part| part.lost).map(|part| part.millis).sum();
    if lost > 0 {
        push(lines, "  ", &format!("lost to limits, people, stalls and gaps: {}", duration(millis(lost))));
    }
}

fn list(lines: &mut Vec<String>, title: &str, items: &[String]) {
    if !items.is_empty() {
        heading(lines, title);
        items.iter().for_each(|item| push(lines, "  ", item));
    }
}

fn heading(lines: &mut Vec<String>, title: &str) {
    lines.push(String::new());
    lines.push(title.to_owned());
}

/// A text, broken between words where it is too wide, each line behind the same indent.
fn push(lines: &mut Vec<String>, indent: &str, text: &str) {
    let indent_width = indent.chars().count();
    let room = WIDTH.saturating_sub(indent_width).max(1);
    let blank = " ".repeat(indent_width);
    let mut line = String::new();
    let mut first = true;
    let mut flush = |line: &mut String| {
        let lead = if std::mem::take(&mut first) { indent } else { &blank };
        lines.push(format!("{lead}{line}").trim_end().to_owned());
        line.clear();
    };
    // Blanks within a line are kept: columns stay columns.
    for word in text.split_inclusive(' ') {
        let wide = |text: &str| unicode_width::UnicodeWidthStr::width(text);
        if !line.is_empty() && wide(&line) + wide(word.trim_end()) > room {
            flush(&mut line);
        }
        for character in word.chars() {
            line.push(character);
            if wide(&line) > room && character != ' ' {
                let over = line.pop();
                flush(&mut line);
                line.extend(over);
            }
        }
    }
    flush(&mut line);
}

pub(super) fn cost(report: &NightReport) -> String {
    match (report.money.cost_usd, report.money.known_cost_usd) {
        _ if report.money.requests == 0 => "nothing spent".to_owned(),
        (Some(cost), _) => cost.dollars(),
        (None, Some(known)) => format!("cost unknown, at least {}", known.dollars()),
        (None, None) => "cost unknown".to_owned(),
    }
}

pub(super) fn dollars(cost: Option<Exact>) -> String {
    cost.map_or_else(|| "unknown".to_owned(), Exact::dollars)
}

pub(super) fn millis(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
