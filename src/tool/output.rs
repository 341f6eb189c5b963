//! Reading on in a result that was too long to be shown whole.
//!
//! What is kept of a result is a blob of the journal, cleaned of secrets; the engine brings it, here is what is shown of
//! it. Invariant: each look is bounded, and says where the next one begins.

use super::call::{ToolContext, ToolOutcome};
use super::inputs::ReadOutput;

/// What a cut result says at its end, so that its agent can read on. `None`: all of it was shown.
pub fn reads_on(outcome: &ToolOutcome, number: u32, shown: usize) -> Option<String> {
    let kept = outcome.output.len();
    // Where the text is the output, what it shows is what there is.
    (kept > shown && outcome.output != outcome.text.as_bytes()).then(|| {
        let all = if outcome.truncated {
            format!("{} bytes, {kept} of them kept", outcome.total_bytes)
        } else {
            format!("{kept} bytes")
        };
        format!(
            "\n[this was output {number}, cut: {all}; read_output with output={number} and offset={} reads on]",
            shown / 2
        )
    })
}

pub(super) fn read(ctx: &ToolContext, input: &ReadOutput) -> Result<ToolOutcome, String> {
    let Some(kept) = ctx.outputs.get(&input.output) else {
        return Err(format!("there is no output {}: a result that was cut names its number", input.output));
    };
    let first = usize::try_from(input.offset.unwrap_or(0)).unwrap_or(usize::MAX);
    if first >= kept.len() {
        return Err(format!("offset {first} is past the end: output {} has {} bytes", input.output, kept.len()));
    }
    let last = first.saturating_add(ctx.limits.model_text_bytes).min(kept.len());
    // Whole lines where there are any, so that the next look begins with one.
    let line = kept[first..last].iter().rposition(|byte| *byte == b'\n').map(|at| first + at + 1);
    let last = line.filter(|_| last < kept.len()).unwrap_or(last);
    let mut text = String::from_utf8_lossy(&kept[first..last]).into_owned();
    if last < kept.len() {
        text.push_str(&format!(
            "\n[output {} goes on ({} bytes in all); continue with offset={last}]",
            input.output,
            kept.len()
        ));
    }
    Ok(ToolOutcome::text(text))
}
