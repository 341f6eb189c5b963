//! What the pass-gate looked at and what it found, as the journal and the evidence keep it.

use serde::{Deserialize, Serialize};

use super::rung::Rung;
use super::stop::{ForbiddenState, StopReason};

/// One thing the gate looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateCheck {
    pub name: String,
    /// The lowest rung that needs it; `None`: needed at every rung.
    pub rung: Option<Rung>,
    pub ok: bool,
    pub detail: String,
    /// Why the run must stop; `None` while this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forbidden_state: Option<ForbiddenState>,
}

impl GateCheck {
    /// Names the forbidden state that a failure of this check means.
    pub fn forbids(self, forbidden: ForbiddenState) -> Self {
        Self { forbidden_state: (!self.ok).then_some(forbidden), ..self }
    }
}

/// The gate's verdict, with everything it looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateReport {
    pub passed: bool,
    pub rung_achieved: Option<Rung>,
    pub checks: Vec<GateCheck>,
}

impl GateReport {
    /// The first failure decides the stop reason.
    pub fn failure(&self) -> Option<&GateCheck> {
        self.checks.iter().find(|check| !check.ok)
    }
}

pub fn check(
    name: &str,
    rung: Option<Rung>,
    ok: bool,
    detail: impl Into<String>,
    stop_reason: StopReason,
) -> GateCheck {
    let stop_reason = (!ok).then_some(stop_reason);
    GateCheck { name: name.to_owned(), rung, ok, detail: detail.into(), stop_reason, forbidden_state: None }
}
