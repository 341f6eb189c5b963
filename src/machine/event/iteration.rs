//! Events of one iteration: what the engine ran, what came out of it, what it is worth.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::machine::words::{Place, Told, Topic::Check, Topic::Run, counted};
use crate::model::amount;
use crate::model::certificate::{Certificate, CertificateKind, Residual};
use crate::model::digest::Digest;
use crate::model::gate_report::GateReport;
use crate::model::glow::Glow;
use crate::model::learnings::{CompactionLog, Entry};

use super::family::family;
use super::probe::{Phase, ProbeFinished, ProbeStarted};

family! {
    /// What happened in an iteration, or before the first one to measure where the run starts.
    IterationEvent {
        TreeTaken = "tree.taken", Fact, |taken| vec![taken.tree];
        ProbeStarted = "probe.started", Fact;
        ProbeFinished = "probe.finished", Fact, |finished| vec![finished.result.output];
        IterationBegan = "iteration.began", Fact, |began| vec![began.capsule];
        ArtifactsCollected = "artifacts.collected", Fact, |collected| vec![collected.tree, collected.diff];
        ResidualMeasured = "residual.measured", Decided;
        CertificateIssued = "certificate.issued", Decided;
        GlowScored = "glow.scored", Derived;
        LearningsRecorded = "learnings.recorded", Derived;
        GateJudged = "gate.judged", Decided;
    }
}

impl IterationEvent {
    pub fn told(&self, at: &Place) -> Told {
        let it = &at.when;
        match self {
            Self::TreeTaken(taken) => {
                let what = taken.purpose.describe();
                match taken.drifted.as_slice() {
                    [] => Told::quiet(Check, format!("{what}: {} files", taken.files)),
                    drifted => Told::judged(Check, false, format!("{what}: changed meanwhile: {}", drifted.join(", "))),
                }
            }
            Self::ProbeStarted(started) => Told::quiet(Check, format!("{} starts", started.probe.name())),
            Self::ProbeFinished(finished) => {
                let when = match finished.phase {
                    Phase::Baseline => "start".to_owned(),
                    Phase::Scouted => format!("{it} before"),
                    Phase::Iteration => it.clone(),
                    Phase::Replay(k) => format!("{it} replay {k}"),
                    Phase::Gate => format!("{it} gate"),
                    Phase::Step(step) => format!("step {step}"),
                    Phase::Detour => format!("{it} detour"),
                };
                let (name, result) = (finished.probe.name(), &finished.result);
                let text = format!("{when} {name}: {}, {}", result.end.describe(), amount::took(result.millis));
                // Before the first iteration a check that fails is what the run is for.
                let good = (finished.phase != Phase::Baseline).then(|| result.end.passed());
                Told { good, ..Told::new(Check, text) }
            }
            Self::IterationBegan(began) => {
                let rebuilt = if began.rebuilt { ", capsule rebuilt: it pointed at an earlier discussion" } else { "" };
                Told::new(Run, format!("iteration {} begins{rebuilt}", at.iteration))
            }
            Self::ArtifactsCollected(collected) => {
                Told::new(Run, format!("{it} {} changed", counted(collected.changes.len(), "file", "files")))
            }
            Self::ResidualMeasured(measured) => {
                let when = measured.iteration.map_or_else(|| "start".to_owned(), |number| format!("it{number}"));
                match (&measured.residual, &measured.why_null) {
                    (Some(residual), _) => Told::new(Check, format!("{when} residual {}", residual.value)),
                    (None, Some(why)) => Told::judged(Check, false, format!("{when} no residual: {why}")),
                    (None, None) => Told::judged(Check, false, format!("{when} no residual")),
                }
            }
            Self::CertificateIssued(issued) => {
                let (kind, why) = (issued.certificate.kind, &issued.certificate.why);
                match kind {
                    CertificateKind::None => Told::quiet(Check, format!("{it} no certificate: {why}")),
                    kind => Told::judged(Check, kind.is_success(), format!("{it} certificate {kind}: {why}")),
                }
            }
            Self::GlowScored(scored) => {
                let Glow { total, g, l, o, w, .. } = &scored.glow;
                Told::new(Check, format!("{it} GLOW {total} (G {g} L {l} O {o} W {w})"))
            }
            Self::LearningsRecorded(recorded) => {
                let claims = recorded.entry.succeeded.iter().chain(&recorded.entry.failed);
                let demoted = match claims.filter(|claim| claim.demoted_from.is_some()).count() {
                    0 => "",
                    1 => "; 1 claim without artifact is Lane C",
                    n => &format!("; {n} claims without artifact are Lane C"),
                };
                Told::new(Run, format!("{it} AGENTS.md has its entry{demoted}"))
            }
            Self::GateJudged(judged) => {
                let checks = &judged.report.checks;
                let held = checks.iter().filter(|check| check.ok).count();
                Told::judged(Check, held == checks.len(), format!("{it} pass-gate: {held} of {} hold", checks.len()))
            }
        }
    }
}

