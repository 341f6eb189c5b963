//! What is known about one iteration.

use std::collections::BTreeMap;

use crate::model::certificate::{Certificate, Residual};
use crate::model::critique::{AuthorReport, Critique};
use crate::model::digest::Digest;
use crate::model::gate_report::GateReport;
use crate::model::glow::Glow;
use crate::model::ids::Role;
use crate::model::learnings::Entry;
use crate::model::purpose::Purpose;
use crate::model::report::{Report, ScoutReport, SkepticReport, SolverReport};

use super::call::Calls;
use super::event::{
    Answer, ArtifactsCollected, ArtifactsPartial, GuardsCompared, IterationBegan, Phase, Probe, ProbeResult,
    ReportAccepted, TreeTaken,
};

/// A report that was accepted, with what it cites.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedReport {
    pub report: Report,
    pub links: BTreeMap<String, Digest>,
    pub sha256: Digest,
    pub paraphrase: Option<u8>,
}

/// What this iteration spent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IterationSpend {
    pub millis: u64,
    pub tool_calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub requests: u64,
    pub waited_millis: u64,
}

/// One iteration, finished or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Iteration {
    pub began: IterationBegan,
    pub calls: Calls,
    pub reports: BTreeMap<String, AcceptedReport>,
    pub artifacts: Option<ArtifactsCollected>,
    /// What was changed when the latest stop in the middle of it came.
    pub partial: Option<ArtifactsPartial>,
    pub probes: BTreeMap<(Phase, Probe), ProbeResult>,
    /// `Some(None)`: measured, and it is null.
    pub residual: Option<Option<Residual>>,
    pub residual_why_null: Option<String>,
    pub certificate: Option<Certificate>,
    pub glow: Option<Glow>,
    pub entry: Option<Entry>,
    pub review: Vec<Answer>,
    pub learnings_before: Option<Digest>,
    pub learnings_after: Option<Digest>,
    /// Set after the replays: artifacts that changed under them.
    pub frozen: Option<Vec<String>>,
    /// Set before a success counts.
    pub guards: Option<GuardsCompared>,
    pub gate: Option<GateReport>,
    /// Its success was claimed, and taken back after the replays: the run goes on.
    pub taken_back: bool,
    /// The workspace before and after the critic looked at it.
    pub review_trees: (Option<Digest>, Option<Digest>),
    /// What was changed meanwhile, as far as it is named, and whether the critic was kept from writing.
    pub changed_in_review: (Vec<String>, bool),
    /// Was the workspace looked at after the checks, where they write into it?
    pub checked: bool,
    pub spend: IterationSpend,
}

impl Iteration {
    pub fn new(began: IterationBegan) -> Self {
        Self {
            began,
            calls: Calls::new(),
            reports: BTreeMap::new(),
            artifacts: None,
            partial: None,
            probes: BTreeMap::new(),
            residual: None,
            residual_why_null: None,
            certificate: None,
            glow: None,
            entry: None,
            review: Vec::new(),
            learnings_before: None,
            learnings_after: None,
            frozen: None,
            guards: None,
            gate: None,
            taken_back: false,
            review_trees: (None, None),
            changed_in_review: (Vec::new(), false),
            checked: false,
            spend: IterationSpend::default(),
        }
    }

    pub fn number(&self) -> u32 {
        self.began.iteration
    }

    /// The workspace was looked at after the critic.
    pub fn reviewed(&mut self, taken: &TreeTaken) {
        self.review_trees.1 = Some(taken.tree);
        self.changed_in_review = (taken.changed.clone(), taken.held);
    }

    /// The key of a call in this iteration.
    pub fn call_key(&self, role: Role, paraphrase: Option<u8>) -> String {
        call_key(self.number(), role, paraphrase)
    }

    pub fn accept(&mut self, accepted: &ReportAccepted, paraphrase: Option<u8>) {
        // A call of the value playbook may hand in many things.
        let key = match &accepted.report {
            Report::Scout(_) | Report::Solver(_) | Report::Skeptic(_) | Report::Author(_) | Report::Critic(_) => {
                accepted.call.clone()
            }
            Report::Value(report) => {
                let earlier = self.reports.keys().filter(|key| key.starts_with(&accepted.call)).count();
                format!("{}.{}.{earlier}", accepted.call, report.tool())
            }
        };
        self.reports.insert(
            key,
            AcceptedReport {
                report: accepted.report.clone(),
                links: accepted.links.clone(),
                sha256: accepted.sha256,
                paraphrase,
            },
        );
    }

    fn report(&self, role: Role) -> Option<&AcceptedReport> {
        self.reports.get(&self.call_key(role, None))
    }

    pub fn scout(&self) -> Option<&ScoutReport> {
        match &self.report(Role::Scout)?.report {
            Report::Scout(report) => Some(report),
            _ => None,
        }
    }

    pub fn solver(&self) -> Option<&SolverReport> {
        match &self.report(Role::Solver)?.report {
            Report::Solver(report) => Some(report),
            _ => None,
        }
    }

    pub fn author(&self) -> Option<&AuthorReport> {
        match &self.report(Role::Author)?.report {
            Report::Author(report) => Some(report),
            _ => None,
        }
    }

    /// The critique with the digests of what it cites.
    pub fn critique(&self) -> Option<(&Critique, &AcceptedReport)> {
        let accepted = self.report(Role::Critic)?;
        match &accepted.report {
            Report::Critic(critique) => Some((critique, accepted)),
            _ => None,
        }
    }

    /// The skeptic's report with the digests of what it cites; `paraphrase` selects a sweep.
    pub fn skeptic(&self, paraphrase: Option<u8>) -> Option<(&SkepticReport, &BTreeMap<String, Digest>)> {
        let accepted = self.reports.get(&self.call_key(Role::Skeptic, paraphrase))?;
        match &accepted.report {
            Report::Skeptic(report) => Some((report, &accepted.links)),
            _ => None,
        }
    }

    /// Files changed and structured reports: what this iteration leaves behind.
    pub fn artifact_count(&self) -> usize {
        self.artifacts.as_ref().map_or(0, ArtifactsCollected::changed_in_all) + self.work_reports()
    }

    /// Reports of the acting roles. The skeptic's comes later and judges; it is no product.
    fn work_reports(&self) -> usize {
        let structured = self.reports.values().filter(|accepted| matches!(accepted.report, Report::Value(_)));
        // A known fix leaves its output behind, whatever it changed; an author who hands in nothing leaves a receipt:
        // one attempt that came to nothing is judged as such, and does not end the run.
        let detours = self.probes.keys().filter(|(phase, _)| *phase == Phase::Detour);
        let is_pass = |purpose: Purpose| matches!(purpose, Purpose::Author | Purpose::Detour);
        let passes = self.calls.values().filter(|call| is_pass(call.purpose));
        let roles = [self.scout().is_some(), self.solver().is_some()];
        let roles = roles.into_iter().map(usize::from).sum::<usize>();
        roles + structured.count() + detours.count() + passes.count()
    }

    pub fn probe(&self, phase: Phase, probe: &Probe) -> Option<&ProbeResult> {
        self.probes.get(&(phase, probe.clone()))
    }

    pub fn residual_value(&self) -> Option<crate::model::decimal::Exact> {
        self.residual.as_ref()?.as_ref().map(|residual| residual.value)
    }
}

/// The key of an agent call: unique within a run.
pub fn call_key(iteration: u32, role: Role, paraphrase: Option<u8>) -> String {
    match paraphrase {
        None => format!("it{iteration}.{role}"),
        Some(number) => format!("it{iteration}.{role}.paraphrase{number}"),
    }
}
