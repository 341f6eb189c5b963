//! What to do in a state. Depends on the state alone, so a resumed run needs no special path.

use crate::model::decision::{MAX_DECISIONS, Mode};
use crate::model::ids::Role;
use crate::model::learnings::SpecVersion;
use crate::model::purpose::Purpose;

use super::call::CallTodo;
use super::claim;
use super::event::{AgentEnd, Phase, Probe, Signal, TreePurpose};
use super::gate;
use super::guards;
use super::handover;
use super::iteration::Iteration;
use super::replay::{metric_probes, replay_probes, replayed};
use super::run::RunState;
use super::state::State;
use super::todo::Todo;

/// What to do now.
pub fn next(state: &RunState) -> Todo {
    if state.halt.is_some() {
        return Todo::Finished;
    }
    if claim::wants_partial(state) {
        return Todo::CollectPartial;
    }
    if claim::stop(state).is_some() || state.operator.quit().is_some() {
        return Todo::Proceed;
    }
    if let Some(todo) = next_for_people(state) {
        return todo;
    }
    match state.state {
        State::Init | State::IntakeGoal | State::GlowCheck => Todo::Proceed,
        State::NullCheck => {
            if state.spec() == SpecVersion::V2 && state.northstar.is_none() {
                Todo::ReadNorthstar
            } else {
                Todo::Proceed
            }
        }
        State::DreamGoal => next_in_dream(state),
        State::SpawnSubagent => next_in_spawn(state),
        State::CollectArtifacts => next_in_collect(state),
        State::CheckHalting => next_in_check(state),
        State::AccumulateLearnings => match &state.current {
            Some(iteration) if iteration.entry.is_none() => Todo::WriteLearnings,
            Some(_) | None => Todo::Proceed,
        },
        State::BudgetCheck => next_in_budget(state),
        State::ExitConverged
        | State::ExitDiverged
        | State::ExitBudgetExceeded
        | State::ExitBlocked
        | State::ExitNeedInfo => Todo::Finished,
    }
}

/// What people hold up, or have to see carried out.
fn next_for_people(state: &RunState) -> Option<Todo> {
    let operator = &state.operator;
    if let Some(decision) = operator.unsettled() {
        return Some(Todo::Settle(decision.id));
    }
    if operator.waits() {
        return Some(Todo::AwaitPerson);
    }
    // A pause begins where a stop would be obeyed: what is nearly done is done first.
    operator.pause.as_ref().filter(|_| claim::stops(state, Signal::StopFile)).map(|_| Todo::BeginPause)
}

fn next_in_dream(state: &RunState) -> Todo {
    if super::forbidden::detect(state).is_some() {
        return Todo::Proceed;
    }
    if let Some(todo) = next_in_call(state).or_else(|| state.playbook().prepare(state)) {
        return todo;
    }
    if let Some(probe) = baseline_probes(state).into_iter().find(|probe| !state.baseline.probes.contains_key(probe)) {
        if let Some(todo) = state.playbook().before_checks(state, Phase::Baseline) {
            return todo;
        }
        return Todo::RunProbe(Phase::Baseline, probe);
    }
    // What the checks themselves write is no work of an agent.
    if state.baseline.tree.is_none() {
        return Todo::TakeTree(TreePurpose::Baseline);
    }
    if let Some(probe) = empty_probes(state).into_iter().find(|probe| !state.baseline.empty.contains_key(probe)) {
        return Todo::RunProbe(Phase::Empty, probe);
    }
    if state.baseline.residual.is_some() && state.plan.is_none() { Todo::WritePlan } else { Todo::Proceed }
}

fn next_in_spawn(state: &RunState) -> Todo {
    let Some(iteration) = &state.current else {
        if super::forbidden::detect(state).is_some() {
            return Todo::Proceed;
        }
        return state.playbook().between(state).unwrap_or(Todo::BeginIteration);
    };
    if iteration.began.bleeds {
        return Todo::Proceed;
    }
    if let Some(todo) = next_in_call(state) {
        return todo;
    }
    if state.cut.is_some() {
        return Todo::Proceed;
    }
    if iteration.scout().is_some_and(|scout| scout.sub_goal.is_some())
        && iteration.probe(Phase::Scouted, &Probe::SubGoal).is_none()
    {
        return Todo::RunProbe(Phase::Scouted, Probe::SubGoal);
    }
    state.playbook().work(state, iteration).unwrap_or(Todo::Proceed)
}

fn next_in_call(state: &RunState) -> Option<Todo> {
    let call = state.call.as_ref()?;
    let todo = match &state.cut {
        // An announced tool is closed first, so that every intent has its result.
        Some(cut) => match call.next() {
            recover @ CallTodo::RecoverTool { .. } => recover,
            end @ CallTodo::End(_) => end,
            CallTodo::Ask
            | CallTodo::RunTool(_)
            | CallTodo::ReturnResults
            | CallTodo::Remind(_)
            | CallTodo::AskHandover(_)
            | CallTodo::HandOver(_)
            | CallTodo::Escalate(_) => {
                CallTodo::End(AgentEnd::Cut(format!("the budget for {} is used up", cut.exhausted.dimension)))
            }
        },
        None => unless_denied(state, handover::instead(state, call, call.next())),
    };
    Some(Todo::Call(todo))
}

/// Denied again and again, an agent does not go on by itself: a person says how, or its part is over.
fn unless_denied(state: &RunState, todo: CallTodo) -> CallTodo {
    if matches!(todo, CallTodo::RecoverTool { .. } | CallTodo::End(_)) {
        return todo;
    }
    let Some(why) = state.denied_too_often() else { return todo };
    let operator = &state.operator;
    if operator.patience.mode == Mode::Wait && operator.decisions.len() < MAX_DECISIONS {
        CallTodo::Escalate(why)
    } else {
        CallTodo::End(AgentEnd::Denied(why))
    }
}

