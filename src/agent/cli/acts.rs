//! What several profiles show in the same way.
//!
//! Role: acts from the pieces that programs have in common. Not its role: any program's own shape.
//! Invariant: every act made here is bounded.

use std::collections::VecDeque;

use serde_json::Value;

use crate::model::act::{Act, MAX_ACT_BYTES, PlanStep};

use super::turn::string;

/// Edits that wait for their result.
const OPEN_EDITS: usize = 64;

/// Changes that were begun by a call and count when its result is no error.
#[derive(Default)]
pub(super) struct OpenEdits {
    edits: VecDeque<(String, Act)>,
}

impl OpenEdits {
    pub fn begin(&mut self, call: &str, edit: Act) {
        self.edits.push_back((call.chars().take(200).collect(), edit.bounded()));
        if self.edits.len() > OPEN_EDITS {
            self.edits.pop_front();
        }
    }

    pub fn end(&mut self, call: &str, is_error: bool, on_act: &mut dyn FnMut(Act)) {
        if let Some(at) = self.edits.iter().position(|(begun, _)| begun == call)
            && let Some((_, edit)) = self.edits.remove(at)
            && !is_error
        {
            on_act(edit);
        }
    }
}

/// Shows a text that is not empty.
pub(super) fn tell(text: Option<&str>, act: impl FnOnce(String) -> Act, on_act: &mut dyn FnMut(Act)) {
    if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
        on_act(act(text.to_owned()).bounded());
    }
}

/// A list of steps with a status each.
pub(super) fn plan(steps: Option<&Value>, text: &str) -> Option<Vec<PlanStep>> {
    let steps = steps?.as_array()?.iter().map(|step| PlanStep {
        text: string(step, text).unwrap_or_default().to_owned(),
        status: string(step, "status").unwrap_or_default().to_owned(),
    });
    Some(steps.collect())
}

/// Old lines out, new lines in.
pub(super) fn replaced(old: &str, new: &str) -> String {
    let out = old.lines().map(|line| format!("-{line}\n"));
    let lines = out.chain(new.lines().map(|line| format!("+{line}\n")));
    let mut diff = String::new();
    for line in lines {
        diff.push_str(&line);
        if diff.len() > MAX_ACT_BYTES {
            break;
        }
    }
    diff
}
