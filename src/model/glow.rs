//! (glow)
