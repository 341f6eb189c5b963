//! What the commands of a run may not touch, and what they wear so that they cannot.
//!
//! Role: the lists of names by who runs a command, and the confinement made of them. Not its role: how a confinement is
//! enforced (`tool::sandbox`), or whether a call is permitted (`tool::permit`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::ids::Role;
use crate::model::learnings;
use crate::tool::permission::{Rules, Ruling};
use crate::tool::permit;
use crate::tool::process::Access;
use crate::tool::sandbox::{Confinement, Overlay};

use super::context::Context;
use super::error::EngineError;
use super::learn;

/// No file tool may write these; the engine owns or judges them.
const PROTECTED: &[&str] = &["AGENTS.md", "NORTHSTAR.md", "evidence", "scratch/STOP", "loop.yaml"];
/// The repository as a whole.
const REPOSITORY: &[&str] = &[".git"];
/// What decides which programs git runs and where it looks.
const GIT_DECIDES: &[&str] = &[
    ".git/config",
    ".git/config.worktree",
    ".git/hooks",
    ".git/info",
    ".git/modules",
    ".git/HEAD",
    ".git/objects/info",
];

type Worn = Result<Option<Arc<Confinement>>, EngineError>;

/// Files that no approval may write either.
pub(super) fn protected() -> Vec<PathBuf> {
    PROTECTED.iter().map(PathBuf::from).collect()
}

/// What no file tool of this role may write.
pub(super) fn protected_from(cx: &Context<'_>, role: Role) -> Vec<PathBuf> {
    let mut protected = protected();
    protected.extend(sealed_from(cx, role));
    protected
}

/// What the sandbox, where it can, keeps from this role's commands, too.
pub(super) fn sealed_from(cx: &Context<'_>, role: Role) -> Vec<PathBuf> {
    let guarded = cx.state().playbook().guarded(cx.state().loop_file(), role);
    let mut sealed: Vec<PathBuf> = guarded.into_iter().map(PathBuf::from).collect();
    sealed.extend(sealed_from_all(cx));
    sealed
}

/// What nothing that runs for a loop may change: AGENTS.md, and the repository that the engine commits to. Where it
/// does not commit, an agent may; but not say what git runs, nor where it looks.
fn sealed_from_all(cx: &Context<'_>) -> Vec<PathBuf> {
    let commits = cx.state().git.facts.as_ref().is_some_and(|facts| facts.branch.is_some());
    let git = if commits { REPOSITORY } else { GIT_DECIDES };
    git.iter().chain(&[learnings::FILE]).map(PathBuf::from).collect()
}

/// What a command of this access wears.
pub(super) fn of_access(cx: &Context<'_>, access: Access) -> Worn {
    put_up(cx.sandbox().for_tool(access))
}

/// What a check wears. It runs code that an agent wrote, so what an agent may not change is sealed from it, too.
pub(super) fn of_check(cx: &Context<'_>) -> Worn {
    hold_learnings(cx)?;
    put_up(cx.sandbox().for_tool_sealing(Access::ReadWrite, &sealed_from_checks(cx)))
}

fn sealed_from_checks(cx: &Context<'_>) -> Vec<PathBuf> {
    let guarded = cx.state().playbook().guarded_from_checks(cx.state().loop_file());
    let mut sealed: Vec<PathBuf> = guarded.into_iter().map(PathBuf::from).collect();
    sealed.extend(sealed_from_all(cx));
    sealed
}

/// The same for a check that sees the workspace through an overlay. `apart`: the only other folder that it may write.
pub(super) fn of_check_through(cx: &Context<'_>, overlay: &Overlay, apart: Option<&Path>) -> Worn {
    hold_learnings(cx)?;
    put_up(cx.sandbox().for_check(&sealed_from_checks(cx), overlay, apart))
}

/// Checks run before agents do, too: then there is nothing yet that could forge.
fn hold_learnings(cx: &Context<'_>) -> Result<(), EngineError> {
    if cx.state().current.is_some() { learn::hold(cx) } else { Ok(()) }
}

/// What the commands of an agent wear.
pub(super) fn of_role(cx: &Context<'_>, role: Role) -> Worn {
    learn::hold(cx)?;
    put_up(cx.sandbox().for_tool_sealing(permit::access_of(role), &sealed_from(cx, role)))
}

pub(super) fn put_up<T>(confinement: Result<T, String>) -> Result<T, EngineError> {
    confinement.map_err(|why| EngineError::Internal(format!("the sandbox cannot be set up: {why}")))
}

/// May this command be run on an agent's word, with nobody asked? The error says why not.
pub(super) fn permitted(rules: &Rules, argv: &[String]) -> Result<(), String> {
    match rules.decide("bash", &serde_json::json!({"command": quoted(argv)})) {
        Ruling::Allowed { .. } => Ok(()),
        Ruling::Denied { rule } => Err(format!("not permitted: deny {rule}")),
        Ruling::Ask { rule } => Err(format!("not permitted without a person: ask {rule}")),
    }
}

/// A command as a shell would be given it, each word one word.
fn quoted(argv: &[String]) -> String {
    let plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c));
    let quote = |word: &String| {
        if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    argv.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words_when_a_command_is_read_by_the_rules() {
        let argv = ["sh", "-c", "rm -rf it's; x", ""].map(str::to_owned);
        assert_eq!(quoted(&argv), r"sh -c 'rm -rf it'\''s; x' ''");
    }
}
