//! A workspace with a scripted model, and the real binary run in it.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod case;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Nothing here takes this long; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Polls until `condition` holds; fails with its description if it never does.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A temporary workspace with a state directory of its own.
pub struct Bench {
    pub dir: TempDir,
    pub workspace: PathBuf,
    pub state: PathBuf,
}

/// How a command ended.
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ended {
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

impl Bench {
    /// An empty workspace.
    pub fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    /// An empty workspace in memory where there is such a place: for many runs whose disk does not matter.
    pub fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self::at(dir.unwrap())
    }

    fn at(dir: TempDir) -> Self {
        let (workspace, state) = (dir.path().join("work"), dir.path().join("state"));
        fs::create_dir_all(&workspace).unwrap();
        Self { workspace: workspace.canonicalize().unwrap(), state, dir }
    }

    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.workspace.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// The real binary, in this workspace, with a state directory of its own and a disk that is never full.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nightloop"));
        command
            .args(arguments)
            .current_dir(&self.workspace)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("NIGHTLOOP_STATE_DIR", &self.state)
            .env("NIGHTLOOP_TEST_DISK_PERCENT", "10");
        command
    }

    pub fn nightloop(&self, arguments: &[&str]) -> Ended {
        self.command(arguments).output().unwrap().into()
    }

    /// A rendered evidence file as JSON.
    #[track_caller]
    pub fn evidence(&self, name: &str) -> Value {
        let path = self.workspace.join("evidence/loop").join(name);
        let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        serde_json::from_slice(&bytes).unwrap()
    }

    /// The directory of the only run.
    #[track_caller]
    pub fn run_dir(&self) -> PathBuf {
        let mut runs: Vec<PathBuf> =
            fs::read_dir(self.state.join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.pop().unwrap()
    }

    /// Takes the seal of the only run away, with its signature.
    pub fn unseal(&self) {
        for name in ["seal.json", "seal.dsse.json"] {
            let _ = fs::remove_file(self.run_dir().join(name));
        }
    }

    /// The records of the only run.
    fn records(&self) -> Vec<Value> {
        let mut segments: Vec<PathBuf> =
            fs::read_dir(self.run_dir().join("journal")).unwrap().map(|e| e.unwrap().path()).collect();
        segments.retain(|path| path.extension().is_some_and(|e| e == "jsonl"));
        segments.sort();
        let texts = segments.iter().map(|segment| fs::read_to_string(segment).unwrap());
        texts
            .flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>())
            .collect()
    }

    /// All events of the only run: (type, data).
    pub fn events(&self) -> Vec<(String, Value)> {
        let records = self.records().into_iter();
        records.map(|mut record| (record["type"].as_str().unwrap().to_owned(), record["data"].take())).collect()
    }

    /// Every event with its time.
    pub fn stamped(&self) -> Vec<(String, String)> {
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        self.records().iter().map(|record| (word(&record["type"]), word(&record["ts"]))).collect()
    }
}

/// Copies a directory tree.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
