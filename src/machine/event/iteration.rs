//! Events of one iteration: what the engine ran, what came out of it, what it is worth.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::machine::words::{self, Place, Told, Topic::Check, Topic::Run, counted};
use crate::model::amount;
use crate::model::certificate::{Certificate, CertificateKind, Residual};
use crate::model::digest::Digest;
use crate::model::gate_report::GateReport;
use crate::model::glow::Glow;
use crate::model::learnings::{CompactionLog, Entry, Shortened};

use super::family::family;
use super::guard::GuardsCompared;
use super::probe::{Phase, Probe, ProbeFinished, ProbeStarted};

family! {
    /// What happened in an iteration, or before the first one to measure where the run starts.
    IterationEvent {
        TreeTaken = "tree.taken", Fact, |taken| vec![taken.tree];
        ProbeStarted = "probe.started", Fact;
        ProbeFinished = "probe.finished", Fact, |finished| {
            finished.result.held_back.into_iter().chain([finished.result.output]).collect()
        };
        IterationBegan = "iteration.began", Fact, |began| vec![began.capsule];
        ArtifactsCollected = "artifacts.collected", Fact, |collected| {
            let aside = collected.learnings_aside.iter().flat_map(|aside| [aside.found, aside.put_back]);
            let more = collected.more.iter().map(|more| more.all);
            let fixed = [collected.tree, collected.diff].into_iter().chain(collected.learnings_frame);
            fixed.chain(aside).chain(more).collect()
        };
        ArtifactsPartial = "artifacts.partial", Fact, |partial| {
            partial.diff.into_iter().chain(partial.more.iter().map(|more| more.all)).collect()
        };
        ResidualMeasured = "residual.measured", Decided;
        CertificateIssued = "certificate.issued", Decided;
        GlowScored = "glow.scored", Derived;
        LearningsRecorded = "learnings.recorded", Derived, |recorded| {
            let aside = recorded.aside.iter().flat_map(|aside| [aside.found, aside.put_back]);
            recorded.frame.into_iter().chain(aside).collect()
        };
        GuardsCompared = "guards.compared", Fact, |compared| {
            [compared.trusted, compared.diff].into_iter().chain(compared.since).collect()
        };
        GateJudged = "gate.judged", Decided;
    }
}

/// Files that a line names.
const MAX_NAMED: usize = 20;

impl IterationEvent {
    pub fn told(&self, at: &Place) -> Told {
        let it = &at.when;
        match self {
            Self::TreeTaken(taken) => {
                let what = taken.purpose.describe();
                match taken.drifted.as_slice() {
                    [] if !taken.changed.is_empty() => {
                        let named = taken.changed.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
                        Told::judged(Check, false, format!("{what}: changed meanwhile: {named}"))
                    }
                    [] => Told::quiet(Check, format!("{what}: {} files", taken.files)),
                    drifted => Told::judged(Check, false, format!("{what}: changed meanwhile: {}", drifted.join(", "))),
                }
            }
            Self::ProbeStarted(started) => Told::quiet(Check, format!("{} starts", started.probe.name())),
            Self::ProbeFinished(finished) => told_probe(finished, it),
            Self::IterationBegan(began) => {
                let rebuilt = if began.rebuilt { ", capsule rebuilt: it pointed at an earlier discussion" } else { "" };
                Told::new(Run, format!("iteration {} begins{rebuilt}", at.iteration))
            }
            Self::ArtifactsCollected(collected) => {
                let changed = format!("{it} {} changed", counted(collected.changed_in_all(), "file", "files"));
                match (&collected.learnings_aside, &collected.more) {
                    (Some(_), _) => Told::judged(Run, false, format!("{changed}; a change of AGENTS.md is set aside")),
                    (None, Some(more)) => Told::judged(Run, false, format!("{changed}; {}", more.advice())),
                    (None, None) => Told::new(Run, changed),
                }
            }
            Self::ArtifactsPartial(partial) => match &partial.unread {
                None => {
                    let unlisted = partial.more.as_ref().map_or(0, Unlisted::count);
                    let files = counted(partial.changes.len() + unlisted, "file", "files");
                    Told::new(Run, format!("{it} stopped in its middle: {files} changed so far"))
                }
                Some(why) => Told::judged(Run, false, format!("{it} stopped in its middle: {why}")),
            },
            Self::ResidualMeasured(measured) => told_residual(measured),
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
            Self::GuardsCompared(compared) => match (compared.judges().count(), &compared.without_replays) {
                (0, None) => Told::quiet(Check, format!("{it} nothing that judges was changed")),
                (changed, None) => {
                    let text = format!("{it} {} of what judges changed", counted(changed, "file", "files"));
                    Told::new(Check, text)
                }
                (_, Some(why)) => Told::judged(Check, false, format!("{it} no replay is possible: {why}")),
            },
            Self::GateJudged(judged) => {
                let checks = &judged.report.checks;
                let held = checks.iter().filter(|check| check.ok).count();
                Told::judged(Check, held == checks.len(), format!("{it} pass-gate: {held} of {} hold", checks.len()))
            }
        }
    }
}

fn told_residual(measured: &ResidualMeasured) -> Told {
    let when = measured.iteration.map_or_else(|| "start".to_owned(), |number| format!("it{number}"));
    match (&measured.residual, &measured.why_null) {
        (Some(residual), _) => Told::new(Check, format!("{when} residual {}", residual.value)),
        (None, why) => {
            let why = why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            // At the start nothing is lost yet.
            let lost = if measured.iteration.is_some() { "; rung 274177 is out of reach now" } else { "" };
            Told::judged(Check, false, format!("{when} no residual{why}{lost}"))
        }
    }
}

