//! PRD Refinement: a critique, an amendment where one is due, and a person's word on it, until there is consensus.
//!
//! What is infeasible is never waved through: the PRD is revised, or the run ends.

use crate::machine::run::RunState;
use crate::machine::todo::{Effect, Todo};
use crate::model::decision::{Answer, MAX_PROPOSAL, Request, Severity, VisionIssue};
use crate::model::digest::Digest;
use crate::model::purpose::Purpose;
use crate::model::value::tools::{Critique, CritiqueVerdict, ResearchReport, Structured};
use crate::playbook::value::event::{Document, RoundKept, Target};
use crate::playbook::value::state::OpenStep;

use super::inputs::unusable;
use super::refine::{close, in_order, issue, negotiate, next_round, open_round};
use super::{Attempt, Move, answer, ask, attempt, bounded, fail, need, pass, say};

/// Rounds of critique, then a person says whether to go on with the PRD as it is.
const MAX_ROUNDS: usize = 5;
/// The answer that goes on.
const GO_ON: &str = "go on";
/// How a round that was amended without a person is closed begins with this.
const AUTOMATIC: &str = "auto_";

pub(super) fn script(run: &RunState, step: &OpenStep) -> Move {
    let refinement = &run.value().prd;
    if let Some(how) = &refinement.consensus {
        return pass(step, format!("{how} in round {}", refinement.rounds.len()));
    }
    let Some(document) = run.value().documents.as_ref().map(|read| &read.prd) else {
        return fail(&["the PRD was not read".to_owned()]);
    };
    if let Some(kept) = open_round(refinement) {
        return settle(run, step, kept, document);
    }
    let latest = refinement.rounds.last().and_then(|round| round.kept.critique.as_ref());
    match latest {
        Some(latest) if refinement.rounds.len() >= MAX_ROUNDS && latest.verdict != CritiqueVerdict::Reject => {
            enough(run, step, latest)
        }
        // Who makes something infeasible feasible is not hurried: every such round has a person in it.
        Some(_) | None => criticise(run, step, document),
    }
}

/// The critique; then the proposal or the research that its verdict calls for; then the round is kept.
fn criticise(run: &RunState, step: &OpenStep, document: &Document) -> Move {
    let Some(digest) = document.text else {
        return fail(&[unusable(document).unwrap_or_default()]);
    };
    let critique = match attempt(step, Purpose::PrdCritique) {
        Attempt::Missing => return need(Todo::call(Purpose::PrdCritique)),
        Attempt::Failed(how) => return fail(&[format!("nobody judged the PRD: {how}")]),
        Attempt::Reported(Structured::ReportCritique(critique)) => critique,
        Attempt::Reported(_) => return fail(&["the critique reported something else".to_owned()]),
    };
    let round = RoundKept {
        target: Target::Prd,
        round: next_round(&run.value().prd),
        document: digest,
        validation: None,
        critique: Some(critique.clone()),
        unknown: false,
        issues: Vec::new(),
        research: Vec::new(),
        proposal: None,
    };
    match critique.verdict {
        CritiqueVerdict::Approve => say(round),
        CritiqueVerdict::Amend | CritiqueVerdict::Descope => match attempt(step, Purpose::PrdAmend) {
            Attempt::Missing => need(Todo::call(Purpose::PrdAmend)),
            Attempt::Reported(Structured::ProposePrd(proposal)) => match usable(&proposal.text, digest) {
                Some(text) => say(RoundKept { proposal: Some(text), ..round }),
                None => say(RoundKept { issues: wishes(critique), ..round }),
            },
            // A person can make the changes just as well.
            Attempt::Reported(_) | Attempt::Failed(_) => say(RoundKept { issues: wishes(critique), ..round }),
        },
        CritiqueVerdict::Reject => {
            // Research helps, but nothing depends on it.
            if !step.round_calls().iter().any(|call| call.purpose == Purpose::PrdResearch) {
                return need(Todo::call(Purpose::PrdResearch));
            }
            let research = research(step);
            let alternatives = research.iter().flat_map(|one| one.alternatives.clone()).collect();
            let issues = vec![issue(Severity::Hard, &format!("infeasible: {}", critique.reason), alternatives)];
            say(RoundKept { issues, research, ..round })
        }
    }
}

