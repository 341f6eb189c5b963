//! Events of an iteration: trees, probes, artifacts, residual, certificate, learnings.

use crate::machine::claim::wants_partial;
use crate::machine::event::{IterationEvent, Phase, TreePurpose};
use crate::machine::iteration::Iteration;
use crate::machine::run::RunState;
use crate::machine::state::State;

/// May this event follow? The error says why not.
pub(in crate::machine) fn legal(state: &RunState, event: &IterationEvent) -> Result<(), String> {
    use State::{AccumulateLearnings, BudgetCheck, CheckHalting, CollectArtifacts, DreamGoal, SpawnSubagent};
    let only_in = |states: &[State]| state.only_in(event.kind(), states);
    match event {
        IterationEvent::TreeTaken(taken) => match taken.purpose {
            TreePurpose::Baseline => only_in(&[DreamGoal]),
            TreePurpose::Frozen => only_in(&[BudgetCheck]),
            TreePurpose::AfterChecks | TreePurpose::BeforeReview | TreePurpose::AfterReview => only_in(&[CheckHalting]),
        },
        IterationEvent::ProbeStarted(started) => legal_probe(state, started.phase),
        IterationEvent::ProbeFinished(finished) => legal_probe(state, finished.phase),
        IterationEvent::IterationBegan(_) => {
            only_in(&[SpawnSubagent])?;
            if state.current.is_some() { Err("an iteration is still running".to_owned()) } else { Ok(()) }
        }
        IterationEvent::ArtifactsCollected(_) => only_in(&[CollectArtifacts]),
        IterationEvent::ArtifactsPartial(_) => {
            only_in(&[SpawnSubagent, CollectArtifacts])?;
            if wants_partial(state) { Ok(()) } else { Err("nothing stops the iteration in its middle".to_owned()) }
        }
        IterationEvent::ResidualMeasured(_) => only_in(&[DreamGoal, CollectArtifacts, CheckHalting]),
        IterationEvent::CertificateIssued(_) => only_in(&[CollectArtifacts, CheckHalting]),
        IterationEvent::GlowScored(_) | IterationEvent::LearningsRecorded(_) => {
            only_in(&[CollectArtifacts, AccumulateLearnings])?;
            match state.current.as_ref().map(|iteration| iteration.entry.is_some()) {
                Some(false) => Ok(()),
                Some(true) => Err("this iteration's learnings are already recorded".to_owned()),
                None => Err("no iteration is running".to_owned()),
            }
        }
        IterationEvent::GuardsCompared(compared) => {
            only_in(&[CheckHalting, BudgetCheck])?;
            match state.current.as_ref() {
                Some(iteration) if iteration.number() != compared.iteration => {
                    Err("it is of another iteration".to_owned())
                }
                Some(iteration) if iteration.guards.is_some() => Err("they are compared already".to_owned()),
                Some(_) => Ok(()),
                None => Err("no iteration is running".to_owned()),
            }
        }
        IterationEvent::GateJudged(_) => only_in(&[BudgetCheck]),
    }
}

fn legal_probe(state: &RunState, phase: Phase) -> Result<(), String> {
    let home = match phase {
        Phase::Baseline | Phase::Empty => State::DreamGoal,
        Phase::Scouted | Phase::Detour => State::SpawnSubagent,
        Phase::Iteration => State::CheckHalting,
        Phase::Replay(_) | Phase::ReplayAgain(..) | Phase::Gate => State::BudgetCheck,
        Phase::Pristine
        | Phase::PristineWithTools
        | Phase::PristineSince
        | Phase::Reverted
        | Phase::Canary
        | Phase::CanaryAtStart
        | Phase::AtStart => {
            let compared = state.current.as_ref().is_some_and(|iteration| iteration.guards.is_some());
            return match compared {
                true => state.only_in("a trial of the judges", &[State::CheckHalting, State::BudgetCheck]),
                false => Err("what judges was not compared yet".to_owned()),
            };
        }
        Phase::Step(number) | Phase::StepAgain(number, _) => {
            if state.open_step() != Some(number) {
                return Err(format!("step {number} is not open"));
            }
            State::SpawnSubagent
        }
    };
    if state.state == home { Ok(()) } else { Err(format!("a {phase:?} probe is not possible in {}", state.state)) }
}

