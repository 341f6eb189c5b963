//! nightloop: an engine and console for agent loops that stop on proof.
//!
//! The tree reads from pure to impure, and dependencies point one way:
//!
//! ```text
//! model <- machine <- { journal, playbook, agent, tool } <- evidence <- engine <- console <- cli
//! ```
//!
//! * [`model`] the nouns: exact decimals, criteria, certificates, budgets, learnings.
//! * [`machine`] the decisions: states, inputs, events, gates, and the one fold.
//! * [`journal`] the truth on disk: a hash-chained, append-only record of events.
//! * [`playbook`] what an iteration does.
//! * [`workspace`] the one door: all that we ourselves read and write where agents work.
//! * [`agent`] how a model is called. [`tool`] what a model may do.
//! * [`evidence`] files rendered from the journal, and `verify`.
//! * [`engine`] the driver that performs effects and feeds results back.
//! * [`console`] the operator's screen over an event stream.
//! * [`cli`] one file per command.

pub mod agent;
pub mod cli;
pub mod console;
pub mod engine;
pub mod evidence;
pub mod journal;
pub mod machine;
pub mod model;
pub mod playbook;
pub mod tool;
pub mod workspace;
