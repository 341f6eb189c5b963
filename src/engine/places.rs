//! Where things are: the state root outside the workspace, the runs in it, and the operator's own files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::journal::{Anchors, RunDir, RunLock};
use crate::model::diagnose;
use crate::model::digest::Digest;
use crate::model::ids::RunId;
use crate::model::purpose::Purpose;
use crate::playbook::prompts::{self, Prompts};

use super::error::EngineError;
use super::genesis;

/// The operator's own files: `NIGHTLOOP_CONFIG_DIR`, else `$XDG_CONFIG_HOME/nightloop`.
pub fn config_dir() -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os("NIGHTLOOP_CONFIG_DIR").filter(|dir| !dir.is_empty()) {
        return Some(PathBuf::from(dir));
    }
    use etcetera::BaseStrategy;
    etcetera::choose_base_strategy().ok().map(|base| base.config_dir().join("nightloop"))
}

/// Names of variables that an operator may call secret.
const MAX_SECRET_VARIABLES: usize = 100;
const MAX_CONFIG_BYTES: u64 = 256 * 1024;

/// The variables whose values config.yaml calls secret: `secrets: { env: [NAME, …] }`.
pub fn secret_variables() -> Vec<String> {
    let config = config();
    let names = config.get("secrets").and_then(|secrets| secrets.get("env")).and_then(|env| env.as_sequence());
    let names = names.into_iter().flatten().filter_map(|name| name.as_str());
    names.take(MAX_SECRET_VARIABLES).map(str::to_owned).collect()
}

/// The key that config.yaml wants runs to be signed with: `signing: { key: FILE }`.
pub fn signing_key() -> Option<PathBuf> {
    let config = config();
    config.get("signing")?.get("key")?.as_str().map(super::keys::expand)
}

/// config.yaml, as far as it can be read.
fn config() -> serde_yaml::Value {
    let Some(path) = config_dir().map(|dir| dir.join("config.yaml")) else { return serde_yaml::Value::default() };
    let small = fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_CONFIG_BYTES);
    let text = if small { fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
    serde_yaml::from_str(&text).unwrap_or_default()
}

/// The prompts of this operator: the shipped ones, with those in `prompts/<role>.md` in their place.
pub fn prompts() -> Result<Prompts, EngineError> {
    match config_dir() {
        Some(dir) => prompts_in(&dir.join("prompts")),
        None => Ok(Prompts::default()),
    }
}

fn prompts_in(dir: &Path) -> Result<Prompts, EngineError> {
    const HINT: &str = "see prompts/ in the source for the format; remove the file to use the shipped prompt";
    let mut taken = Prompts::default();
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(taken),
        Err(error) => return Err(EngineError::io("cannot read your prompts", dir, error)),
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    for path in files {
        let wrong = |why: &str| EngineError::usage(format!("{}: {why}", path.display()), HINT);
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(purpose) = Purpose::ALL.into_iter().find(|purpose| purpose.name() == name) else {
            let names = Purpose::ALL.map(Purpose::name);
            let near = diagnose::nearest(&name, names).unwrap_or("scout");
            return Err(wrong(&format!("no prompt is called `{name}`; is `{near}.md` meant?")));
        };
        let meta = fs::metadata(&path).map_err(|e| wrong(&e.to_string()))?;
        if !meta.is_file() || meta.len() > prompts::MAX_BYTES as u64 {
            return Err(wrong(&format!("a prompt is a file of at most {} bytes", prompts::MAX_BYTES)));
        }
        let text = fs::read_to_string(&path).map_err(|e| wrong(&e.to_string()))?;
        taken.replace(purpose, &text).map_err(|error| wrong(&error.why))?;
    }
    Ok(taken)
}

/// The directory that holds all runs of this user.
#[derive(Debug, Clone)]
pub struct StateRoot(PathBuf);

impl StateRoot {
    /// `NIGHTLOOP_STATE_DIR`, else `$XDG_STATE_HOME/nightloop`.
    pub fn locate() -> Result<Self, EngineError> {
        if let Some(dir) = std::env::var_os("NIGHTLOOP_STATE_DIR").filter(|dir| !dir.is_empty()) {
            let dir = PathBuf::from(dir);
            let absolute = std::path::absolute(&dir)
                .map_err(|e| EngineError::io("cannot resolve the state directory", &dir, e))?;
            return Ok(Self(absolute));
        }
        use etcetera::BaseStrategy;
        let base = etcetera::choose_base_strategy()
            .map_err(|e| EngineError::usage(format!("no home directory: {e}"), "set NIGHTLOOP_STATE_DIR"))?;
        let dir = base.state_dir().unwrap_or_else(|| base.data_dir());
        Ok(Self(dir.join("nightloop")))
    }

    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn anchors(&self) -> PathBuf {
        self.0.join("anchors.log")
    }

