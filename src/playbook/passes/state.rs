//! The folded state of the playbooks with an author and a critic: passes, routes, and the items of a PRD.
//!
//! Role: the state and what is read off it. Not its role: how events become it (`fold`), which may follow (`legal`).
//! Invariants: an item passes only through `item.settled` after a verified pass, or by a person's hand between two
//! iterations; an iteration has at most one pass, and settles at most one item.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::machine::operator::{Decision, DecisionStatus};
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::model::critique::Severity;
use crate::model::decision::{Answer, Request};
use crate::model::digest::Digest;
use crate::model::prd::Prd;

use super::event::{ItemChosen, ItemSeen, ItemSettled, PassJudged, PassVerdict, RouteDecided};

/// Longer titles and criteria are cut in the record; the file has them whole.
const MAX_TITLE: usize = 200;
const MAX_CRITERION: usize = 2_000;
/// An event holds so many bytes of items.
const MAX_SEEN: usize = 800 * 1024;

/// The file of items, as it is believed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PrdState {
    pub items: Vec<ItemSeen>,
    /// The believed text.
    pub text: Option<Digest>,
    /// The text that the present item was chosen from.
    pub chosen_from: Option<Digest>,
    pub name: Option<String>,
    pub branch: Option<String>,
    /// Why the file could not be used when it was last read.
    pub problem: Option<String>,
    /// The believed text is not what the file holds: it has to be put back.
    pub restore: bool,
    /// The text that was found instead.
    pub theirs: Option<Digest>,
    /// The iteration before which the file was last read by people's leave.
    pub read_before: Option<u32>,
    /// The latest iteration after whose agents it was looked at.
    pub guarded: Option<u32>,
    /// The latest iteration after whose checks and critic it was looked at again: they run what agents wrote.
    pub guarded_again: Option<u32>,
    /// How many items passed before everything.
    pub at_start: Option<usize>,
    /// What agents changed and nobody believed, by iteration.
    pub touched: BTreeMap<u32, Vec<String>>,
    /// The latest iteration whose item was committed, or could not be.
    pub committed: Option<u32>,
    /// How many items passed at the end of each iteration.
    pub passing: BTreeMap<u32, usize>,
}

/// Passes of an author, and what followed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Passes {
    pub prd: PrdState,
    pub chosen: Vec<ItemChosen>,
    pub judged: Vec<PassJudged>,
    pub routes: Vec<RouteDecided>,
    pub settled: Vec<ItemSettled>,
}

impl PrdState {
    pub fn item(&self, id: &str) -> Option<&ItemSeen> {
        self.items.iter().find(|item| item.id == id)
    }

    pub fn passing(&self) -> usize {
        self.items.iter().filter(|item| item.passes).count()
    }
}

/// The items that this run is about: all of the file, or those that were named.
pub fn counted(run: &RunState) -> impl Iterator<Item = &ItemSeen> {
    let settings = run.loop_file().prd();
    run.passes().prd.items.iter().filter(|item| settings.counts(&item.id))
}

/// How many of them there are, and how many pass.
pub fn score(run: &RunState) -> (usize, usize) {
    counted(run).fold((0, 0), |(all, passing), item| (all + 1, passing + usize::from(item.passes)))
}

/// Do the others go on while one waits for a person?
pub fn parks(run: &RunState) -> bool {
    let settings = run.loop_file().prd();
    if run.began_before_parking() { settings.park_and_continue == Some(true) } else { settings.parks() }
}

impl Passes {
    /// The item of an iteration.
    pub fn chosen_in(&self, iteration: u32) -> Option<&ItemChosen> {
        self.chosen.iter().rev().find(|chosen| chosen.iteration == iteration)
    }

    pub fn judged_in(&self, iteration: u32) -> Option<&PassJudged> {
        self.judged.iter().rev().find(|judged| judged.iteration == iteration)
    }

    pub fn route_of(&self, iteration: u32) -> Option<&RouteDecided> {
        self.routes.iter().rev().find(|route| route.iteration == iteration)
    }

    pub fn settled_in(&self, iteration: u32) -> Option<&ItemSettled> {
        self.settled.iter().rev().find(|settled| settled.iteration == iteration)
    }

    /// The passes at a subject, oldest first.
    pub fn of<'a>(&'a self, subject: Option<&'a str>) -> impl DoubleEndedIterator<Item = &'a PassJudged> {
        self.judged.iter().filter(move |judged| judged.subject.as_deref() == subject)
    }

