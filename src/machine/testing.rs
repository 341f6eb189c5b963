//! A run in memory for tests of the machine and of playbooks: the real step, the real fold, no engine, no IO.
//!
//! [`Sim`] records events one by one or does what the machine wants, as an engine would in a small [`World`].
//! Playbooks add what is their own in their rooms (`impl Sim`).

use std::collections::BTreeMap;

use super::call::CallTodo;
use super::event::*;
use super::fold::{self, Stamped};
use super::iteration::Iteration;
use super::next;
use super::playbook::Playbook;
use super::run::RunState;
use super::state::State;
use super::step::{self, Input};
use super::todo::Todo;
use crate::model::decision::{Answer, Patience};
use crate::model::digest::Digest;
use crate::model::ids::{Role, RunId};
use crate::model::loop_file;
use crate::model::northstar::Metric;
use crate::model::purpose::Purpose;
use crate::model::report::{Report, SolverReport};

/// One criterion with a check, one measured metric; every certificate of success is declared.
pub const LOOP: &str = "goal: Greet people.\nacceptance_criteria: [{ id: a, text: It greets., check: [x] }]\nhalting_certificates: [EXACT, CONVERGED]\nR_p: \"0.1\"\nnorthstar: { measure: { vc-1: [x] } }\nagents: { a: { backend: anthropic, model: m } }\n";

const TS: &str = "2026-01-01T00:00:00Z";

/// Finds the playbook that a declaration names.
pub type Choose = fn(loop_file::Playbook) -> &'static dyn Playbook;

/// The least that a playbook can be: one solver an iteration.
pub struct OneSolver;

impl Playbook for OneSolver {
    fn name(&self) -> loop_file::Playbook {
        loop_file::Playbook::default()
    }

    fn work(&self, _run: &RunState, iteration: &Iteration) -> Option<Todo> {
        let worked = iteration.calls.values().any(|call| call.purpose == Purpose::Solver);
        (!worked).then(|| Todo::call(Purpose::Solver))
    }
}

/// What an engine would find out there.
#[derive(Debug, Clone)]
pub struct World {
    /// The first iteration in which the checks pass. `None`: never.
    pub green_from: Option<u32>,
    /// What the residual command prints, iteration by iteration; the last one stays. Not a number: it fails.
    pub residuals: &'static [&'static str],
    /// How far the metric is, at the start, then iteration by iteration; the last one stays.
    pub metric: &'static [&'static str],
    /// Does each iteration change a file?
    pub changes: bool,
    /// Does the solver hand in its report?
    pub reports: bool,
    /// What the workspace is found to be otherwise: NORTHSTAR.md, guards, our block of AGENTS.md.
    pub artifacts: fn(&mut ArtifactsCollected),
    /// Files that replays of the certificate change.
    pub drifted: &'static [&'static str],
    /// Do the checks pass in replays of the certificate?
    pub replays: bool,
    /// What judges the work is found to be otherwise.
    pub guards: fn(&mut GuardsCompared),
    /// Do green checks pass against this tree?
    pub trial: fn(Phase) -> bool,
    /// What is wrong with NORTHSTAR.md.
    pub northstar_problem: Option<&'static str>,
}

/// The metric moves, a file changes, and the checks pass in iteration 0.
pub const GREEN: World = World {
    green_from: Some(0),
    residuals: &["0"],
    metric: &["0", "1", "2", "3", "4", "5", "6", "7", "8"],
    changes: true,
    reports: true,
    artifacts: |_| (),
    drifted: &[],
    replays: true,
    guards: |_| (),
    trial: |phase| phase.should_pass() != Some(false) && !matches!(phase, Phase::CanaryAtStart),
    northstar_problem: None,
};

/// The same, and the checks never pass.
pub const RED: World = World { green_from: None, residuals: &["1"], ..GREEN };

/// A run that tests push forward.
#[derive(Clone)]
pub struct Sim {
    pub run: RunState,
    /// Everything that happened since `run.started`.
    pub events: Vec<Event>,
    first: Stamped,
    choose: Choose,
}

