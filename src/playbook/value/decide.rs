//! The decision engine: which step comes next in an iteration. Pure, deterministic, no model.
//!
//! Role: close an iteration when it is over, with the housekeeping that is due; else take the first row of the
//! priority table (`table`) that applies, held against the budget.
//! Not its role: what a step does (`actions`), how healthy the run is (`monitor`).
//!
//! Invariants: every way into an action is bounded by a counter of the folded run that the action itself moves, so no
//! pair of rows can call each other for ever. A run that cannot go on ends as partial, never as a success.

pub mod history;
pub mod pick;
pub mod table;
#[cfg(test)]
mod tests;

use crate::machine::event::RunHalted;
use crate::machine::halt::halt;
use crate::machine::run::RunState;
use crate::model::budget::{self, Dimension, Exhausted};
use crate::model::decision::Mode;
use crate::model::fraction::Fraction;
use crate::model::stop::{ExitStatus, StopReason};
use crate::model::value::{Action, Outcome, TaskStatus, VerificationStatus, VrcMode};

use super::Choice;
use super::monitor;

/// What the engine wants next, before the iteration and the people are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    Step(Action, String),
    /// Nothing bounded is left to try. Where people are waited for, one is asked once.
    GiveUp(String),
    /// A limit of the whole run: asking would be a step more than it allows.
    End(String),
}

/// What comes next.
pub fn choose(run: &RunState) -> Choice {
    // A passed gate is certified by the iteration it was passed in; another step would make it stale.
    if passed_here(run) {
        return Choice::Close;
    }
    if is_over(run) {
        return close(run);
    }
    match verdict(run) {
        NextStep::Step(action, why) => check_between(run).unwrap_or(Choice::Begin(action, why)),
        NextStep::GiveUp(why) if may_ask(run) => Choice::Begin(Action::InteractivePause, why),
        // What the iteration did is measured and written down before the end.
        NextStep::GiveUp(_) | NextStep::End(_) if history::in_iteration(run).next().is_some() => close(run),
        NextStep::GiveUp(why) | NextStep::End(why) => {
            let detail = format!("partial: {why}; {}", standing(run));
            let halted = halt(run, ExitStatus::ExitBudgetExceeded, StopReason::MaxIters, detail);
            Choice::Halt(Box::new(RunHalted { exhausted: limit_behind(run), ..halted }))
        }
    }
}

/// What the table says, within the limits of the run.
pub fn verdict(run: &RunState) -> NextStep {
    let settings = run.value_settings();
    let (steps, most) = (run.value().decision_steps(), settings.max_steps);
    if steps >= most {
        return NextStep::End(format!("{steps} of {most} steps are used (max_steps)"));
    }
    let (attempts, most) = (run.value().exit_gate_attempts, settings.max_exit_gate_attempts);
    if attempts >= most {
        return NextStep::GiveUp(format!(
            "{attempts} of {most} attempts at the exit gate failed (max_exit_gate_attempts)"
        ));
    }
    within_budget(run, table::choose(run).1)
}

/// From this share of the budget on only what leads out is done.
const NEARLY_SPENT: (i128, i128) = (95, 100);
/// From this share on full value checks become quick ones.
const MOSTLY_SPENT: (i128, i128) = (80, 100);

/// The highest used share of a limit of the run, and which limit.
pub fn spent_share(run: &RunState) -> (Fraction, Dimension) {
    let (limits, spent) = (&run.limits, &run.spent);
    let count = |used: u64, limit: u64| Fraction::new(i128::from(used), i128::from(limit)).unwrap_or(whole());
    let mut shares = vec![
        (count(spent.iterations, limits.max_iterations), Dimension::Iterations),
        (count(spent.millis / 1_000, limits.max_total_seconds), Dimension::TotalSeconds),
        (count(spent.tool_calls, limits.max_total_tool_calls), Dimension::TotalToolCalls),
    ];
    if let Some(limit) = limits.max_total_tokens {
        shares.push((count(spent.tokens(), limit), Dimension::TotalTokens));
    }
    if let (Some(limit), Some(cost)) = (limits.max_cost_usd, spent.cost_usd.or(spent.known_cost_usd)) {
        let share = Fraction::from_exact(cost).checked_div(Fraction::from_exact(limit)).unwrap_or(whole());
        shares.push((share, Dimension::CostUsd));
    }
    let mut highest = (Fraction::zero(), Dimension::Iterations);
    for share in shares {
        if share.0 > highest.0 {
            highest = share;
        }
    }
    highest
}

