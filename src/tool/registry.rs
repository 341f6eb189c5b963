//! The tools there are, and the one way to run one.
//!
//! Knows names, schemas and effect classes; the work is in `shell`, `files`, `edit`, `search`.
//! Asks nobody for permission: `permission` decides before, the engine calls after.
//!
//! Invariants: [`run`] never panics and never fails, whatever the input: what went wrong is text
//! for the model; that text is bounded; a tool that the access does not list does not exist.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::capture::head_tail;
use super::inputs::{self, bounded};
use super::process::Access;
use super::sandbox::Confinement;
use super::{edit, files, search, shell};

/// What repeating a call would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Changes nothing.
    Read,
    /// Changes something, but twice is the same as once.
    Idempotent,
    /// Twice may differ from once.
    Effect,
}

/// One tool, as told to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: &'static str,
    pub description: &'static str,
    pub input_schema: Value,
    pub effect: EffectClass,
}

/// Bounds on what a tool may take, keep and show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    pub bash_timeout_default: Duration,
    pub bash_timeout_max: Duration,
    /// What the model sees, head and tail together.
    pub model_text_bytes: usize,
    /// What is kept of an output for the record.
    pub keep_bytes: usize,
    pub read_file_bytes: usize,
    pub write_file_bytes: usize,
    pub search_matches: usize,
    pub search_depth: usize,
    pub search_files: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bash_timeout_default: Duration::from_secs(120),
            bash_timeout_max: Duration::from_secs(600),
            model_text_bytes: 30_000,
            keep_bytes: 1024 * 1024,
            read_file_bytes: 256 * 1024,
            write_file_bytes: 4 * 1024 * 1024,
            search_matches: 1000,
            search_depth: 64,
            search_files: 200_000,
        }
    }
}

/// Where and within what a call runs.
#[derive(Debug, Clone)]
pub struct ToolContext {
    pub workspace: PathBuf,
    pub access: Access,
    pub limits: Limits,
    pub run_marker: String,
    pub cancel: CancellationToken,
    /// Workspace-relative paths that no file tool may write, each with all that is under it.
    pub protected: Vec<PathBuf>,
    /// The only folder that file tools may write, where there is such a limit.
    pub within: Option<PathBuf>,
    /// What commands wear; `None`: nothing.
    pub confinement: Option<Arc<Confinement>>,
}

impl ToolContext {
    /// May this call run commands? Always with write access; else only where a command cannot write.
    fn has_shell(&self) -> bool {
        self.access == Access::ReadWrite || self.confinement.as_ref().is_some_and(|worn| worn.is_read_only())
    }
}

/// What came of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutcome {
    /// For the model, bounded.
    pub text: String,
    pub is_error: bool,
    /// For the record: the output as kept, head and tail if it was longer.
    pub output: Vec<u8>,
    /// How long the output was.
    pub total_bytes: u64,
    /// Whether `output` is less than all of it.
    pub truncated: bool,
    pub exit_code: Option<i32>,
    pub millis: u64,
    pub cancelled: bool,
}

impl ToolOutcome {
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text.into()) }
    }

    /// The text is the whole output; the model gets all of it, so the caller has bounded it.
    pub(super) fn text(text: String) -> Self {
        let output = text.clone().into_bytes();
        Self { total_bytes: output.len() as u64, text, output, ..Self::default() }
    }

    /// The text is the whole output; the model gets its head and tail.
    pub(super) fn long_text(text: String, limits: &Limits) -> Self {
        let (shown, _) = head_tail(&text, limits.model_text_bytes);
        Self { text: shown, ..Self::text(text) }
    }

    pub(super) fn cancelled() -> Self {
        Self { cancelled: true, ..Self::error("Cancelled before it finished") }
    }
}

