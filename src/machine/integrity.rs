//! Do the checks that agents can see and the checks that are held back say the same? From the fold alone.
//!
//! Not its role: whether a run succeeds. A held-back check is a criterion like any other, so one that fails is enough
//! against it; this says how it failed: work that satisfies only what it was shown.

use serde::Serialize;

use crate::model::criterion::{Criterion, Proof};

use super::event::{Phase, Probe};
use super::iteration::Iteration;
use super::run::RunState;

/// How many of some checks are green.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub met: usize,
    pub all: usize,
}

impl Tally {
    const fn holds(self) -> bool {
        self.met == self.all
    }
}

/// The executable checks at the last iteration that ran them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Integrity {
    pub open: Tally,
    pub hidden: Tally,
    /// Nobody can say where there is none of either.
    pub agree: Option<bool>,
}

/// `None`: no iteration ran any check.
pub fn of(state: &RunState) -> Option<Integrity> {
    let ran = |iteration: &&Iteration| {
        iteration.probes.keys().any(|(phase, probe)| *phase == Phase::Iteration && matches!(probe, Probe::Criterion(_)))
    };
    let iteration = state.iterations().rev().find(ran)?;
    let tally = |hidden: bool| {
        let of_kind = |criterion: &&Criterion| {
            matches!(criterion.proof, Proof::Check { .. }) && criterion.hidden.is_some() == hidden
        };
        let passed = |criterion: &&Criterion| {
            let result = iteration.probe(Phase::Iteration, &Probe::Criterion(criterion.id.clone()));
            result.is_some_and(|result| result.end.passed())
        };
        let checks = state.criteria.iter().filter(of_kind);
        Tally { met: checks.clone().filter(passed).count(), all: checks.count() }
    };
    let (open, hidden) = (tally(false), tally(true));
    let agree = (open.all > 0 && hidden.all > 0).then(|| open.holds() == hidden.holds());
    Some(Integrity { open, hidden, agree })
}

impl Integrity {
    /// For people; `None` where nothing is compared.
    pub fn words(&self) -> Option<String> {
        self.agree?;
        let missing = |tally: Tally, one: &str, more: &str| match tally.all - tally.met {
            1 => format!("{one} does not"),
            n => format!("{n} {more} do not"),
        };
        Some(match (self.open.holds(), self.hidden.holds()) {
            (true, true) => "the open checks pass, and so do those that are held back".to_owned(),
            (false, false) => "neither the open checks nor those that are held back all pass".to_owned(),
            (true, false) => {
                format!("the open checks pass, {}", missing(self.hidden, "a held-back one", "held-back ones"))
            }
            (false, true) => format!("the held-back checks pass, {}", missing(self.open, "an open one", "open ones")),
        })
    }
}

/// Checks that pass in an empty workspace: they prove nothing by themselves.
pub fn proves_nothing(state: &RunState) -> Vec<String> {
    let named = state.baseline.empty.iter().filter(|(_, passes)| **passes).map(|(probe, _)| match probe {
        Probe::Criterion(id) => id.clone(),
        other => other.name(),
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_and_what_is_held_back_is_said_in_words() {
        let of = |open: (usize, usize), hidden: (usize, usize)| {
            let tally = |(met, all)| Tally { met, all };
            let (open, hidden) = (tally(open), tally(hidden));
            let agree = (open.all > 0 && hidden.all > 0).then(|| open.holds() == hidden.holds());
            Integrity { open, hidden, agree }.words()
        };
        assert_eq!(of((1, 1), (0, 0)), None);
        assert_eq!(of((1, 1), (0, 1)).unwrap(), "the open checks pass, a held-back one does not");
        assert_eq!(of((1, 1), (1, 3)).unwrap(), "the open checks pass, 2 held-back ones do not");
        assert_eq!(of((0, 1), (1, 1)).unwrap(), "the held-back checks pass, an open one does not");
        assert!(of((1, 1), (1, 1)).unwrap().contains("so do") && of((0, 1), (0, 1)).unwrap().starts_with("neither"));
    }
}