/// Folds an event that was found legal.
pub(in crate::machine) fn apply(state: &mut RunState, event: &IterationEvent) -> Result<(), &'static str> {
    match event {
        IterationEvent::TreeTaken(taken) => match taken.purpose {
            TreePurpose::Baseline => {
                state.baseline.tree = Some(taken.tree);
                state.tree = Some(taken.tree);
            }
            TreePurpose::Frozen => current(state)?.frozen = Some(taken.drifted.clone()),
            TreePurpose::AfterChecks => {
                state.tree = Some(taken.tree);
                current(state)?.checked = true;
            }
            TreePurpose::BeforeReview => current(state)?.review_trees.0 = Some(taken.tree),
            TreePurpose::AfterReview => current(state)?.reviewed(taken),
        },
        IterationEvent::ProbeStarted(started) => {
            state.open_probes.insert((started.phase, started.probe.clone()));
        }
        IterationEvent::ProbeFinished(finished) => {
            let key = (finished.phase, finished.probe.clone());
            state.open_probes.remove(&key);
            if finished.phase == Phase::Baseline {
                state.baseline.probes.insert(key.1, finished.result.clone());
            } else if finished.phase == Phase::Empty {
                state.baseline.empty.insert(key.1, finished.result.end.passed());
            } else {
                current(state)?.probes.insert(key, finished.result.clone());
            }
        }
        IterationEvent::IterationBegan(began) => {
            if state.current.is_some() {
                return Err("an iteration is still running");
            }
            if usize::try_from(began.iteration) != Ok(state.done.len()) {
                return Err("iterations are numbered without gaps");
            }
            state.current = Some(Iteration::new(began.clone()));
            state.git.begin_iteration(began.iteration);
            state.spent.iteration_millis = 0;
            state.spent.iteration_tool_calls = 0;
            state.cut = None;
        }
        IterationEvent::ArtifactsCollected(collected) => {
            state.tree = Some(collected.tree);
            state.frame = collected.learnings_frame.or(state.frame);
            current(state)?.artifacts = Some(collected.clone());
        }
        IterationEvent::ArtifactsPartial(partial) => current(state)?.partial = Some(partial.clone()),
        IterationEvent::ResidualMeasured(measured) => match measured.iteration {
            None => state.baseline.residual = Some(measured.residual.clone()),
            Some(_) => {
                let iteration = current(state)?;
                iteration.residual = Some(measured.residual.clone());
                iteration.residual_why_null.clone_from(&measured.why_null);
            }
        },
        IterationEvent::CertificateIssued(issued) => current(state)?.certificate = Some(issued.certificate.clone()),
        IterationEvent::GlowScored(scored) => current(state)?.glow = Some(scored.glow.clone()),
        IterationEvent::LearningsRecorded(recorded) => {
            state.learnings_sha256 = Some(recorded.after);
            state.frame = recorded.frame.or(state.frame);
            state.compacted_before = recorded.compacted_before;
            state.compactions.extend(recorded.compaction);
            state.shortened.extend(recorded.shortened);
            state.remember(&recorded.entry);
            state.spent.iterations += 1;
            let iteration = current(state)?;
            iteration.entry = Some((*recorded.entry).clone());
            iteration.review.clone_from(&recorded.review);
            iteration.learnings_after = Some(recorded.after);
            iteration.learnings_before = recorded.before;
        }
        IterationEvent::GuardsCompared(compared) => current(state)?.guards = Some(compared.clone()),
        IterationEvent::GateJudged(judged) => current(state)?.gate = Some(judged.report.clone()),
    }
    Ok(())
}

fn current(state: &mut RunState) -> Result<&mut Iteration, &'static str> {
    state.current.as_mut().ok_or("no iteration is running")
}
