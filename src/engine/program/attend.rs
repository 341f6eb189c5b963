//! Attends a turn from its start to its end: takes orders, acts, tool calls and asks meanwhile.
//!
//! Not here: what it asks for (`serve`), what its end means (`close`), the process (`turn`). Invariant: when this
//! returns, the program is gone.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::program::{Earlier, Finished, Task};
use crate::agent::{self, CallError};
use crate::engine::command::Order;
use crate::engine::confine;
use crate::engine::context::{Context, sleep_for, stop_comes};
use crate::engine::conversation;
use crate::engine::error::EngineError;
use crate::engine::learn;
use crate::engine::offer::{self, ToolServer};
use crate::machine::event::{Signal, Usage};
use crate::model::act::Act;
use crate::tool::permit;
use crate::tool::sandbox::Confinement;

use super::declared::Program;
use super::open_turn::{OpenTurn, Waiting};
use super::serve;
use super::turn::{self, Heard, News, Turn};

/// How long a program may go on talking after its report was accepted.
const AFTER_REPORT: Duration = Duration::from_secs(60);
/// News that may wait while something is recorded; a program that is faster waits.
const BACKLOG: usize = 256;

/// Why a turn was ended by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// A stop or a limit; it is recorded by the caller.
    Stopped,
    Cut,
    Silent,
    TooLong,
    /// Its report was in and it did not stop.
    Reported,
    /// Its report could not be taken, as often as it may be handed in.
    Refused,
}

/// What happened while a turn was attended.
enum Happened {
    Over(Result<Finished, CallError>),
    End(Ended),
    Order(Order),
    News(News),
    Call(offer::Call),
    Flush,
    PatienceEnds,
}

/// What a turn may use, and how it is ended.
struct Watched<'a> {
    program: &'a Program,
    heard: Heard,
    began: Instant,
    token: CancellationToken,
    ended: Option<Ended>,
}

/// Runs the turn to its end; the second value says whether and why we ended it.
pub(super) async fn attend(
    cx: &mut Context<'_>,
    program: &Program,
    mut task: Task,
    open: &mut OpenTurn<'_>,
) -> Result<(Result<Finished, CallError>, Option<Ended>), EngineError> {
    let (tell, mut news) = mpsc::channel(BACKLOG);
    let (calls, mut called) = mpsc::channel(BACKLOG);
    let server = offer_tools(cx, calls)?;
    let binary = std::env::current_exe().map_err(|e| EngineError::Internal(format!("who am I? {e}")))?;
    task.offer = program.takes_tools().then(|| server.offer(&binary));
    let confinement = confinement(cx, program, open)?;
    task.caged = confinement.is_some() && cx.sandbox().holds_read_only();
    let token = CancellationToken::new();
    let mut watched =
        Watched { program, heard: Heard::default(), began: Instant::now(), token: token.clone(), ended: None };
    let run_marker = cx.state().run().as_str().to_owned();
    let call = cx.call()?;
    let earlier = Earlier { usage: agent_usage(&call.session_used), cost_usd: call.session_cost };
    let earlier = if task.session.is_some() { earlier } else { Earlier::default() };
    let effect = turn::run(
        program,
        Turn {
            confinement,
            task: &task,
            run_marker: &run_marker,
            earlier,
            tell,
            heard: watched.heard.clone(),
            cancel: &token,
        },
    );
    tokio::pin!(effect);
    loop {
        // Orders may have raised a limit, an answer may have ended a wait: all limits anew.
        let (limit, which) = watched.next_limit(cx, open);
        let may_end = watched.ended.is_none();
        // Whoever talks without a pause always has news: a limit that is reached comes first.
        let due = which.filter(|_| may_end && limit == Some(Duration::ZERO));
        let happened = tokio::select! {
            biased;
            result = &mut effect => Happened::Over(result),
            () = stop_comes(&cx.signals, cx.recorder.state()), if may_end => Happened::End(Ended::Stopped),
            () = std::future::ready(()), if due.is_some() => due.map_or(Happened::Flush, Happened::End),
            Some(order) = cx.orders.recv() => Happened::Order(order),
            Some(item) = news.recv() => Happened::News(item),
            Some(call) = called.recv() => Happened::Call(call),
            () = sleep_for(open.flush_in()) => Happened::Flush,
            () = sleep_for(limit), if may_end => which.map_or(Happened::PatienceEnds, Happened::End),
        };
        let result = match happened {
            Happened::Over(result) => {
                // What it said before its end is still on its way. Nobody is asked for what is gone.
                while let Ok(item) = news.try_recv() {
                    if !matches!(item, News::Ask(_)) {
                        take_news(cx, open, item).await?;
                    }
                }
                return Ok((result, watched.ended));
            }
            happened => watched.handle(cx, open, happened).await,
        };
        if let Err(error) = result {
            // The journal is gone; the program must not outlive it.
            token.cancel();
            // It must not wait for us to listen.
            news.close();
            called.close();
            let _ = effect.await;
            return Err(error);
        }
        watched.end_if_due(cx, open);
    }
}

