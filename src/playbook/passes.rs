//! The playbooks `prd` and `micro`: an author works, the engine runs the checks, a critic judges, and the kernel of
//! [`micro`](super::micro) says what follows. With items (`prd`) every pass is about one of them.
//!
//! Role: what is missing next, and what follows once nothing is. Not its role: effects (`engine::items`), texts
//! (`prompts/`).
//! Invariants: one pass an iteration; every route is a recorded decision; where nothing is to be done, something is
//! decided, or the next iteration begins.

pub mod event;
mod fold;
mod items;
mod judge;
mod learned;
mod legal;
pub mod measure;
mod ready;
mod route;
mod rows;
pub mod state;
pub mod stuck;
pub mod views;

use crate::machine::event::{Event, Phase, Probe, ProbeEnd, RunHalted, TreePurpose, WorkEvent};
use crate::machine::guards;
use crate::machine::halt::halt;
use crate::machine::iteration::Iteration;
use crate::machine::open::Work;
use crate::machine::playbook::{IterationView, Learned, Playbook, ReadBlob, WayOut};
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::machine::todo::{Effect, Todo};
use crate::model::certificate::Residual;
use crate::model::decision::Request;
use crate::model::detour::{self, Detour};
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::learnings::{ITEMS_BYTES, OWN_BYTES};
use crate::model::loop_file::{self, LoopFile};
use crate::model::plan_row::Row;
use crate::model::prd::ReadWhen;
use crate::model::purpose::Purpose;
use crate::model::ready_line::{CheckNote, Items, ReadyLine};
use crate::model::report::Report;
use crate::model::stop::{ExitStatus, StopReason};
use crate::model::value::settings::GitSettings;

use event::{By, PassEvent, PassJudged, PassVerdict, Route};
use state::{Passes, Standing, has_items, standing};

/// What the prd playbook writes beside prd.json.
pub const PROGRESS: &str = "progress.txt";
pub const LOG: &str = "loop/log.txt";
pub const ARCHIVE: &str = "loop/log.archive.txt";
pub const LAST_ERROR: &str = "loop/last_error.txt";
/// The latest text of the file that was found and not believed.
pub const THEIRS: &str = "loop/prd.theirs.json";
/// All of them: no part of what is worked on.
pub const LEDGER: [&str; 5] = [LOG, ARCHIVE, LAST_ERROR, THEIRS, PROGRESS];

/// An author and a critic.
#[derive(Debug, Clone, Copy)]
pub struct AuthorAndCritic {
    name: loop_file::Playbook,
    /// Is every pass about an item of a file?
    items: bool,
}

pub static PRD: AuthorAndCritic = AuthorAndCritic { name: loop_file::Playbook::Prd, items: true };
pub static MICRO: AuthorAndCritic = AuthorAndCritic { name: loop_file::Playbook::Micro, items: false };

impl Playbook for AuthorAndCritic {
    fn name(&self) -> loop_file::Playbook {
        self.name
    }

    fn begin(&self) -> Box<dyn Work> {
        Box::new(Passes::default())
    }

    fn parse(&self, kind: &str, data: &str) -> Option<Result<Event, serde_json::Error>> {
        PassEvent::parse(kind, data).map(|event| event.map(Event::from))
    }

    fn legal(&self, run: &RunState, event: &dyn WorkEvent) -> Result<(), String> {
        match event.as_any().downcast_ref() {
            Some(event) => legal::legal(run, event),
            None => Err(format!("{} belongs to another playbook", event.kind())),
        }
    }

