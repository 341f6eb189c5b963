//! A workspace of its own for every test, the screens over it, and its journal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::case::{Case, call};
use crate::screen::{PATIENCE, Screen, starting};
use crate::support::{Bench, Ended};

/// Wide enough that most sentences stand on one row.
pub const WIDE: (u16, u16) = (120, 40);
pub const SMALL: (u16, u16) = (80, 24);

/// Variables of every program here. The theme is named so that the terminal is not asked for its colours.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("TERM", "xterm-256color"),
    ("LANG", "C.UTF-8"),
    ("NIGHTLOOP_THEME", "dark"),
    ("NIGHTLOOP_TEST_DISK_PERCENT", "10"),
    ("USER", "maria"),
    ("SHELL", "/bin/sh"),
];

pub struct Stage {
    pub bench: Bench,
    config: PathBuf,
}

/// Whatever a failed test left running goes with it.
impl Drop for Stage {
    fn drop(&mut self) {
        for pid in self.processes() {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

impl Stage {
    fn on(bench: Bench) -> Self {
        let config = bench.dir.path().join("config");
        fs::create_dir_all(&config).unwrap();
        Self { bench, config }
    }

    /// An empty workspace.
    pub fn empty() -> Self {
        Self::on(Bench::in_memory())
    }

    /// The loop of a case.
    pub fn of(case: Case) -> Self {
        Self::on(case.written())
    }

    /// Puts another case's script into this workspace.
    pub fn play(&self, case: &Case) {
        fs::write(self.path("rehearsal.yaml"), case.script().to_string()).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.bench.workspace.join(name)
    }

    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    pub fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    /// The program on a wide terminal.
    pub fn screen(&self, arguments: &[&str]) -> Screen {
        self.open(arguments, WIDE, &[])
    }

    /// The program as a job of a shell, which can stop and go on. The shell says when it stopped; a line brings
    /// it back.
    pub fn job(&self, arguments: &[&str]) -> Screen {
        let script = "set -m; \"$@\"; echo the job stopped; read _; fg >/dev/null";
        let mut command = CommandBuilder::new("sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_nightloop")]);
        command.args(arguments);
        self.start(command, WIDE, &[])
    }

    /// The program on a terminal, with other variables. An empty value takes one away.
    pub fn open(&self, arguments: &[&str], size: (u16, u16), environment: &[(&str, &str)]) -> Screen {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_nightloop"));
        command.args(arguments);
        self.start(command, size, environment)
    }

    fn start(&self, mut command: CommandBuilder, size: (u16, u16), environment: &[(&str, &str)]) -> Screen {
        command.cwd(&self.bench.workspace);
        command.env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.bench.dir.path());
        command.env("NIGHTLOOP_STATE_DIR", &self.bench.state);
        command.env("NIGHTLOOP_CONFIG_DIR", &self.config);
        for (name, value) in ENVIRONMENT.iter().chain(environment) {
            if value.is_empty() {
                command.env_remove(name);
            } else {
                command.env(name, value);
            }
        }
        Screen::start(command, size)
    }

    /// Runs a command without a terminal to its end.
    pub fn nightloop(&self, arguments: &[&str]) -> Ended {
        self.nightloop_with(arguments, &[])
    }

    pub fn nightloop_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Ended {
        let mut command = self.bench.command(arguments);
        command.env("NIGHTLOOP_CONFIG_DIR", &self.config).env("USER", "maria").envs(environment.iter().copied());
        // Files, not pipes: what goes on without us must not be waited for.
        let out = tempfile::NamedTempFile::new_in(self.bench.dir.path()).unwrap();
        let err = tempfile::NamedTempFile::new_in(self.bench.dir.path()).unwrap();
        command.stdin(Stdio::null()).stdout(out.reopen().unwrap()).stderr(err.reopen().unwrap());
        let guard = starting();
        let mut child = command.spawn().unwrap();
        drop(guard);
        let code = child.wait().unwrap().code().unwrap_or(-1);
        let text =
            |file: &tempfile::NamedTempFile| String::from_utf8_lossy(&fs::read(file.path()).unwrap()).into_owned();
        Ended { code, stdout: text(&out), stderr: text(&err) }
    }

    /// The run may be believed; or, with 2, it is as far as it goes.
    #[track_caller]
    pub fn verify(&self, code: i32) {
        let ended = self.nightloop(&["verify"]);
        assert_eq!(ended.code, code, "{}{}", ended.stdout, ended.stderr);
    }

