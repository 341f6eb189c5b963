//! A file of the evidence as bytes, before anybody writes it.

/// One rendered file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Relative to the workspace.
    pub path: String,
    pub bytes: Vec<u8>,
    pub role: &'static str,
    pub iteration: Option<u32>,
}
