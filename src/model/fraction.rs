//! (fraction)
