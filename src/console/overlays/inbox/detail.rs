//! One decision in full: what is asked exactly, why, since when, and what happens without an answer.
//!
//! Role: its rows. Invariants: nothing of a command or a text is left out; everything foreign is harmless.

use ratatui::text::{Line, Span};

use super::super::super::scene::Scene;
use super::super::super::theme::{Role, Theme};
use super::super::super::widget::duration;
use super::super::text::{argv, fold, paragraphs, whole, wrap};
use super::Draft;
use super::blobs::Blobs;
use super::list::{asker, verdict};
use super::review::Review;
use crate::machine::operator::{Decision, DecisionStatus};
use crate::model::decision::{Request, Severity, VisionIssue};
use crate::model::digest::Digest;
use crate::model::safe::Safe;

/// Lines of a failed check's output.
const OUTPUT_ROWS: usize = 12;
/// Lines of a text that is shown from its beginning.
const TEXT_ROWS: usize = 400;

/// Rows, and the row of the change under the cursor.
pub(super) struct Detail {
    pub lines: Vec<Line<'static>>,
    pub cursor: Option<usize>,
    /// So many rows have to be read before it may be allowed.
    pub to_read: usize,
}

/// What the rows are made from.
pub(super) struct Sources<'a> {
    pub decision: &'a Decision,
    pub scene: &'a Scene<'a>,
    pub theme: &'a Theme,
    pub blobs: &'a Blobs,
    pub draft: Option<&'a Draft>,
    pub columns: usize,
}

impl Sources<'_> {
    fn styled(&self, text: impl Into<String>, role: Role) -> Line<'static> {
        Line::from(Span::styled(text.into(), self.theme.style(role)))
    }

    /// Foreign text of several lines.
    fn text(&self, text: &str, role: Role) -> Vec<Line<'static>> {
        paragraphs(text, self.columns).into_iter().map(|row| self.styled(row, role)).collect()
    }

    /// `label: text`, wrapped.
    fn labelled(&self, label: &str, text: &str) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (index, row) in wrap(&format!("{label} {}", Safe::line(text)), self.columns).into_iter().enumerate() {
            match row.strip_prefix(label).filter(|_| index == 0) {
                Some(rest) => lines.push(Line::from(vec![
                    Span::styled(label.to_owned(), self.theme.style(Role::Muted)),
                    Span::styled(rest.to_owned(), self.theme.style(Role::Text)),
                ])),
                None => lines.push(self.styled(row, Role::Text)),
            }
        }
        lines
    }

    /// A command, exactly: every blank, every line of it.
    fn command(&self, text: &str) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (number, line) in text.lines().enumerate() {
            for (piece_number, piece) in fold(&whole(line), self.columns.saturating_sub(4)).into_iter().enumerate() {
                let lead = match (number, piece_number) {
                    (0, 0) => "  $ ",
                    (_, 0) => "  > ",
                    _ => "    ",
                };
                lines.push(self.styled(format!("{lead}{piece}"), Role::Code));
            }
        }
        lines
    }

    fn bullets(&self, texts: &[String], role: Role) -> Vec<Line<'static>> {
        let bullet = self.theme.glyphs().bullet;
        texts.iter().flat_map(|text| self.item(bullet, text, role)).collect()
    }

    fn numbered(&self, texts: &[String]) -> Vec<Line<'static>> {
        texts
            .iter()
            .enumerate()
            .flat_map(|(index, text)| self.item(&(index + 1).to_string(), text, Role::Text))
            .collect()
    }

    fn item(&self, mark: &str, text: &str, role: Role) -> Vec<Line<'static>> {
        let indent = mark.chars().count() + 3;
        let rows = paragraphs(text, self.columns.saturating_sub(indent));
        rows.into_iter()
            .enumerate()
            .map(|(index, row)| {
                let lead = if index == 0 { format!("  {mark} ") } else { " ".repeat(indent) };
                Line::from(vec![
                    Span::styled(lead, self.theme.style(Role::Key)),
                    Span::styled(row, self.theme.style(role)),
                ])
            })
            .collect()
    }
}

pub(super) fn detail(from: &Sources<'_>) -> Detail {
    let mut lines = vec![head(from)];
    let review = from.draft.and_then(|draft| draft.review.as_ref());
    let refinement = matches!(from.decision.request, Request::Refinement { .. });
    if let Some(review) = review.filter(|review| review.previewing()) {
        lines.extend(review.lines(from.theme, from.columns).0);
        return Detail { lines, cursor: None, to_read: 0 };
    }
    let mut to_read = 0;
    if !refinement {
        lines.extend(request(from));
        if matches!(from.decision.request, Request::Permission { .. }) {
            to_read = lines.len();
        }
        lines.extend(checked(from));
        lines.push(Line::default());
    }
    lines.extend(from.labelled("Why:", &from.decision.why));
    lines.extend(ending(from));
    if let Some(note) = from.draft.and_then(|draft| draft.note.as_ref()) {
        lines.extend(from.labelled("Your note:", note));
    }
    let mut cursor = None;
    if refinement {
        let (rows, at) = proposal(from, review);
        cursor = review.map(|_| lines.len() + at);
        lines.extend(rows);
    }
    Detail { lines, cursor, to_read }
}

