//! `verify`: may this run be believed? Offline, read-only, trusting nobody.
//!
//! The chain is checked first, then the story it tells: every decision of the machine is made again from
//! the facts before it and must come out the same; then what was rendered from it must still be there (`files`).
//! It says what is proven and what is not; who signed and whether that is somebody to trust, the caller says.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use crate::journal::{self, Blobs, ChainReport, JournalError, PublicKey, RunDir, verify_chain};
use crate::machine::batch;
use crate::machine::call::ToolPhase;
use crate::machine::document;
use crate::machine::event::{CallEvent, Event, GitEvent, IterationEvent, OperatorEvent, Origin, RunEvent};
use crate::machine::fold::{self, Stamped};
use crate::machine::run::RunState;
use crate::machine::step::{self, Input};
use crate::model::digest::Digest;
use crate::model::learnings::Shrunk;
use crate::model::stop::ExitStatus;
use crate::model::stop::StopReason;
use crate::playbook;

mod files;
mod held;
mod tools;

/// How far the run can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyVerdict {
    Ok,
    /// Something contradicts what was written.
    Tampered,
    /// Nothing contradicts, but the run has no end yet, or something that should be there is not.
    Incomplete,
}

impl VerifyVerdict {
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Tampered => 1,
            Self::Incomplete => 2,
        }
    }
}

/// A place that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub place: String,
    pub what: String,
}

/// What `verify` found.
#[derive(Debug)]
pub struct Verification {
    pub events: u64,
    pub head: Digest,
    pub problems: Vec<Problem>,
    /// Why a run without problems is still not complete.
    pub incomplete: Vec<String>,
    /// What is shown, one sentence each.
    pub proven: Vec<String>,
    /// What is not, though one might think so.
    pub not_proven: Vec<String>,
    pub sealed: bool,
    /// The newest anchor names this head and seal, and none is missing.
    pub anchored: bool,
    /// Whose signature holds.
    pub signer: Option<PublicKey>,
    pub state: Option<RunState>,
    /// Rendered files that were compared and are equal.
    pub files_compared: usize,
}

impl Verification {
    fn of(chain: &ChainReport) -> Self {
        let mut found = Self {
            events: chain.events,
            head: chain.head,
            problems: chain.problems.iter().map(|p| Problem { place: p.place.clone(), what: p.what.clone() }).collect(),
            incomplete: chain.incomplete.iter().map(|p| format!("{}: {}", p.place, p.what)).collect(),
            proven: Vec::new(),
            not_proven: chain.notes.clone(),
            sealed: chain.sealed,
            anchored: chain.anchored,
            signer: chain.signer,
            state: None,
            files_compared: 0,
        };
        if let Some(torn) = &chain.torn_at {
            found.miss(&torn.place, "the last line was cut by a crash; `nightloop resume` repairs it");
        }
        found
    }

    pub fn verdict(&self) -> VerifyVerdict {
        if !self.problems.is_empty() {
            VerifyVerdict::Tampered
        } else if !self.incomplete.is_empty() {
            VerifyVerdict::Incomplete
        } else {
            VerifyVerdict::Ok
        }
    }
}

/// Where the rendered files of a run may be looked for.
pub enum RenderedPlace {
    /// In this workspace, current or archived.
    Workspace(PathBuf),
    /// In the folder of an unpacked run: its evidence, and nothing else of the workspace.
    Packed(PathBuf),
    /// Not at hand, for example for a copied journal.
    Nowhere,
}

/// Verifies a run directory.
pub fn verify(run_dir: &RunDir, anchors: Option<&Path>, place: &RenderedPlace) -> Verification {
    let chain = verify_chain(run_dir, anchors);
    let mut found = Verification::of(&chain);
    if !found.problems.is_empty() {
        return found;
    }
    if chain.events == 0 {
        found.incomplete.push("the run was created but never started".to_owned());
        return found;
    }
    found.proven.push(format!("the chain: {} events, none changed, moved or left out", chain.events));
    let (state, decisions) = match Story::read(run_dir) {
        Ok(story) => story,
        Err(problem) => {
            found.problems.push(problem);
            return found;
        }
    };
    found.proven.push(format!("the story: {decisions} decisions re-made from the recorded facts, all as recorded"));
    check_completeness(&state, chain.sealed, &mut found);
    // Files are complete when the seal is: before that a run may be ahead of them.
    let place = if chain.sealed { place } else { &RenderedPlace::Nowhere };
    files::check(run_dir, &state, place, &mut found);
    limits_of_proof(&state, anchors.is_some(), &mut found);
    if found.anchored && matches!(place, RenderedPlace::Packed(_)) {
        let note =
            "that the anchors are the true ones: they came in the same file, and only its signature vouches for them";
        found.not_proven.push(note.to_owned());
    }
    found.state = Some(state);
    found
}

