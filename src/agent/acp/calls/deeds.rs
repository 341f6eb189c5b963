//! What a call that a program asks about would do, as permission rules name it.
//!
//! Role: read kind, input and places of a call, as the programs we know give them. Not its role: judging.
//! Invariant: what is not understood is no deed; a person is asked about it.

use serde_json::Value;

use crate::agent::program::Deed;

use super::Known;

/// Names under which programs give a path.
const PATHS: [&str; 8] =
    ["file_path", "filePath", "path", "abs_path", "absolute_path", "notebook_path", "dir_path", "directory"];

pub(super) fn of(known: &Known, own_server: Option<&str>) -> Vec<Deed> {
    if let Some((server, tool)) = mcp(known, own_server) {
        return vec![Deed::Mcp { server, tool }];
    }
    match known.kind {
        Some("execute") => known.raw.as_ref().and_then(command).map(Deed::Shell).into_iter().collect(),
        Some("edit" | "delete" | "move") => paths(known).into_iter().map(Deed::Write).collect(),
        Some("read" | "search") => paths(known).into_iter().map(Deed::Read).collect(),
        _ => Vec::new(),
    }
}

/// The command line: a text, or words.
fn command(raw: &Value) -> Option<String> {
    let given = ["command", "cmd"].iter().find_map(|name| raw.get(name))?;
    match given {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            words.filter(|words| !words.is_empty()).map(shell_words::join)
        }
        _ => None,
    }
    .filter(|line| !line.trim().is_empty())
}

/// The files that it is about: those of its changes, else its places, else what its input names.
fn paths(known: &Known) -> Vec<String> {
    let mut paths: Vec<String> = known.diffs.iter().map(|(path, _)| path.clone()).collect();
    paths.extend(known.paths.iter().cloned());
    if let Some(raw) = &known.raw {
        paths.extend(PATHS.iter().filter_map(|name| raw.get(name)?.as_str()).map(str::to_owned));
    }
    paths.retain(|path| !path.is_empty());
    paths.dedup();
    paths
}

/// Server and tool of a call that goes to an MCP server.
fn mcp(known: &Known, own_server: Option<&str>) -> Option<(String, String)> {
    let field = |names: [&str; 2]| names.iter().find_map(|name| known.raw.as_ref()?.get(name)?.as_str());
    if let (Some(server), Some(tool)) = (field(["server", "server_name"]), field(["tool", "tool_name"])) {
        return Some((server.to_owned(), tool.to_owned()));
    }
    let names = [known.name.as_deref().unwrap_or_default(), known.title.as_str()];
    names.into_iter().find_map(|name| named(name, own_server))
}

/// `mcp__SERVER__TOOL`, `TOOL (SERVER MCP Server) …`, and `SERVER_TOOL` of our own server.
fn named(name: &str, own_server: Option<&str>) -> Option<(String, String)> {
    let word = |text: &str| text.split_whitespace().next().unwrap_or_default().to_owned();
    if let Some((server, tool)) = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        return Some((server.to_owned(), word(tool)));
    }
    if let Some((tool, rest)) = name.split_once(" (")
        && let Some((server, _)) = rest.split_once(" MCP Server)")
    {
        return Some((server.to_owned(), word(tool)));
    }
    let own = own_server?;
    let tool = name.strip_prefix(own)?.strip_prefix(['_', '.', '/'])?;
    Some((own.to_owned(), word(tool)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn known(kind: Option<&'static str>, title: &str, raw: Value) -> Known {
        Known { kind, title: title.to_owned(), raw: Some(raw), ..Known::default() }
    }

    /// As claude-code-acp, codex-acp, gemini, qwen and opencode ask.
    #[test]
    fn what_programs_ask_is_read() {
        let mcp = |server: &str, tool: &str| vec![Deed::Mcp { server: server.into(), tool: tool.into() }];
        let own = "submit_solver_report";
        for (call, deeds) in [
            (known(Some("execute"), "`ls -l`", json!({"command": "ls -l"})), vec![Deed::Shell("ls -l".into())]),
            (
                known(Some("execute"), "run", json!({"command": ["bash", "-lc", "echo a b"]})),
                vec![Deed::Shell("bash -lc 'echo a b'".into())],
            ),
            (known(Some("execute"), "run it", json!({"description": "a test"})), vec![]),
            (
                known(Some("edit"), "Write a/done.txt {", json!({"file_path": "done.txt"})),
                vec![Deed::Write("done.txt".into())],
            ),
            (known(Some("read"), "Read x", json!({"path": "/etc/passwd"})), vec![Deed::Read("/etc/passwd".into())]),
            (known(Some("fetch"), "Fetch", json!({"url": "https://example.org"})), vec![]),
            (known(None, &format!("{own} (nightloop MCP Server) {{…}}"), json!({})), mcp("nightloop", own)),
            (known(None, "Approve MCP tool call", json!({"server": "nightloop", "tool": own})), mcp("nightloop", own)),
            (known(Some("execute"), &format!("mcp__nightloop__{own}"), json!({})), mcp("nightloop", own)),
            (known(None, &format!("nightloop_{own}"), json!({})), mcp("nightloop", own)),
            (known(None, "nightloopish", json!({})), vec![]),
        ] {
            assert_eq!(of(&call, Some("nightloop")), deeds, "{call:?}");
        }
    }
}
