//! A small world for one run of the value playbook: documents, a plan, and a model that does its part well unless a
//! test says otherwise.
//!
//! The deliverable is a set of files: task `T1` writes `one.txt`, and so on; the checks look at these files.

use std::fs;

use serde_json::{Map, Value, json};

use crate::support::{Bench, Ended};

const NORTHSTAR: &str =
    "# Northstar\n\n| id | Metric | Current | Target |\n|---|---|---|---|\n| value_score | value | 0 | 1 |\n";
pub const VISION: &str = "# Vision\n\nPeople who read one.txt find the word one in it, and are glad. Whoever looks for two.txt finds it as well.\n";
pub const PRD: &str = "# PRD\n\n1. one.txt contains the word one.\n2. two.txt contains the word two.\n3. Nothing else is needed by anybody at all.\n";

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
        let discovery = json!({
            "deliverable_type": "document",
            "project_type": "text files",
            "codebase_state": "greenfield",
            "value_proofs": ["one.txt can be read."],
            "tools_required": ["sh"],
        });
        self = self.on("discover_context", turns(&[&[call("report_discovery", discovery)]]));
        let approve = call("report_critique", json!({"verdict": "APPROVE", "reason": "It can be done."}));
        self = self.on("prd_critique", turns(&[&[approve]]));
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

    pub fn on_nth(self, purpose: &str, nth: u32, turns: Value) -> Self {
        self.step(json!({"purpose": purpose, "nth": nth}), turns)
    }

    pub fn on_subject(self, purpose: &str, subject: &str, turns: Value) -> Self {
        self.step(json!({"purpose": purpose, "subject": subject}), turns)
    }

    pub fn on_subject_nth(self, purpose: &str, subject: &str, nth: u32, turns: Value) -> Self {
        self.step(json!({"purpose": purpose, "subject": subject, "nth": nth}), turns)
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
        let ended = bench.nightloop(&["run", "--headless"]);
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
        self.ended = self.bench.nightloop(&["resume", "--headless"]);
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

    pub fn halted(&self) -> Value {
        self.events("run.halted").pop().unwrap()
    }

    /// How often an agent was called for a purpose.
    pub fn calls(&self, purpose: &str) -> usize {
        let started = self.events("agent.started");
        started.iter().filter(|data| data["call"].as_str().unwrap().contains(&format!(".{purpose}."))).count()
    }
}
