//! At which moments of a run the file of items is read.

use serde::{Deserialize, Serialize};

/// When the file of items was read, and so who may have changed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadWhen {
    /// Before everything.
    Start,
    /// Between two iterations: what is different was changed by people, and holds.
    Between,
    /// After an agent worked: what it says of passing is not believed.
    AfterWork,
    /// The believed text is back in its place.
    Restored,
}
