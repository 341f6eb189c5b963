//! What a console receives, wherever it comes from: a run in this process, a socket, a journal.

use std::sync::Arc;

use crate::engine::command::Receipt;
use crate::engine::hub::LiveText;
use crate::machine::fold::Stamped;

use super::scene::Link;

/// One piece of news.
#[derive(Debug, Clone)]
pub enum Update {
    /// An event, with the text it leans on where a transcript needs it: the model's message of
    /// `llm.responded`, the output of `tool.finished`. Absent for events far back.
    Event { stamped: Box<Stamped>, body: Option<Arc<[u8]>> },
    /// Text as a model writes it. No event; the finished reply follows.
    Live(LiveText),
    /// Everything that was there at the beginning has been told.
    CaughtUp,
    /// What became of a command.
    Receipt(Receipt),
    /// Everything told so far is void: a replay begins anew.
    Reset,
    /// How the console hangs together with the run has changed.
    Linked(Link),
    /// The run is over for the process that drove it.
    Ended,
}
