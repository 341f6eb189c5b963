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

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::cli;
use crate::agent::program::{Allowed, Ask, Finished, Task};
use crate::agent::{self, CallError, ProgramFault};
use crate::evidence::permit;
use crate::machine::document;
use crate::machine::event::{
    AgentActed, AgentCalled, AskedBy, DecisionAsked, Event, LlmRequested, LlmResponded, ReplyMove, ReportAccepted,
    Signal, ToolUse, Usage,
};
use crate::model::act::Act;
use crate::model::decision::{ASK_TOOL, Answer, DecisionId, MAX_DECISIONS, MAX_TEXT, Mode, Request};
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::learnings::{estimate_tokens, flatten};
use crate::model::report::{self, Report};
use crate::tool::permission::Verdict;

use super::ask;
use super::driver::{Driver, stop_comes};
use super::error::EngineError;
use super::offer::{self, Shelf};
use super::spend;

mod prompt;
mod sketch;
pub mod turn;

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
    /// Usage so far.
    usage: agent::Usage,
    cost: Option<crate::model::decimal::Exact>,
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
            usage: agent::Usage::default(),
            cost: None,
        };
        let (tell, mut news) = mpsc::channel(BACKLOG);
        let (result, ended) = self.attend(&program, task, &mut attendance, tell, &mut news).await?;
        self.flush(&mut attendance).await?;
        match (ended, result) {
            // The signal or the limit is recorded next; the turn is void.
            (Some(Ended::Stopped), _) => Ok(()),
            (Some(Ended::Cut), _) => self.cut_if_exhausted().await.map(|_| ()),
            (Some(Ended::Reported), _) => {
                let text = "(ended after its report was accepted)".to_owned();
                let (usage, cost_usd) = (attendance.usage, attendance.cost);
                self.take_turn(&key, number, Finished { text, usage, cost_usd, ..Finished::default() }).await
            }
            (Some(Ended::Silent), _) => {
                let message = format!("nothing for {} s", program.silence.as_secs());
                let error = CallError::Program { fault: ProgramFault::Silent, message, retry_after: None };
                self.take_failure(&key, number, attempt, &error, Some(attendance.usage), &program.setup).await
            }
            (Some(Ended::TooLong), _) => {
                let message = format!("its turn may take {} s", program.turn_limit.as_secs());
                let error = CallError::Program { fault: ProgramFault::TooLong, message, retry_after: None };
                self.take_failure(&key, number, attempt, &error, Some(attendance.usage), &program.setup).await
            }
            (None, Ok(finished)) => self.take_turn(&key, number, finished).await,
            // Its report is in; how it left matters no more.
            (None, Err(_)) if self.call()?.report_accepted => {
                let (usage, cost_usd) = (attendance.usage, attendance.cost);
                let text = "(broke off after its report was accepted)".to_owned();
                self.take_turn(&key, number, Finished { text, usage, cost_usd, ..Finished::default() }).await
            }
            (None, Err(error)) => {
                self.take_failure(&key, number, attempt, &error, Some(attendance.usage), &program.setup).await
            }
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
        let shelf = Shelf::open(self.session.run_dir.path(), shelved(attendance.role), calls)
            .map_err(|e| EngineError::io("cannot offer tools to the program", self.session.run_dir.path(), e))?;
        let binary = std::env::current_exe().map_err(|e| EngineError::Internal(format!("who am I? {e}")))?;
        let mut task = task;
        task.offer = program.takes_tools().then(|| shelf.offer(&binary));
        let heard = Heard::default();
        let marker = self.session.state.run().as_str().to_owned();
        let used = &self.call()?.used;
        let earlier = if task.session.is_some() { agent_usage(used) } else { agent::Usage::default() };
        let access = permit::access_of(attendance.role);
        let folders = program.folders();
        // A program makes its own folders at its first start; what is not there cannot be opened to it.
        for folder in folders.iter().filter(|folder| !folder.exists()) {
            let _ = std::fs::create_dir_all(folder);
        }
        let confinement = self.session.sandbox.for_program(access, &folders, &folders);
        let confinement =
            confinement.map_err(|why| EngineError::Internal(format!("the sandbox cannot be put up: {why}")))?;
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
            if ended.is_none() && self.passed_a_limit(attendance) {
                ended = Some(Ended::Cut);
                token.cancel();
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
    fn passed_a_limit(&self, attendance: &Attendance) -> bool {
        let mut spent = self.spent_now();
        let usage = &attendance.usage;
        spent.input_tokens = spent.input_tokens.saturating_add(usage.total().saturating_sub(usage.output_tokens));
        spent.output_tokens = spent.output_tokens.saturating_add(usage.output_tokens);
        if let Some(cost) = attendance.cost {
            spent.cost_usd = spent.cost_usd.and_then(|total| total.checked_add(cost));
        }
        crate::model::budget::iteration_exhausted(&self.session.state.limits, &spent).is_some()
    }

    async fn take_news(&mut self, attendance: &mut Attendance, item: News) -> Result<(), EngineError> {
        match item {
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

    /// Answers what waits, in order, until a person is needed.
    async fn serve(&mut self, attendance: &mut Attendance) -> Result<(), EngineError> {
        while attendance.open.is_none() {
            let Some(next) = attendance.queue.pop_front() else { return Ok(()) };
            match next {
                Waiting::Call(call) => self.serve_call(attendance, call).await?,
                Waiting::Permission(ask) => self.serve_permission(attendance, ask).await?,
            }
        }
        Ok(())
    }

    async fn serve_call(&mut self, attendance: &mut Attendance, call: offer::Call) -> Result<(), EngineError> {
        let role = attendance.role;
        if call.name == report::tool_name(role) {
            return self.serve_report(attendance, call).await;
        }
        if call.name != ASK_TOOL || role == Role::Skeptic {
            let text = format!("Tool '{}' not found.", flatten(&call.name).chars().take(64).collect::<String>());
            return self.told(attendance, call, text, true).await;
        }
        let (request, why) = match self.request_of(&call.input) {
            Ok(request) => request,
            Err(why) => return self.told(attendance, call, why, true).await,
        };
        // A program that is started again asks again; the answer is there already.
        let earlier = self.session.state.operator.decisions.iter().rev().find(|decision| {
            let same_call = decision.asked_by.as_ref().is_some_and(|by| by.call == attendance.key);
            same_call && decision.request == request && decision.closed_with().is_some()
        });
        if let Some(decision) = earlier {
            let text = ask::told(decision);
            return self.told(attendance, call, text, false).await;
        }
        if self.session.state.operator.decisions.len() >= MAX_DECISIONS {
            let text = "This run has asked too often. Decide yourself, or say in your report what you would need.";
            return self.told(attendance, call, text.to_owned(), true).await;
        }
        self.put_before_a_person(attendance, request, why, Waiting::Call(call)).await
    }

    async fn serve_report(&mut self, attendance: &mut Attendance, call: offer::Call) -> Result<(), EngineError> {
        if self.call()?.report_accepted {
            return self.told(attendance, call, "Your report is in already.".to_owned(), true).await;
        }
        match Report::parse(attendance.role, &call.input) {
            Err(why) => self.told(attendance, call, why, true).await,
            Ok(report) => {
                let accepted = ReportAccepted {
                    call: attendance.key.clone(),
                    id: call.id.clone(),
                    links: self.resolve(&report)?,
                    sha256: Digest::of(document::report(&report).as_bytes()),
                    report,
                };
                self.flush(attendance).await?;
                self.record(accepted).await?;
                attendance.reported_at = Some(Instant::now());
                self.told(attendance, call, "Report accepted. Your part is done; stop now.".to_owned(), false).await
            }
        }
    }

    /// Records a call of one of our tools and answers it. Recorded first: what the program was told, it was told.
    async fn told(
        &mut self,
        attendance: &mut Attendance,
        call: offer::Call,
        text: String,
        is_error: bool,
    ) -> Result<(), EngineError> {
        let called = AgentCalled {
            call: attendance.key.clone(),
            turn: attendance.number,
            id: call.id.clone(),
            name: flatten(&call.name).chars().take(64).collect(),
            input: self.session.blobs.put(call.input.to_string().as_bytes())?,
            is_error,
            text: self.text(&text)?,
        };
        self.flush(attendance).await?;
        self.record(called).await?;
        // It may be gone; then nobody waits.
        let _ = call.reply.send(offer::Answer { text, is_error });
        Ok(())
    }

    /// A program asks before it acts: rules first, then a person.
    async fn serve_permission(&mut self, attendance: &mut Attendance, ask: Ask) -> Result<(), EngineError> {
        let what: String = ask.what.chars().take(MAX_TEXT).collect();
        if what.len() < ask.what.len() || what.len() > MAX_TEXT {
            // What is approved must be all that runs.
            return self.permission_told(attendance, ask, Allowed::No, "too long to be put before a person").await;
        }
        let tool = flatten(&ask.tool).chars().take(64).collect::<String>();
        let input = json!({"command": what});
        let rule = match self.rules.decide("bash", &input) {
            Verdict::Denied { rule } => {
                return self.permission_told(attendance, ask, Allowed::No, &format!("deny {rule}")).await;
            }
            Verdict::Allowed { rule } if rule != "default" => {
                return self.permission_told(attendance, ask, Allowed::Once, &format!("allow {rule}")).await;
            }
            Verdict::Allowed { .. } => "the program asks".to_owned(),
            Verdict::Ask { rule } => rule,
        };
        let operator = &self.session.state.operator;
        let same = |decision: &&crate::machine::operator::Decision| matches!(&decision.request, Request::Permission { tool: t, command: c, .. } if *t == tool && *c == what);
        let before = operator.decisions.iter().rev().filter(same).find_map(|decision| {
            let of_this_call = decision.asked_by.as_ref().is_some_and(|by| by.call == attendance.key);
            match decision.closed_with()? {
                Answer::AllowAlways => Some((decision.id, Allowed::Always)),
                Answer::Allow if of_this_call => Some((decision.id, Allowed::Once)),
                Answer::Deny if of_this_call => Some((decision.id, Allowed::No)),
                _ => None,
            }
        });
        if let Some((id, allowed)) = before {
            return self.permission_told(attendance, ask, allowed, &format!("as in {id}")).await;
        }
        if operator.patience.mode == Mode::Stop || operator.decisions.len() >= MAX_DECISIONS {
            let why = format!("ask {rule}: nobody is there to answer, so it is denied");
            return self.permission_told(attendance, ask, Allowed::No, &why).await;
        }
        let directory = self.session.workspace.to_string_lossy().into_owned();
        let request = Request::Permission { tool, command: what, directory, rule };
        let why = "the program asks before it acts".to_owned();
        self.put_before_a_person(attendance, request, why, Waiting::Permission(ask)).await
    }

    async fn permission_told(
        &mut self,
        attendance: &mut Attendance,
        ask: Ask,
        allowed: Allowed,
        why: &str,
    ) -> Result<(), EngineError> {
        let verdict = if allowed == Allowed::No { "denied" } else { "allowed" };
        let text = format!("{} {verdict} ({why}): {}", flatten(&ask.tool), flatten(&ask.what));
        self.take_act(attendance, Act::Noted { text }).await?;
        let _ = ask.reply.send(allowed);
        Ok(())
    }

    /// A program's words lose known values and whatever looks like a key.
    fn clean_act(&self, act: Act) -> Act {
        let secrets = self.secrets();
        act.with_texts(|text| secrets.redact(&text).into_owned())
    }

    async fn take_act(&mut self, attendance: &mut Attendance, act: Act) -> Result<(), EngineError> {
        attendance.acts.push(act.bounded());
        self.flush(attendance).await
    }

    async fn put_before_a_person(
        &mut self,
        attendance: &mut Attendance,
        request: Request,
        why: String,
        waiting: Waiting,
    ) -> Result<(), EngineError> {
        self.flush(attendance).await?;
        attendance.asked += 1;
        let id = self.session.state.operator.next_id();
        let tool = match &waiting {
            Waiting::Call(call) => call.id.clone(),
            Waiting::Permission(_) => format!("p{}", attendance.asked),
        };
        let asked_by = AskedBy { call: attendance.key.clone(), turn: attendance.number, tool };
        self.record(DecisionAsked { id, request, why, asked_by: Some(asked_by) }).await?;
        attendance.open = Some((id, waiting));
        attendance.waiting_since = Some(Instant::now());
        if self.session.state.operator.patience.mode == Mode::Stop {
            self.signals.raise(Signal::DecisionNeeded, format!("{id} waits for an answer"));
        }
        Ok(())
    }

    /// An order may have answered what the program waits for.
    async fn answer_waiting(&mut self, attendance: &mut Attendance, held: &mut Duration) -> Result<(), EngineError> {
        while let Some(unsettled) = self.session.state.operator.unsettled().map(|decision| decision.id) {
            self.settle(unsettled).await?;
            let still = self.session.state.operator.unsettled().map(|decision| decision.id);
            // A stop came first.
            if still == Some(unsettled) {
                return Ok(());
            }
        }
        let Some((id, _)) = &attendance.open else { return Ok(()) };
        let Some(decision) = self.session.state.operator.decision(*id) else { return Ok(()) };
        let Some(answer) = decision.closed_with().cloned() else { return Ok(()) };
        let words = ask::told(decision);
        let by = decision.answer.as_ref().map_or("nobody", |answered| answered.by.as_str()).to_owned();
        if let Some(since) = attendance.waiting_since.take() {
            *held += since.elapsed();
        }
        let Some((id, waiting)) = attendance.open.take() else { return Ok(()) };
        match waiting {
            Waiting::Call(call) => self.told(attendance, call, words, false).await?,
            Waiting::Permission(ask) => {
                let allowed = match answer {
                    Answer::Allow => Allowed::Once,
                    Answer::AllowAlways => Allowed::Always,
                    _ => Allowed::No,
                };
                self.permission_told(attendance, ask, allowed, &format!("{id} by {by}")).await?;
            }
        }
        Box::pin(self.serve(attendance)).await
    }

    /// A finished turn as a reply: its last words, and its report if that is how it came.
    async fn take_turn(&mut self, key: &str, turn: u32, mut finished: Finished) -> Result<(), EngineError> {
        finished.text = self.secrets().redact(&finished.text).into_owned();
        let call = self.call()?;
        let name = call.report_tool();
        let fenced = if call.report_accepted { None } else { cli::fenced_report(&finished.text) };
        let mut content = Vec::new();
        if !finished.text.trim().is_empty() {
            content.push(json!({"type": "text", "text": finished.text}));
        }
        let mut tool_uses = Vec::new();
        if let Some(input) = fenced {
            let id = format!("report-{turn}");
            let malformed = !input.is_object();
            content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
            tool_uses.push(ToolUse { id, name: name.to_owned(), malformed });
        }
        let next = match (tool_uses.is_empty(), content.is_empty()) {
            (false, _) => ReplyMove::RunTools,
            (true, true) => ReplyMove::Nudge,
            (true, false) => ReplyMove::Finish,
        };
        let message = json!({"role": "assistant", "content": content});
        // The program's own figure where it gives one, else the declared price.
        let program = self.agents.program(&call.started.agent);
        let cost = finished.cost_usd.or_else(|| program?.setup.cost(&finished.usage));
        let responded = LlmResponded {
            call: key.to_owned(),
            turn,
            message: self.session.blobs.put(message.to_string().as_bytes())?,
            stop: "end_turn".to_owned(),
            next,
            empty: content.is_empty(),
            tool_uses,
            usage: spend::recorded(&finished.usage),
            cost_usd: cost,
            request_id: None,
            rate: None,
            session: finished.session,
        };
        self.record(Event::from(responded)).await
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
fn shelved(role: Role) -> Vec<offer::ToolSpecJson> {
    tools_of(role).into_iter().filter_map(|tool| serde_json::from_value(tool).ok()).collect()
}

/// Our tools for a program of this role.
pub(super) fn tools_of(role: Role) -> Vec<Value> {
    let mut tools = Vec::new();
    if role != Role::Skeptic {
        tools.push(ask::specification());
    }
    tools.push(json!({
        "name": report::tool_name(role),
        "description": "Hand in your report. This ends your part of the iteration.",
        "input_schema": report::schema(role),
    }));
    tools
}