    fn fold(&self, run: &mut RunState, event: &Event) -> Result<(), &'static str> {
        fold::fold(run, event)
    }

    fn check_blobs(&self, run: &RunState, event: &Event, read: ReadBlob<'_>) -> Result<(), String> {
        event.work().map_or(Ok(()), |event| views::check_items(run, event, read))
    }

    fn prepare(&self, run: &RunState) -> Option<Todo> {
        if run.baseline.tree.is_some() {
            return None;
        }
        let prd = &run.passes().prd;
        if has_items(run) && prd.text.is_none() && prd.problem.is_none() {
            return Some(Todo::Effect(Effect::ReadPrd(ReadWhen::Start)));
        }
        items::not_ready(run).map(|_| Todo::Proceed)
    }

    fn between(&self, run: &RunState) -> Option<Todo> {
        if missing_sensor(run).is_some() {
            return Some(Todo::Proceed);
        }
        if has_items(run) { items::between(run) } else { at_the_end(run).map(|_| Todo::Proceed) }
    }

    fn work(&self, run: &RunState, iteration: &Iteration) -> Option<Todo> {
        if run.passes().prd.restore {
            return Some(Todo::Effect(Effect::RestorePrd));
        }
        if let Some(todo) = work_of(run, iteration) {
            return Some(todo);
        }
        let unguarded = has_items(run) && run.passes().prd.guarded != Some(iteration.number());
        unguarded.then_some(Todo::Effect(Effect::ReadPrd(ReadWhen::AfterWork)))
    }

    fn review(&self, run: &RunState, iteration: &Iteration) -> Option<Todo> {
        let number = iteration.number();
        if run.passes().judged_in(number).is_none() {
            return Some(review_of(run, iteration).unwrap_or(Todo::Proceed));
        }
        if run.passes().route_of(number).is_none() {
            return Some(Todo::Proceed);
        }
        let unsettled = has_items(run) && run.passes().settled_in(number).is_none();
        if unsettled {
            return Some(trial_of(run, iteration).unwrap_or(Todo::Effect(Effect::SettleItem)));
        }
        items::commit(run, number)
    }

    fn decide(&self, run: &RunState) -> Vec<Event> {
        match (run.state, &run.current) {
            (State::DreamGoal, _) if run.baseline.tree.is_none() => {
                items::not_ready(run).into_iter().map(Event::from).collect()
            }
            (State::SpawnSubagent, None) => decide_between(run),
            (State::CheckHalting, Some(iteration)) => decide_pass(run, iteration),
            _ => Vec::new(),
        }
    }

    fn admit(&self, run: &RunState, report: &Report) -> Result<(), String> {
        legal::admit(run, report)
    }

    fn is_between_items(&self, run: &RunState) -> bool {
        run.current.is_none() && !items::is_at_one(run)
    }

    fn last_item(&self, run: &RunState) -> String {
        let chosen = run.done.last().and_then(|done| run.passes().chosen_in(done.number()));
        chosen.map_or_else(|| "a pass".to_owned(), |chosen| format!("item {}", chosen.item))
    }

    /// Between two iterations they ask for themselves.
    fn may_ask(&self, run: &RunState, request: &Request) -> bool {
        matches!(request, Request::Stuck { .. } | Request::HumanAction { .. }) && state::may_ask(run)
    }

    fn waits_for_people(&self, run: &RunState) -> bool {
        state::only_people_left(run)
    }

    fn legal_git(&self, run: &RunState) -> Result<(), String> {
        if !self.items {
            return Err("a microloop does not use a repository".to_owned());
        }
        run.only_in("git", &[State::SpawnSubagent, State::CheckHalting])
    }

    fn residual(&self, run: &RunState) -> Option<Result<Residual, String>> {
        Some(measure::residual(run))
    }

    fn metric(&self, run: &RunState, id: &str, iteration: Option<u32>) -> Option<String> {
        measure::metric(run, id, iteration)
    }

    fn way_out(&self, run: &RunState, iteration: &Iteration, phase: Phase) -> WayOut {
        measure::way_out(run, iteration, phase)
    }

    fn probes(&self, run: &RunState, iteration: Option<&Iteration>) -> Vec<Probe> {
        measure::item_probes(run, iteration)
    }

    /// An item that passes was judged: what it brought judges the next one.
    fn trusted_iteration(&self, run: &RunState) -> Option<u32> {
        let current = run.current.as_ref().map(Iteration::number);
        let earlier = run.passes().settled.iter().rev().filter(|settled| Some(settled.iteration) != current);
        earlier.into_iter().find(|settled| settled.passes).map(|settled| settled.iteration)
    }

    fn watches(&self, run: &RunState, path: &str) -> bool {
        let number = run.current.as_ref().map(|iteration| iteration.number());
        let chosen = number.and_then(|number| run.passes().chosen_in(number));
        chosen.is_some_and(|chosen| run.loop_file().prd().is_out_of_scope(&chosen.item, path))
    }
    fn brings_tests(&self) -> bool {
        true
    }

    fn learnings_bytes(&self, run: &RunState) -> usize {
        if self.items && !run.began_before_parking() { ITEMS_BYTES } else { OWN_BYTES }
    }

    fn learned(&self, run: &RunState, iteration: &Iteration) -> Learned {
        learned::learned(run, iteration)
    }

    fn git_settings<'a>(&self, declared: &'a LoopFile) -> &'a GitSettings {
        &declared.prd().git
    }

    fn kept_files(&self, declared: &LoopFile) -> Vec<String> {
        self.items_file(declared).into_iter().map(str::to_owned).collect()
    }

    fn guarded(&self, declared: &LoopFile, _role: Role) -> Vec<String> {
        self.own_files(declared)
    }

    fn guarded_from_checks(&self, declared: &LoopFile) -> Vec<String> {
        self.own_files(declared)
    }

    fn own_files(&self, declared: &LoopFile) -> Vec<String> {
        let ledger = LEDGER.into_iter().filter(|_| self.items);
        self.items_file(declared).into_iter().chain(ledger).map(str::to_owned).collect()
    }

    fn recorded_file<'a>(&self, run: &'a RunState) -> Option<(&'a str, Digest)> {
        self.items_file(run.loop_file()).zip(run.passes().prd.text)
    }

    fn iteration_views(&self, run: &RunState, iteration: &Iteration) -> Vec<IterationView> {
        let routing = views::routing(run, iteration).map(|value| ("routing.json", value, "proof"));
        let receipts = views::receipts(run, iteration).map(|value| ("receipts.json", value, "log"));
        routing.into_iter().chain(receipts).collect()
    }

    fn rows(&self, run: &RunState) -> Vec<Row> {
        rows::rows(run)
    }

    fn title(&self, run: &RunState) -> Option<String> {
        Some(rows::title(run))
    }

    fn first_call(&self) -> Purpose {
        Purpose::Author
    }

    fn items_file<'a>(&self, declared: &'a LoopFile) -> Option<&'a str> {
        self.items.then(|| declared.prd().file.as_str())
    }

    fn ready_lines(&self, declared: &LoopFile, items: Option<&Items>) -> Vec<ReadyLine> {
        if self.items { ready::of_items(declared, items) } else { ready::of_flow(declared) }
    }

    fn check_note(&self) -> CheckNote {
        let when = if self.items { "runs after every item" } else { "runs after every pass" };
        CheckNote { when: Some(when), origin: self.items, needed: self.items }
    }

    fn compares_failures(&self) -> bool {
        true
    }
}

