//! Is the goal met before anything is spent?
//!
//! Role: run the declared checks once, confined like those of a run, before there is a run. Not its role: recording
//! anything: the machine has no way from its first states to EXIT_CONVERGED, and a run that begins measures its own
//! baseline.
//!
//! Invariants: only executed checks say yes: a judged criterion, or a playbook with a way out of its own, is never met
//! here, and a check that is held back is met only with its files. The first red check ends it, so that a loop with work
//! to do does not wait for the rest; where every item passes nothing is to be worked on, so all red ones are named. What
//! the checks write is thrown away (`aside`).

use std::path::Path;

use crate::model::criterion::Proof;
use crate::model::decimal::Exact;
use crate::model::diagnose::Diagnostic;
use crate::model::ids::RunId;
use crate::model::loop_file::{DEFAULT_CHECK_SECONDS, LoopFile};
use crate::model::prd::{self, Prd};
use crate::model::ready_line;
use crate::model::safe::Safe;
use crate::playbook;
use crate::tool::process::End;
use crate::workspace::document;

use super::aside::Aside;
use super::error::EngineError;
use super::genesis::canonical_workspace;
use super::places::{StateRoot, private};
use super::probes::as_recorded;
use super::session::{self, Attendance};
use super::unaccepted;

/// What was found before the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing is to be done, in words.
    Met(String),
    /// Every item says that it passes, and this speaks against it.
    Red(Vec<String>),
    /// There is work, or nobody can say.
    Work,
}

pub async fn look(
    root: &StateRoot,
    workspace: &Path,
    declared: &LoopFile,
    attendance: Attendance,
) -> Result<Found, EngineError> {
    let Some(mut checks) = checks(declared) else { return Ok(Found::Work) };
    let items = playbook::of(declared.playbook).items_file(declared);
    let mut red = Vec::new();
    if let Some(file) = items {
        let Some(prd) = finished(workspace, file) else { return Ok(Found::Work) };
        red.extend(ready_line::half_done(&prd));
        checks.extend(of_items(&prd, declared));
    }
    let workspace = canonical_workspace(workspace)?;
    // Green by judges that an earlier run changed and nobody accepted is not met: a run judges by the earlier ones.
    unaccepted::settle_killed(root, &workspace)?;
    if !unaccepted::load(root, &workspace)?.is_empty() {
        return Ok(Found::Work);
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
    for Check { of, argv, seconds, hidden } in &checks {
        match (aside.run(argv, *seconds, hidden.as_deref()).await?, items) {
            (Some(outcome), _) if outcome.end == End::Exited(0) => {}
            (_, None) => return Ok(Found::Work),
            // Which of them are red is what has to be known: nothing else tells what is to be done again.
            (outcome, Some(_)) => {
                let how = outcome
                    .map_or_else(|| "it could not be run".to_owned(), |outcome| as_recorded(&outcome.end).describe());
                red.push(format!("{of}: `{}`, {how}", argv.join(" ")));
            }
        }
    }
    if !red.is_empty() {
        return Ok(Found::Red(red));
    }
    if let Some(argv) = declared.residual.as_ref().and_then(|residual| residual.command.as_ref()) {
        let seconds = declared.residual.as_ref().and_then(|residual| residual.timeout_seconds);
        let outcome = aside.run(argv, seconds.unwrap_or(DEFAULT_CHECK_SECONDS), None).await?;
        if outcome.is_none_or(|outcome| outcome.end != End::Exited(0) || !is_zero(&outcome.stdout.bytes)) {
            return Ok(Found::Work);
        }
    }
    let count = checks.len();
    Ok(Found::Met(format!("Already met: {count} of {count} checks are green; nothing to do.")))
}

/// What is told where every item says that it passes and something speaks against it.
pub fn told(declared: &LoopFile, red: &[String]) -> Diagnostic {
    const MOST: usize = 20;
    let file = playbook::of(declared.playbook).items_file(declared).unwrap_or("prd.json");
    let shown: Vec<String> = red.iter().take(MOST).map(|line| Safe::line(line).to_string()).collect();
    let more = red.len().saturating_sub(MOST);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    let message =
        format!("every item says that it passes, but not everything is green:\n  {}{more}", shown.join("\n  "));
    Diagnostic::new(file, &message)
        .with_hint("say of the items that are not done that they do not pass, then run again; or `--anyway`".to_owned())
}

/// A check, whose it is, and what is held back for it.
struct Check {
    of: String,
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
                let of = format!("the project's check {}", criterion.id);
                checks.push(Check { of, argv, seconds, hidden: criterion.hidden });
            }
            Proof::Items => {}
            Proof::Judged | Proof::ExitGate | Proof::Verified => return None,
        }
    }
    (!checks.is_empty()).then_some(checks)
}

/// The file of items, if every one of them passes.
fn finished(workspace: &Path, file: &str) -> Option<Prd> {
    let bytes = document::read(workspace, file, prd::MOST_BYTES).ok().flatten()?;
    let prd = Prd::read(&bytes).ok()?;
    let counts = prd.counts();
    (counts.all > 0 && counts.passing == counts.all).then_some(prd)
}

/// The checks of the items' own.
fn of_items<'a>(prd: &'a Prd, declared: &'a LoopFile) -> impl Iterator<Item = Check> + 'a {
    prd.items().iter().filter_map(|item| {
        let known = declared.prd().items.get(&item.id);
        let argv = known.and_then(|known| known.check.as_ref()).or(item.command.as_ref())?.clone();
        let seconds = known.and_then(|known| known.timeout_seconds).unwrap_or(DEFAULT_CHECK_SECONDS);
        Some(Check { of: format!("{} ({})", item.id, item.title), argv, seconds, hidden: None })
    })
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
