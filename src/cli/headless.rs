//! Shows a run without a console: readable lines and a progress bar on a terminal, or JSON lines.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::engine::observer::Observer;
use crate::machine::entry::describe_end;
use crate::machine::event::{Event, Phase, of_passes, of_value_playbook};
use crate::machine::fold::Stamped;
use crate::machine::run::RunState;
use crate::model::act::Act;
use crate::model::certificate::CertificateKind;
use crate::playbook::passes;
use crate::playbook::value::words;

use super::text;

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Lines,
    Json,
}

/// Prints events as they become durable.
pub struct Headless {
    format: Format,
    bar: Option<ProgressBar>,
}

impl Headless {
    pub fn new(format: Format) -> Self {
        let bar = (format == Format::Lines && std::io::stdout().is_terminal()).then(progress_bar);
        Self { format, bar }
    }

    fn print(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(text::printable(line)),
            None => text::line(line),
        }
    }
}

fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new(1);
    // Drawn on change only; no spinner that wakes a thin line.
    bar.set_draw_target(ProgressDrawTarget::stdout_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{bar:16} {pos}/{len} · {wide_msg}") {
        bar.set_style(style);
    }
    bar
}

impl Drop for Headless {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Headless {
    fn event(&mut self, state: &RunState, stamped: &Stamped) {
        if self.format == Format::Json {
            let data = stamped.event.data().ok();
            let line = json!({
                "seq": stamped.seq,
                "ts": stamped.ts,
                "state": state.state,
                "type": stamped.event.kind(),
                "data": data,
            });
            text::json_line(&line);
            return;
        }
        if let Some(bar) = &self.bar {
            bar.set_length(state.limits.max_iterations);
            bar.set_position(state.spent.iterations);
            bar.set_message(text::printable(&now(state)).into_owned());
        }
        if let Some(words) = describe(state, &stamped.event) {
            let elapsed = state.spent.millis / 1_000;
            self.print(&format!("{:02}:{:02} {words}", elapsed / 60, elapsed % 60));
        }
    }
}

/// What is happening, for the progress bar.
fn now(state: &RunState) -> String {
    let residual = state.residual_history().last().copied().flatten();
    let residual = residual.map_or_else(|| "–".to_owned(), |r| r.to_string());
    format!("{} · residual {residual} · {} tool calls", state.state, state.spent.tool_calls)
}

/// One line per event that an operator can use; bookkeeping stays in the journal.
fn describe(state: &RunState, event: &Event) -> Option<String> {
    let it = state.when();
    Some(match event {
        of_value_playbook!() => text::safe(&words::line(event)?.0).to_string(),
        of_passes!() => format!("{it}  {}", text::safe(&passes::words::line(event)?.0)),
        Event::RunResumed(resumed) => format!("resumed in {} (attempt {})", state.state, resumed.attempt),
        Event::StateEntered(entered) => format!("{} → {}", entered.from, entered.to),
        Event::InputRejected(rejected) => format!("rejected in {}: {}", rejected.state, text::safe(&rejected.why)),
        Event::NorthstarRead(read) => match &read.problem {
            Some(problem) => format!("northstar: {}", text::safe(problem)),
            None => format!("northstar: {} metric(s) in {}", read.metrics.len(), text::safe(&read.file)),
        },
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
            let mark = if finished.result.end.passed() { "✓" } else { "✗" };
            let took = text::duration(finished.result.millis);
            format!(
                "{when}  {mark} {}: {} ({took})",
                finished.probe.name(),
                text::safe(&finished.result.end.describe())
            )
        }
        Event::IterationBegan(began) => {
            let rebuilt = if began.rebuilt { " (rebuilt: it pointed at an earlier discussion)" } else { "" };
            format!("{it}  begins, capsule {}{rebuilt}", began.capsule.short())
        }
        Event::AgentStarted(started) => {
            let who = text::safe(&started.who());
            format!("{it}  {who} starts ({}, {})", started.agent, text::safe(&started.model))
        }
        Event::LlmFailed(failed) => {
            let wait = failed
                .wait_millis
                .map_or_else(|| "no retry".to_owned(), |ms| format!("waiting {}", text::duration(ms)));
            format!("{it}  {}: {} – {wait}", failed.class, text::safe(&failed.message))
        }
        Event::ToolIntended(intended) if intended.summary == intended.name => format!("{it}  {}", intended.name),
        Event::ToolIntended(intended) => format!("{it}  {}: {}", intended.name, intended.summary),
        Event::ToolFinished(finished) if finished.is_error => {
            let exit = finished
                .exit_code
                .map_or_else(|| format!("{:?}", finished.outcome).to_lowercase(), |c| format!("exit {c}"));
            format!("{it}    … {exit} ({})", text::duration(finished.millis))
        }
        Event::AgentActed(acted) => {
            let calls = acted.acts.iter().filter_map(|act| match act {
                Act::Called { tool, input, .. } => Some(format!("{tool} {input}")),
                _ => None,
            });
            let calls: Vec<String> = calls.map(|call| text::safe(&call)).collect();
            if calls.is_empty() {
                return None;
            }
            format!("{it}  it says it runs: {}", calls.join(" · "))
        }
        Event::AgentCalled(called) => format!("{it}  {}", text::safe(&called.name)),
        Event::AgentFinished(finished) => {
            let who = text::safe(&state.who_finished(finished));
            format!("{it}  {who} {}", text::safe(&describe_end(&finished.end)))
        }
        Event::ArtifactsCollected(collected) => format!("{it}  {} file(s) changed", collected.changes.len()),
        Event::ResidualMeasured(measured) => {
            let value = measured.residual.as_ref().map_or_else(|| "null".to_owned(), |r| r.value.to_string());
            let why = measured.why_null.as_deref().map(|why| format!(" ({})", text::safe(why))).unwrap_or_default();
            match measured.iteration {
                Some(_) => format!("{it}  residual {value}{why}"),
                None => format!("start  residual {value}{why}"),
            }
        }
        Event::CertificateIssued(issued) if issued.certificate.kind != CertificateKind::None => {
            format!("{it}  certificate {}: {}", issued.certificate.kind, text::safe(&issued.certificate.why))
        }
        Event::GlowScored(scored) => {
            let glow = &scored.glow;
            format!("{it}  GLOW {} [G:{} L:{} O:{} W:{}]", glow.total, glow.g, glow.l, glow.o, glow.w)
        }
        Event::LearningsRecorded(recorded) => {
            let demoted =
                recorded.entry.succeeded.iter().chain(&recorded.entry.failed).filter(|c| c.demoted_from.is_some());
            match demoted.count() {
                0 => format!("{it}  AGENTS.md has its entry"),
                n => format!("{it}  AGENTS.md has its entry; {n} claim(s) without an artifact demoted to Lane C"),
            }
        }
        Event::GateJudged(judged) => {
            let held = judged.report.checks.iter().filter(|check| check.ok).count();
            format!("{it}  pass-gate: {held} of {} hold", judged.report.checks.len())
        }
        Event::BackpressureSeen(seen) => format!("stop: {} {}", seen.signal.describe(), text::safe(&seen.detail)),
        Event::BudgetCut(cut) => format!(
            "{it}  budget reached: {} {} of {}",
            cut.exhausted.dimension, cut.exhausted.observed, cut.exhausted.limit
        ),
        Event::DecisionAsked(asked) => format!(
            "{it}  {} waits for you ({}): {}",
            asked.id,
            asked.request.name(),
            text::safe(&asked.request.gist())
        ),
        Event::DecisionAnswered(answered) => {
            format!("{it}  {} answered by {}: {}", answered.id, text::safe(&answered.by), answered.answer.name())
        }
        Event::DecisionSettled(settled) => {
            let mark = if settled.closed { "✓" } else { "✗" };
            format!("{it}  {mark} {}: {}", settled.id, text::safe(&settled.detail))
        }
        Event::PauseRequested(requested) => format!("pause after this step, says {}", text::safe(&requested.by)),
        Event::PauseBegan(_) => "paused".to_owned(),
        Event::PauseLifted(lifted) => format!("goes on, says {}", text::safe(&lifted.by)),
        Event::StopScheduled(stop) if stop.scheduled => {
            format!("stop after this iteration, says {}", text::safe(&stop.by))
        }
        Event::StopScheduled(stop) => format!("no stop after this iteration, says {}", text::safe(&stop.by)),
        Event::SteerQueued(steer) => {
            format!("word {} from {}: {}", steer.number, text::safe(&steer.by), text::safe(&steer.text))
        }
        Event::SteerDelivered(delivered) => {
            let numbers: Vec<String> = delivered.numbers.iter().map(u32::to_string).collect();
            format!("word {} delivered to {}", numbers.join(", "), delivered.call)
        }
        Event::BudgetRaised(raised) => {
            format!(
                "budget {} raised from {} to {} by {}",
                raised.dimension,
                raised.from,
                raised.to,
                text::safe(&raised.by)
            )
        }
        Event::RetryRequested(retry) => format!("retry now, says {}", text::safe(&retry.by)),
        Event::RunHalted(halted) => format!("{} ({})", halted.status, halted.stop_reason),
        Event::RunStarted(_)
        | Event::NullChecked(_)
        | Event::TreeTaken(_)
        | Event::ProbeStarted(_)
        | Event::PlanWritten(_)
        | Event::LlmRequested(_)
        | Event::LlmResponded(_)
        | Event::ConversationExtended(_)
        | Event::ToolFinished(_)
        | Event::ReportAccepted(_)
        | Event::ViewerAttached(_)
        | Event::ViewerDetached(_)
        | Event::CertificateIssued(_) => return None,
    })
}
