//! A small world for one run with an author and a critic.
//!
//! Item `A` wants the word A in `a.txt`, and so on. Unless a test says otherwise the author of an item writes just
//! that, and the critic finds that all is well.

use std::fs;

use serde_json::{Value, json};

use crate::support::Bench;
pub use crate::support::case::{Case, Ran, call, held, sh, write};

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

impl Case {
    fn passes(playbook: &str) -> Self {
        Self::of(&json!({
            "spec": "1.0",
            "playbook": playbook,
            "goal": "What is asked for is there.",
            "acceptance_criteria": [
                {"id": "sound", "text": "Nothing is broken.", "check": ["sh", "-c", "test ! -f broken"]},
            ],
            "halting_certificates": ["EXACT"],
            "budget": {"max_iterations": 20},
        }))
    }

    /// Items in this order, each with its own check.
    pub fn prd(ids: &[&str]) -> Self {
        let items: Vec<Value> = ids.iter().map(|id| item(id)).collect();
        let text = serde_json::to_string_pretty(&json!({"project": "small", "userStories": items})).unwrap() + "\n";
        let mut case = Self::passes("prd").file("prd.json", &text).file(".gitignore", "effects.log\n");
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
        Self::passes("micro").check("word", "grep -q A a.txt || { cat a.txt; exit 1; }")
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

    /// All turns of a call.
    pub fn turns(self, purpose: &str, subject: Option<&str>, nth: Option<u32>, turns: Value) -> Self {
        let mut which = json!({"purpose": purpose});
        if let Some(subject) = subject {
            which["subject"] = json!(subject);
        }
        if let Some(nth) = nth {
            which["nth"] = json!(nth);
        }
        self.step(which, turns)
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
}

impl Ran {
    /// The exit code, and that `verify` finds nothing wrong.
    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        self.expect(code).verified()
    }

    /// It stopped because nobody is there to be asked.
    #[track_caller]
    pub fn waits(self) -> Self {
        self.ends(3).is("EXIT_BLOCKED", "BACKPRESSURE_SIGNAL")
    }

    /// No certificate says that the goal was reached.
    pub fn is_uncertified(&self) -> bool {
        self.events("certificate.issued").iter().all(|data| data["certificate"]["type"] == "NONE")
    }

    #[track_caller]
    pub fn converged(self) -> Self {
        self.ends(0).is("EXIT_CONVERGED", "PASS")
    }

    #[track_caller]
    pub fn is(self, status: &str, reason: &str) -> Self {
        let report = self.report();
        assert_eq!(
            (report["status"].as_str(), report["stop_reason"].as_str()),
            (Some(status), Some(reason)),
            "{report}"
        );
        self
    }

    #[track_caller]
    pub fn answer(self, id: &str, words: &str) -> Self {
        self.bench.nightloop(&["answer", id, words]).expect(0);
        self
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
    pub fn called(&self) -> Vec<String> {
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
