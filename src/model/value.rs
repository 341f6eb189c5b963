//! The nouns of the value playbook: tasks, verifications, value checks, steps, and the structured tools.
//!
//! Not here: what follows from them (`playbook::value`), and how events become them (`playbook::value::fold`).

/// What is rendered from the journal into the workspace: for people to read, and for no agent to write.
pub const VIEWS: [&str; 4] = ["IMPLEMENTATION_PLAN.md", "VALUE_CHECKLIST.md", "DELIVERY_REPORT.md", ".loop_state.json"];

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
pub use verification::{Dispute, Failure, Flaky, Settled, Verification, VerificationStatus};
pub use vrc::{Gap, GapSeverity, Recommendation, Vrc};
