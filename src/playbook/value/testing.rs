//! A run in memory for the tests of this playbook: the real machine, the real fold, no engine.

use crate::machine::event::*;

use crate::machine::state::State;

use crate::machine::todo::Todo;

use crate::model::decimal::Exact;
use crate::model::decision::Patience;
use crate::model::digest::Digest;

use crate::model::purpose::{Purpose, Tool};
use crate::model::report::Report;
use crate::model::value::plan::TaskSource;
use crate::model::value::tools::Structured;
use crate::model::value::{
    Action, Outcome, Recommendation, Task, TaskStatus, Verification, VerificationStatus, Vrc, VrcMode,
};
use crate::playbook;
use crate::playbook::value::event::{StepBegan, StepFinished, VrcTaken};

pub use crate::machine::testing::{Sim, result, started};

/// A declaration of this playbook; more can be added with [`Sim::declared`].
pub const LOOP: &str = "playbook: value\ngoal: Greet people.\nspec: \"1.0\"\nhalting_certificates: [EXACT, CONVERGED]\nR_p: \"0.1\"\nagents:\n  a: { backend: anthropic, model: m }\n";

/// The number of the first step after the gates.
pub const FIRST_STEP: u32 = 16;

/// Runs of this playbook.
impl Sim {
    /// At the beginning of DREAM_GOAL, before any gate. People are waited for.
    pub fn preparing() -> Self {
        Self::declared(LOOP, Patience::WAIT)
    }

    /// In iteration 0 of SPAWN_SUBAGENT, all gates passed; the plan is empty.
    pub fn working() -> Self {
        Self::working_with("")
    }

    /// The same with more lines of loop.yaml, e.g. `value: { max_fix_attempts: 2 }`.
    pub fn working_with(more: &str) -> Self {
        let mut sim = Self::declared(&format!("{LOOP}{more}\n"), Patience::WAIT);
        sim.run.value_mut().gates = crate::model::value::Gate::ALL.into();
        sim.run.value_mut().steps_begun = FIRST_STEP;
        sim.run.baseline.tree = Some(Digest::of(b"tree"));
        sim.run.baseline.residual = Some(None);
        sim.run.plan = Some(Digest::of(b"plan"));
        let (from, to) = (State::DreamGoal, State::SpawnSubagent);
        sim.record(StateEntered { from, to, why: String::new() });
        sim.begin_iteration();
        sim
    }

    pub fn declared(text: &str, patience: Patience) -> Self {
        let mut sim = Self::begin(text, patience, playbook::of);
        for (from, to) in [
            (State::Init, State::IntakeGoal),
            (State::IntakeGoal, State::NullCheck),
            (State::NullCheck, State::DreamGoal),
        ] {
            sim.record(StateEntered { from, to, why: String::new() });
        }
        sim
    }

    /// Plays the agent that the machine wants now: it must be for this purpose. Reports are admitted as the engine
    /// does; rejected ones are returned.
    #[track_caller]
    pub fn agent(&mut self, purpose: Purpose, reports: Vec<Structured>) -> Vec<String> {
        let end = if purpose.closing().is_none() || reports.iter().any(|r| Some(r.tool()) == purpose.closing()) {
            AgentEnd::Reported
        } else {
            AgentEnd::NoReport
        };
        self.agent_ends(purpose, reports, end)
    }

    /// Starts the agent that the machine wants now; its call.
    #[track_caller]
    pub fn agent_begins(&mut self, purpose: Purpose) -> String {
        let Todo::StartAgent { purpose: wanted, subject, .. } = self.settle() else {
            panic!("no agent is wanted, but {:?}", self.todo());
        };
        assert_eq!(wanted, purpose);
        let call = self.run.next_call_key(purpose, None);
        self.record(started(&self.run, purpose, subject.as_deref()));
        call
    }

    #[track_caller]
    pub fn agent_ends(&mut self, purpose: Purpose, reports: Vec<Structured>, end: AgentEnd) -> Vec<String> {
        let (call, blob) = (self.agent_begins(purpose), Digest::of(b"blob"));
        let mut rejected = Vec::new();
        for (number, report) in reports.into_iter().enumerate() {
            assert!(purpose.tools().contains(&report.tool()), "{purpose} has no {}", report.tool());
            if let Err(why) = crate::playbook::value::legal::admit(&self.run, &report) {
                rejected.push(why);
                continue;
            }
            self.record(ReportAccepted {
                call: call.clone(),
                id: format!("t{number}"),
                report: Report::Value(report),
                links: Default::default(),
                sha256: blob,
            });
        }
        self.record(AgentFinished { call, role: purpose.role(), end, handover: None, moved: None });
        rejected
    }

