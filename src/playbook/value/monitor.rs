//! The process monitor: metrics and triggers, from the folded run alone.
