//! A raw MCP client: JSON-RPC lines over a child's pipes, nothing hidden.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nightloop::agent::program::Offer;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Nothing here takes this long; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    next: u64,
}

impl Client {
    pub fn start(offer: &Offer) -> Self {
        let mut command = Command::new(&offer.argv[0]);
        command.args(&offer.argv[1..]).envs(offer.env.iter().cloned());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, stdin, stdout: BufReader::new(stdout).lines(), next: 0 }
    }

    pub async fn write(&mut self, line: &str) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub async fn hello(&mut self) -> Value {
        let client = json!({"name": "raw", "version": "0"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let hello = self.ask("initialize", params).await.unwrap();
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
        hello
    }

    /// Sends a request; gives its id.
    pub async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.write(&request.to_string()).await;
        self.next
    }

    /// The result or the error of a request.
    pub async fn answer_to(&mut self, id: u64) -> Result<Value, Value> {
        let hearing = async {
            loop {
                let line =
                    self.stdout.next_line().await.unwrap().unwrap_or_else(|| panic!("it ended before its answer"));
                let message: Value = serde_json::from_str(&line).unwrap();
                if message["id"] == json!(id) {
                    return match message.get("error") {
                        Some(error) => Err(error.clone()),
                        None => Ok(message["result"].clone()),
                    };
                }
            }
        };
        tokio::time::timeout(PATIENCE, hearing).await.unwrap_or_else(|_| panic!("no answer to request {id}"))
    }

    pub async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params).await;
        self.answer_to(id).await
    }

    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Value> {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Closes its input and waits for it to go.
    pub async fn end(mut self) -> ExitStatus {
        drop(self.stdin);
        tokio::time::timeout(PATIENCE, self.child.wait()).await.unwrap_or_else(|_| panic!("it does not end")).unwrap()
    }
}
