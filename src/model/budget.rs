//! (budget)
