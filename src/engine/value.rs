//! The effects of the value playbook: documents, scripts, services, preflight, the repository.
//!
//! Role: make the effect that a step asks for and record what came of it; the first message of a call. Not its role:
//! deciding anything. Invariants: what a record names is kept before it is recorded; every effect may be made again
//! after a crash.

mod documents;
#[cfg(test)]
mod driven;
mod preflight;
pub(super) mod scripts;
mod services;
pub(super) mod sweep;

use std::path::PathBuf;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::journal::Blobs;
use crate::machine::compose;
use crate::machine::todo::Effect;
use crate::model::canonical;
use crate::model::capsule::Capsule;
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::tools::Structured;
use crate::playbook::value::brief::{self, Texts};
use crate::playbook::value::event::{DocumentsRead, PreflightChecked, ServicesChecked};
use crate::tool::permission::Verdict;

use super::driver::{Cutoff, Driver, Guarded};
use super::error::EngineError;
use super::people;

/// What a person should write where a document is missing.
const VISION_PURPOSE: &str = "write down who is to be better off, by what, and how anyone will see it";
const PRD_PURPOSE: &str = "write down what has to be there for the vision to come true, requirement by requirement";

impl Driver<'_> {
    /// Makes an effect that a step asked for, and records what came of it.
    pub(super) async fn make(&mut self, effect: Effect) -> Result<(), EngineError> {
        match effect {
            Effect::ReadDocuments => {
                let read = self.documents()?;
                self.record(read).await
            }
            Effect::WriteDocument { path, text } => self.write_text(&path, &text).await,
            Effect::RunProbes(probes) => self.run_probes(probes).await,
            Effect::FindVerifications => {
                let known = &self.session.state.value().verifications;
                let found = scripts::find(&self.session.workspace, known, &self.session.blobs, self.secrets())?;
                self.record(found).await
            }
            Effect::CheckServices => self.check_services().await,
            Effect::CheckPreflight => {
                let checked = self.preflight();
                self.record(checked).await
            }
            Effect::Git(operation) => self.git(operation).await,
            Effect::Undo(iteration) => self.undo(iteration).await,
            Effect::ReadPrd(when) => self.read_prd(when).await,
            Effect::RestorePrd => self.restore_prd().await,
            Effect::SettleItem => self.settle_item().await,
        }
    }

    fn documents(&self) -> Result<DocumentsRead, EngineError> {
        let settings = self.session.state.value_settings();
        let read = |path: &str, purpose: &str| {
            documents::read(&self.session.workspace, path, purpose, &self.session.blobs, self.secrets())
        };
        Ok(DocumentsRead { vision: read(&settings.vision, VISION_PURPOSE)?, prd: read(&settings.prd, PRD_PURPOSE)? })
    }

    /// Writes one of the two documents and reads them again. What could not be written is a problem of the document.
    async fn write_text(&mut self, path: &str, text: &Digest) -> Result<(), EngineError> {
        let settings = self.session.state.value_settings();
        if path != settings.vision && path != settings.prd {
            return Err(EngineError::Internal(format!("{path} is neither the vision nor the PRD")));
        }
        let bytes = self.session.blobs.get(text)?;
        let written = documents::write(&self.session.workspace, path, &bytes, &people::protected());
        let mut read = self.documents()?;
        if let Err(why) = written {
            let document = if read.vision.path == path { &mut read.vision } else { &mut read.prd };
            document.problem = Some(why);
        }
        self.record(read).await
    }

    /// Before the role that writes scripts looks at them, they are what was recorded: whoever changed one meanwhile
    /// has not changed what counts.
    pub(super) fn restore_scripts(&self) -> Result<(), EngineError> {
        for verification in self.session.state.value().verifications.values() {
            let script = self.session.blobs.get(&verification.script)?;
            // What cannot be put back now cannot be run either, and says so then.
            let _ = scripts::restore(&self.session.workspace, verification, &script);
        }
        Ok(())
    }

    async fn check_services(&mut self) -> Result<(), EngineError> {
        let services = self.session.state.value().context.as_ref().map(|context| context.services.clone());
        let services = services.unwrap_or_default();
        let token = CancellationToken::new();
        let checks = self.service_checks(services)?;
        let outcome = match self.guarded(&token, Cutoff::Never, services::all(checks, &token)).await? {
            Guarded::Done(outcome) | Guarded::Cut(outcome) => outcome,
            // It tells nothing about the services, and is made again on resume.
            Guarded::Stopped(_) => return Ok(()),
        };
        let services = outcome.into_iter().map(|health| services::clean(health, self.secrets())).collect();
        self.record(ServicesChecked { services }).await
    }

    fn preflight(&self) -> PreflightChecked {
        let value = self.session.state.value();
        let report = value.step.as_ref().and_then(|step| step.last_report(Tool::ReportPreflight));
        let not_needed = match report {
            Some(Structured::ReportPreflight(report)) => report.not_needed.as_slice(),
            _ => &[],
        };
        value.context.as_ref().map_or_else(preflight::nothing, |context| preflight::check(context, not_needed))
    }

    /// What no file tool of this role may write.
    pub(super) fn protected_from(&self, role: Role) -> Vec<PathBuf> {
        let mut protected = people::protected();
        protected.extend(self.sealed_from(role));
        protected
    }

    /// What the sandbox, where it can, keeps from this role's commands, too.
    pub(super) fn sealed_from(&self, role: Role) -> Vec<PathBuf> {
        let state = &self.session.state;
        let guarded = state.playbook().guarded(state.loop_file(), role);
        let mut sealed: Vec<PathBuf> = guarded.into_iter().map(PathBuf::from).collect();
        sealed.extend(self.sealed_from_all());
        sealed
    }

    /// May this command be run on an agent's word, with nobody asked? The error says why not.
    pub(super) fn permitted(&self, argv: &[String]) -> Result<(), String> {
        match self.rules.decide("bash", &serde_json::json!({"command": quoted(argv)})) {
            Verdict::Allowed { .. } => Ok(()),
            Verdict::Denied { rule } => Err(format!("not permitted: deny {rule}")),
            Verdict::Ask { rule } => Err(format!("not permitted without a person: ask {rule}")),
        }
    }

    /// The first message of a call of this playbook: the capsule, which call it is, then its brief.
    pub(super) fn value_message(&self, purpose: Purpose, subject: Option<&str>) -> Result<String, EngineError> {
        let state = &self.session.state;
        let mut text = String::from("CAPSULE\n");
        text.push_str(&self.capsule_text(purpose)?);
        text.push('\n');
        text.push_str(&self.call_line(purpose, subject)?);
        text.push_str(&brief::message(state, purpose, subject, &Stored { blobs: &self.session.blobs }));
        Ok(text)
    }

    /// Which call it is, as a line of its own.
    pub(super) fn call_line(&self, purpose: Purpose, subject: Option<&str>) -> Result<String, EngineError> {
        let made = self.session.state.calls_made.get(&(purpose, subject.map(str::to_owned))).copied();
        Ok(format!("CALL {}\n", call_line(purpose, subject, made.unwrap_or(0).saturating_add(1))?))
    }

    /// The capsule of the running iteration; before the first one, what it would be.
    fn capsule_text(&self, purpose: Purpose) -> Result<String, EngineError> {
        let (state, role) = (&self.session.state, purpose.role());
        let mut capsule: Capsule = match &state.current {
            Some(iteration) => serde_json::from_slice(&self.session.blobs.get(&iteration.began.capsule)?)
                .map_err(|e| EngineError::Internal(format!("the capsule cannot be read: {e}")))?,
            None => compose::compose(state, &self.agents_md_text()?, role, self.spent_now().millis).capsule,
        };
        capsule.subagent_role = role.name().to_owned();
        if purpose.has_fresh_eyes() {
            capsule = capsule.for_fresh_eyes();
        }
        capsule.text().map_err(|e| EngineError::Internal(e.to_string()))
    }
}

