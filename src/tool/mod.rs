//! What an agent may do: shell, files, search; processes, permissions, sandbox hooks.
//!
//! The way in is [`registry`]: it lists the tools and runs one call to its end. [`process`] runs
//! any command (tools, acceptance checks, residual commands) so that nothing outlives it.
//! [`permission`] holds the rules, [`permit`] says with them whether a call may run.
//!
//! Not here: when a tool is called and what is journalled about it (the engine), and how a model
//! asks for it (the agent).

mod access;
mod call;
mod capture;
mod command;
mod edit;
mod environment;
mod files;
mod inputs;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
pub mod launcher;
pub mod lookup;
pub mod network;
pub mod output;
mod owned;
pub mod permission;
pub mod permit;
mod pipes;
pub mod process;
pub mod reaper;
pub mod registry;
pub mod sandbox;
mod search;
mod shell;
mod spawn;
mod step;
mod supervise;
mod sweep;

pub use access::Access;
pub use call::{Limits, ToolContext, ToolOutcome};
pub use registry::{EffectClass, ToolSpec};
