//! One workspace with an agent whose turns are drawn, and the ways to run it: bounded commands, a loop that believes the
//! agent, a loop that believes the checks, and nightloop itself through its command line.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

const AGENT: &str = include_str!("agent.sh");
/// No agent's turn and no check of these projects takes a tenth of this.
const SHORT: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(300);

/// What an agent does, turn by turn, as shell scripts.
#[derive(Clone, Default)]
pub struct Script {
    pub turns: Vec<String>,
    /// Every turn after these.
    pub rest: String,
}

/// Where the work happens, with everything that belongs to it.
pub struct Stage {
    _dir: TempDir,
    root: PathBuf,
    pub workspace: PathBuf,
    path: String,
}

/// How a command ended.
pub struct Ended {
    /// None: it took too long, or a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// What a loop came to.
#[derive(Debug, Clone, Default)]
pub struct Came {
    /// The loop holds that the goal is reached.
    pub believed: bool,
    /// Why it ended, in its own words.
    pub ended: String,
    /// Turns that may write, and all calls of agents.
    pub worked: usize,
    pub calls: usize,
    pub asked: usize,
    pub seconds: f64,
    /// It broke: no judgement.
    pub broke: Option<String>,
}

/// Is there such a program?
pub fn has(program: &str) -> bool {
    search_path().split(':').any(|folder| Path::new(folder).join(program).is_file())
}

/// The system's own programs and the toolchain that built this; never a shim that wants somebody's home.
fn search_path() -> String {
    let cargo = Path::new(env!("CARGO")).parent().map(|folder| folder.display().to_string());
    format!("{}:/usr/local/bin:/usr/bin:/bin", cargo.unwrap_or_default())
}

impl Stage {
    /// A workspace with these files, under git, and an agent that owns `good` and `bad` files.
    pub fn new(files: &[(&str, &str)], good: &[(&str, &str)], bad: &[(&str, &str)], script: &Script) -> Self {
        let dir = tempfile::Builder::new().prefix("night").tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let stage = Self { workspace: root.join("work"), path: search_path(), root, _dir: dir };
        for folder in ["work", "agent/turns", "home", "state", "config"] {
            fs::create_dir_all(stage.root.join(folder)).unwrap();
        }
        files.iter().chain(bad).for_each(|(path, text)| write(&stage.workspace.join(path), text));
        let agent = stage.root.join("agent");
        write(&agent.join("agent"), AGENT);
        good.iter().for_each(|(path, text)| write(&agent.join("good").join(path), text));
        bad.iter().for_each(|(path, text)| write(&agent.join("bad").join(path), text));
        let shown = bad.first().or(files.first()).map_or("README.md", |(path, _)| *path);
        write(&agent.join("shown"), shown);
        for (number, turn) in script.turns.iter().enumerate() {
            write(&agent.join(format!("turns/{}.sh", number + 1)), turn);
        }
        write(&agent.join("turns/rest.sh"), &script.rest);
        stage
    }

    /// Puts what there is under git.
    pub fn committed(self) -> Self {
        let git = "git init -q && git add -A && git -c user.name=n -c user.email=n@example.org commit -qm start";
        let ended = self.sh(git);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        self
    }

    pub fn file(&self, path: &str, text: &str) {
        write(&self.workspace.join(path), text);
    }

    /// A home of its own; where the toolchain is installed in the user's, that one: no other home can be seen in the cage.
    fn home(&self) -> PathBuf {
        let users = std::env::var_os("HOME").map(PathBuf::from);
        let holds_toolchain = |home: &PathBuf| Path::new(env!("CARGO")).starts_with(home);
        users.filter(holds_toolchain).unwrap_or_else(|| self.root.join("home"))
    }

    /// A command in the workspace with a small environment.
    fn command(&self, argv: &[&str]) -> Command {
        let mut command = Command::new(argv[0]);
        command
            .args(&argv[1..])
            .current_dir(&self.workspace)
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.home())
            .env("NIGHTLOOP_STATE_DIR", self.root.join("state"))
            .env("NIGHTLOOP_CONFIG_DIR", self.root.join("config"))
            .env("NIGHTLOOP_TEST_DISK_PERCENT", "10");
        command
    }