fn next_in_collect(state: &RunState) -> Todo {
    let Some(iteration) = &state.current else { return Todo::Proceed };
    if iteration.artifacts.is_none() {
        return Todo::CollectArtifacts;
    }
    // An empty iteration is acknowledged before it blocks.
    if iteration.artifact_count() == 0 && iteration.certificate.is_some() && iteration.entry.is_none() {
        return Todo::WriteLearnings;
    }
    Todo::Proceed
}

fn next_in_check(state: &RunState) -> Todo {
    let Some(iteration) = &state.current else { return Todo::Proceed };
    if let Some(todo) = next_in_call(state) {
        return todo;
    }
    let missing = |probe: &Probe| iteration.probe(Phase::Iteration, probe).is_none();
    if let Some(probe) = iteration_probes(state, iteration).into_iter().find(missing) {
        if let Some(todo) = state.playbook().before_checks(state, Phase::Iteration) {
            return todo;
        }
        return Todo::RunProbe(Phase::Iteration, probe);
    }
    // Where checks see the workspace itself, what they wrote is theirs, and not what the next agent did.
    if !state.began_before_replays() && !state.started.overlays && !iteration.checked {
        return Todo::TakeTree(TreePurpose::AfterChecks);
    }
    state.playbook().review(state, iteration).unwrap_or(Todo::Proceed)
}

fn next_in_budget(state: &RunState) -> Todo {
    let Some(iteration) = &state.current else { return Todo::Proceed };
    if !claim::claims_success(state) || iteration.gate.is_some() {
        return Todo::Proceed;
    }
    if let Some(todo) = next_in_call(state) {
        return todo;
    }
    // What the replays and the trials of judges stand on.
    if let Some(todo) = state.playbook().before_checks(state, Phase::Replay(1)) {
        return todo;
    }
    for replay in 1..=gate::REPLAYS {
        let phase = Phase::Replay(replay);
        let missing = |probe: &Probe| iteration.probe(phase, probe).is_none();
        if let Some(probe) = replayed(state).into_iter().find(missing) {
            return Todo::RunProbe(phase, probe);
        }
    }
    if let Some((phase, probe)) = state.playbook().doubted_replay(state, iteration) {
        return Todo::RunProbe(phase, probe);
    }
    if state.playbook().takes_back(state, iteration).is_some() {
        return Todo::Proceed;
    }
    // A trial, and what a person says of it, come before the last look: what they saw is what is certified.
    if let Some(todo) = guards::next(state, iteration, &replayed(state)) {
        return todo;
    }
    if guards::ask(state, iteration, &replayed(state)).is_some() {
        return Todo::Proceed;
    }
    if iteration.frozen.is_none() {
        return Todo::TakeTree(TreePurpose::Frozen);
    }
    let missing = |probe: &Probe| iteration.probe(Phase::Gate, probe).is_none();
    if let Some(probe) = gate_probes(state).into_iter().find(missing) {
        return Todo::RunProbe(Phase::Gate, probe);
    }
    if state.cut.is_none()
        && let Some(number) = next_paraphrase(state, iteration)
    {
        return Todo::StartAgent { purpose: Purpose::Skeptic, paraphrase: Some(number), subject: None };
    }
    Todo::Proceed
}

/// The next restatement of the goal that is to be judged.
fn next_paraphrase(state: &RunState, iteration: &Iteration) -> Option<u8> {
    let asked = |number: &u8| iteration.calls.contains_key(&iteration.call_key(Role::Skeptic, Some(*number)));
    (1..=gate::PARAPHRASES).find(|number| !asked(number)).filter(|_| needs_paraphrases(state))
}

/// Is the sweep of rung 65537 not finished?
pub fn paraphrases_missing(state: &RunState, iteration: &Iteration) -> bool {
    next_paraphrase(state, iteration).is_some()
}

fn needs_paraphrases(state: &RunState) -> bool {
    state.rung_target() == crate::model::rung::Rung::Promoted
        && state.criteria.iter().any(|criterion| criterion.is_judged())
}

/// Checks that are tried without any file, where that can be done: once, before anything is spent.
fn empty_probes(state: &RunState) -> Vec<Probe> {
    if state.began_before_replays() || !state.started.overlays {
        return Vec::new();
    }
    replay_probes(state).into_iter().filter(|probe| matches!(probe, Probe::Criterion(_))).collect()
}

fn baseline_probes(state: &RunState) -> Vec<Probe> {
    let mut probes = replay_probes(state);
    probes.extend(metric_probes(state));
    if state.rung_target() == crate::model::rung::Rung::Promoted && state.loop_file().api_surface.is_some() {
        probes.push(Probe::ApiSurface);
    }
    probes
}

fn iteration_probes(state: &RunState, iteration: &Iteration) -> Vec<Probe> {
    let mut probes = replay_probes(state);
    probes.extend(metric_probes(state));
    probes.extend(state.playbook().probes(state, Some(iteration)));
    if iteration.probe(Phase::Scouted, &Probe::SubGoal).is_some() {
        probes.push(Probe::SubGoal);
    }
    probes
}

fn gate_probes(state: &RunState) -> Vec<Probe> {
    if state.rung_target() != crate::model::rung::Rung::Promoted {
        return Vec::new();
    }
    let mut probes = Vec::new();
    if let Some(security) = &state.loop_file().security {
        if security.version_command.is_some() {
            probes.push(Probe::SecurityVersion);
        }
        probes.push(Probe::Security);
    }
    if state.loop_file().api_surface.is_some() {
        probes.push(Probe::ApiSurface);
    }
    probes
}
