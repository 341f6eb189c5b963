//! What a program wants from us in the middle of its turn: our tools, and leave to act.
//!
//! Not here: running the turn. Invariants: what the program is told is recorded before it is told; one decision is
//! open at a time, the rest waits in order; where nobody is waited for, the answer is no; a "once" is handed out once.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::agent::program::{Allowed, Ask};
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use crate::engine::{ask, offer};
use crate::machine::document;
use crate::machine::event::{AgentCalled, AskedBy, DecisionAsked, ReportAccepted, Signal};
use crate::machine::operator::Decision;
use crate::model::act::Act;
use crate::model::decision::{ASK_TOOL, Answer, MAX_DECISIONS, MAX_TEXT, Mode, Request};
use crate::model::digest::Digest;
use crate::model::learnings::flatten;
use crate::model::purpose::Tool;
use crate::tool::permission::{Verdict, is_critical};

use super::{Attendance, Waiting};

impl Driver<'_> {
    /// Answers what waits, in order, until a person is needed.
    pub(super) async fn serve(&mut self, attendance: &mut Attendance) -> Result<(), EngineError> {
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
        let purpose = self.call()?.purpose();
        if let Some(tool) = Tool::of_name(&call.name).filter(|tool| purpose.tools().contains(tool)) {
            return self.serve_report(attendance, call, tool).await;
        }
        if call.name != ASK_TOOL || !purpose.may_ask() {
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

    async fn serve_report(
        &mut self,
        attendance: &mut Attendance,
        call: offer::Call,
        tool: Tool,
    ) -> Result<(), EngineError> {
        if self.call()?.report_accepted {
            return self.told(attendance, call, "Your report is in already.".to_owned(), true).await;
        }
        match self.admit(tool, &call.input) {
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
                let ends = accepted.report.ends_call();
                self.record(accepted).await?;
                if ends {
                    attendance.reported_at = Some(Instant::now());
                }
                let text = if ends { "Report accepted. Your part is done; stop now." } else { "Accepted." };
                self.told(attendance, call, text.to_owned(), false).await
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
        let what = ask.what.clone();
        if what.len() > MAX_TEXT {
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
        // What is critical is asked about every time.
        let critical = is_critical(&rule);
        let operator = &self.session.state.operator;
        let same = |decision: &&Decision| matches!(&decision.request, Request::Permission { tool: t, command: c, .. } if *t == tool && *c == what);
        let handed_out = &self.handed_out;
        let before = operator.decisions.iter().rev().filter(same).find_map(|decision| {
            let by = decision.asked_by.as_ref().filter(|by| by.call == attendance.key);
            // An answer that came while no program was there to hear it is for the turn that asked, begun again by
            // another engine. One that this engine handed out is used up: "once" does not become "always".
            let unheard = by.is_some_and(|by| by.turn == attendance.number) && !handed_out.contains(&decision.id);
            match decision.closed_with()? {
                Answer::AllowAlways if !critical => Some((decision.id, Allowed::Always)),
                Answer::Allow | Answer::AllowAlways if unheard => Some((decision.id, Allowed::Once)),
                Answer::Deny if by.is_some() => Some((decision.id, Allowed::No)),
                _ => None,
            }
        });
        if let Some((id, allowed)) = before {
            self.handed_out.insert(id);
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
    pub(super) fn clean_act(&self, act: Act) -> Act {
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
    pub(super) async fn answer_waiting(
        &mut self,
        attendance: &mut Attendance,
        held: &mut Duration,
    ) -> Result<(), EngineError> {
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
        let critical = matches!(&decision.request, Request::Permission { rule, .. } if is_critical(rule));
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
                    Answer::AllowAlways if critical => Allowed::Once,
                    Answer::AllowAlways => Allowed::Always,
                    _ => Allowed::No,
                };
                self.handed_out.insert(id);
                self.permission_told(attendance, ask, allowed, &format!("{id} by {by}")).await?;
            }
        }
        Box::pin(self.serve(attendance)).await
    }
}
