//! One turn of an agent program as a process: started, read, ended with everything it started.
//!
//! Not here: what the turn means. Whatever happens, nothing of the program is alive when [`run`] returns.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::cli::{self, Exit, Reader};
use crate::agent::program::{Ask, Earlier, Finished, Task};
use crate::agent::{CallError, ProgramFault, Usage, acp};
use crate::model::act::Act;
use crate::model::decimal::Exact;
use crate::tool::process::{self, CommandSpec, End, Wires};
use crate::tool::sandbox::Confinement;

use super::declared::Program;

/// For a pipe that somebody still holds open when the program is over.
const DRAIN: Duration = Duration::from_secs(2);
/// Stderr that is kept to tell how a turn ended.
const KEEP_STDERR: usize = 64 * 1024;

/// What a turn tells while it lasts.
pub(super) enum News {
    Act(Act),
    /// Everything spent so far.
    Spent {
        usage: Usage,
        cost: Option<Exact>,
        /// The model that it says it uses.
        model: Option<String>,
    },
    Ask(Ask),
}

/// When the program was last heard of.
#[derive(Debug, Clone)]
pub struct Heard(Arc<Mutex<Instant>>);

impl Default for Heard {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Heard {
    pub fn now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub fn since(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// One turn, with what it needs besides the program.
pub struct Turn<'a> {
    pub task: &'a Task,
    pub run_marker: &'a str,
    pub confinement: Option<Arc<Confinement>>,
    /// What earlier turns of the same session used.
    pub earlier: Earlier,
    pub tell: mpsc::Sender<News>,
    pub heard: Heard,
    pub cancel: &'a CancellationToken,
}

/// Runs one turn. Cancelling ends the program with everything it started.
pub async fn run(program: &Program, turn: Turn<'_>) -> Result<Finished, CallError> {
    let task = turn.task;
    let (argv, stdin, env) = if program.speaks_acp {
        let (argv, env) = acp_start(program, task.caged);
        (argv, None, env)
    } else {
        let invocation = cli::invocation(program.profile, &program.argv, program.prompt_by, task)
            .map_err(|why| not_started(&why))?;
        (invocation.argv, invocation.stdin, invocation.env)
    };
    let mut spec = CommandSpec::new(argv, &task.workspace, turn.run_marker);
    // Silence and the turn's limit are watched by whoever attends, who knows about waiting for people.
    spec.timeout = Duration::from_secs(7 * 24 * 3600);
    spec.keep_bytes = KEEP_STDERR;
    spec.confinement = turn.confinement.clone();
    let passed = program.env.iter().filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)));
    spec.env = passed.chain(env).collect();
    if turn.confinement.is_some() && program.is_claude() {
        // As the superuser it works without asking only when it is told that somebody else holds it.
        spec.env.push(("IS_SANDBOX".to_owned(), "1".to_owned()));
    }
    let broken = |e: std::io::Error| not_started(&format!("no pipe: {e}"));
    let (from_program, its_stdout) = std::io::pipe().map_err(broken)?;
    let (its_stdin, to_program) = std::io::pipe().map_err(broken)?;
    spec.wires = Some(Wires { stdin: OwnedFd::from(its_stdin), stdout: OwnedFd::from(its_stdout) });
    let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(from_program)).map_err(broken)?;
    let writer = pipe::Sender::from_owned_fd(OwnedFd::from(to_program)).map_err(broken)?;
    let ending = CancellationToken::new();
    let process = process::run(spec, &ending);
    if program.speaks_acp {
        converse(&turn, (reader, writer), process, &ending).await
    } else {
        let output = Reader::new(program.profile).after(turn.earlier);
        read_out(&turn, output, stdin, (reader, writer), process, &ending).await
    }
}