impl Sim {
    /// In INIT.
    pub fn begin(text: &str, patience: Patience, choose: Choose) -> Self {
        let declaration = loop_file::parse(text, "loop.yaml").unwrap();
        let started = RunStarted {
            run: RunId::parse("01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap(),
            engine_version: "0".into(),
            reducer_version: REDUCER_VERSION,
            started: TS.into(),
            loop_sha256: Digest::of(b"loop"),
            budget: declaration.budget_in_force(),
            declaration: Box::new(declaration),
            declared_text: None,
            typed: Vec::new(),
            end: None,
            sandbox: "none".into(),
            overlays: true,
            unaccepted: Vec::new(),
            remembered: Vec::new(),
            warnings: Vec::new(),
            patience,
        };
        let first = Stamped { seq: 0, ts: TS.into(), mono_ms: 0, boot: "b".into(), event: started.into() };
        Self { run: fold::start(&first, choose).unwrap(), events: Vec::new(), first, choose }
    }

    /// A run of the machine's own tests, in INIT: [`LOOP`] with a line more, or in place of the one with the same key.
    pub fn plain(line: &str) -> Self {
        Self::patient(line, Patience::WAIT)
    }

    pub fn patient(line: &str, patience: Patience) -> Self {
        let key = line.split_once(':').map_or("-", |(key, _)| key);
        let kept: Vec<&str> = LOOP.lines().filter(|other| !other.starts_with(&format!("{key}:"))).collect();
        // A bare key only takes a line away.
        let line = if line.ends_with(':') { "" } else { line };
        Self::begin(&format!("{}\n{line}\n", kept.join("\n")), patience, |_| &OneSolver)
    }

    /// The same, just arrived in this state. The checks are green, so that every state is on the way.
    pub fn at(state: State) -> Self {
        let mut sim = Self::plain("");
        sim.until(&GREEN, |run| run.state == state);
        sim
    }

    /// What the machine wants next.
    pub fn todo(&self) -> Todo {
        next::next(&self.run)
    }

    /// Folds one event; fails the test if it is not legal.
    #[track_caller]
    pub fn record(&mut self, event: impl Into<Event>) {
        let event = event.into();
        let stamped = stamped(&self.run, event.clone());
        fold::apply(&mut self.run, &stamped).unwrap();
        self.events.push(event);
    }

    /// Lets the machine decide once and folds what it says; returns that.
    #[track_caller]
    pub fn proceed(&mut self) -> Vec<Event> {
        assert_eq!(self.todo(), Todo::Proceed);
        let events = step::step(&self.run, Input::Proceed);
        assert!(!events.is_empty(), "the machine has nothing to say: {:?}", self.events.last());
        for event in &events {
            self.record(event.clone());
        }
        events
    }

    /// Lets the machine decide until it wants something else.
    #[track_caller]
    pub fn settle(&mut self) -> Todo {
        for _ in 0..50 {
            match self.todo() {
                Todo::Proceed => {
                    self.proceed();
                }
                other => return other,
            }
        }
        panic!("the machine goes in circles: {:?}", self.events.iter().rev().take(12).collect::<Vec<_>>());
    }

    /// What all events together come to.
    pub fn refolded(&self) -> RunState {
        let mut run = fold::start(&self.first, self.choose).unwrap();
        for event in &self.events {
            let stamped = stamped(&run, event.clone());
            fold::apply(&mut run, &stamped).unwrap();
        }
        run
    }

    pub fn begin_iteration(&mut self) {
        let iteration = self.run.iteration_number();
        self.record(began(iteration));
    }

    /// A probe that ran.
    #[track_caller]
    pub fn probed(&mut self, phase: Phase, probe: Probe, result: ProbeResult) {
        self.record(ProbeStarted { phase, probe: probe.clone(), argv: vec!["x".into()] });
        self.record(ProbeFinished { phase, probe, result });
    }

    /// An agent that the machine could call now, from its start to its end.
    #[track_caller]
    pub fn called(&mut self, purpose: Purpose, subject: Option<&str>, report: Option<Report>) {
        self.record(started(&self.run, purpose, subject));
        let end = if report.is_some() { AgentEnd::Reported } else { AgentEnd::NoReport };
        if let Some(report) = report {
            self.report(report);
        }
        self.finish_call(end);
    }

    fn open_call(&self) -> (String, Role) {
        let call = self.run.call.as_ref().expect("no call is open");
        (call.started.call.clone(), call.role())
    }

    fn report(&mut self, report: Report) {
        let (id, sha256) = ("t0".to_owned(), Digest::of(b"report"));
        self.record(ReportAccepted { call: self.open_call().0, id, report, links: BTreeMap::new(), sha256 });
    }

    fn finish_call(&mut self, end: AgentEnd) {
        let (call, role) = self.open_call();
        self.record(AgentFinished { call, role, end, handover: None });
    }

    /// Answers the open decision.
    #[track_caller]
    pub fn answer(&mut self, answer: Answer) {
        let id = self.run.operator.open().next().expect("no decision is open").id;
        self.record(DecisionAnswered { id, answer, note: None, by: "tester".into() });
    }
}

/// In a world.
impl Sim {
    /// Does the one thing that the machine wants now.
    #[track_caller]
    pub fn perform(&mut self, world: &World) {
        let iteration = self.run.iteration_number();
        match self.todo() {
            Todo::Proceed => {
                self.proceed();
            }
            Todo::ReadNorthstar => self.record(world.northstar()),
            Todo::TakeTree(purpose) => self.record(world.tree(purpose)),
            Todo::RunProbe(phase, probe) => {
                let result = world.result(phase, &probe, iteration);
                self.probed(phase, probe, result);
            }
            Todo::WritePlan => self.record(PlanWritten { sha256: Digest::of(b"plan") }),
            Todo::BeginIteration => self.begin_iteration(),
            Todo::StartAgent { purpose, subject, .. } => {
                let report = (purpose == Purpose::Solver && world.reports).then(|| solved(iteration));
                self.called(purpose, subject.as_deref(), report);
            }
            // A call that was cut off, e.g. by a crash: it is taken up where it was.
            Todo::Call(CallTodo::Ask) => self.report(solved(iteration)),
            Todo::Call(CallTodo::End(end)) => self.finish_call(end),
            Todo::CollectPartial => {
                let (changes, resumes) = (Vec::new(), self.run.resumes);
                self.record(ArtifactsPartial { iteration, resumes, changes, more: None, diff: None, unread: None });
            }
            Todo::CollectArtifacts => {
                let mut collected = collected(iteration);
                if !world.changes {
                    collected.changes.clear();
                }
                (world.artifacts)(&mut collected);
                self.record(collected);
            }
            Todo::CompareGuards => {
                let mut compared = compared(iteration);
                (world.guards)(&mut compared);
                self.record(compared);
            }
            Todo::WriteLearnings => self.write_learnings(),
            other => panic!("nobody here does this: {other:?}"),
        }
    }

