//! The folded state of the playbooks with an author and a critic: passes, routes, and the items of a PRD.
//!
//! Role: the state, its fold, and which events may follow. Not its role: what is decided from it (`playbook::passes`).
//! Invariants: an item passes only through `item.settled` after a verified pass, or by a person's hand between two
//! iterations; an iteration has at most one pass, and settles at most one item.

pub mod learned;
mod legal;

use std::collections::BTreeMap;

use crate::model::certificate::Residual;
use crate::model::critique::Severity;
use crate::model::decimal::Exact;
use crate::model::decision::{Answer, Request};
use crate::model::digest::Digest;
use crate::model::fraction::Fraction;
use crate::model::learnings::Link;
use crate::model::loop_file::Playbook;
use crate::model::prd::Prd;

use super::document;
use super::event::{
    Event, GitFinished, GitOperation, ItemChosen, ItemSeen, ItemSettled, PassJudged, PassVerdict, Phase, PrdRead,
    Probe, ReadWhen, RouteDecided,
};
use super::iteration::Iteration;
use super::operator::{Decision, DecisionStatus};
use super::run::RunState;
use super::state::State;

pub use legal::admit;
pub(super) use legal::legal;

/// The Northstar metric that the prd playbook measures by itself.
pub const ITEMS_PASSING: &str = "items_passing";
/// Longer titles and criteria are cut in the record; the file has them whole.
const MAX_TITLE: usize = 200;
const MAX_CRITERION: usize = 2_000;
/// An event holds so many bytes of items.
const MAX_SEEN: usize = 800 * 1024;
/// Digits kept of a ratio that does not terminate; it is rounded up.
const RATIO_PLACES: u32 = 12;

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

    /// Concerns of the latest pass at a subject that are still open.
    pub fn open_concerns(&self, subject: Option<&str>) -> usize {
        let latest = self.of(subject).next_back();
        latest.filter(|pass| pass.verdict != PassVerdict::Verified).map_or(0, |pass| pass.concerns.len())
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

/// Is it the moment at which these playbooks ask people?
pub fn may_ask(run: &RunState) -> bool {
    run.loop_file().playbook.has_passes() && run.state == State::SpawnSubagent && run.current.is_none()
}

/// Is nothing left to be done but what people were asked about? Then the run waits for them, parked or not.
pub fn only_people_left(run: &RunState) -> bool {
    if !may_ask(run) || run.halt.is_some() {
        return false;
    }
    let mut left = run.passes.prd.items.iter().filter(|item| !item.passes).map(|item| standing(run, Some(&item.id)));
    let mut asked = false;
    left.all(|standing| {
        asked |= standing == Standing::Asked;
        !matches!(standing, Standing::Open { .. })
    }) && asked
}

/// Folds an event of these playbooks.
pub(super) fn apply(run: &mut RunState, event: &Event) -> Result<(), &'static str> {
    let number = run.iteration_number();
    let passes = &mut run.passes;
    match event {
        Event::PrdRead(read) => {
            let place = (number, run.current.is_some(), run.state == State::CheckHalting);
            read_prd(&mut passes.prd, read, place);
        }
        Event::ItemChosen(chosen) => {
            passes.prd.chosen_from = passes.prd.text;
            passes.chosen.push(chosen.clone());
        }
        Event::PassJudged(judged) => passes.judged.push(judged.clone()),
        Event::RouteDecided(decided) => passes.routes.push(decided.clone()),
        Event::ItemSettled(settled) => {
            match &settled.items {
                Some(items) => passes.prd.items.clone_from(items),
                None if settled.passes => passes.prd.items = flipped(&passes.prd.items, &settled.item),
                None => {}
            }
            if settled.sha256.is_some() {
                passes.prd.text = settled.sha256;
            }
            passes.prd.passing.insert(settled.iteration, passes.prd.passing());
            passes.settled.push(settled.clone());
        }
        _ => return Err("it is no event of these playbooks"),
    }
    Ok(())
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

/// What passes is committed once, whatever came of it.
pub(super) fn git_finished(run: &mut RunState, finished: &GitFinished) {
    if run.state == State::CheckHalting && matches!(finished.operation, GitOperation::Commit { .. }) {
        run.passes.prd.committed = run.current.as_ref().map(Iteration::number);
    }
}

/// A person spoke: the file may be another one by now.
pub(super) fn heard(run: &mut RunState) {
    if run.current.is_none() {
        run.passes.prd.read_before = None;
    }
}

/// `place`: the iteration, whether it is running, and whether its checks have run.
fn read_prd(prd: &mut PrdState, read: &PrdRead, (number, running, checked): (u32, bool, bool)) {
    if let Some(items) = &read.items {
        prd.items.clone_from(items);
        prd.name.clone_from(&read.name);
        prd.branch.clone_from(&read.branch);
    }
    prd.problem.clone_from(&read.problem);
    if read.sha256.is_some() {
        prd.text = read.sha256;
    }
    match read.when {
        ReadWhen::Start => prd.at_start = Some(prd.passing()),
        ReadWhen::Between => prd.read_before = Some(number),
        ReadWhen::AfterWork => {
            // A limit that cut the iteration cut this, too; then it is made up for before the next one.
            let of = if running { number } else { number.saturating_sub(1) };
            prd.guarded = Some(of);
            if checked {
                prd.guarded_again = Some(of);
            }
            prd.restore = read.theirs.is_some();
            prd.theirs = read.theirs;
            if !read.touched.is_empty() {
                prd.touched.entry(of).or_default().extend(read.touched.iter().cloned());
            }
        }
        ReadWhen::Restored => prd.restore = false,
    }
}

/// The distance to the goal, or why there is none.
pub(super) fn residual(run: &RunState, iteration: Option<&Iteration>) -> Result<Residual, String> {
    match (run.loop_file().playbook, iteration) {
        (Playbook::Prd, _) => items_left(run),
        (_, Some(iteration)) => concerns_left(run, iteration),
        (_, None) => Err("nothing was judged yet".to_owned()),
    }
}

/// Items that do not pass / all items.
fn items_left(run: &RunState) -> Result<Residual, String> {
    let prd = &run.passes.prd;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (all, left) = (count(prd.items.len()), count(prd.items.len() - prd.passing()));
    let ratio = Fraction::new(i128::from(left), i128::from(all)).and_then(|f| f.to_exact_rounded_up(RATIO_PLACES));
    let value = ratio.ok_or("there are no items to count")?;
    Ok(Residual { value, unmet_of: Some((left, all)) })
}

/// Checks that fail and concerns that are open. A verified result has none, whatever small remarks it got.
fn concerns_left(run: &RunState, iteration: &Iteration) -> Result<Residual, String> {
    let Some(judged) = run.passes.judged_in(iteration.number()) else {
        return Err("the critic did not judge it".to_owned());
    };
    let open = match judged.verdict {
        PassVerdict::Verified => 0,
        PassVerdict::Unverified | PassVerdict::Refused => (judged.concerns.len() + judged.failed.len()).max(1),
        PassVerdict::Blocked | PassVerdict::Discarded => return Err(judged.detail.clone()),
    };
    let value = Exact::parse(&open.to_string()).map_err(|e| e.to_string())?;
    Ok(Residual { value, unmet_of: None })
}

/// Is everything of the PRD, or the result of the microloop, as it should be, and what shows it?
pub(super) fn way_out(run: &RunState, iteration: &Iteration, phase: Phase) -> (bool, Option<Link>, String) {
    let number = iteration.number();
    let link = iteration.critique().map(|(_, accepted)| Link {
        path: document::report_path(number, &iteration.call_key(crate::model::ids::Role::Critic, None)),
        sha256: accepted.sha256,
    });
    if run.loop_file().playbook == Playbook::Prd {
        let prd = &run.passes.prd;
        let (passing, all) = (prd.passing(), prd.items.len());
        let holds = |probe: &Probe| iteration.probe(phase, probe).is_some_and(|result| result.end.passed());
        let broken: Vec<String> =
            item_probes(run, Some(iteration)).iter().filter(|probe| !holds(probe)).map(Probe::name).collect();
        if passing == all && !broken.is_empty() {
            return (false, link, format!("not passed any more: {}", broken.join(", ")));
        }
        return (passing == all && all > 0 && link.is_some(), link, format!("{passing} of {all} items pass"));
    }
    match run.passes.judged_in(number) {
        Some(judged) => (judged.verdict == PassVerdict::Verified && link.is_some(), link, judged.detail.clone()),
        None => (false, None, "the critic did not judge it".to_owned()),
    }
}

/// How many items passed at the end of an iteration; `None` for the start: as the file was found.
pub fn passing_at(run: &RunState, iteration: Option<u32>) -> Option<String> {
    if run.loop_file().playbook != Playbook::Prd || run.passes.prd.items.is_empty() {
        return None;
    }
    let passing = &run.passes.prd.passing;
    let known = iteration.and_then(|number| passing.range(..=number).next_back()).map(|(_, count)| *count);
    known.or(run.passes.prd.at_start).map(|count| count.to_string())
}

/// The checks of an iteration that a pass stands on, with their names: all criteria with a check, and the item's own.
pub fn checks(run: &RunState, iteration: &Iteration) -> Vec<(String, Probe)> {
    let criteria =
        run.criteria.iter().filter(|criterion| matches!(criterion.proof, crate::model::criterion::Proof::Check { .. }));
    let mut checks: Vec<(String, Probe)> =
        criteria.map(|criterion| (criterion.id.clone(), Probe::Criterion(criterion.id.clone()))).collect();
    checks.extend(item_probes(run, Some(iteration)).into_iter().map(|probe| (probe.name(), probe)));
    checks
}

/// The declared checks of the chosen item and of everything that passes already: an item that breaks another one has
/// not passed.
pub fn item_probes(run: &RunState, iteration: Option<&Iteration>) -> Vec<Probe> {
    let chosen = iteration.and_then(|iteration| run.passes.chosen_in(iteration.number()));
    let wanted = |item: &&ItemSeen| item.passes || chosen.is_some_and(|chosen| chosen.item == item.id);
    let declared = &run.loop_file().prd().items;
    let has_check = |item: &&ItemSeen| declared.get(&item.id).is_some_and(|item| item.check.is_some());
    let items = run.passes.prd.items.iter().filter(wanted).filter(has_check);
    items.map(|item| Probe::Item(item.id.clone())).collect()
}

/// Checks of the iteration that did not pass.
pub fn failed_checks<'a>(
    run: &'a RunState,
    iteration: &'a Iteration,
) -> Vec<(String, Option<&'a super::event::ProbeResult>)> {
    let results = checks(run, iteration).into_iter();
    let results = results.map(|(name, probe)| (name, iteration.probe(Phase::Iteration, &probe)));
    results.filter(|(_, result)| !result.is_some_and(|result| result.end.passed())).collect()
}

/// How many concerns of each severity a pass left, the gravest first.
pub fn by_severity(judged: &PassJudged) -> [(Severity, usize); 3] {
    let count = |severity| judged.concerns.iter().filter(|concern| concern.severity == severity).count();
    [Severity::High, Severity::Medium, Severity::Low].map(|severity| (severity, count(severity)))
}
