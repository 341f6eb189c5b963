//! What an author and a critic are told of an item, of what is around it, and of what lies beside it.
//!
//! Role: the words. Not its role: the last pass (`ledger`), the capsule.
//! Invariants: every part is bounded, and what is left out is counted; what the file holds stands there as written, and
//! nothing of the engine's own is longer than what it is about.

use crate::machine::run::RunState;
use crate::model::prd::{Item, Prd};
use crate::model::progress;
use crate::playbook::passes::measure;
use crate::workspace::plain::{self, FileKind};

use super::super::context::Context;
use super::super::error::EngineError;
use super::beside::progress_path;
use super::ledger::{self, one_line};

/// Of the fields that have no place of their own, all together, and each.
const MAX_FIELDS: usize = 1_500;
const MAX_FIELD: usize = 400;
/// Titles before and behind the item, and how much of each.
const NEIGHBOURS: usize = 6;
const MAX_TITLE: usize = 70;
/// Of the progress.
const MAX_PROGRESS: usize = 3_000;
/// Files in which projects tell agents how to work there.
const INSTRUCTIONS: [&str; 3] = ["CLAUDE.md", "AGENTS.md", "GEMINI.md"];

fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(limit)])
}

/// The item as its author and its critic see it.
pub(super) fn item(prd: &Prd, item: &Item, attempt: u32) -> String {
    let mut text = format!("id: {}\ntitle: {}\nattempt: {attempt}\n", item.id, one_line(&item.title));
    if let Some(description) = &item.description {
        text.push_str(&format!("description: {description}\n"));
    }
    text.push_str("acceptance criteria, by number:\n");
    for (index, criterion) in item.acceptance.iter().enumerate() {
        text.push_str(&format!("{}. {}\n", index + 1, one_line(criterion)));
    }
    if let Some(notes) = item.notes.as_ref().filter(|notes| !notes.trim().is_empty()) {
        text.push_str(&format!("notes: {notes}\n"));
    }
    let fields = prd.other_fields(item);
    let (mut shown, mut left_out) = (String::new(), 0);
    for (key, value) in &fields {
        let line = format!("  {}: {}\n", one_line(&cut(key, MAX_TITLE)), cut(&one_line(value), MAX_FIELD));
        if shown.len() + line.len() > MAX_FIELDS {
            left_out += 1;
        } else {
            shown.push_str(&line);
        }
    }
    if !shown.is_empty() {
        text.push_str(&format!("its other fields:\n{shown}"));
    }
    if left_out > 0 {
        text.push_str(&format!("  and {left_out} more in the file\n"));
    }
    text
}

/// The check of the item's own, which the engine runs.
pub(super) fn own_check(state: &RunState, id: &str) -> String {
    let check = measure::own_check(state, id).map(|(argv, _)| argv.join(" "));
    check.map_or_else(String::new, |line| format!("its own check, run by the engine: {}\n", cut(&line, MAX_FIELD)))
}

/// Where the items are, and what stands around this one.
pub(super) fn around(prd: &Prd, item: &Item, path: &str) -> String {
    let mut text = format!("\nITEMS\nfile: {path} (the engine alone changes it)\n");
    for (name, value) in [("project", prd.name()), ("branch", prd.branch())] {
        if let Some(value) = value {
            text.push_str(&format!("{name}: {}\n", cut(&one_line(value), MAX_TITLE)));
        }
    }
    let all = prd.items();
    let at = all.iter().position(|other| other.id == item.id).unwrap_or_default();
    let (from, to) = (at.saturating_sub(NEIGHBOURS), all.len().min(at + NEIGHBOURS + 1));
    if from > 0 {
        text.push_str(&format!("({from} before)\n"));
    }
    for other in &all[from..to] {
        let mark = match (other.id == item.id, other.passes) {
            (true, _) => ">",
            (false, true) => "x",
            (false, false) => " ",
        };
        text.push_str(&format!("[{mark}] {} {}\n", cut(&other.id, MAX_TITLE), cut(&one_line(&other.title), MAX_TITLE)));
    }
    if to < all.len() {
        text.push_str(&format!("({} more)\n", all.len() - to));
    }
    text
}

/// The progress so far, and where the project says how to work in it.
pub(super) fn beside(cx: &Context<'_>) -> Result<String, EngineError> {
    let mut text = String::new();
    let path = progress_path(cx);
    let shown = progress::shown(&ledger::current(cx, &path)?, MAX_PROGRESS);
    if !shown.is_empty() {
        text.push_str(&format!("\nPROGRESS ({path}, the engine alone writes it)\n{}\n", cx.secrets().redact(&shown)));
    }
    let is_file = |name: &&&str| plain::kind(cx.workspace(), name).is_ok_and(|kind| kind == Some(FileKind::File));
    let there: Vec<&str> = INSTRUCTIONS.iter().filter(is_file).copied().collect();
    if !there.is_empty() {
        text.push_str(&format!("\nPROJECT\nHow to work here stands in: {}\n", there.join(", ")));
    }
    Ok(text)
}
