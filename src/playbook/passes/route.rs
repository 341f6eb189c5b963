//! Where it goes after a pass: the kernel's word, with its reason.

use crate::machine::event::{DecisionAsked, Event};
use crate::machine::run::RunState;
use crate::model::decision::{MAX_DECISIONS, Request};
use crate::model::detour;
use crate::model::signature::Class;
use crate::playbook::micro::{CriticVerdict, Kernel, Next, Pass};
use crate::playbook::passes::event::{By, PassJudged, PassVerdict, Route, RouteDecided};
use crate::playbook::passes::state::{self as passes, Standing, standing};

/// The passes at a subject since a person last spoke of it, as the kernel sees them.
pub fn kernel(run: &RunState, subject: Option<&str>) -> Kernel {
    let after = match standing(run, subject) {
        Standing::Open { after } => after,
        Standing::Asked | Standing::Skipped => None,
    };
    let counted = run.passes().of(subject).filter(|judged| after.is_none_or(|after| judged.iteration > after));
    let limit = usize::try_from(run.loop_file().pass_limit()).unwrap_or(usize::MAX);
    let mut before: Option<Class> = None;
    let passes = counted
        .map(|judged| {
            let detour = matches!(judged.by, By::Detour(_)).then(|| before.unwrap_or(Class::Unknown));
            before = judged.signature.as_ref().map(|signature| signature.class);
            Pass { verdict: verdict(judged), detour }
        })
        .collect();
    Kernel { limit, passes }
}

fn verdict(judged: &PassJudged) -> CriticVerdict {
    match judged.verdict {
        PassVerdict::Verified => CriticVerdict::Verified,
        PassVerdict::Blocked | PassVerdict::Discarded => CriticVerdict::Blocked,
        PassVerdict::Unverified | PassVerdict::Refused => {
            CriticVerdict::Unverified { help: judged.help, signature: judged.signature.clone() }
        }
    }
}

/// The route after the latest pass.
pub fn route(run: &RunState, judged: &PassJudged) -> RouteDecided {
    let kernel = kernel(run, judged.subject.as_deref());
    let signature = judged.signature.as_ref().map(ToString::to_string).unwrap_or_default();
    let (route, why) = match kernel.next() {
        Next::Verified => (Route::Continue, "the checks pass and the critic agrees".to_owned()),
        Next::Author => (Route::Loop, judged.detail.clone()),
        Next::NoViablePath => (Route::Terminate, judged.detail.clone()),
        Next::AdvanceWithConcerns => (Route::AdvanceWithWarnings, judged.detail.clone()),
        Next::Escalate if says_it_all(run, judged) => (Route::Escalate, judged.detail.clone()),
        Next::Escalate => (Route::Escalate, format!("{signature} again, after every detour that is allowed")),
        Next::Detour(class) => match detour::known(run.loop_file().detours(), class) {
            Some(known) => (Route::Detour(known.name), format!("{signature} twice in a row")),
            None => (Route::Escalate, format!("{signature} twice in a row, and no fix for it is known")),
        },
    };
    RouteDecided {
        iteration: judged.iteration,
        subject: judged.subject.clone(),
        offroad: route.is_offroad(),
        route,
        why,
        pass: u32::try_from(kernel.authored()).unwrap_or(u32::MAX),
        limit: run.loop_file().pass_limit(),
    }
}

/// Does the verdict itself say why a person has to look?
fn says_it_all(run: &RunState, judged: &PassJudged) -> bool {
    match judged.verdict {
        PassVerdict::Blocked => true,
        PassVerdict::Discarded => !run.began_before_parking(),
        PassVerdict::Verified | PassVerdict::Unverified | PassVerdict::Refused => false,
    }
}

/// Asks a person how to go on; `None`: the run has asked too often already.
pub fn ask(run: &RunState, judged: &PassJudged, parked: bool) -> Option<Event> {
    let route = run.passes().route_of(judged.iteration);
    let why = route.map_or_else(String::new, |route| format!("{}: {}", route.route.name(), route.why));
    let request =
        Request::Stuck { subject: judged.subject.clone(), iteration: judged.iteration, problem: told(judged), parked };
    let may = run.operator.decisions.len() < MAX_DECISIONS;
    may.then(|| DecisionAsked { id: run.operator.next_id(), request, why, asked_by: None }.into())
}

/// A pass in words: how it came out, and how many concerns of which severity are left.
pub fn told(judged: &PassJudged) -> String {
    let left = passes::by_severity(judged).into_iter().filter(|(_, count)| *count > 0);
    let left: Vec<String> = left.map(|(severity, count)| format!("{count} {}", severity.name())).collect();
    if left.is_empty() {
        return judged.detail.clone();
    }
    format!("{}; concerns: {}", judged.detail, left.join(", "))
}
