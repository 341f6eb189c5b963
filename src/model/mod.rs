//! The nouns. No IO, no clock, no randomness, no async.

pub mod act;
pub mod base64;
pub mod budget;
pub mod canonical;
pub mod capsule;
pub mod certificate;
pub mod criterion;
pub mod decimal;
pub mod decision;
pub mod diagnose;
pub mod digest;
pub mod fraction;
pub mod glow;
pub mod ids;
pub mod lane;
pub mod learnings;
pub mod loop_file;
pub mod northstar;
pub mod prd;
pub mod reply;
pub mod report;
pub mod rung;
pub mod safe;
pub mod secret;
pub mod self_running;
pub mod stop;
