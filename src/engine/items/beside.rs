//! What lies beside prd.json: its progress, and what the project says of its branch.
//!
//! Role: where these files are in the layouts that people have (`scripts/ralph/`, `.ralph/`, `plans/`, the top). Not its
//! role: what is written into them (`ledger`, `archive`).
//! Invariants: the place of the progress does not change once it is there; only plain files are looked at.

use crate::model::value::settings::GitMode;
use crate::playbook::passes::event::PrdRead;
use crate::playbook::passes::{PROGRESS, beside, ready};
use crate::workspace::{head, plain};

use super::super::context::Context;
use super::prd_path;

/// The progress: beside prd.json if there is one, else the one at the top, else a new one beside prd.json.
pub(super) fn progress_path(cx: &Context<'_>) -> String {
    let near = beside(&prd_path(cx), PROGRESS);
    let is_there = |path: &str| plain::kind(cx.workspace(), path).is_ok_and(|kind| kind.is_some());
    if cx.state().began_before_layouts() || (!is_there(&near) && is_there(PROGRESS)) {
        return PROGRESS.to_owned();
    }
    near
}

/// Where the work stays although the file of items names another branch.
pub(super) fn other_branch(cx: &Context<'_>, read: &PrdRead) -> Option<String> {
    let declared = cx.state().loop_file();
    let off = cx.state().playbook().git_settings(declared).mode == GitMode::Off;
    let current = head::branch(cx.workspace()).filter(|_| off)?;
    ready::other_branch(&declared.prd().file, read.branch.as_deref()?, &current)
}
