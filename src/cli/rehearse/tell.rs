//! What came of a rehearsal, in words and as JSON.

use serde_json::{Value, json};

use crate::agent::rehearsal::{FaultKind, Planned, Struck};
use crate::cli::{outcome, text};
use crate::machine::event::{CallEvent, Event, IterationEvent, OperatorEvent, Phase, RunEvent, Text};
use crate::machine::run::RunState;

use super::copy::Copied;

/// Files that are named when they are not copied.
const MAX_NAMED: usize = 5;

pub struct Seen<'a> {
    pub state: &'a RunState,
    pub events: &'a [Event],
    pub struck: Vec<Struck>,
    pub calls: u64,
    pub wished: Vec<Planned>,
    /// Where something was left to chance.
    pub seed: Option<u64>,
    pub copied: Copied,
    pub notes: Vec<String>,
    pub millis: u64,
}

/// Where a fault led.
struct Led {
    planned: Planned,
    /// Role and iteration; absent when the run ended before that call.
    place: Option<String>,
    what: Vec<String>,
}

impl Seen<'_> {
    pub fn lines(&self) -> Vec<String> {
        let state = self.state;
        let mut lines = outcome::summary(state);
        if let Some(first) = lines.first_mut() {
            *first = format!("rehearsed: this loop would end with {first}, exit code {}", outcome::exit_code(state));
        }
        lines.push(format!("  {} model call(s), rehearsed in {}", self.calls, text::took(self.millis)));
        lines.extend(self.checks().iter().map(|(name, result)| format!("  check {name}: {}", text::safe(result))));
        for led in self.led() {
            let place = led.place.as_deref().unwrap_or("the run was over before that call");
            lines.push(format!(
                "  fault {}@{} ({}): {place}",
                led.planned.kind.name(),
                led.planned.call,
                led.planned.kind.describe()
            ));
            lines.extend(led.what.iter().map(|what| format!("      → {}", text::safe(what))));
        }
        let waiting = self.waiting();
        if waiting.is_empty() {
            lines.push("  nothing would need you".to_owned());
        }
        lines.extend(waiting.iter().map(|what| format!("  would need you: {}", text::safe(what))));
        if let Some(seed) = self.seed {
            lines.push(format!("  repeat it with: --seed {seed}"));
        }
        lines.extend(self.notes.iter().map(|note| format!("  note: {}", text::safe(note))));
        let left = &self.copied.left_out;
        if !left.is_empty() {
            let named: Vec<String> = left.iter().take(MAX_NAMED).map(|name| text::safe(name)).collect();
            lines.push(format!("  note: {} not copied: {}", left.len(), named.join(", ")));
        }
        lines.push(format!(
            "  in a copy of {} file(s), without what .gitignore excludes; your workspace and your runs are unchanged",
            self.copied.files
        ));
        lines
    }

    pub fn json(&self) -> Value {
        let state = self.state;
        let halted = state.halt.as_ref();
        let certificate = state.iterations().rev().find_map(|iteration| iteration.certificate.as_ref());
        let faults: Vec<Value> = self.led().into_iter().map(|led| {
            json!({"kind": led.planned.kind.name(), "call": led.planned.call, "struck": led.place, "led_to": led.what})
        }).collect();
        let checks: Vec<Value> =
            self.checks().into_iter().map(|(name, result)| json!({"check": name, "result": result})).collect();
        json!({
            "status": halted.map(|halted| halted.status.to_string()),
            "stop_reason": halted.map(|halted| halted.stop_reason.to_string()),
            "detail": halted.map(|halted| halted.detail.clone()),
            "exit_code": outcome::exit_code(state),
            "iterations": state.spent.iterations,
            "certificate": certificate.map(|certificate| certificate.kind.to_string()),
            "residual": certificate.and_then(|certificate| certificate.residual).map(|residual| residual.to_string()),
            "model_calls": self.calls,
            "spent": {
                "seconds": state.spent.millis / 1_000,
                "tool_calls": state.spent.tool_calls,
                "tokens": state.spent.tokens(),
                "cost_usd": state.spent.cost_usd.map(|cost| cost.to_string()),
            },
            "limits": {
                "max_iterations": state.limits.max_iterations,
                "max_total_seconds": state.limits.max_total_seconds,
                "max_total_tool_calls": state.limits.max_total_tool_calls,
                "max_total_tokens": state.limits.max_total_tokens,
                "max_cost_usd": state.limits.max_cost_usd.map(|cost| cost.to_string()),
            },
            "checks": checks,
            "faults": faults,
            "waiting_for_you": self.waiting(),
            "seed": self.seed,
            "files_copied": self.copied.files,
            "not_copied": self.copied.left_out,
            "notes": self.notes,
            "rehearsed_ms": self.millis,
        })
    }

    /// The last result of each check.
    fn checks(&self) -> Vec<(String, String)> {
        let mut checks: Vec<(String, String)> = Vec::new();
        for event in self.events {
            let Event::Iteration(IterationEvent::ProbeFinished(finished)) = event else { continue };
            if matches!(finished.phase, Phase::Replay(_)) {
                continue;
            }
            let (name, result) = (finished.probe.name(), finished.result.end.describe());
            match checks.iter_mut().find(|(known, _)| *known == name) {
                Some((_, last)) => *last = result,
                None => checks.push((name, result)),
            }
        }
        checks
    }

    /// What a person would have been asked. Unattended, a permission is denied instead.
    fn waiting(&self) -> Vec<String> {
        let asked = self.events.iter().filter_map(|event| match event {
            Event::Operator(OperatorEvent::DecisionAsked(asked)) => {
                Some(format!("{}: {}", asked.request.name(), asked.request.gist()))
            }
            Event::Call(CallEvent::ToolIntended(tool))
                if tool.rule.starts_with("ask ") && tool.rule.contains("nobody is there") =>
            {
                Some(format!("permission: {} {}", tool.name, tool.summary))
            }
            Event::Run(RunEvent::BackpressureSeen(seen))
                if seen.signal == crate::machine::event::Signal::SpendLimit =>
            {
                Some("spend limit: the account's limit would have to be raised".to_owned())
            }
            _ => None,
        });
        asked.collect()
    }

    fn led(&self) -> Vec<Led> {
        let mut from = 0;
        let mut all: Vec<Led> = Vec::new();
        for struck in &self.struck {
            let (planned, kind) = (struck.planned, struck.planned.kind);
            let iteration = struck.iteration.unwrap_or_default();
            let place = Some(format!("the {} of iteration {iteration}", struck.role));
            let at = self.events.iter().skip(from).position(|event| is_trace(event, kind)).map(|n| from + n);
            let what = match at {
                Some(at) => {
                    from = at + 1;
                    self.after(at)
                }
                None => vec!["nothing in the journal".to_owned()],
            };
            all.push(Led { planned, place, what });
        }
        let missed = self.wished.iter().filter(|wished| !self.struck.iter().any(|struck| struck.planned == **wished));
        all.extend(missed.map(|planned| Led { planned: *planned, place: None, what: Vec::new() }));
        all
    }

    /// What the engine did about the event at this place.
    fn after(&self, at: usize) -> Vec<String> {
        let mut what: Vec<String> = self.events.get(at).and_then(words).into_iter().collect();
        what.extend(self.events.iter().skip(at + 1).find_map(words));
        what
    }
}

