//! A cassette, ready to be played.
//!
//! Role: read the recorded calls; find the one that a request is due.
//! Not its role: sockets and pauses ([`super::server`]).
//!
//! Invariants: a call is found by role, purpose, iteration and turn, never by the words of the request, so that a small
//! edit of a prompt does not break a cassette; several recordings of one place are played in their order, the
//! last one again and again.

use std::collections::HashMap;

use serde::Deserialize;

use super::script::ScriptError;
use super::select::Position;
use crate::agent::cassette::{End, Line, is_cassette};
use crate::model::call_place::CallPlace;

/// The longest line that is read.
const MAX_LINE: usize = 128 * 1024 * 1024;
/// The largest cassette that is read: what is written at most, and its last line.
pub const MAX_TAPE_BYTES: usize = 384 * 1024 * 1024;

/// Recorded calls.
#[derive(Debug, Default)]
pub struct Tape {
    calls: HashMap<Key, Vec<Line>>,
    /// The model that was recorded.
    pub model: String,
    /// Why the recording stopped before its end, if it did.
    pub stopped: Option<String>,
}

type Key = (String, Option<CallPlace>, Option<u64>, usize);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stopped {
    stopped: String,
}

impl Tape {
    /// Reads a cassette. `name` is for errors only.
    pub fn parse(bytes: &[u8], name: &str) -> Result<Self, ScriptError> {
        let wrong =
            |line: Option<usize>, message: String| ScriptError { name: name.to_owned(), line, column: None, message };
        if !is_cassette(bytes) {
            return Err(wrong(Some(1), "this is not a cassette: its first line does not say so".to_owned()));
        }
        if bytes.len() > MAX_TAPE_BYTES {
            return Err(wrong(None, format!("the cassette has {} bytes, the limit is {MAX_TAPE_BYTES}", bytes.len())));
        }
        let mut tape = Self::default();
        let lines = bytes.split(|byte| *byte == b'\n').enumerate();
        for (n, line) in lines.skip(1).filter(|(_, line)| !line.is_empty()) {
            if line.len() > MAX_LINE {
                return Err(wrong(Some(n + 1), format!("the line has {} bytes, the limit is {MAX_LINE}", line.len())));
            }
            if let Ok(Stopped { stopped }) = serde_json::from_slice(line) {
                tape.stopped = Some(stopped);
                continue;
            }
            match serde_json::from_slice::<Line>(line) {
                Ok(call) => tape.take(call),
                // A recorder that was killed leaves half a line; what is recorded later starts a new one.
                Err(error) if error.is_eof() => {}
                Err(error) => return Err(wrong(Some(n + 1), format!("not a recorded call: {error}"))),
            }
        }
        Ok(tape)
    }

    fn take(&mut self, call: Line) {
        if self.model.is_empty() {
            self.model.clone_from(&call.model);
        }
        self.calls.entry((call.role.clone(), call.call.clone(), call.iteration, call.turn)).or_default().push(call);
    }

    /// The recording for a place, at this attempt.
    pub(super) fn call(&self, at: &Position, attempt: usize) -> Option<&Line> {
        let recorded = self.calls.get(&(at.role.clone(), at.call.clone(), at.iteration, at.turn))?;
        recorded.get(attempt).or(recorded.last())
    }
}

/// A tool that the recorded reply calls, that was offered then, and that the request does not offer now.
pub(super) fn missing_tool(line: &Line, offered: &[String]) -> Option<String> {
    if line.status != Some(200) || line.end == End::Cut {
        return None;
    }
    let body = line.chunks.iter().map(|chunk| chunk.bytes.as_slice()).collect::<Vec<_>>().concat();
    let text = String::from_utf8_lossy(&body);
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let events = data.filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok());
    let called = events.filter_map(|event| {
        let block = event.get("content_block").filter(|block| block["type"] == "tool_use");
        let messages = block.map(|block| block["name"].clone());
        let completions = event.pointer("/choices/0/delta/tool_calls/0/function/name").cloned();
        messages.or(completions)?.as_str().map(str::to_owned)
    });
    called.into_iter().find(|name| line.tools.contains(name) && !offered.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::cassette::HEADER;
    use crate::model::purpose::Purpose;

    #[test]
    fn calls_of_one_role_are_told_apart_by_what_they_are_for() {
        let call = |purpose, nth| Some(CallPlace { purpose, subject: None, nth });
        let line = |call, model: &str| {
            let line = Line { role: "evaluator".into(), call, model: model.into(), ..Line::default() };
            serde_json::to_string(&line).unwrap()
        };
        let lines = [
            HEADER.to_owned(),
            line(call(Purpose::VrcFull, 1), "first"),
            line(call(Purpose::VrcFull, 2), "second"),
            line(call(Purpose::ExitGate, 1), "gate"),
            line(None, "swarm"),
        ];
        let tape = Tape::parse(lines.join("\n").as_bytes(), "tape").unwrap();
        let model = |call| {
            let at = Position { role: "evaluator".into(), call, ..Position::default() };
            tape.call(&at, 0).map(|line| line.model.as_str())
        };
        assert_eq!(model(call(Purpose::VrcFull, 1)), Some("first"));
        assert_eq!(model(call(Purpose::VrcFull, 2)), Some("second"));
        assert_eq!(model(call(Purpose::ExitGate, 1)), Some("gate"));
        assert_eq!(model(call(Purpose::ExitGate, 2)), None);
        assert_eq!(model(None), Some("swarm"));
    }
}
