//! The effects of the value playbook: documents, scripts, services, preflight, the repository.
//!
//! Role: make the effect that a step asks for and record what came of it; the first message of a call. Not its role:
//! deciding anything. Invariants: what a record names is kept before it is recorded; every effect may be made again
//! after a crash.

pub(super) mod changes;
mod documents;
mod preflight;
pub(super) mod scripts;
pub(super) mod services;
pub(super) mod sweep;

use serde_json::{Map, Value};

use crate::journal::Blobs;
use crate::machine::compose;
use crate::model::canonical;
use crate::model::capsule::Capsule;
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::tools::Structured;
use crate::playbook::value::brief::{self, Texts};
use crate::playbook::value::event::{DocumentsRead, PreflightChecked};

use super::confine::protected;
use super::context::Context;
use super::environment;
use super::error::EngineError;
use super::excerpt;
use super::learn;

/// What a person should write where a document is missing.
const VISION_PURPOSE: &str = "write down who is to be better off, by what, and how anyone will see it";
const PRD_PURPOSE: &str = "write down what has to be there for the vision to come true, requirement by requirement";

/// Reads the vision and the PRD.
pub(super) async fn read_documents(cx: &mut Context<'_>) -> Result<(), EngineError> {
    let read = documents_now(cx)?;
    cx.record(read).await
}

/// Looks for the scripts that the work is verified by.
pub(super) async fn find_verifications(cx: &mut Context<'_>) -> Result<(), EngineError> {
    let known = &cx.state().value().verifications;
    let found = scripts::find(cx.workspace(), known, cx.blobs(), cx.secrets())?;
    cx.record(found).await
}

/// Looks whether the work can begin.
pub(super) async fn check_preflight(cx: &mut Context<'_>) -> Result<(), EngineError> {
    let checked = preflight(cx);
    cx.record(checked).await
}

fn documents_now(cx: &Context<'_>) -> Result<DocumentsRead, EngineError> {
    let settings = cx.state().value_settings();
    let read = |path: &str, purpose: &str| documents::read(cx.workspace(), path, purpose, cx.blobs(), cx.secrets());
    Ok(DocumentsRead { vision: read(&settings.vision, VISION_PURPOSE)?, prd: read(&settings.prd, PRD_PURPOSE)? })
}

/// Writes one of the two documents and reads them again. What could not be written is a problem of the document.
pub(super) async fn write_document(cx: &mut Context<'_>, path: &str, text: &Digest) -> Result<(), EngineError> {
    let settings = cx.state().value_settings();
    if path != settings.vision && path != settings.prd {
        return Err(EngineError::Internal(format!("{path} is neither the vision nor the PRD")));
    }
    let bytes = cx.blobs().get(text)?;
    let written = documents::write(cx.workspace(), path, &bytes, &protected());
    let mut read = documents_now(cx)?;
    if let Err(why) = written {
        let document = if read.vision.path == path { &mut read.vision } else { &mut read.prd };
        document.problem = Some(why);
    }
    cx.record(read).await
}

/// Before the role that writes scripts looks at them, they are what was recorded: whoever changed one meanwhile
/// has not changed what counts.
pub(super) fn restore_scripts(cx: &Context<'_>) -> Result<(), EngineError> {
    for verification in cx.state().value().verifications.values() {
        let script = cx.blobs().get(&verification.script)?;
        // What cannot be put back now cannot be run either, and says so then.
        let _ = scripts::restore(cx.workspace(), verification, &script);
    }
    Ok(())
}

pub(super) async fn check_services(cx: &mut Context<'_>) -> Result<(), EngineError> {
    services::check(cx).await.map(drop)
}

/// Before a command of an agent: the services it was told of are up again, should they have fallen since. `false`: a stop
/// came first.
pub(super) async fn revive_services(cx: &mut Context<'_>, role: Role) -> Result<bool, EngineError> {
    if services::fell(cx, role.may_write()) { services::check(cx).await } else { Ok(true) }
}

fn preflight(cx: &Context<'_>) -> PreflightChecked {
    let value = cx.state().value();
    let report = value.step.as_ref().and_then(|step| step.last_report(Tool::ReportPreflight));
    let not_needed = match report {
        Some(Structured::ReportPreflight(report)) => report.not_needed.as_slice(),
        _ => &[],
    };
    let mut checked =
        value.context.as_ref().map_or_else(preflight::nothing, |context| preflight::check(context, not_needed));
    checked.services = preflight::services(cx.state(), not_needed);
    checked
}

/// The first message of a call of this playbook: the capsule, which call it is, then its brief.
pub(super) fn message(cx: &Context<'_>, purpose: Purpose, subject: Option<&str>) -> Result<String, EngineError> {
    let state = cx.state();
    let mut text = String::from("CAPSULE\n");
    text.push_str(&capsule_text(cx, purpose)?);
    text.push('\n');
    text.push_str(&call_number(cx, purpose, subject)?);
    text.push_str(&brief::message(state, purpose, subject, &Stored { blobs: cx.blobs() }));
    text.push_str(&environment::section(cx, purpose));
    Ok(text)
}

/// Which call it is, as a line of its own.
pub(super) fn call_number(cx: &Context<'_>, purpose: Purpose, subject: Option<&str>) -> Result<String, EngineError> {
    let made = cx.state().calls_made.get(&(purpose, subject.map(str::to_owned))).copied();
    Ok(format!("CALL {}\n", call_line(purpose, subject, made.unwrap_or(0).saturating_add(1))?))
}

/// The capsule of the running iteration; before the first one, what it would be.
fn capsule_text(cx: &Context<'_>, purpose: Purpose) -> Result<String, EngineError> {
    let (state, role) = (cx.state(), purpose.role());
    let mut capsule: Capsule = match &state.current {
        Some(iteration) => serde_json::from_slice(&cx.blobs().get(&iteration.began.capsule)?)
            .map_err(|e| EngineError::Internal(format!("the capsule cannot be read: {e}")))?,
        None => compose::compose(state, &learn::agents_md_text(cx)?, role, cx.recorder.spent_now().millis).capsule,
    };
    capsule.subagent_role = role.name().to_owned();
    if purpose.has_fresh_eyes() {
        capsule = capsule.for_fresh_eyes();
    }
    capsule.text().map_err(|e| EngineError::Internal(e.to_string()))
}

/// Which call this is, so that two calls of a purpose can be told apart.
fn call_line(purpose: Purpose, subject: Option<&str>, nth: u32) -> Result<String, EngineError> {
    let mut call = Map::new();
    call.insert("nth".to_owned(), nth.into());
    call.insert("purpose".to_owned(), purpose.name().into());
    if let Some(subject) = subject {
        call.insert("subject".to_owned(), subject.into());
    }
    canonical::compact(&Value::Object(call)).map_err(|e| EngineError::Internal(e.to_string()))
}

/// The texts of a brief, from the blobs.
struct Stored<'a> {
    blobs: &'a Blobs,
}

impl Texts for Stored<'_> {
    fn text(&self, digest: &Digest, limit: usize) -> String {
        let bytes = self.blobs.get(digest).unwrap_or_default();
        excerpt::cut_in_the_middle(&String::from_utf8_lossy(&bytes), limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_in_one_line_with_sorted_keys() {
        let line = call_line(Purpose::Execute, Some("T1"), 2).unwrap();
        assert_eq!(line, r#"{"nth":2,"purpose":"execute","subject":"T1"}"#);
        assert_eq!(call_line(Purpose::Plan, None, 1).unwrap(), r#"{"nth":1,"purpose":"plan"}"#);
    }
}
