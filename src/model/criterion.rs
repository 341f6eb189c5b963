//! (criterion)
