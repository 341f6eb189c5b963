//! A small world for one run with an author and a critic.
//!
//! Item `A` wants the word A in `a.txt`, and so on. Unless a test says otherwise the author of an item writes just
//! that, and the critic finds that all is well.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Map, Value, json};

use crate::harness::wait_until;
use crate::support::{Bench, Ended};

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

/// The author's report; a retry says what is different.
pub fn report(retry: Option<&str>) -> Value {
    let mut input = json!({
        "intent": "Do what is asked.",
        "actions": ["Wrote the file."],
        "files_touched": ["a.txt"],
        "notes": "It is in its file.",
        "learnings": ["Files are small here."],
    });
    if let Some(to) = retry {
        input["retry"] = json!({"kind": "variable_changed", "what": "the words", "from": "before", "to": to});
    }
    call("submit_author_report", input)
}

pub fn concern(severity: &str, description: &str) -> Value {
    json!({
        "severity": severity,
        "description": description,
        "location": "a.txt:1",
        "recommendation": "Write it better.",
    })
}

/// A critique of an item with one criterion, or of none.
pub fn critique(status: &str, help: bool, concerns: Value) -> Value {
    let input = json!({
        "status": status,
        "can_further_iteration_help": help,
        "recommendation": "CONTINUE",
        "reason": "I looked at it.",
        "concerns": concerns,
    });
    call("submit_critique", input)
}

/// The same with a judgement of the criterion.
pub fn judging(critique: Value, criterion: &str, met: bool, artifact: &str) -> Value {
    let mut critique = critique;
    critique["input"]["judged"] =
        json!([{"criterion": criterion, "met": met, "artifact": artifact, "why": "It is there."}]);
    critique
}

/// The critic of an item is content.
pub fn content(file: &str) -> Value {
    judging(critique("VERIFIED", false, json!([])), "1", true, file)
}

/// One item of a PRD.
pub fn item(id: &str) -> Value {
    json!({
        "id": id,
        "title": format!("Item {id}"),
        "acceptanceCriteria": [format!("{} has the word {id}", file_of(id))],
        "passes": false,
        "notes": "",
    })
}

pub fn file_of(id: &str) -> String {
    format!("{}.txt", id.to_lowercase())
}

pub struct Case {
    pub bench: Bench,
    pub declared: Map<String, Value>,
    steps: Vec<Value>,
}

impl Case {
    fn new(playbook: &str) -> Self {
        let declared = json!({
            "spec": "1.0",
            "playbook": playbook,
            "goal": "What is asked for is there.",
            "acceptance_criteria": [
                {"id": "sound", "text": "Nothing is broken.", "check": ["sh", "-c", "test ! -f broken"]},
            ],
            "halting_certificates": ["EXACT"],
            "budget": {"max_iterations": 20},
            "agents": {"model": {"backend": "rehearsal", "script": "rehearsal.yaml"}},
        });
        let declared = declared.as_object().unwrap().clone();
        Self { bench: Bench::in_memory(), declared, steps: Vec::new() }
    }

    /// Items in this order, each with its own check.
    pub fn prd(ids: &[&str]) -> Self {
        let items: Vec<Value> = ids.iter().map(|id| item(id)).collect();
        let text = serde_json::to_string_pretty(&json!({"project": "small", "userStories": items})).unwrap() + "\n";
        let mut case = Self::new("prd").file("prd.json", &text).file(".gitignore", "effects.log\n");
        for id in ids {
            let (check, file) = (format!("grep -q {id} {0} || {{ cat {0}; exit 1; }}", file_of(id)), file_of(id));
            case = case.prd_item(id, json!({"check": ["sh", "-c", check]}));
            case = case.author(id, None, &[write(&file, &format!("{id}\n")), report(None)]);
            case = case.critic(Some(id), None, &[content(&file)]);
        }
        case
    }

    /// A microloop: `a.txt` has to have the word A.
    pub fn micro() -> Self {
        Self::new("micro").check("word", "grep -q A a.txt || { cat a.txt; exit 1; }")
    }

    pub fn declare(mut self, key: &str, value: Value) -> Self {
        self.declared.insert(key.to_owned(), value);
        self
    }

    pub fn check(mut self, id: &str, script: &str) -> Self {
        let check = json!({"id": id, "text": format!("{id} holds."), "check": ["sh", "-c", script]});
        self.declared["acceptance_criteria"].as_array_mut().unwrap().push(check);
        self
    }

    /// A part of `prd:` or `micro:`.
    pub fn set(mut self, key: &str, value: Value) -> Self {
        let playbook = self.declared["playbook"].as_str().unwrap().to_owned();
        self.declared.entry(playbook).or_insert_with(|| json!({}))[key] = value;
        self
    }

    pub fn prd_item(mut self, id: &str, fields: Value) -> Self {
        let items = &mut self.declared.entry("prd").or_insert_with(|| json!({}))["items"];
        for (key, value) in fields.as_object().unwrap() {
            items[id][key] = value.clone();
        }
        self
    }

    pub fn unconfined(self) -> Self {
        self.declare("sandbox", json!({"mode": "off"}))
    }