    /// Goes on until something is so.
    #[track_caller]
    pub fn until(&mut self, world: &World, done: impl Fn(&RunState) -> bool) {
        for _ in 0..2_000 {
            if done(&self.run) {
                return;
            }
            self.perform(world);
        }
        panic!("the run goes in circles: {:?}", self.events.iter().rev().take(12).collect::<Vec<_>>());
    }

    /// Goes on to the end of the run.
    #[track_caller]
    pub fn end(&mut self, world: &World) -> &RunHalted {
        self.until(world, |run| run.halt.is_some());
        self.run.halt.as_ref().unwrap()
    }

    /// What writing AGENTS.md comes to.
    pub fn write_learnings(&mut self) {
        let learned = step::accumulate(&self.run).unwrap();
        let (iteration, before) = (self.run.iteration_number(), self.run.learnings_sha256);
        self.record(GlowScored { iteration, glow: learned.glow });
        self.record(LearningsRecorded {
            iteration,
            entry: Box::new(learned.entry),
            review: learned.review,
            before,
            after: Digest::of(format!("entry {iteration}").as_bytes()),
            compacted_before: None,
            compaction: None,
            shortened: None,
            frame: None,
            aside: None,
        });
    }
}

impl World {
    fn northstar(&self) -> NorthstarRead {
        let metric = Metric {
            id: "vc-1".into(),
            metric: "people greeted".into(),
            current: self.metric[0].into(),
            target: "100".into(),
        };
        NorthstarRead {
            file: "NORTHSTAR.md".into(),
            sha256: Some(northstar_sha256()),
            metrics: if self.northstar_problem.is_some() { Vec::new() } else { vec![metric] },
            problem: self.northstar_problem.map(str::to_owned),
        }
    }

    fn tree(&self, purpose: TreePurpose) -> TreeTaken {
        let drifted = if purpose == TreePurpose::Frozen { self.drifted } else { &[] };
        let drifted = drifted.iter().map(|file| (*file).to_owned()).collect();
        TreeTaken { purpose, tree: Digest::of(b"tree"), files: 1, drifted }
    }

