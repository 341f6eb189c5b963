//! What a pass came to, from the facts: checks, artifacts, the critique, and the trees around the critic.
//!
//! Invariants: a failed check outweighs every word; a critic that changed anything is not heard; a retry that changed
//! nothing is not judged at all.

use std::collections::BTreeSet;

use crate::machine::call::CallSummary;
use crate::machine::event::{AgentEnd, ProbeResult};
use crate::machine::iteration::Iteration;
use crate::machine::run::RunState;
use crate::model::critique::{Concern, Critique, MAX_WORDS, Severity, Status};
use crate::model::ids::Role;
use crate::model::signature::Signature;
use crate::playbook::passes::event::{By, PassJudged, PassVerdict};
use crate::playbook::passes::measure;

use super::{by, has_items, subject};

/// The longest account of a pass.
const MAX_DETAIL: usize = 1_000;
/// Files that are named in an account.
const NAMED: usize = 8;
/// Files that are named as lying outside a scope.
const MAX_FILES: usize = 20;

/// Is the critic's word needed? Where the checks of an item fail they say it all; a microloop's author always hears it.
pub fn needs_critic(run: &RunState, iteration: &Iteration) -> bool {
    if run.cut.is_some() || refused(run, iteration).is_some() {
        return false;
    }
    !has_items(run) || measure::failed_checks(run, iteration).is_empty()
}

/// An author whose report could not be taken has made no attempt that can be told from another; a retry that left every
/// file as it was is the same attempt again; an author who neither changed nor reported anything has made none.
fn refused(run: &RunState, iteration: &Iteration) -> Option<String> {
    let author = iteration.calls.get(&iteration.call_key(Role::Author, None));
    if let Some(CallSummary { end: end @ AgentEnd::BadReport { .. }, .. }) = author {
        return Some(format!("the author {}", end.describe()));
    }
    let unchanged = iteration.artifacts.as_ref().is_some_and(|artifacts| artifacts.changes.is_empty());
    let is_author = by(run, iteration) == By::Author;
    if unchanged && is_author && iteration.author().is_none() {
        let end = author.map_or_else(|| "was not called".to_owned(), |call| call.end.describe());
        return Some(format!("the author {end}, and changed no file"));
    }
    let chosen = run.passes().chosen_in(iteration.number())?;
    // What was verified and could not be written down needs no other change.
    let failed = chosen.pass > 1 && !run.passes().was_verified(&chosen.item);
    (failed && unchanged && is_author).then(|| {
        format!("attempt {} at {} changed no file: the same attempt again is refused", chosen.pass, chosen.item)
    })
}

/// The pass, judged.
pub fn judge(run: &RunState, iteration: &Iteration) -> PassJudged {
    let subject = subject(run, iteration);
    let out_of_scope = subject.as_deref().map(|item| out_of_scope(run, iteration, item)).unwrap_or_default();
    let mut judged = PassJudged {
        iteration: iteration.number(),
        subject,
        by: by(run, iteration),
        verdict: PassVerdict::Unverified,
        help: true,
        signature: None,
        fix: None,
        failed: Vec::new(),
        concerns: Vec::new(),
        out_of_scope,
        meanwhile: Vec::new(),
        detail: String::new(),
    };
    if let Some(why) = refused(run, iteration) {
        judged.verdict = PassVerdict::Refused;
        judged.signature = Some(run.signature_of(&why));
        judged.detail = why;
        return judged;
    }
    if let Some(cut) = &run.cut {
        let why = format!("cut: the budget for {} is used up", cut.exhausted.dimension);
        judged.signature = Some(run.signature_of(&why));
        judged.detail = why;
        return judged;
    }
    let failed = measure::failed_checks(run, iteration);
    judged.failed = failed.iter().map(|(name, _)| name.clone()).collect();
    match changed_meanwhile(run, iteration) {
        Ok(files) => judged.meanwhile = files,
        Err(why) => {
            judged.verdict = PassVerdict::Discarded;
            judged.detail = why;
            return judged;
        }
    }
    let critique = iteration.critique().map(|(critique, accepted)| (critique, &accepted.links));
    if let Some((critique, _)) = critique {
        judged.concerns = critique.concerns.iter().map(shortened).collect();
        // A critic who is content sees nothing left to do: that is no word about what the checks find.
        judged.help = critique.can_further_iteration_help || critique.status == Status::Verified;
    }
    if !failed.is_empty() {
        judged.signature = failed_as(run, &failed);
        judged.fix = failed.first().and_then(|(_, result)| result.as_ref()?.fix.clone());
        // A check that fails is always the author's affair, unless the critic sees no way at all.
        judged.detail = cut(&format!("not passed: {}", named(&failed)));
        return judged;
    }
    let Some((critique, links)) = critique else {
        judged.verdict = PassVerdict::Blocked;
        judged.help = false;
        judged.detail = cut(&format!("the critic {}", how_the_critic_ended(iteration)));
        return judged;
    };
    judged.detail = cut(critique.reason.trim());
    match critique.status {
        Status::Blocked => judged.verdict = PassVerdict::Blocked,
        Status::Unverified => judged.signature = concerned_as(run, critique),
        Status::Verified => {
            let unproven = critique.judged.iter().find(|judgement| {
                judgement.met && judgement.artifact.as_ref().is_some_and(|path| !links.contains_key(path))
            });
            match unproven {
                Some(judgement) => {
                    judged.detail = cut(&format!(
                        "criterion {} is judged met, but its artifact does not exist",
                        judgement.criterion
                    ));
                    judged.signature = Some(run.signature_of(&judged.detail));
                }
                None => judged.verdict = PassVerdict::Verified,
            }
        }
    }
    judged
}

