//! What the run is doing at the moment that is shown, and since when: one answer for overview, header and
//! "why is it not moving?".
//!
//! Not here: drawing, advice. Invariant: the first cause that holds the run is named; what only looks like
//! one (an open request under a pause) is not.

use crate::machine::call::{CallState, ToolPhase};
use crate::machine::event::{BackpressureSeen, Phase, Probe, RunHalted};
use crate::machine::operator::{Decision, Pause};
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::model::criterion::Proof;
use crate::model::safe::Safe;

use super::recent::{Recent, RecentStep};
use super::scene::{Link, Scene, millis_of};
use super::theme::{Glyphs, Role};
use super::widget;

/// What is going on.
#[derive(Debug, Clone, PartialEq)]
pub enum Activity<'a> {
    Ended(&'a RunHalted),
    Paused {
        by: Safe,
    },
    /// A person has to decide.
    Waiting(&'a Decision),
    /// An answer is carried out.
    Settling(&'a Decision),
    Stopping(&'a BackpressureSeen),
    /// The model server wants to be left alone until then.
    ServerWait {
        role: String,
        until_ms: i64,
        cause: Option<Failure>,
    },
    Check {
        what: String,
        argv: Option<Safe>,
    },
    /// A model was asked.
    Reply {
        role: String,
        model: Safe,
        turn: u32,
        writing: bool,
    },
    Tool {
        role: String,
        name: Safe,
        summary: Option<Safe>,
    },
    /// An agent between two of its steps.
    Agent {
        role: String,
    },
    /// The engine itself.
    State(State),
}

/// What the model server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub class: Safe,
    pub message: Safe,
    pub attempt: u32,
}

/// What is going on, with its beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct Now<'a> {
    pub activity: Activity<'a>,
    /// Time stamp of its beginning.
    pub since: String,
}

/// The present of the scene.
pub fn now<'a>(scene: &Scene<'a>, recent: &Recent) -> Now<'a> {
    let run = scene.run;
    let last = || run.time.last_ts.clone();
    let begun = || recent.step(run).map_or_else(last, |noted| noted.ts.clone());
    if let Some(halted) = &run.halt {
        return Now { activity: Activity::Ended(halted), since: last() };
    }
    if let Some(decision) = run.operator.open().next() {
        return Now { activity: Activity::Waiting(decision), since: decision.asked_ts.clone() };
    }
    if let Some(Pause::Holding { by, since }) = &run.operator.pause {
        return Now { activity: Activity::Paused { by: Safe::line(by) }, since: since.clone() };
    }
    if let Some(decision) = run.operator.unsettled() {
        return Now { activity: Activity::Settling(decision), since: last() };
    }
    if let Some(seen) = &run.backpressure {
        return Now { activity: Activity::Stopping(seen), since: last() };
    }
    if let Some(activity) = check(run, recent) {
        return Now { activity, since: begun() };
    }
    let call = run.call.as_ref();
    match call {
        Some(call) => Now { activity: of_call(scene, call, recent), since: begun() },
        None => {
            let since = recent.entered(run).map_or_else(last, |noted| noted.ts.clone());
            Now { activity: Activity::State(run.state), since }
        }
    }
}

fn check<'a>(run: &RunState, recent: &Recent) -> Option<Activity<'a>> {
    let (phase, probe) = run.open_probes.first().cloned()?;
    let what = match phase {
        Phase::Baseline => format!("{} (baseline)", probe.name()),
        Phase::Scouted => format!("{} (before the solver)", probe.name()),
        Phase::Iteration => probe.name(),
        Phase::Replay(number) => format!("{} (replay {number})", probe.name()),
        Phase::Gate => format!("{} (pass-gate)", probe.name()),
        Phase::Step(number) => format!("{} (step {number})", probe.name()),
        Phase::StepAgain(..) | Phase::ReplayAgain(..) => format!("{} (run again)", probe.name()),
        Phase::Detour => probe.name(),
        Phase::Pristine
        | Phase::PristineWithTools
        | Phase::PristineSince
        | Phase::AtStart
        | Phase::Reverted
        | Phase::Canary
        | Phase::CanaryAtStart
        | Phase::Empty => format!("{} ({})", probe.name(), phase.describe()),
    };
    let announced = recent.step(run).and_then(|noted| match &noted.what {
        // Of several checks at once only the latest is known by its command.
        RecentStep::Probe { phase: at, probe: latest, argv } if (*at, latest) == (phase, &probe) => Some(argv.clone()),
        RecentStep::Probe { .. } | RecentStep::Request { .. } | RecentStep::Failed { .. } | RecentStep::Tool { .. } => {
            None
        }
    });
    let argv = announced.or_else(|| declared_argv(run, &probe));
    Some(Activity::Check { what: Safe::line(&what).to_string(), argv })
}

