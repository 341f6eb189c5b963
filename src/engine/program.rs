//! Agent programs: a turn of one is a single long effect, attended while it lasts.
//!
//! The program works with tools of its own, inside the sandbox. What it says it does is recorded as acts; our
//! own tools reach it through an MCP server, and what it asks for becomes a decision. A turn that ends without a
//! report is asked for one, as any model is.
//!
//! Invariants: nothing is decided from an act; a report counts only after the same checks as any other; while
//! a person is waited for, neither the budget nor the program's silence counts.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::program::{Ask, Finished, Task};
use crate::agent::{self, CallError, ProgramFault};
use crate::evidence::permit;
use crate::machine::event::{AgentActed, LlmRequested, Signal, Usage};
use crate::model::act::Act;
use crate::model::budget::Exhausted;
use crate::model::decimal::Exact;
use crate::model::decision::DecisionId;
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::learnings::estimate_tokens;
use crate::model::purpose::Purpose;

use super::ask;
use super::conversation;
use super::driver::{Driver, stop_comes};
use super::error::EngineError;
use super::offer::{self, Shelf};

mod close;
mod prompt;
mod serve;
mod sketch;
pub mod turn;

use close::Spending;
pub use turn::Program;
use turn::{Heard, News, Turn};

/// Acts are recorded together, at the latest after this long.
const GATHER: Duration = Duration::from_millis(500);
/// Acts that fit one event.
const ACTS_PER_EVENT: usize = 32;
/// Acts that one turn may have recorded; the rest is counted.
const MAX_ACTS: usize = 5_000;
/// How long a program may go on talking after its report was accepted.
const AFTER_REPORT: Duration = Duration::from_secs(60);
/// News that may wait while something is recorded; a program that is faster waits.
const BACKLOG: usize = 256;

/// Why a turn was ended by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// A stop or a limit; it is recorded by the caller.
    Stopped,
    Cut,
    Silent,
    TooLong,
    /// Its report was in and it did not stop.
    Reported,
}

/// Something the program waits for.
enum Waiting {
    Call(offer::Call),
    Permission(Ask),
}

/// What one turn needs besides the driver.
struct Attendance {
    key: String,
    number: u32,
    role: Role,
    acts: Vec<Act>,
    /// When the oldest act that is not recorded came.
    since: Option<Instant>,
    recorded: usize,
    left_out: usize,
    /// Asks that wait for their turn: one decision is open at a time.
    queue: VecDeque<Waiting>,
    /// The decision that is open, and who waits for it.
    open: Option<(DecisionId, Waiting)>,
    /// When the person began to be waited for.
    waiting_since: Option<Instant>,
    asked: u32,
    reported_at: Option<Instant>,
    /// The limit that what it told so far has reached.
    passed: Option<Exhausted>,
    /// Usage so far.
    usage: agent::Usage,
    cost: Option<Exact>,
}

