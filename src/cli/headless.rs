//! Shows a run without a console: readable lines and a progress bar on a terminal, or JSON lines.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::engine::observer::Observer;
use crate::machine::event::{CallEvent, Event, RunEvent};
use crate::machine::fold::Stamped;
use crate::machine::run::RunState;
use crate::model::act::Act;

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
    match event {
        // A screen draws the machine; here nothing else shows it.
        Event::Run(RunEvent::StateEntered(entered)) => Some(format!("{} → {}", entered.from, entered.to)),
        Event::Call(CallEvent::AgentActed(acted)) => {
            let calls = acted.acts.iter().filter_map(|act| match act {
                Act::Called { tool, input, .. } => Some(text::safe(&format!("{tool} {input}"))),
                _ => None,
            });
            let calls: Vec<String> = calls.collect();
            let denied = acted.acts.iter().filter_map(|act| match act {
                Act::Denied { text } => Some(format!("{} ✗ {}", state.when(), text::safe(text))),
                _ => None,
            });
            let running = format!("{} it says it is running: {}", state.when(), calls.join(" · "));
            let lines: Vec<String> = (!calls.is_empty()).then_some(running).into_iter().chain(denied).collect();
            (!lines.is_empty()).then(|| lines.join("\n"))
        }
        event => {
            let told = state.told(event);
            let mark = match told.good {
                Some(true) => "✓ ",
                Some(false) => "✗ ",
                None => "",
            };
            (!told.quiet).then(|| format!("{mark}{}", told.text))
        }
    }
}
