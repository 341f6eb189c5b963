//! Our ACP client against an agent made with the official library, and against lines written by hand.

#![allow(clippy::unwrap_used, clippy::panic)]

mod agent;
mod mcp_client;
mod offered;
mod raw;
mod setup;
mod stage;
mod turns;
