//! (decimal)