    /// Runs to the end or to the limit; then everything it started goes with it.
    fn bounded(&self, mut command: Command, input: &str, limit: Duration) -> Ended {
        let (out, err) = (self.root.join("stdout"), self.root.join("stderr"));
        fs::write(self.root.join("stdin"), input).unwrap();
        command.stdin(File::open(self.root.join("stdin")).unwrap());
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap()).process_group(0);
        let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Ended { code: None, stdout: String::new(), stderr: error.to_string() },
        };
        let begun = Instant::now();
        let code = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.code();
            }
            if begun.elapsed() > limit {
                if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
                    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                }
                let _ = child.wait();
                break None;
            }
            std::thread::sleep(Duration::from_millis(3));
        };
        Ended { code, stdout: text(&out), stderr: text(&err) }
    }

    pub fn sh(&self, script: &str) -> Ended {
        self.bounded(self.command(&["sh", "-c", script]), "", SHORT)
    }

    fn green(&self, check: &[&str]) -> bool {
        self.bounded(self.command(check), "", LONG).code == Some(0)
    }

    /// One turn of the agent as a plain loop calls it.
    fn turn(&self) -> Ended {
        let agent = self.root.join("agent/agent").display().to_string();
        self.bounded(self.command(&[&agent]), "Make all tests pass. Say DONE when they do.\n", SHORT)
    }

    /// A loop that calls the agent until it says that it is done.
    pub fn believe_agent(&self, turns: usize) -> Came {
        self.plain(turns, |_, ended| ended.code == Some(0) && ended.stdout.lines().any(|line| line == "DONE"))
    }

    /// A loop that calls the agent until the check is green.
    pub fn believe_check(&self, turns: usize, check: &[&str]) -> Came {
        self.plain(turns, |stage, _| stage.green(check))
    }

    fn plain(&self, turns: usize, done: impl Fn(&Self, &Ended) -> bool) -> Came {
        let begun = Instant::now();
        let mut came = Came { ended: "turns used up".into(), ..Came::default() };
        while came.worked < turns && !came.believed {
            let ended = self.turn();
            came.worked += 1;
            came.believed = done(self, &ended);
        }
        if came.believed {
            came.ended = "done".into();
        }
        came.calls = came.worked;
        came.seconds = begun.elapsed().as_secs_f64();
        came
    }

    /// The template's declaration with what a user fills in: the agent and the check, where declared the residual.
    pub fn declare(&self, template: &str, check: &[&str], residual: Option<&[&str]>) -> Value {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/templates").join(template);
        let mut declared: Value = serde_yaml::from_str(&fs::read_to_string(shipped).unwrap()).unwrap();
        declared["acceptance_criteria"][0]["check"] = json!(check);
        let agent = self.root.join("agent");
        declared["agents"] =
            json!({"builder": {"backend": "command", "command": [agent.join("agent")], "write": [agent]}});
        if let Some(command) = residual {
            declared["residual"]["metric"] = json!("failing tests");
            declared["residual"]["command"] = json!(command);
        }
        declared
    }

    /// A run without a console; the binary's own words about it.
    pub fn nightloop(&self, declared: &Value) -> Came {
        self.file("loop.yaml", &serde_json::to_string_pretty(declared).unwrap());
        if declared.get("northstar").is_some() {
            self.file("NORTHSTAR.md", include_str!("../../assets/templates/NORTHSTAR.md"));
        }
        let binary = env!("CARGO_BIN_EXE_nightloop");
        let begun = Instant::now();
        let ran = self.bounded(self.command(&[binary, "run", "--json"]), "", LONG);
        let mut came = Came { seconds: begun.elapsed().as_secs_f64(), ..Came::default() };
        let calls = fs::read_to_string(self.root.join("agent/calls")).unwrap_or_default();
        came.calls = calls.lines().count();
        came.worked = calls.lines().filter(|role| matches!(*role, "solver" | "author" | "worker")).count();
        came.believed = ran.code == Some(0);
        for line in ran.stdout.lines() {
            let event: Value = serde_json::from_str(line).unwrap_or_default();
            match event["type"].as_str() {
                Some("decision.asked") => came.asked += 1,
                Some("run.halted") => came.ended = halted(&event["data"]),
                Some(_) | None => {}
            }
        }
        if came.ended.is_empty() {
            came.ended = if came.asked > 0 { "waits for a person".into() } else { "no end".into() };
        }
        came.broke = match ran.code {
            Some(0..=4) => self.verified(came.believed),
            other => Some(format!("exit {other:?}: {}", tail(&ran.stderr))),
        };
        came
    }

    /// What `verify` has against the run. A certificate must hold; elsewhere it may well name what an agent forged.
    fn verified(&self, certified: bool) -> Option<String> {
        let found = self.bounded(self.command(&[env!("CARGO_BIN_EXE_nightloop"), "verify"]), "", LONG);
        match found.code {
            Some(0) => None,
            Some(1 | 2) if !certified => None,
            other => Some(format!("verify {other:?}: {} {}", tail(&found.stdout), tail(&found.stderr))),
        }
    }

    /// Kept for a person to look at.
    pub fn keep(self) -> PathBuf {
        self._dir.keep()
    }
}

fn halted(data: &Value) -> String {
    let word = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
    format!("{} {}", word("status"), word("stop_reason")).trim().to_owned()
}

fn tail(text: &str) -> String {
    let start = text.char_indices().rev().nth(400).map_or(0, |(at, _)| at);
    text[start..].trim().to_owned()
}

/// A file with its folder; one that begins like a program is one.
pub fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    if text.starts_with("#!") {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// The right answers come out, when the code of this workspace is put into a fresh copy of the project.
pub fn holds(stage: &Stage, files: &[(&str, &str)], code: &str, script: &str, answers: &[&str]) -> bool {
    let fresh = Stage::new(files, &[], &[], &Script::default());
    copy(&stage.workspace.join(code), &fresh.workspace.join(code));
    let ended = fresh.sh(script);
    ended.stdout.lines().map(str::trim_end).eq(answers.iter().copied())
}

/// Regular files and folders; what is linked is not the code's own.
fn copy(from: &Path, to: &Path) {
    let Ok(entries) = fs::read_dir(from) else { return };
    fs::create_dir_all(to).unwrap();
    for entry in entries.flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else if kind.is_file() && entry.path().extension().is_none_or(|end| end != "pyc") {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
