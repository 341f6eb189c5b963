//! INTERACTIVE_PAUSE: what only a person can do, with a command that proves it.
//!
//! Role: find the words for what is needed, ask, and let the tasks go on that waited for it. Where no task waits, the
//! loop is at its wits' end and asks for a word. Not its role: waiting and running the command (the machine does).
//!
//! Invariants: a pause is neither progress nor the lack of it; nothing is taken as done that nobody said is done;
//! a word of a person raises no limit.

use crate::machine::event::Event;
use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::decision::{Answer, Request};
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::plan::HUMAN_ACTION;
use crate::model::value::tools::{HumanActionRequest, Structured};
use crate::model::value::{Outcome, Task, TaskStatus};
use crate::playbook::value::event::TaskPut;
use crate::playbook::value::state::OpenStep;

use crate::playbook::value::finished;

use super::ask::{self, MAX_ASKED, cut};
use super::execute::blocked_for_person;

/// Seconds the command that proves it may take.
const VERIFY_SECONDS: u64 = 30;

pub fn next(run: &RunState, step: &OpenStep) -> Option<Todo> {
    let task = awaited(run)?;
    let known = !step.decisions.is_empty() || request(run, step, task).is_some();
    (!known && step.calls_for(Purpose::InteractivePause) == 0).then(|| Todo::StartAgent {
        purpose: Purpose::InteractivePause,
        paraphrase: None,
        subject: Some(task.id.clone()),
    })
}

pub fn decide(run: &RunState, step: &OpenStep) -> Vec<Event> {
    match awaited(run) {
        Some(task) => decide_action(run, step, task),
        None => decide_word(run, step),
    }
}

/// The first task that waits for a person.
fn awaited(run: &RunState) -> Option<&Task> {
    run.value().tasks.iter().find(|task| task.needs_person())
}

/// Every task that waits for the same.
fn waiting<'a>(run: &'a RunState, task: &'a Task) -> impl Iterator<Item = &'a Task> {
    run.value().tasks.iter().filter(|one| one.needs_person() && one.blocked_reason == task.blocked_reason)
}

/// What was asked for in so many words: in this step, or by the call that blocked the task.
fn request<'a>(run: &'a RunState, step: &'a OpenStep, task: &Task) -> Option<&'a HumanActionRequest> {
    if let Some(Structured::RequestHumanAction(request)) = step.last_report(Tool::RequestHumanAction) {
        return Some(request);
    }
    let blocked_it = |request: &&HumanActionRequest| {
        request.blocked_task_id == task.id && blocked_for_person(task, request).blocked_reason == task.blocked_reason
    };
    run.value().human_requests.iter().rev().find(blocked_it)
}

fn decide_action(run: &RunState, step: &OpenStep, task: &Task) -> Vec<Event> {
    if step.decisions.is_empty() {
        let why = format!("{} cannot go on without it", ask::list(waiting(run, task).map(|one| one.id.as_str())));
        return match ask::ask(run, action(run, step, task), why) {
            Some(asked) => vec![asked],
            None => give_up(run, step, task),
        };
    }
    match ask::answer(run, step, 0) {
        Some((Answer::Done | Answer::DoneBy { .. } | Answer::Override, _)) => {
            let events = waiting(run, task).map(|one| unblocked(one, "a person did what it waited for"));
            let mut events: Vec<Event> = events.collect();
            let names = ask::list(waiting(run, task).map(|one| one.id.as_str()));
            events.push(finished(step, Outcome::Neutral, format!("done by a person; {names} can go on")));
            events
        }
        Some(_) | None => vec![finished(step, Outcome::Neutral, "a person was asked and did not do it")],
    }
}

fn action(run: &RunState, step: &OpenStep, task: &Task) -> Request {
    let reason = task.blocked_reason.as_deref().unwrap_or_default();
    let reason = reason.strip_prefix(HUMAN_ACTION).unwrap_or(reason).trim();
    let (instructions, verify) = match request(run, step, task) {
        Some(request) if !request.instructions.trim().is_empty() => (
            format!("{}\n{}", request.action.trim(), request.instructions.trim()),
            request.verification_command.clone(),
        ),
        Some(request) => (request.action.clone(), request.verification_command.clone()),
        None => (reason.to_owned(), None),
    };
    let verify = verify.filter(|argv| argv.first().is_some_and(|program| !program.trim().is_empty()));
    Request::HumanAction { instructions: cut(&instructions, MAX_ASKED), verify, timeout_seconds: VERIFY_SECONDS }
}

fn unblocked(task: &Task, why: &str) -> Event {
    let task = Task { status: TaskStatus::Pending, blocked_reason: None, ..task.clone() };
    TaskPut { task: Box::new(task), why: why.to_owned() }.into()
}

/// Nobody may be asked any more: the tasks stay blocked, but the run no longer comes back to them.
fn give_up(run: &RunState, step: &OpenStep, task: &Task) -> Vec<Event> {
    let why = "the run has asked people too often";
    let mut events: Vec<Event> = waiting(run, task)
        .map(|one| {
            let reason = one.blocked_reason.as_deref().unwrap_or_default();
            let reason = format!("not done, {why}: {}", reason.trim_start_matches(HUMAN_ACTION).trim());
            let task = Task { blocked_reason: Some(reason), ..one.clone() };
            TaskPut { task: Box::new(task), why: why.to_owned() }.into()
        })
        .collect();
    events.push(finished(step, Outcome::Neutral, why));
    events
}

/// No task waits: corrections are used up, and a person may know a way.
fn decide_word(run: &RunState, step: &OpenStep) -> Vec<Event> {
    if step.decisions.is_empty() {
        let options = ["say what to do differently", "quit"];
        if let Some(asked) = ask::escalate(run, &problem(run), &options, "all course corrections are used up") {
            return vec![asked];
        }
        return vec![finished(step, Outcome::Neutral, "nobody can be asked any more")];
    }
    let detail = match ask::answer(run, step, 0) {
        Some((Answer::Done, _)) => "done by a person",
        Some((Answer::Text(_), _)) => "a person had a word for the next agents",
        Some(_) | None => "a person was asked",
    };
    vec![finished(step, Outcome::Neutral, detail)]
}

fn problem(run: &RunState) -> String {
    use crate::model::value::VerificationStatus::{Blocked, Failed};
    let corrections = run.value().steps_of("COURSE_CORRECT");
    let failing = run.value().verifications.values().filter(|one| matches!(one.status, Failed | Blocked));
    let failing = ask::list(failing.map(|one| one.id.as_str()));
    let open = ask::list(run.value().tasks.iter().filter(|task| task.is_open()).map(|task| task.id.as_str()));
    let said = |what: &str, names: String| if names.is_empty() { String::new() } else { format!(" {what}: {names}.") };
    format!(
        "{corrections} course correction(s) did not help.{}{}",
        said("Checks that do not pass", failing),
        said("Unfinished tasks", open)
    )
}