/// The tools for an access, sorted by name. `held`: commands can be kept from writing, so that a reader gets a
/// shell, too.
pub fn catalogue(access: Access, held: bool) -> Vec<ToolSpec> {
    let mut tools = vec![
        ToolSpec {
            name: "glob_search",
            description: "List files whose path matches a glob, sorted. Files excluded by .gitignore are not listed.",
            input_schema: inputs::schema::<inputs::GlobSearch>(),
            effect: EffectClass::Read,
        },
        ToolSpec {
            name: "grep_search",
            description: "Search file contents with a regular expression. Prints path:line:text, sorted by path. Binary files and files excluded by .gitignore are not searched.",
            input_schema: inputs::schema::<inputs::GrepSearch>(),
            effect: EffectClass::Read,
        },
        ToolSpec {
            name: "read_file",
            description: "Read a text file with line numbers. For a long file, give offset and limit.",
            input_schema: inputs::schema::<inputs::ReadFile>(),
            effect: EffectClass::Read,
        },
    ];
    if access == Access::ReadWrite || held {
        tools.push(ToolSpec {
            name: "bash",
            description: match access {
                Access::ReadWrite => {
                    "Run a shell command in the workspace folder (bash, or sh where bash is missing). There is no terminal and no stdin. Every process it leaves behind is killed when the command ends."
                }
                Access::ReadOnly => {
                    "Run a shell command in the workspace folder (bash, or sh where bash is missing). It can read the workspace but not change it; $TMPDIR is writable. There is no terminal and no stdin. Every process it leaves behind is killed when the command ends."
                }
            },
            input_schema: inputs::schema::<inputs::Bash>(),
            effect: EffectClass::Effect,
        });
    }
    if access == Access::ReadWrite {
        tools.push(ToolSpec {
            name: "edit_file",
            description: "Replace an exact text in a file. The text must occur exactly once, unless replace_all is true.",
            input_schema: inputs::schema::<inputs::EditFile>(),
            effect: EffectClass::Effect,
        });
        tools.push(ToolSpec {
            name: "write_file",
            description: "Create a file, or replace its whole content.",
            input_schema: inputs::schema::<inputs::WriteFile>(),
            effect: EffectClass::Idempotent,
        });
    }
    tools.sort_by_key(|tool| tool.name);
    tools
}

/// Runs one call to its end.
pub async fn run(ctx: &ToolContext, name: &str, input: &Value) -> ToolOutcome {
    let started = Instant::now();
    let mut outcome = if ctx.cancel.is_cancelled() {
        ToolOutcome::cancelled()
    } else {
        dispatch(ctx, name, input).await.unwrap_or_else(ToolOutcome::error)
    };
    outcome.millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    outcome
}

/// An error is the text the model gets.
async fn dispatch(ctx: &ToolContext, name: &str, input: &Value) -> Result<ToolOutcome, String> {
    let writes = ctx.access == Access::ReadWrite;
    match name {
        "glob_search" => {
            let input = inputs::parse(name, input)?;
            aside(ctx, move |ctx| search::glob(ctx, &input)).await
        }
        "grep_search" => {
            let input = inputs::parse(name, input)?;
            aside(ctx, move |ctx| search::grep(ctx, &input)).await
        }
        "read_file" => {
            let input = inputs::parse(name, input)?;
            aside(ctx, move |ctx| files::read(ctx, &input)).await
        }
        "write_file" if writes => {
            let input = inputs::parse(name, input)?;
            aside(ctx, move |ctx| files::write(ctx, &input)).await
        }
        "edit_file" if writes => {
            let input = inputs::parse(name, input)?;
            aside(ctx, move |ctx| edit::edit(ctx, &input)).await
        }
        "bash" if ctx.has_shell() => shell::bash(ctx, inputs::parse(name, input)?).await,
        _ => {
            let known: Vec<&str> = catalogue(ctx.access, ctx.has_shell()).iter().map(|tool| tool.name).collect();
            let name: String = bounded(name).chars().take(64).collect();
            Err(format!("Tool '{name}' not found. The tools are: {}", known.join(", ")))
        }
    }
}

/// File work blocks, so it runs beside the async threads. A panic there is an error here.
async fn aside<F>(ctx: &ToolContext, work: F) -> Result<ToolOutcome, String>
where
    F: FnOnce(&ToolContext) -> Result<ToolOutcome, String> + Send + 'static,
{
    let ctx = ctx.clone();
    tokio::task::spawn_blocking(move || work(&ctx))
        .await
        .unwrap_or_else(|error| Err(format!("the tool broke: {error}")))
}

#[cfg(test)]
pub(super) mod tests;
