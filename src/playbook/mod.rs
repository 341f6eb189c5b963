//! What an iteration does. Decisions here are pure; texts live in `prompts/`.

pub mod prompts;
pub mod swarm;
