//! Workspaces, polls and comparisons that the suites share.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub use crate::support::wait_until;
use crate::support::{Bench, Ended};

const LOOP: &str = include_str!("fixture/loop.yaml");
const SCRIPT: &str = include_str!("fixture/rehearsal.yaml");
const NORTHSTAR: &str = include_str!("fixture/NORTHSTAR.md");
const CHECK: &str = include_str!("fixture/check.sh");

/// Three iterations to EXACT. The log of effects is ignored by git, so that it is no artifact.
pub fn small() -> Bench {
    with_script(SCRIPT)
}

/// One iteration to EXACT.
pub fn tiny() -> Bench {
    with_script(&single_iteration("true"))
}

/// The declaration of both, for tests that change it.
pub fn loop_yaml() -> String {
    LOOP.to_owned()
}

/// In memory where there is such a place: a killed process loses nothing that a disk would keep, and
/// thousands of syncs take no time.
fn bench() -> Bench {
    let memory = tempfile::Builder::new().prefix("nightloop-").tempdir_in("/dev/shm");
    let Ok(dir) = memory else { return Bench::new() };
    let (workspace, state) = (dir.path().join("work"), dir.path().join("state"));
    fs::create_dir_all(&workspace).unwrap();
    Bench { workspace: workspace.canonicalize().unwrap(), state, dir }
}

pub fn with_script(script: &str) -> Bench {
    bench()
        .file("loop.yaml", LOOP)
        .file("NORTHSTAR.md", NORTHSTAR)
        .file("check.sh", CHECK)
        .file("rehearsal.yaml", script)
        .file(".gitignore", "effects.log\n")
}

/// A script whose solver runs `command` first and then does everything at once.
pub fn single_iteration(command: &str) -> String {
    single_iteration_with(command, 0)
}

/// The same, with a model that thinks for `delay_ms` before the solver's report.
pub fn single_iteration_with(command: &str, delay_ms: u64) -> String {
    let command = serde_json::to_string(command).unwrap();
    format!(
        r#"rehearsal: 1
steps:
  - role: scout
    turns:
      - calls:
          - {{ tool: submit_scout_report, input: {{ plan: ["Write both."], suspect_files_ranked: [one.txt] }} }}
  - role: solver
    turns:
      - calls:
          - {{ tool: bash, input: {{ command: {command} }} }}
      - calls:
          - {{ tool: write_file, input: {{ path: one.txt, content: "one\n" }} }}
          - {{ tool: write_file, input: {{ path: two.txt, content: "two\n" }} }}
      - delay_ms: {delay_ms}
        calls:
          - tool: submit_solver_report
            input: {{ intent: "Write both.", actions: ["Wrote both files."], files_touched: [one.txt, two.txt] }}
  - role: skeptic
    turns:
      - calls:
          - tool: submit_skeptic_report
            input:
              status: PASS
              succeeded: [{{ lane: A, text: "Both are there.", artifact: one.txt }}]
              failed: []
              open_questions: []
"#
    )
}

