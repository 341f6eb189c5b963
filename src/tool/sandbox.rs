//! Says how strongly commands are confined on this machine. First form: it only tells the truth.
//!
//! Not an enforcement: there is none yet beyond what `process` does for every command. Invariant:
//! never names a stronger level than what is really applied.

/// The level that applies to commands, for the journal and the operator.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SandboxLevel {
    pub name: String,
    pub detail: String,
}

/// The level in force.
pub fn detect() -> SandboxLevel {
    SandboxLevel {
        name: "none".to_owned(),
        detail: "processes run with your own rights; process groups, environment allow-list and limits only".to_owned(),
    }
}

impl std::fmt::Display for SandboxLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.detail)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn claims_nothing() {
        assert!(super::detect().to_string().starts_with("none: processes run with your own rights;"));
    }
}
