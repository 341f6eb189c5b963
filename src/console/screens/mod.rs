//! Whole screens that stand where there is no run yet.

pub mod ready;
pub mod welcome;
