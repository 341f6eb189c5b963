//! What an agent program was seen doing, as it told us.
//!
//! A program has tools of its own; this is its account of them, not ours. Nothing is decided from an act:
//! it is shown, and counted. Invariant: an act made by [`Act::bounded`] fits an event.

use serde::{Deserialize, Serialize};

/// The longest text of one act. The rest is cut, and said to be.
pub const MAX_ACT_BYTES: usize = 8 * 1024;

/// One thing an agent program said or did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    Said {
        text: String,
    },
    Thought {
        text: String,
    },
    /// It called a tool of its own. The id joins call and result.
    Called {
        id: String,
        tool: String,
        input: String,
    },
    Returned {
        id: String,
        is_error: bool,
        text: String,
    },
    /// Its plan, whole, one step per entry.
    Planned {
        steps: Vec<PlanStep>,
    },
    /// It says that it changed this file; a unified diff, or what it gave instead.
    Changed {
        path: String,
        diff: String,
    },
    /// It asked whether it may do something, and may not.
    Denied {
        text: String,
    },
    /// Anything else worth a line: a retry, a compaction, a new model.
    Noted {
        text: String,
    },
}

/// One step of an agent program's own plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    pub text: String,
    /// As the program names it: pending, in_progress, completed.
    pub status: String,
}

/// Steps of a plan that are kept.
const MAX_STEPS: usize = 50;

impl Act {
    /// The same act with each of its texts changed.
    #[must_use]
    pub fn with_texts(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::Said { text } => Self::Said { text: change(text) },
            Self::Thought { text } => Self::Thought { text: change(text) },
            Self::Called { id, tool, input } => Self::Called { id, tool: change(tool), input: change(input) },
            Self::Returned { id, is_error, text } => Self::Returned { id, is_error, text: change(text) },
            Self::Planned { steps } => Self::Planned {
                steps: steps.into_iter().map(|step| PlanStep { text: change(step.text), ..step }).collect(),
            },
            Self::Changed { path, diff } => Self::Changed { path: change(path), diff: change(diff) },
            Self::Denied { text } => Self::Denied { text: change(text) },
            Self::Noted { text } => Self::Noted { text: change(text) },
        }
    }

    /// The same act within its limits.
    #[must_use]
    pub fn bounded(self) -> Self {
        match self {
            Self::Said { text } => Self::Said { text: cut(text, MAX_ACT_BYTES) },
            Self::Thought { text } => Self::Thought { text: cut(text, MAX_ACT_BYTES) },
            Self::Called { id, tool, input } => {
                Self::Called { id: cut(id, 200), tool: cut(tool, 200), input: cut(input, MAX_ACT_BYTES) }
            }
            Self::Returned { id, is_error, text } => {
                Self::Returned { id: cut(id, 200), is_error, text: cut(text, MAX_ACT_BYTES) }
            }
            Self::Planned { steps } => Self::Planned {
                steps: steps
                    .into_iter()
                    .take(MAX_STEPS)
                    .map(|step| PlanStep { text: cut(step.text, 300), status: cut(step.status, 40) })
                    .collect(),
            },
            Self::Changed { path, diff } => Self::Changed { path: cut(path, 1_000), diff: cut(diff, MAX_ACT_BYTES) },
            Self::Denied { text } => Self::Denied { text: cut(text, 1_000) },
            Self::Noted { text } => Self::Noted { text: cut(text, 1_000) },
        }
    }
}

/// At most `limit` bytes, cut between characters, with a mark.
fn cut(mut text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let mut at = limit;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let left_out = text.len() - at;
    text.truncate(at);
    text.push_str(&format!(" [… {left_out} bytes left out]"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters_and_say_so() {
        let Act::Said { text } = (Act::Said { text: "é".repeat(MAX_ACT_BYTES) }).bounded() else { unreachable!() };
        assert!(text.len() < MAX_ACT_BYTES + 64 && text.ends_with("bytes left out]"));
        let short = Act::Said { text: "hello".into() };
        assert_eq!(short.clone().bounded(), short);
    }
}
