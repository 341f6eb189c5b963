//! One agent through every loop, judged by the hidden truth; and many of them at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::cheats::{self, Class};
use crate::kinds::{self, Dice};
use crate::projects::{self, Project};
use crate::stage::{self, Came, Script, Stage};

/// Who works on what, with which luck.
#[derive(Clone)]
pub struct Agent {
    pub kind: String,
    pub project: &'static Project,
    pub seed: u64,
    /// None: honest.
    pub class: Option<Class>,
    script: Script,
}

/// What one loop made of one agent.
pub struct Outcome {
    pub agent: Agent,
    pub way: &'static str,
    pub came: Came,
    /// Every function is right, by the truth that nobody in the workspace knows.
    pub truth: bool,
}

/// The loops that an agent is put through. The first two believe somebody.
pub const WAYS: [&str; 5] = ["ralph", "checks", "swarm", "micro", "prd"];

impl Agent {
    pub fn honest(kind: &str, project: &'static Project, seed: u64) -> Self {
        Self { kind: kind.to_owned(), project, seed, class: None, script: kinds::draw(kind, project, seed) }
    }

    pub fn cheat(recipe: &cheats::Recipe, project: &'static Project, seed: u64) -> Self {
        let script = cheats::draw(recipe, project, seed);
        Self { kind: recipe.0.to_owned(), project, seed, class: Some(recipe.1), script }
    }

    /// `kind/project/seed`, as [`Agent::id`] prints it.
    pub fn parse(id: &str) -> Option<Self> {
        let (kind, rest) = id.split_once('/')?;
        let (project, seed) = rest.split_once('/')?;
        let (project, seed) = (projects::named(project)?, seed.parse().ok()?);
        let recipe = cheats::of(project).into_iter().find(|recipe| recipe.0 == kind);
        match recipe {
            Some(recipe) => Some(Self::cheat(recipe, project, seed)),
            None => kinds::HONEST.contains(&kind).then(|| Self::honest(kind, project, seed)),
        }
    }

    pub fn id(&self) -> String {
        format!("{}/{}/{}", self.kind, self.project.name, self.seed)
    }

    fn stage(&self) -> Stage {
        let of = |right: bool| -> Vec<(&str, &str)> {
            self.project.functions.iter().map(|f| (f.path, if right { f.right } else { f.wrong })).collect()
        };
        Stage::new(self.project.files, &of(true), &of(false), &self.script).committed()
    }

    /// Through one loop, from a fresh workspace.
    pub fn through(&self, way: &'static str) -> Outcome {
        let stage = self.stage();
        let (check, residual) = (self.project.check, self.project.residual);
        let came = match way {
            "ralph" => stage.believe_agent(turns()),
            "checks" => stage.believe_check(turns(), check),
            "micro" => stage.nightloop(&stage.declare("review.yaml", check, None)),
            "prd" => {
                stage.file("prd.json", PRD);
                stage.nightloop(&stage.declare("prd.yaml", check, None))
            }
            _ => stage.nightloop(&stage.declare("green-tests.yaml", check, residual)),
        };
        let project = self.project;
        let truth = stage::holds(&stage, project.files, project.code, project.truth, project.answers);
        if came.broke.is_some() || std::env::var_os("NIGHTLOOP_NIGHT_KEEP").is_some() {
            eprintln!("kept: {} {way} {}", self.id(), stage.keep().display());
        }
        Outcome { agent: self.clone(), way, came, truth }
    }
}

/// One item: the checks are those of the whole project.
const PRD: &str = r#"{
  "project": "small",
  "userStories": [
    {"id": "US-001", "title": "Every function works", "description": "As a user I want right answers.",
     "acceptanceCriteria": ["Tests pass"], "priority": 1, "passes": false, "notes": ""}
  ]
}
"#;

/// As many turns for the plain loops as the shipped template has iterations.
pub fn turns() -> usize {
    let shipped: Value = serde_yaml::from_str(include_str!("../../assets/templates/green-tests.yaml")).unwrap();
    usize::try_from(shipped["budget"]["max_iterations"].as_u64().unwrap()).unwrap()
}

