//! What an iteration does. Decisions here are pure; texts live in `prompts/`.
