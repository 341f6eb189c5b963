//! A small world for one run: a declaration, a scripted model, and what the solver does per iteration.
//!
//! Unless a case says otherwise, the solver of iteration N writes N+1 into `metric`, which NORTHSTAR.md
//! measures, so that the Northstar gate does not decide a case that is about something else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::support::{Bench, Ended};

const NORTHSTAR: &str =
    "# Northstar\n\n| id | Metric | Current | Target |\n|---|---|---|---|\n| vc-1 | steps | 0 | 100 |\n";
/// How many iterations the script knows.
const SCRIPTED: u32 = 8;
/// Nothing here takes this long; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A tool call of the scripted model.
pub fn call(tool: &str, input: Value) -> Value {
    json!({"tool": tool, "input": input})
}

pub fn write(path: &str, content: &str) -> Value {
    call("write_file", json!({"path": path, "content": content}))
}

pub fn sh(command: &str) -> Value {
    call("bash", json!({"command": command}))
}

/// A command line that the engine runs through the shell.
pub fn argv(script: &str) -> Value {
    json!(["sh", "-c", script])
}

pub struct Case {
    pub bench: Bench,
    declared: Map<String, Value>,
    turns: BTreeMap<(&'static str, u32), Value>,
    work: BTreeMap<u32, Vec<Value>>,
    verdicts: BTreeMap<u32, Value>,
    moves: bool,
}

impl Case {
    /// EXACT is declared, no criterion yet.
    pub fn new() -> Self {
        let declared = json!({
            "spec": "2.0",
            "goal": "Every criterion holds.",
            "acceptance_criteria": [],
            "halting_certificates": ["EXACT"],
            "northstar": {"measure": {"vc-1": argv("cat metric 2>/dev/null || echo 0")}},
            "agents": {"model": {"backend": "rehearsal", "script": "rehearsal.yaml"}},
        });
        Self {
            bench: Bench::in_memory().file("NORTHSTAR.md", NORTHSTAR),
            declared: declared.as_object().unwrap().clone(),
            turns: BTreeMap::new(),
            work: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            moves: true,
        }
    }

    /// The plainest loop that succeeds: `a` in iteration 0, `b` in iteration 1.
    pub fn two_steps() -> Self {
        Self::new()
            .check("a", "test -f a")
            .check("b", "test -f b")
            .solver(0, [write("a", "1\n")])
            .solver(1, [write("b", "1\n")])
    }

    pub fn declare(mut self, key: &str, value: Value) -> Self {
        self.declared.insert(key.to_owned(), value);
        self
    }

    pub fn without(mut self, key: &str) -> Self {
        self.declared.remove(key);
        self
    }

    fn criterion(mut self, criterion: Value) -> Self {
        self.declared["acceptance_criteria"].as_array_mut().unwrap().push(criterion);
        self
    }

    /// A criterion that a shell script checks.
    pub fn check(self, id: &str, script: &str) -> Self {
        self.criterion(json!({"id": id, "text": format!("{id} holds."), "check": argv(script)}))
    }

    /// A criterion with a check of its own form.
    pub fn check_argv(self, id: &str, argv: &[&str]) -> Self {
        self.criterion(json!({"id": id, "text": format!("{id} holds."), "check": argv}))
    }

    pub fn judged(self, id: &str) -> Self {
        self.criterion(json!({"id": id, "text": format!("{id} holds."), "judge": "skeptic"}))
    }

    pub fn residual(self, script: &str) -> Self {
        self.declare("residual", json!({"metric": "distance", "command": argv(script)}))
    }

    /// The residual of each iteration; the solver writes it into a file. It starts at 100.
    pub fn residuals(mut self, values: &[&str]) -> Self {
        for (number, value) in (0..).zip(values) {
            self.work.entry(number).or_default().push(write("residual", &format!("{value}\n")));
        }
        self.residual("cat residual").file("residual", "100\n")
    }

    pub fn file(mut self, name: &str, content: &str) -> Self {
        self.bench = self.bench.file(name, content);
        self
    }

    /// More work for the solver in one iteration; its report follows by itself.
    pub fn solver<const N: usize>(mut self, iteration: u32, calls: [Value; N]) -> Self {
        self.work.entry(iteration).or_default().extend(calls);
        self
    }

    /// Fields of the skeptic's report in one iteration.
    pub fn skeptic(mut self, iteration: u32, fields: Value) -> Self {
        self.verdicts.insert(iteration, fields);
        self
    }

    /// All turns of a role in one iteration, word for word.
    pub fn turns(mut self, role: &'static str, iteration: u32, turns: Value) -> Self {
        self.turns.insert((role, iteration), turns);
        self
    }

    /// Faults before the first reply of a role, whose turn stays as it is.
    pub fn faults(self, role: &'static str, iteration: u32, faults: Value) -> Self {
        let mut turns = self.default_turns(role, iteration);
        turns[0]["faults"] = faults;
        self.turns(role, iteration, turns)
    }

    /// The solver does not move the Northstar by itself.
    pub fn stale(mut self) -> Self {
        self.moves = false;
        self
    }

    pub fn default_turns(&self, role: &str, iteration: u32) -> Value {
        let calls = match role {
            "scout" => vec![call("submit_scout_report", json!({"plan": [format!("Attempt {iteration}.")]}))],
            "solver" => {
                let metric = self.moves.then(|| write("metric", &format!("{}\n", iteration + 1)));
                let work = self.work.get(&iteration).cloned().unwrap_or_default();
                metric.into_iter().chain(work).chain([solver_report(&format!("Attempt {iteration}."))]).collect()
            }
            _ => vec![skeptic_report(iteration, self.verdicts.get(&iteration))],
        };
        json!([{"calls": calls}])
    }

