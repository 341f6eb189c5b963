//! What differs between playbooks, as one trait: the machine asks, a room of `playbook` answers.
//!
//! Everything a playbook has of its own stands behind this trait: its events, its part of the state and how the one
//! becomes the other; what comes next; how far the goal is; what it guards, writes and shows. The defaults are those of
//! a playbook that has nothing of its own. Pure, over the folded run; the only place that chooses one by its name is
//! [`playbook::of`](crate::playbook::of).

use std::fmt;

use serde_json::Error;

use crate::model::certificate::Residual;
use crate::model::decision::Request;
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::learnings::{Claim, Link, OWN_BYTES};
use crate::model::loop_file::{self, LoopFile};
use crate::model::plan_row::Row;
use crate::model::purpose::Purpose;
use crate::model::ready_line::{CheckNote, Items, ReadyLine};
use crate::model::rendered::Rendered;
use crate::model::report::Report;
use crate::model::value::settings::GitSettings;

use super::event::{Event, Phase, Probe, WorkEvent};
use super::iteration::Iteration;
use super::open::Work;
use super::run::RunState;
use super::todo::Todo;

/// What an iteration teaches beyond its criteria: lines of its entry in AGENTS.md.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Learned {
    /// `None`: what the agents' reports say.
    pub tried: Option<Vec<String>>,
    pub succeeded: Vec<Claim>,
    pub failed: Vec<Claim>,
    pub open_questions: Vec<String>,
    /// Did a check that stands for a part of the goal turn true?
    pub part_done: bool,
}

/// Was the playbook's own way out taken: is it open, what shows it, and why (not)?
pub type WayOut = (bool, Option<Link>, String);

/// A document of an iteration: its name, its value, its role in the manifest.
pub type IterationView = (&'static str, serde_json::Value, &'static str);

/// A document that was rewritten, or is to be: the name of its diff in the evidence, its path, and both texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    pub name: String,
    pub path: String,
    pub before: Digest,
    pub after: Digest,
}

/// Gets the bytes of a blob; the error is for people.
pub type ReadBlob<'a> = &'a dyn Fn(&Digest) -> Result<Vec<u8>, String>;

/// One playbook.
pub trait Playbook: Sync {
    /// As loop.yaml names it.
    fn name(&self) -> loop_file::Playbook;

    // Its part of the state, and its events.

