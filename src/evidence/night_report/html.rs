//! The report as one HTML file: no script, nothing from elsewhere, light and dark, fit to print.
//!
//! Invariant: every text is escaped; there is no address in it that a browser would follow.

use crate::model::amount::{count, duration};

use super::text::{cost, dollars, millis};
use super::{NightReport, clock};

const STYLE: &str = "\
:root{color-scheme:light dark;--fg:#1c1f24;--bg:#fff;--dim:#667;--line:#d8dce3;--good:#1a7f4b;--bad:#b3261e;--work:#3b6fd4;\
--check:#7fa6ea;--limit:#c98a00;--human:#8b5cd6;--stalled:#b3261e;--down:#999}\
@media(prefers-color-scheme:dark){:root{--fg:#e6e8ec;--bg:#15181d;--dim:#9aa3b2;--line:#333a45;--good:#5fd396;--bad:#ff8a80;\
--work:#7aa5ff;--check:#4669a8;--limit:#e5b045;--human:#b794f6;--stalled:#ff8a80;--down:#777}}\
*{box-sizing:border-box}body{margin:0 auto;max-width:52rem;padding:1.5rem 1rem;font:16px/1.5 system-ui,sans-serif;color:var(--fg);\
background:var(--bg);overflow-wrap:anywhere}h1{font-size:1.4rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem;border-bottom:\
1px solid var(--line)}p{margin:.4rem 0}.dim{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}.verdict{font-size:1.2rem;\
font-weight:600}table{border-collapse:collapse;width:100%;font-size:.9rem}td,th{text-align:left;padding:.25rem .5rem;border-bottom:\
1px solid var(--line);vertical-align:top}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}code{font-family:\
ui-monospace,monospace;font-size:.9em}ul{padding-left:1.2rem}svg{display:block;width:100%;height:auto;margin:.5rem 0}\
@media print{body{max-width:none;padding:0;font-size:11pt}h2{break-after:avoid}tr,li{break-inside:avoid}}";

pub fn html(report: &NightReport, utc_offset_seconds: i32) -> String {
    let at = |ts: &str| clock(ts, utc_offset_seconds);
    let name = escape(report.name.as_deref().unwrap_or("loop"));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{name}</title><style>{STYLE}</style></head><body>\n\
         <h1>{name}</h1>\n"
    );
    if let Some(goal) = &report.goal {
        paragraph(&mut out, "", goal);
    }
    let when = format!(
        "Run {}, {} to {} ({}), {} iterations, {}.",
        report.run,
        at(&report.started),
        at(&report.ended),
        duration(millis(report.time.wall)),
        report.iterations,
        cost(report)
    );
    paragraph(&mut out, "dim", &when);
    if !report.waits.is_empty() {
        heading(&mut out, "Waits for you");
        for waiting in &report.waits {
            let about = format!("{} {} (since {}): {}", waiting.id, waiting.what, at(&waiting.since), waiting.about);
            paragraph(&mut out, "", &about);
            out.push_str(&format!("<p><code>{}</code></p>\n", escape(&waiting.command)));
        }
    }
    verdict(&mut out, report);
    changes(&mut out, report);
    money(&mut out, report);
    night(&mut out, report);
    list(&mut out, "Be careful with", &report.risks, false);
    list(&mut out, "Check it", &report.checking, true);
    list(&mut out, "Take it over", &report.taking_over, true);
    out.push_str("</body></html>\n");
    out
}

fn verdict(out: &mut String, report: &NightReport) {
    heading(out, "Verdict");
    let verdict = &report.verdict;
    let class = match verdict.good {
        Some(true) => "verdict good",
        Some(false) => "verdict bad",
        None => "verdict",
    };
    paragraph(out, class, &verdict.words);
    let names: Vec<&str> = [verdict.status, verdict.stop_reason, verdict.certificate].into_iter().flatten().collect();
    if !names.is_empty() {
        paragraph(out, "dim", &names.join(" · "));
    }
    if let Some(detail) = verdict.detail.as_ref().filter(|detail| !detail.is_empty()) {
        paragraph(out, "", detail);
    }
    out.push_str("<table>\n");
    for criterion in &report.criteria {
        let (class, mark) = if criterion.met { ("good", "✓ met") } else { ("bad", "✗ not met") };
        let proof = criterion.proof.as_deref().filter(|_| criterion.met).unwrap_or(&criterion.why);
        let cells = [escape(&criterion.text), format!("<span class=\"{class}\">{mark}</span>"), escape(proof)];
        row(out, "td", &cells.map(|cell| (cell, false)));
    }
    out.push_str("</table>\n");
    if let Some(proven) = &verdict.proven {
        paragraph(out, "", &format!("Proven: {proven}."));
    }
    if let Some(not_proven) = verdict.not_proven {
        paragraph(out, "", &format!("Not proven: {not_proven}."));
    }
    residuals(out, report);
}

