//! (canonical)