    /// Its part of a fresh run.
    fn begin(&self) -> Box<dyn Work> {
        Box::new(())
    }
    /// Reads an event of its own. `None`: the kind is not one of its own.
    fn parse(&self, _kind: &str, _data: &str) -> Option<Result<Event, Error>> {
        None
    }
    /// May this event of a playbook follow? The error says why not.
    fn legal(&self, _run: &RunState, event: &dyn WorkEvent) -> Result<(), String> {
        Err(format!("{} belongs to another playbook", event.kind()))
    }
    /// Folds an event into its part: its own ones, and what it has to know of the others, which the machine folds
    /// right after.
    fn fold(&self, _run: &mut RunState, _event: &Event) -> Result<(), &'static str> {
        Ok(())
    }
    /// Are the blobs that an event names what the event says of them?
    fn check_blobs(&self, _run: &RunState, _event: &Event, _read: ReadBlob<'_>) -> Result<(), String> {
        Ok(())
    }

    // What it decides.

    /// What DREAM_GOAL has to do before the contract stands; `None`: nothing more.
    fn prepare(&self, _run: &RunState) -> Option<Todo> {
        None
    }
    /// What is to be done before the next iteration begins; `None`: it may begin.
    fn between(&self, _run: &RunState) -> Option<Todo> {
        None
    }
    /// The work of SPAWN_SUBAGENT; `None` when the work of this iteration is done.
    fn work(&self, run: &RunState, iteration: &Iteration) -> Option<Todo>;
    /// The reviews of CHECK_HALTING. A limit may have cut the iteration: then nobody is called any more.
    fn review(&self, _run: &RunState, _iteration: &Iteration) -> Option<Todo> {
        None
    }
    /// What follows from the facts alone in DREAM_GOAL, SPAWN_SUBAGENT and CHECK_HALTING, where `prepare`, `between`,
    /// `work` or `review` said [`Todo::Proceed`]; empty: the machine goes on.
    fn decide(&self, _run: &RunState) -> Vec<Event> {
        Vec::new()
    }

    // What it allows.

    /// Does it work in steps? Those call agents before the first iteration, too, and what they decide at once is made
    /// whole after a crash.
    fn has_steps(&self) -> bool {
        false
    }
    /// Does one item end here, and no other has begun?
    fn is_between_items(&self, run: &RunState) -> bool {
        run.current.is_none()
    }
    /// The item that ended last, in words.
    fn last_item(&self, run: &RunState) -> String {
        run.done.last().map_or_else(String::new, |done| format!("iteration {}", done.number()))
    }
    /// The number of the step that is open.
    fn open_step(&self, _run: &RunState) -> Option<u32> {
        None
    }
    /// Does the open call have to leave the last share of the iteration's limits to what closes the iteration?
    fn keeps_a_reserve(&self, _run: &RunState) -> bool {
        false
    }
    /// The key of its next call, unique within a run; `None`: iteration and role make it so.
    fn call_key(&self, _run: &RunState, _purpose: Purpose) -> Option<String> {
        None
    }
    /// May this report be taken now? The error goes back to the agent.
    fn admit(&self, _run: &RunState, report: &Report) -> Result<(), String> {
        match report {
            Report::Scout(_) | Report::Solver(_) | Report::Skeptic(_) => Ok(()),
            Report::Author(_) | Report::Critic(_) | Report::Value(_) => {
                Err("this playbook takes no such report".to_owned())
            }
        }
    }
    /// May it ask a person this, here, for itself?
    fn may_ask(&self, _run: &RunState, _request: &Request) -> bool {
        false
    }
    /// How often the verification of what it asked for may fail, where it has a limit of its own.
    fn max_checks(&self, _run: &RunState) -> Option<u32> {
        None
    }
    /// Is nothing left to be done but what people were asked about?
    fn waits_for_people(&self, _run: &RunState) -> bool {
        false
    }
    /// May it touch the repository here?
    fn legal_git(&self, _run: &RunState) -> Result<(), String> {
        Err("this playbook does not use a repository".to_owned())
    }
    /// May a person take this iteration back?
    fn may_undo(&self, _run: &RunState) -> Result<(), String> {
        Err("this playbook cannot undo an iteration".to_owned())
    }

    // How far the goal is.

    /// The distance to the goal, or why there is none; `None`: by the declared command, or by counting criteria.
    fn residual(&self, _run: &RunState) -> Option<Result<Residual, String>> {
        None
    }
    /// A Northstar metric that it measures by itself, at the end of an iteration or at the start.
    fn metric(&self, _run: &RunState, _id: &str, _iteration: Option<u32>) -> Option<String> {
        None
    }
    /// Whether the criterion that it adds by itself is met.
    fn way_out(&self, _run: &RunState, _iteration: &Iteration, _phase: Phase) -> WayOut {
        (false, None, "this playbook has no way out of its own".to_owned())
    }
    /// Was its way out tried yet, and how far is it? `None`: that question does not come up.
    fn way_out_tried(&self, _run: &RunState) -> Option<(bool, &'static str)> {
        None
    }
    /// Checks of its own in an iteration; `None`: in a replay of the certificate.
    fn probes(&self, _run: &RunState, _iteration: Option<&Iteration>) -> Vec<Probe> {
        Vec::new()
    }
    /// What must be seen to before the checks of a phase run; `None`: they may run.
    fn before_checks(&self, _run: &RunState, _phase: Phase) -> Option<Todo> {
        None
    }
    /// Its own checks that count as verifiers in a phase, each with the phase that shows it.
    fn verifiers(&self, _run: &RunState, _iteration: &Iteration, _phase: Phase) -> Vec<(Phase, Probe)> {
        Vec::new()
    }
    /// The replay of one of its own checks that has to be run again, because its result is doubted.
    fn doubted_replay(&self, _run: &RunState, _iteration: &Iteration) -> Option<(Phase, Probe)> {
        None
    }
    /// What takes a claim of success back after its replays; empty: the pass-gate judges it.
    fn takes_back(&self, _run: &RunState, _iteration: &Iteration) -> Option<Event> {
        None
    }
    /// The latest iteration whose judges a success stands on: later ones are compared with them.
    fn trusted_iteration(&self, _run: &RunState) -> Option<u32> {
        None
    }
    /// Does the work bring its own tests? Then tests that were added since a criterion was last met are no tampering.
    fn brings_tests(&self) -> bool {
        false
    }
    /// Are its agents told skills?
    fn tells_skills(&self) -> bool {
        false
    }
    /// May a verdict on the running iteration depend on whether this file changed? Such changes are listed, however
    /// many there are.
    fn watches(&self, _run: &RunState, _path: &str) -> bool {
        false
    }
    /// The most that the run's block of AGENTS.md takes, in bytes.
    fn learnings_bytes(&self, _run: &RunState) -> usize {
        OWN_BYTES
    }
    /// What an iteration taught.
    fn learned(&self, _run: &RunState, _iteration: &Iteration) -> Learned {
        Learned::default()
    }

    // What it keeps in the workspace.

    /// How it uses a repository.
    fn git_settings<'a>(&self, declared: &'a LoopFile) -> &'a GitSettings {
        &declared.value_settings().git
    }
    /// Files of people that no rollback puts back.
    fn kept_files(&self, _declared: &LoopFile) -> Vec<String> {
        Vec::new()
    }
    /// What no agent of this role may write.
    fn guarded(&self, _declared: &LoopFile, _role: Role) -> Vec<String> {
        Vec::new()
    }
    /// What no check may write.
    fn guarded_from_checks(&self, _declared: &LoopFile) -> Vec<String> {
        Vec::new()
    }
    /// Names that the engine writes for it: they are not work of an agent, and in no tree.
    fn own_files(&self, _declared: &LoopFile) -> Vec<String> {
        Vec::new()
    }
    /// A file of people that the run's verdicts are about, and its digest at the end.
    fn recorded_file<'a>(&self, _run: &'a RunState) -> Option<(&'a str, Digest)> {
        None
    }
    /// Its evidence about the run as a whole.
    fn views(&self, _run: &RunState) -> Vec<Rendered> {
        Vec::new()
    }
    /// The documents that its people and agents rewrote.
    fn rewritten(&self, _run: &RunState) -> Vec<Rewritten> {
        Vec::new()
    }
    /// Its evidence about one iteration: documents with their names and roles.
    fn iteration_views(&self, _run: &RunState, _iteration: &Iteration) -> Vec<IterationView> {
        Vec::new()
    }

    // What it shows.

    /// Its rows of the plan pane, before the criteria.
    fn rows(&self, _run: &RunState) -> Vec<Row> {
        Vec::new()
    }
    /// How far the plan is, in one line; `None`: the criteria say it.
    fn title(&self, _run: &RunState) -> Option<String> {
        None
    }
    /// Whose prompt the ready screen shows.
    fn first_call(&self) -> Purpose {
        Purpose::Scout
    }
    /// The file of items that the ready screen reads.
    fn items_file<'a>(&self, _declared: &'a LoopFile) -> Option<&'a str> {
        None
    }
    /// Its lines of the ready screen, before anything is spent. `items` as the file has them, or why not.
    fn ready_lines(&self, _declared: &LoopFile, _items: Option<&Items>) -> Vec<ReadyLine> {
        Vec::new()
    }
    /// When a declared check runs, where that is worth a word; the problem of a loop without one.
    fn check_note(&self) -> CheckNote {
        CheckNote::default()
    }
    /// Are failures compared with each other?
    fn compares_failures(&self) -> bool {
        false
    }
}

/// The playbook of a run, with its own part of the state.
#[derive(Clone)]
pub struct Room {
    pub(super) playbook: &'static dyn Playbook,
    pub(super) work: Box<dyn Work>,
}

impl Room {
    pub(super) fn new(playbook: &'static dyn Playbook) -> Self {
        Self { playbook, work: playbook.begin() }
    }
}

impl PartialEq for Room {
    fn eq(&self, other: &Self) -> bool {
        self.playbook.name() == other.playbook.name() && *self.work == *other.work
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.playbook.name().name(), self.work)
    }
}
