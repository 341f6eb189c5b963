//! (capsule)
