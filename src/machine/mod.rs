//! The decisions: states, inputs, events, transitions, gates, and the one fold. Pure.