/// What even a run without a flaw does not show.
fn limits_of_proof(state: &RunState, compared: bool, found: &mut Verification) {
    if found.signer.is_none() {
        found.not_proven.push("who made it: the run is unsigned".to_owned());
    }
    match (found.anchored, compared) {
        (true, _) => found.proven.push("the end: the newest anchor names this head and this seal".to_owned()),
        (false, true) => found.not_proven.push("that this is the run that took place: it is unanchored".to_owned()),
        (false, false) => {
            let note = "that this is the run that took place: there are no anchors to compare it with";
            found.not_proven.push(note.to_owned());
        }
    }
    if state.halt.as_ref().is_some_and(|halt| halt.status == ExitStatus::ExitConverged) {
        found.not_proven.push("that the code does more than its checks ask".to_owned());
    }
    if let Some(open) = held::not_held(&state.started.sandbox) {
        found.not_proven.push(format!("what commands did elsewhere: the sandbox did not hold {open}"));
    }
}

/// Follows the events and makes every decision again.
struct Story {
    state: Option<RunState>,
    /// Decisions that must come next, in this order.
    expected: VecDeque<Event>,
    blobs: Blobs,
    seen_blobs: BTreeSet<Digest>,
    tools: tools::Tools,
    /// Decisions that were made again.
    decisions: u64,
}

impl Story {
    fn read(run_dir: &RunDir) -> Result<(RunState, u64), Problem> {
        let mut story = Self {
            state: None,
            expected: VecDeque::new(),
            blobs: run_dir.blobs(),
            seen_blobs: BTreeSet::new(),
            tools: tools::Tools::new(),
            decisions: 0,
        };
        for record in journal::read(run_dir) {
            let record = match record {
                Ok(record) => record,
                Err(JournalError::Torn { .. }) => break,
                Err(error) => return Err(Problem { place: "journal".to_owned(), what: error.to_string() }),
            };
            if record.kind == journal::SEGMENT_END {
                continue;
            }
            let place = format!("event {} ({})", record.seq, record.kind);
            let event = match playbook::parse(&record.kind, record.data.get()) {
                Some(Ok(event)) => event,
                Some(Err(e)) => return Err(Problem { place, what: format!("its payload cannot be read: {e}") }),
                None => return Err(Problem { place, what: "this version does not know its kind".to_owned() }),
            };
            let stamped = Stamped { seq: record.seq, ts: record.ts, mono_ms: record.mono_ms, boot: record.boot, event };
            story.take(&stamped).map_err(|what| Problem { place, what })?;
        }
        let decisions = story.decisions;
        let state = story.state.map(|state| (state, decisions));
        state.ok_or_else(|| Problem { place: "journal".to_owned(), what: "it holds no events".to_owned() })
    }

    fn take(&mut self, stamped: &Stamped) -> Result<(), String> {
        self.check_blobs(&stamped.event)?;
        let Some(state) = &mut self.state else {
            self.state = Some(playbook::start(stamped).map_err(|e| e.to_string())?);
            return Ok(());
        };
        check_announced(state, &stamped.event)?;
        self.decisions += u64::from(check_decision(state, &mut self.expected, &stamped.event)?);
        check_limits(state, &stamped.event)?;
        self.tools.check(state, &self.blobs, &stamped.event)?;
        state
            .playbook()
            .check_blobs(state, &stamped.event, &|digest| self.blobs.get(digest).map_err(|e| e.to_string()))?;
        fold::apply(state, stamped).map_err(|e| e.to_string())
    }

    fn check_blobs(&mut self, event: &Event) -> Result<(), String> {
        for digest in event.blobs() {
            if self.seen_blobs.insert(digest) && !self.blobs.path(&digest).exists() {
                return Err(format!("the blob {digest} is missing"));
            }
        }
        Ok(())
    }
}

/// A result needs its intent: nothing runs before it is announced.
fn check_announced(state: &RunState, event: &Event) -> Result<(), String> {
    let call = state.call.as_ref();
    let announced = match event {
        Event::Call(CallEvent::ToolFinished(finished)) => call.is_some_and(|call| {
            let mut tools = call.tools.iter();
            tools.any(|tool| tool.tool_use.id == finished.id && matches!(tool.phase, ToolPhase::Intended { .. }))
        }),
        // A wait at the gate that runs share: nothing was sent, and nothing is charged.
        Event::Call(CallEvent::LlmFailed(failed)) if failed.is_only_a_wait() => call.is_some(),
        Event::Call(CallEvent::LlmResponded(_)) | Event::Call(CallEvent::LlmFailed(_)) => {
            call.is_some_and(|call| call.request_open)
        }
        Event::Iteration(IterationEvent::ProbeFinished(finished)) => {
            state.open_probes.contains(&(finished.phase, finished.probe.clone()))
        }
        Event::Git(GitEvent::GitFinished(finished)) => state.git.open.as_ref() == Some(&finished.operation),
        _ => true,
    };
    if announced { Ok(()) } else { Err("it was never announced".to_owned()) }
}

