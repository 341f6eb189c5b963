//! Which event may follow in which state. Every pair is spelled out; what is not allowed is a value, never ignored.
//!
//! The step function asks before it accepts, the fold asks before it applies: a forged journal gets no further
//! than a wrong input does.

use crate::model::loop_file::Playbook;
use crate::model::stop::{ExitStatus, ForbiddenState, StopReason};

use super::call::CallState;
use super::event::{
    Event, Phase, Report, ReportAccepted, RunHalted, StateEntered, TreePurpose, of_passes, of_value_playbook,
};
use super::operator;
use super::passes;
use super::run::RunState;
use super::state::State;
use super::step::claims_success;
use super::value;

/// May this event follow in this state? The error says why not.
pub fn legal(state: &RunState, event: &Event) -> Result<(), String> {
    use State::{BudgetCheck, CheckHalting, CollectArtifacts, DreamGoal, NullCheck, SpawnSubagent};
    let only_in = |states: &[State]| {
        if states.contains(&state.state) {
            Ok(())
        } else {
            Err(format!("{} is not possible in {}", event.kind(), state.state))
        }
    };
    let after_halt = match event {
        Event::RunResumed(_) | Event::InputRejected(_) => true,
        // A run that stopped for an answer can be given one.
        Event::DecisionAnswered(_) => resumable(state).is_ok(),
        _ => false,
    };
    if state.halt.is_some() && !after_halt {
        return Err(format!("the run has ended with {}", state.state));
    }
    // The value playbook calls agents before its first iteration, too.
    let agents_run: &[State] = match state.loop_file().playbook {
        Playbook::Swarm | Playbook::Prd | Playbook::Micro => &[SpawnSubagent, CheckHalting, BudgetCheck],
        Playbook::Value => &[DreamGoal, SpawnSubagent, CheckHalting, BudgetCheck],
    };
    match event {
        Event::RunStarted(_) => Err("a run starts once".to_owned()),
        Event::RunResumed(_) => resumable(state),
        Event::StateEntered(entered) => legal_edge(state, entered),
        Event::InputRejected(_) => Ok(()),
        Event::NorthstarRead(_) => only_in(&[NullCheck]),
        Event::NullChecked(_) => only_in(&[NullCheck]),
        Event::TreeTaken(taken) => match taken.purpose {
            TreePurpose::Baseline => only_in(&[DreamGoal]),
            TreePurpose::Frozen => only_in(&[BudgetCheck]),
            TreePurpose::BeforeReview | TreePurpose::AfterReview => only_in(&[CheckHalting]),
        },
        Event::ProbeStarted(started) => legal_probe(state, started.phase),
        Event::ProbeFinished(finished) => legal_probe(state, finished.phase),
        Event::PlanWritten(_) => only_in(&[DreamGoal]),
        Event::IterationBegan(_) => {
            only_in(&[SpawnSubagent])?;
            if state.current.is_some() { Err("an iteration is still running".to_owned()) } else { Ok(()) }
        }
        Event::AgentStarted(_) => {
            only_in(agents_run)?;
            if state.call.is_some() {
                return Err(format!(
                    "{}: another agent is still running",
                    ForbiddenState::StackedSpeculativeIterations
                ));
            }
            // Before the first iteration only an open step has agents.
            if state.current.is_some() || state.value.step.is_some() {
                Ok(())
            } else {
                Err("no iteration is running".to_owned())
            }
        }
        Event::LlmRequested(_)
        | Event::LlmResponded(_)
        | Event::LlmFailed(_)
        | Event::ConversationExtended(_)
        | Event::ToolIntended(_)
        | Event::ToolFinished(_)
        | Event::ReportAccepted(_)
        | Event::AgentFinished(_) => {
            only_in(agents_run)?;
            let call = state.call.as_ref().ok_or("no agent is running")?;
            match event {
                Event::ReportAccepted(accepted) => legal_report(state, call, accepted),
                _ => Ok(()),
            }
        }
        Event::AgentActed(_) | Event::AgentCalled(_) => {
            only_in(agents_run)?;
            let open = state.call.as_ref();
            if open.is_some_and(|call| call.request_open) { Ok(()) } else { Err("no program is at work".to_owned()) }
        }
        Event::ArtifactsCollected(_) => only_in(&[CollectArtifacts]),
        Event::ResidualMeasured(_) => only_in(&[DreamGoal, CollectArtifacts, CheckHalting]),
        Event::CertificateIssued(_) => only_in(&[CollectArtifacts, CheckHalting]),
        Event::GlowScored(_) | Event::LearningsRecorded(_) => {
            only_in(&[CollectArtifacts, State::AccumulateLearnings])?;
            match state.current.as_ref().map(|iteration| iteration.entry.is_some()) {
                Some(false) => Ok(()),
                Some(true) => Err("this iteration's learnings are already recorded".to_owned()),
                None => Err("no iteration is running".to_owned()),
            }
        }
        Event::GateJudged(_) => only_in(&[BudgetCheck]),
        Event::BackpressureSeen(_) | Event::BudgetCut(_) => Ok(()),
        Event::DecisionAsked(_)
        | Event::DecisionAnswered(_)
        | Event::DecisionSettled(_)
        | Event::PauseRequested(_)
        | Event::PauseBegan(_)
        | Event::PauseLifted(_)
        | Event::StopScheduled(_)
        | Event::SteerQueued(_)
        | Event::SteerDelivered(_)
        | Event::BudgetRaised(_)
        | Event::RetryRequested(_)
        | Event::ViewerAttached(_)
        | Event::ViewerDetached(_) => operator::legal(state, event),
        Event::GitIntended(_) | Event::GitFinished(_) if state.loop_file().playbook == Playbook::Prd => {
            only_in(&[SpawnSubagent, CheckHalting])
        }
        of_value_playbook!() => {
            if state.loop_file().playbook != Playbook::Value {
                return Err(format!("{} belongs to the value playbook", event.kind()));
            }
            value::legal(state, event)
        }
        of_passes!() => passes::legal(state, event),
        Event::RunHalted(halted) => legal_halt(state, halted),
    }
}