/// A command as a shell would be given it, each word one word.
fn quoted(argv: &[String]) -> String {
    let plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c));
    let quote = |word: &String| {
        if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    argv.iter().map(quote).collect::<Vec<_>>().join(" ")
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
        cut_in_the_middle(&String::from_utf8_lossy(&bytes), limit)
    }
}

/// At most `limit` bytes of a text: its beginning and its end, with a mark between them where there is room for it.
fn cut_in_the_middle(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mark = format!("\n[… {} bytes in all …]\n", text.len());
    let mark = if mark.len() < limit { mark } else { String::new() };
    let half = (limit - mark.len()) / 2;
    let head = text.floor_char_boundary(half);
    let tail = text.ceil_char_boundary(text.len() - half);
    format!("{}{mark}{}", &text[..head], &text[tail..])
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

    #[test]
    fn words_stay_words_when_a_command_is_read_by_the_rules() {
        let argv = ["sh", "-c", "rm -rf it's; x", ""].map(str::to_owned);
        assert_eq!(quoted(&argv), r"sh -c 'rm -rf it'\''s; x' ''");
    }

    #[test]
    fn a_long_text_loses_its_middle_and_no_more() {
        assert_eq!(cut_in_the_middle("short", 5), "short");
        let text = format!("{}{}{}", "a".repeat(500), "ü".repeat(500), "z".repeat(500));
        let cut = cut_in_the_middle(&text, 200);
        assert!(cut.len() <= 200 && cut.starts_with("aaaa") && cut.ends_with("zzzz"), "{cut}");
        assert!(cut.contains("2000 bytes in all"));
        for limit in 0..60 {
            assert!(cut_in_the_middle(&"ü".repeat(100), limit).len() <= limit, "{limit}");
        }
    }
}
