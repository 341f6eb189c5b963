//! The decisions as a list: what waits first, then what was decided lately.

use ratatui::text::{Line, Span};

use super::super::super::scene::Scene;
use super::super::super::theme::{Role, Theme};
use super::super::super::widget::{clip, duration, width};
use super::super::sheet::picked;
use crate::machine::operator::{Decision, DecisionStatus, Operator};
use crate::model::decision::DecisionId;
use crate::model::safe::Safe;

/// Open ones from the oldest on, then those in progress, then closed ones from the newest on.
pub(super) fn order(operator: &Operator) -> Vec<&Decision> {
    let of = |status| operator.decisions.iter().filter(move |decision| decision.status == status);
    of(DecisionStatus::Open).chain(of(DecisionStatus::Answered)).chain(of(DecisionStatus::Closed).rev()).collect()
}

/// Who asked, for people.
pub(super) fn asker(decision: &Decision) -> String {
    decision.asked_by.as_ref().map_or_else(|| "the engine".to_owned(), |by| Safe::line(&by.call).to_string())
}

/// What an answer was, by whom.
pub(super) fn verdict(decision: &Decision) -> String {
    match &decision.answer {
        Some(answered) => format!("{} by {}", answered.answer.name(), Safe::line(&answered.by)),
        None => "no answer".to_owned(),
    }
}

/// One row each.
pub(super) fn rows(
    scene: &Scene<'_>,
    theme: &Theme,
    selected: Option<DecisionId>,
    columns: usize,
) -> Vec<Line<'static>> {
    order(&scene.run.operator)
        .into_iter()
        .map(|decision| {
            picked(theme, row(decision, scene, theme, columns.saturating_sub(2)), Some(decision.id) == selected)
        })
        .collect()
}

fn row(decision: &Decision, scene: &Scene<'_>, theme: &Theme, columns: usize) -> Line<'static> {
    let glyphs = theme.glyphs();
    let age = scene.since(&decision.asked_ts).map(duration).unwrap_or_default();
    let (mark, role, tail) = match decision.status {
        DecisionStatus::Open => (glyphs.current, Role::Warning, format!("waits {age}, {}", asker(decision))),
        DecisionStatus::Answered => (glyphs.arrow_right, Role::Info, "in progress".to_owned()),
        DecisionStatus::Closed => (glyphs.yes, Role::Muted, verdict(decision)),
    };
    let head = format!("{mark} {:<4}{:<11} ", decision.id.to_string(), decision.request.name());
    let left = columns.saturating_sub(width(&head));
    // The gist keeps at least half; a narrow list says only how long.
    let tail = match left {
        34.. => clip(theme, &tail, left / 2),
        18.. if decision.status == DecisionStatus::Open => age,
        _ => String::new(),
    };
    let room = left.saturating_sub(width(&tail) + usize::from(!tail.is_empty()) * 2);
    let gist = clip(theme, Safe::line(&decision.request.gist()).as_str(), room);
    let pad = room.saturating_sub(width(&gist));
    let mut spans = vec![
        Span::styled(head, theme.style(role)),
        Span::styled(gist, theme.style(if role == Role::Muted { Role::Muted } else { Role::Text })),
    ];
    if !tail.is_empty() {
        spans.push(Span::raw(" ".repeat(pad + 2)));
        spans.push(Span::styled(tail, theme.style(Role::Muted)));
    }
    Line::from(spans)
}
