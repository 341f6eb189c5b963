//! The first message of a call: what this purpose has to know, as labelled sections. No prose of another agent.

use crate::machine::run::RunState;
use crate::model::digest::Digest;
use crate::model::purpose::Purpose;

/// Where stored texts come from; a missing one is empty.
pub trait Texts {
    /// The text of a blob, cut in the middle to `limit` bytes.
    fn text(&self, digest: &Digest, limit: usize) -> String;
}

/// The message, without the capsule.
pub fn message(_run: &RunState, _purpose: Purpose, _subject: Option<&str>, _texts: &dyn Texts) -> String {
    String::new()
}
