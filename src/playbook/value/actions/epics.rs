//! The boundary between two epics: summary, feedback, the next slice.
//!
//! Role: show a person what the slice delivered, hear how to go on, plan the next one and have the plan reviewed. Not its
//! role: slicing the vision (a gate does). Invariant: silence is no answer; only the bare words `proceed` and `stop` mean that,
//! everything else is a wish for the next slice.

use crate::machine::event::Event;
use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::decision::{Answer, Request};
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::tools::{EpicSummary, Structured};
use crate::model::value::{Outcome, Task, TaskStatus};
use crate::playbook::value::event::{EpicPut, EpicStatus, TaskPut};
use crate::playbook::value::gates::quality::{self, Review};
use crate::playbook::value::state::OpenStep;

use crate::playbook::value::finished;

use super::ask::{self, MAX_ASKED, MAX_DETAIL, cut};

/// Calls that may be made to get a plan for the next epic.
const MAX_PLANS: usize = 2;

pub fn next(run: &RunState, step: &OpenStep, epic: u32) -> Option<Todo> {
    if step.calls_for(Purpose::EpicSummary) == 0 {
        return Some(call(Purpose::EpicSummary, epic));
    }
    let planned = planned(run, step).next().is_some();
    let begun = begun(run, epic)?;
    if !planned && step.calls_for(Purpose::Plan) < MAX_PLANS {
        return Some(call(Purpose::Plan, begun.epic));
    }
    let missing = |purpose: &Purpose| matches!(quality::review(run, step, *purpose), Review::Session);
    let purpose = reviews(run, step).find(missing)?;
    Some(call(purpose, begun.epic))
}

/// The reviews that the plan of this step has: the same as the first plan, where there is a plan.
fn reviews(run: &RunState, step: &OpenStep) -> impl Iterator<Item = Purpose> {
    let reviewed = !run.began_before_reviews() && planned(run, step).next().is_some();
    quality::REVIEWS.into_iter().filter(move |_| reviewed)
}

pub fn decide(run: &RunState, step: &OpenStep, epic: u32) -> Vec<Event> {
    let Some(current) = run.value().epics.iter().find(|one| one.epic == epic) else {
        return vec![finished(step, Outcome::NoProgress, format!("there is no epic {}", epic + 1))];
    };
    if let Some(begun) = begun(run, epic) {
        return close(run, step, begun);
    }
    let waiting: Vec<&EpicPut> = following(run, epic).collect();
    let Some(following) = waiting.first() else {
        let done = EpicPut { status: EpicStatus::Completed, ..current.clone() };
        return vec![done.into(), finished(step, Outcome::Neutral, format!("epic {} was the last", epic + 1))];
    };
    let Some((answer, note)) = ask::answer(run, step, 0) else {
        let why = format!("epic {} is done and another follows", epic + 1);
        return match ask::ask(run, question(run, step, current, following), why).filter(|_| step.decisions.is_empty()) {
            Some(asked) => vec![asked],
            None => vec![finished(step, Outcome::NoProgress, "nobody can be asked how to go on")],
        };
    };
    let feedback = Feedback::of(answer, note);
    let done = EpicPut {
        status: EpicStatus::Completed,
        feedback: Some((feedback.name().to_owned(), feedback.words())),
        ..current.clone()
    };
    match feedback {
        Feedback::Stop => {
            let mut events = leave_out(run, &waiting);
            events.push(done.into());
            let detail = format!("a person stopped after epic {}; {} left out", epic + 1, waiting.len());
            events.push(finished(step, Outcome::Neutral, detail));
            events
        }
        Feedback::Proceed | Feedback::Adjust(_) => {
            let begun = EpicPut { status: EpicStatus::InProgress, ..(*following).clone() };
            vec![done.into(), begun.into()]
        }
    }
}

fn call(purpose: Purpose, epic: u32) -> Todo {
    Todo::StartAgent { purpose, paraphrase: None, subject: Some(format!("epic {}", epic + 1)) }
}

/// Epics behind this one that are not begun.
fn following(run: &RunState, epic: u32) -> impl Iterator<Item = &EpicPut> {
    run.value().epics.iter().filter(move |one| one.epic > epic && one.status == EpicStatus::Pending)
}

/// The epic that this boundary led into.
fn begun(run: &RunState, epic: u32) -> Option<&EpicPut> {
    run.value().current_epic().filter(|one| one.epic > epic)
}

/// Tasks that were planned in this step.
fn planned<'a>(run: &'a RunState, step: &'a OpenStep) -> impl Iterator<Item = &'a Task> {
    run.value().tasks.iter().filter(|task| task.created_in == step.number)
}