    /// Every event so far: (type, data). A line that is just being written is left out.
    pub fn events(&self) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        for run in entries(&self.bench.state.join("runs")) {
            let mut segments = entries(&run.join("journal"));
            segments.retain(|path| path.extension().is_some_and(|e| e == "jsonl"));
            segments.sort();
            for segment in segments {
                let text = fs::read(segment).unwrap_or_default();
                for line in String::from_utf8_lossy(&text).lines() {
                    let Ok(mut value) = serde_json::from_str::<Value>(line) else { continue };
                    events.push((value["type"].as_str().unwrap_or_default().to_owned(), value["data"].take()));
                }
            }
        }
        events
    }

    /// The data of every event of one kind so far.
    pub fn all(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|(name, _)| name == kind).map(|(_, data)| data).collect()
    }

    pub fn count(&self, kind: &str) -> usize {
        self.all(kind).len()
    }

    /// Waits until there are this many events of a kind.
    #[track_caller]
    pub fn wait_for(&self, kind: &str, count: usize) {
        eventually(&format!("{count} of {kind}; there are {:?}", self.kinds()), || self.count(kind) >= count);
    }

    fn kinds(&self) -> Vec<String> {
        self.events().into_iter().map(|(kind, _)| kind).collect()
    }

    /// Waits until nobody drives the run any more.
    #[track_caller]
    pub fn wait_for_end(&self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.processes().is_empty() {
            assert!(Instant::now() < deadline, "still there: {:#?}", self.describe_processes());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The end of the run: status and stop reason.
    #[track_caller]
    pub fn end(&self) -> (String, String) {
        let halted = self.all("run.halted");
        let last = halted.last().unwrap_or_else(|| panic!("it has not ended: {:?}", self.kinds()));
        let text = |key: &str| last[key].as_str().unwrap_or_default().to_owned();
        (text("status"), text("stop_reason"))
    }

    #[track_caller]
    pub fn ended_as(&self, status: &str, reason: &str) {
        assert_eq!(self.end(), (status.to_owned(), reason.to_owned()), "{:?}", self.all("run.halted"));
    }

    /// What the agents were told by tools and people.
    pub fn told_agents(&self) -> String {
        let mut told = String::new();
        for (kind, data) in self.events() {
            if kind == "tool.finished" {
                told.push_str(&data["text"].to_string());
                told.push('\n');
            }
        }
        told
    }

    /// Processes that were started with our state directory.
    pub fn processes(&self) -> Vec<i32> {
        let mark = format!("NIGHTLOOP_STATE_DIR={}\0", self.bench.state.display());
        let ours = |path: &Path| {
            let environment = fs::read(path.join("environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|window| window == mark.as_bytes())
        };
        let pid = |path: &Path| path.file_name()?.to_str()?.parse().ok();
        entries(Path::new("/proc")).iter().filter(|path| ours(path)).filter_map(|path| pid(path)).collect()
    }

    /// What is left, for whoever has to find out why: command line and what each thread waits for.
    fn describe_processes(&self) -> Vec<String> {
        let text = |path: PathBuf| fs::read_to_string(path).unwrap_or_default().replace('\0', " ");
        let describe = |pid: i32| {
            let dir = PathBuf::from(format!("/proc/{pid}"));
            let threads = entries(&dir.join("task"));
            let waits: Vec<String> = threads
                .iter()
                .map(|task| format!("{}: {}", text(task.join("comm")).trim(), text(task.join("wchan"))))
                .collect();
            format!("{pid} {} ({})", text(dir.join("cmdline")), waits.join(", "))
        };
        self.processes().into_iter().map(describe).collect()
    }

    /// The process that drives the run.
    #[track_caller]
    pub fn engine(&self) -> i32 {
        let held = |pid: &i32| {
            let thread =
                |path: &PathBuf| fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "engine");
            entries(&PathBuf::from(format!("/proc/{pid}/task"))).iter().any(thread)
        };
        self.processes().into_iter().find(held).expect("no process drives the run")
    }
}

pub fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Waits for something that no screen shows.
#[track_caller]
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// The scout's report, which ends its part.
pub fn scouted() -> Value {
    json!({"calls": [call("submit_scout_report", json!({"plan": ["Go on."]}))]})
}

/// Two iterations; the first reply of all takes this long.
pub fn slow(millis: u64) -> Case {
    let mut first = scouted();
    first["delay_ms"] = json!(millis);
    Case::two_steps().turns("scout", 0, json!([first]))
}

/// Two iterations; before anything else the scout asks a person.
pub fn asking(request: Value) -> Case {
    asking_after(0, request)
}

/// The same, after a while.
pub fn asking_after(millis: u64, request: Value) -> Case {
    let ask = json!({"delay_ms": millis, "calls": [call("ask_human", request)]});
    Case::two_steps().turns("scout", 0, json!([ask, scouted()]))
}

pub fn question() -> Value {
    json!({"kind": "question", "text": "Which colour?", "choices": ["blue", "green"]})
}