/// A limit that allows nothing is used up.
fn whole() -> Fraction {
    Fraction::from_integer(1)
}

pub fn has_spent(run: &RunState, share: (i128, i128)) -> bool {
    Fraction::new(share.0, share.1).is_some_and(|share| spent_share(run).0 >= share)
}

/// Is so much of the budget used that only what leads out is done?
pub fn nearly_spent(run: &RunState) -> bool {
    has_spent(run, NEARLY_SPENT)
}

fn within_budget(run: &RunState, wanted: NextStep) -> NextStep {
    let NextStep::Step(action, _) = &wanted else { return wanted };
    if !nearly_spent(run) || leads_out(action) {
        return wanted;
    }
    let (share, dimension) = spent_share(run);
    let percent = share.checked_mul(Fraction::from_integer(100)).unwrap_or(whole()).to_decimal_text(0);
    let why = format!("{percent} % of the budget for {dimension} is used");
    if run.value().tasks_with(TaskStatus::Done).next().is_some() {
        table::gate(run, format!("{why}: what there is goes to the exit gate"))
    } else {
        NextStep::GiveUp(format!("{why} and no task is done"))
    }
}

const fn leads_out(action: &Action) -> bool {
    match action {
        Action::Fix { .. } | Action::RunQc | Action::ExitGate | Action::InteractivePause => true,
        Action::Gate { .. }
        | Action::Execute { .. }
        | Action::GenerateQc
        | Action::CriticalEval
        | Action::CourseCorrect
        | Action::Research { .. }
        | Action::ServiceFix { .. }
        | Action::CoherenceEval
        | Action::EpicBoundary { .. }
        | Action::Vrc { .. }
        | Action::PlanHealth
        | Action::Strategy => false,
    }
}

/// Was the exit gate passed in this iteration?
fn passed_here(run: &RunState) -> bool {
    run.value().exit_gate_passed.is_some_and(|step| run.value().in_iteration.contains(&step))
}

/// Has this iteration had its steps, its last one, or its full value check?
fn is_over(run: &RunState) -> bool {
    let steps = history::in_iteration(run).count();
    let most = usize::try_from(run.value_settings().steps_per_iteration).unwrap_or(usize::MAX).max(1);
    steps >= most
        || (steps > 0 && work_is_over(run))
        || history::in_iteration(run).next_back().is_some_and(|record| record.action.closes_iteration())
        || (steps > 0 && history::checked_fully(run))
}

/// Is what is left of the iteration's limits kept for its close?
pub fn work_is_over(run: &RunState) -> bool {
    !run.began_before_continuations() && budget::iteration_nearly_used(&run.limits, &run.spent)
}

/// May a person be asked before the end? Once: what was asked and changed nothing is not asked again.
fn may_ask(run: &RunState) -> bool {
    let asked = history::last_decision(run).is_some_and(|record| record.action == Action::InteractivePause);
    run.operator.patience.mode == Mode::Wait && !asked
}