/// The digest of a proposed text, if it is one and says something new.
fn usable(text: &str, now: Digest) -> Option<Digest> {
    let digest = Digest::of(text.as_bytes());
    (!text.trim().is_empty() && text.len() <= MAX_PROPOSAL && digest != now).then_some(digest)
}

/// What the critique wants changed, where no text was proposed.
fn wishes(critique: &Critique) -> Vec<VisionIssue> {
    let wanted = critique.amendments.iter().chain(&critique.descope_suggestions);
    let mut issues: Vec<VisionIssue> = wanted.map(|text| issue(Severity::Soft, text, Vec::new())).collect();
    if issues.is_empty() {
        issues.push(issue(Severity::Soft, &critique.reason, Vec::new()));
    }
    in_order(issues)
}

fn research(step: &OpenStep) -> Vec<ResearchReport> {
    let reports = step.round_reports().iter();
    let found = reports.filter_map(|(purpose, report)| match (purpose, report) {
        (Purpose::PrdResearch, Structured::ReportResearch(brief)) => Some(brief.clone()),
        _ => None,
    });
    found.collect()
}

/// A kept round: consensus, a new text, or a person's word.
fn settle(run: &RunState, step: &OpenStep, kept: &RoundKept, document: &Document) -> Move {
    let Some(critique) = &kept.critique else { return close(kept, "unknown", None, false) };
    let why = format!("PRD refinement, round {}: {}", kept.round, critique.reason);
    match (critique.verdict, kept.proposal) {
        (CritiqueVerdict::Approve, _) => close(kept, "approve", None, true),
        (CritiqueVerdict::Amend, Some(text)) => amend(run, step, kept, text, "auto_amend", &why),
        (CritiqueVerdict::Descope, Some(text)) => amend(run, step, kept, text, "auto_descope", &why),
        (CritiqueVerdict::Amend | CritiqueVerdict::Descope, None) | (CritiqueVerdict::Reject, _) => {
            negotiate(run, step, kept, document, &why)
        }
    }
}

/// A proposed text: written by itself as often as the declaration allows, else put before a person.
fn amend(run: &RunState, step: &OpenStep, kept: &RoundKept, text: Digest, automatic: &str, why: &str) -> Move {
    let settings = run.value_settings();
    let path = settings.prd.clone();
    if automatic_rounds(run) < usize::try_from(settings.auto_approve_prd).unwrap_or(usize::MAX) {
        return if step.documents_read {
            close(kept, automatic, None, false)
        } else {
            need(Todo::Effect(Effect::WriteDocument { path, text }))
        };
    }
    let request = || Request::Refinement { path: path.clone(), before: kept.document, after: text };
    let Some(id) = step.round_decisions().last().copied() else { return ask(run, request(), why) };
    match answer(run, id) {
        None => need(Todo::AwaitPerson),
        Some(Answer::Approve { .. }) if !step.documents_read => need(Todo::Effect(Effect::ReadDocuments)),
        Some(Answer::Approve { .. }) => close(kept, "amended", Some(id), false),
        // The person wants the PRD as it is.
        Some(Answer::Reject) => close(kept, "rejected", Some(id), true),
        Some(_) => ask(run, request(), why),
    }
}

fn automatic_rounds(run: &RunState) -> usize {
    let closed = run.value().prd.rounds.iter().filter_map(|round| round.closed.as_ref());
    closed.filter(|closed| closed.how.starts_with(AUTOMATIC)).count()
}

/// Critique and amendment do not come to an end by themselves.
fn enough(run: &RunState, step: &OpenStep, latest: &Critique) -> Move {
    let question = format!(
        "After {MAX_ROUNDS} rounds the critique still wants changes to the PRD: {}. Answer `{GO_ON}` to plan with the PRD as it is, or `quit`.",
        bounded(&latest.reason, 1_000)
    );
    let request = || Request::Question { question: question.clone(), choices: vec![GO_ON.to_owned()] };
    let why = "PRD refinement found no consensus";
    let Some(id) = step.round_decisions().last().copied() else { return ask(run, request(), why) };
    match answer(run, id) {
        None => need(Todo::AwaitPerson),
        Some(Answer::Text(text)) if text.trim().eq_ignore_ascii_case(GO_ON) => {
            pass(step, format!("no consensus after {MAX_ROUNDS} rounds; {id} says to go on with the PRD as it is"))
        }
        Some(_) => ask(run, request(), "only `go on` or `quit` can be understood here"),
    }
}
