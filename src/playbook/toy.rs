//! placeholder
use crate::machine::iteration::Iteration;
use crate::machine::playbook::Playbook;
use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::loop_file;
pub struct Toy;
impl Playbook for Toy {
    fn name(&self) -> loop_file::Playbook {
        loop_file::Playbook::Toy
    }
    fn work(&self, _run: &RunState, _iteration: &Iteration) -> Option<Todo> {
        None
    }
}
