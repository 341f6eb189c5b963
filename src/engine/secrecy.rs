//! Where secrets are found, and the entrances at which they are taken out.
//!
//! Role: gather the values that must not be seen; clean what tools, checks, models and servers hand in, before it
//! is stored, hashed, journaled or shown.
//! Not its role: what a secret looks like ([`crate::model::secret`]).
//!
//! Invariants: what a tool, a check or a server says loses known values and whatever looks like a key; what a
//! model says loses known values only, because its words are sent back as they came; a user's files stay as they
//! are, and so do the operator's own words.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent::{Block, CallError, Delta, Reply, ToolInput};
use crate::model::digest::Digest;
use crate::model::loop_file::{BackendName, LoopFile};
use crate::model::secret::{Scope, Secrets, Stream, looks_secret};
use crate::tool::process::{Captured, ProcessOutcome};
use crate::tool::registry::ToolOutcome;

use super::hub::{Hub, LiveKind, LiveText};
use super::places;

/// A variable that nobody declared is taken for a secret only if its value cannot be an ordinary word.
const MIN_UNDECLARED: usize = 16;
/// A key file is one line.
const MAX_KEY_FILE: u64 = 64 * 1024;

/// The secrets of a loop, as far as environment and files tell. What a command prints is added by whoever runs it.
pub fn gather(declared: &LoopFile) -> Secrets {
    let mut secrets = Secrets::default();
    let mut take = |name: &str| {
        if let Some(value) = std::env::var(name).ok().filter(|value| !Path::new(value).exists()) {
            secrets.add(name, &value);
        }
    };
    for (_, agent) in declared.agents.iter() {
        let usual = match agent.backend {
            BackendName::Anthropic => Some("ANTHROPIC_API_KEY"),
            BackendName::Openai => Some("OPENAI_API_KEY"),
            BackendName::Command | BackendName::Acp | BackendName::Rehearsal => None,
        };
        agent.api_key_env.as_deref().or(usual).into_iter().for_each(&mut take);
        agent.env.iter().filter(|name| looks_secret(name)).for_each(|name| take(name));
    }
    places::secret_variables().iter().for_each(|name| take(name));
    for (name, agent) in declared.agents.iter() {
        let key = agent.api_key_file.as_deref().and_then(|file| first_line(Path::new(file)));
        if let Some(key) = key {
            secrets.add(&format!("key-of-{name}"), &key);
        }
    }
    // A tool may see more of our environment than it is given.
    for (name, value) in std::env::vars() {
        let wordy = value.len() < MIN_UNDECLARED || !value.bytes().any(|byte| byte.is_ascii_digit());
        if looks_secret(&name) && !wordy && !Path::new(&value).exists() {
            secrets.add(&name, &value);
        }
    }
    secrets
}

/// The first line of a small file.
fn first_line(path: &Path) -> Option<String> {
    let meta = std::fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= MAX_KEY_FILE);
    let text = meta.and_then(|_| std::fs::read_to_string(path).ok())?;
    text.lines().next().map(str::to_owned)
}

/// What a tool did.
pub(super) fn clean_outcome(secrets: &Secrets, outcome: ToolOutcome) -> ToolOutcome {
    ToolOutcome {
        text: secrets.redact(&outcome.text).into_owned(),
        output: secrets.redact_bytes(&outcome.output).into_owned(),
        ..outcome
    }
}

/// What a check or another command of the engine printed.
pub(super) fn clean_process(secrets: &Secrets, outcome: ProcessOutcome) -> ProcessOutcome {
    let clean = |stream: Captured| match secrets.redact_bytes(&stream.bytes) {
        Cow::Borrowed(_) => stream,
        // The digest must not vouch for a text that nobody has; of a cut stream it covers more than we have.
        Cow::Owned(bytes) if stream.truncated => Captured { bytes, ..stream },
        Cow::Owned(bytes) => Captured { sha256: Digest::of(&bytes), bytes, ..stream },
    };
    ProcessOutcome { stdout: clean(outcome.stdout), stderr: clean(outcome.stderr), ..outcome }
}

/// What a model said. The next request carries the cleaned form.
pub(super) fn clean_reply(secrets: &Secrets, mut reply: Reply) -> Reply {
    if secrets.is_empty() {
        return reply;
    }
    let mut message: Value = serde_json::from_str(reply.message.get()).unwrap_or_default();
    if secrets.redact_json(&mut message)
        && let Ok(clean) = RawValue::from_string(message.to_string())
    {
        reply.message = clean;
    }
    let known = |text: &mut String| {
        if let Cow::Owned(clean) = secrets.redact_known(text) {
            *text = clean;
        }
    };
    for block in &mut reply.blocks {
        match block {
            Block::Text { text } | Block::Thinking { text } => known(text),
            Block::ToolUse { id, name, input } => {
                known(id);
                known(name);
                match input {
                    ToolInput::Json(value) => {
                        secrets.redact_json(value);
                    }
                    ToolInput::Malformed(text) => known(text),
                }
            }
            Block::Other { kind } => known(kind),
        }
    }
    reply.stop_details.iter_mut().chain(&mut reply.request_id).for_each(known);
    reply
}

/// Why a call failed.
pub(super) fn clean_error(secrets: &Secrets, error: &CallError) -> String {
    secrets.redact(&error.to_string()).into_owned()
}

/// Passes on what a model writes while it writes it.
pub(super) struct Speaker {
    hub: Hub,
    call: String,
    turn: u32,
    kind: LiveKind,
    stream: Stream,
}

impl Speaker {
    pub(super) fn new(hub: Hub, call: String, turn: u32, secrets: Arc<Secrets>) -> Self {
        Self { hub, call, turn, kind: LiveKind::Text, stream: Stream::new(secrets, Scope::Known) }
    }

    pub(super) fn on_delta(&mut self, delta: Delta<'_>) {
        let (kind, text) = match delta {
            Delta::Text(text) => (LiveKind::Text, Cow::Borrowed(text)),
            Delta::Thinking(text) => (LiveKind::Thinking, Cow::Borrowed(text)),
            Delta::ToolStarted { name } => (LiveKind::ToolInput, Cow::Owned(format!("{name} "))),
            Delta::ToolInput(text) => (LiveKind::ToolInput, Cow::Borrowed(text)),
            Delta::Usage { .. } | Delta::Limits(_) => return,
        };
        if kind != self.kind || matches!(delta, Delta::ToolStarted { .. }) {
            self.finish();
            self.kind = kind;
        }
        let text = self.stream.push(&text);
        self.say(text);
    }

    /// What was held back belongs to no secret.
    pub(super) fn finish(&mut self) {
        let rest = self.stream.flush();
        self.say(rest);
    }

    fn say(&self, text: String) {
        if !text.is_empty() {
            self.hub.say(LiveText { call: self.call.clone(), turn: self.turn, kind: self.kind, text });
        }
    }
}