/// A command that ended, and against which tree it ran.
fn told_probe(finished: &ProbeFinished, it: &str) -> Told {
    let when = match finished.phase {
        Phase::Baseline => "start".to_owned(),
        Phase::Scouted => format!("{it} before"),
        Phase::Iteration => it.to_owned(),
        Phase::Replay(k) => format!("{it} replay {k}"),
        Phase::Gate => format!("{it} gate"),
        Phase::Step(step) => format!("step {step}"),
        Phase::StepAgain(step, run) => format!("step {step} run {}", run.saturating_add(1)),
        Phase::ReplayAgain(k, run) => format!("{it} replay {k} run {}", run.saturating_add(1)),
        Phase::Detour => format!("{it} detour"),
        Phase::Pristine
        | Phase::PristineWithTools
        | Phase::PristineSince
        | Phase::Reverted
        | Phase::Canary
        | Phase::CanaryAtStart
        | Phase::AtStart => format!("{it} {}", finished.phase.describe()),
        Phase::Empty => finished.phase.describe().to_owned(),
    };
    if let (Phase::Empty, Probe::Criterion(id), true) = (finished.phase, &finished.probe, finished.result.end.passed())
    {
        return Told::judged(Check, false, words::proves_nothing(id));
    }
    let (name, result) = (finished.probe.name(), &finished.result);
    let text = format!("{when} {name}: {}, {}", result.end.describe(), amount::took(result.millis));
    // A number says by its value, not by its exit code, what it came to.
    let is_number = matches!(finished.probe, Probe::Residual | Probe::Metric(_)) && result.end.passed();
    let good = finished.phase.should_pass().map(|should| is_number || should == result.end.passed());
    Told { good, ..Told::new(Check, text) }
}

impl TreePurpose {
    const fn describe(self) -> &'static str {
        match self {
            Self::Baseline => "workspace at the start",
            Self::AfterChecks => "workspace after the checks",
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
    /// After the checks of an iteration, where they see the workspace itself: what they wrote is theirs.
    AfterChecks,
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
    /// After a critic: files that are not as before it, the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Could the critic write nothing in the workspace? Then somebody else did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
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

impl ChangeKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

/// A file that the iteration changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Change {
    pub path: String,
    pub kind: ChangeKind,
    /// `None` for a deleted file.
    pub sha256: Option<Digest>,
}

/// Changes beyond those that a record lists: there were too many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unlisted {
    pub files: u64,
    /// The folder that most of the new files are in; empty: the workspace itself.
    pub folder: String,
    /// New files below that folder.
    pub below: u64,
    /// All changes, listed or not: a blob with a line of JSON for each.
    pub all: Digest,
}

impl Unlisted {
    pub fn count(&self) -> usize {
        usize::try_from(self.files).unwrap_or(usize::MAX)
    }

    /// What it means, and what to do.
    pub fn advice(&self) -> String {
        let place = if self.folder.is_empty() { "the workspace" } else { self.folder.as_str() };
        let rule = if self.folder.is_empty() { "what is installed or generated" } else { "it" };
        format!("{} new files below {place}: if they are installed or generated, name {rule} in .gitignore", self.below)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArtifactsCollected {
    pub iteration: u32,
    pub tree: Digest,
    /// What changed; of very many those that matter most, first.
    pub changes: Vec<Change>,
    /// The others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<Unlisted>,
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
    /// AGENTS.md but for this run's block, where people changed it: a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learnings_frame: Option<Digest>,
    /// A text of AGENTS.md that was put back, since an agent may have written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learnings_aside: Option<SetAside>,
    /// Places of ours that held something else and were put right since the last look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mended: Vec<String>,
}

impl ArtifactsCollected {
    /// How many files changed, listed or not.
    pub fn changed_in_all(&self) -> usize {
        self.changes.len() + self.more.as_ref().map_or(0, Unlisted::count)
    }
}

/// What agents had changed when a stop came in the middle of their work. It stands for nothing but itself: the
/// iteration goes on after a resume, and is judged by what is collected at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArtifactsPartial {
    pub iteration: u32,
    /// How often the run was resumed before: a later stop looks again.
    pub resumes: u32,
    pub changes: Vec<Change>,
    /// The changes that are not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<Unlisted>,
    /// A unified diff, as a blob; `None`: it could not be made.
    pub diff: Option<Digest>,
    /// Why the workspace could not be looked at in the little time that a stop leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

/// A text that was put back, and the one that stands there again: blobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAside {
    pub found: Digest,
    pub put_back: Digest,
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
    pub entry: Box<Entry>,
    pub review: Vec<Answer>,
    /// Digests of AGENTS.md before and after; equal means it was not written.
    pub before: Option<Digest>,
    pub after: Digest,
    pub compacted_before: Option<u32>,
    pub compaction: Option<CompactionLog>,
    /// The entry is too long to stand whole in AGENTS.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened: Option<Shortened>,
    /// AGENTS.md but for this run's block, where that is new: a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Digest>,
    /// A text of AGENTS.md that was put back, since a judge may have written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside: Option<SetAside>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateJudged {
    pub iteration: u32,
    pub report: GateReport,
}
