//! The driver: performs effects, feeds results back as inputs, keeps nothing the journal lacks.
//!
//! [`driver::Driver`] asks the machine what to do, does it, and records the result. [`session`] opens and
//! creates runs. Effects live in files of their own; none of them decides anything.

mod agents;
mod ask;
mod asking;
pub mod backends;
pub mod claim;
pub mod command;
pub mod control;
pub mod conversation;
mod diff;
pub mod driver;
pub mod error;
mod finish;
mod git;
pub mod host;
pub mod hub;
mod items;
pub mod keys;
mod learn;
pub mod means;
pub mod observer;
pub mod offer;
pub mod offline;
mod people;
pub mod places;
mod probes;
pub mod program;
mod protect;
pub mod rate;
pub mod remembered;
pub mod resources;
pub mod secrecy;
pub mod session;
pub mod signals;
pub mod signer;
mod spend;
mod tools;
mod value;
mod waiting;
pub mod wire;
mod workspace;
