//! What was done on an earlier branch is kept when prd.json names another one, as people of that layout are used to.
//!
//! Role: `archive/DATE-FEATURE/` beside prd.json, with the progress and the items of that feature; a fresh progress.
//! Not its role: branches of the repository (`engine::git`).
//! Invariants: nothing that is there is overwritten; the progress begins anew only once the same text is in the archive,
//! so that a crash loses nothing; the date is a recorded one.

use crate::model::prd::Prd;
use crate::playbook::passes::event::PrdRead;
use crate::playbook::passes::{ARCHIVED, LAST_BRANCH, PROGRESS, beside};
use crate::workspace::plain;

use super::super::context::Context;
use super::super::error::EngineError;
use super::beside::progress_path;
use super::{LAST_PRD, ledger, prd_path};

/// Archives of one feature on one day.
const MOST_A_DAY: u32 = 100;
const LONGEST_NAME: usize = 60;

/// Keeps what belongs to the branch that the items named before; the folder, where there was something to keep.
pub(super) fn keep_last(cx: &Context<'_>, read: &PrdRead) -> Result<Option<String>, EngineError> {
    let Some(branch) = read.branch.as_deref().filter(|_| !cx.state().began_before_layouts()) else { return Ok(None) };
    let open = read.items.as_ref().is_some_and(|items| items.iter().any(|item| !item.passes));
    let last = ledger::current(cx, &beside(&prd_path(cx), LAST_BRANCH))?;
    let last = last.trim();
    if !open || last.is_empty() || last == branch {
        return Ok(None);
    }
    let date = cx.state().time.last_ts.get(..10).unwrap_or_default();
    keep(cx, last, date)
}

/// Before the first item: the progress of the new branch begins, and its name is written down. Not earlier: the
/// repository is looked at before, and nothing of people's may be changed by then.
pub(super) fn begin(cx: &Context<'_>) -> Result<(), EngineError> {
    let prd = &cx.state().passes().prd;
    let Some(branch) = prd.branch.as_deref().filter(|_| !cx.state().began_before_layouts()) else { return Ok(()) };
    if let Some(folder) = &prd.archived {
        let (path, kept) = (progress_path(cx), ledger::current(cx, &format!("{folder}/{PROGRESS}"))?);
        // It begins once: what is added to it is not what was kept.
        if !kept.is_empty() && ledger::current(cx, &path)? == kept {
            let date = cx.state().time.last_ts.get(..10).unwrap_or_default();
            ledger::replace(cx, &path, &ledger::new_progress(date))?;
        }
    }
    let place = beside(&prd_path(cx), LAST_BRANCH);
    if ledger::current(cx, &place)?.trim() == branch {
        return Ok(());
    }
    ledger::replace(cx, &place, &format!("{branch}\n"))
}

/// The folder that the earlier feature is in; `None`: there was nothing to keep.
fn keep(cx: &Context<'_>, last: &str, date: &str) -> Result<Option<String>, EngineError> {
    let progress = ledger::current(cx, &progress_path(cx))?;
    let items = ledger::current(cx, LAST_PRD)?;
    let of_last = Prd::read(items.as_bytes()).is_ok_and(|prd| prd.branch() == Some(last));
    let has_entries = progress.lines().any(|line| line.starts_with("## ") || line.contains(" | "));
    let files: Vec<(&str, &str)> = [(PROGRESS, progress.as_str(), has_entries), ("prd.json", &items, of_last)]
        .into_iter()
        .filter_map(|(name, text, keep)| keep.then_some((name, text)))
        .collect();
    if files.is_empty() {
        return Ok(None);
    }
    let head = beside(&prd_path(cx), &format!("{ARCHIVED}/{date}-{}", feature(last)));
    for nth in 1..=MOST_A_DAY {
        let folder = if nth == 1 { head.clone() } else { format!("{head}-{nth}") };
        let is_there = plain::kind(cx.workspace(), &folder).is_ok_and(|kind| kind.is_some());
        // A crash may have come behind it: then the same stands there already.
        let same = is_there
            && files.iter().all(|(name, text)| {
                ledger::current(cx, &format!("{folder}/{name}")).is_ok_and(|known| known.is_empty() || known == *text)
            });
        if is_there && !same {
            continue;
        }
        for (name, text) in &files {
            ledger::replace(cx, &format!("{folder}/{name}"), text)?;
        }
        return Ok(Some(folder));
    }
    Err(EngineError::Resumable {
        message: format!("{head}: there are {MOST_A_DAY} archives of that day already"),
        hint: "move them away, then run `nightloop resume`".to_owned(),
    })
}

/// A branch's name as one of a folder, without the prefix that all of them have.
fn feature(branch: &str) -> String {
    let name = branch.strip_prefix("ralph/").unwrap_or(branch);
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
    let name: String = name.chars().map(plain).take(LONGEST_NAME).collect();
    if name.is_empty() { "feature".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::feature;

    #[test]
    fn a_feature_is_one_folder() {
        for (branch, folder) in
            [("ralph/greeter", "greeter"), ("feat/a b/../c", "feat-a-b----c"), ("ralph/", "feature"), ("é", "-")]
        {
            assert_eq!(feature(branch), folder);
        }
    }
}
