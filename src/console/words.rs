//! What happened, in words for people: one short line per event.
//!
//! Not here: time, order, drawing. Invariants: every event has words; foreign text in them is made harmless;
//! nothing but the foreign text itself needs more than ASCII, and marks are left to the theme.

use crate::machine::entry::describe_end;
use crate::machine::event::{AgentEnd, Event, Phase, ToolOutcomeKind, TreePurpose, of_passes, of_value_playbook};
use crate::machine::run::RunState;
use crate::model::certificate::CertificateKind;
use crate::model::safe::Safe;
use crate::model::stop::ExitStatus;
use crate::playbook::passes;
use crate::playbook::value::words;

use super::widget;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// The run and its machine.
    Run,
    Agent,
    Check,
    People,
}

/// An event in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub topic: Topic,
    /// Did it go well? `None`: there is no such question.
    pub good: Option<bool>,
    /// Bookkeeping that an operator rarely asks for.
    pub quiet: bool,
    pub text: String,
}

impl Told {
    fn new(topic: Topic, text: impl Into<String>) -> Self {
        Self { topic, good: None, quiet: false, text: text.into() }
    }

    fn quiet(topic: Topic, text: impl Into<String>) -> Self {
        Self { quiet: true, ..Self::new(topic, text) }
    }

    fn judged(topic: Topic, good: bool, text: impl Into<String>) -> Self {
        Self { good: Some(good), ..Self::new(topic, text) }
    }
}

