//! The least that an agent needs to call one tool of an MCP server over its standard input and output.

use std::io::{Error, Result};
use std::process::Stdio;

use agent_client_protocol::v1::schema::McpServerStdio;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Hands a report to the server's report tool; gives back what the tool said.
pub async fn submit(server: &McpServerStdio, report: &Value) -> Result<String> {
    let mut client = Client::start(server)?;
    client
        .ask(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "acp-agent", "version": "0"}}),
        )
        .await?;
    client.tell("notifications/initialized").await?;
    let listed = client.ask("tools/list", json!({})).await?;
    let names = listed["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str());
    let name = names.filter(|name| name.starts_with("submit_")).map(str::to_owned).next();
    let name = name.ok_or_else(|| Error::other("the server has no report tool"))?;
    let result = client.ask("tools/call", json!({"name": name, "arguments": report})).await?;
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let said = if result["isError"] == json!(true) { format!("refused: {text}") } else { text.to_owned() };
    drop(client.stdin);
    client.child.wait().await?;
    Ok(said)
}

struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    next: u64,
}

impl Client {
    fn start(server: &McpServerStdio) -> Result<Self> {
        let env = server.env.iter().map(|variable| (&variable.name, &variable.value));
        let mut child = Command::new(&server.command)
            .args(&server.args)
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::other("no pipes"));
        };
        Ok(Self { child, stdin, stdout: BufReader::new(stdout).lines(), next: 0 })
    }

    async fn send(&mut self, message: Value) -> Result<()> {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await
    }

    async fn tell(&mut self, method: &str) -> Result<()> {
        self.send(json!({"jsonrpc": "2.0", "method": method})).await
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        self.next += 1;
        let id = self.next;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        while let Some(line) = self.stdout.next_line().await? {
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == json!(id) {
                return match message.get("error") {
                    Some(error) => Err(Error::other(error.to_string())),
                    None => Ok(message["result"].clone()),
                };
            }
        }
        Err(Error::other("the server went"))
    }
}
