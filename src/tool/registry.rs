//! The tools there are, and the one way to run one.
//!
//! Knows names, schemas and effect classes; the work is in `shell`, `files`, `edit`, `search`.
//! Asks nobody for permission: `permission` decides before, the engine calls after.
//!
//! Invariants: [`run`] never panics and never fails, whatever the input: what went wrong is text
//! for the model; that text is bounded; a tool that the access does not list does not exist.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::access::Access;
pub use super::call::{Limits, ToolContext, ToolOutcome};
use super::inputs::{self, bounded};
use super::{edit, files, output, search, shell};

/// The tool that shows more of a result: of what its agent was permitted to get, so no rule is asked again.
pub const READ_OUTPUT: &str = "read_output";
/// The tool that runs commands.
pub const SHELL: &str = "bash";

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
        ToolSpec {
            name: READ_OUTPUT,
            description: "Read on in a result that was shown cut and names its output number.",
            input_schema: inputs::schema::<inputs::ReadOutput>(),
            effect: EffectClass::Read,
        },
    ];
    if access == Access::ReadWrite || held {
        tools.push(ToolSpec {
            name: SHELL,
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
        READ_OUTPUT => output::read(ctx, &inputs::parse(name, input)?),
        "write_file" if writes => {
            let input = inputs::parse(name, input)?;
            aside(ctx, move |ctx| files::write(ctx, &input)).await
        }
        "edit_file" if writes => {
            let input = inputs::parse(name, input)?;
            aside(ctx, move |ctx| edit::edit(ctx, &input)).await
        }
        SHELL if ctx.has_shell() => shell::bash(ctx, inputs::parse(name, input)?).await,
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