/// The residuals as a line; a gap where there is none.
fn residuals(out: &mut String, report: &NightReport) {
    // For drawing only; nothing is compared with it.
    let values: Vec<Option<f64>> =
        report.residuals.iter().map(|residual| residual.as_ref().and_then(|text| text.parse().ok())).collect();
    let most = values.iter().flatten().copied().fold(0.0_f64, f64::max);
    if values.len() < 2 || most <= 0.0 {
        return;
    }
    let last = (values.len() - 1) as f64;
    let x = |index: usize| 10.0 + 580.0 * index as f64 / last;
    let y = |value: f64| 100.0 - 90.0 * value / most;
    out.push_str("<svg viewBox=\"0 0 600 110\" role=\"img\" aria-label=\"residual by iteration\">");
    out.push_str("<line x1=\"10\" y1=\"100\" x2=\"590\" y2=\"100\" stroke=\"var(--line)\"/>");
    let mut path = String::new();
    let mut pen_up = true;
    for (index, value) in values.iter().enumerate() {
        match value {
            Some(value) => {
                path.push_str(&format!("{}{:.1} {:.1}", if pen_up { 'M' } else { 'L' }, x(index), y(*value)));
                pen_up = false;
            }
            None => pen_up = true,
        }
    }
    out.push_str(&format!("<path d=\"{path}\" fill=\"none\" stroke=\"var(--work)\" stroke-width=\"2\"/></svg>\n"));
    let first = report.residuals.iter().flatten().next().map_or("?", String::as_str);
    let now = report.residuals.iter().rev().flatten().next().map_or("?", String::as_str);
    paragraph(
        out,
        "dim",
        &format!("The distance to the goal (residual): {first} in the first iteration, {now} in the last."),
    );
}

fn changes(out: &mut String, report: &NightReport) {
    heading(out, "What changed");
    paragraph(out, "", &report.changes.in_words());
    if !report.changes.files.is_empty() {
        out.push_str("<table>\n");
        row(out, "th", &["file", "change", "what it is", "iterations"].map(|cell| (cell.to_owned(), false)));
        for file in &report.changes.files {
            let iterations: Vec<String> = file.iterations.iter().map(u32::to_string).collect();
            let cells = [
                format!("<code>{}</code>", escape(&file.path)),
                file.kind.to_owned(),
                file.role.to_owned(),
                iterations.join(", "),
            ];
            row(out, "td", &cells.map(|cell| (cell, false)));
        }
        out.push_str("</table>\n");
    }
    let newly = &report.newly;
    for (what, names) in [
        ("Now green, red at the start", Some(&newly.passing)),
        ("Now red, green at the start", Some(&newly.failing)),
        ("Now green, red in the run before", newly.passing_since_last_run.as_ref()),
        ("Now red, green in the run before", newly.failing_since_last_run.as_ref()),
    ] {
        if let Some(names) = names.filter(|names| !names.is_empty()) {
            paragraph(out, "", &format!("{what}: {}.", names.join(", ")));
        }
    }
}

fn money(out: &mut String, report: &NightReport) {
    heading(out, "Money");
    let money = &report.money;
    let (tokens, requests) = (count(money.tokens), count(money.requests));
    paragraph(out, "", &format!("{}; {tokens} tokens in {requests} requests.", cost(report)));
    if let (Some(limit), Some(left)) = (money.limit_usd, money.left_usd) {
        paragraph(out, "dim", &format!("{} of {} are left.", left.dollars(), limit.dollars()));
    }
    out.push_str("<table>\n");
    let header = [("of", false), ("calls", true), ("tokens", true), ("cost", true)];
    row(out, "th", &header.map(|(cell, number)| (cell.to_owned(), number)));
    let iterations = money.by_iteration.iter().map(|share| (format!("iteration {}", share.of), share));
    let others = money.by_role.iter().chain(&money.by_model).map(|share| (escape(&share.of), share));
    for (of, share) in others.chain(iterations) {
        let numbers = [count(share.calls), count(share.tokens), dollars(share.cost_usd)];
        let [calls, tokens, cost] = numbers.map(|number| (number, true));
        row(out, "td", &[(of, false), calls, tokens, cost]);
    }
    out.push_str("</table>\n");
}

fn night(out: &mut String, report: &NightReport) {
    heading(out, "The night");
    let width = 600.0 / report.time.columns.len().max(1) as f64;
    out.push_str("<svg viewBox=\"0 0 600 24\" role=\"img\" aria-label=\"what the time went into\">");
    for (index, doing) in report.time.columns.iter().enumerate() {
        if let Some(doing) = doing {
            let x = width * index as f64;
            // A hair wider, so that no seams show.
            out.push_str(&format!(
                "<rect x=\"{x:.2}\" y=\"0\" width=\"{:.2}\" height=\"24\" fill=\"var(--{doing})\"/>",
                width + 0.3
            ));
        }
    }
    out.push_str("</svg>\n<table>\n");
    for part in &report.time.parts {
        let lost = if part.lost { " (lost)" } else { "" };
        let cells = [(format!("{}{lost}", part.doing), false), (duration(millis(part.millis)), true)];
        row(out, "td", &cells);
    }
    out.push_str("</table>\n");
}

fn list(out: &mut String, title: &str, items: &[String], code: bool) {
    if items.is_empty() {
        return;
    }
    heading(out, title);
    out.push_str("<ul>\n");
    for item in items {
        let item = escape(item);
        let item = if code { format!("<code>{item}</code>") } else { item };
        out.push_str(&format!("<li>{item}</li>\n"));
    }
    out.push_str("</ul>\n");
}

fn heading(out: &mut String, title: &str) {
    out.push_str(&format!("<h2>{title}</h2>\n"));
}

fn paragraph(out: &mut String, class: &str, text: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    out.push_str(&format!("<p{class}>{}</p>\n", escape(text)));
}

/// A row of cells that are HTML already, each with whether it is a number.
fn row(out: &mut String, tag: &str, cells: &[(String, bool)]) {
    out.push_str("<tr>");
    for (cell, number) in cells {
        let class = if *number { " class=\"n\"" } else { "" };
        out.push_str(&format!("<{tag}{class}>{cell}</{tag}>"));
    }
    out.push_str("</tr>\n");
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}