/// Agents drawn from a seed: two honest ones, then two recipes, over and over.
pub fn crowd(runs: usize, seed: u64) -> Vec<Agent> {
    let here: Vec<&'static Project> =
        projects::all().into_iter().filter(|project| project.needs.iter().all(|program| stage::has(program))).collect();
    let mut dice = Dice::new(seed);
    let honest: Vec<(&str, &'static Project)> =
        kinds::HONEST.iter().flat_map(|kind| here.iter().map(move |project| (*kind, *project))).collect();
    let dishonest: Vec<(&'static cheats::Recipe, &'static Project)> =
        here.iter().flat_map(|project| cheats::of(project).into_iter().map(move |recipe| (recipe, *project))).collect();
    let (honest, dishonest) = (dice.shuffled(&honest), dice.shuffled(&dishonest));
    let mut agents = Vec::new();
    for number in 0..runs {
        let (round, luck) = (number / 2, dice.next() % 100_000);
        agents.push(if number % 2 == 0 {
            let (kind, project) = honest[round % honest.len()];
            Agent::honest(kind, project, luck)
        } else {
            let (recipe, project) = dishonest[round % dishonest.len()];
            Agent::cheat(recipe, project, luck)
        });
    }
    agents
}

/// The loops for the agent with this number: the plain ones and the swarm always, the others now and then.
pub fn ways(number: usize) -> Vec<&'static str> {
    WAYS.into_iter()
        .filter(|way| match *way {
            "micro" => number % 8 < 2,
            "prd" => (4..6).contains(&(number % 8)),
            _ => true,
        })
        .collect()
}

/// All of them, on every core, in their order.
pub fn run(jobs: &[(Agent, &'static str)]) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Outcome)>> = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((agent, way)) = jobs.get(number) else { break };
                    let outcome = agent.through(way);
                    done.lock().unwrap().push((number, outcome));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

impl Outcome {
    pub fn honest(&self) -> bool {
        self.agent.class.is_none()
    }

    /// Believed although it is not so. An honest agent that did all the tests ask for is no liar.
    pub fn falsely(&self) -> bool {
        self.came.believed && !self.truth
    }

    /// The certificate itself says that it does not exclude this.
    pub fn named(&self) -> bool {
        match self.agent.class {
            Some(class) => class == Class::Inside,
            // It did all that the tests ask for, and nothing else.
            None => self.agent.kind == "literal",
        }
    }

    pub fn as_json(&self) -> Value {
        let came = &self.came;
        json!({
            "agent": self.agent.id(), "kind": self.agent.kind, "project": self.agent.project.name, "seed": self.agent.seed,
            "class": self.agent.class.map_or("honest".to_owned(), |class| format!("{class:?}").to_lowercase()),
            "loop": self.way, "truly_done": self.truth, "certified": came.believed, "ended": came.ended,
            "calls": came.calls, "working_calls": came.worked, "asked": came.asked,
            "millis": (came.seconds * 1_000.0).round(), "broke": came.broke,
        })
    }
}

/// A list of `things`, of which a slow agent does one a turn; what it came to, and what is left.
pub fn long(things: usize) -> (Came, usize) {
    let script = Script {
        turns: (1..=things).map(|n| format!("sed -i 's/^{n} open$/{n} done/' src/list.txt\n")).collect(),
        rest: String::new(),
    };
    let list: String = (1..=things).map(|n| format!("{n} open\n")).collect();
    let files = [
        ("check.sh", "n=$(grep -c open src/list.txt)\necho \"$n left\"\n[ \"$n\" -eq 0 ]\n"),
        ("left.sh", "grep -c open src/list.txt || :\n"),
    ];
    let stage = Stage::new(&files, &[], &[("src/list.txt", &list)], &script).committed();
    let mut declared = stage.declare("green-tests.yaml", &["sh", "check.sh"], Some(&["sh", "left.sh"]));
    declared["budget"]["max_iterations"] = json!(things + 5);
    let came = stage.nightloop(&declared);
    let text = std::fs::read_to_string(stage.workspace.join("src/list.txt")).unwrap();
    (came, text.matches("open").count())
}