/// The end of an iteration: each kind of housekeeping that is due, once, then nothing more.
fn close(run: &RunState) -> Choice {
    let did = |wanted: fn(&Action) -> bool| history::after_last_decision(run).any(|record| wanted(&record.action));
    // The value check is the last word.
    if did(|action| matches!(action, Action::Vrc { .. })) {
        return Choice::Close;
    }
    if !did(|action| *action == Action::Strategy)
        && let Some(why) = monitor::strategy_due(run)
    {
        return Choice::Begin(Action::Strategy, why);
    }
    if !did(|action| *action == Action::PlanHealth)
        && let Some(why) = plan_health_due(run)
    {
        return Choice::Begin(Action::PlanHealth, why);
    }
    match closing_check(run) {
        Some((mode, why)) => Choice::Begin(Action::Vrc { mode }, why.to_owned()),
        None => Choice::Close,
    }
}

/// A look at the plan once many tasks came in that nobody planned, and after a correction that brought some.
fn plan_health_due(run: &RunState) -> Option<String> {
    let settings = run.value_settings();
    if !settings.plan_health || nearly_spent(run) {
        return None;
    }
    let fresh = |task: &&crate::model::value::Task| task.is_open() && !task.source.is_planned() && !task.health_checked;
    let count = run.value().tasks.iter().filter(fresh).count();
    let corrected = history::last_decision(run)
        .is_some_and(|record| record.action == Action::CourseCorrect && record.outcome == Outcome::Progress);
    let many = count >= usize::try_from(settings.plan_health_after_tasks).unwrap_or(usize::MAX);
    (count > 0 && (many || corrected)).then(|| format!("{count} tasks came in after the plan was made"))
}

/// The value check that closes an iteration.
fn closing_check(run: &RunState) -> Option<(VrcMode, &'static str)> {
    let last = history::in_iteration(run).next_back()?;
    // An iteration without anything to show would end the run, so it has at least its value to show.
    let shows_something = run.current.as_ref().is_some_and(|iteration| !iteration.reports.is_empty());
    if shows_something && matches!(last.action, Action::ExitGate | Action::InteractivePause) {
        return None;
    }
    let forced = matches!(last.action, Action::CriticalEval | Action::CourseCorrect);
    if has_spent(run, MOSTLY_SPENT) && !forced {
        Some((VrcMode::Quick, "most of the budget is used: a quick look at the value closes the iteration"))
    } else {
        Some((VrcMode::Full, "a look at the whole value closes the iteration"))
    }
}

/// A quick look at the value between two steps, after one that moved something.
fn check_between(run: &RunState) -> Option<Choice> {
    if !run.value_settings().quick_vrc || history::in_iteration(run).next().is_none() {
        return None;
    }
    let moved = history::after_last_check(run)
        .find(|record| record.action.is_decision() && record.outcome == Outcome::Progress)?;
    let why = format!("step {} ({}) moved something", moved.step, moved.action);
    Some(Choice::Begin(Action::Vrc { mode: VrcMode::Quick }, why))
}

/// The limit of the run that is nearly used up: with more of it the run can go on.
fn limit_behind(run: &RunState) -> Option<Exhausted> {
    if run.began_before_continuations() || !nearly_spent(run) {
        return None;
    }
    let (_, dimension) = spent_share(run);
    let observed = match dimension {
        Dimension::Iterations => run.spent.iterations.to_string(),
        Dimension::TotalSeconds | Dimension::IterationSeconds => (run.spent.millis / 1_000).to_string(),
        Dimension::TotalToolCalls | Dimension::IterationToolCalls => run.spent.tool_calls.to_string(),
        Dimension::TotalTokens => run.spent.tokens().to_string(),
        Dimension::CostUsd => run.spent.cost_usd.or(run.spent.known_cost_usd)?.to_string(),
    };
    Some(Exhausted { dimension, observed, limit: run.limits.of(dimension)? })
}

/// How far the run came, in words.
fn standing(run: &RunState) -> String {
    let value = run.value();
    let score = value.latest_vrc().map_or("was never measured".to_owned(), |vrc| format!("is {}", vrc.value_score));
    format!(
        "{} of {} tasks are done, {} of {} checks pass, the value score {score}",
        value.tasks_with(TaskStatus::Done).count(),
        value.tasks.len(),
        value.count(VerificationStatus::Passed),
        value.verifications.len(),
    )
}
