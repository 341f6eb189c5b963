//! What an iteration does. Each playbook is a room: all that is different about it stands there, behind one trait
//! ([`machine::playbook::Playbook`](crate::machine::playbook::Playbook)). Decisions here are pure; texts live in
//! `prompts/`. This file is the only one that chooses a playbook by its name.

pub mod micro;
pub mod passes;
pub mod prompts;
pub mod swarm;
#[cfg(test)]
mod toy;
pub mod value;

use crate::machine::event::Event;
use crate::machine::fold::{self, FoldError, Stamped};
use crate::machine::playbook::Playbook;
use crate::machine::run::RunState;
use crate::model::loop_file;

/// The playbook that a declaration names.
pub fn of(name: loop_file::Playbook) -> &'static dyn Playbook {
    match name {
        loop_file::Playbook::Swarm => &swarm::Swarm,
        loop_file::Playbook::Value => &value::Value,
        loop_file::Playbook::Prd => &passes::PRD,
        loop_file::Playbook::Micro => &passes::MICRO,
        #[cfg(test)]
        loop_file::Playbook::Toy => &toy::Toy,
    }
}

/// Folds the first event of a run, whatever its playbook.
pub fn start(stamped: &Stamped) -> Result<RunState, FoldError> {
    fold::start(stamped, of)
}

/// Reads an event of any family. `None`: the kind is unknown to this version.
pub fn parse(kind: &str, data: &str) -> Option<Result<Event, serde_json::Error>> {
    Event::parse(kind, data).or_else(|| loop_file::Playbook::all().find_map(|name| of(name).parse(kind, data)))
}
