//! (northstar)