    /// The result of a probe of the open step.
    pub fn probe(&mut self, probe: Probe, passes: bool) {
        let phase = Phase::Step(self.run.value().step.as_ref().unwrap().number);
        self.probed(phase, probe, result(passes));
    }

    /// Puts a task into the plan as if it had been planned.
    pub fn task(&mut self, id: &str, status: TaskStatus, dependencies: &[&str]) {
        let mut task = task(id);
        task.status = status;
        task.dependencies = dependencies.iter().map(|id| (*id).to_owned()).collect();
        self.run.value_mut().tasks.push(task);
    }

    pub fn verification(&mut self, id: &str, status: VerificationStatus) {
        self.run.value_mut().verifications.insert(id.to_owned(), verification(id, status));
    }
}

/// For tests of what comes after steps, whatever the steps did.
impl Sim {
    /// A whole step that changed nothing but its outcome; its number.
    #[track_caller]
    pub fn step(&mut self, action: Action, outcome: Outcome) -> u32 {
        let step = self.run.value().steps_begun;
        self.record(StepBegan { step, action, why: "a test wants it".into() });
        self.record(StepFinished { step, outcome, detail: String::new() });
        step
    }

    /// Another iteration, as if the present one had been certified.
    pub fn next_iteration(&mut self) {
        self.run.done.extend(self.run.current.take());
        self.run.spent.iterations += 1;
        self.begin_iteration();
    }

    /// Something structured was handed in during this iteration.
    pub fn hand_in(&mut self, report: Structured) {
        let iteration = self.run.current.as_mut().unwrap();
        let key = format!("report {}", iteration.reports.len());
        let accepted = crate::machine::iteration::AcceptedReport {
            report: Report::Value(report),
            links: Default::default(),
            sha256: Digest::of(b"report"),
            paraphrase: None,
        };
        iteration.reports.insert(key, accepted);
    }

    /// A value check that a step of its own made.
    #[track_caller]
    pub fn value(&mut self, mode: VrcMode, score: &str, recommendation: Recommendation) -> u32 {
        let step = self.run.value().steps_begun;
        self.record(StepBegan { step, action: Action::Vrc { mode }, why: String::new() });
        self.record(VrcTaken { vrc: vrc(step, mode, score, recommendation) });
        self.record(StepFinished { step, outcome: Outcome::Neutral, detail: String::new() });
        step
    }
}

pub fn vrc(step: u32, mode: VrcMode, score: &str, recommendation: Recommendation) -> Vrc {
    Vrc {
        step,
        mode,
        value_score: Exact::parse(score).unwrap(),
        deliverables_total: 1,
        deliverables_verified: 0,
        deliverables_blocked: 0,
        gaps: Vec::new(),
        recommendation,
        summary: String::new(),
        carried: false,
    }
}

pub fn task(id: &str) -> Task {
    Task {
        id: id.to_owned(),
        status: TaskStatus::Pending,
        source: TaskSource::Plan,
        description: format!("Build {id}."),
        value: "Someone is greeted.".into(),
        acceptance: "It greets.".into(),
        prd_section: None,
        dependencies: Vec::new(),
        phase: None,
        epic: None,
        files_expected: Vec::new(),
        check: None,
        blocked_reason: None,
        retries: 0,
        files_created: Vec::new(),
        files_modified: Vec::new(),
        notes: String::new(),
        health_checked: false,
        created_in: 0,
        done_in: None,
        broken_by: None,
        dispute: None,
    }
}

pub fn verification(id: &str, status: VerificationStatus) -> Verification {
    let category = id.split('/').next().unwrap_or(id).to_owned();
    Verification {
        id: id.to_owned(),
        path: format!(".loop/verifications/{id}.sh"),
        category,
        script: Digest::of(id.as_bytes()),
        executable: true,
        requires: Vec::new(),
        status,
        runs: 0,
        fix_attempts: 0,
        researched: false,
        corrected: false,
        failures: Vec::new(),
        first_passed_in: None,
        flaky: None,
        broken_by: None,
        dispute: None,
    }
}

/// Input JSON as a structured report; fails the test if it does not fit.
#[track_caller]
pub fn report(tool: Tool, input: serde_json::Value) -> Structured {
    Structured::parse(tool, &input).unwrap().unwrap()
}
