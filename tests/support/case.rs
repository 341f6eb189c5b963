//! One run with a scripted model: a workspace, a declaration, a script, and what came of it.
//!
//! Each suite adds its own words in an `impl Case` and an `impl Ran`: what its playbook declares, what its model does,
//! what its events mean.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Bench, Ended, wait_until};

/// No run here takes a tenth of this: what takes longer hangs.
const LONGEST: Duration = Duration::from_secs(180);

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

/// A call that waits until the test lets it go on, or for a minute; see [`Running::hold`].
pub fn held() -> Value {
    sh("touch held.wait; for i in $(seq 6000); do test -f go.wait && break; sleep 0.01; done; rm -f held.wait go.wait")
}

/// A command line that the engine runs through the shell.
pub fn argv(script: &str) -> Value {
    json!(["sh", "-c", script])
}

/// An object with some fields more, or other ones.
pub fn with(mut object: Value, fields: &Value) -> Value {
    for (key, value) in fields.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    object
}

/// A declaration and a script, not yet written.
pub struct Case {
    pub bench: Bench,
    pub declared: Map<String, Value>,
    pub steps: Vec<Value>,
}

impl Case {
    /// A rehearsed model, and whatever else is declared.
    pub fn of(declared: &Value) -> Self {
        let agents = json!({"agents": {"model": {"backend": "rehearsal", "script": "rehearsal.yaml"}}});
        let declared = with(agents, declared).as_object().unwrap().clone();
        Self { bench: Bench::in_memory(), declared, steps: Vec::new() }
    }

    pub fn declare(mut self, key: &str, value: Value) -> Self {
        self.declared.insert(key.to_owned(), value);
        self
    }

    pub fn without(mut self, key: &str) -> Self {
        self.declared.remove(key);
        self
    }

    pub fn criterion(mut self, criterion: Value) -> Self {
        self.declared["acceptance_criteria"].as_array_mut().unwrap().push(criterion);
        self
    }

    /// A criterion that a shell script checks.
    pub fn check(self, id: &str, script: &str) -> Self {
        self.criterion(json!({"id": id, "text": format!("{id} holds."), "check": argv(script)}))
    }

    pub fn file(mut self, name: &str, content: &str) -> Self {
        self.bench = self.bench.file(name, content);
        self
    }

    /// A key of the playbook's own section.
    pub fn set(mut self, key: &str, value: Value) -> Self {
        let playbook = self.declared["playbook"].as_str().unwrap().to_owned();
        self.declared.entry(playbook).or_insert_with(|| json!({}))[key] = value;
        self
    }

    /// What the model does in calls of this kind. A later word about the same call takes the place of the earlier one.
    pub fn step(mut self, mut which: Value, turns: Value) -> Self {
        let keys = |step: &Value| -> BTreeSet<(String, String)> {
            let fields = step.as_object().unwrap().iter().filter(|(key, _)| *key != "turns");
            fields.map(|(key, value)| (key.clone(), value.to_string())).collect()
        };
        self.steps.retain(|known| keys(known) != keys(&which));
        which["turns"] = turns;
        self.steps.push(which);
        self
    }

    /// Writes the script alone, into this or another workspace.
    pub fn write_script(&self, bench: &Bench) {
        let script = json!({"rehearsal": 1, "model": "rehearsal-1", "steps": self.steps});
        fs::write(bench.workspace.join("rehearsal.yaml"), serde_json::to_string_pretty(&script).unwrap()).unwrap();
    }

    /// Writes loop.yaml and rehearsal.yaml. JSON is YAML too.
    pub fn written(self) -> Bench {
        self.write_script(&self.bench);
        let declared = Value::Object(self.declared);
        self.bench.file("loop.yaml", serde_json::to_string_pretty(&declared).unwrap())
    }

    pub fn run(self) -> Ran {
        Ran::of(self.written(), &["run", "--headless"])
    }