impl Watched<'_> {
    fn end(&mut self, why: Ended) {
        self.ended = Some(why);
        self.token.cancel();
    }

    /// The nearest limit of time, and what reaching it means; `None`: patience with a person ends.
    fn next_limit(&self, cx: &Context<'_>, open: &OpenTurn<'_>) -> (Option<Duration>, Option<Ended>) {
        if open.open.is_some() {
            return (open.patience_left(cx), None);
        }
        let began = self.began + open.held;
        let silence = (self.program.silence.saturating_sub(self.heard.since()), Ended::Silent);
        let turn = (self.program.turn_limit.saturating_sub(began.elapsed()), Ended::TooLong);
        let budget = (cx.recorder.time_left(), Ended::Cut);
        let reported = open.reported_at.map(|at| (AFTER_REPORT.saturating_sub(at.elapsed()), Ended::Reported));
        let all = [Some(silence), Some(turn), Some(budget), reported];
        match all.into_iter().flatten().min_by_key(|(left, _)| *left) {
            Some((left, why)) => (Some(left), Some(why)),
            None => (None, None),
        }
    }

    async fn handle(
        &mut self,
        cx: &mut Context<'_>,
        open: &mut OpenTurn<'_>,
        happened: Happened,
    ) -> Result<(), EngineError> {
        match happened {
            Happened::Over(_) => Ok(()),
            Happened::End(Ended::Silent) if self.heard.since() < self.program.silence => Ok(()),
            Happened::End(why) => {
                self.end(why);
                Ok(())
            }
            Happened::Order(order) => {
                let waits = open.open.is_some();
                let answered = match cx.take_order(order).await {
                    Ok(()) => serve::answer_waiting(cx, open).await,
                    Err(error) => Err(error),
                };
                if waits {
                    self.heard.now();
                }
                answered
            }
            // It is on its way out: nobody is asked for it any more.
            Happened::Call(_) | Happened::News(News::Ask(_)) if self.ended.is_some() => Ok(()),
            Happened::News(item) => take_news(cx, open, item).await,
            Happened::Call(mut call) => {
                cx.secrets().redact_json(&mut call.input);
                call.name = cx.secrets().redact(&call.name).into_owned();
                open.queue.push_back(Waiting::Call(call));
                serve::serve(cx, open).await
            }
            Happened::Flush => open.flush(cx).await,
            Happened::PatienceEnds => {
                let asked = open.open.as_ref().map_or_else(String::new, |(id, _)| id.to_string());
                cx.signals.raise(Signal::DecisionNeeded, format!("{asked} (nobody answered in time)"));
                Ok(())
            }
        }
    }

    /// Did what happened leave nothing to go on for?
    fn end_if_due(&mut self, cx: &Context<'_>, open: &mut OpenTurn<'_>) {
        if self.ended.is_some() {
            return;
        }
        if cx.state().operator.quit().is_some() {
            self.end(Ended::Stopped);
            return;
        }
        if cx.call().is_ok_and(|call| call.refused.is_over()) {
            self.end(Ended::Refused);
            return;
        }
        open.passed = open.passed_a_limit(cx);
        if open.passed.is_some() {
            self.end(Ended::Cut);
        }
    }
}

/// Our tools, where the program can reach them.
fn offer_tools(cx: &Context<'_>, calls: mpsc::Sender<offer::Call>) -> Result<ToolServer, EngineError> {
    // A sandboxed program does not see the run's own folder.
    let place = cx.sandbox().shared_folder().unwrap_or_else(|| cx.run_dir().path().to_owned());
    let tools = conversation::program_tools(cx.call()?.purpose());
    let tools = tools.into_iter().filter_map(|tool| serde_json::from_value(tool).ok()).collect();
    ToolServer::open(&place, tools, calls).map_err(|e| EngineError::io("cannot offer tools to the program", &place, e))
}

/// What the program wears.
fn confinement(
    cx: &Context<'_>,
    program: &Program,
    open: &OpenTurn<'_>,
) -> Result<Option<Arc<Confinement>>, EngineError> {
    let mut folders = program.folders();
    // A program makes its own folders at its first start; what is not there cannot be opened to it.
    for folder in folders.iter().filter(|folder| !folder.exists()) {
        let _ = std::fs::create_dir_all(folder);
    }
    folders.extend(program.files());
    learn::hold(cx)?;
    let sealed = confine::sealed_from(cx, open.role);
    let access = permit::access_of(open.role);
    confine::put_up(cx.sandbox().for_program(access, &folders, &folders, &sealed))
}

async fn take_news(cx: &mut Context<'_>, open: &mut OpenTurn<'_>, item: News) -> Result<(), EngineError> {
    match item {
        // Our own tools are recorded when they are called; its account of them says nothing new.
        News::Act(Act::Called { tool, .. }) if tool.contains(offer::SERVER_NAME) => Ok(()),
        News::Act(act) => open.acted(cx, act).await,
        News::Spent { usage, cost, model } => {
            open.usage = usage;
            open.model = model.or(open.model.take());
            open.cost = cost.or(open.cost);
            Ok(())
        }
        News::Ask(mut ask) => {
            ask.tool = cx.secrets().redact(&ask.tool).into_owned();
            ask.what = cx.secrets().redact(&ask.what).into_owned();
            open.queue.push_back(Waiting::Permission(ask));
            serve::serve(cx, open).await
        }
    }
}

/// What was recorded, as a client counts it.
fn agent_usage(usage: &Usage) -> agent::Usage {
    agent::Usage {
        input_tokens: usage.input,
        cache_creation_input_tokens: usage.cache_write,
        cache_read_input_tokens: usage.cache_read,
        output_tokens: usage.output,
        thinking_tokens: usage.thinking,
        web_search_requests: usage.web_searches,
        ..agent::Usage::default()
    }
}
