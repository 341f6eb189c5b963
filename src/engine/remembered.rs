//! Rules that an operator had remembered for a workspace: "always allow this here".
//!
//! They lie outside of the workspace, where no agent reaches, and each allows exactly one call. Only an operator's
//! answer adds one. A run takes them over when it begins and never looks again, so that `verify` sees what it saw.
//!
//! Invariants: the file is replaced whole; its size, its rules and their lengths are bounded; a critical call is
//! never in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::journal;
use crate::machine::event::{DecisionAnswered, Event, OperatorEvent};
use crate::machine::run::RunState;
use crate::model::decision::{Answer, Request};
use crate::model::loop_file::PermissionsDecl;
use crate::tool::permission::{self, Rules};

use super::error::EngineError;
use super::places::StateRoot;

pub const MAX_RULES: usize = 500;
/// The longest rule.
const MAX_RULE: usize = 4 * 1024;
/// All rules together: they stand in the first event of every run.
const MAX_ALL: usize = 256 * 1024;
/// The file: YAML escapes may make a rule longer.
const MAX_FILE: u64 = 4 << 20;

pub fn path(root: &StateRoot, workspace: &Path) -> PathBuf {
    root.workspace(workspace).join("rules.yaml")
}

/// The rules, oldest first.
pub fn load(root: &StateRoot, workspace: &Path) -> Result<Vec<String>, EngineError> {
    let path = path(root, workspace);
    let unusable = |why: String| {
        EngineError::usage(format!("{}: {why}", path.display()), "fix the file, or remove it to be asked again")
    };
    let size = match fs::metadata(&path) {
        Ok(meta) => meta.len(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(EngineError::io("cannot read the remembered rules", &path, e)),
    };
    if size > MAX_FILE {
        return Err(unusable(format!("{size} bytes are too many")));
    }
    let text = fs::read_to_string(&path).map_err(|e| EngineError::io("cannot read the remembered rules", &path, e))?;
    let rules: Vec<String> = serde_yaml::from_str(&text).map_err(|e| unusable(e.to_string()))?;
    check(&rules).map_err(unusable)?;
    Ok(rules)
}

fn check(rules: &[String]) -> Result<(), String> {
    let all: usize = rules.iter().map(String::len).sum();
    if rules.len() > MAX_RULES || all > MAX_ALL || rules.iter().any(|rule| rule.len() > MAX_RULE) {
        return Err(format!("at most {MAX_RULES} rules of {MAX_RULE} bytes, {MAX_ALL} bytes in all"));
    }
    Rules::of(&PermissionsDecl::default(), rules).map(|_| ()).map_err(|e| e.to_string())
}

fn save(root: &StateRoot, workspace: &Path, rules: &[String]) -> Result<(), EngineError> {
    let path = path(root, workspace);
    let text = serde_yaml::to_string(rules).map_err(|e| EngineError::Internal(e.to_string()))?;
    let (folder, name) = (path.parent().unwrap_or(Path::new(".")), "rules.yaml");
    fs::create_dir_all(folder).map_err(|e| EngineError::io("cannot write the remembered rules", folder, e))?;
    Ok(journal::write_whole(folder, name, text.as_bytes())?)
}

/// The rule that an answer wants remembered; the error says why it covers this run only.
fn wanted(state: &RunState, answered: &DecisionAnswered) -> Option<Result<String, String>> {
    if answered.answer != Answer::AllowAlways {
        return None;
    }
    let decision = state.operator.decision(answered.id)?;
    let Request::Permission { tool, command, rule, .. } = &decision.request else { return None };
    if decision.request.host().is_some() {
        return Some(Err("for this run: list the host under `sandbox.network` to keep it".to_owned()));
    }
    if permission::is_critical(rule) {
        return Some(Err("allowed this once: a critical call is asked about every time".to_owned()));
    }
    let exact = permission::exact_rule(tool, command);
    Some(
        exact
            .filter(|rule| rule.len() <= MAX_RULE)
            .ok_or_else(|| format!("for this run: a call of {} bytes is not kept for later ones", command.len())),
    )
}

/// Keeps what an operator's answer allows for good. Says where, or why not; `None` if nothing was to be kept.
/// The answer stands whatever happens here.
pub fn keep(root: &StateRoot, workspace: &Path, state: &RunState, event: &Event) -> Option<String> {
    let Event::Operator(OperatorEvent::DecisionAnswered(answered)) = event else { return None };
    let rule = match wanted(state, answered)? {
        Ok(rule) => rule,
        Err(why) => return Some(why),
    };
    Some(match add(root, workspace, rule) {
        Ok(path) => format!("kept in {}; `nightloop rules` shows it", path.display()),
        Err(error) => format!("for this run: it could not be kept ({error})"),
    })
}

fn add(root: &StateRoot, workspace: &Path, rule: String) -> Result<PathBuf, EngineError> {
    let mut rules = load(root, workspace)?;
    if !rules.contains(&rule) {
        rules.push(rule);
        check(&rules).map_err(|why| EngineError::usage(why, "`nightloop rules --forget N` makes room"))?;
        save(root, workspace, &rules)?;
    }
    Ok(path(root, workspace))
}

/// Forgets the rule with this number, counted from 1. Returns it.
pub fn forget(root: &StateRoot, workspace: &Path, number: usize) -> Result<String, EngineError> {
    let mut rules = load(root, workspace)?;
    let known = rules.len();
    let index = number.checked_sub(1).filter(|index| *index < known).ok_or_else(|| {
        EngineError::usage(format!("there is no rule {number}: {known} are remembered"), "`nightloop rules` lists them")
    })?;
    let forgotten = rules.remove(index);
    save(root, workspace, &rules)?;
    Ok(forgotten)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_kept_forgotten_and_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let (root, workspace) = (StateRoot::at(dir.path().join("state")), dir.path().join("work"));
        assert_eq!(load(&root, &workspace).unwrap(), Vec::<String>::new());
        let odd = "bash(=git commit -m \"a: b # c\n  - d\n\")".to_owned();
        add(&root, &workspace, odd.clone()).unwrap();
        add(&root, &workspace, "bash(=make)".to_owned()).unwrap();
        add(&root, &workspace, odd.clone()).unwrap();
        assert_eq!(load(&root, &workspace).unwrap(), [odd.clone(), "bash(=make)".to_owned()]);
        assert!(forget(&root, &workspace, 0).is_err() && forget(&root, &workspace, 3).is_err());
        assert_eq!(forget(&root, &workspace, 1).unwrap(), odd);
        assert_eq!(load(&root, &workspace).unwrap(), ["bash(=make)"]);
        for number in 1..MAX_RULES {
            add(&root, &workspace, format!("bash(=make {number})")).unwrap();
        }
        assert!(add(&root, &workspace, "bash(=one more)".to_owned()).is_err());
        for text in ["- bash(git *)\n", "- nonsense(=x)\n", "{}\n", "- [\n"] {
            fs::write(path(&root, &workspace), text).unwrap();
            assert!(load(&root, &workspace).is_err(), "{text}");
        }
    }
}