/// What somebody else changed while the critic read. The error says why its word does not count: it could have written
/// that itself, or what was changed is what it judged.
fn changed_meanwhile(run: &RunState, iteration: &Iteration) -> Result<Vec<String>, String> {
    let (before, after) = iteration.review_trees;
    let (files, held) = &iteration.changed_in_review;
    if before == after {
        return Ok(Vec::new());
    }
    let discarded = "its critique is discarded";
    if run.began_before_counted_tries() {
        return Err(format!("the critic changed files in the workspace: {discarded}"));
    }
    let named = |files: &[&str]| {
        let more = files.len().saturating_sub(NAMED);
        let list = files.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        if more == 0 { list } else { format!("{list} and {more} more") }
    };
    let all: Vec<&str> = files.iter().map(String::as_str).collect();
    if !held {
        return Err(format!("{} changed while the critic read, which may be its doing: {discarded}", named(&all)));
    }
    let worked_on = iteration.artifacts.iter().flat_map(|artifacts| &artifacts.changes).map(|change| &change.path);
    let cited = iteration.critique().map(|(_, accepted)| accepted.links.keys()).into_iter().flatten();
    let judged: BTreeSet<&str> = worked_on.chain(cited).map(String::as_str).collect();
    let touched: Vec<&str> = all.iter().copied().filter(|path| judged.contains(path)).collect();
    if !touched.is_empty() {
        let whose = "somebody else changed it while the critic, which cannot write, judged it";
        return Err(format!("{}: {whose}: {discarded}", named(&touched)));
    }
    Ok(files.iter().take(MAX_FILES).cloned().collect())
}

fn how_the_critic_ended(iteration: &Iteration) -> String {
    let call = iteration.calls.get(&iteration.call_key(Role::Critic, None));
    call.map_or_else(|| "was not heard".to_owned(), |call| call.end.describe())
}

fn out_of_scope(run: &RunState, iteration: &Iteration, item: &str) -> Vec<String> {
    let changes = iteration.artifacts.iter().flat_map(|artifacts| &artifacts.changes);
    let outside = changes.filter(|change| run.loop_file().prd().is_out_of_scope(item, &change.path));
    outside.map(|change| change.path.clone()).take(MAX_FILES).collect()
}

/// The first failing check tells one failure from another; one that printed nothing is known by its name.
fn failed_as(run: &RunState, failed: &[(String, Option<&ProbeResult>)]) -> Option<Signature> {
    let (name, result) = failed.first()?;
    let signature = result.and_then(|result| result.signature.clone());
    signature.filter(|signature| !signature.hash.is_empty()).or_else(|| {
        let end = result.map(|result| result.end.describe()).unwrap_or_default();
        Some(run.signature_of(&format!("{name} {end}")))
    })
}

/// What matters of the concerns, without their lines.
fn concerned_as(run: &RunState, critique: &Critique) -> Option<Signature> {
    let grave = critique.concerns.iter().filter(|concern| concern.severity != Severity::Low);
    let mut words: Vec<String> = grave.map(|concern| concern.description.trim().to_lowercase()).collect();
    if words.is_empty() {
        words = critique.concerns.iter().map(|concern| concern.description.trim().to_lowercase()).collect();
    }
    words.sort();
    (!words.is_empty()).then(|| run.signature_of(&words.join("\n")))
}

fn named(failed: &[(String, Option<&ProbeResult>)]) -> String {
    let told = failed.iter().map(|(name, result)| match result {
        Some(result) => match &result.last_line {
            Some(line) => format!("{name} ({}, {line})", result.end.describe()),
            None => format!("{name} ({})", result.end.describe()),
        },
        None => format!("{name} (did not run)"),
    });
    told.collect::<Vec<_>>().join("; ")
}

fn shortened(concern: &Concern) -> Concern {
    let cut = |text: &String| text[..text.floor_char_boundary(MAX_WORDS)].to_owned();
    Concern {
        severity: concern.severity,
        description: cut(&concern.description),
        location: cut(&concern.location),
        recommendation: cut(&concern.recommendation),
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_DETAIL)].to_owned()
}