impl Driver<'_> {
    /// One turn of the program behind the open call.
    pub(super) async fn ask_program(&mut self) -> Result<(), EngineError> {
        let call = self.call()?.clone();
        let role = call.role();
        let program = self
            .agents
            .program(&call.started.agent)
            .cloned()
            .ok_or_else(|| EngineError::Internal(format!("agent {} is no program", call.started.agent)))?;
        let task = self.task(&program)?;
        let tokens = estimate_tokens(task.system.len() + task.prompt.len()) as u64;
        let (key, number, attempt) = (call.started.call.clone(), call.turn, call.attempts);
        self.retry_now = false;
        self.record(LlmRequested {
            call: key.clone(),
            turn: number,
            attempt,
            request_sha256: Digest::of([task.system.as_bytes(), b"\0", task.prompt.as_bytes()].concat().as_slice()),
            reserved_tokens: tokens,
            reserved_usd: None,
            drop_blocks: false,
        })
        .await?;
        let mut attendance = Attendance {
            key: key.clone(),
            number,
            role,
            acts: Vec::new(),
            since: None,
            recorded: 0,
            left_out: 0,
            queue: VecDeque::new(),
            open: None,
            waiting_since: None,
            asked: 0,
            reported_at: None,
            passed: None,
            usage: agent::Usage::default(),
            cost: None,
        };
        let (tell, mut news) = mpsc::channel(BACKLOG);
        let (result, ended) = self.attend(&program, task, &mut attendance, tell, &mut news).await?;
        self.flush(&mut attendance).await?;
        let reported = self.call()?.report_accepted;
        let spent = Spending { usage: attendance.usage, cost_usd: attendance.cost };
        match (ended, result) {
            // The signal is recorded next; the turn is void, but paid.
            (Some(Ended::Stopped), _) => self.void_turn(&key, number, attempt, "stopped", spent, &program).await,
            (Some(Ended::Cut), _) => {
                self.void_turn(&key, number, attempt, "a limit was reached", spent, &program).await?;
                match (self.cut_if_exhausted().await?, attendance.passed) {
                    (false, Some(exhausted)) => self.cut(exhausted).await,
                    _ => Ok(()),
                }
            }
            (Some(Ended::Reported | Ended::Silent | Ended::TooLong), _) if reported => {
                let text = "(ended after its report was accepted)".to_owned();
                let (usage, cost_usd) = (attendance.usage, attendance.cost);
                self.take_turn(&key, number, Finished { text, usage, cost_usd, ..Finished::default() }).await
            }
            (Some(Ended::Silent | Ended::Reported), _) => {
                let message = format!("nothing for {} s", program.silence.as_secs());
                let error = CallError::Program { fault: ProgramFault::Silent, message, retry_after: None };
                self.fail_turn(&key, number, attempt, &error, spent, &program).await
            }
            (Some(Ended::TooLong), _) => {
                let message = format!("its turn may take {} s", program.turn_limit.as_secs());
                let error = CallError::Program { fault: ProgramFault::TooLong, message, retry_after: None };
                self.fail_turn(&key, number, attempt, &error, spent, &program).await
            }
            (None, Ok(finished)) => self.take_turn(&key, number, finished).await,
            // Its report is in; how it left matters no more.
            (None, Err(_)) if reported => {
                let (usage, cost_usd) = (attendance.usage, attendance.cost);
                let text = "(broke off after its report was accepted)".to_owned();
                self.take_turn(&key, number, Finished { text, usage, cost_usd, ..Finished::default() }).await
            }
            (None, Err(error)) => self.fail_turn(&key, number, attempt, &error, spent, &program).await,
        }
    }

    /// Runs the turn to its end; takes orders, acts, tool calls and asks meanwhile.
    async fn attend(
        &mut self,
        program: &Program,
        task: Task,
        attendance: &mut Attendance,
        tell: mpsc::Sender<News>,
        news: &mut mpsc::Receiver<News>,
    ) -> Result<(Result<Finished, CallError>, Option<Ended>), EngineError> {
        let token = CancellationToken::new();
        let (calls, mut called) = mpsc::channel(BACKLOG);
        // A sandboxed program does not see the run's own folder.
        let place = self.session.sandbox.shared_folder().unwrap_or_else(|| self.session.run_dir.path().to_owned());
        let shelf = Shelf::open(&place, shelved(self.call()?.purpose()), calls)
            .map_err(|e| EngineError::io("cannot offer tools to the program", &place, e))?;
        let binary = std::env::current_exe().map_err(|e| EngineError::Internal(format!("who am I? {e}")))?;
        let mut task = task;
        task.offer = program.takes_tools().then(|| shelf.offer(&binary));
        let heard = Heard::default();
        let marker = self.session.state.run().as_str().to_owned();
        let used = &self.call()?.used;
        let earlier = if task.session.is_some() { agent_usage(used) } else { agent::Usage::default() };
        let access = permit::access_of(attendance.role);
        let mut folders = program.folders();
        // A program makes its own folders at its first start; what is not there cannot be opened to it.
        for folder in folders.iter().filter(|folder| !folder.exists()) {
            let _ = std::fs::create_dir_all(folder);
        }
        folders.extend(program.files());
        let sealed = self.sealed_from(attendance.role);
        let confinement = self.session.sandbox.for_program(access, &folders, &folders, &sealed);
        let confinement =
            confinement.map_err(|why| EngineError::Internal(format!("the sandbox cannot be set up: {why}")))?;
        let turn =
            Turn { confinement, task: &task, run_marker: &marker, earlier, tell, heard: heard.clone(), cancel: &token };
        let effect = turn::run(program, turn);
        tokio::pin!(effect);
        let began = Instant::now();
        let mut held = Duration::ZERO;
        let mut ended = None;
        loop {
            // Orders may have raised a limit, an answer may have ended a wait: all limits anew.
            let waits = attendance.open.is_some();
            let (limit, which) = if waits {
                (self.patience_left(attendance), None)
            } else {
                self.next_limit(program, attendance, &heard, began + held)
            };
            let flush_in = attendance.since.map(|since| GATHER.saturating_sub(since.elapsed()));
            let step = tokio::select! {
                biased;
                result = &mut effect => Step::Over(result),
                () = stop_comes(&self.signals, &self.session.state), if ended.is_none() => Step::End(Ended::Stopped),
                Some(order) = self.orders.recv() => Step::Order(order),
                Some(item) = news.recv() => Step::News(item),
                Some(call) = called.recv() => Step::Call(call),
                () = sleep_for(flush_in) => Step::Flush,
                () = sleep_for(limit), if ended.is_none() => match which {
                    Some(why) => Step::End(why),
                    None => Step::PatienceEnds,
                },
            };
            let outcome = match step {
                Step::Over(result) => {
                    // What it said before its end is still on its way.
                    while let Ok(item) = news.try_recv() {
                        self.take_news(attendance, item).await?;
                    }
                    return Ok((result, ended));
                }
                Step::End(why) if why == Ended::Silent && heard.since() < program.silence => Ok(()),
                Step::End(why) => {
                    ended = Some(why);
                    token.cancel();
                    Ok(())
                }
                Step::Order(order) => {
                    let taken = self.take_order(order).await;
                    let answered = match taken {
                        Ok(()) => self.answer_waiting(attendance, &mut held).await,
                        Err(error) => Err(error),
                    };
                    if waits {
                        heard.now();
                    }
                    answered
                }
                // It is on its way out: nobody is asked for it any more.
                Step::Call(_) if ended.is_some() => Ok(()),
                Step::News(News::Ask(_)) if ended.is_some() => Ok(()),
                Step::News(item) => self.take_news(attendance, item).await,
                Step::Call(mut call) => {
                    self.secrets().redact_json(&mut call.input);
                    call.name = self.secrets().redact(&call.name).into_owned();
                    attendance.queue.push_back(Waiting::Call(call));
                    self.serve(attendance).await
                }
                Step::Flush => self.flush(attendance).await,
                Step::PatienceEnds => {
                    let asked = attendance.open.as_ref().map_or_else(String::new, |(id, _)| id.to_string());
                    self.signals.raise(Signal::DecisionNeeded, format!("{asked} (nobody answered in time)"));
                    Ok(())
                }
            };
            if let Err(error) = outcome {
                // The journal is gone; the program must not outlive it.
                token.cancel();
                // It must not wait for us to listen.
                news.close();
                called.close();
                let _ = effect.await;
                return Err(error);
            }
            if ended.is_none() && self.session.state.operator.quit().is_some() {
                ended = Some(Ended::Stopped);
                token.cancel();
            }
            if ended.is_none() {
                attendance.passed = self.passed_a_limit(attendance);
                if attendance.passed.is_some() {
                    ended = Some(Ended::Cut);
                    token.cancel();
                }
            }
        }
    }

    /// The nearest limit of time, and what reaching it means.
    fn next_limit(
        &self,
        program: &Program,
        attendance: &Attendance,
        heard: &Heard,
        began: Instant,
    ) -> (Option<Duration>, Option<Ended>) {
        let silence = (program.silence.saturating_sub(heard.since()), Ended::Silent);
        let turn = (program.turn_limit.saturating_sub(began.elapsed()), Ended::TooLong);
        let budget = (self.time_left(), Ended::Cut);
        let reported = attendance.reported_at.map(|at| (AFTER_REPORT.saturating_sub(at.elapsed()), Ended::Reported));
        let all = [Some(silence), Some(turn), Some(budget), reported];
        match all.into_iter().flatten().min_by_key(|(left, _)| *left) {
            Some((left, why)) => (Some(left), Some(why)),
            None => (None, None),
        }
    }

    fn patience_left(&self, attendance: &Attendance) -> Option<Duration> {
        let minutes = self.session.state.operator.patience.timeout_minutes;
        let since = attendance.waiting_since?;
        (minutes > 0).then(|| Duration::from_secs(minutes.saturating_mul(60)).saturating_sub(since.elapsed()))
    }

    /// Has the turn used up tokens, money or tool calls? What it reports so far counts on top of what is settled.
    fn passed_a_limit(&self, attendance: &Attendance) -> Option<Exhausted> {
        let mut spent = self.spent_now();
        let usage = &attendance.usage;
        spent.input_tokens = spent.input_tokens.saturating_add(usage.total().saturating_sub(usage.output_tokens));
        spent.output_tokens = spent.output_tokens.saturating_add(usage.output_tokens);
        if let Some(cost) = attendance.cost {
            spent.cost_usd = spent.cost_usd.and_then(|total| total.checked_add(cost));
            spent.known_cost_usd = spent.known_cost_usd.unwrap_or(Exact::ZERO).checked_add(cost);
        }
        crate::model::budget::iteration_exhausted(&self.session.state.limits, &spent)
    }

    async fn take_news(&mut self, attendance: &mut Attendance, item: News) -> Result<(), EngineError> {
        match item {
            // Our own tools are recorded when they are called; its account of them says nothing new.
            News::Act(Act::Called { tool, .. }) if tool.contains(offer::SERVER_NAME) => Ok(()),
            News::Act(act) => {
                let act = self.clean_act(act);
                if attendance.recorded + attendance.acts.len() >= MAX_ACTS {
                    attendance.left_out += 1;
                    return Ok(());
                }
                attendance.acts.push(act.bounded());
                attendance.since.get_or_insert_with(Instant::now);
                if attendance.acts.len() >= ACTS_PER_EVENT {
                    return self.flush(attendance).await;
                }
                Ok(())
            }
            News::Spent { usage, cost } => {
                attendance.usage = usage;
                attendance.cost = cost.or(attendance.cost);
                Ok(())
            }
            News::Ask(mut ask) => {
                ask.tool = self.secrets().redact(&ask.tool).into_owned();
                ask.what = self.secrets().redact(&ask.what).into_owned();
                attendance.queue.push_back(Waiting::Permission(ask));
                self.serve(attendance).await
            }
        }
    }

    /// Records the acts gathered so far.
    async fn flush(&mut self, attendance: &mut Attendance) -> Result<(), EngineError> {
        attendance.since = None;
        let mut acts = std::mem::take(&mut attendance.acts);
        if attendance.left_out > 0 && attendance.recorded < MAX_ACTS + 1 {
            acts.push(Act::Noted { text: format!("more than {MAX_ACTS} acts: the rest is not recorded") });
        }
        if acts.is_empty() {
            return Ok(());
        }
        attendance.recorded += acts.len();
        self.record(AgentActed { call: attendance.key.clone(), turn: attendance.number, acts }).await
    }
}

/// What happened while a turn was attended.
enum Step {
    Over(Result<Finished, CallError>),
    End(Ended),
    Order(super::command::Order),
    News(News),
    Call(offer::Call),
    Flush,
    PatienceEnds,
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

async fn sleep_for(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// The same for the shelf.
fn shelved(purpose: Purpose) -> Vec<offer::ToolSpecJson> {
    tools_of(purpose).into_iter().filter_map(|tool| serde_json::from_value(tool).ok()).collect()
}

/// Our tools for a program.
pub(super) fn tools_of(purpose: Purpose) -> Vec<Value> {
    let asking = purpose.may_ask().then(ask::specification);
    asking.into_iter().chain(conversation::structured(purpose)).collect()
}
