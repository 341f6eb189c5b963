//! How a run ended, in words that need no glossary; the engine's names stand beside them.
//!
//! Invariant: nothing sounds better than it is: only a certified end is called proven, and what a person did is never
//! called a failure.

use serde::Serialize;

use crate::machine::event::{RunHalted, Signal};
use crate::machine::guards;
use crate::machine::halt::ended_at;
use crate::machine::run::RunState;
use crate::model::certificate::CertificateKind;
use crate::model::stop::{ExitStatus, StopReason};

use super::{Criterion, quoted};

#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// One or two sentences.
    pub words: String,
    /// `None`: neither; it goes on, or it was stopped.
    pub good: Option<bool>,
    /// The engine's names.
    pub status: Option<&'static str>,
    pub stop_reason: Option<&'static str>,
    pub certificate: Option<&'static str>,
    pub detail: Option<String>,
    pub proven: Option<String>,
    pub not_proven: Option<&'static str>,
}

pub(super) fn of(state: &RunState, criteria: &[Criterion]) -> Verdict {
    let halted = state.halt.as_ref();
    let certificate = state.iterations().rev().find_map(|iteration| iteration.certificate.as_ref());
    let converged = halted.is_some_and(|halted| halted.status == ExitStatus::ExitConverged);
    let met = criteria.iter().filter(|criterion| criterion.met).count();
    let mut sentence = words(state);
    if halted.is_some() && !criteria.is_empty() {
        sentence.push_str(&format!(" {met} of {} criteria met.", criteria.len()));
    }
    let shown = guards::shown(state).filter(|_| !state.began_before_replays());
    Verdict {
        words: sentence,
        good: halted.and_then(good),
        status: halted.map(|halted| halted.status.name()),
        stop_reason: halted.map(|halted| halted.stop_reason.name()),
        certificate: certificate.filter(|_| converged).map(|certificate| certificate.kind.name()),
        detail: halted.map(|halted| quoted(&halted.detail)),
        proven: shown.map(quoted),
        not_proven: shown.map(|_| guards::DOES_NOT_PROVE),
    }
}

/// Is the end good news, bad news, or neither?
fn good(halted: &RunHalted) -> Option<bool> {
    match (halted.status, halted.signal) {
        (ExitStatus::ExitConverged, _) => Some(true),
        (_, Some(_)) => None,
        (ExitStatus::ExitBudgetExceeded | ExitStatus::ExitNeedInfo, _) => None,
        (ExitStatus::ExitDiverged | ExitStatus::ExitBlocked, _) => Some(false),
    }
}

/// How a run stands, in a sentence.
pub fn words(state: &RunState) -> String {
    let Some(halted) = &state.halt else {
        return "Not over: it goes on, or was interrupted; `nightloop resume` continues it.".to_owned();
    };
    let goes_on = "Nothing is lost; `nightloop resume` goes on.";
    if let Some(signal) = halted.signal {
        return match signal {
            Signal::StopFile | Signal::AfterIteration => format!("Stopped as you asked. {goes_on}"),
            Signal::EndTime | Signal::CostReached | Signal::WorkDone | Signal::Idle => {
                format!("Stopped as declared (stop_when). {goes_on}")
            }
            Signal::UserInterrupt | Signal::Terminated => format!("Interrupted from outside. {goes_on}"),
            Signal::DecisionNeeded => "Waits for your answer: `nightloop inbox`, then `nightloop resume`.".to_owned(),
            Signal::DiskUsage => format!("Stopped: the disk is more than 90 % full. Make room. {goes_on}"),
            Signal::RateLimit => format!("Stopped at a rate limit that outlasts the time budget. {goes_on}"),
            Signal::SpendLimit => format!("Stopped at the account's spend limit. Raise it. {goes_on}"),
            Signal::DownstreamUnavailable => format!("Stopped: its model cannot be reached. {goes_on}"),
            Signal::AgentFailed => format!("Stopped: its agent program does not work. {goes_on}"),
            Signal::DependencyDown => format!("Stopped: what the work needs is not there. {goes_on}"),
        };
    }
    match (halted.status, halted.stop_reason) {
        (ExitStatus::ExitConverged, _) => proven(state),
        (ExitStatus::ExitBudgetExceeded, _) => match ended_at(state) {
            Some(end) => format!(
                "Not finished: the limit for {} ({}) is used up. `nightloop resume --raise {}=…` goes on.",
                end.dimension, end.limit, end.dimension
            ),
            None => "Not finished: a limit is used up.".to_owned(),
        },
        (ExitStatus::ExitNeedInfo, _) => "Did not begin: something has to be declared first.".to_owned(),
        (ExitStatus::ExitDiverged, _) => "Stopped: it went further from the goal three times in a row.".to_owned(),
        (ExitStatus::ExitBlocked, StopReason::HumanQuit) => "Ended by you.".to_owned(),
        (ExitStatus::ExitBlocked, StopReason::NorthstarDrift) => {
            "Stopped: three iterations in a row brought no progress.".to_owned()
        }
        (ExitStatus::ExitBlocked, StopReason::NoViableFixPath) => {
            "Stopped: the critic sees no way that works.".to_owned()
        }
        (ExitStatus::ExitBlocked, StopReason::SecurityBlocked) => "Stopped by the security check.".to_owned(),
        (ExitStatus::ExitBlocked, _) => "Not proven: the engine refused to go on.".to_owned(),
    }
}

fn proven(state: &RunState) -> String {
    let certificate = state.iterations().rev().find_map(|iteration| iteration.certificate.as_ref());
    match certificate.map(|certificate| (certificate.kind, certificate.residual)) {
        Some((CertificateKind::Converged, Some(residual))) => {
            format!("Proven to be close enough: {residual} is below {}.", state.r_p())
        }
        _ => "Proven.".to_owned(),
    }
}