fn subject(run: &RunState, iteration: &Iteration) -> Option<String> {
    run.passes().chosen_in(iteration.number()).map(|chosen| chosen.item.clone())
}

/// A pass is worked on by its author, or by the known fix that the last route named.
fn work_of(run: &RunState, iteration: &Iteration) -> Option<Todo> {
    let called = |role: Role| iteration.calls.contains_key(&iteration.call_key(role, None));
    match due_detour(run, iteration) {
        Some(Detour { name, command: Some(_), .. }) => {
            let probe = Probe::Detour(name);
            let missing = iteration.probe(Phase::Detour, &probe).is_none();
            missing.then_some(Todo::RunProbe(Phase::Detour, probe))
        }
        Some(Detour { name, command: None, .. }) => (!called(Role::Fixer)).then_some(Todo::StartAgent {
            purpose: Purpose::Detour,
            paraphrase: None,
            subject: Some(name),
        }),
        None if let Some(probe) = own_check_before(run, iteration) => Some(Todo::RunProbe(Phase::Scouted, probe)),
        None => (!called(Role::Author)).then(|| Todo::StartAgent {
            purpose: Purpose::Author,
            paraphrase: None,
            subject: subject(run, iteration),
        }),
    }
}

/// The item's own check, if nobody has seen yet what it shows without the work.
fn own_check_before(run: &RunState, iteration: &Iteration) -> Option<Probe> {
    let item = subject(run, iteration).filter(|_| has_items(run) && !run.began_before_replays())?;
    let probe = Probe::Item(item);
    let declared = measure::item_probes(run, Some(iteration)).contains(&probe);
    (declared && guards::before_work(run, &probe).is_none()).then_some(probe)
}

