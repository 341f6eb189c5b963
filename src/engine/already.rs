//! Is the goal met before anything is spent?
//!
//! Role: run the declared checks once, confined like those of a run, before there is a run. Not its role: recording
//! anything: the machine has no way from its first states to EXIT_CONVERGED, and a run that begins measures its own
//! baseline.
//!
//! Invariants: only executed checks say yes: a judged criterion, or a playbook with a way out of its own, is never met
//! here, and a check that is held back is met only with its files. The first red check ends it, so that a loop with work
//! to do does not wait for the rest. What the checks write is thrown away (`aside`).

use std::path::Path;

use crate::model::criterion::Proof;
use crate::model::decimal::Exact;
use crate::model::ids::RunId;
use crate::model::loop_file::{DEFAULT_CHECK_SECONDS, LoopFile};
use crate::model::prd::{self, Prd};
use crate::playbook;
use crate::tool::process::End;
use crate::workspace::document;

use super::aside::Aside;
use super::error::EngineError;
use super::genesis::canonical_workspace;
use super::places::{StateRoot, private};
use super::session::{self, Attendance};
use super::unaccepted;

/// The words for a loop that has nothing to do; `None`: there is work, or nobody can say.
pub async fn met(
    root: &StateRoot,
    workspace: &Path,
    declared: &LoopFile,
    attendance: Attendance,
) -> Result<Option<String>, EngineError> {
    let checks = match checks(declared) {
        Some(checks) if items_pass(workspace, declared) => checks,
        Some(_) | None => return Ok(None),
    };
    let workspace = canonical_workspace(workspace)?;
    // Green by judges that an earlier run changed and nobody accepted is not met: a run judges by the earlier ones.
    unaccepted::settle_killed(root, &workspace)?;
    if !unaccepted::load(root, &workspace)?.is_empty() {
        return Ok(None);
    }
    let marker = RunId::parse(&ulid::Ulid::generate().to_string())
        .ok_or_else(|| EngineError::Internal("no id for the checks before the start".to_owned()))?;
    let in_force = attendance.sandbox(declared)?;
    // On a machine without a run so far there is no place for layers yet.
    std::fs::create_dir_all(root.path())
        .map_err(|e| EngineError::io("cannot create the state directory", root.path(), e))?;
    private(root.path())?;
    let sandbox = session::open_sandbox(root, &workspace, &marker, declared, in_force)?;
    session::hidden_places(declared, &workspace, &sandbox).map_err(|(why, hint)| EngineError::usage(why, hint))?;
    let aside = Aside::open(root, &workspace, &sandbox, marker.as_str())?;
    for Check { argv, seconds, hidden } in &checks {
        let outcome = aside.run(argv, *seconds, hidden.as_deref()).await?;
        if outcome.is_none_or(|outcome| outcome.end != End::Exited(0)) {
            return Ok(None);
        }
    }
    if let Some(argv) = declared.residual.as_ref().and_then(|residual| residual.command.as_ref()) {
        let seconds = declared.residual.as_ref().and_then(|residual| residual.timeout_seconds);
        let outcome = aside.run(argv, seconds.unwrap_or(DEFAULT_CHECK_SECONDS), None).await?;
        if outcome.is_none_or(|outcome| outcome.end != End::Exited(0) || !is_zero(&outcome.stdout.bytes)) {
            return Ok(None);
        }
    }
    let count = checks.len();
    Ok(Some(format!("Already met: {count} of {count} checks are green; nothing to do.")))
}

/// A check, and what is held back for it.
struct Check {
    argv: Vec<String>,
    seconds: u64,
    hidden: Option<String>,
}

/// The checks of a loop whose way out they are.
fn checks(declared: &LoopFile) -> Option<Vec<Check>> {
    let mut checks = Vec::new();
    for criterion in declared.criteria() {
        match criterion.proof {
            Proof::Check { argv, timeout_seconds: seconds } => {
                checks.push(Check { argv, seconds, hidden: criterion.hidden });
            }
            Proof::Items => {}
            Proof::Judged | Proof::ExitGate | Proof::Verified => return None,
        }
    }
    (!checks.is_empty()).then_some(checks)
}

/// Does every item pass already? Without a file of items there is nothing to ask.
fn items_pass(workspace: &Path, declared: &LoopFile) -> bool {
    let Some(file) = playbook::of(declared.playbook).items_file(declared) else { return true };
    let bytes = document::read(workspace, file, prd::MOST_BYTES).ok().flatten();
    let counts = bytes.and_then(|bytes| Prd::read(&bytes).ok()).map(|prd| prd.counts());
    counts.is_some_and(|counts| counts.all > 0 && counts.passing == counts.all)
}

fn is_zero(stdout: &[u8]) -> bool {
    let text = String::from_utf8_lossy(stdout);
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.and_then(|line| Exact::parse(line).ok()).is_some_and(|residual| residual.is_zero())
}

/// Does the start run checks first? Then it is said, for a suite may take its time.
pub fn looks_first(declared: &LoopFile) -> bool {
    checks(declared).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::loop_file::parse;

    #[test]
    fn only_what_is_executed_can_be_met_already() {
        for (yaml, looked_at) in [
            ("acceptance_criteria: [{text: a, check: [x]}]", true),
            ("acceptance_criteria: [{text: a, check: [x]}, judged]", false),
            ("acceptance_criteria: [judged]", false),
            ("playbook: prd\nacceptance_criteria: [{text: a, check: [x]}]", true),
            ("playbook: micro\nacceptance_criteria: [{text: a, check: [x]}]", false),
            ("playbook: value\nacceptance_criteria: [{text: a, check: [x]}]", false),
        ] {
            assert_eq!(looks_first(&parse(yaml, "loop.yaml").unwrap()), looked_at, "{yaml}");
        }
        assert!(is_zero(b"noise\n0\n") && !is_zero(b"0.1\n") && !is_zero(b""));
    }
}
