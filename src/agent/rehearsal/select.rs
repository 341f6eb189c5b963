//! Which turn of the script a request is at, read from the request alone.
//!
//! Role: find role, call, iteration and turn in a body of either format: both have `messages` with roles.
//! Not its role: looking the turn up.
//!
//! Invariant: a pure function of the body, so that a resumed run gets the reply it is due.

use crate::model::call_place::CallPlace;
use serde::Deserialize;
use serde_json::Value;

/// Where in the script a request is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// Empty when the request names none.
    pub role: String,
    /// What the call is for, where the request says it.
    pub call: Option<CallPlace>,
    pub iteration: Option<u64>,
    /// Conversations of the same call before this one.
    pub part: u64,
    /// Assistant messages already in the request, without those that no script wrote.
    pub turn: usize,
    /// Assistant messages that were put in as a fault.
    pub injected: usize,
}

/// What the ids of tool calls begin with that were put in as a fault.
pub(super) const INJECTED: &str = "toolu_injected_";

impl Position {
    /// Reads a request body.
    pub fn of(body: &[u8]) -> Result<Position, String> {
        let request: Value = serde_json::from_slice(body).map_err(|e| format!("the body is not JSON: {e}"))?;
        let messages = request["messages"].as_array().ok_or("the body has no list `messages`")?;
        let first = messages.iter().find(|message| message["role"] == "user").map(text_of).unwrap_or_default();
        let assistant = || messages.iter().filter(|message| message["role"] == "assistant");
        let injected = assistant().filter(|message| is_injected(message)).count();
        Ok(Position {
            role: value_of(&first, "subagent_role").and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default(),
            call: CallPlace::find(&first),
            iteration: value_of(&first, "iteration_number").and_then(|v| v.as_u64()),
            part: value_of(&first, "continuation").and_then(|v| v.as_u64()).unwrap_or(0),
            turn: assistant().count() - injected,
            injected,
        })
    }

    /// For messages: what a step that fits would have to name.
    pub fn place(&self) -> String {
        let iteration = self.iteration.map_or("none".to_owned(), |i| i.to_string());
        let call = self.call.as_ref().map(|call| format!("{call}, ")).unwrap_or_default();
        let part = if self.part > 0 { format!(", part {}", self.part) } else { String::new() };
        format!("role \"{}\", {call}iteration {iteration}{part} (turn {})", self.role, self.turn)
    }
}

fn is_injected(message: &Value) -> bool {
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    blocks.iter().any(|block| block["id"].as_str().is_some_and(|id| id.starts_with(INJECTED)))
}

/// The names of the tools that a request offers, in their order.
pub fn tools_of(body: &[u8]) -> Vec<String> {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| tool["name"].as_str().or_else(|| tool["function"]["name"].as_str()).map(str::to_owned);
    tools.iter().filter_map(name).collect()
}

/// The decoded text of a message, whose content is a string or a list of blocks.
fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// The JSON value that follows the first `"key" :` in `text`, which need not be JSON as a whole.
fn value_of(text: &str, key: &str) -> Option<Value> {
    let quoted = format!("\"{key}\"");
    text.match_indices(&quoted).find_map(|(at, _)| {
        let rest = text[at + quoted.len()..].trim_start().strip_prefix(':')?;
        let mut reader = serde_json::Deserializer::from_str(rest);
        Value::deserialize(&mut reader).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(messages: Value) -> (String, Option<u64>, usize) {
        let position = Position::of(json!({"messages": messages}).to_string().as_bytes()).unwrap();
        (position.role, position.iteration, position.turn)
    }

    #[test]
    fn role_iteration_and_turn_come_from_the_request() {
        let compact = r#"{"subagent_role":"scout","iteration_number":3}"#;
        let loose =
            "Your order:\n{\n  \"iteration_number\" \t:\n 12 ,\n \"x\": {\"subagent_role\" : \"builder\"}}\nGo.";
        assert_eq!(at(json!([{"role": "user", "content": compact}])), ("scout".into(), Some(3), 0));
        assert_eq!(at(json!([{"role": "user", "content": loose}])), ("builder".into(), Some(12), 0));
        let blocks = json!([
            {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "hi"}, {"type": "text", "text": compact}]},
            {"role": "assistant", "content": []},
            {"role": "user", "content": "\"subagent_role\":\"other\""},
            {"role": "assistant", "content": "x"},
            {"role": "user", "content": []},
        ]);
        assert_eq!(at(blocks), ("scout".into(), Some(3), 2));
    }

    #[test]
    fn the_call_is_read_from_its_line() {
        let text =
            "{\"subagent_role\": \"builder\"}\nCALL {\"nth\":2,\"purpose\":\"execute\",\"subject\":\"T1\"}\n# Task\n";
        let body = json!({"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "x"}]});
        let at = Position::of(body.to_string().as_bytes()).unwrap();
        assert_eq!(at.place(), "role \"builder\", purpose \"execute\", subject \"T1\", nth 2, iteration none (turn 1)");
        let later = json!({"messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": text}]});
        assert_eq!(Position::of(later.to_string().as_bytes()).unwrap().call, None, "only the first message counts");
    }

    #[test]
    fn a_mention_without_value_is_stepped_over() {
        let text = r#"the key "subagent_role" is below; "subagent_role": oops; "subagent_role": "critic", "iteration_number": -1"#;
        assert_eq!(at(json!([{"role": "user", "content": text}])), ("critic".into(), None, 0));
    }

    #[test]
    fn what_is_missing_is_absent_and_what_is_broken_is_an_error() {
        assert_eq!(at(json!([])), (String::new(), None, 0));
        assert_eq!(at(json!([{"role": "user"}, 7])), (String::new(), None, 0));
        assert!(Position::of(b"{").is_err());
        assert!(Position::of(b"{}").is_err());
        assert!(Position::of("[".repeat(100_000).as_bytes()).is_err());
    }
}