/// The detour that this iteration is, if it is one.
pub fn due_detour(run: &RunState, iteration: &Iteration) -> Option<Detour> {
    let subject = subject(run, iteration);
    let last = run.passes().routes.iter().rev().find(|route| route.subject == subject)?;
    let Route::Detour(name) = &last.route else { return None };
    let class = last_signature(run, subject.as_deref())?.class;
    detour::known(run.loop_file().detours(), class).filter(|known| known.name == *name)
}

fn last_signature<'a>(run: &'a RunState, subject: Option<&'a str>) -> Option<&'a crate::model::signature::Signature> {
    run.passes().of(subject).next_back()?.signature.as_ref()
}

fn by(run: &RunState, iteration: &Iteration) -> By {
    due_detour(run, iteration).map_or(By::Author, |detour| By::Detour(detour.name))
}

/// The critic's part: called once, between two looks at the workspace, and only where its word is needed.
fn review_of(run: &RunState, iteration: &Iteration) -> Option<Todo> {
    if run.passes().prd.restore {
        return Some(Todo::Effect(Effect::RestorePrd));
    }
    if let Some(todo) = critic_of(run, iteration) {
        return Some(todo);
    }
    // The checks ran what an agent wrote: only now is the file what people made of it.
    let unguarded = has_items(run) && run.passes().prd.guarded_again != Some(iteration.number());
    unguarded.then_some(Todo::Effect(Effect::ReadPrd(ReadWhen::AfterWork)))
}

fn critic_of(run: &RunState, iteration: &Iteration) -> Option<Todo> {
    if !judge::needs_critic(run, iteration) {
        return None;
    }
    if iteration.review_trees.0.is_none() {
        return Some(Todo::TakeTree(TreePurpose::BeforeReview));
    }
    if !iteration.calls.contains_key(&iteration.call_key(Role::Critic, None)) {
        return Some(Todo::StartAgent { purpose: Purpose::Critic, paraphrase: None, subject: subject(run, iteration) });
    }
    iteration.review_trees.1.is_none().then_some(Todo::TakeTree(TreePurpose::AfterReview))
}

/// An item is flipped only by the judges that the run found: what is to be tried, asked or decided before.
fn trial_of(run: &RunState, iteration: &Iteration) -> Option<Todo> {
    if !run.passes().judged_in(iteration.number()).is_some_and(|judged| judged.verdict == PassVerdict::Verified) {
        return None;
    }
    let probes = trial_probes(run, iteration);
    let doubtful = || !guards::open_doubts(run, iteration, &probes).is_empty();
    guards::next(run, iteration, &probes).or_else(|| doubtful().then_some(Todo::Proceed))
}

fn trial_probes(run: &RunState, iteration: &Iteration) -> Vec<Probe> {
    measure::checks(run, iteration).into_iter().map(|(_, probe)| probe).collect()
}

/// Nobody but a person says that a changed judge is as it should be.
fn decide_trial(run: &RunState, iteration: &Iteration) -> Vec<Event> {
    let number = iteration.number();
    let unsettled = has_items(run) && run.passes().settled_in(number).is_none();
    if !unsettled || trial_of(run, iteration) != Some(Todo::Proceed) {
        return Vec::new();
    }
    let probes = trial_probes(run, iteration);
    if let Some(asked) = guards::ask(run, iteration, &probes) {
        return vec![asked];
    }
    let doubts = guards::open_doubts(run, iteration, &probes).join("; ");
    let detail = format!("GATE_TAMPERING: {doubts}; the item is not flipped");
    vec![halt(run, ExitStatus::ExitBlocked, StopReason::InvariantViolation, detail).into()]
}