/// A report is taken only from whoever may hand it in, and only if the guardrails admit it.
fn legal_report(state: &RunState, call: &CallState, accepted: &ReportAccepted) -> Result<(), String> {
    match &accepted.report {
        Report::Scout(_) | Report::Solver(_) | Report::Skeptic(_) => Ok(()),
        Report::Author(_) | Report::Critic(_) => passes::admit(state, &accepted.report),
        Report::Value(report) => {
            if !call.purpose().tools().contains(&report.tool()) {
                return Err(format!("a call for {} does not hand in {}", call.purpose(), report.tool()));
            }
            value::admit(state, report)
        }
    }
}

fn resumable(state: &RunState) -> Result<(), String> {
    match &state.halt {
        None => Ok(()),
        Some(halted) if halted.stop_reason == StopReason::BackpressureSignal => Ok(()),
        Some(halted) => Err(format!("the run has ended: {} ({})", halted.status, halted.stop_reason)),
    }
}

fn legal_edge(state: &RunState, entered: &StateEntered) -> Result<(), String> {
    if entered.from != state.state {
        return Err(format!("the run is in {}, not in {}", state.state, entered.from));
    }
    // Exits are entered by `run.halted` alone.
    if entered.to.exit().is_none() && state.state.followers(state.spec()).contains(&entered.to) {
        Ok(())
    } else {
        Err(format!("there is no edge from {} to {}", entered.from, entered.to))
    }
}

fn legal_probe(state: &RunState, phase: Phase) -> Result<(), String> {
    let home = match phase {
        Phase::Baseline => State::DreamGoal,
        Phase::Scouted | Phase::Detour => State::SpawnSubagent,
        Phase::Iteration => State::CheckHalting,
        Phase::Replay(_) | Phase::Gate => State::BudgetCheck,
        Phase::Step(number) => {
            let open = state.value.step.as_ref().is_some_and(|step| step.number == number);
            if !open {
                return Err(format!("step {number} is not open"));
            }
            State::SpawnSubagent
        }
    };
    if state.state == home { Ok(()) } else { Err(format!("a {phase:?} probe is not possible in {}", state.state)) }
}

fn legal_halt(state: &RunState, halted: &RunHalted) -> Result<(), String> {
    if halted.last_state != state.state {
        return Err(format!("the run is in {}, not in {}", state.state, halted.last_state));
    }
    match halted.status {
        ExitStatus::ExitConverged => {
            let passed = state.current.as_ref().and_then(|it| it.gate.as_ref()).is_some_and(|gate| gate.passed);
            if state.state == State::BudgetCheck && claims_success(state) && passed {
                Ok(())
            } else {
                Err(format!(
                    "{}: no certificate that passed the gate",
                    ForbiddenState::ConvergenceClaimWithoutCertificate
                ))
            }
        }
        ExitStatus::ExitNeedInfo => match state.state {
            State::NullCheck | State::DreamGoal => Ok(()),
            _ => Err(format!("EXIT_NEED_INFO is not possible in {}", state.state)),
        },
        ExitStatus::ExitDiverged | ExitStatus::ExitBudgetExceeded | ExitStatus::ExitBlocked => Ok(()),
    }
}
