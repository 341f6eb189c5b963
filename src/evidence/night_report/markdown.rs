//! The report as Markdown, for a file or a pull request.

use crate::model::amount::{count, duration};

use super::text::{cost, dollars, millis};
use super::{NightReport, clock};

pub fn markdown(report: &NightReport, utc_offset_seconds: i32) -> String {
    let at = |ts: &str| clock(ts, utc_offset_seconds);
    let mut out = format!("# {}\n\n", plain(report.name.as_deref().unwrap_or("loop")));
    if let Some(goal) = &report.goal {
        out.push_str(&format!("> {}\n\n", plain(goal)));
    }
    out.push_str(&format!(
        "Run `{}`, {} to {} ({}), {} iterations, {}.\n",
        report.run,
        at(&report.started),
        at(&report.ended),
        duration(millis(report.time.wall)),
        report.iterations,
        cost(report)
    ));
    if !report.waits.is_empty() {
        out.push_str("\n## Waits for you\n\n");
        for waiting in &report.waits {
            let (about, since) = (plain(&waiting.about), at(&waiting.since));
            out.push_str(&format!(
                "* **{} {}** (since {since}): {about}. `{}`\n",
                waiting.id, waiting.what, waiting.command
            ));
        }
    }
    verdict(&mut out, report);
    out.push_str(&format!("\n## What changed\n\n{}\n", report.changes.in_words()));
    if !report.changes.files.is_empty() {
        out.push_str("\n| file | change | what it is | iterations |\n|---|---|---|---|\n");
        for file in &report.changes.files {
            let iterations: Vec<String> = file.iterations.iter().map(u32::to_string).collect();
            let row = [plain(&file.path), file.kind.to_owned(), file.role.to_owned(), iterations.join(", ")];
            out.push_str(&format!("| {} |\n", row.join(" | ")));
        }
    }
    let newly = &report.newly;
    for (what, names) in [
        ("Now green, red at the start", Some(&newly.passing)),
        ("Now red, green at the start", Some(&newly.failing)),
        ("Now green, red in the run before", newly.passing_since_last_run.as_ref()),
        ("Now red, green in the run before", newly.failing_since_last_run.as_ref()),
    ] {
        if let Some(names) = names.filter(|names| !names.is_empty()) {
            out.push_str(&format!("\n{what}: {}.\n", plain(&names.join(", "))));
        }
    }
    money(&mut out, report);
    out.push_str("\n## The night\n\n| what | how long |\n|---|---|\n");
    for part in &report.time.parts {
        let lost = if part.lost { " (lost)" } else { "" };
        out.push_str(&format!("| {}{lost} | {} |\n", part.doing, duration(millis(part.millis))));
    }
    list(&mut out, "Be careful with", &report.risks, plain);
    list(&mut out, "Check it", &report.checking, |line| format!("`{line}`"));
    list(&mut out, "Take it over", &report.taking_over, |line| format!("`{line}`"));
    out
}

fn verdict(out: &mut String, report: &NightReport) {
    let verdict = &report.verdict;
    out.push_str(&format!("\n## Verdict\n\n**{}**\n", plain(&verdict.words)));
    let names: Vec<&str> = [verdict.status, verdict.stop_reason, verdict.certificate].into_iter().flatten().collect();
    if !names.is_empty() {
        out.push_str(&format!("\n`{}`\n", names.join(" · ")));
    }
    if let Some(detail) = verdict.detail.as_ref().filter(|detail| !detail.is_empty()) {
        out.push_str(&format!("\n{}\n", plain(detail)));
    }
    out.push('\n');
    for criterion in &report.criteria {
        let mark = if criterion.met { 'x' } else { ' ' };
        let more = match (&criterion.proof, criterion.met) {
            (Some(proof), true) => format!(" ({})", plain(proof)),
            (None, true) => String::new(),
            (_, false) => format!(": {}", plain(&criterion.why)),
        };
        out.push_str(&format!("* [{mark}] {}{more}\n", plain(&criterion.text)));
    }
    if let Some(proven) = &verdict.proven {
        out.push_str(&format!("\nProven: {}.\n", plain(proven)));
    }
    if let Some(not_proven) = verdict.not_proven {
        out.push_str(&format!("\nNot proven: {not_proven}.\n"));
    }
}

fn money(out: &mut String, report: &NightReport) {
    let money = &report.money;
    out.push_str(&format!(
        "\n## Money\n\n{}; {} tokens in {} requests.\n\n| of | calls | tokens | cost |\n|---|---|---|---|\n",
        cost(report),
        count(money.tokens),
        count(money.requests)
    ));
    let iterations = money.by_iteration.iter().map(|share| (format!("iteration {}", share.of), share));
    let others = money.by_role.iter().chain(&money.by_model).map(|share| (plain(&share.of), share));
    for (of, share) in others.chain(iterations) {
        let cost = dollars(share.cost_usd);
        out.push_str(&format!("| {of} | {} | {} | {cost} |\n", count(share.calls), count(share.tokens)));
    }
}

fn list(out: &mut String, title: &str, items: &[String], show: impl Fn(&str) -> String) {
    if !items.is_empty() {
        out.push_str(&format!("\n## {title}\n\n"));
        items.iter().for_each(|item| out.push_str(&format!("* {}\n", show(item))));
    }
}

/// Somebody else's words, so that they are text and nothing else: no link, no markup, no cell.
fn plain(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    for character in words.chars() {
        if matches!(character, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '!' | '&' | '~') {
            out.push('\\');
        }
        out.push(character);
    }
    out
}
