//! Opens a server with two small tools, answers their calls, and runs a command that may call them: for trying an MCP
//! client against `nightloop mcp` by hand.
//!
//! `cargo run --example mcp_tools -- target/debug/nightloop COMMAND ARGS…`. The command gets NIGHTLOOP_TOOLS,
//! NIGHTLOOP_TOOLS_TOKEN and, in NIGHTLOOP_BIN, the program that serves them.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nightloop::engine::offer::{Answer, Call, ToolServer, ToolSpecJson};
use serde_json::json;
use tokio::sync::mpsc;

fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let (Some(nightloop), Some(command)) = (arguments.next(), arguments.next()) else {
        return Err(Error::other("usage: mcp_tools NIGHTLOOP COMMAND [ARGS…]"));
    };
    let nightloop = PathBuf::from(nightloop).canonicalize()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(offer(&nightloop, &command, arguments.collect()))
}

async fn offer(nightloop: &Path, command: &str, arguments: Vec<String>) -> Result<ExitCode> {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let tool = |name: &str, description: &str| ToolSpecJson {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: schema.clone(),
    };
    let tools = vec![tool("echo", "Says it again."), tool("fail", "Always fails.")];
    let (calls, mut called) = mpsc::channel::<Call>(8);
    let dir = tempfile::tempdir()?;
    let server = ToolServer::open(dir.path(), tools, calls)?;
    tokio::spawn(async move {
        while let Some(Call { id, name, input, reply }) = called.recv().await {
            eprintln!("mcp_tools: {id} {name} {input}");
            let text = input["text"].as_str().unwrap_or_default().to_owned();
            // Who asked may be gone.
            let _ = reply.send(Answer { text, is_error: name == "fail" });
        }
    });
    let env = server.offer(nightloop).env;
    let mut child = tokio::process::Command::new(command);
    let status = child.args(arguments).envs(env).env("NIGHTLOOP_BIN", nightloop).status().await?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