fn head(from: &Sources<'_>) -> Line<'static> {
    let decision = from.decision;
    let age = from.scene.since(&decision.asked_ts).map(duration).unwrap_or_default();
    let (word, role) = match decision.status {
        DecisionStatus::Open => (format!("waiting for you, {age}"), Role::Warning),
        DecisionStatus::Answered => ("answered, in progress".to_owned(), Role::Info),
        DecisionStatus::Closed => ("closed".to_owned(), Role::Good),
    };
    let clock = from.scene.clock(&decision.asked_ts);
    let style = |role| from.theme.style(role);
    Line::from(vec![
        Span::styled(format!("{} {}", decision.id, decision.request.name()), style(Role::Title)),
        Span::raw("  "),
        Span::styled(word, style(role)),
        Span::styled(format!("  asked {clock} by {}", asker(decision)), style(Role::Muted)),
    ])
}

fn request(from: &Sources<'_>) -> Vec<Line<'static>> {
    match &from.decision.request {
        Request::HumanAction { instructions, verify, timeout_seconds } => {
            let mut lines = from.text(instructions, Role::Text);
            match verify {
                Some(command) => {
                    lines.push(from.styled(format!("Checked by (at most {timeout_seconds} s):"), Role::Muted));
                    lines.extend(from.command(&argv(command)));
                }
                None => lines.push(from.styled("Nothing checks it: your answer counts.", Role::Muted)),
            }
            lines
        }
        Request::Question { question, choices } => {
            let mut lines = from.text(question, Role::Text);
            lines.extend(from.numbered(choices));
            lines
        }
        Request::Permission { tool, command, directory, rule } => {
            let mut lines = from.labelled("May this run, exactly as shown? Tool:", tool);
            lines.extend(from.command(command));
            lines.extend(from.labelled("In:", directory));
            lines.extend(from.labelled("Asked because of the rule:", rule));
            lines
        }
        Request::Refinement { .. } => Vec::new(),
        Request::Vision { issues } => vision(from, issues),
        Request::Tampering { iteration, findings, files, diff, trials } => {
            let text = format!("Iteration {iteration} made a criterion pass and changed files that guard it.");
            let mut lines = from.text(&text, Role::Text);
            lines.extend(from.bullets(findings, Role::Bad));
            if !files.is_empty() {
                lines.push(from.styled("Files:", Role::Muted));
                lines.extend(from.bullets(&files.iter().map(|file| file.path.clone()).collect::<Vec<_>>(), Role::Code));
            }
            for trial in trials {
                lines.extend(from.labelled("The", &trial.what));
                lines.extend(output(from, &trial.output));
            }
            if let Some(diff) = diff {
                lines.push(from.styled("What was changed:", Role::Muted));
                lines.extend(whole_text(from, diff));
            }
            lines
        }
        Request::Escalation { problem, options } => {
            let mut lines = from.text(problem, Role::Text);
            lines.extend(from.numbered(options));
            lines
        }
        Request::Stuck { subject, problem, parked, .. } => {
            let mut lines =
                subject.as_ref().map(|item| from.labelled("All attempts are used up at:", item)).unwrap_or_default();
            lines.extend(from.text(problem, Role::Text));
            lines.extend(
                from.text("Retry as it is, or write a hint: either one starts a new set of attempts.", Role::Muted),
            );
            if subject.is_some() {
                let words =
                    "Split: first replace the item with smaller ones in the file. Skip: leave it out of this run.";
                lines.extend(from.text(words, Role::Muted));
            }
            if *parked {
                lines.extend(from.text("Meanwhile the run continues with other items.", Role::Muted));
            }
            lines
        }
        Request::SpendLimit { detail } => {
            let mut lines = from.text(detail, Role::Bad);
            lines.extend(from.text("Raise the limit with the provider first, then retry.", Role::Text));
            lines
        }
    }
}

fn vision(from: &Sources<'_>, issues: &[VisionIssue]) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for issue in issues {
        let (word, role) = match issue.severity {
            Severity::Hard => ("HARD", Role::Bad),
            Severity::Soft => ("SOFT", Role::Warning),
        };
        for (index, row) in paragraphs(&issue.text, from.columns.saturating_sub(5)).into_iter().enumerate() {
            let lead = if index == 0 { word } else { "    " };
            lines.push(Line::from(vec![
                Span::styled(format!("{lead} "), from.theme.style(role)),
                Span::styled(row, from.theme.style(Role::Text)),
            ]));
        }
        if !issue.alternatives.is_empty() {
            lines.push(from.styled("     instead:", Role::Muted));
            lines.extend(from.bullets(&issue.alternatives, Role::Text));
        }
    }
    if issues.iter().any(|issue| issue.severity == Severity::Hard) {
        lines.extend(from.text("A HARD issue cannot be acknowledged: revise the vision, or end the run.", Role::Muted));
    }
    lines
}

/// The latest verification of a human action, with its output when it failed.
fn checked(from: &Sources<'_>) -> Vec<Line<'static>> {
    let decision = from.decision;
    if !matches!(decision.request, Request::HumanAction { verify: Some(_), .. }) {
        return Vec::new();
    }
    let glyphs = from.theme.glyphs();
    if decision.status == DecisionStatus::Answered {
        return vec![from.styled(format!("{} verification running {}", glyphs.current, glyphs.cut), Role::Info)];
    }
    let Some(check) = &decision.last_check else { return Vec::new() };
    let (end, took) = (Safe::line(&check.end.describe()), duration(check.millis));
    if check.end.passed() {
        return vec![from.styled(format!("{} verified: {end} after {took}", glyphs.yes), Role::Good)];
    }
    let text = format!("{} not yet: {end} (check {}, {took})", glyphs.no, decision.checks);
    let mut lines = vec![from.styled(text, Role::Bad)];
    lines.extend(output(from, &check.output));
    lines
}

/// A text as it is, bounded.
fn whole_text(from: &Sources<'_>, digest: &Digest) -> Vec<Line<'static>> {
    let bytes = match from.blobs.get(digest) {
        None => return vec![from.styled("  reading it", Role::Muted)],
        Some(Err(why)) => return vec![from.styled(format!("  it cannot be read: {why}"), Role::Warning)],
        Some(Ok(bytes)) => bytes,
    };
    let text = String::from_utf8_lossy(bytes);
    let rows = text.lines().take(TEXT_ROWS).flat_map(|line| fold(&whole(line), from.columns.saturating_sub(2)));
    let mut lines: Vec<_> = rows.map(|row| from.styled(format!("  {row}"), Role::Code)).collect();
    let more = text.lines().count().saturating_sub(TEXT_ROWS);
    if more > 0 {
        lines.push(from.styled(format!("  {} {more} lines more", from.theme.glyphs().cut), Role::Muted));
    }
    lines
}

/// The end of what a check printed.
fn output(from: &Sources<'_>, digest: &Digest) -> Vec<Line<'static>> {
    let bytes = match from.blobs.get(digest) {
        None => return vec![from.styled("  reading its output", Role::Muted)],
        Some(Err(why)) => return vec![from.styled(format!("  its output cannot be read: {why}"), Role::Warning)],
        Some(Ok(bytes)) => bytes,
    };
    let text = String::from_utf8_lossy(bytes);
    let all: Vec<&str> = text.lines().collect();
    let skipped = all.len().saturating_sub(OUTPUT_ROWS);
    let mut lines = Vec::new();
    if skipped > 0 {
        lines.push(from.styled(format!("  {} {skipped} lines before", from.theme.glyphs().cut), Role::Muted));
    }
    if all.is_empty() {
        lines.push(from.styled("  (it printed nothing)", Role::Muted));
    }
    for line in all.into_iter().skip(skipped) {
        let rows = fold(&whole(line), from.columns.saturating_sub(2));
        lines.extend(rows.into_iter().map(|row| from.styled(format!("  {row}"), Role::Code)));
    }
    lines
}

/// How it ended, or what happens if it does not.
fn ending(from: &Sources<'_>) -> Vec<Line<'static>> {
    let decision = from.decision;
    if decision.status == DecisionStatus::Open {
        return from.labelled("If nobody answers:", &from.scene.run.operator.patience.describe());
    }
    let mut lines = from.labelled("Answer:", &verdict(decision));
    if let Some(answered) = &decision.answer {
        if let crate::model::decision::Answer::Text(text) | crate::model::decision::Answer::Revise(text) =
            &answered.answer
        {
            lines.extend(from.text(text, Role::Operator));
        }
        if let Some(note) = &answered.note {
            lines.extend(from.labelled("Note:", note));
        }
    }
    if !decision.detail.is_empty() {
        lines.extend(from.labelled("Outcome:", &decision.detail));
    }
    lines
}

fn proposal(from: &Sources<'_>, review: Option<&Review>) -> (Vec<Line<'static>>, usize) {
    let Request::Refinement { path, before, after } = &from.decision.request else { return (Vec::new(), 0) };
    let mut lines = from.labelled("New text for", path);
    let Some(review) = review else {
        for digest in [before, after] {
            let text = match from.blobs.get(digest) {
                None => "reading it".to_owned(),
                Some(Err(why)) => format!("it cannot be read: {why}"),
                Some(Ok(bytes)) if std::str::from_utf8(bytes).is_err() => {
                    "it is not text, so it cannot be reviewed here: reject it, or end the run".to_owned()
                }
                Some(Ok(_)) => continue,
            };
            lines.extend(from.text(&text, Role::Warning));
            break;
        }
        return (lines, 0);
    };
    let start = lines.len();
    let (rows, at) = review.lines(from.theme, from.columns);
    lines.extend(rows);
    (lines, start + at)
}
