//! The engine: does what the machine wants, records what came of it, keeps nothing the journal lacks.
//!
//! [`driver::Driver`] asks the machine what to do and routes it. Every effect works on a `Context`: the `Recorder`, which
//! alone reaches the journal, and the orders and stop signals that may interrupt it. Whoever makes effects has a file of
//! its own: `calls`, `program`, `tools`, `probes`, `people`, `trees`, `git`, `evidence_files`, and those of the playbooks.
//! None of them decides anything. [`session`] creates runs and opens them again.

pub mod already;
pub mod aside;
mod ask;
mod asking;
mod attempt;
pub mod backends;
pub mod by_hand;
mod calls;
mod checks;
pub mod claim;
pub mod command;
mod confine;
mod context;
pub mod control;
pub mod conversation;
pub mod declaration;
mod diff;
mod downstream;
pub mod driver;
mod ends;
mod environment;
pub mod error;
mod evidence_files;
mod excerpt;
pub mod genesis;
mod git;
mod guards;
mod handover;
pub mod host;
pub mod hub;
mod items;
mod iteration;
mod judges;
pub mod keys;
pub mod launch_options;
mod learn;
mod listed;
pub mod network;
mod northstar;
pub mod observer;
pub mod offer;
pub mod offline;
mod opening;
mod orders;
mod people;
pub mod places;
mod probes;
pub mod program;
mod programs_at_start;
mod protect;
pub mod rate;
pub mod recorded;
mod recorder;
pub mod remembered;
pub mod resources;
mod rounds;
pub mod seal;
pub mod secrecy;
pub mod session;
mod setup;
pub mod signals;
pub mod signer;
mod spend;
mod start_files;
mod tools;
mod trees;
mod unaccepted;
mod value;
mod waiting;
pub mod wire;
