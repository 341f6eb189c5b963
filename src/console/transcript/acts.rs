//! What an agent program tells about itself, as items: its words, its own tools, its plan, its changes.
//!
//! Not here: our own tools' calls by models (`build`). Invariant: every text is made harmless; what a program
//! said during its turn is not said again by the reply that closes it.

use crate::console::prose;
use crate::machine::event::{AgentActed, AgentCalled, Text};
use crate::model::act::Act;
use crate::model::safe::Safe;

use super::Transcript;
use super::item::{BRIEF_LINES, Ended, Fold, ItemKind, Part, Tone, ToolCall};

/// The longest summary of a call, in characters.
const MAX_SUMMARY: usize = 160;

impl Transcript {
    pub(super) fn acted(&mut self, seq: u64, acted: &AgentActed) {
        for act in &acted.acts {
            match act {
                Act::Said { text } => {
                    self.context.said = Some((acted.call.clone(), acted.turn));
                    self.say(seq, ItemKind::Speech, text);
                }
                Act::Thought { text } => {
                    self.say(seq, ItemKind::Thinking, text);
                }
                Act::Called { id, tool, input } => {
                    let item = self.own_tool(seq, id, tool, input);
                    self.context.open.insert(own(id), item);
                }
                Act::Returned { id, is_error, text } => self.returned(seq, id, *is_error, text),
                Act::Planned { steps } => {
                    let lines: Vec<String> =
                        steps.iter().map(|step| format!("{}: {}", step.status, step.text)).collect();
                    self.note(seq, Tone::Plain, &format!("its plan\n{}", lines.join("\n")));
                }
                Act::Changed { path, diff } => {
                    let item = self.own_tool(seq, "", "changed", path);
                    self.finish_own(seq, item, true, "says it changed this file", diff);
                }
                Act::Denied { text } => {
                    self.note(seq, Tone::Bad, text);
                }
                Act::Noted { text } => {
                    self.note(seq, Tone::Plain, text);
                }
            }
        }
    }

    /// A call of one of our tools, with what the program was told.
    pub(super) fn called(&mut self, seq: u64, called: &AgentCalled) {
        let item = self.own_tool(seq, &called.id, &called.name, "");
        let text = match &called.text {
            Text::Inline(text) => text.clone(),
            Text::Blob(_) => "[a long answer, kept in the record]".to_owned(),
        };
        let words = if called.is_error { "refused" } else { "answered" };
        self.finish_own(seq, item, !called.is_error, words, &text);
    }

    fn own_tool(&mut self, seq: u64, id: &str, name: &str, input: &str) -> u64 {
        let summary: String = Safe::line(input).to_string().chars().take(MAX_SUMMARY).collect();
        let call = ToolCall {
            id: id.to_owned(),
            name: Safe::line(name).to_string(),
            summary,
            rule: "the program's own tool".to_owned(),
            ended: None,
            accepted: false,
        };
        let mut item = self.new_item(ItemKind::Tool(call), seq);
        item.extend(Part::Input, prose::lines(input.trim_end()));
        item.fold = Fold::Folded;
        self.push(item)
    }

    fn returned(&mut self, seq: u64, id: &str, is_error: bool, text: &str) {
        let words = if is_error { "failed, it says" } else { "done, it says" };
        match self.context.open.remove(&own(id)) {
            Some(item) => self.finish_own(seq, item, !is_error, words, text),
            None => {
                let tone = if is_error { Tone::Bad } else { Tone::Plain };
                self.note(seq, tone, &format!("a tool of its own: {words}"));
            }
        }
    }

    fn finish_own(&mut self, seq: u64, id: u64, good: bool, words: &str, text: &str) {
        let words = words.to_owned();
        self.change(id, |item| {
            item.done_seq = Some(seq);
            let ItemKind::Tool(tool) = &mut item.kind else { return };
            tool.ended = Some(Ended { good, words });
            item.extend(Part::Output, prose::lines(text.trim_end()));
            if item.fold == Fold::Folded && item.output_lines() <= BRIEF_LINES {
                item.fold = Fold::Brief;
            }
        });
    }
}

/// A program chooses its ids; they must not meet ours.
fn own(id: &str) -> String {
    format!("its {id}")
}
