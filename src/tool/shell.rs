//! The bash tool: one command line, its output as a terminal would show it, its exit code.
//!
//! `process` does the running and the cleaning up; here is only the shell and the wording.
//! Invariant: stdout and stderr share one pipe, so the order the model sees is the true one.

use std::path::Path;
use std::time::Duration;

use super::call::{ToolContext, ToolOutcome};
use super::capture::head_tail;
use super::inputs::Bash;
use super::process::{self, CommandSpec, End};

/// Of what is said beside the output.
const MAX_ASIDE: usize = 1_000;

pub(super) async fn bash(ctx: &ToolContext, input: Bash) -> Result<ToolOutcome, String> {
    let limits = &ctx.limits;
    let timeout = match input.timeout_seconds {
        Some(0) => return Err("timeout_seconds must be at least 1".to_owned()),
        Some(seconds) => Duration::from_secs(seconds).min(limits.bash_timeout_max),
        None => limits.bash_timeout_default,
    };
    if input.command.trim().is_empty() {
        return Err("command is empty".to_owned());
    }
    // A first shell joins the two streams and becomes a second one, whose whole text is the
    // command: nothing we add can change how it is parsed or its line numbers.
    let shell = shell();
    let argv = ["/bin/sh", "-c", r#"exec "$0" -c "$1" 2>&1"#, shell, &input.command];
    let mut spec = CommandSpec::new(argv.map(str::to_owned).to_vec(), &ctx.workspace, &ctx.run_marker);
    spec.timeout = timeout;
    spec.keep_bytes = limits.keep_bytes;
    spec.confinement = ctx.confinement.clone();
    let outcome = process::run(spec, &ctx.cancel).await;

    let (last_line, exit_code) = match &outcome.end {
        End::Exited(code) => (format!("[exit code {code}]"), Some(*code)),
        End::Signaled(signal) => (format!("[killed by signal {signal}]"), None),
        End::TimedOut => (format!("[timed out after {} s and was killed]", timeout.as_secs_f32()), None),
        End::Cancelled => ("[cancelled]".to_owned(), None),
        End::NotStarted(why) | End::Exhausted(why) => return Err(why.clone()),
    };
    // A first shell that could not start the second writes to its own stderr; so do we when we end the command.
    let aside = String::from_utf8_lossy(&outcome.stderr.bytes).into_owned();
    let stream = if outcome.stdout.total == 0 { outcome.stderr } else { outcome.stdout };
    let (mut text, _) = head_tail(&String::from_utf8_lossy(&stream.bytes), limits.model_text_bytes);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if stream.bytes != aside.as_bytes() {
        text.push_str(&head_tail(&aside, MAX_ASIDE).0);
    }
    text.push_str(&last_line);
    Ok(ToolOutcome {
        text,
        is_error: exit_code != Some(0),
        output: stream.bytes,
        total_bytes: stream.total,
        truncated: stream.truncated,
        exit_code,
        millis: 0,
        cancelled: outcome.end == End::Cancelled,
    })
}

/// Models write bash; a plain sh is the second choice.
fn shell() -> &'static str {
    let known = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
    known.into_iter().find(|path| Path::new(path).exists()).unwrap_or("/bin/sh")
}
