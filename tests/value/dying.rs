//! A run whose engine dies once, resumed to its end, and held against one that nobody disturbed.

use std::collections::BTreeMap;
use std::fs;

use nightloop::tool::process::{Marker, survivors};
use serde_json::Value;

use crate::case::unattended;
use crate::harness::{
    Outcome, check, difference, files_below, outcome, run_id, short_name, thorough, wait_until, with_env,
};
use crate::support::Bench;

/// What the machine decides in a run of this playbook.
pub const DECISIONS: &[&str] = &[
    "state.entered",
    "step.began",
    "step.finished",
    "task.put",
    "verification.put",
    "vrc.taken",
    "round.kept",
    "round.closed",
    "research.kept",
    "epic.put",
    "decision.asked",
    "certificate.issued",
    "residual.measured",
];
/// Invocations after which a run that has not ended never will.
const MOST_INVOCATIONS: usize = 12;

/// What is said to a question, after so many answers to it; it may do what was asked for as well.
pub type Answers = fn(&Bench, &Value, usize) -> Vec<&'static str>;

/// What an undisturbed run looks like.
pub struct Undisturbed {
    pub kinds: Vec<String>,
    pub story: Vec<String>,
    /// Which events stand between the announcement of a command and its result.
    in_command: Vec<bool>,
    outcome: Outcome,
    ending: Ending,
}

impl Undisturbed {
    #[track_caller]
    pub fn of(bench: &Bench, answers: Answers) -> Self {
        drive(bench, None, answers).unwrap();
        bench.nightloop(&["verify"]).expect(0);
        let events = bench.events();
        let mut running = false;
        let in_command = events.iter().map(|(kind, data)| {
            running = match kind.as_str() {
                "tool.intended" => data["name"] == "bash",
                "tool.finished" => false,
                _ => running,
            };
            running
        });
        let in_command = in_command.collect();
        let kinds = events.iter().map(|(kind, _)| kind.clone()).collect();
        Self { kinds, story: story(bench), in_command, outcome: outcome(bench), ending: Ending::of(bench) }
    }

    /// The numbers of the events before the first iteration.
    pub fn preparation(&self) -> usize {
        self.kinds.iter().position(|kind| kind == "iteration.began").unwrap()
    }

    /// Does an engine that dies when event `seq` is the next, or the last, leave a command of an agent of which nobody
    /// knows whether it ran? It is not run again, its agent is told, and the work may take another way.
    pub fn leaves_a_command(&self, seq: usize, written: bool) -> bool {
        let last = if written { Some(seq) } else { seq.checked_sub(1) };
        last.is_some_and(|last| self.in_command[last])
    }

    /// Does what comes out of a disturbed run differ?
    pub fn compare(&self, bench: &Bench, point: &str) -> Result<(), String> {
        self.compare_with(bench, point, |outcome| outcome)
    }

    /// The same, wherever the engine died. A file that was written twice was replaced, a service that was started again
    /// has a longer log: an agent that is told so reads a few bytes more or less.
    pub fn compare_work(&self, bench: &Bench, point: &str) -> Result<(), String> {
        self.compare_with(bench, point, |mut outcome| {
            for text in outcome.evidence.values_mut() {
                let lines = text.lines().filter(|line| !line.contains("tokens"));
                *text = lines.collect::<Vec<_>>().join("\n");
            }
            outcome
        })
    }

    fn compare_with(&self, bench: &Bench, point: &str, of: fn(Outcome) -> Outcome) -> Result<(), String> {
        let found = story(bench);
        for (wanted, found) in self.story.iter().zip(&found) {
            check(wanted == found, || format!("{point}:\n  wanted {wanted}\n  found  {found}"))?;
        }
        check(self.story.len() == found.len(), || format!("{point}: {} parts, not {}", found.len(), self.story.len()))?;
        difference(&of(self.outcome.clone()), &of(outcome(bench)))
            .map_or(Ok(()), |what| Err(format!("{point}: {what}")))?;
        is_whole(bench, point)
    }

    /// Does it end otherwise, whatever way it took?
    pub fn compare_ends(&self, bench: &Bench, point: &str) -> Result<(), String> {
        let found = Ending::of(bench);
        check(self.ending == found, || format!("{point}:\n  wanted {:?}\n  found  {found:?}", self.ending))?;
        is_whole(bench, point)
    }
}

/// Where a run came to: how it ended, and what it built.
#[derive(Debug, PartialEq)]
struct Ending {
    status: Value,
    certificate: Value,
    files: BTreeMap<String, String>,
}

