//! A small world for one run: a declaration, a scripted model, and what the solver does per iteration.
//!
//! Unless a case says otherwise, the solver of iteration N writes N+1 into `src/metric`, which NORTHSTAR.md
//! measures, so that the Northstar gate does not decide a case that is about something else.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::case::{Case as Common, processes_in, with};
pub use crate::support::case::{Ran, Running, argv, call, sh, write};
use crate::support::{Bench, wait_until};

const NORTHSTAR: &str =
    "# Northstar\n\n| id | Metric | Current | Target |\n|---|---|---|---|\n| vc-1 | steps | 0 | 100 |\n";
/// How many iterations the script knows.
const SCRIPTED: u32 = 8;

/// A run of the swarm: what each role does by iteration.
pub struct Case {
    common: Common,
    turns: BTreeMap<(&'static str, u32), Value>,
    work: BTreeMap<u32, Vec<Value>>,
    verdicts: BTreeMap<u32, Value>,
    steps: Vec<Value>,
    moves: bool,
}

impl Deref for Case {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

impl Case {
    /// EXACT is declared, no criterion yet.
    pub fn new() -> Self {
        let declared = json!({
            "spec": "2.0",
            "goal": "Every criterion holds.",
            "acceptance_criteria": [],
            "halting_certificates": ["EXACT"],
            "northstar": {"measure": {"vc-1": argv("cat src/metric 2>/dev/null || echo 0")}},
        });
        Self {
            common: Common::of(&declared).file("NORTHSTAR.md", NORTHSTAR),
            turns: BTreeMap::new(),
            work: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            steps: Vec::new(),
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

    fn map(self, change: impl FnOnce(Common) -> Common) -> Self {
        Self { common: change(self.common), ..self }
    }

    pub fn declare(self, key: &str, value: Value) -> Self {
        self.map(|case| case.declare(key, value))
    }

    pub fn without(self, key: &str) -> Self {
        self.map(|case| case.without(key))
    }

    pub fn file(self, name: &str, content: &str) -> Self {
        self.map(|case| case.file(name, content))
    }

    fn criterion(self, criterion: Value) -> Self {
        self.map(|case| case.criterion(criterion))
    }

    /// A criterion that a shell script checks.
    pub fn check(self, id: &str, script: &str) -> Self {
        self.map(|case| case.check(id, script))
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
            self.work.entry(number).or_default().push(write("src/residual", &format!("{value}\n")));
        }
        self.residual("cat src/residual").file("src/residual", "100\n")
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

    /// One more step of the script, for calls that role and iteration do not tell apart.
    pub fn step(mut self, step: Value) -> Self {
        self.steps.push(step);
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
                let metric = self.moves.then(|| write("src/metric", &format!("{}\n", iteration + 1)));
                let work = self.work.get(&iteration).cloned().unwrap_or_default();
                metric.into_iter().chain(work).chain([solver_report(&format!("Attempt {iteration}."))]).collect()
            }
            _ => vec![skeptic_report(iteration, self.verdicts.get(&iteration))],
        };
        json!([{"calls": calls}])
    }

    /// The script of the model.
    pub fn script(&self) -> Value {
        json!({"rehearsal": 1, "model": "rehearsal-1", "steps": self.all_turns()})
    }

    fn all_turns(&self) -> Vec<Value> {
        let roles = ["scout", "solver", "skeptic"];
        let calls = (0..SCRIPTED).flat_map(|iteration| roles.map(|role| (role, iteration)));
        let step = |(role, iteration)| {
            let own = self.turns.get(&(role, iteration)).cloned();
            let turns = own.unwrap_or_else(|| self.default_turns(role, iteration));
            json!({"role": role, "iteration": iteration, "turns": turns})
        };
        calls.map(step).chain(self.steps.iter().cloned()).collect()
    }

    fn scripted(self) -> Common {
        let steps = self.all_turns();
        Common { steps, ..self.common }
    }

    pub fn written(self) -> Bench {
        self.scripted().written()
    }

    pub fn run(self) -> Ran {
        self.scripted().run()
    }

    /// Runs with one more environment variable.
    pub fn run_with(self, name: &str, value: &str) -> Ran {
        self.scripted().run_with(name, value)
    }

    /// Starts the run and does not wait for it.
    pub fn start(self) -> Running {
        self.scripted().start()
    }

    /// Puts this case's script into the workspace of a run that was made by another one.
    pub fn replace_script(self, ran: &Ran) {
        self.scripted().write_script(&ran.bench);
    }
}

pub fn solver_report(action: &str) -> Value {
    call("submit_solver_report", json!({"intent": "Come closer.", "actions": [action]}))
}

pub fn skeptic_report(iteration: u32, fields: Option<&Value>) -> Value {
    let question = format!("What is left after iteration {iteration}?");
    let report = json!({"status": "FAIL", "succeeded": [], "failed": [], "open_questions": [question]});
    call("submit_skeptic_report", with(report, fields.unwrap_or(&Value::Null)))
}

impl Ran {
    pub fn exit(&self) -> Value {
        self.bench.evidence("exit.json")
    }

    pub fn agents_md(&self) -> String {
        self.text("AGENTS.md")
    }

    /// The first message of the first call of a role in an iteration.
    pub fn first_message(&self, role: &str, iteration: u32) -> String {
        let mine = format!("it{iteration}.{role}");
        let started = self.events("agent.started");
        let data = started.iter().find(|data| data["call"] == mine.as_str()).unwrap_or_else(|| panic!("{started:?}"));
        let message: Value = serde_json::from_str(&self.blob(&data["message"])).unwrap();
        message["content"].as_str().unwrap().to_owned()
    }

    /// The announced calls of one tool.
    pub fn intended(&self, tool: &str) -> usize {
        self.events("tool.intended").iter().filter(|data| data["name"] == tool).count()
    }
}

impl Running {
    /// Waits until a decision of this name waits for its answer.
    pub fn wait_for_decision(&self, id: &str) {
        wait_until("it is asked", || {
            let inbox = self.bench.nightloop(&["inbox"]);
            inbox.code == 0 && inbox.stdout.split_whitespace().any(|word| word == id)
        });
    }

    /// Waits until a process with exactly this command line works in the workspace. A shell that will start it
    /// later has the words in its own command line too.
    pub fn wait_for_process(&self, command: &str) {
        wait_until("the process is there", || {
            processes_in(&self.bench.workspace).iter().any(|(_, line)| line.trim_end() == command)
        });
    }

    /// Waits until the journal holds an event of this kind.
    pub fn wait_for_event(&self, kind: &str) {
        let mark = format!("\"type\":\"{kind}\"");
        let text = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let files = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let runs = self.bench.state.join("runs");
        wait_until("the event is there", || {
            files(runs.clone()).flat_map(|run| files(run.join("journal"))).any(|path| text(path).contains(&mark))
        });
    }
}

/// Nothing that the run started is left.
#[track_caller]
pub fn no_survivor(ran: &Ran) {
    wait_until("nothing is left", || processes_in(&ran.bench.workspace).is_empty());
}

/// Can the engine show its checks an overlay here? Only the program itself can say: a test is no launcher.
pub fn overlays() -> bool {
    let there = Bench::in_memory().nightloop(&["doctor"]).stdout.contains("✓  overlays: ");
    if !there {
        eprintln!("skipped: this machine gives no overlays");
    }
    there
}
