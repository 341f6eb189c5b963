//! A small world for one run of the value playbook: documents, a plan, and a model that does its part well unless a
//! test says otherwise.
//!
//! The deliverable is a set of files: task `T1` writes `one.txt`, and so on; the checks look at these files.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::support::{Bench, Ended};

const NORTHSTAR: &str =
    "# Northstar\n\n| id | Metric | Current | Target |\n|---|---|---|---|\n| value_score | value | 0 | 1 |\n";
pub const VISION: &str = "# Vision\n\nPeople who read one.txt find the word one in it, and are glad. Whoever looks for two.txt finds it as well.\n";
pub const PRD: &str = "# PRD\n\n1. one.txt contains the word one.\n2. two.txt contains the word two.\n3. Nothing else is needed by anybody at all.\n";

/// No run here takes a tenth of this: what takes longer hangs.
const LONGEST: Duration = Duration::from_secs(180);

/// Runs a command that nobody types anything for, and that has to end by itself.
pub fn unattended(mut command: Command) -> Ended {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    ends(child)
}

/// Waits for the end of a process, but not for ever.
#[track_caller]
pub fn ends(child: std::process::Child) -> Ended {
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

/// A call that takes until the test releases it, or a minute; `begun` says that it is held.
pub fn hold() -> Value {
    sh("touch begun; for i in $(seq 600); do test -e go && break; sleep 0.1; done")
}

/// A run that is held in the middle of a task, see [`hold`].
pub struct Held {
    pub bench: Bench,
    child: std::process::Child,
}

impl Held {
    /// Starts it and comes back when it is held.
    #[track_caller]
    pub fn start(bench: Bench) -> Self {
        let mut command = bench.command(&["run", "--headless"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let begun = bench.workspace.join("begun");
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while !begun.exists() {
            assert!(std::time::Instant::now() < until, "the held task never began");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { bench, child }
    }

    /// Lets it go on to its end.
    #[track_caller]
    pub fn release(self) -> Ran {
        fs::write(self.bench.workspace.join("go"), "").unwrap();
        Ran { bench: self.bench, ended: ends(self.child) }
    }
}

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

/// Turns in which each inner list of calls is one reply.
pub fn turns(replies: &[&[Value]]) -> Value {
    Value::Array(replies.iter().map(|calls| json!({"text": "I do my part.", "calls": calls})).collect())
}

/// A reply without a tool call: the end of a part that needs no report.
pub fn done() -> Value {
    json!({"text": "Done."})
}

pub fn add_task(id: &str, fields: Value) -> Value {
    let mut input = json!({
        "action": "add",
        "task_id": id,
        "description": format!("Make the part of the deliverable that {id} stands for."),
        "value": format!("Readers get what {id} promises."),
        "acceptance": format!("{id} can be read."),
    });
    for (key, value) in fields.as_object().unwrap() {
        input[key] = value.clone();
    }
    call("manage_task", input)
}

pub fn vrc(score: &str, recommendation: &str, gaps: Value) -> Value {
    call(
        "report_vrc",
        json!({
            "value_score": score,
            "deliverables_total": 2,
            "deliverables_verified": 1,
            "gaps": gaps,
            "recommendation": recommendation,
            "summary": "It is as it is.",
        }),
    )
}

pub fn complete(task: &str) -> Value {
    call("report_task_complete", json!({"task_id": task, "files_created": [], "files_modified": []}))
}

pub fn finding(severity: &str, description: &str) -> Value {
    call(
        "report_eval_finding",
        json!({"severity": severity, "description": description, "user_impact": "They do not get what they came for."}),
    )
}

pub fn correction(action: &str, fields: Value) -> Value {
    let mut input = json!({"action": action, "reason": "The way so far leads nowhere."});
    for (key, value) in fields.as_object().unwrap() {
        input[key] = value.clone();
    }
    call("report_course_correction", input)
}

pub fn research(findings: &str, alternatives: &[&str]) -> Value {
    let input =
        json!({"topic": "How it is done", "findings": findings, "sources": ["a book"], "alternatives": alternatives});
    call("report_research", input)
}

/// What discovery says about the workspace, with some fields of its own.
pub fn discovery(fields: Value) -> Value {
    let mut input = json!({
        "deliverable_type": "document",
        "project_type": "text files",
        "codebase_state": "greenfield",
        "value_proofs": ["one.txt can be read."],
        "tools_required": ["sh"],
    });
    for (key, value) in fields.as_object().unwrap() {
        input[key] = value.clone();
    }
    call("report_discovery", input)
}

/// A critique of the PRD.
pub fn critique(verdict: &str, fields: Value) -> Value {
    let mut input = json!({"verdict": verdict, "reason": format!("My word is {verdict}.")});
    for (key, value) in fields.as_object().unwrap() {
        input[key] = value.clone();
    }
    call("report_critique", input)
}

/// A vision that needs a revision because of these issues: id, severity, category.
pub fn needs_revision(issues: &[(&str, &str, &str)]) -> Value {
    let issue = |(id, severity, category): &(&str, &str, &str)| {
        json!({
            "id": id,
            "severity": severity,
            "category": category,
            "description": format!("{id} is in the way."),
            "evidence": "The words are missing.",
            "suggested_revision": "Say who reads it.",
        })
    };
    let issues: Vec<Value> = issues.iter().map(issue).collect();
    call(
        "report_vision_validation",
        json!({
            "verdict": "NEEDS_REVISION",
            "reason": "Something is in the way.",
            "dimensions": {
                "outcome_grounded": "WEAK",
                "adoption_realistic": "ADEQUATE",
                "causally_sound": "STRONG",
                "failure_aware": "ADEQUATE",
            },
            "strengths": ["It is short."],
            "issues": issues,
        }),
    )
}

/// A verification script that looks for a word in a file.
pub fn script(id: &str, file: &str, word: &str) -> Value {
    let text = format!("#!/bin/sh\ngrep -q {word} {file} || {{ echo \"{word} is not in {file}\"; exit 1; }}\n");
    write(&format!(".loop/verifications/{id}.sh"), &text)
}

pub struct Case {
    pub bench: Bench,
    declared: Map<String, Value>,
    settings: Map<String, Value>,
    steps: Vec<Value>,
}

impl Case {
    /// Two tasks, two checks, everything goes well.
    pub fn new() -> Self {
        let declared = json!({
            "spec": "2.0",
            "playbook": "value",
            "goal": "What the vision promises is there.",
            "halting_certificates": ["EXACT", "CONVERGED"],
            "R_p": "0.05",
            "agents": {"model": {"backend": "rehearsal", "script": "rehearsal.yaml"}},
        });
        let case = Self {
            bench: Bench::in_memory().file("NORTHSTAR.md", NORTHSTAR).file("VISION.md", VISION).file("PRD.md", PRD),
            declared: declared.as_object().unwrap().clone(),
            settings: json!({"quick_vrc": false, "git": {"mode": "off"}}).as_object().unwrap().clone(),
            steps: Vec::new(),
        };
        case.defaults()
    }

    fn defaults(mut self) -> Self {
        for purpose in ["vision_extract", "vision_forces", "vision_causes", "vision_premortem"] {
            self = self.on(purpose, turns(&[&[call("report_vision_pass", json!({"notes": "Nothing to add."}))]]));
        }
        let validation = json!({
            "verdict": "PASS",
            "reason": "It is sound.",
            "dimensions": {
                "outcome_grounded": "STRONG",
                "adoption_realistic": "ADEQUATE",
                "causally_sound": "STRONG",
                "failure_aware": "ADEQUATE",
            },
            "strengths": ["It is short."],
            "issues": [],
        });
        self = self.on("vision_validate", turns(&[&[call("report_vision_validation", validation)]]));
        self = self.on("discover_context", turns(&[&[discovery(json!({}))]]));
        self = self.on("prd_critique", turns(&[&[critique("APPROVE", json!({}))]]));
        let plan = [
            add_task(
                "T1",
                json!({"description": "Write one.txt with the word one.", "check": ["grep", "-q", "one", "one.txt"]}),
            ),
            add_task(
                "T2",
                json!({"description": "Two people look for two.txt; give it to them.", "dependencies": ["T1"]}),
            ),
        ];
        self = self.on("plan", json!([{"text": "A plan.", "calls": plan}, done()]));
        for purpose in ["craap", "clarity", "validate", "connect", "break", "prune", "tidy"] {
            self = self.on(purpose, json!([done()]));
        }
        self = self.on("vrc", turns(&[&[vrc("0.5", "CONTINUE", json!([]))]]));
        self = self.on_nth("vrc", 1, turns(&[&[vrc("0", "CONTINUE", json!([]))]]));
        // Three iterations without any more value would end the run: each check sees a little more.
        for nth in 2..20 {
            let score = format!("0.{}", 30 + nth);
            self = self.on_nth("vrc", nth, turns(&[&[vrc(&score, "CONTINUE", json!([]))]]));
        }
        self = self.on_subject("execute", "T1", turns(&[&[write("one.txt", "one\n")], &[complete("T1")]]));
        self = self.on_subject("execute", "T2", turns(&[&[write("two.txt", "two\n")], &[complete("T2")]]));
        let scripts = [script("unit/one", "one.txt", "one"), script("value/two", "two.txt", "two")];
        self = self.on("generate_verifications", json!([{"text": "Checks.", "calls": scripts}, done()]));
        self = self.on("critical_eval", json!([done()]));
        self.on("exit_gate", turns(&[&[vrc("1", "SHIP_READY", json!([]))]]))
    }

    pub fn declare(mut self, key: &str, value: Value) -> Self {
        self.declared.insert(key.to_owned(), value);
        self
    }

    /// A key of the `value:` section.
    pub fn set(mut self, key: &str, value: Value) -> Self {
        self.settings.insert(key.to_owned(), value);
        self
    }

    pub fn file(mut self, name: &str, content: &str) -> Self {
        self.bench = self.bench.file(name, content);
        self
    }

    /// What the model does for a purpose, unless a more special word fits.
    pub fn on(self, purpose: &str, turns: Value) -> Self {
        self.step(json!({"purpose": purpose}), turns)
    }

    /// The same every time, whatever was said before.
    pub fn always(mut self, purpose: &str, turns: Value) -> Self {
        self.steps.retain(|step| step["purpose"] != purpose);
        self.on(purpose, turns)
    }

    /// Without a Northstar, which ends a run after three iterations without any more value: for the limits behind it.
    pub fn patient(self) -> Self {
        self.declare("spec", json!("1.0")).declare("budget", json!({"max_iterations": 60}))
    }

    pub fn on_nth(self, purpose: &str, nth: u32, turns: Value) -> Self {
        self.step(json!({"purpose": purpose, "nth": nth}), turns)
    }

    pub fn on_subject(self, purpose: &str, subject: &str, turns: Value) -> Self {
        self.step(json!({"purpose": purpose, "subject": subject}), turns)
    }

    pub fn on_subject_nth(self, purpose: &str, subject: &str, nth: u32, turns: Value) -> Self {
        self.step(json!({"purpose": purpose, "subject": subject, "nth": nth}), turns)
    }

    /// What the builder does for a task that a judge made in some step: `one.txt` gets a line more.
    pub fn follow_ups(mut self, prefix: &str, suffix: &str) -> Self {
        for step in 0..100 {
            let task = format!("{prefix}-{step}-{suffix}");
            let mend = sh(&format!("echo one {task} >> one.txt"));
            self = self.on_subject("execute", &task, turns(&[&[mend], &[complete(&task)]]));
        }
        self
    }

    /// A later word about the same call takes the place of the earlier one.
    fn step(mut self, mut which: Value, turns: Value) -> Self {
        let same = |step: &Value| ["purpose", "subject", "nth"].iter().all(|key| step.get(key) == which.get(key));
        self.steps.retain(|step| !same(step));
        which["turns"] = turns;
        self.steps.push(which);
        self
    }

    pub fn written(mut self) -> Bench {
        self.declared.insert("value".to_owned(), Value::Object(self.settings));
        let script = json!({"rehearsal": 1, "steps": self.steps});
        self.bench = self.bench.file("loop.yaml", Value::Object(self.declared).to_string());
        self.bench.file("rehearsal.yaml", script.to_string())
    }

    /// Runs it without anybody there.
    pub fn run(self) -> Ran {
        let bench = self.written();
        let ended = unattended(bench.command(&["run", "--headless"]));
        Ran { bench, ended }
    }
}

/// A run that has ended or stopped.
pub struct Ran {
    pub bench: Bench,
    pub ended: Ended,
}

impl Ran {
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.ended.code, code, "{}\n{}", self.ended.stdout, self.ended.stderr);
        self
    }

    /// Answers the decision and goes on.
    #[track_caller]
    pub fn answer(mut self, words: &[&str]) -> Self {
        let mut arguments = vec!["answer"];
        arguments.extend(words);
        self.bench.nightloop(&arguments).expect(0);
        self.ended = unattended(self.bench.command(&["resume", "--headless"]));
        self
    }

    /// The journal of a run that waits for a person is whole, and nothing in it is made up.
    #[track_caller]
    pub fn stands(self) -> Self {
        let ended = self.bench.nightloop(&["verify"]);
        assert!([0, 2].contains(&ended.code), "{}\n{}", ended.stdout, ended.stderr);
        self
    }

    /// The only question so far: its kind, and that whoever comes finds it in the written inbox.
    #[track_caller]
    pub fn asks(self, kind: &str, words: &str) -> Self {
        let asked = self.events("decision.asked").pop().unwrap();
        assert_eq!(asked["request"]["kind"], kind, "{asked}");
        let brief = self.text("evidence/loop/inbox.md");
        assert!(brief.contains(words), "{brief}");
        self
    }

    /// The journal is whole and everything follows from it.
    #[track_caller]
    pub fn verified(self) -> Self {
        self.bench.nightloop(&["verify"]).expect(0);
        self
    }

    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.bench.events().into_iter().filter(|(name, _)| name == kind).map(|(_, data)| data).collect()
    }

    /// The actions of the steps, in order.
    pub fn actions(&self) -> Vec<String> {
        let began = self.events("step.began");
        began.iter().map(|data| data["action"].as_str().unwrap().to_owned()).collect()
    }

    /// The actions after the gates.
    pub fn work(&self) -> Vec<String> {
        self.actions().into_iter().filter(|action| action != "gate").collect()
    }

    pub fn text(&self, path: &str) -> String {
        let path = self.bench.workspace.join(path);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    pub fn write(&self, path: &str, content: &str) {
        fs::write(self.bench.workspace.join(path), content).unwrap();
    }

    /// The tasks that the engine put, by their last state.
    pub fn task(&self, id: &str) -> Value {
        let put = self.events("task.put").into_iter().rev().find(|data| data["task"]["id"] == id);
        put.unwrap_or_else(|| panic!("no task {id}"))["task"].clone()
    }

    /// The steps as `action: detail`, in order.
    pub fn log(&self) -> Vec<String> {
        let text = self.text("evidence/loop/value/steps.json");
        let steps: Value = serde_json::from_str(&text).unwrap();
        let line = |step: &Value| format!("{}: {} {}", step["action"]["action"], step["outcome"], step["detail"]);
        steps["steps"].as_array().unwrap().iter().map(line).collect()
    }

    /// How many steps had this action.
    pub fn steps(&self, action: &str) -> usize {
        self.actions().iter().filter(|one| *one == action).count()
    }

    pub fn halted(&self) -> Value {
        self.events("run.halted").pop().unwrap()
    }

    /// The first message of every call for a purpose, in order.
    pub fn messages(&self, purpose: &str) -> Vec<String> {
        let started = self.events("agent.started");
        let of_it = started.iter().filter(|data| is_for(data, purpose));
        of_it.map(|data| self.blob(data["message"].as_str().unwrap())).collect()
    }

    fn blob(&self, digest: &str) -> String {
        let (head, rest) = digest.split_at(2);
        let path = self.bench.run_dir().join("blobs/sha256").join(head).join(rest);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// How often an agent was called for a purpose.
    pub fn calls(&self, purpose: &str) -> usize {
        let started = self.events("agent.started");
        started.iter().filter(|data| is_for(data, purpose)).count()
    }
}

/// Is this the beginning of a call for the purpose? Where a role has one purpose only, its name is the call's alone.
fn is_for(started: &Value, purpose: &str) -> bool {
    started["call"].as_str().unwrap().contains(&format!(".{purpose}."))
}
