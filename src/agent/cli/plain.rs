//! Any command: what it prints is its answer.
//!
//! Role: prompt in, lines out. Not its role: sessions, models, tools; such a program has none that we know of.
//! Invariant: it has finished when it ends with code 0.

use crate::agent::program::Task;
use crate::model::act::Act;
use crate::model::loop_file::PromptBy;

use super::argv::{Announce, Ends, Line, with_system};
use super::turn::Turn;
use super::{Facts, Invocation};

pub(super) static FACTS: Facts = Facts {
    own_folders: &[],
    key_variables: &[],
    takes_tools: false,
    signed_in_files: &[],
    version: &["--version"],
    status: None,
    sign_in: "sign in with the program itself",
};

pub(super) fn invocation(line: Line<'_>, task: &Task) -> Result<Invocation, String> {
    let ends = Ends { default: PromptBy::Stdin, before_prompt: &[], by_stdin: &[], by_argument: Announce::Words(&[]) };
    line.build(usize::MAX, with_system(task, false), ends)
}

pub(super) fn line(line: &str, turn: &mut Turn, on_act: &mut dyn FnMut(Act)) {
    turn.keep_words(line);
    turn.keep_words("\n");
    if !line.trim().is_empty() {
        on_act(Act::Said { text: line.to_owned() }.bounded());
    }
}
