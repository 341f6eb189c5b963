//! Charts: exact values placed on a grid. Floats only place a dot; every number shown is exact text.
//!
//! Not here: what the numbers mean for the run, keys, panes. Invariant: a chart draws inside its area only,
//! at any size, and everything it says can be read without colour.

pub mod forecast;
pub mod gauge;
pub mod glow;
pub mod machine;
pub mod pen;
pub mod residual;
