//! How the run ended: the verdict large and plain, what is unmet, what it cost, what to do now.

use ratatui::text::{Line, Span};

use crate::console::action::Action;
use crate::console::charts::pen::Pen;
use crate::console::prose::wrap;
use crate::console::scene::Scene;
use crate::console::theme::Role;
use crate::console::widget;
use crate::evidence::report::next_actions;
use crate::machine::event::RunHalted;
use crate::machine::run::RunState;
use crate::model::certificate::{Certificate, CertificateKind};
use crate::model::safe::Safe;
use crate::model::stop::{ExitStatus, StopReason};

use super::Keys;

/// Unmet criteria that are named; the rest is counted.
const NAMED: usize = 4;

/// The rows of the verdict, the most important first.
pub(super) fn lines(scene: &Scene<'_>, keys: &Keys, halted: &RunHalted, columns: usize) -> Vec<Line<'static>> {
    let run = scene.run;
    let style = |role: Role| scene.theme.style(role);
    let mut lines = vec![banner(scene, halted)];
    let mut say = |name: &str, text: &str, role: Role| {
        for (index, row) in wrap(text, columns.saturating_sub(10)).into_iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            lines.push(Line::from(vec![
                Span::styled(format!("{name:>8}  "), style(Role::Muted)),
                Span::styled(row, style(role)),
            ]));
        }
    };
    say("why", Safe::line(&halted.detail).as_str(), Role::Text);
    if let Some(limit) = &halted.exhausted {
        let text = format!("{}: {} of {}", limit.dimension, Safe::line(&limit.observed), Safe::line(&limit.limit));
        say("limit", &text, Role::Warning);
    }
    if let Some(missing) = run.missing.as_ref().filter(|missing| !missing.is_empty()) {
        say("missing", Safe::line(&missing.join(", ")).as_str(), Role::Bad);
    }
    for next in next(halted, keys) {
        say("next", &next, Role::Emphasis);
    }
    if let Some(certificate) = last_certificate(run) {
        let findings = &certificate.acceptance_criteria_checklist;
        let unmet: Vec<_> = findings.iter().filter(|finding| !finding.met).collect();
        say(
            "criteria",
            &format!("{} of {} met{}", findings.len() - unmet.len(), findings.len(), rung(run)),
            Role::Text,
        );
        for finding in unmet.iter().take(NAMED) {
            let text = format!("{} {}: {}", scene.theme.glyphs().no, finding.id, finding.why);
            say("", Safe::line(&text).as_str(), Role::Bad);
        }
        if unmet.len() > NAMED {
            say("", &format!("and {} more unmet", unmet.len() - NAMED), Role::Bad);
        }
    }
    say("spent", &spent(run), Role::Text);
    for raised in &run.operator.overrides {
        let text = format!("{} raised {} from {} to {}", raised.by, raised.dimension, raised.from, raised.to);
        say("override", Safe::line(&text).as_str(), Role::Warning);
    }
    lines
}

/// Draws the rows; what does not fit is announced in the last one.
pub(super) fn draw(pen: &mut Pen<'_>, lines: Vec<Line<'static>>) {
    let rows = usize::from(pen.height());
    let hidden = lines.len().saturating_sub(rows);
    let shown = if hidden > 0 && rows > 1 { rows - 1 } else { rows };
    let all = lines.len();
    if let Some(banner) = lines.first() {
        let role_style = banner.style;
        for x in 0..pen.width() {
            pen.line(x, 0, Line::from(Span::styled(" ", role_style)));
        }
    }
    for (y, line) in (0..pen.height()).zip(lines.into_iter().take(shown)) {
        pen.line(0, y, line);
    }
    if hidden > 0 && rows > 1 {
        let text = format!("{} {} more rows with more room", pen.glyphs().new_below, all - shown);
        pen.text(0, pen.height() - 1, &text, Role::Muted);
    }
}

fn banner(scene: &Scene<'_>, halted: &RunHalted) -> Line<'static> {
    let glyphs = scene.theme.glyphs();
    let sign = if halted.status == ExitStatus::ExitConverged { glyphs.yes } else { glyphs.no };
    let status = halted.status.name().trim_start_matches("EXIT_");
    let certificate = match halting_kind(scene.run, halted) {
        Some(kind) => format!("certificate {kind}"),
        None => "no certificate".to_owned(),
    };
    let forbidden = halted.forbidden_state.map(|state| format!("   {state}")).unwrap_or_default();
    let style = scene.theme.style(Role::StateCurrent);
    let text = format!(" {sign} {status}   {certificate}   {}{forbidden} ", halted.stop_reason);
    Line::from(Span::styled(text, style)).style(style)
}

/// The certificate that the run ends with, as the halting report names it.
fn halting_kind(run: &RunState, halted: &RunHalted) -> Option<CertificateKind> {
    match halted.status {
        ExitStatus::ExitConverged => last_certificate(run).map(|certificate| certificate.kind),
        ExitStatus::ExitDiverged => Some(CertificateKind::Diverged),
        ExitStatus::ExitBudgetExceeded => Some(CertificateKind::Timeout),
        ExitStatus::ExitBlocked if halted.stop_reason == StopReason::BackpressureSignal => {
            Some(CertificateKind::Backpressure)
        }
        ExitStatus::ExitBlocked | ExitStatus::ExitNeedInfo => None,
    }
}

fn last_certificate(run: &RunState) -> Option<&Certificate> {
    run.iterations().rev().find_map(|iteration| iteration.certificate.as_ref())
}

fn rung(run: &RunState) -> String {
    let gate = run.iterations().rev().find_map(|iteration| iteration.gate.as_ref());
    match gate.and_then(|gate| gate.rung_achieved) {
        Some(rung) => format!(", rung {rung} (target {})", run.rung_target()),
        None => String::new(),
    }
}

fn next(halted: &RunHalted, keys: &Keys) -> Vec<String> {
    if halted.stop_reason == StopReason::Pass {
        return vec![format!("{} shows the proof; `nightloop verify` checks it again.", keys.of(Action::ShowEvidence))];
    }
    next_actions(halted).into_iter().map(str::to_owned).collect()
}

fn spent(run: &RunState) -> String {
    let spent = &run.spent;
    let cost = spent.cost_usd.map_or_else(|| "cost unknown".to_owned(), |cost| cost.dollars());
    format!(
        "{} iterations, {}, {} tool calls, {} tokens, {cost}",
        spent.iterations,
        widget::duration(spent.millis),
        widget::count(spent.tool_calls),
        widget::count(spent.tokens())
    )
}
