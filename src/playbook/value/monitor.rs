//! The process monitor: metrics and triggers, from the folded run alone.
//!
//! Role: say how the work goes (green, yellow, red), when a strategy session or a look at coherence is due, and the
//! fix limit in force. Not its role: changing anything; it may ask for a session, and it may lower a limit.
//! Invariants: whole numbers and fractions only; a limit is never raised; what is not known triggers nothing.

mod metrics;
#[cfg(test)]
mod tests;

use crate::machine::run::RunState;
use crate::model::fraction::Fraction;
use crate::model::value::tools::{Coherence, CoherenceFinding, StrategyAction, StrategyChange};
use crate::model::value::{Action, Task, TaskStatus, VerificationStatus};

use super::decide::{self, history};

/// Decision steps before the first strategy session.
const MIN_STEPS: usize = 5;
/// Decision steps between two of them, unless the last one asked for more.
const COOLDOWN: u32 = 5;
/// However long a strategy asks to be left alone, it is looked at again after this many steps.
const LONGEST_COOLDOWN: u32 = 50;
/// A task that failed this often churns.
const CHURN_RETRIES: u32 = 2;
const CHURN_YELLOW: usize = 2;
const CHURN_RED: usize = 3;
/// The same error so often in one check.
const SAME_ERROR: usize = 3;
/// Budget used to value reached.
const BUDGET_TO_VALUE: u64 = 2;
/// Below this share of the budget the ratio says nothing: preparing costs before anything is worth something.
const BUDGET_COUNTS_FROM: (i128, i128) = (3, 10);
/// A file that more than half of the done tasks touched.
const HOTSPOT: (i128, i128) = (1, 2);
const HOTSPOT_MIN_TASKS: usize = 4;
/// One cause behind more than this share of what the triages named.
const CLUSTER: (i128, i128) = (6, 10);
const CLUSTER_MIN: usize = 5;
/// A task that failed this often says that the parts do not fit together.
const COHERENCE_RETRIES: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Green,
    Yellow,
    Red,
}

impl Level {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Green => "GREEN",
            Self::Yellow => "YELLOW",
            Self::Red => "RED",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    Plateau,
    Churn,
    ErrorRecurrence,
    BudgetDivergence,
    EfficiencyCollapse,
    FileHotspot,
    CategoryClustering,
}

impl Pattern {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plateau => "plateau",
            Self::Churn => "churn",
            Self::ErrorRecurrence => "error_recurrence",
            Self::BudgetDivergence => "budget_divergence",
            Self::EfficiencyCollapse => "efficiency_collapse",
            Self::FileHotspot => "file_hotspot",
            Self::CategoryClustering => "category_clustering",
        }
    }
}

/// One thing that was noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    pub pattern: Pattern,
    pub level: Level,
    /// With names that agents chose; not cleaned.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub level: Level,
    /// In the order of [`Pattern`].
    pub triggers: Vec<Trigger>,
}

/// How the work goes. Says so whether or not the monitor is switched on.
pub fn status(run: &RunState) -> Status {
    let checks: [fn(&RunState) -> Option<Trigger>; 7] =
        [plateau, churn, error_recurrence, budget_divergence, efficiency_collapse, file_hotspot, category_clustering];
    let triggers: Vec<Trigger> = checks.iter().filter_map(|check| check(run)).collect();
    let level = triggers.iter().map(|trigger| trigger.level).max().unwrap_or(Level::Green);
    Status { level, triggers }
}

/// Is a strategy session due, and why?
pub fn strategy_due(run: &RunState) -> Option<String> {
    if !run.value_settings().process_monitor
        || decide::nearly_spent(run)
        || history::decisions(run).count() < MIN_STEPS
        || cools_down(run)
    {
        return None;
    }
    let status = status(run);
    let red: Vec<&str> =
        status.triggers.iter().filter(|one| one.level == Level::Red).map(|one| one.detail.as_str()).collect();
    (!red.is_empty()).then(|| red.join("; "))
}

fn cools_down(run: &RunState) -> bool {
    let Some(last) = history::last(run, |action| *action == Action::Strategy) else { return false };
    let changed = run.value().strategies.last().filter(|(step, _)| *step == last);
    let wanted = changed.map_or(COOLDOWN, |(_, change)| change.re_evaluate_after.clamp(COOLDOWN, LONGEST_COOLDOWN));
    let since = history::decisions_after(run, Some(last)).count();
    since < usize::try_from(wanted).unwrap_or(usize::MAX)
}

/// Fixes that one check may have. A strategy may lower the declared limit, never raise it.
pub fn fix_limit(run: &RunState) -> u32 {
    let declared = run.value_settings().max_fix_attempts;
    let strategy = run.value().strategy.as_ref().filter(|change| change.action == StrategyAction::StrategyChange);
    let limit = strategy.and_then(|change| change.changes.get("max_fix_attempts")?.trim().parse::<u32>().ok());
    // Research comes once the fixes of a check are used up: when it is wanted says how many there are before it.
    let research = strategy.filter(|_| !run.began_before_recovery()).and_then(research_after);
    let wished = limit.into_iter().chain(research).min();
    wished.map_or(declared, |wished| wished.clamp(1, declared.max(1)).min(declared))
}

fn research_after(change: &StrategyChange) -> Option<u32> {
    let wanted = change.changes.get("research_trigger")?;
    if wanted == "proactive" {
        return Some(1);
    }
    wanted.strip_prefix("after_")?.strip_suffix("_failures")?.parse().ok()
}