    fn result(&self, phase: Phase, probe: &Probe, iteration: u32) -> ProbeResult {
        let started = phase != Phase::Baseline;
        match probe {
            Probe::Metric(_) => printed(at(self.metric, iteration + u32::from(started))),
            Probe::Residual if started && phase != Phase::Reverted => printed(at(self.residuals, iteration)),
            Probe::Residual => printed("1"),
            _ => {
                let green = started && self.green_from.is_some_and(|from| iteration >= from);
                let replayed = !matches!(phase, Phase::Replay(_)) || self.replays;
                let passes = green && replayed && (self.trial)(phase);
                let shown = matches!(phase, Phase::Canary | Phase::CanaryAtStart).then_some(!passes);
                ProbeResult { canary_shown: shown, ..result(passes) }
            }
        }
    }
}

fn at(series: &'static [&'static str], index: u32) -> &'static str {
    series[series.len().min(index as usize + 1) - 1]
}

fn stamped(run: &RunState, event: Event) -> Stamped {
    Stamped { seq: run.next_seq, ts: TS.into(), mono_ms: run.next_seq, boot: "b".into(), event }
}

/// NORTHSTAR.md, as it was read and stayed.
pub fn northstar_sha256() -> Digest {
    Digest::of(b"northstar")
}

pub fn began(iteration: u32) -> IterationBegan {
    let capsule = Digest::of(b"capsule");
    IterationBegan {
        iteration,
        capsule,
        capsule_replay_sha256: capsule,
        rebuilt: false,
        bleeds: false,
        carries_questions: true,
    }
}

/// One file was added, and nothing was touched that must not be.
pub fn collected(iteration: u32) -> ArtifactsCollected {
    let sha256 = Some(Digest::of(b"file"));
    ArtifactsCollected {
        iteration,
        tree: Digest::of(b"tree"),
        changes: vec![Change { path: format!("file{iteration}"), kind: ChangeKind::Added, sha256 }],
        more: None,
        diff: Digest::of(b"diff"),
        northstar_sha256: Some(northstar_sha256()),
        learnings_intact: true,
        guards_touched: BTreeMap::new(),
        instruments_touched: Vec::new(),
        touched_now: BTreeMap::new(),
        learnings_frame: None,
        learnings_aside: None,
        mended: Vec::new(),
    }
}

/// Nothing but code was changed.
pub fn compared(iteration: u32) -> GuardsCompared {
    GuardsCompared {
        iteration,
        trusted: Digest::of(b"tree"),
        without_replays: None,
        changed: Vec::new(),
        unlisted: 0,
        code_changed: 1,
        tests_in_code: false,
        tools: ToolsChanged::default(),
        judge_at_start: true,
        canaries: BTreeMap::new(),
        not_kept: Vec::new(),
        since: None,
        changed_since: 0,
        diff: Digest::of(b"diff"),
    }
}

/// The beginning of a call that the machine could make now, for this purpose.
pub fn started(run: &RunState, purpose: Purpose, subject: Option<&str>) -> AgentStarted {
    let blob = Digest::of(b"blob");
    AgentStarted {
        call: run.next_call_key(purpose, None),
        role: purpose.role(),
        purpose: Some(purpose),
        subject: subject.map(str::to_owned),
        agent: "a".into(),
        backend: "anthropic".into(),
        model: "m".into(),
        system: blob,
        tools: blob,
        message: blob,
        paraphrase: None,
        bounds: None,
    }
}

/// A solver that tries something new in every iteration.
pub fn solved(iteration: u32) -> Report {
    Report::Solver(SolverReport {
        intent: "Greet.".into(),
        actions: vec![format!("way {iteration} to greet")],
        files_touched: Vec::new(),
        expected_effect: String::new(),
        risk_notes: Vec::new(),
    })
}

/// A check that ended well or not.
pub fn result(passes: bool) -> ProbeResult {
    ProbeResult {
        end: ProbeEnd::Exited(i32::from(!passes)),
        ..printed(if passes { "ok" } else { "expected 1, got 2" })
    }
}

/// A command that ended well and printed this.
pub fn printed(line: &str) -> ProbeResult {
    ProbeResult {
        end: ProbeEnd::Exited(0),
        output: Digest::of(b"output"),
        stdout_sha256: Digest::of(b"output"),
        output_bytes: 6,
        last_line: Some(line.into()),
        held_back: None,
        removed_lines: None,
        count: None,
        canary_shown: None,
        wrote: Vec::new(),
        complaints: None,
        steady_sha256: None,
        signature: None,
        millis: 1,
    }
}
