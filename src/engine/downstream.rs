//! Asks whether what the work needs beside us is there: the commands of `backpressure:`.
//!
//! Role: before every agent, and in the background while anything is done, each command is run like a check; one that
//! does not exit 0 raises a stop signal. Not its role: what the signal means (`machine::claim`). Invariants: a command
//! has at most [`PATIENCE`]; none runs once [`Watch::end`] has returned.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::machine::event::Signal;
use crate::model::learnings::flatten;
use crate::tool::process::{self, CommandSpec, End, ProcessOutcome};

use super::confine;
use super::context::{Context, Cutoff, Guarded};
use super::error::EngineError;
use super::secrecy;

/// What does not answer for this long is not there.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is told of a command's last words.
const MAX_WORDS: usize = 200;

/// The looks in the background.
#[derive(Default)]
pub(super) struct Watch {
    token: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Watch {
    /// Begins to look. What is declared is asked at once, then as often as it says.
    pub fn begin(cx: &Context<'_>) -> Result<Self, EngineError> {
        let token = CancellationToken::new();
        let mut tasks = Vec::new();
        for declared in &cx.state().loop_file().backpressure {
            let (name, every) = (declared.name.clone(), Duration::from_secs(declared.every_seconds()));
            let (argv, secrets) = (declared.command.clone(), cx.secrets().clone());
            let (workspace, run) = (cx.workspace().to_owned(), cx.state().run().as_str().to_owned());
            let worn = confine::of_check(cx)?;
            let (token, raiser) = (token.clone(), cx.signals.raiser());
            tasks.push(tokio::spawn(async move {
                loop {
                    let mut spec = CommandSpec::new(argv.clone(), workspace.clone(), run.clone());
                    (spec.timeout, spec.confinement) = (PATIENCE, worn.clone());
                    let outcome = secrecy::clean_process(&secrets, process::run(spec, &token).await);
                    if token.is_cancelled() {
                        return;
                    }
                    if let Some(detail) = missing(&name, &outcome) {
                        raiser.raise(Signal::DependencyDown, detail);
                        return;
                    }
                    tokio::select! {
                        () = token.cancelled() => return,
                        () = tokio::time::sleep(every) => {}
                    }
                }
            }));
        }
        Ok(Self { token, tasks })
    }

    /// Ends the looks, and waits until no command runs.
    pub async fn end(self) {
        self.token.cancel();
        for task in self.tasks {
            // A look that panicked runs no more.
            let _ = task.await;
        }
    }
}

/// Asks everything once, before an agent starts. `false`: something is missing, or a stop came first.
pub(super) async fn all_there(cx: &mut Context<'_>) -> Result<bool, EngineError> {
    for declared in cx.state().loop_file().backpressure.clone() {
        let mut spec = CommandSpec::new(declared.command, cx.workspace(), cx.state().run().as_str());
        (spec.timeout, spec.confinement) = (PATIENCE, confine::of_check(cx)?);
        let token = CancellationToken::new();
        let outcome = match cx.guarded(&token, Cutoff::Never, process::run(spec, &token)).await? {
            Guarded::Done(outcome) | Guarded::Cut(outcome) => outcome,
            Guarded::Stopped(_) => return Ok(false),
        };
        if let Some(detail) = missing(&declared.name, &secrecy::clean_process(cx.secrets(), outcome)) {
            cx.signals.raise(Signal::DependencyDown, detail);
            return Ok(false);
        }
    }
    Ok(true)
}

/// Why it counts as missing; `None`: it is there. A machine without room says nothing about it.
fn missing(name: &str, outcome: &ProcessOutcome) -> Option<String> {
    let how = match &outcome.end {
        End::Exited(0) | End::Exhausted(_) => return None,
        End::Exited(code) => format!("exit {code}"),
        End::Signaled(signal) => format!("ended by signal {signal}"),
        End::TimedOut => format!("no answer within {} s", PATIENCE.as_secs()),
        End::Cancelled => return None,
        End::NotStarted(why) => why.clone(),
    };
    let said = [&outcome.stderr, &outcome.stdout].map(|stream| String::from_utf8_lossy(&stream.bytes).into_owned());
    let last = said.iter().flat_map(|text| text.lines().rev()).find(|line| !line.trim().is_empty());
    let last: String = flatten(last.unwrap_or_default()).chars().take(MAX_WORDS).collect();
    Some(if last.is_empty() { format!("{name}: {how}") } else { format!("{name}: {how}: {last}") })
}
