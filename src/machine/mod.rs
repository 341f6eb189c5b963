//! The decisions: states, inputs, events, transitions, gates, and the one fold. Pure.
//!
//! Three functions carry everything:
//!
//! * [`next::next`] tells the driver what to do in a state. It depends on the state alone, so a resumed
//!   run continues at the exact step without knowing that it was resumed.
//! * [`step::step`] turns the result (an [`step::Input`]) into events, or into a rejection.
//! * [`fold::apply`] folds an event into [`run::RunState`]. The engine, `verify`, and every reader use it.

pub mod alignment;
pub mod backing;
pub mod batch;
pub mod call;
pub mod claim;
pub mod compose;
pub mod document;
pub mod ends;
pub mod entry;
pub mod event;
pub mod failure;
mod family;
pub mod fold;
pub mod forbidden;
pub mod gate;
pub mod guards;
pub mod halt;
pub mod handover;
pub mod integrity;
pub mod iteration;
pub mod ledger;
pub mod legal;
pub mod measure;
pub mod network;
pub mod next;
pub mod open;
pub mod operator;
pub mod phuc;
pub mod playbook;
pub mod progress;
pub mod replay;
pub mod repository;
pub mod run;
pub mod state;
pub mod step;
#[cfg(test)]
pub mod testing;
pub mod todo;
pub mod words;