fn close(run: &RunState, step: &OpenStep, begun: &EpicPut) -> Vec<Event> {
    let tasks: Vec<&Task> = planned(run, step).collect();
    let untagged = tasks.iter().filter(|task| task.epic != Some(begun.epic));
    let mut events: Vec<Event> = untagged
        .map(|task| {
            let task = Task { epic: Some(begun.epic), ..(*task).clone() };
            TaskPut { task: Box::new(task), why: format!("planned for epic {}", begun.epic + 1) }.into()
        })
        .collect();
    let number = begun.epic + 1;
    events.push(match tasks.len() {
        0 => finished(step, Outcome::NoProgress, format!("epic {number} begins, but nobody planned a task for it")),
        count => {
            let detail = format!("epic {number} begins with {count} task(s){}", concerns(run, step));
            finished(step, Outcome::Neutral, cut(&detail, MAX_DETAIL))
        }
    });
    events
}

/// What the reviews left open. Work goes on: tasks that cannot begin or are blocked lead to a course correction.
fn concerns(run: &RunState, step: &OpenStep) -> String {
    let left = reviews(run, step).filter_map(|purpose| match quality::review(run, step, purpose) {
        Review::Concerns(concerns) => Some(format!("; {purpose}: {}", concerns.join("; "))),
        Review::Session | Review::Verified => None,
    });
    left.collect()
}

/// How a person wants to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Feedback {
    Proceed,
    Adjust(String),
    Stop,
}

impl Feedback {
    fn of(answer: &Answer, note: Option<&str>) -> Self {
        let text = match answer {
            Answer::Text(text) => text.trim(),
            _ => "",
        };
        let note = note.unwrap_or_default().trim();
        match text.to_lowercase().as_str() {
            "proceed" if note.is_empty() => Self::Proceed,
            "stop" => Self::Stop,
            "proceed" | "adjust" => Self::Adjust(note.to_owned()),
            _ => Self::Adjust(format!("{text} {note}").trim().to_owned()),
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Proceed => "proceed",
            Self::Adjust(_) => "adjust",
            Self::Stop => "stop",
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Adjust(words) => cut(words, MAX_ASKED),
            Self::Proceed | Self::Stop => String::new(),
        }
    }
}

/// Epics that are not begun are skipped, and what was planned for them is out of scope.
fn leave_out(run: &RunState, skipped: &[&EpicPut]) -> Vec<Event> {
    let of_skipped = |task: &&Task| task.is_open() && skipped.iter().any(|epic| task.epic == Some(epic.epic));
    let tasks = run.value().tasks.iter().filter(of_skipped).map(|task| {
        let mut task = Task { status: TaskStatus::Descoped, ..task.clone() };
        if !run.began_before_recovery() {
            task.notes = "its epic was left out by a person".to_owned();
        }
        Event::from(TaskPut { task: Box::new(task), why: "its epic is left out".to_owned() })
    });
    let epics = skipped.iter().map(|epic| Event::from(EpicPut { status: EpicStatus::Skipped, ..(*epic).clone() }));
    tasks.chain(epics).collect()
}

fn question(run: &RunState, step: &OpenStep, current: &EpicPut, following: &EpicPut) -> Request {
    let of = run.value().epics.len();
    let mut text = format!("Epic {} of {of} is done: {}.\n", current.epic + 1, current.title.trim());
    match summary(step) {
        Some(summary) => {
            text.push_str(&format!("Delivered: {}\n", summary.delivered.join("; ")));
            text.push_str(&format!("Towards the vision: {}\n", summary.vision_progress.trim()));
            if !summary.adjustments.is_empty() {
                text.push_str(&format!("Suggested changes: {}\n", summary.adjustments.join("; ")));
            }
            let (confidence, why) = (summary.confidence, summary.confidence_rationale.trim());
            text.push_str(&format!("Confidence: {confidence:?}, {why}\n"));
        }
        None => text.push_str(&format!("There is no summary. Planned were: {}\n", current.deliverables.join("; "))),
    }
    text.push_str(&format!("Next: {}. {}", following.title.trim(), following.value_statement.trim()));
    let ending = "\nproceed, adjust (say how) or stop here?";
    let question = format!("{}{ending}", cut(&text, MAX_ASKED.saturating_sub(ending.len())));
    let choices = ["proceed", "adjust", "stop"].map(str::to_owned).to_vec();
    Request::Question { question, choices }
}

fn summary(step: &OpenStep) -> Option<&EpicSummary> {
    match step.last_report(Tool::ReportEpicSummary) {
        Some(Structured::ReportEpicSummary(summary)) => Some(summary),
        _ => None,
    }
}