/// Is this the first event that a fault of this kind leaves?
fn is_trace(event: &Event, kind: FaultKind) -> bool {
    match (kind, event) {
        (FaultKind::BadJson | FaultKind::WrongReport, Event::Call(CallEvent::ToolFinished(finished))) => {
            finished.id.contains("injected")
        }
        (FaultKind::Refusal, Event::Call(CallEvent::LlmResponded(reply))) => reply.stop.starts_with("refusal"),
        (FaultKind::ContextFull, Event::Call(CallEvent::LlmResponded(reply))) => {
            reply.stop.starts_with("model_context_window")
        }
        (FaultKind::BadJson | FaultKind::WrongReport | FaultKind::Refusal | FaultKind::ContextFull, _) => false,
        (_, event) => matches!(event, Event::Call(CallEvent::LlmFailed(_))),
    }
}

/// An event that tells how it went on.
fn words(event: &Event) -> Option<String> {
    Some(match event {
        Event::Call(CallEvent::LlmFailed(failed)) => {
            let wait = failed
                .wait_millis
                .map_or_else(|| "no retry".to_owned(), |ms| format!("would wait {} and retry", text::took(ms)));
            format!("{}: {wait}", failed.class.name())
        }
        Event::Call(CallEvent::LlmResponded(reply)) if reply.tool_uses.is_empty() => {
            format!("the reply ended with {}", reply.stop)
        }
        Event::Call(CallEvent::LlmResponded(_)) => "the model answered, and the run continued".to_owned(),
        Event::Call(CallEvent::ToolFinished(finished)) if finished.is_error => {
            let told = match &finished.text {
                Text::Inline(text) => text.chars().take(160).collect::<String>(),
                Text::Blob(_) => "a long text".to_owned(),
            };
            format!("the agent was told: {told}")
        }
        Event::Call(CallEvent::AgentFinished(finished)) => format!("the {} {}", finished.role, finished.end.describe()),
        Event::Run(RunEvent::BackpressureSeen(seen)) => format!("stop: {}", seen.signal.describe()),
        Event::Operator(OperatorEvent::DecisionAsked(asked)) => format!("{} asks: {}", asked.id, asked.request.gist()),
        Event::Run(RunEvent::RunHalted(halted)) => format!("{} ({})", halted.status, halted.stop_reason),
        _ => return None,
    })
}