fn declared_argv(run: &RunState, probe: &Probe) -> Option<Safe> {
    let Probe::Criterion(id) = probe else { return None };
    let criterion = run.criteria.iter().find(|criterion| criterion.id == *id)?;
    match &criterion.proof {
        Proof::Check { argv, .. } => Some(Safe::line(&argv.join(" "))),
        Proof::Judged | Proof::ExitGate | Proof::Items | Proof::Verified => None,
    }
}

fn of_call<'a>(scene: &Scene<'_>, call: &CallState, recent: &Recent) -> Activity<'a> {
    let run = scene.run;
    let role = Safe::line(&call.started.who()).to_string();
    let step = recent.step(run).map(|noted| &noted.what);
    if run.time.waiting_ms > 0
        && let Some(last) = millis_of(&run.time.last_ts)
    {
        let cause = match step {
            Some(RecentStep::Failed { class, message, attempt }) => {
                Some(Failure { class: class.clone(), message: message.clone(), attempt: *attempt })
            }
            _ => None,
        };
        let until_ms = last.saturating_add(i64::try_from(run.time.waiting_ms).unwrap_or(i64::MAX));
        return Activity::ServerWait { role, until_ms, cause };
    }
    if call.request_open {
        let writing = matches!(step, Some(RecentStep::Request { writing: true }));
        return Activity::Reply { role, model: Safe::line(&call.started.model), turn: call.turn, writing };
    }
    let running = call.tools.iter().find(|tool| matches!(tool.phase, ToolPhase::Intended { .. }));
    match running {
        Some(tool) => {
            let summary = match step {
                Some(RecentStep::Tool { id, summary, .. }) if *id == tool.tool_use.id => Some(summary.clone()),
                _ => None,
            };
            Activity::Tool { role, name: Safe::line(&tool.tool_use.name), summary }
        }
        None => Activity::Agent { role },
    }
}

