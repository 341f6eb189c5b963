//! Real repositories.