    /// The script of the model.
    pub fn script(&self) -> Value {
        let mut steps = Vec::new();
        for iteration in 0..SCRIPTED {
            for role in ["scout", "solver", "skeptic"] {
                let own = self.turns.get(&(role, iteration)).cloned();
                let turns = own.unwrap_or_else(|| self.default_turns(role, iteration));
                steps.push(json!({"role": role, "iteration": iteration, "turns": turns}));
            }
        }
        json!({"rehearsal": 1, "model": "rehearsal-1", "steps": steps})
    }

    /// Writes loop.yaml and rehearsal.yaml. JSON is YAML too.
    pub fn written(&self) -> &Bench {
        let put = |name: &str, value: &Value| {
            fs::write(self.bench.workspace.join(name), serde_json::to_string_pretty(value).unwrap()).unwrap();
        };
        put("loop.yaml", &Value::Object(self.declared.clone()));
        put("rehearsal.yaml", &self.script());
        &self.bench
    }

    pub fn run(self) -> Ran {
        let ended = self.written().nightloop(&["run", "--headless"]);
        Ran { bench: self.bench, ended }
    }

    /// Runs with one more environment variable.
    pub fn run_with(self, name: &str, value: &str) -> Ran {
        let ended = self.written().command(&["run", "--headless"]).env(name, value).output().unwrap().into();
        Ran { bench: self.bench, ended }
    }

    /// Starts the run and does not wait for it.
    pub fn start(self) -> Running {
        self.written();
        Running::of(self.bench, &["run", "--headless"])
    }

    /// Puts this case's script into the workspace of a run that was made by another one.
    pub fn replace_script(&self, ran: &Ran) {
        fs::write(ran.bench.workspace.join("rehearsal.yaml"), self.script().to_string()).unwrap();
    }
}

pub fn solver_report(action: &str) -> Value {
    call("submit_solver_report", json!({"intent": "Come closer.", "actions": [action]}))
}

pub fn skeptic_report(iteration: u32, fields: Option<&Value>) -> Value {
    let question = format!("What is left after iteration {iteration}?");
    let mut report = json!({"status": "FAIL", "succeeded": [], "failed": [], "open_questions": [question]});
    for (key, value) in fields.and_then(Value::as_object).into_iter().flatten() {
        report[key] = value.clone();
    }
    call("submit_skeptic_report", report)
}

/// A run that has ended.
pub struct Ran {
    pub bench: Bench,
    pub ended: Ended,
}

impl Ran {
    pub fn resume(self) -> Self {
        let ended = self.bench.nightloop(&["resume"]);
        Self { bench: self.bench, ended }
    }

    pub fn report(&self) -> Value {
        self.bench.evidence("halting_report.json")
    }

    pub fn exit(&self) -> Value {
        self.bench.evidence("exit.json")
    }

    pub fn detail(&self) -> String {
        self.report()["detail"].as_str().unwrap().to_owned()
    }

    pub fn text(&self, path: &str) -> String {
        let path = self.bench.workspace.join(path);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    pub fn agents_md(&self) -> String {
        self.text("AGENTS.md")
    }

    /// The data of every event of one kind.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.bench.events().into_iter().filter(|(name, _)| name == kind).map(|(_, data)| data).collect()
    }

    /// The announced calls of one tool.
    pub fn intended(&self, tool: &str) -> usize {
        self.events("tool.intended").iter().filter(|data| data["name"] == tool).count()
    }
}

/// A run that goes on while the test looks at it.
pub struct Running {
    pub bench: Bench,
    child: Child,
}

impl Running {
    pub fn of(bench: Bench, arguments: &[&str]) -> Self {
        let mut command = bench.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { bench, child }
    }

    /// Ends the engine as a crash would.
    pub fn killed(mut self) -> Bench {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.bench
    }

    /// Waits until a decision of this name waits for its answer.
    pub fn wait_for_decision(&self, id: &str) {
        wait_until(|| {
            let inbox = self.bench.nightloop(&["inbox"]);
            inbox.code == 0 && inbox.stdout.split_whitespace().any(|word| word == id)
        });
    }

    /// Waits until a process with exactly this command line works in the workspace. A shell that will start it
    /// later has the words in its own command line too.
    pub fn wait_for_process(&self, command: &str) {
        wait_until(|| processes_in(&self.bench.workspace).iter().any(|(_, line)| line.trim_end() == command));
    }

    /// Waits until the journal holds an event of this kind.
    pub fn wait_for_event(&self, kind: &str) {
        let mark = format!("\"type\":\"{kind}\"");
        let text = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let files = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let runs = self.bench.state.join("runs");
        wait_until(|| {
            files(runs.clone()).flat_map(|run| files(run.join("journal"))).any(|path| text(path).contains(&mark))
        });
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn wait(self) -> Ran {
        let ended = self.child.wait_with_output().unwrap().into();
        Ran { bench: self.bench, ended }
    }
}

#[track_caller]
pub fn wait_until(condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < PATIENCE, "waited in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes whose working directory is `dir`: (pid, command line).
pub fn processes_in(dir: &Path) -> Vec<(PathBuf, String)> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    processes
        .filter(|path| fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == dir))
        .map(|path| {
            let line = fs::read(path.join("cmdline")).unwrap_or_default();
            (path, String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
}

/// Nothing that the run started is left.
#[track_caller]
pub fn no_survivor(ran: &Ran) {
    wait_until(|| processes_in(&ran.bench.workspace).is_empty());
}