    /// Was the latest pass at an item verified?
    pub fn was_verified(&self, item: &str) -> bool {
        self.of(Some(item)).next_back().is_some_and(|pass| pass.verdict == PassVerdict::Verified)
    }
}

impl RunState {
    /// The part of the playbooks with an author and a critic; empty for the others.
    pub fn passes(&self) -> &Passes {
        static EMPTY: LazyLock<Passes> = LazyLock::new(Passes::default);
        self.work().unwrap_or(&EMPTY)
    }
}

/// What people said of a subject whose attempts were used up, the latest first.
pub fn decisions<'a>(run: &'a RunState, subject: Option<&'a str>) -> impl Iterator<Item = &'a Decision> {
    run.operator.decisions.iter().rev().filter(move |decision| {
        matches!(&decision.request, Request::Stuck { subject: asked, .. } if asked.as_deref() == subject)
    })
}

/// Where a subject stands between its passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may be worked on; only passes after this iteration count. `None`: all of them.
    Open { after: Option<u32> },
    /// A person has been asked.
    Asked,
    /// A person said to leave it alone.
    Skipped,
}

pub fn standing(run: &RunState, subject: Option<&str>) -> Standing {
    let Some(decision) = decisions(run, subject).next() else { return Standing::Open { after: None } };
    let Request::Stuck { iteration, .. } = &decision.request else { return Standing::Open { after: None } };
    if decision.status != DecisionStatus::Closed {
        return Standing::Asked;
    }
    match decision.closed_with() {
        Some(Answer::Skip | Answer::Split) => Standing::Skipped,
        _ => Standing::Open { after: Some(*iteration) },
    }
}

/// What a person told the author to try, since the last attempts were used up.
pub fn hint<'a>(run: &'a RunState, subject: Option<&'a str>) -> Option<&'a str> {
    match decisions(run, subject).next()?.closed_with()? {
        Answer::Text(text) => Some(text),
        _ => None,
    }
}

/// Is every pass about an item of a file?
pub fn has_items(run: &RunState) -> bool {
    run.playbook().items_file(run.loop_file()).is_some()
}

/// Is it the moment at which these playbooks ask people?
pub fn may_ask(run: &RunState) -> bool {
    run.state == State::SpawnSubagent && run.current.is_none()
}

/// Is nothing left to be done but what people were asked about? Then the run waits for them, parked or not.
pub fn only_people_left(run: &RunState) -> bool {
    if !may_ask(run) || run.halt.is_some() {
        return false;
    }
    let mut left = counted(run).filter(|item| !item.passes).map(|item| standing(run, Some(&item.id)));
    let mut asked = false;
    left.all(|standing| {
        asked |= standing == Standing::Asked;
        !matches!(standing, Standing::Open { .. })
    }) && asked
}

/// The items of a file as an event has them, or why they do not fit.
pub fn seen(prd: &Prd) -> Result<Vec<ItemSeen>, String> {
    let cut = |text: &String, limit: usize| text[..text.floor_char_boundary(limit)].to_owned();
    let mut items: Vec<ItemSeen> = prd
        .items()
        .iter()
        .map(|item| ItemSeen {
            id: item.id.clone(),
            title: cut(&item.title, MAX_TITLE),
            passes: item.passes,
            order: 0,
            acceptance: match item.passes {
                true => Vec::new(),
                false => item.acceptance.iter().map(|one| cut(one, MAX_CRITERION)).collect(),
            },
        })
        .collect();
    for (order, index) in prd.order().into_iter().enumerate() {
        items[index].order = u32::try_from(order).unwrap_or(u32::MAX);
    }
    let bytes = serde_json::to_string(&items).map_or(usize::MAX, |text| text.len());
    if bytes > MAX_SEEN {
        return Err(format!("its {} items hold too much text ({bytes} bytes): split the file", items.len()));
    }
    Ok(items)
}

/// The items once this one passes.
pub fn flipped(items: &[ItemSeen], id: &str) -> Vec<ItemSeen> {
    let mut items = items.to_vec();
    for item in items.iter_mut().filter(|item| item.id == id) {
        item.passes = true;
        item.acceptance.clear();
    }
    items
}

/// How many concerns of each severity a pass left, the gravest first.
pub fn by_severity(judged: &PassJudged) -> [(Severity, usize); 3] {
    let count = |severity| judged.concerns.iter().filter(|concern| concern.severity == severity).count();
    [Severity::High, Severity::Medium, Severity::Low].map(|severity| (severity, count(severity)))
}
