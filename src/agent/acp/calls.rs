//! The tool calls of a program, followed from their first mention to their end.
//!
//! A call is told when it is known what it does, and once; its result, and the files it says it changed, when
//! it has ended. Invariant: what is kept of open calls is bounded, however many there are and however long.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    Diff, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use serde_json::Value;
use similar::TextDiff;

use crate::model::act::{Act, MAX_ACT_BYTES};

mod deeds;

use super::hearing::words;
use super::permission::Described;

/// Calls followed at once; what comes beyond is told, and not followed.
const MAX_OPEN: usize = 256;
/// Ended calls remembered, so that a late word about them is not taken for a new call.
const MAX_ENDED: usize = 4_096;
const MAX_DIFFS: usize = 16;
/// Longer texts are not compared.
const MAX_COMPARED: usize = 256 * 1024;
const COMPARE_TIME: Duration = Duration::from_millis(200);

/// What is known of a call.
#[derive(Debug, Default, Clone)]
struct Known {
    title: String,
    name: Option<String>,
    kind: Option<&'static str>,
    input: Option<String>,
    /// The same, for what it says to rules.
    raw: Option<Value>,
    paths: Vec<String>,
    text: String,
    output: Option<String>,
    diffs: Vec<(String, String)>,
    status: Option<ToolCallStatus>,
    told: bool,
}

pub(super) struct Calls {
    workspace: PathBuf,
    /// The name of our own server, where it is offered.
    own_server: Option<String>,
    open: BTreeMap<String, Known>,
    ended: BTreeSet<String>,
}

impl Calls {
    pub(super) fn new(workspace: &Path, own_server: Option<&str>) -> Self {
        let own_server = own_server.map(str::to_owned);
        Self { workspace: workspace.to_owned(), own_server, open: BTreeMap::new(), ended: BTreeSet::new() }
    }

    pub(super) fn started(&mut self, call: ToolCall, tell: &mut dyn FnMut(Act)) {
        let fields = ToolCallUpdateFields::new()
            .title(call.title)
            .name(call.name)
            .kind(call.kind)
            .status(call.status)
            .content(call.content)
            .locations(call.locations)
            .raw_input(call.raw_input)
            .raw_output(call.raw_output);
        self.updated(ToolCallUpdate::new(call.tool_call_id, fields), tell);
    }

    pub(super) fn updated(&mut self, update: ToolCallUpdate, tell: &mut dyn FnMut(Act)) {
        let id = short(&update.tool_call_id.to_string(), 200);
        if self.ended.contains(&id) {
            return;
        }
        let mut known = self.open.remove(&id).unwrap_or_default();
        known.learn(update.fields, &self.workspace);
        let ended = matches!(known.status, Some(ToolCallStatus::Completed | ToolCallStatus::Failed));
        // Programs often name a call first and say later what it is about.
        let pending = matches!(known.status, None | Some(ToolCallStatus::Pending)) && known.input.is_none();
        let full = self.open.len() >= MAX_OPEN;
        if !known.told && (!pending || full) {
            known.tell(&id, tell);
        }
        if ended {
            known.tell_end(&id, tell);
        }
        if ended || full {
            if self.ended.len() >= MAX_ENDED {
                self.ended.clear();
            }
            self.ended.insert(id);
        } else {
            self.open.insert(id, known);
        }
    }

    /// The turn is over: calls that were only named are told all the same.
    pub(super) fn end(&mut self, tell: &mut dyn FnMut(Act)) {
        for (id, known) in std::mem::take(&mut self.open) {
            if !known.told {
                tell(known.called(&id));
            }
        }
    }

    /// What a call would do, as far as it was told here or before.
    pub(super) fn describe(&self, call: &ToolCallUpdate) -> Described {
        let id = short(&call.tool_call_id.to_string(), 200);
        let mut known = self.open.get(&id).cloned().unwrap_or_default();
        known.learn(call.fields.clone(), &self.workspace);
        let mut parts = vec![known.title.clone()];
        parts.extend(known.input.clone());
        parts.push(known.text.clone());
        parts.extend(known.diffs.iter().map(|(path, diff)| format!("{path}\n{diff}")));
        parts.retain(|part| !part.is_empty());
        let deeds = deeds::of(&known, self.own_server.as_deref());
        Described { tool: known.tool(), what: short(&parts.join("\n"), MAX_ACT_BYTES), deeds }
    }
}

