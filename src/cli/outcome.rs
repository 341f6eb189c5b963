//! How a finished run is told: exit code, and a few lines that matter at seven in the morning.

use crate::engine::error::code;
use crate::evidence::report;
use crate::machine::event::Signal;
use crate::machine::guards;
use crate::machine::halt::ended_at;
use crate::machine::integrity;
use crate::machine::remarks;
use crate::machine::run::RunState;
use crate::machine::words;
use crate::model::stop::{ExitStatus, StopReason};
use crate::playbook::passes::stuck::{Stuck, stuck};

use super::text;

/// The exit code of a run's end.
pub fn exit_code(state: &RunState) -> u8 {
    let Some(halted) = &state.halt else { return code::RESUMABLE };
    match (halted.status, halted.signal) {
        (ExitStatus::ExitConverged, _) => 0,
        (ExitStatus::ExitBudgetExceeded, _) => 2,
        (ExitStatus::ExitNeedInfo, _) => code::NEED_INFO,
        (_, Some(Signal::UserInterrupt)) => 130,
        (_, Some(Signal::Terminated)) => 143,
        (_, Some(Signal::SpendLimit)) => code::RESUMABLE,
        (_, Some(Signal::DecisionNeeded)) => code::NEED_INFO,
        (ExitStatus::ExitBlocked, _) if halted.stop_reason == StopReason::BackpressureSignal => 4,
        (ExitStatus::ExitBlocked | ExitStatus::ExitDiverged, _) => 1,
    }
}

/// What the operator asked of this run beside loop.yaml, and when it is to leave off.
pub fn asked(state: &RunState) -> Vec<String> {
    let typed = &state.started.typed;
    let mut lines = Vec::new();
    if !typed.is_empty() {
        lines.push(format!("  asked for: {}", text::safe(&typed.join(" "))));
    }
    if let Some(end) = state.end.as_ref().filter(|_| state.halt.is_none()) {
        lines.push(format!("  until {} ({})", end.at, text::safe(&end.moment)));
    }
    lines
}

/// What waits for a person after its attempts, with the commands that go on with it.
pub fn parked(state: &RunState) -> Vec<String> {
    let told = |stuck: &Stuck| {
        let lines = stuck.lines().into_iter().enumerate();
        let moved =
            lines.map(|(index, line)| format!("{}{}", if index == 0 { "  " } else { "    " }, text::safe(&line)));
        moved.collect::<Vec<_>>()
    };
    stuck(state).iter().flat_map(told).collect()
}

/// What is to be known of the checks themselves.
pub fn judges(state: &RunState) -> Vec<String> {
    if state.began_before_replays() {
        return Vec::new();
    }
    let compared = integrity::of(state).and_then(|integrity| integrity.words());
    let nothing = integrity::proves_nothing(state).into_iter().map(|id| words::proves_nothing(&id));
    compared.into_iter().chain(nothing).map(|line| text::safe(&line)).collect()
}

/// What cannot go on and why; so many lines of it, and how many more there are.
pub fn standstill(state: &RunState) -> Vec<String> {
    const MOST: usize = 10;
    let all = state.playbook().standstill(state);
    let more = all.len().saturating_sub(MOST);
    let more = (more > 0).then(|| format!("and {more} more"));
    all.into_iter().take(MOST).chain(more).map(|line| text::safe(&line)).collect()
}

/// The end of a run in words.
pub fn summary(state: &RunState) -> Vec<String> {
    let Some(halted) = &state.halt else { return vec![format!("the run is in {}", state.state)] };
    let mut lines =
        vec![format!("{} ({})", halted.status, halted.stop_reason), format!("  {}", text::safe(&halted.detail))];
    lines.extend(state.slept.iter().map(|slept| format!("  {}", text::safe(&slept.describe()))));
    let certificate = state.iterations().rev().find_map(|iteration| iteration.certificate.as_ref());
    if let Some(certificate) = certificate {
        let residual = certificate.residual.map_or_else(|| "null".to_owned(), |r| r.to_string());
        let met = certificate.acceptance_criteria_checklist.iter().filter(|f| f.met).count();
        lines.push(format!(
            "  certificate {} · residual {residual} · {met} of {} criteria met",
            certificate.kind,
            certificate.acceptance_criteria_checklist.len()
        ));
        for finding in certificate.acceptance_criteria_checklist.iter().filter(|finding| !finding.met) {
            lines.push(format!("  unmet: {} ({})", text::safe(&finding.criterion), text::safe(&finding.why)));
        }
    }
    lines.extend(parked(state));
    if let Some(shown) = guards::shown(state).filter(|_| !state.began_before_replays()) {
        lines.push(format!("  proven: {}", text::safe(shown)));
        lines.push(format!("  not proven: {}", guards::DOES_NOT_PROVE));
    }
    lines.extend(judges(state).into_iter().map(|line| format!("  {line}")));
    lines.extend(remarks::of(state).iter().map(|remark| format!("  note: {}", text::safe(remark))));
    lines.extend(standstill(state).into_iter().map(|line| format!("  {line}")));
    let spent = &state.spent;
    let cost = match (spent.cost_usd, spent.requests) {
        (_, 0) => String::new(),
        (Some(cost), _) => format!(" · {}", cost.dollars()),
        (None, _) => " · cost unknown".to_owned(),
    };
    lines.push(format!(
        "  {} iteration(s) · {} · {} tool calls · {} tokens{cost}",
        spent.iterations,
        text::took(spent.millis),
        spent.tool_calls,
        text::count(spent.tokens()),
    ));
    if halted.status == ExitStatus::ExitBlocked {
        lines.extend(report::next_actions(halted).into_iter().map(|action| format!("  next: {action}")));
    }
    if let Some(end) = ended_at(state) {
        let dimension = end.dimension;
        lines.push(format!("  next: `nightloop resume --raise {dimension}=...` goes on with more than {}.", end.limit));
    }
    if halted.status == ExitStatus::ExitNeedInfo {
        lines.push("  next: add what is missing to loop.yaml, then `nightloop run` again.".to_owned());
    }
    lines
}