/// A decision must be what the machine decides from the same facts. Was it one?
fn check_decision(state: &RunState, expected: &mut VecDeque<Event>, event: &Event) -> Result<bool, String> {
    if let Event::Call(CallEvent::AgentFinished(_)) = event
        && open_tool(state)
    {
        return Err("an agent ends while a tool it called has no result".into());
    }
    let decided = match event {
        // A tool may ask at its own time; the machine asks only where the facts make it. Whether a spend limit or too
        // many denials stand behind a question in the middle of a call is seen when it is folded.
        Event::Operator(OperatorEvent::DecisionAsked(asked)) => asked.asked_by.is_none() && state.call.is_none(),
        event => match event.origin() {
            Origin::Decided => true,
            Origin::Derived => return check_derived(state, event).map(|()| true),
            Origin::Fact | Origin::Person => false,
        },
    };
    if !decided {
        // What a playbook decided at once is made whole after a crash; else an engine that died between two decisions
        // makes them again.
        if !(batch::passes(event) && expected.iter().all(|rest| batch::is_of_a_step(state, rest))) {
            expected.clear();
        }
        return Ok(false);
    }
    if expected.is_empty() {
        expected.extend(step::step(state, Input::Proceed));
    }
    match expected.pop_front() {
        Some(decision) if decision == *event => Ok(true),
        Some(decision) => Err(format!("from the facts before it follows `{}`, which differs", decision.kind())),
        None => Err("nothing is to be decided here".to_owned()),
    }
}

/// What the engine wrote down must be what follows from the facts.
fn check_derived(state: &RunState, event: &Event) -> Result<(), String> {
    let holds = |holds: bool, why: &str| if holds { Ok(()) } else { Err(why.to_owned()) };
    match event {
        Event::Iteration(IterationEvent::GlowScored(scored)) => {
            let accumulated = step::accumulate(state).ok_or("there is no certificate to score")?;
            holds(accumulated.glow == scored.glow, "the GLOW score does not follow from the facts")
        }
        Event::Iteration(IterationEvent::LearningsRecorded(recorded)) => {
            let accumulated = step::accumulate(state).ok_or("there is no certificate to learn from")?;
            let same = accumulated.entry == *recorded.entry && accumulated.review == recorded.review;
            holds(same, "the entry does not follow from the facts")?;
            if state.began_before_replays() {
                return Ok(());
            }
            let learnt = state.learnings_with(&recorded.entry);
            let shrunk = Shrunk { compaction: recorded.compaction, shortened: recorded.shortened };
            let same = Digest::of(learnt.document.as_bytes()) == recorded.after && learnt.shrunk == shrunk;
            holds(same, "what AGENTS.md should hold does not follow from the facts")
        }
        Event::Run(RunEvent::PlanWritten(written)) => {
            let plan = document::digest(&document::plan(state));
            holds(plan == written.sha256, "the plan does not follow from the facts")
        }
        Event::Call(CallEvent::ReportAccepted(accepted)) => {
            let rendered = Digest::of(document::report(&accepted.report).as_bytes());
            holds(rendered == accepted.sha256, "the report differs from its digest")
        }
        event => Err(format!("nothing is known to derive {} from", event.kind())),
    }
}

/// Nothing is started past a limit; one call may be in flight when it is reached.
fn check_limits(state: &RunState, event: &Event) -> Result<(), String> {
    let limits = &state.limits;
    match event {
        Event::Call(CallEvent::ToolIntended(_)) if state.spent.tool_calls >= limits.max_total_tool_calls => {
            Err(format!(
                "tool call {} is past max_total_tool_calls {}",
                state.spent.tool_calls + 1,
                limits.max_total_tool_calls
            ))
        }
        Event::Call(CallEvent::ToolIntended(_))
            if state.spent.iteration_tool_calls >= limits.max_tool_calls_per_iteration =>
        {
            Err("a tool call past max_tool_calls_per_iteration".to_owned())
        }
        Event::Iteration(IterationEvent::IterationBegan(_)) if state.spent.iterations >= limits.max_iterations => {
            Err("an iteration past max_iterations".to_owned())
        }
        Event::Call(CallEvent::LlmRequested(_))
            if limits.max_total_tokens.is_some_and(|limit| state.spent.tokens() >= limit) =>
        {
            Err("a model call past max_total_tokens".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_completeness(state: &RunState, sealed: bool, found: &mut Verification) {
    let Some(halted) = &state.halt else {
        found.incomplete.push(format!("the run has not ended: it is in {}", state.state));
        return;
    };
    if !sealed {
        found.incomplete.push("the run has ended but was not sealed; `nightloop resume` completes it".to_owned());
    }
    // A stop leaves the call it cut open on purpose: `resume` goes on there.
    if halted.stop_reason == StopReason::BackpressureSignal {
        return;
    }
    if open_tool(state) || !state.open_probes.is_empty() || state.git.open.is_some() {
        found.problems.push(Problem {
            place: "journal".to_owned(),
            what: "an effect was announced and never closed, although the run has ended".to_owned(),
        });
    }
}

/// Was a tool announced that has no result?
fn open_tool(state: &RunState) -> bool {
    let call = state.call.as_ref();
    call.is_some_and(|call| call.tools.iter().any(|tool| matches!(tool.phase, ToolPhase::Intended { .. })))
}
