//! The value playbook: from a vision to value, in steps that a pure decision engine chooses.
//!
//! Role: say which step comes next and how an open one goes on. Every step is a small script of two functions in
//! a file of its own: `next` names the effect that is missing, `decide` what follows once none is.
//! Not its role: making effects (`engine::value`), texts (`prompts/value/`).
//!
//! Invariants: nothing here raises a limit; where `next` has nothing to do, `decide` has something to say.

pub mod actions;
#[cfg(test)]
mod admit_tests;
pub mod brief;
pub mod decide;
pub mod event;
pub mod flaky;
mod fold;
pub mod gates;
mod learned;
pub mod legal;
pub mod measure;
pub mod monitor;
#[cfg(test)]
mod proof_tests;
mod rows;
pub mod services;
pub mod state;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod undo_tests;
pub mod views;

use crate::machine::event::{Event, Phase, Probe, RunHalted, WorkEvent};
use crate::machine::iteration::Iteration;
use crate::machine::open::Work;
use crate::machine::playbook::{Learned, Playbook, Rewritten, WayOut};
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::machine::todo::{Effect, Todo};
use crate::model::certificate::Residual;
use crate::model::decision::Request;
use crate::model::ids::Role;
use crate::model::loop_file::{self, LoopFile};
use crate::model::plan_row::Row;
use crate::model::purpose::Purpose;
use crate::model::rendered::Rendered;
use crate::model::report::Report;
use crate::model::value::{Action, Outcome, VIEWS, verification};

use event::{StepBegan, StepFinished, ValueEvent};
use state::{OpenStep, ValueState};

/// From VISION.md and PRD.md to an exit gate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Value;

/// What comes after a finished step.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    Begin(Action, String),
    /// The preparation, or this iteration, is over.
    Close,
    Halt(Box<RunHalted>),
}

impl Playbook for Value {
    fn name(&self) -> loop_file::Playbook {
        loop_file::Playbook::Value
    }

    fn begin(&self) -> Box<dyn Work> {
        Box::new(ValueState::default())
    }