impl Ending {
    fn of(bench: &Bench) -> Self {
        let events = bench.events();
        let last = |kind: &str, field: &str| {
            let of_kind = events.iter().rev().find(|(name, _)| name == kind);
            of_kind.map(|(_, data)| data[field].clone()).unwrap_or_default()
        };
        let ours = ["evidence/", "rehearsal.yaml", ".loop_state.json", "AGENTS.md", "build/"];
        let named = files_below(&bench.workspace).into_iter().filter_map(|path| {
            let name = path.strip_prefix(&bench.workspace).unwrap().display().to_string();
            let is_built = !ours.iter().any(|prefix| name.starts_with(prefix)) && !name.ends_with(".md");
            is_built.then(|| (name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()))
        });
        Self {
            status: last("run.halted", "status"),
            certificate: last("certificate.issued", "certificate")["type"].clone(),
            files: named.collect(),
        }
    }
}

fn is_whole(bench: &Bench, point: &str) -> Result<(), String> {
    let verified = bench.nightloop(&["verify"]);
    check(verified.code == 0, || format!("{point}: verify says {}\n{}", verified.code, verified.stdout))?;
    let run = run_id(bench);
    wait_until("no process of the run is left", || survivors(Marker::Run(&run)).is_empty());
    Ok(())
}

/// Every decision and every call for an agent, in order, without what names a moment.
fn story(bench: &Bench) -> Vec<String> {
    let (events, name) = (bench.events(), short_name(bench));
    let told = events.iter().filter_map(|(kind, data)| match kind.as_str() {
        "agent.started" => Some(format!("{kind} {} {}", data["call"], data["subject"])),
        _ if DECISIONS.contains(&kind.as_str()) => Some(format!("{kind} {}", timeless(data).replace(&name, "RUN"))),
        _ => None,
    });
    told.collect()
}

fn timeless(data: &Value) -> String {
    let mut data = data.clone();
    if let Some(fields) = data.as_object_mut() {
        fields.remove("spent");
    }
    let mut out = String::new();
    let text = data.to_string();
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    for word in text.split_inclusive(|c: char| !is_hex(c)) {
        let hex = word.trim_end_matches(|c: char| !is_hex(c));
        out.push_str(&if hex.len() == 40 { word.replace(hex, "COMMIT") } else { word.to_owned() });
    }
    out
}

/// The question that is not settled, with how often it was answered.
fn open_question(bench: &Bench) -> Option<(Value, usize)> {
    let events = bench.events();
    let of = |wanted: &str| -> Vec<&Value> {
        events.iter().filter(|(kind, _)| kind == wanted).map(|(_, data)| data).collect()
    };
    let (answered, settled) = (of("decision.answered"), of("decision.settled"));
    let is_open = |asked: &&Value| {
        let last = settled.iter().rfind(|one| one["id"] == asked["id"]);
        last.is_none_or(|one| one["closed"] != true)
    };
    let asked = of("decision.asked").into_iter().rfind(is_open)?;
    Some((asked.clone(), answered.iter().filter(|one| one["id"] == asked["id"]).count()))
}

/// Runs, answers and resumes until the run has ended; dies once, where there is a plan for it. Was it carried out?
pub fn drive(bench: &Bench, crash: Option<(&str, &str)>, answers: Answers) -> Result<bool, String> {
    let mut died = false;
    let mut arguments: Vec<String> = vec!["run".into(), "--headless".into()];
    for _ in 0..MOST_INVOCATIONS {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let plan: Vec<(&str, &str)> = crash.filter(|_| !died).into_iter().collect();
        let ended = unattended(with_env(bench.command(&words), &plan));
        let told = || format!("{words:?} ended with {}\n{}{}", ended.code, ended.stdout, ended.stderr);
        let answered = words[0] == "answer";
        match ended.code {
            -1 if ended.stderr.contains("planned crash") => died = true,
            0 if answered => {}
            0 => return Ok(died),
            3 if !answered => {
                let (asked, nth) = open_question(bench).ok_or_else(|| format!("nothing is asked: {}", told()))?;
                arguments = vec!["answer".to_owned(), format!("d{}", asked["id"])];
                arguments.extend(answers(bench, &asked, nth).into_iter().map(str::to_owned));
                continue;
            }
            _ => return Err(told()),
        }
        arguments = vec!["resume".into(), "--headless".into()];
    }
    Err("the run does not come to an end".to_owned())
}

/// Dies at `point` and goes on to the end.
pub fn die_and_go_on(bench: &Bench, crash: (&str, &str), answers: Answers) -> Result<(), String> {
    let (_, point) = crash;
    let died = drive(bench, Some(crash), answers).map_err(|why| format!("{point}: {why}"))?;
    check(died, || format!("{point}: it did not die"))
}

/// So many of these, evenly spread, the first and the last among them; all where thoroughness is asked for.
pub fn sample(points: Vec<String>, most: usize) -> Vec<String> {
    if thorough() || points.len() <= most {
        return points;
    }
    (0..most).map(|n| points[n * (points.len() - 1) / (most - 1)].clone()).collect()
}