/// The event in words, with the state after it.
pub fn describe(state: &RunState, event: &Event) -> Told {
    use Topic::{Agent, Check, People, Run};
    let it = state.when();
    let safe = |text: &str| Safe::line(text);
    match event {
        of_value_playbook!() => match words::line(event) {
            Some((text, Some(well))) => Told::judged(Run, well, safe(&text).to_string()),
            Some((text, None)) => Told::new(Run, safe(&text).to_string()),
            None => Told::quiet(Run, event.kind().to_owned()),
        },
        of_passes!() => match passes::words::line(event) {
            Some((text, Some(well))) => Told::judged(Run, well, safe(&text).to_string()),
            Some((text, None)) => Told::new(Run, safe(&text).to_string()),
            None => Told::quiet(Run, event.kind().to_owned()),
        },
        Event::RunStarted(started) => Told::new(
            Run,
            format!("the run begins: {}", safe(started.declaration.goal.as_deref().unwrap_or("no goal is declared"))),
        ),
        Event::RunResumed(resumed) => Told::judged(
            Run,
            false,
            format!("it was down and goes on in {} (attempt {})", state.state, resumed.attempt),
        ),
        Event::StateEntered(entered) => {
            Told::quiet(Run, format!("{} to {}: {}", entered.from, entered.to, safe(&entered.why)))
        }
        Event::InputRejected(rejected) => {
            Told::judged(Run, false, format!("rejected in {}: {}", rejected.state, safe(&rejected.why)))
        }
        Event::NorthstarRead(read) => match &read.problem {
            Some(problem) => Told::judged(Run, false, format!("northstar: {}", safe(problem))),
            None => Told::new(Run, format!("northstar: {} metrics in {}", read.metrics.len(), safe(&read.file))),
        },
        Event::NullChecked(checked) if checked.missing.is_empty() => Told::quiet(Run, "nothing is missing"),
        Event::NullChecked(checked) => {
            Told::judged(Run, false, format!("missing: {}", safe(&checked.missing.join(", "))))
        }
        Event::TreeTaken(taken) => {
            let what = match taken.purpose {
                TreePurpose::Baseline => "workspace at the start",
                TreePurpose::Frozen => "workspace after the replays",
                TreePurpose::BeforeReview => "workspace before the critic",
                TreePurpose::AfterReview => "workspace after the critic",
            };
            match taken.drifted.as_slice() {
                [] => Told::quiet(Check, format!("{what}: {} files", taken.files)),
                drifted => {
                    Told::judged(Check, false, format!("{what}: changed meanwhile: {}", safe(&drifted.join(", "))))
                }
            }
        }
        Event::ProbeStarted(started) => Told::quiet(Check, format!("{} starts", safe(&started.probe.name()))),
        Event::ProbeFinished(finished) => {
            let when = match finished.phase {
                Phase::Baseline => "start".to_owned(),
                Phase::Scouted => format!("{it} before"),
                Phase::Iteration => it.clone(),
                Phase::Replay(k) => format!("{it} replay {k}"),
                Phase::Gate => format!("{it} gate"),
                Phase::Step(step) => format!("step {step}"),
                Phase::Detour => format!("{it} detour"),
            };
            let result = &finished.result;
            let took = millis(result.millis);
            let text = format!("{when} {}: {}, {took}", safe(&finished.probe.name()), safe(&result.end.describe()));
            // Before the first iteration a check that fails is what the run is for.
            let told = Told::judged(Check, result.end.passed(), text);
            if finished.phase == Phase::Baseline { Told { good: None, ..told } } else { told }
        }
        Event::PlanWritten(_) => Told::new(Run, "the plan is written"),
        Event::IterationBegan(began) => {
            let rebuilt = if began.rebuilt { ", capsule rebuilt: it pointed at an earlier discussion" } else { "" };
            Told::new(Run, format!("iteration {} begins{rebuilt}", state.iteration_number()))
        }
        Event::AgentStarted(started) => {
            Told::new(Agent, format!("{it} {} starts ({})", safe(&started.who()), safe(&started.model)))
        }
        Event::LlmRequested(requested) if requested.attempt > 0 => {
            Told::new(Agent, format!("{it} asks the model again (attempt {})", requested.attempt + 1))
        }
        Event::LlmRequested(_) => Told::quiet(Agent, format!("{it} asks the model")),
        Event::LlmResponded(reply) => {
            let tools = match reply.tool_uses.len() {
                0 => "no tool call".to_owned(),
                1 => "1 tool call".to_owned(),
                n => format!("{n} tool calls"),
            };
            Told::quiet(Agent, format!("{it} the model answers: {} tokens, {tools}", widget::count(reply.usage.output)))
        }
        Event::LlmFailed(failed) => {
            let wait = failed
                .wait_millis
                .map_or_else(|| "no retry".to_owned(), |ms| format!("waits {}", widget::duration(ms)));
            Told::judged(Agent, false, format!("{it} {}, {wait}: {}", safe(&failed.class), safe(&failed.message)))
        }
        Event::ConversationExtended(_) => Told::quiet(Agent, format!("{it} results go to the model")),
        Event::ToolIntended(intended) if intended.summary == intended.name => {
            Told::new(Agent, format!("{it} {}", safe(&intended.name)))
        }
        Event::ToolIntended(intended) => {
            Told::new(Agent, format!("{it} {}: {}", safe(&intended.name), safe(&intended.summary)))
        }
        Event::ToolFinished(finished) => {
            let took = millis(finished.millis);
            let end = match (finished.outcome, finished.exit_code) {
                (ToolOutcomeKind::Done, Some(code)) => format!("exit {code}, {took}"),
                (ToolOutcomeKind::Done, None) => took,
                (ToolOutcomeKind::Refused, _) => "refused".to_owned(),
                (ToolOutcomeKind::Cancelled, _) => format!("cancelled after {took}"),
                (ToolOutcomeKind::Unknown, _) => "nobody knows whether it ran".to_owned(),
            };
            let told = Told::judged(Agent, !finished.is_error, format!("{it}   ended: {end}"));
            Told { quiet: !finished.is_error, ..told }
        }
        Event::AgentActed(acted) => {
            Told::quiet(Agent, format!("{it} the program tells what it does ({} acts)", acted.acts.len()))
        }
        Event::AgentCalled(called) => {
            let told = Told::judged(Agent, !called.is_error, format!("{it} {}", safe(&called.name)));
            Told { quiet: !called.is_error, ..told }
        }
        Event::ReportAccepted(accepted) => {
            Told::judged(Agent, true, format!("report accepted: {}", safe(&accepted.call)))
        }
        Event::AgentFinished(finished) => {
            let good = finished.end == AgentEnd::Reported;
            let who = state.who_finished(finished);
            let told = Told::judged(Agent, good, format!("{it} {} {}", safe(&who), safe(&describe_end(&finished.end))));
            Told { quiet: good, ..told }
        }
        Event::ArtifactsCollected(collected) => match collected.changes.len() {
            1 => Told::new(Run, format!("{it} 1 file changed")),
            n => Told::new(Run, format!("{it} {n} files changed")),
        },
        Event::ResidualMeasured(measured) => {
            let when = measured.iteration.map_or_else(|| "start".to_owned(), |number| format!("it{number}"));
            match (&measured.residual, &measured.why_null) {
                (Some(residual), _) => Told::new(Check, format!("{when} residual {}", residual.value)),
                (None, Some(why)) => Told::judged(Check, false, format!("{when} no residual: {}", safe(why))),
                (None, None) => Told::judged(Check, false, format!("{when} no residual")),
            }
        }
        Event::CertificateIssued(issued) if issued.certificate.kind == CertificateKind::None => {
            Told::quiet(Check, format!("{it} no certificate: {}", safe(&issued.certificate.why)))
        }
        Event::CertificateIssued(issued) => {
            let kind = issued.certificate.kind;
            let good = matches!(kind, CertificateKind::Exact | CertificateKind::Converged);
            Told::judged(Check, good, format!("{it} certificate {kind}: {}", safe(&issued.certificate.why)))
        }
        Event::GlowScored(scored) => {
            let glow = &scored.glow;
            let text = format!("{it} GLOW {} (G {} L {} O {} W {})", glow.total, glow.g, glow.l, glow.o, glow.w);
            Told::new(Check, text)
        }
        Event::LearningsRecorded(recorded) => {
            let claims = recorded.entry.succeeded.iter().chain(&recorded.entry.failed);
            match claims.filter(|claim| claim.demoted_from.is_some()).count() {
                0 => Told::new(Run, format!("{it} AGENTS.md has its entry")),
                1 => Told::new(Run, format!("{it} AGENTS.md has its entry; 1 claim without artifact is Lane C")),
                n => Told::new(Run, format!("{it} AGENTS.md has its entry; {n} claims without artifact are Lane C")),
            }
        }
        Event::GateJudged(judged) => {
            let checks = &judged.report.checks;
            let held = checks.iter().filter(|check| check.ok).count();
            Told::judged(Check, held == checks.len(), format!("{it} pass-gate: {held} of {} hold", checks.len()))
        }
        Event::BackpressureSeen(seen) => {
            Told::judged(Run, false, format!("stop: {} {}", seen.signal.describe(), safe(&seen.detail)))
        }
        Event::BudgetCut(cut) => {
            let cut = &cut.exhausted;
            Told::judged(
                Run,
                false,
                format!("{it} budget reached: {} {} of {}", cut.dimension, cut.observed, cut.limit),
            )
        }
        Event::DecisionAsked(asked) => {
            let gist = asked.request.gist();
            Told::new(People, format!("{} waits for you ({}): {}", asked.id, asked.request.name(), safe(&gist)))
        }
        Event::DecisionAnswered(answered) => {
            Told::new(People, format!("{} answered by {}: {}", answered.id, safe(&answered.by), answered.answer.name()))
        }
        Event::DecisionSettled(settled) => {
            Told::judged(People, settled.closed, format!("{}: {}", settled.id, safe(&settled.detail)))
        }
        Event::PauseRequested(pause) => Told::new(People, format!("pause after this step, says {}", safe(&pause.by))),
        Event::PauseBegan(_) => Told::new(People, "paused"),
        Event::PauseLifted(lifted) => Told::new(People, format!("goes on, says {}", safe(&lifted.by))),
        Event::StopScheduled(stop) if stop.scheduled => {
            Told::new(People, format!("stop after this iteration, says {}", safe(&stop.by)))
        }
        Event::StopScheduled(stop) => Told::new(People, format!("no stop after all, says {}", safe(&stop.by))),
        Event::SteerQueued(steer) => {
            Told::new(People, format!("word {} from {}: {}", steer.number, safe(&steer.by), safe(&steer.text)))
        }
        Event::SteerDelivered(delivered) => {
            let numbers: Vec<String> = delivered.numbers.iter().map(u32::to_string).collect();
            Told::new(People, format!("word {} delivered to {}", numbers.join(", "), safe(&delivered.call)))
        }
        Event::BudgetRaised(raised) => Told::new(
            People,
            format!(
                "{} raised {} from {} to {}",
                safe(&raised.by),
                raised.dimension,
                safe(&raised.from),
                safe(&raised.to)
            ),
        ),
        Event::RetryRequested(retry) => Told::new(People, format!("retry now, says {}", safe(&retry.by))),
        Event::ViewerAttached(viewer) => {
            let how = if viewer.may_act { "watches and may act" } else { "watches" };
            Told::quiet(People, format!("{} {how}", safe(&viewer.viewer)))
        }
        Event::ViewerDetached(viewer) => {
            Told::quiet(People, format!("{} no longer watches: {}", safe(&viewer.viewer), safe(&viewer.why)))
        }
        Event::RunHalted(halted) => {
            let good = halted.status == ExitStatus::ExitConverged;
            Told::judged(Run, good, format!("{} ({}): {}", halted.status, halted.stop_reason, safe(&halted.detail)))
        }
    }
}

fn millis(millis: u64) -> String {
    if millis < 1_000 { format!("{millis} ms") } else { widget::duration(millis) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::sample::Sample;
    use crate::machine::fold;

    #[test]
    fn every_event_of_a_run_has_words_on_one_line() {
        let sample = Sample::demo();
        let mut state = fold::start(&sample.events[0]).unwrap();
        let mut loud = Vec::new();
        for (index, stamped) in sample.events.iter().enumerate() {
            if index > 0 {
                fold::apply(&mut state, stamped).unwrap();
            }
            let told = describe(&state, &stamped.event);
            assert!(!told.text.is_empty() && !told.text.contains('\n'), "{told:?}");
            if !told.quiet {
                loud.push(told.text);
            }
        }
        assert!(loud.len() * 2 < sample.events.len() + 60, "{} of {}", loud.len(), sample.events.len());
        let words = loud.join("\n");
        for part in ["iteration 1 begins", "it1 rate_limited, waits 1 s", "pass-gate: ", "EXIT_CONVERGED", "residual 4"]
        {
            assert!(words.contains(part), "{part} is missing:\n{words}");
        }
    }
}
