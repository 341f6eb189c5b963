//! (verify)