    /// Runs with one more environment variable.
    pub fn run_with(self, name: &str, value: &str) -> Ran {
        let bench = self.written();
        let mut command = bench.command(&["run", "--headless"]);
        command.env(name, value);
        Ran { ended: unattended(command), bench }
    }

    /// Starts the run and does not wait for it.
    pub fn start(self) -> Running {
        Running::of(self.written(), &["run", "--headless"])
    }
}

/// Runs a command that nobody types anything for, and that has to end by itself.
#[track_caller]
pub fn unattended(command: Command) -> Ended {
    ends(spawned(command))
}

fn spawned(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the end of a process, but not for ever.
#[track_caller]
pub fn ends(child: Child) -> Ended {
    let (id, (sender, receiver)) = (child.id(), mpsc::channel());
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(LONGEST) {
        Ok(output) => output.unwrap().into(),
        Err(_) => {
            let killed = Command::new("kill").args(["-9", &id.to_string()]).status();
            panic!("the run hangs; killed: {killed:?}");
        }
    }
}

/// A run that has ended, or that waits for a person.
pub struct Ran {
    pub bench: Bench,
    pub ended: Ended,
}

impl Ran {
    #[track_caller]
    pub fn of(bench: Bench, arguments: &[&str]) -> Self {
        Self { ended: unattended(bench.command(arguments)), bench }
    }

    #[track_caller]
    pub fn resume(self) -> Self {
        Self::of(self.bench, &["resume", "--headless"])
    }

    /// The exit code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.ended.code, code, "{}\n{}", self.ended.stdout, self.ended.stderr);
        self
    }

    /// The journal is whole and everything follows from it.
    #[track_caller]
    pub fn verified(self) -> Self {
        self.bench.nightloop(&["verify"]).expect(0);
        self
    }

    #[track_caller]
    pub fn report(&self) -> Value {
        self.bench.evidence("halting_report.json")
    }

    #[track_caller]
    pub fn detail(&self) -> String {
        self.report()["detail"].as_str().unwrap().to_owned()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.bench.workspace.join(name)
    }

    #[track_caller]
    pub fn text(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    pub fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// The data of every event of one kind.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.bench.events().into_iter().filter(|(name, _)| name == kind).map(|(_, data)| data).collect()
    }

    #[track_caller]
    pub fn blob(&self, digest: &Value) -> String {
        let (folder, name) = digest.as_str().unwrap().split_at(2);
        let path = self.bench.run_dir().join("blobs/sha256").join(folder).join(name);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }
}

/// A run that goes on while the test looks at it.
pub struct Running {
    pub bench: Bench,
    child: Child,
}

impl Running {
    pub fn of(bench: Bench, arguments: &[&str]) -> Self {
        Self::by(bench.command(arguments), bench)
    }

    /// With a command that was given more, a variable for instance.
    pub fn by(command: Command, bench: Bench) -> Self {
        Self { child: spawned(command), bench }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Comes back when an agent is held, see [`held`].
    #[track_caller]
    pub fn hold(self) -> Self {
        wait_until("an agent is held", || self.bench.workspace.join("held.wait").exists());
        self
    }

    /// Lets the agent go on.
    #[track_caller]
    pub fn release(self) -> Self {
        let go = self.bench.workspace.join("go.wait");
        fs::write(&go, "").unwrap();
        wait_until("it goes on", || !go.exists());
        self
    }

    /// Waits until an agent is held, does something, and lets the agent go on.
    #[track_caller]
    pub fn meanwhile(self, act: impl FnOnce(&Bench)) -> Self {
        let held = self.hold();
        act(&held.bench);
        held.release()
    }

    /// Ends the engine as a crash would.
    pub fn killed(mut self) -> Bench {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.bench
    }

    #[track_caller]
    pub fn wait(self) -> Ran {
        Ran { ended: ends(self.child), bench: self.bench }
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