impl Known {
    fn learn(&mut self, fields: ToolCallUpdateFields, workspace: &Path) {
        if let Some(title) = fields.title {
            self.title = short(&title, 1_000);
        }
        if let Some(name) = fields.name {
            self.name = Some(short(&name, 200));
        }
        if let Some(kind) = fields.kind {
            self.kind = kind_word(kind);
        }
        if let Some(status) = fields.status {
            self.status = Some(status);
        }
        if let Some(input) = fields.raw_input {
            self.input = told(&input);
            self.raw = Some(input).filter(|_| self.input.as_ref().is_some_and(|text| text.len() < MAX_ACT_BYTES));
        }
        if let Some(locations) = fields.locations {
            let paths = locations.iter().take(MAX_DIFFS).map(|location| relative(&location.path, workspace));
            self.paths = paths.collect();
        }
        if let Some(output) = fields.raw_output {
            self.output = told(&output);
        }
        // Content replaces what was there, by the protocol.
        if let Some(content) = fields.content {
            self.text.clear();
            self.diffs.clear();
            for part in content {
                self.learn_content(part, workspace);
            }
        }
    }

    fn learn_content(&mut self, part: ToolCallContent, workspace: &Path) {
        match part {
            ToolCallContent::Diff(diff) if self.diffs.len() < MAX_DIFFS => {
                let path = relative(&diff.path, workspace);
                let compared = unified(&path, &diff);
                self.diffs.push((short(&path, 1_000), compared));
            }
            ToolCallContent::Content(content) => {
                if !self.text.is_empty() {
                    self.text.push('\n');
                }
                self.text = short(&format!("{}{}", self.text, words(&content.content)), MAX_ACT_BYTES);
            }
            // A terminal of a client that has some; we have none. More diffs than are kept. Kinds to come.
            _ => {}
        }
    }

    /// Its name, or what kind of thing it does, or its title.
    fn tool(&self) -> String {
        let named = self.name.clone().or_else(|| self.kind.map(str::to_owned));
        named.unwrap_or_else(|| if self.title.is_empty() { "tool".to_owned() } else { self.title.clone() })
    }

    fn called(&self, id: &str) -> Act {
        let input = self.input.clone().unwrap_or_else(|| self.title.clone());
        Act::Called { id: id.to_owned(), tool: self.tool(), input }
    }

    fn tell(&mut self, id: &str, tell: &mut dyn FnMut(Act)) {
        self.told = true;
        tell(self.called(id));
    }

    fn tell_end(&mut self, id: &str, tell: &mut dyn FnMut(Act)) {
        let is_error = matches!(self.status, Some(ToolCallStatus::Failed));
        let output = std::mem::take(&mut self.text);
        let text = if output.is_empty() { self.output.take().unwrap_or_default() } else { output };
        tell(Act::Returned { id: id.to_owned(), is_error, text });
        // A change that failed is none.
        if !is_error {
            for (path, diff) in self.diffs.drain(..) {
                tell(Act::Changed { path, diff });
            }
        }
    }
}

const fn kind_word(kind: ToolKind) -> Option<&'static str> {
    match kind {
        ToolKind::Read => Some("read"),
        ToolKind::Edit => Some("edit"),
        ToolKind::Delete => Some("delete"),
        ToolKind::Move => Some("move"),
        ToolKind::Search => Some("search"),
        ToolKind::Execute => Some("execute"),
        ToolKind::Think => Some("think"),
        ToolKind::Fetch => Some("fetch"),
        ToolKind::SwitchMode => Some("switch mode"),
        // `other`, and kinds to come.
        _ => None,
    }
}

/// A value as text; nothing where there is nothing.
fn told(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Object(fields) if fields.is_empty() => None,
        Value::String(text) => Some(short(text, MAX_ACT_BYTES)),
        other => Some(short(&other.to_string(), MAX_ACT_BYTES)),
    }
}

fn unified(path: &str, diff: &Diff) -> String {
    let old = diff.old_text.as_deref().unwrap_or_default();
    if old.len().max(diff.new_text.len()) > MAX_COMPARED {
        return format!("[{} bytes became {} bytes: too long to compare]", old.len(), diff.new_text.len());
    }
    let mut config = TextDiff::configure();
    let compared = config.timeout(COMPARE_TIME).diff_lines(old, &diff.new_text);
    let before = if diff.old_text.is_some() { path } else { "/dev/null" };
    short(&compared.unified_diff().context_radius(3).header(before, path).to_string(), MAX_ACT_BYTES)
}

/// A path as rules name it.
fn relative(path: &Path, workspace: &Path) -> String {
    path.strip_prefix(workspace).unwrap_or(path).to_string_lossy().into_owned()
}

/// At most `limit` bytes, and a mark where something is left out.
fn short(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let at = text.floor_char_boundary(limit.saturating_sub(4));
    format!("{}…", &text[..at])
}
