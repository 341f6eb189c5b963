//! Checks that pass at one time and fail at another, with the same files: run again, counted, named.
//!
//! Role: what a check comes to over several runs, which run is missing, and in which run it was seen to pass. Not its
//! role: running it, mending it (a check that stays red goes to FIX like any other).
//!
//! Invariants: only a check that had passed is given the benefit of the doubt; three of at most five runs must pass, and
//! a check that fails every time costs two runs more; everything is read from recorded results, so that it is decided
//! again as it was.

use crate::machine::event::{Phase, Probe, ProbeEnd, ProbeResult};
use crate::machine::gate::REPLAYS;
use crate::machine::iteration::Iteration;
use crate::machine::run::RunState;
use crate::model::value::Flaky;

/// Runs that decide about a check.
const RUNS: usize = 5;
/// So many of them must pass.
const ENOUGH: usize = 3;

/// What the runs of a check come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Another run is needed.
    Open,
    Passed,
    Failed,
}

/// The first run of a check, and those after it.
pub struct Runs<'a> {
    first: &'a ProbeResult,
    again: Vec<&'a ProbeResult>,
}

impl<'a> Runs<'a> {
    /// Of a check in one phase; `None`: it did not run there.
    pub fn of(iteration: &'a Iteration, phase: Phase, probe: &Probe) -> Option<Self> {
        let first = iteration.probe(phase, probe)?;
        let again = (1..RUNS).map_while(|nth| iteration.probe(again(phase, nth)?, probe));
        Some(Self { first, again: again.collect() })
    }

    fn count(&self) -> (usize, usize) {
        let passed = std::iter::once(&self.first).chain(&self.again).filter(|result| result.end.passed()).count();
        (passed, 1 + self.again.len())
    }

    pub fn verdict(&self) -> Verdict {
        if self.first.end.passed() {
            return Verdict::Passed;
        }
        let (passed, runs) = self.count();
        if passed >= ENOUGH {
            Verdict::Passed
        } else if runs - passed > RUNS - ENOUGH || self.first.end == ProbeEnd::Cancelled {
            Verdict::Failed
        } else {
            Verdict::Open
        }
    }

    /// How often it passed, where the runs do not agree.
    pub fn flaky(&self, step: u32) -> Option<Flaky> {
        let (passed, runs) = self.count();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        (passed > 0 && passed < runs).then(|| Flaky { step, passed: count(passed), runs: count(runs) })
    }
}

/// The phase of the `nth` run after the one in this phase; `None`: nothing is run again there.
fn again(phase: Phase, nth: usize) -> Option<Phase> {
    let nth = u8::try_from(nth).ok()?;
    match phase {
        Phase::Step(step) => Some(Phase::StepAgain(step, nth)),
        Phase::Replay(replay) => Some(Phase::ReplayAgain(replay, nth)),
        _ => None,
    }
}

/// The next phase in which this check has to be run again.
pub fn missing(iteration: &Iteration, phase: Phase, probe: &Probe) -> Option<Phase> {
    let runs = Runs::of(iteration, phase, probe).filter(|runs| runs.verdict() == Verdict::Open)?;
    again(phase, runs.again.len() + 1)
}

/// Where a check of this phase was seen to pass, taken with its other runs; `None`: it did not pass.
pub fn shown_in(iteration: &Iteration, phase: Phase, probe: &Probe) -> Option<Phase> {
    let runs = Runs::of(iteration, phase, probe).filter(|runs| runs.verdict() == Verdict::Passed)?;
    if runs.first.end.passed() {
        return Some(phase);
    }
    let nth = runs.again.iter().position(|result| result.end.passed())?;
    again(phase, nth + 1)
}

/// The replays of the certificate, each with a script.
fn replays(run: &RunState) -> impl Iterator<Item = (Phase, Probe)> {
    let scripts = run.value().verifications.keys();
    scripts.flat_map(|id| (1..=REPLAYS).map(|nth| (Phase::Replay(nth), Probe::Verification(id.clone()))))
}

/// The replay of a script that has to be run again.
pub fn doubted_replay(run: &RunState, iteration: &Iteration) -> Option<(Phase, Probe)> {
    if run.began_before_recovery() {
        return None;
    }
    replays(run).find_map(|(phase, probe)| Some((missing(iteration, phase, &probe)?, probe)))
}

/// Scripts that do not pass in a replay, once nothing is in doubt any more: what the gate let through does not hold.
pub fn failed_in_replay(run: &RunState, iteration: &Iteration) -> Vec<(String, Phase)> {
    if run.began_before_recovery() || doubted_replay(run, iteration).is_some() {
        return Vec::new();
    }
    let failed = |(phase, probe): &(Phase, Probe)| {
        Runs::of(iteration, *phase, probe).is_some_and(|runs| runs.verdict() == Verdict::Failed)
    };
    let mut found: Vec<(String, Phase)> = Vec::new();
    for (phase, probe) in replays(run).filter(failed) {
        if let Probe::Verification(id) = probe
            && found.last().is_none_or(|(known, _)| *known != id)
        {
            found.push((id, phase));
        }
    }
    found
}

/// A script whose runs did not agree: at a gate, or in the replays after it. The latest word of the run about it.
pub fn of_script(run: &RunState, id: &str) -> Option<Flaky> {
    let probe = Probe::Verification(id.to_owned());
    let step = run.value().exit_gate_passed.unwrap_or_default();
    let in_replay = run.iterations().rev().find_map(|iteration| {
        let phases = (1..=REPLAYS).map(Phase::Replay);
        phases.into_iter().find_map(|phase| Runs::of(iteration, phase, &probe)?.flaky(step))
    });
    in_replay.or_else(|| run.value().verifications.get(id)?.flaky)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::testing;

    fn verdict(ends: &[i32]) -> (Verdict, Option<(u32, u32)>) {
        let results: Vec<ProbeResult> = ends.iter().map(|end| testing::result(*end == 0)).collect();
        let runs = Runs { first: &results[0], again: results[1..].iter().collect() };
        (runs.verdict(), runs.flaky(7).map(|flaky| (flaky.passed, flaky.runs)))
    }

    #[test]
    fn three_of_five_runs_must_pass() {
        assert_eq!(verdict(&[0]), (Verdict::Passed, None));
        assert_eq!(verdict(&[1]), (Verdict::Open, None));
        assert_eq!(verdict(&[1, 1, 1]), (Verdict::Failed, None), "what always fails costs two runs more");
        assert_eq!(verdict(&[1, 0, 0]), (Verdict::Open, Some((2, 3))));
        assert_eq!(verdict(&[1, 0, 0, 0]), (Verdict::Passed, Some((3, 4))));
        assert_eq!(verdict(&[1, 0, 1, 0, 0]), (Verdict::Passed, Some((3, 5))));
        assert_eq!(verdict(&[1, 0, 1, 0, 1]), (Verdict::Failed, Some((2, 5))));
    }

    #[test]
    fn a_run_that_was_called_off_is_not_doubted() {
        let first = ProbeResult { end: ProbeEnd::Cancelled, ..testing::result(false) };
        assert_eq!(Runs { first: &first, again: Vec::new() }.verdict(), Verdict::Failed);
    }
}
