//! What a driver can be told to do, as data.

use crate::model::decision::DecisionId;
use crate::model::digest::Digest;
use crate::model::prd::ReadWhen;
use crate::model::purpose::Purpose;

use super::call::CallTodo;
use super::event::{GitOperation, Phase, Probe, TreePurpose};

/// One thing for the driver to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Todo {
    /// Nothing outside is needed: let the machine decide.
    Proceed,
    ReadNorthstar,
    TakeTree(TreePurpose),
    RunProbe(Phase, Probe),
    WritePlan,
    BeginIteration,
    StartAgent {
        purpose: Purpose,
        paraphrase: Option<u8>,
        subject: Option<String>,
    },
    /// Something a step of the value playbook needs to know or to have done.
    Effect(Effect),
    /// Go on with the open agent call.
    Call(CallTodo),
    CollectArtifacts,
    /// What judges the work, compared with how the run found it: `guards.compared`.
    CompareGuards,
    /// A stop cuts the agents short: what they changed so far is kept before the run halts.
    CollectPartial,
    WriteLearnings,
    /// Carry out the answer to this decision.
    Settle(DecisionId),
    /// The operator's pause takes effect here.
    BeginPause,
    /// Nothing happens until a person acts.
    AwaitPerson,
    /// The run is over.
    Finished,
}

/// What the engine does for a step, and records.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Vision and PRD: `documents.read`.
    ReadDocuments,
    /// A new text of an input document that needs no person's approval: written as a whole, then `documents.read`.
    WriteDocument {
        path: String,
        text: Digest,
    },
    /// All of these at the same time, bounded together; each becomes a probe of the step.
    RunProbes(Vec<Probe>),
    /// The same for checks of the step whose result is doubted: which run after the first it is.
    RunProbesAgain(u8, Vec<Probe>),
    /// What an agent changed since the latest look: `work.seen`.
    LookAtWork,
    /// The scripts of the QC role: `verifications.found`.
    FindVerifications,
    /// `services.checked`.
    CheckServices,
    /// `preflight.checked`.
    CheckPreflight,
    Git(GitOperation),
    /// Take back what this iteration changed: `iteration.undone`.
    Undo(u32),
    /// The file of items: `prd.read`.
    ReadPrd(ReadWhen),
    /// Put the believed text of the file of items back: `prd.read`.
    RestorePrd,
    /// What a judged pass means for its item, in prd.json, the log and the progress: `item.settled`.
    SettleItem,
}

impl Todo {
    /// An agent for a purpose that needs no further word.
    pub const fn call(purpose: Purpose) -> Self {
        Self::StartAgent { purpose, paraphrase: None, subject: None }
    }
}
