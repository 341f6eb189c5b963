//! The effects of the value playbook: documents, scripts, services, preflight, the repository.

use crate::machine::next::Effect;
use crate::model::purpose::Purpose;

use super::driver::Driver;
use super::error::EngineError;

impl Driver<'_> {
    /// Makes an effect that a step asked for, and records what came of it.
    pub(super) async fn make(&mut self, effect: Effect) -> Result<(), EngineError> {
        match effect {
            Effect::Git(operation) => self.git(operation).await,
            Effect::Undo(iteration) => self.undo(iteration).await,
            Effect::ReadDocuments
            | Effect::RunProbes(_)
            | Effect::FindVerifications
            | Effect::CheckServices
            | Effect::CheckPreflight => Err(EngineError::Internal(format!("{effect:?} cannot be made yet"))),
        }
    }

    /// The first message of a call of this playbook: the capsule, then its brief.
    pub(super) fn value_message(&self, _purpose: Purpose, _subject: Option<&str>) -> Result<String, EngineError> {
        Err(EngineError::Internal("no brief yet".to_owned()))
    }
}