impl TreePurpose {
    const fn describe(self) -> &'static str {
        match self {
            Self::Baseline => "workspace at the start",
            Self::Frozen => "workspace after the replays",
            Self::BeforeReview => "workspace before the critic",
            Self::AfterReview => "workspace after the critic",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreePurpose {
    Baseline,
    /// After the replays of the certificate.
    Frozen,
    /// Around a critic, who must leave everything as it is.
    BeforeReview,
    AfterReview,
}

/// The workspace as path -> digest, kept as a blob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreeTaken {
    pub purpose: TreePurpose,
    pub tree: Digest,
    pub files: u64,
    /// Artifacts of the iteration that are no longer what they were.
    pub drifted: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationBegan {
    pub iteration: u32,
    /// The capsule's blob.
    pub capsule: Digest,
    pub capsule_replay_sha256: Digest,
    /// Did the capsule have to be rebuilt because it leaned on an earlier conversation?
    pub rebuilt: bool,
    /// Is there still such a reference? Then the run must not go on.
    pub bleeds: bool,
    /// Does it carry the last entry's open questions word for word?
    pub carries_questions: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// A file that the iteration changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Change {
    pub path: String,
    pub kind: ChangeKind,
    /// `None` for a deleted file.
    pub sha256: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArtifactsCollected {
    pub iteration: u32,
    pub tree: Digest,
    pub changes: Vec<Change>,
    /// A unified diff, as a blob.
    pub diff: Digest,
    /// The digest of NORTHSTAR.md now; `None`: unreadable or not used.
    pub northstar_sha256: Option<Digest>,
    /// Is our block in AGENTS.md still what we wrote?
    pub learnings_intact: bool,
    /// Guards that differ from how the run found them, by criterion.
    pub guards_touched: BTreeMap<String, GuardsTouched>,
    /// Scripts of the residual and metric commands that differ from how the run found them.
    pub instruments_touched: Vec<String>,
    /// What the touched guards and instruments are now; `None`: gone.
    #[serde(default)]
    pub touched_now: BTreeMap<String, Option<Digest>>,
    /// Places of ours that held something else and were put right since the last look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mended: Vec<String>,
}

/// What guards a criterion and was changed since the start of the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GuardsTouched {
    /// The check's own script: never acceptable.
    pub script: Vec<String>,
    /// Tests, CI, declarations: not while the criterion turns green.
    pub others: Vec<String>,
}

/// The distance to the goal, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResidualMeasured {
    pub iteration: Option<u32>,
    pub residual: Option<Residual>,
    pub why_null: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CertificateIssued {
    pub iteration: u32,
    pub certificate: Certificate,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GlowScored {
    pub iteration: u32,
    pub glow: Glow,
}

/// One answered question of the Socratic review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub question: String,
    pub answer: String,
    pub ok: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearningsRecorded {
    pub iteration: u32,
    pub entry: Entry,
    pub review: Vec<Answer>,
    /// Digests of AGENTS.md before and after; equal means it was not written.
    pub before: Option<Digest>,
    pub after: Digest,
    pub compacted_before: Option<u32>,
    pub compaction: Option<CompactionLog>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateJudged {
    pub iteration: u32,
    pub report: GateReport,
}