fn decide_pass(run: &RunState, iteration: &Iteration) -> Vec<Event> {
    let number = iteration.number();
    let Some(judged) = run.passes().judged_in(number) else {
        return vec![judge::judge(run, iteration).into()];
    };
    if run.passes().route_of(number).is_none() {
        return vec![route::route(run, judged).into()];
    }
    decide_trial(run, iteration)
}

fn decide_between(run: &RunState) -> Vec<Event> {
    if let Some(halted) = missing_sensor(run) {
        return vec![halted.into()];
    }
    if has_items(run) { items::decide(run) } else { at_the_end(run).into_iter().collect() }
}

/// A microloop that does not go on by itself: halted, or a person asked.
fn at_the_end(run: &RunState) -> Option<Event> {
    if !matches!(standing(run, None), Standing::Open { .. }) {
        return None;
    }
    let judged = run.passes().of(None).next_back()?;
    if matches!(standing(run, None), Standing::Open { after: Some(after) } if judged.iteration <= after) {
        return None;
    }
    if let Some(halted) = discarded(run, judged) {
        return Some(halted.into());
    }
    let route = run.passes().route_of(judged.iteration)?;
    let concerns = route::told(judged);
    match &route.route {
        Route::Loop | Route::Detour(_) => None,
        // Verified, and still here: something else keeps it from being certified, which no further pass changes.
        Route::Continue => {
            let certificate = run.done.last().and_then(|done| done.certificate.as_ref());
            let why = certificate.map(|certificate| certificate.why.clone()).unwrap_or_default();
            let detail = format!("verified, but the run cannot be certified: {why}");
            Some(halt(run, ExitStatus::ExitBlocked, StopReason::VerificationRungFailed, detail).into())
        }
        Route::Terminate => {
            let detail = format!("no viable fix path: {}; {concerns}", route.why);
            Some(halt(run, ExitStatus::ExitBlocked, StopReason::NoViableFixPath, detail).into())
        }
        Route::AdvanceWithWarnings => {
            let detail = format!("{} of {} passes, and not verified: {concerns}", route.pass, route.limit);
            Some(halt(run, ExitStatus::ExitBudgetExceeded, StopReason::MaxIters, detail).into())
        }
        Route::Escalate => Some(route::ask(run, judged, false).unwrap_or_else(|| {
            let detail = format!("the same failure again, and nobody left to ask: {concerns}");
            halt(run, ExitStatus::ExitBlocked, StopReason::RepeatedFailure, detail).into()
        })),
    }
}

/// A critic that changed files has judged nothing, and a run that lets it pass is worth nothing.
fn discarded(run: &RunState, judged: &PassJudged) -> Option<RunHalted> {
    let discarded = judged.verdict == PassVerdict::Discarded;
    discarded.then(|| halt(run, ExitStatus::ExitBlocked, StopReason::InvariantViolation, judged.detail.clone()))
}

/// A check that cannot even start says nothing: the run stops rather than work blindly.
fn missing_sensor(run: &RunState) -> Option<RunHalted> {
    let latest = run.done.last();
    let probes = |probe: &Probe| match latest {
        Some(iteration) => iteration.probe(Phase::Iteration, probe),
        None => run.baseline.probes.get(probe),
    };
    let checks = match latest {
        Some(iteration) => measure::checks(run, iteration),
        None => run.baseline.probes.keys().map(|probe| (probe.name(), probe.clone())).collect(),
    };
    checks.iter().find_map(|(name, probe)| match probes(probe).map(|result| &result.end) {
        Some(ProbeEnd::NotStarted(why)) => {
            let detail = format!("MISSING_SENSOR: the check `{name}` did not start ({why}); install or correct it");
            Some(halt(run, ExitStatus::ExitBlocked, StopReason::Escalated, detail))
        }
        _ => None,
    })
}
