//! placeholder
pub fn names() -> Vec<String> { Vec::new() }