    pub fn run(&self, run: &RunId) -> PathBuf {
        self.0.join("runs").join(run.as_str())
    }

    /// All runs that began, oldest first: their ids sort by time.
    pub fn runs(&self) -> Vec<RunId> {
        let mut runs = self.listed();
        runs.retain(|run| !self.never_began(run));
        runs
    }

    fn listed(&self) -> Vec<RunId> {
        let Ok(entries) = fs::read_dir(self.0.join("runs")) else { return Vec::new() };
        let mut runs: Vec<RunId> =
            entries.flatten().filter_map(|entry| RunId::parse(entry.file_name().to_str()?)).collect();
        runs.sort();
        runs
    }

    /// Did its engine die before the first event, so that there is nothing to show or to go on with?
    /// A run that an anchor names has begun, whatever is left of it.
    fn never_began(&self, run: &RunId) -> bool {
        RunDir::never_began(&self.run(run))
            && Anchors::in_root(&self.0).of_run(run.as_str()).is_ok_and(|said| said.latest().is_none())
    }

    /// Takes away what engines that died before their first event left behind.
    pub fn clear_unborn(&self) {
        const DOOMED: &str = ".gone-";
        for run in self.listed().into_iter().filter(|run| self.never_began(run)) {
            let path = self.run(&run);
            // Locked is somebody who begins right now.
            let Ok(_lock) = RunLock::acquire(&path) else { continue };
            // At once, so that nobody begins in a directory that is half gone.
            if self.never_began(&run) {
                let _ = fs::rename(&path, path.with_file_name(format!("{DOOMED}{run}")));
            }
        }
        let entries = fs::read_dir(self.0.join("runs")).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(DOOMED)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }

    /// The directory that remembers which run a workspace has, and holds its lock.
    pub fn workspace(&self, workspace: &Path) -> PathBuf {
        let key = Digest::of(workspace.as_os_str().as_encoded_bytes()).short();
        self.0.join("workspaces").join(key)
    }

    /// The latest run of a workspace.
    pub fn run_of(&self, workspace: &Path) -> Option<RunId> {
        let text = fs::read_to_string(self.workspace(workspace).join("run")).ok()?;
        let named = RunId::parse(text.trim())?;
        if self.run(&named).is_dir() && !self.never_began(&named) {
            return Some(named);
        }
        // It died before it began: the one before it is the latest.
        let works_here = |run: &RunId| {
            let found = RunDir::open(&self.run(run)).ok().and_then(|dir| genesis::workspace_of(&dir).ok());
            found.is_some_and(|found| found == workspace)
        };
        self.runs().into_iter().rev().find(works_here)
    }
}

/// Prompts and tool output may hold what is nobody else's business.
pub(super) fn private(path: &Path) -> Result<(), EngineError> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
        .map_err(|e| EngineError::io("cannot protect the state directory", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_of_the_operator_is_found_and_a_wrong_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let prompts = dir.path().join("prompts");
        assert_eq!(prompts_in(&prompts).unwrap(), Prompts::default());
        fs::create_dir(&prompts).unwrap();
        fs::write(prompts.join("notes.txt"), "not a prompt").unwrap();
        fs::write(prompts.join("scout.md"), "---\nvariables: []\n---\nLook.").unwrap();
        let found = prompts_in(&prompts).unwrap();
        assert_eq!(found.render(Purpose::Scout, &[]).unwrap(), "Look.");
        for (name, text, expected) in [
            ("solver.md", "---\nvariables: [x]\n---\n{{ x }}", "solver.md: there is no variable `x`"),
            ("sovler.md", "---\nvariables: []\n---\nx", "no prompt is called `sovler`; is `solver.md` meant?"),
            ("skeptic.md", &"x".repeat(20_000), "a prompt is a file of at most 16384 bytes"),
        ] {
            fs::write(prompts.join(name), text).unwrap();
            let error = prompts_in(&prompts).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("hint:"), "{error}");
            fs::remove_file(prompts.join(name)).unwrap();
        }
    }
}