/// How a program that speaks ACP is started: as declared, with what is known of it.
fn acp_start(program: &Program, caged: bool) -> (Vec<String>, Vec<(String, String)>) {
    let mut argv = program.argv.clone();
    let row = program.acp();
    argv.extend(row.filter(|_| caged).into_iter().flat_map(|row| row.caged.iter().cloned()));
    let known = row.into_iter().flat_map(|row| &row.env).filter(|(name, _)| !program.env.contains(name));
    (argv, known.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// A program that is told once and then only heard.
async fn read_out(
    turn: &Turn<'_>,
    mut output: Reader,
    stdin: Option<Vec<u8>>,
    (mut reader, mut writer): (pipe::Receiver, pipe::Sender),
    process: impl Future<Output = process::ProcessOutcome>,
    ending: &CancellationToken,
) -> Result<Finished, CallError> {
    let tell = &turn.tell;
    let feed = async move {
        if let Some(bytes) = stdin {
            // A program that does not read its prompt says so itself.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut writer, &bytes).await;
        }
        drop(writer);
    };
    let listen = async {
        let mut buffer = vec![0; 64 * 1024];
        let mut acts = Vec::new();
        while let Ok(count @ 1..) = reader.read(&mut buffer).await {
            turn.heard.now();
            output.push(&buffer[..count], &mut |act| acts.push(act));
            for act in acts.drain(..) {
                let _ = tell.send(News::Act(act)).await;
            }
            let _ = tell
                .send(News::Spent {
                    usage: *output.usage(),
                    cost: output.cost_usd(),
                    model: output.model().map(str::to_owned),
                })
                .await;
        }
    };
    // Somebody may have left the program's family and still hold its pipe: once the program is over, what is on
    // its way gets a moment, and no more.
    let over = CancellationToken::new();
    let process = async {
        let outcome = process.await;
        over.cancel();
        outcome
    };
    let drained = async {
        over.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    let pipes = async {
        tokio::select! {
            ((), ()) = async { tokio::join!(feed, listen) } => {}
            () = drained => {}
        }
    };
    let cancelled = async {
        turn.cancel.cancelled().await;
        ending.cancel();
        // It is over when its process is.
        std::future::pending::<std::convert::Infallible>().await
    };
    let outcome = tokio::select! {
        ((), outcome) = async { tokio::join!(pipes, process) } => outcome,
        never = cancelled => match never {},
    };
    let exit = match outcome.end {
        End::Exited(code) => Exit::Code(code),
        End::Signaled(signal) => Exit::Signal(signal),
        End::TimedOut | End::Cancelled => Exit::Signal(9),
        End::NotStarted(why) | End::Exhausted(why) => return Err(not_started(&why)),
    };
    output.finish(exit, &outcome.stderr.bytes)
}

/// A program that is talked to.
async fn converse(
    turn: &Turn<'_>,
    (reader, writer): (pipe::Receiver, pipe::Sender),
    process: impl Future<Output = process::ProcessOutcome>,
    ending: &CancellationToken,
) -> Result<Finished, CallError> {
    let (tell, heard) = (&turn.tell, &turn.heard);
    let (asks, mut asked) = mpsc::channel::<Ask>(16);
    let (acts, mut acted) = mpsc::unbounded_channel::<Act>();
    let mut on_act = move |act: Act| {
        let _ = acts.send(act);
    };
    let talk = async {
        let result = acp::run(reader, writer, turn.task, &mut on_act, asks, turn.cancel).await;
        drop(on_act);
        // The turn is over; an agent that speaks ACP would wait for the next one.
        ending.cancel();
        result
    };
    let pass_on = async {
        loop {
            tokio::select! {
                Some(act) = acted.recv() => {
                    heard.now();
                    let _ = tell.send(News::Act(act)).await;
                }
                Some(ask) = asked.recv() => {
                    heard.now();
                    let _ = tell.send(News::Ask(ask)).await;
                }
                else => break,
            }
        }
    };
    let (result, (), outcome) = tokio::join!(talk, pass_on, process);
    match (result, outcome.end) {
        (Err(_), End::NotStarted(why) | End::Exhausted(why)) => Err(not_started(&why)),
        (Err(CallError::Program { fault: ProgramFault::Crash, message, .. }), _) => {
            let stderr = String::from_utf8_lossy(&outcome.stderr.bytes);
            let last = stderr.trim_end().lines().last().unwrap_or_default();
            let message = if last.is_empty() { message } else { format!("{message}: {last}") };
            Err(CallError::Program { fault: ProgramFault::Crash, message, retry_after: None })
        }
        (result, _) => result,
    }
}

fn not_started(why: &str) -> CallError {
    CallError::Program { fault: ProgramFault::NotStarted, message: why.to_owned(), retry_after: None }
}