impl Now<'_> {
    /// Milliseconds since it began.
    pub fn for_millis(&self, scene: &Scene<'_>) -> u64 {
        age(scene, &self.since)
    }

    pub fn glyph(&self, glyphs: &Glyphs) -> &'static str {
        match &self.activity {
            Activity::Ended(halted) if halted.stop_reason == crate::model::stop::StopReason::Pass => glyphs.yes,
            Activity::Ended(_) => glyphs.no,
            Activity::Paused { .. } => {
                if glyphs.braille {
                    "‖"
                } else {
                    "="
                }
            }
            Activity::Waiting(_) => glyphs.unknown,
            Activity::Stopping(_) => "!",
            Activity::ServerWait { .. } => {
                if glyphs.braille {
                    "◷"
                } else {
                    "~"
                }
            }
            Activity::Settling(_)
            | Activity::Check { .. }
            | Activity::Reply { .. }
            | Activity::Tool { .. }
            | Activity::Agent { .. }
            | Activity::State(_) => glyphs.current,
        }
    }

    pub fn role(&self) -> Role {
        match &self.activity {
            Activity::Ended(halted) if halted.stop_reason == crate::model::stop::StopReason::Pass => Role::Good,
            Activity::Ended(_) => Role::Bad,
            Activity::Paused { .. } | Activity::Waiting(_) | Activity::Stopping(_) | Activity::ServerWait { .. } => {
                Role::Warning
            }
            Activity::Settling(_)
            | Activity::Check { .. }
            | Activity::Reply { .. }
            | Activity::Tool { .. }
            | Activity::Agent { .. }
            | Activity::State(_) => Role::Info,
        }
    }

    /// Who is at it, in a word or two.
    pub fn subject(&self) -> String {
        match &self.activity {
            Activity::Ended(halted) => halted.status.name().trim_start_matches("EXIT_").to_owned(),
            Activity::Paused { .. } => "paused".to_owned(),
            Activity::Waiting(decision) => format!("waiting for you: {}", decision.id),
            Activity::Settling(decision) => format!("your answer to {}", decision.id),
            Activity::Stopping(_) => "stopping".to_owned(),
            Activity::ServerWait { .. } => "waiting for the model server".to_owned(),
            Activity::Check { what, .. } => what.clone(),
            Activity::Reply { role, .. } | Activity::Tool { role, .. } | Activity::Agent { role } => role.clone(),
            Activity::State(state) => state.name().to_owned(),
        }
    }

    /// What exactly, without the cause of a wait.
    pub fn brief(&self, scene: &Scene<'_>) -> String {
        let Activity::ServerWait { role, until_ms, .. } = &self.activity else { return self.detail(scene) };
        match u64::try_from(until_ms - shown_ms(scene)) {
            Ok(left) if left > 0 => {
                format!("until {}, {} left ({role})", scene.clock_at(*until_ms), widget::duration(left))
            }
            _ => format!("to answer a new attempt ({role})"),
        }
    }

    /// What exactly, in one line.
    pub fn detail(&self, scene: &Scene<'_>) -> String {
        match &self.activity {
            Activity::Ended(halted) => Safe::line(&halted.detail).to_string(),
            Activity::Paused { by } => format!("by {by} since {}", scene.clock(&self.since)),
            Activity::Waiting(decision) => {
                format!("{}: {}", decision.request.name(), Safe::line(&decision.request.gist()))
            }
            Activity::Settling(decision) => match &decision.request {
                crate::model::decision::Request::HumanAction { verify: Some(argv), .. } => {
                    format!("verifying: {}", Safe::line(&argv.join(" ")))
                }
                request => format!("carrying out: {}", Safe::line(&request.gist())),
            },
            Activity::Stopping(seen) => {
                let detail = Safe::line(&seen.detail);
                if detail.is_empty() {
                    seen.signal.describe().to_owned()
                } else {
                    format!("{} ({detail})", seen.signal.describe())
                }
            }
            Activity::ServerWait { cause, .. } => match cause {
                Some(failure) => format!("{}; {}: {}", self.brief(scene), failure.class, failure.message),
                None => self.brief(scene),
            },
            Activity::Check { argv, .. } => argv.as_ref().map(Safe::to_string).unwrap_or_default(),
            Activity::Reply { model, turn, writing: true, .. } => format!("{model} is writing, turn {}", turn + 1),
            Activity::Reply { model, turn, writing: false, .. } => {
                format!("waiting for {model} to reply, turn {}", turn + 1)
            }
            Activity::Tool { name, summary: Some(summary), .. } => format!("runs {name}: {summary}"),
            Activity::Tool { name, summary: None, .. } => format!("runs {name}"),
            Activity::Agent { .. } => "between two steps".to_owned(),
            Activity::State(state) => doing(*state).to_owned(),
        }
    }
}

/// What the engine does in a state when neither agent nor check runs.
const fn doing(state: State) -> &'static str {
    match state {
        State::Init => "the run is starting",
        State::IntakeGoal => "reading the declaration",
        State::NullCheck => "checking for missing input",
        State::DreamGoal => "taking the baseline, writing the plan",
        State::SpawnSubagent => "preparing the next agent call",
        State::CollectArtifacts => "collecting what the agents changed",
        State::CheckHalting => "checking whether it is done",
        State::AccumulateLearnings => "writing AGENTS.md",
        State::GlowCheck => "checking the Northstar",
        State::BudgetCheck => "checking gates and budgets",
        State::ExitConverged
        | State::ExitDiverged
        | State::ExitBudgetExceeded
        | State::ExitBlocked
        | State::ExitNeedInfo => "ended",
    }
}

/// The time that the scene shows: now, or the moment of the last event where an earlier one is shown.
fn shown_ms(scene: &Scene<'_>) -> i64 {
    let past = !scene.live || matches!(scene.link, Link::Replay { .. });
    if past { millis_of(&scene.run.time.last_ts).unwrap_or(scene.now_ms) } else { scene.now_ms }
}

/// Milliseconds from a time stamp to the time that is shown.
pub fn age(scene: &Scene<'_>, ts: &str) -> u64 {
    millis_of(ts).and_then(|then| u64::try_from(shown_ms(scene) - then).ok()).unwrap_or(0)
}

/// Budget time up to now: what the journal holds, and what has passed since while the run was at work.
pub fn elapsed(scene: &Scene<'_>) -> u64 {
    let run = scene.run;
    let running = run.halt.is_none() && !run.waits_for_people();
    let since = if running { age(scene, &run.time.last_ts) } else { 0 };
    run.spent.millis.saturating_add(since)
}

#[cfg(test)]
mod tests;