    fn parse(&self, kind: &str, data: &str) -> Option<Result<Event, serde_json::Error>> {
        ValueEvent::parse(kind, data).map(|event| event.map(Event::from))
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

    fn prepare(&self, run: &RunState) -> Option<Todo> {
        go_on(run)
    }

    fn work(&self, run: &RunState, _iteration: &Iteration) -> Option<Todo> {
        go_on(run)
    }

    fn decide(&self, run: &RunState) -> Vec<Event> {
        match &run.value().step {
            Some(step) if run.cut.is_some() => actions::cut(run, step),
            Some(step) => decide_in(run, step),
            // The machine closes a cut iteration; before the first one there is none, and the gates say how it ends.
            None if run.cut.is_some() && run.state != State::DreamGoal => Vec::new(),
            None => match choose(run) {
                Choice::Begin(action, why) => {
                    vec![StepBegan { step: run.value().steps_begun, action, why }.into()]
                }
                Choice::Close => Vec::new(),
                Choice::Halt(halted) => vec![(*halted).into()],
            },
        }
    }

    fn has_steps(&self) -> bool {
        true
    }

    fn open_step(&self, run: &RunState) -> Option<u32> {
        run.value().step.as_ref().map(|step| step.number)
    }

    fn keeps_a_reserve(&self, run: &RunState) -> bool {
        let deciding = run.value().step.as_ref().is_some_and(|step| step.action.is_decision());
        run.current.is_some() && deciding
    }

    fn call_key(&self, run: &RunState, purpose: Purpose) -> Option<String> {
        let step = run.value().step.as_ref()?;
        let place = run.current.as_ref().map_or_else(|| "pre".to_owned(), |now| format!("it{}", now.number()));
        Some(format!("{place}.step{}.{purpose}.{}", step.number, step.calls_for(purpose)))
    }

    fn admit(&self, run: &RunState, report: &Report) -> Result<(), String> {
        match report {
            Report::Scout(_) | Report::Solver(_) | Report::Skeptic(_) => Ok(()),
            Report::Value(report) => legal::admit(run, report),
            Report::Author(_) | Report::Critic(_) => Err("this playbook takes no such report".to_owned()),
        }
    }

    /// A step asks for itself, between its calls.
    fn may_ask(&self, run: &RunState, request: &Request) -> bool {
        match request {
            Request::HumanAction { .. }
            | Request::Question { .. }
            | Request::Refinement { .. }
            | Request::Vision { .. }
            | Request::Escalation { .. } => run.value().step.is_some(),
            Request::Permission { .. }
            | Request::Tampering { .. }
            | Request::SpendLimit { .. }
            | Request::Stuck { .. } => false,
        }
    }

    fn max_checks(&self, run: &RunState) -> Option<u32> {
        run.value().step.as_ref().map(|_| run.value_settings().max_pause_checks)
    }

    /// Undoing works between steps, too.
    fn legal_git(&self, _run: &RunState) -> Result<(), String> {
        Ok(())
    }

    fn may_undo(&self, run: &RunState) -> Result<(), String> {
        legal::may_undo(run)
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

    fn way_out_tried(&self, run: &RunState) -> Option<(bool, &'static str)> {
        Some(measure::way_out_tried(run))
    }

    fn probes(&self, run: &RunState, iteration: Option<&Iteration>) -> Vec<Probe> {
        if iteration.is_none() { measure::scripts(run) } else { Vec::new() }
    }

    fn before_checks(&self, run: &RunState, phase: Phase) -> Option<Todo> {
        services::before_checks(run, phase)
    }

    fn verifiers(&self, run: &RunState, iteration: &Iteration, phase: Phase) -> Vec<(Phase, Probe)> {
        measure::verifiers(run, iteration, phase)
    }

    fn doubted_replay(&self, run: &RunState, iteration: &Iteration) -> Option<(Phase, Probe)> {
        flaky::doubted_replay(run, iteration)
    }

    fn takes_back(&self, run: &RunState, iteration: &Iteration) -> Option<Event> {
        measure::takes_back(run, iteration)
    }

    fn learned(&self, run: &RunState, iteration: &Iteration) -> Learned {
        learned::learned(run, iteration)
    }

    fn kept_files(&self, declared: &LoopFile) -> Vec<String> {
        let settings = declared.value_settings();
        [&settings.vision, &settings.prd].map(Clone::clone).into_iter().chain(VIEWS.map(str::to_owned)).collect()
    }

    /// Whoever builds neither judges nor says what is wanted: not the scripts, not the documents, not what is rendered.
    fn guarded(&self, declared: &LoopFile, role: Role) -> Vec<String> {
        let scripts = (role != Role::Qc).then(|| verification::DIRECTORY.to_owned());
        self.kept_files(declared).into_iter().chain(scripts).collect()
    }

    fn own_files(&self, _declared: &LoopFile) -> Vec<String> {
        VIEWS.map(str::to_owned).to_vec()
    }

    fn rewritten(&self, run: &RunState) -> Vec<Rewritten> {
        views::rewritten(run)
    }

    fn views(&self, run: &RunState) -> Vec<Rendered> {
        views::views(run)
    }

    fn rows(&self, run: &RunState) -> Vec<Row> {
        rows::rows(run)
    }

    fn title(&self, run: &RunState) -> Option<String> {
        Some(rows::title(run))
    }
}

fn choose(run: &RunState) -> Choice {
    if run.state == State::DreamGoal { gates::choose(run) } else { decide::choose(run) }
}

/// What the open step, or the next one, needs; `None`: there is nothing more to do here.
fn go_on(run: &RunState) -> Option<Todo> {
    // A person's undo comes between steps: it changes the files that the next step stands on.
    if let (Some(iteration), None) = (run.git.undo, &run.value().step) {
        return Some(Todo::Effect(Effect::Undo(iteration)));
    }
    match &run.value().step {
        // Nothing more is begun in a step that a limit cut.
        Some(_) if run.cut.is_some() => Some(Todo::Proceed),
        Some(step) => Some(next_in(run, step).unwrap_or(Todo::Proceed)),
        None if choose(run) == Choice::Close => None,
        None => Some(Todo::Proceed),
    }
}

fn next_in(run: &RunState, step: &OpenStep) -> Option<Todo> {
    match &step.action {
        Action::Gate { gate } => gates::next(run, step, *gate),
        _ => actions::next(run, step),
    }
}

fn decide_in(run: &RunState, step: &OpenStep) -> Vec<Event> {
    match &step.action {
        Action::Gate { gate } => gates::decide(run, step, *gate),
        _ => actions::decide(run, step),
    }
}

/// The event that closes a step.
pub(crate) fn finished(step: &OpenStep, outcome: Outcome, detail: impl Into<String>) -> Event {
    StepFinished { step: step.number, outcome, detail: detail.into() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_builds_writes_neither_scripts_nor_documents() {
        let declared = loop_file::parse("playbook: value\ngoal: g\nvalue: {prd: docs/PRD.md}\n", "loop.yaml").unwrap();
        for role in [Role::Builder, Role::Fixer] {
            let paths = Value.guarded(&declared, role);
            for path in ["VISION.md", "docs/PRD.md", ".loop/verifications", ".loop_state.json", "DELIVERY_REPORT.md"] {
                assert!(paths.contains(&path.to_owned()), "{role} may write {path}");
            }
        }
        let qc = Value.guarded(&declared, Role::Qc);
        assert!(qc.contains(&"VISION.md".to_owned()) && !qc.contains(&".loop/verifications".to_owned()));
    }
}
