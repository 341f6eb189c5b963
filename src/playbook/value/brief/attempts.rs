//! What was tried before, for whoever tries next: how it ended, what it showed, what was said last.
//!
//! Role: the lines of LAST_ATTEMPT, TRIED and DISPUTED. Not its role: the other sections (`facts`). Invariant: words of
//! agents are quoted as data, each bounded; only what the folded run and its blobs hold.

use serde_json::{Value, json};

use crate::machine::event::ChangeKind;
use crate::model::digest::Digest;
use crate::model::value::{Action, Dispute, Outcome, Settled, Task};
use crate::playbook::value::event::WorkSeen;
use crate::playbook::value::state::{Attempt, ValueState};

use super::facts::{ids, last, log_line, object};
use super::{Texts, middle};

/// Attempts at one task, and fixes, that are shown.
const SHOWN: usize = 2;
const TRIED: usize = 5;
/// Of the last words, and of an output, this much.
const WORDS: usize = 800;
const OUTPUT: usize = 1_500;
const DIFF: usize = 1_500;
/// Files that are named.
const FILES: usize = 20;
/// A message longer than this is not looked into.
const MAX_MESSAGE: usize = 256 * 1024;

/// The attempts at a task so far; `None`: there was none.
pub fn of_task(value: &ValueState, task: &Task, texts: &dyn Texts) -> Option<Value> {
    let says = task.retries > 0 || !task.notes.is_empty() || task.dispute.is_some();
    let of_it: Vec<&Attempt> = value.attempts.iter().filter(|attempt| attempt.subject == [task.id.clone()]).collect();
    let attempts: Vec<Value> = last(&of_it, SHOWN).iter().map(|one| attempt(one, texts)).collect();
    says.then(|| {
        object([
            ("id", json!(task.id)),
            ("failed_attempts", json!(task.retries)),
            ("notes", json!(task.notes)),
            ("broke_after", json!(task.broken_by)),
            ("diff_of_what_broke_it", json!(diff_of(value, task.broken_by.as_ref(), texts))),
            ("dispute", json!(task.dispute.as_ref().map(dispute))),
            ("files_created", json!(task.files_created)),
            ("files_modified", json!(task.files_modified)),
            ("attempts", json!(attempts)),
        ])
    })
}

fn attempt(one: &Attempt, texts: &dyn Texts) -> Value {
    let (check, output) = match &one.failed {
        Some((end, output)) => (Some(end), Some(texts.text(output, OUTPUT))),
        None => (None, None),
    };
    object([
        ("step", json!(one.step)),
        ("end", json!(one.end.describe())),
        ("last_words", json!(one.words.map(|words| last_words(texts, &words)))),
        ("check", json!(check)),
        ("output", json!(output.map(|text| middle(text.trim(), OUTPUT)))),
        ("changed", json!(one.work.as_ref().map(changed))),
        ("diff", json!(diff(one, texts))),
    ])
}

/// The files that an attempt changed, by name.
fn changed(work: &WorkSeen) -> Vec<String> {
    let named = work.changes.iter().take(FILES).map(|change| format!("{} ({})", change.path, kind(change.kind)));
    let more = work.changes.len().saturating_sub(FILES) + usize::try_from(work.more).unwrap_or(usize::MAX);
    named.chain((more > 0).then(|| format!("and {more} more"))).collect()
}

const fn kind(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
    }
}

fn diff(one: &Attempt, texts: &dyn Texts) -> Option<String> {
    let diff = one.work.as_ref()?.diff?;
    Some(middle(texts.text(&diff, DIFF).trim(), DIFF))
}

/// What the task changed after which something broke.
pub fn diff_of(value: &ValueState, task: Option<&String>, texts: &dyn Texts) -> Option<String> {
    let task = task?;
    diff(value.attempts.iter().rev().find(|one| one.subject == [task.clone()])?, texts)
}

/// The end of what an agent said last.
fn last_words(texts: &dyn Texts, message: &Digest) -> String {
    let message: Value = serde_json::from_str(&texts.text(message, MAX_MESSAGE)).unwrap_or_default();
    let words = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let said = blocks.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
            said.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    };
    middle(words.trim(), WORDS)
}

/// Fixes for these verifications that did not help, with what the fixer said last.
pub fn tried(value: &ValueState, subject: Option<&str>, texts: &dyn Texts) -> Vec<Value> {
    let asked = subject.map(ids);
    let in_vain = value.log.iter().filter(|record| match (&record.action, record.outcome) {
        (Action::Fix { verifications }, Outcome::NoProgress | Outcome::Failed | Outcome::Neutral) => {
            asked.as_ref().is_none_or(|ids| verifications.iter().any(|id| ids.contains(id.as_str())))
        }
        _ => false,
    });
    let in_vain: Vec<_> = in_vain.collect();
    let lines = last(&in_vain, TRIED).iter().map(|record| {
        let mut line = log_line(record);
        let attempt = value.attempts.iter().find(|one| one.step == record.step);
        let words = attempt.and_then(|one| one.words).map(|words| last_words(texts, &words));
        let told = [("last_words", words), ("diff", attempt.and_then(|one| diff(one, texts)))];
        if let Some(line) = line.as_object_mut() {
            let told = told.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?)));
            line.extend(told.filter(|(_, text)| !text.is_empty()).map(|(key, text)| (key, text.into())));
        }
        line
    });
    let undone = last(&value.undone_causes, TRIED).iter().map(|cause| json!({"undone": cause}));
    lines.chain(undone).collect()
}

/// What was said against a check, and what its author made of it.
pub fn dispute(dispute: &Dispute) -> Value {
    let settled = match dispute.settled {
        None => "not looked at yet",
        Some(Settled::WrittenAnew) => "its author wrote it anew",
        Some(Settled::Stands) => "its author looked again: it stands",
    };
    json!({"said_to_be_wrong": middle(&dispute.reason, WORDS), "outcome": settled})
}

/// The checks that their author has to look at: those of the subject.
pub fn disputed(value: &ValueState, subject: Option<&str>, texts: &dyn Texts) -> Vec<Value> {
    let asked = subject.map(ids).unwrap_or_default();
    let scripts = value.verifications.values().filter(|one| one.is_disputed() && asked.contains(one.id.as_str()));
    let scripts = scripts.map(|one| {
        let newest = one.failures.last();
        object([
            ("check", json!(one.id)),
            ("path", json!(one.path)),
            ("reason", json!(one.dispute.as_ref().map(|dispute| &dispute.reason))),
            ("end", json!(newest.map(|failure| &failure.end))),
            ("output", json!(newest.map(|failure| middle(&texts.text(&failure.output, OUTPUT), OUTPUT)))),
            ("if_it_is_wrong", json!("write the script anew under its own name")),
        ])
    });
    let tasks = value.tasks.iter().filter(|task| task.is_disputed() && asked.contains(task.id.as_str()));
    let tasks = tasks.map(|task| {
        object([
            ("check", json!(task.id)),
            ("command", json!(task.check)),
            ("description", json!(task.description)),
            ("acceptance", json!(task.acceptance)),
            ("reason", json!(task.dispute.as_ref().map(|dispute| &dispute.reason))),
            ("if_it_is_wrong", json!("modify the task with another `check`, and nothing else")),
        ])
    });
    scripts.chain(tasks).collect()
}