/// Takes cases from a list on two threads; all failures are told at the end.
#[track_caller]
pub fn for_each_case<T: Sync>(cases: &[T], check: impl Fn(&T) -> Result<(), String> + Sync) {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                    if let Err(failure) = check(case) {
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    let told = failures.len().min(12);
    assert!(
        failures.is_empty(),
        "{} of {} cases failed:\n{}",
        failures.len(),
        cases.len(),
        failures[..told].join("\n")
    );
}

/// Like `assert!`, for a case in a list.
pub fn check(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

pub fn thorough() -> bool {
    std::env::var_os("NIGHTLOOP_THOROUGH").is_some()
}

pub fn with_env(mut command: Command, variables: &[(&str, &str)]) -> Command {
    command.envs(variables.iter().copied());
    command
}

pub fn run_with(bench: &Bench, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    with_env(bench.command(arguments), variables).output().unwrap().into()
}

/// A running nightloop that is killed when the test forgets it.
pub struct Running(pub Child);

impl Running {
    pub fn start(mut command: Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    pub fn kill9(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits for the end and returns exit code and stderr.
    pub fn end(mut self) -> (i32, String) {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.0.stderr.take().unwrap(), &mut text).unwrap();
        let status = self.0.wait().unwrap();
        (status.code().unwrap_or(-1), text)
    }

    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The run directories of a state directory, oldest first.
pub fn run_dirs(bench: &Bench) -> Vec<PathBuf> {
    let entries = fs::read_dir(bench.state.join("runs"));
    let mut runs: Vec<PathBuf> = entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    runs.sort();
    runs
}

pub fn run_id(bench: &Bench) -> String {
    bench.run_dir().file_name().unwrap().to_str().unwrap().to_owned()
}

/// What a branch of the run is named after.
pub fn short_name(bench: &Bench) -> String {
    let run = run_id(bench).to_lowercase();
    run[run.len() - 8..].to_owned()
}

/// The journal of the newest run as text; empty while there is none.
pub fn journal_text(bench: &Bench) -> String {
    let Some(run) = run_dirs(bench).pop() else { return String::new() };
    let bytes = fs::read(run.join("journal/00000001.jsonl")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whole lines in the journal of the newest run.
pub fn journal_lines(bench: &Bench) -> usize {
    journal_text(bench).matches('\n').count()
}

/// Has an event of this kind been written?
pub fn has_event(bench: &Bench, kind: &str) -> bool {
    journal_text(bench).contains(&format!("\"type\":\"{kind}\""))
}

/// Is the tool `name` announced and running?
pub fn tool_is_running(bench: &Bench, name: &str) -> bool {
    let text = journal_text(bench);
    let last = text.lines().rfind(|line| line.contains("\"type\":\"tool."));
    last.is_some_and(|line| {
        line.contains("\"type\":\"tool.intended\"") && line.contains(&format!("\"name\":\"{name}\""))
    })
}

/// What must be the same whether a run was disturbed or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub certificate: Value,
    pub residuals: Vec<Value>,
    pub evidence: BTreeMap<String, String>,
}

pub fn outcome(bench: &Bench) -> Outcome {
    let events = bench.events();
    let mut certificates = events.iter().filter(|(kind, _)| kind == "certificate.issued");
    let residuals = bench.evidence("exit.json")["residual_history_decimal_strings"].as_array().cloned();
    Outcome {
        certificate: certificates.next_back().map(|(_, data)| data.clone()).unwrap_or_default(),
        residuals: residuals.expect("the halting report has a residual history"),
        evidence: evidence(bench),
    }
}

/// Every evidence file without what names the time, the run, or a digest of those.
fn evidence(bench: &Bench) -> BTreeMap<String, String> {
    let (run, short, root) = (run_id(bench), short_name(bench), bench.workspace.join("evidence"));
    let mut files = BTreeMap::new();
    for path in files_below(&root) {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let text = match serde_json::from_str::<Value>(&text) {
            Ok(mut value) => {
                forget_times(&mut value);
                serde_json::to_string_pretty(&value).unwrap()
            }
            Err(_) => text,
        };
        files.insert(name, neutral(&text.replace(&run, "RUN").replace(&short, "RUN")));
    }
    files
}

fn forget_times(value: &mut Value) {
    // `requests`, `calls`, `lost`, `resumes` and `resumes_before` say how often the engine died, which is what differs.
    const TIMES: &[&str] = &[
        "millis",
        "waited_millis",
        "requests",
        "calls",
        "lost",
        "resumes",
        "resumes_before",
        "total_seconds_elapsed",
        "seconds_remaining",
    ];
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !TIMES.contains(&name.as_str()));
            fields.values_mut().for_each(forget_times);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_times),
        _ => {}
    }
}

/// Drops digests and commits (they cover times; `verify` compares them) and the start time.
fn neutral(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.starts_with("- started: ") {
            continue;
        }
        let mut hex = String::new();
        for c in line.chars().chain(['\n']) {
            if c.is_ascii_hexdigit() && !c.is_ascii_uppercase() {
                hex.push(c);
                continue;
            }
            let is_digest = matches!(hex.len(), 12 | 40 | 64);
            out.push_str(if is_digest { "DIGEST" } else { &hex });
            hex.clear();
            out.push(c);
        }
    }
    out
}

/// The first difference of two outcomes, for a message.
pub fn difference(expected: &Outcome, found: &Outcome) -> Option<String> {
    if expected.certificate != found.certificate {
        return Some(format!("certificate {} became {}", expected.certificate, found.certificate));
    }
    if expected.residuals != found.residuals {
        return Some(format!("residuals {:?} became {:?}", expected.residuals, found.residuals));
    }
    let names: std::collections::BTreeSet<_> = expected.evidence.keys().chain(found.evidence.keys()).collect();
    for name in names {
        match (expected.evidence.get(name), found.evidence.get(name)) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => {
                let (a, b) = a.lines().zip(b.lines()).find(|(a, b)| a != b).unwrap_or(("", "(longer or shorter)"));
                return Some(format!("{name}: `{a}` became `{b}`"));
            }
            (one, _) => return Some(format!("{name} is {}", if one.is_some() { "missing" } else { "too many" })),
        }
    }
    None
}

pub fn files_below(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else if path.is_file() {
            // A killed engine leaves its socket; it is no content.
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Every file below a directory with its bytes.
pub fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files_below(root).into_iter().map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}
