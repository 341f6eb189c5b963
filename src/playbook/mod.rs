//! What an iteration does. Decisions here are pure; texts live in `prompts/`.

pub mod micro;
pub mod passes;
pub mod prompts;
pub mod swarm;
pub mod value;

use crate::machine::next::Playbook;
use crate::model::loop_file;

/// The playbook that a declaration names.
pub const fn of(name: loop_file::Playbook) -> &'static dyn Playbook {
    match name {
        loop_file::Playbook::Swarm => &swarm::Swarm,
        loop_file::Playbook::Value => &value::Value,
        loop_file::Playbook::Prd | loop_file::Playbook::Micro => &passes::AuthorAndCritic,
    }
}