    pub fn file(mut self, name: &str, content: &str) -> Self {
        self.bench = self.bench.file(name, content);
        self
    }

    /// All turns of a call. A later word about the same call takes the place of the earlier one.
    pub fn turns(mut self, purpose: &str, subject: Option<&str>, nth: Option<u32>, turns: Value) -> Self {
        let mut step = json!({"purpose": purpose});
        if let Some(subject) = subject {
            step["subject"] = json!(subject);
        }
        if let Some(nth) = nth {
            step["nth"] = json!(nth);
        }
        let of = |step: &Value| (step["purpose"].clone(), step["subject"].clone(), step["nth"].clone());
        self.steps.retain(|known| of(known) != of(&step));
        step["turns"] = turns;
        self.steps.push(step);
        self
    }

    /// An author of an item who does all in one reply.
    pub fn author(self, item: &str, nth: Option<u32>, calls: &[Value]) -> Self {
        self.turns("author", Some(item), nth, json!([{"calls": calls}]))
    }

    /// An author of an item that fails in a way of its own at each of the first attempts.
    pub fn failing(mut self, item: &str, attempts: u32) -> Self {
        let words = ["wrong", "bad", "poor", "sad", "ill", "odd", "off", "low"];
        for nth in 1..=attempts {
            let word = words[nth as usize - 1];
            let calls = [write(&file_of(item), &format!("{word}\n")), report((nth > 1).then_some(word))];
            self = self.author(item, Some(nth), &calls);
        }
        self
    }

    /// The author of a microloop in its `nth` pass.
    pub fn writes(self, nth: u32, text: &str) -> Self {
        self.turns("author", None, Some(nth), json!([{"calls": [write("a.txt", text), report(None)]}]))
    }

    pub fn critic(self, item: Option<&str>, nth: Option<u32>, calls: &[Value]) -> Self {
        self.turns("critic", item, nth, json!([{"calls": calls}]))
    }

    /// A program without a cage in the place of the critic: it runs a command, then hands in its critique.
    pub fn program_critic(self, command: &str, critique: &Value) -> Self {
        let script = format!("cat >/dev/null; {command}; printf '%s\\n' '```json' '{}' '```'", critique["input"]);
        let mut agents = self.declared["agents"].clone();
        agents["judge"] = json!({"backend": "command", "command": ["sh", "-c", script]});
        self.unconfined().declare("agents", agents).declare("roles", json!({"critic": "judge"}))
    }

    pub fn says(self, nth: u32, critique: Value) -> Self {
        self.critic(None, Some(nth), &[critique])
    }

    /// Writes loop.yaml and rehearsal.yaml. JSON is YAML too.
    pub fn written(self) -> Bench {
        let script = json!({"rehearsal": 1, "model": "rehearsal-1", "steps": self.steps});
        let declared = Value::Object(self.declared);
        for (name, value) in [("loop.yaml", &declared), ("rehearsal.yaml", &script)] {
            fs::write(self.bench.workspace.join(name), serde_json::to_string_pretty(value).unwrap()).unwrap();
        }
        self.bench
    }

    pub fn run(self) -> Ran {
        let bench = self.written();
        let ended = bench.nightloop(&["run", "--headless"]);
        Ran { bench, ended }
    }

