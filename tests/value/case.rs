//! A small world for one run of the value playbook: documents, a plan, and a model that does its part well unless a
//! test says otherwise.
//!
//! The deliverable is a set of files: task `T1` writes `one.txt`, and so on; the checks look at these files.

use serde_json::{Value, json};

pub use crate::support::case::{Case, Ran, Running, call, ends, held, sh, unattended, with, write};

/// What `nightloop init --template vision` writes.
const TEMPLATE: &str = include_str!("../../assets/templates/vision.yaml");
const NORTHSTAR: &str = include_str!("../../assets/templates/NORTHSTAR-value.md");
pub const VISION: &str = "# Vision\n\nPeople who read one.txt find the word one in it, and are glad. Whoever looks for two.txt finds it as well.\n";
pub const PRD: &str = "# PRD\n\n1. one.txt contains the word one.\n2. two.txt contains the word two.\n3. Nothing else is needed by anybody at all.\n";

/// Turns in which each inner list of calls is one reply.
pub fn turns(replies: &[&[Value]]) -> Value {
    Value::Array(replies.iter().map(|calls| json!({"text": "I do my part.", "calls": calls})).collect())
}

/// A reply without a tool call: the end of a part that needs no report.
pub fn done() -> Value {
    json!({"text": "Done."})
}

pub fn add_task(id: &str, fields: Value) -> Value {
    call(
        "manage_task",
        with(
            json!({
                "action": "add",
                "task_id": id,
                "description": format!("Make the part of the deliverable that {id} stands for."),
                "value": format!("Readers get what {id} promises."),
                "acceptance": format!("{id} can be read."),
            }),
            &fields,
        ),
    )
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
    call(
        "report_course_correction",
        with(json!({"action": action, "reason": "The way so far leads nowhere."}), &fields),
    )
}

/// Whoever works against a check says that it is wrong.
pub fn wrong_check(check: &str) -> Value {
    call("report_wrong_check", json!({"check": check, "reason": "The PRD promises the word one, in English."}))
}

pub fn research(findings: &str, alternatives: &[&str]) -> Value {
    let input =
        json!({"topic": "How it is done", "findings": findings, "sources": ["a book"], "alternatives": alternatives});
    call("report_research", input)
}

/// What discovery says about the workspace, with some fields of its own.
pub fn discovery(fields: Value) -> Value {
    call(
        "report_discovery",
        with(
            json!({
                "deliverable_type": "document",
                "project_type": "text files",
                "codebase_state": "greenfield",
                "value_proofs": ["one.txt can be read."],
                "tools_required": ["sh"],
            }),
            &fields,
        ),
    )
}

/// A critique of the PRD.
pub fn critique(verdict: &str, fields: Value) -> Value {
    call("report_critique", with(json!({"verdict": verdict, "reason": format!("My word is {verdict}.")}), &fields))
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

impl Case {
    /// Two tasks, two checks, everything goes well. As shipped, but with few value checks, and no repository.
    pub fn new() -> Self {
        Self::template().set("quick_vrc", json!(false)).set("git", json!({"mode": "off"})).defaults()
    }

    /// The same exactly as shipped, with a value that rises in no check: only what is done counts as progress.
    pub fn shipped() -> Self {
        let steady = turns(&[&[vrc("0.88", "CONTINUE", json!([]))]]);
        let calm = json!({
            "pattern": "none", "cause": "It is hard.", "evidence": [], "action": "CONTINUE", "rationale": "Go on.",
            "re_evaluate_after": 5, "changes": {},
        });
        let calm = turns(&[&[call("report_strategy_change", calm)]]);
        let case = Self::template().defaults().always("vrc", steady.clone()).always("vrc_quick", steady);
        case.on("process_monitor", calm).on("plan_health_check", json!([done()]))
    }

    fn template() -> Self {
        let mut declared: Value = serde_yaml::from_str(TEMPLATE).unwrap();
        // One scripted model plays every role.
        for key in ["agents", "roles"] {
            declared.as_object_mut().unwrap().remove(key);
        }
        Self::of(&declared).file("NORTHSTAR.md", NORTHSTAR).file("VISION.md", VISION).file("PRD.md", PRD)
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
        let whole = call("report_coherence", json!({"overall": "HEALTHY", "findings": []}));
        self = self.on("coherence_eval", turns(&[&[whole]]));
        self.on("exit_gate", turns(&[&[vrc("1", "SHIP_READY", json!([]))]]))
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
}

impl Ran {
    /// Answers the decision and goes on.
    #[track_caller]
    pub fn answer_and_go_on(self, words: &[&str]) -> Self {
        let arguments: Vec<&str> = ["answer"].iter().chain(words).copied().collect();
        self.bench.nightloop(&arguments).expect(0);
        self.resume()
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

    /// The actions of the steps, in order.
    pub fn actions(&self) -> Vec<String> {
        let began = self.events("step.began");
        began.iter().map(|data| data["action"].as_str().unwrap().to_owned()).collect()
    }

    /// The actions after the gates.
    pub fn work(&self) -> Vec<String> {
        self.actions().into_iter().filter(|action| action != "gate").collect()
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
        of_it.map(|data| self.blob(&data["message"])).collect()
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