/// What can be seen of coherence without a model.
pub fn quick_coherence(run: &RunState) -> Vec<CoherenceFinding> {
    let churned = |task: &&Task| task.retries >= COHERENCE_RETRIES && task.status != TaskStatus::Descoped;
    let finding = |task: &Task| CoherenceFinding {
        dimension: "interaction_coherence".to_owned(),
        severity: Coherence::Critical,
        description: format!("task {} failed {} times", task.id, task.retries),
        suggested_action: None,
    };
    run.value().tasks.iter().filter(churned).map(finding).collect()
}

/// Is a full look at coherence due, and why? At most once in `coherence_interval` done tasks.
pub fn coherence_due(run: &RunState) -> Option<String> {
    let settings = run.value_settings();
    let done = history::done_after(run, history::last(run, |action| *action == Action::CoherenceEval));
    if !settings.coherence || done < settings.coherence_interval.max(1) {
        return None;
    }
    let critical = quick_coherence(run).into_iter().find(|finding| finding.severity == Coherence::Critical);
    let sign = critical.map(|finding| finding.description);
    if run.began_before_recovery() {
        return sign;
    }
    let drifting = || [file_hotspot, category_clustering].into_iter().find_map(|look| look(run));
    sign.or_else(|| drifting().map(|trigger| trigger.detail))
}

fn plateau(run: &RunState) -> Option<Trigger> {
    let flat = metrics::flat_since(run)?;
    let steps = history::decisions_after(run, Some(flat.step)).count();
    (steps >= metrics::PATIENCE).then(|| Trigger {
        pattern: Pattern::Plateau,
        level: Level::Red,
        detail: format!("the value score stays near {} for {steps} steps", flat.score),
    })
}

fn churn(run: &RunState) -> Option<Trigger> {
    let churning = |task: &&Task| task.is_open() && task.retries >= CHURN_RETRIES;
    let ids: Vec<&str> = run.value().tasks.iter().filter(churning).map(|task| task.id.as_str()).collect();
    let level = match ids.len() {
        count if count >= CHURN_RED => Level::Red,
        count if count >= CHURN_YELLOW => Level::Yellow,
        _ => return None,
    };
    let detail = format!("{} tasks fail again and again: {}", ids.len(), ids.join(", "));
    Some(Trigger { pattern: Pattern::Churn, level, detail })
}

fn error_recurrence(run: &RunState) -> Option<Trigger> {
    let failing = run.value().verifications.values().filter(|check| check.status == VerificationStatus::Failed);
    failing
        .filter_map(|check| {
            let last = check.failures.last()?;
            let same = check.failures.iter().filter(|failure| failure.signature == last.signature).count();
            (same >= SAME_ERROR).then(|| Trigger {
                pattern: Pattern::ErrorRecurrence,
                level: Level::Red,
                detail: format!("check {} failed {same} times with the same error", check.id),
            })
        })
        .next()
}

fn budget_divergence(run: &RunState) -> Option<Trigger> {
    let (used, dimension) = decide::spent_share(run);
    if used <= Fraction::new(BUDGET_COUNTS_FROM.0, BUDGET_COUNTS_FROM.1)? {
        return None;
    }
    let percent = |share: Fraction| share.checked_mul(Fraction::from_integer(100)).map(|p| p.to_decimal_text(0));
    let budget = format!("{} % of the budget for {dimension} is used", percent(used)?);
    let Some(vrc) = run.value().vrcs.iter().rev().find(|vrc| !vrc.carried) else {
        let detail = format!("{budget}, and the value was never measured");
        return Some(Trigger { pattern: Pattern::BudgetDivergence, level: Level::Yellow, detail });
    };
    let value = Fraction::from_exact(vrc.value_score);
    let allowed = value.checked_mul(Fraction::from_integer(BUDGET_TO_VALUE))?;
    (used >= allowed).then(|| Trigger {
        pattern: Pattern::BudgetDivergence,
        level: Level::Red,
        detail: format!("{budget} for a value score of {}", vrc.value_score),
    })
}

fn efficiency_collapse(run: &RunState) -> Option<Trigger> {
    metrics::efficiency_collapsed(run).then(|| Trigger {
        pattern: Pattern::EfficiencyCollapse,
        level: Level::Yellow,
        detail: "the value gained for a token is less than half of what it was".to_owned(),
    })
}

fn file_hotspot(run: &RunState) -> Option<Trigger> {
    let done: Vec<&Task> = run.value().tasks_with(TaskStatus::Done).collect();
    if done.len() < HOTSPOT_MIN_TASKS {
        return None;
    }
    let (path, count) = metrics::most_touched(&done)?;
    metrics::is_more_than(count, done.len(), HOTSPOT).then(|| Trigger {
        pattern: Pattern::FileHotspot,
        level: Level::Yellow,
        detail: format!("{count} of {} tasks changed {path}", done.len()),
    })
}

fn category_clustering(run: &RunState) -> Option<Trigger> {
    let (cause, count, all) = metrics::most_named_cause(run)?;
    (all >= CLUSTER_MIN && metrics::is_more_than(count, all, CLUSTER)).then(|| Trigger {
        pattern: Pattern::CategoryClustering,
        level: Level::Yellow,
        detail: format!("{count} of {all} failures have one cause: {cause}"),
    })
}
