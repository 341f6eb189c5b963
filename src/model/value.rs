//! The nouns of the value playbook: tasks, verifications, value checks, steps, and the structured tools.
//!
//! Not here: what follows from them (`playbook::value`), and how events become them (`machine::value`).

pub mod guard;
pub mod plan;
pub mod settings;
pub mod step;
pub mod tools;
pub mod verification;
pub mod vrc;

pub use plan::{Task, TaskSource, TaskStatus};
pub use settings::ValueSettings;
pub use step::{Action, Gate, Outcome, VrcMode};
pub use verification::{Failure, Verification, VerificationStatus};
pub use vrc::{Gap, GapSeverity, Recommendation, Vrc};