    /// Starts the run; the test does something meanwhile.
    pub fn start(self) -> Running {
        let bench = self.written();
        let mut command: Command = bench.command(&["run", "--headless"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Running { bench, child }
    }
}

/// A call that waits until the test lets it go on; see [`Running::meanwhile`].
pub fn held() -> Value {
    sh("touch held.wait; until [ -f go.wait ]; do sleep 0.01; done; rm -f held.wait go.wait")
}

pub struct Running {
    pub bench: Bench,
    child: Child,
}

impl Running {
    /// Waits until an agent is held, does something, and lets the agent go on.
    pub fn meanwhile(self, act: impl FnOnce(&Bench)) -> Self {
        let place = self.bench.workspace.clone();
        wait_until("an agent is held", || place.join("held.wait").exists());
        act(&self.bench);
        fs::write(place.join("go.wait"), "").unwrap();
        wait_until("it goes on", || !place.join("go.wait").exists());
        self
    }

    pub fn wait(self) -> Ran {
        let ended = self.child.wait_with_output().unwrap().into();
        Ran { bench: self.bench, ended }
    }
}

/// A run that has ended, or that waits for a person.
pub struct Ran {
    pub bench: Bench,
    pub ended: Ended,
}

impl Ran {
    /// The exit code, and that `verify` finds nothing wrong.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        let told = format!("{}\n{}", self.ended.stdout, self.ended.stderr);
        assert_eq!(self.ended.code, code, "{told}");
        let verified = self.bench.nightloop(&["verify"]);
        assert_eq!(verified.code, 0, "{}\n{}", verified.stdout, verified.stderr);
        self
    }

    /// It stopped because nobody is there to be asked.
    #[track_caller]
    pub fn waits(self) -> Self {
        self.expect(3).is("EXIT_BLOCKED", "BACKPRESSURE_SIGNAL")
    }

    /// No certificate says that the goal was reached.
    pub fn is_uncertified(&self) -> bool {
        self.events("certificate.issued").iter().all(|data| data["certificate"]["type"] == "NONE")
    }

    #[track_caller]
    pub fn converged(self) -> Self {
        self.expect(0).is("EXIT_CONVERGED", "PASS")
    }

    #[track_caller]
    pub fn is(self, status: &str, reason: &str) -> Self {
        let report = self.bench.evidence("halting_report.json");
        assert_eq!(
            (report["status"].as_str(), report["stop_reason"].as_str()),
            (Some(status), Some(reason)),
            "{report}"
        );
        self
    }

    #[track_caller]
    pub fn detail(&self) -> String {
        self.bench.evidence("halting_report.json")["detail"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub fn answer(self, id: &str, words: &str) -> Self {
        self.bench.nightloop(&["answer", id, words]).expect(0);
        self
    }

    pub fn resume(self) -> Self {
        let ended = self.bench.nightloop(&["resume", "--headless"]);
        Self { bench: self.bench, ended }
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

    #[track_caller]
    pub fn prd(&self) -> Value {
        serde_json::from_str(&self.text("prd.json")).unwrap()
    }

    /// Which items pass, by the file.
    #[track_caller]
    pub fn passing(&self) -> Vec<String> {
        passing(&self.prd())
    }

    /// The data of every event of one kind.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.bench.events().into_iter().filter(|(name, _)| name == kind).map(|(_, data)| data).collect()
    }

    /// The item and the attempt of every iteration.
    pub fn chosen(&self) -> Vec<String> {
        let chosen = self.events("item.chosen");
        chosen.iter().map(|data| format!("{} {}", data["item"].as_str().unwrap(), data["pass"])).collect()
    }

    pub fn verdicts(&self) -> Vec<String> {
        self.events("pass.judged").iter().map(|data| data["verdict"].as_str().unwrap().to_owned()).collect()
    }

    /// The route after every pass; a detour with its name.
    pub fn routes(&self) -> Vec<String> {
        let routes = self.events("route.decided");
        let name = |route: &Value| match route {
            Value::String(name) => name.clone(),
            detour => format!("DETOUR {}", detour["DETOUR"].as_str().unwrap()),
        };
        routes.iter().map(|data| name(&data["route"])).collect()
    }

    /// The items that were flipped, in order.
    pub fn flipped(&self) -> Vec<String> {
        let settled = self.events("item.settled");
        let flipped = settled.iter().filter(|data| data["passes"] == true);
        flipped.map(|data| data["item"].as_str().unwrap().to_owned()).collect()
    }

    /// What `ask` asked for: (id, kind, subject).
    pub fn asked(&self) -> Vec<(u64, String, String)> {
        let asked = self.events("decision.asked");
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        asked
            .iter()
            .map(|data| {
                (data["id"].as_u64().unwrap(), word(&data["request"]["kind"]), word(&data["request"]["subject"]))
            })
            .collect()
    }

    /// What every call for an agent was for, in order.
    pub fn calls(&self) -> Vec<String> {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let started = self.events("agent.started");
        started
            .iter()
            .map(|data| format!("{} {}", word(&data["role"]), word(&data["subject"])).trim().to_owned())
            .collect()
    }

    /// What agents were told in answer to one of their tools.
    pub fn told(&self, tool: &str) -> Vec<String> {
        let of_tool = |data: &&Value| data["name"] == tool;
        let intended = self.events("tool.intended");
        let ids: Vec<&Value> = intended.iter().filter(of_tool).map(|data| &data["id"]).collect();
        let finished = self.events("tool.finished").into_iter();
        let told = finished.filter(|data| ids.contains(&&data["id"]));
        told.map(|data| data["text"]["inline"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// What the `nth` call of a role was told at first.
    #[track_caller]
    pub fn prompt_of(&self, role: &str, nth: usize) -> String {
        let started = self.events("agent.started");
        let started = started.iter().filter(|data| data["role"] == role).nth(nth - 1).unwrap();
        let message: Value = serde_json::from_str(&self.blob(&started["message"])).unwrap();
        match &message["content"] {
            Value::String(text) => text.clone(),
            parts => parts.as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect(),
        }
    }

    #[track_caller]
    pub fn blob(&self, digest: &Value) -> String {
        let (folder, name) = digest.as_str().unwrap().split_at(2);
        fs::read_to_string(self.bench.run_dir().join("blobs/sha256").join(folder).join(name)).unwrap()
    }
}

#[track_caller]
pub fn passing(prd: &Value) -> Vec<String> {
    let items = prd["userStories"].as_array().unwrap();
    let passing = items.iter().filter(|item| item["passes"] == true);
    passing.map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// The text of prd.json changed by hand: `act` changes the document.
pub fn edit(bench: &Bench, act: impl FnOnce(&mut Value)) {
    let path = bench.workspace.join("prd.json");
    let mut prd: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    act(&mut prd);
    fs::write(path, serde_json::to_string_pretty(&prd).unwrap() + "\n").unwrap();
}
