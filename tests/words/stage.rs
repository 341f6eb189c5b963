//! A workspace, a state directory and a home whose names are hostile, and a scan of what is said.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use nightloop::model::safe::is_forbidden;
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use tempfile::TempDir;

/// What stands behind a line break in a name must not become a line of its own.
pub const FORGED: &str = "  hint: forged";

/// Names that act: sequences, a clipboard, a bell, C1 as a character, overrides, a line of their own, no UTF-8.
pub const HOSTILE: [&[u8]; 3] = [
    "a\u{1b}[31mb\u{1b}]52;c;QUJD\u{7}c\u{9b}2Jd\u{202e}e\u{200b}f\u{7f}g\u{1b}Ph\u{1b}\\i\u{8}\u{9}j\rk\u{2028}l"
        .as_bytes(),
    b"first\n  hint: forged",
    b"x\xff\x9b31m\xc3y\x1b",
];

pub const LOOP: &str = r#"spec: "1.0"
name: "n\e[31m\u009b2J\u202Ex"
goal: "g\e]52;c;QUJD\a\nforged"
playbook: swarm
halting_certificates: [EXACT]
R_p: "1e-4"
rung_target: 641
agents:
  model: { backend: rehearsal, script: script.yaml }
acceptance_criteria:
  - { id: a, text: "t\e[2J\u202e", check: ["sh", "-c", "printf 'o\\033[31m\\n'; test -f a"] }
budget: { max_iterations: 2, max_total_seconds: 600, max_total_tool_calls: 60 }
"#;

const SCRIPT: &str = r#"rehearsal: 1
steps:
  - role: scout
    turns:
      - text: "s\e[31m"
        calls:
          - { tool: submit_scout_report, input: { plan: ["p\e[31m\u202e"], suspect_files_ranked: ["f\e[31m"] } }
  - role: solver
    turns:
      - calls:
          - { tool: "no\e[31m", input: {} }
          - { tool: bash, input: { command: "printf 'x\\033]0;t\\007'; exit 3" } }
          - { tool: write_file, input: { path: a, content: "1\n" } }
          - { tool: write_file, input: { path: "o\e[31m\u202e", content: "1\n" } }
      - calls:
          - tool: submit_solver_report
            input: { intent: "i\e[31m", actions: ["d\e[31m"], files_touched: [a, "o\e[31m\u202e"] }
  - role: skeptic
    turns:
      - calls:
          - tool: submit_skeptic_report
            input:
              status: PASS
              succeeded: [{ lane: A, text: "k\e[31m\u009b", artifact: a }]
              failed: []
              open_questions: ["q\e[31m"]
"#;

/// Declarations that are wrong in ways that are told.
pub fn declarations() -> Vec<String> {
    let mut all = vec![
        LOOP.replace("goal:", "\"go\\e[31m\\u202Eal\":"),
        LOOP.replace("playbook: swarm", "playbook: \"sw\\e[31m\\u009b2J\""),
        LOOP.replace("script: script.yaml", "script: \"no\\e]0;x\\a.yaml\""),
        LOOP.replace("backend: rehearsal", "backend: \"re\\e[2J\""),
        LOOP.replace("max_iterations: 2", "max_iterations: \"\\e[2J\""),
        LOOP.replace("max_iterations: 2", "\"max\\n  hint: forged\": 2"),
        LOOP.replace("id: a,", "id: \"a\\e[31m\","),
        LOOP.replace("goal:", "\u{1b}[31mgoal:"),
        LOOP.replace("goal:", "g\u{9b}oal:"),
        format!("{LOOP}\nnorthstar: {{ file: \"\\e[31m/../x\" }}\n"),
        format!("{LOOP}\n&\u{202e}x: [\u{7}"),
    ];
    all.push(LOOP.replace("acceptance_criteria:", "acceptance_criteria: []\nx\\e[31m:"));
    all
}

pub struct Stage {
    dir: TempDir,
    name: OsString,
}

pub fn is_utf8(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok()
}

impl Stage {
    pub fn new(name: &[u8], declaration: &str) -> Self {
        let stage = Self { dir: tempfile::tempdir().unwrap(), name: OsString::from_vec(name.to_vec()) };
        let work = stage.work();
        fs::create_dir_all(&work).unwrap();
        fs::write(work.join("loop.yaml"), declaration).unwrap();
        fs::write(work.join("script.yaml"), SCRIPT).unwrap();
        let themes = stage.home().join("config/themes");
        fs::create_dir_all(&themes).unwrap();
        fs::write(themes.join(&stage.name).with_extension("yaml"), name).unwrap();
        stage
    }

    pub fn name(&self) -> OsString {
        self.name.clone()
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home").join(&self.name)
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work").join(&self.name)
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state").join(&self.name)
    }

    fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("HOME", self.home().into()),
            ("NIGHTLOOP_STATE_DIR", self.state().into()),
            ("NIGHTLOOP_CONFIG_DIR", self.home().join("config").into()),
            ("NIGHTLOOP_TEST_DISK_PERCENT", "10".into()),
            (nightloop::engine::offer::SOCKET_VAR, self.home().join("socket").into()),
            (nightloop::engine::offer::TOKEN_VAR, self.name()),
            ("USER", self.name()),
            ("TMPDIR", self.dir.path().into()),
        ]
    }

    pub fn call(&self, words: &[OsString]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nightloop"));
        command.args(words).current_dir(self.work()).env_clear().envs(self.environment()).stdin(Stdio::null());
        command.output().unwrap()
    }

    /// Everything that a terminal is told.
    pub fn on_a_terminal(&self, words: &[OsString]) -> Vec<u8> {
        let pair = native_pty_system().openpty(PtySize { rows: 24, cols: 200, ..PtySize::default() }).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_nightloop"));
        command.args(words);
        command.cwd(self.work());
        command.env_clear();
        self.environment().into_iter().for_each(|(name, value)| command.env(name, value));
        command.env("TERM", "xterm-256color");
        let mut child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut said = Vec::new();
        // The end of a terminal is an error on Linux.
        let _ = pair.master.try_clone_reader().unwrap().read_to_end(&mut said);
        child.wait().unwrap();
        said
    }
}

/// Text without colours and weights, which are ours.
pub fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(part.len());
        match part[end..].strip_prefix('m') {
            Some(rest) => plain.push_str(rest),
            None => plain.push_str(&format!("\u{1b}[{part}")),
        }
    }
    plain
}

pub fn is_harmless(text: &str) -> Result<(), String> {
    match text.chars().find(|c| *c != '\n' && is_forbidden(*c)) {
        Some(c) => Err(format!("U+{:04X}", u32::from(c))),
        None if text.lines().any(|line| line.starts_with(FORGED)) => Err("a forged line".to_owned()),
        None => Ok(()),
    }
}

/// Fails unless every byte that was said is harmless, and what is meant for programs can be read by them.
#[track_caller]
pub fn harmless(words: &[OsString], ended: &Output) {
    let own = words.first().is_some_and(|word| word == "completions" || word == "man");
    for (stream, bytes) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
        let text = std::str::from_utf8(bytes).unwrap_or_else(|e| panic!("{words:?}: {stream} is no UTF-8: {e}"));
        let text = if own { text.replace('\t', " ") } else { text.to_owned() };
        is_harmless(&text).unwrap_or_else(|what| panic!("{words:?}: {what} on {stream}: {text:?}"));
    }
    if words.iter().any(|word| word == OsStr::new("--json")) {
        for line in String::from_utf8_lossy(&ended.stdout).lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{words:?}: {e}: {line}"));
        }
    }
}
