//! A small agent, made with the agent side of the official ACP library. It has no model: words tell it what to do.
//!
//! Words come from its argument (manners, and what to do by default) and from a line `acp: …` in the prompt, which
//! wins. Manners: `no-load`, `no-modes`, `old-models`, `sign-in`. Deeds, done in order:
//! `think` `plan` `say=WORDS` `run` `begin` `edit=PATH:TEXT` `ask` `report` `cost=USD` `state` `reach` `hang` `deaf` `exit`
//! `fail=WORDS` `stop=REASON` `flood=N`. Underscores in WORDS are blanks. Without deeds it plays its role in a loop.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use agent_client_protocol::v1::schema::*;
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Error, Lines, UntypedMessage};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio_util::sync::CancellationToken;

#[derive(Default)]
struct State {
    cwd: PathBuf,
    servers: Vec<McpServer>,
    mode: String,
    model: String,
    /// Ends the turn that runs.
    cancel: CancellationToken,
}

#[derive(Clone)]
struct Player {
    words: Arc<str>,
    state: Arc<Mutex<State>>,
    /// Ends the whole agent, as a crash would.
    exit: CancellationToken,
}

/// Serves one client until it goes.
pub async fn serve(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    words: &str,
) -> Result<(), Error> {
    let state = State { mode: "default".into(), model: "small".into(), ..State::default() };
    let player = Player { words: words.into(), state: Arc::new(Mutex::new(state)), exit: CancellationToken::new() };
    let exit = player.exit.clone();
    tokio::select! {
        ended = connection(player, reader, writer) => ended,
        () = exit.cancelled() => Ok(()),
    }
}

async fn connection(
    player: Player,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), Error> {
    let incoming = futures_util::stream::unfold(BufReader::new(reader).lines(), async |mut lines| {
        let line = lines.next_line().await.transpose()?;
        Some((line, lines))
    });
    let outgoing = futures_util::sink::unfold(writer, async |mut writer, line: String| {
        writer.write_all(format!("{line}\n").as_bytes()).await?;
        writer.flush().await?;
        Ok::<_, std::io::Error>(writer)
    });
    let [greeter, clerk, stopper] = std::array::from_fn(|_| player.clone());
    Agent
        .v1()
        .name("acp-agent")
        .on_receive_request(
            async move |_: InitializeRequest, responder: Responder<InitializeResponse>, _: ConnectionTo<Client>| {
                let capabilities = AgentCapabilities::new().load_session(!greeter.has("no-load"));
                let sign_in = AuthMethod::Agent(AuthMethodAgent::new("browser", "Sign in with a browser"));
                let answer = InitializeResponse::new(agent_client_protocol::schema::ProtocolVersion::V1);
                responder.respond(answer.agent_capabilities(capabilities).auth_methods(vec![sign_in]))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            // Untyped, so that it can offer models as agents did before there were options.
            async move |asked: UntypedMessage, responder: Responder<Value>, connection: ConnectionTo<Client>| {
                match asked.method() {
                    "session/new" => responder.respond_with_result(clerk.new_session(asked.params())),
                    "session/load" => responder.respond_with_result(clerk.load(asked.params(), &connection)),
                    "session/set_model" => {
                        clerk.state().model = asked.params()["modelId"].as_str().unwrap_or_default().to_owned();
                        responder.respond(json!({}))
                    }
                    "session/prompt" => connection.spawn(clerk.clone().prompt(asked, responder, connection.clone())),
                    "session/set_mode" => {
                        clerk.state().mode = asked.params()["modeId"].as_str().unwrap_or_default().to_owned();
                        responder.respond(json!({}))
                    }
                    "session/set_config_option" => {
                        clerk.state().model = asked.params()["value"].as_str().unwrap_or_default().to_owned();
                        responder.respond(json!({"configOptions": clerk.options()}))
                    }
                    _ => responder.respond_with_error(Error::method_not_found()),
                }
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |_: CancelNotification, _: ConnectionTo<Client>| {
                stopper.state().cancel.cancel();
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_to(Lines::new(outgoing, incoming))
        .await
}

impl Player {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn has(&self, manner: &str) -> bool {
        self.words.split_whitespace().any(|word| word == manner)
    }

    fn options(&self) -> Value {
        let values = json!([{"value": "small", "name": "Small"}, {"value": "big-1", "name": "Big"}]);
        let current = self.state().model.clone();
        json!([{"id": "m", "name": "Model", "category": "model", "type": "select",
                "currentValue": current, "options": values}])
    }

    fn offered(&self) -> Value {
        let mut offered = json!({});
        if !self.has("no-modes") {
            let modes = json!([{"id": "default", "name": "Default"}, {"id": "plan", "name": "Plan"}, {"id": "yolo", "name": "YOLO"}]);
            offered["modes"] = json!({"currentModeId": "default", "availableModes": modes});
        }
        if self.has("old-models") {
            let models = json!([{"modelId": "small", "name": "S"}, {"modelId": "big-1", "name": "Big"}]);
            offered["models"] = json!({"currentModelId": "small", "availableModels": models});
        } else {
            offered["configOptions"] = self.options();
        }
        offered
    }

    fn new_session(&self, params: &Value) -> Result<Value, Error> {
        if self.has("sign-in") {
            return Err(Error::auth_required());
        }
        let request: NewSessionRequest = serde_json::from_value(params.clone())?;
        let mut offered = self.offered();
        let mut state = self.state();
        (state.cwd, state.servers) = (request.cwd, request.mcp_servers);
        offered["sessionId"] = "s-1".into();
        Ok(offered)
    }

    /// Tells the past again, as the protocol wants it.
    fn load(&self, params: &Value, connection: &ConnectionTo<Client>) -> Result<Value, Error> {
        let request: LoadSessionRequest = serde_json::from_value(params.clone())?;
        if &*request.session_id.0 != "s-1" {
            return Err(Error::new(-32002, "no such session"));
        }
        let session = Session { connection: connection.clone(), id: request.session_id };
        session.said("Old words.")?;
        session
            .tell(json!({"sessionUpdate": "tool_call", "toolCallId": "old", "title": "old", "status": "completed"}))?;
        session.tell(usage("1.5"))?;
        let offered = self.offered();
        let mut state = self.state();
        (state.cwd, state.servers) = (request.cwd, request.mcp_servers);
        Ok(offered)
    }

    async fn prompt(
        self,
        asked: UntypedMessage,
        responder: Responder<Value>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let request: PromptRequest = serde_json::from_value(asked.params().clone())?;
        let text = request.prompt.iter().map(|block| match block {
            ContentBlock::Text(text) => text.text.as_str(),
            _ => "",
        });
        let text = text.collect::<Vec<_>>().join("\n");
        let words = text.lines().find_map(|line| line.trim().strip_prefix("acp:")).unwrap_or(&self.words).to_owned();
        self.state().cancel = CancellationToken::new();
        let turn = Turn { player: self.clone(), session: Session { connection, id: request.session_id }, text };
        responder.respond_with_result(turn.play(&words).await)
    }
}

struct Session {
    connection: ConnectionTo<Client>,
    id: SessionId,
}

impl Session {
    fn tell(&self, update: Value) -> Result<(), Error> {
        let told = json!({"sessionId": self.id, "update": update});
        self.connection.send_notification(UntypedMessage::new("session/update", told)?)
    }

    /// A message in pieces, as a model streams it.
    fn said(&self, text: &str) -> Result<(), Error> {
        self.chunks("agent_message_chunk", text)
    }

    fn chunks(&self, kind: &str, text: &str) -> Result<(), Error> {
        for piece in text.split_inclusive(' ') {
            self.tell(json!({"sessionUpdate": kind, "content": {"type": "text", "text": piece}}))?;
        }
        Ok(())
    }
}

fn usage(usd: &str) -> Value {
    let amount: Value = serde_json::from_str(usd).unwrap();
    json!({"sessionUpdate": "usage_update", "used": 1000, "size": 200_000, "cost": {"amount": amount, "currency": "USD"}})
}

struct Turn {
    player: Player,
    session: Session,
    text: String,
}

impl Turn {
    async fn play(&self, words: &str) -> Result<Value, Error> {
        let role = ["Scout", "Solver", "Skeptic"].into_iter().find(|r| self.text.contains(&format!("You are the {r}")));
        let manners = ["no-load", "no-modes", "old-models", "sign-in"];
        let mut deeds: Vec<&str> = words.split_whitespace().filter(|word| !manners.contains(word)).collect();
        if deeds.is_empty() {
            deeds = match role {
                Some("Solver") => vec!["think", "plan", "run", "edit=done.txt:yes", "report"],
                _ => vec!["think", "run", "report"],
            };
        }
        let mut stop = "end_turn".to_owned();
        for deed in deeds {
            let (deed, more) = deed.split_once('=').unwrap_or((deed, ""));
            let more = more.replace('_', " ");
            match deed {
                "think" => self.session.chunks("agent_thought_chunk", "Let me look first. ")?,
                "plan" => self.plan()?,
                "say" => self.session.said(&more)?,
                "run" => self.run(true)?,
                "begin" => self.run(false)?,
                "edit" => self.edit(&more)?,
                "ask" => self.ask().await?,
                "report" => self.report(role.unwrap_or("Solver")).await?,
                "cost" => self.session.tell(usage(&more))?,
                "state" => {
                    let state = self.player.state();
                    let state = format!("mode {}, model {}, {} servers", state.mode, state.model, state.servers.len());
                    self.session.said(&state)?;
                }
                "reach" => self.reach().await?,
                "hang" | "deaf" => {
                    let cancel = self.player.state().cancel.clone();
                    cancel.cancelled().await;
                    if deed == "deaf" {
                        std::future::pending::<()>().await;
                    }
                    stop = "cancelled".to_owned();
                }
                "exit" => {
                    // An answer to anything means that what was told before has arrived.
                    let barrier = UntypedMessage::new("_vendor/barrier", json!({}))?;
                    let _ = self.session.connection.send_request(barrier).block_task().await;
                    self.player.exit.cancel();
                    std::future::pending::<()>().await;
                }
                "fail" => return Err(Error::new(-32603, "Internal error").data(json!({"details": more}))),
                "stop" => stop = more.replace(' ', "_"),
                "flood" => self.flood(more.parse().unwrap_or(1))?,
                other => return Err(Error::invalid_params().data(format!("no such word: {other}"))),
            }
        }
        let usage = json!({"totalTokens": 160, "inputTokens": 100, "outputTokens": 50, "thoughtTokens": 10});
        Ok(json!({"stopReason": stop, "usage": usage}))
    }

    fn plan(&self) -> Result<(), Error> {
        let step = |text: &str, status: &str| json!({"content": text, "priority": "high", "status": status});
        let entries = [step("look", "completed"), step("write", "in_progress"), step("check", "pending")];
        self.session.tell(json!({"sessionUpdate": "plan", "entries": entries}))
    }

    /// A call named first, then filled in, then perhaps ended.
    fn run(&self, ends: bool) -> Result<(), Error> {
        let (id, title) = ("c-1", "Run ls");
        self.session
            .tell(json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": "execute"}))?;
        let begun = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress",
                           "rawInput": {"command": "ls"}});
        self.session.tell(begun)?;
        if !ends {
            return Ok(());
        }
        let content = json!([{"type": "content", "content": {"type": "text", "text": "a\nb"}}]);
        self.session.tell(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "content": content}),
        )
    }

    fn edit(&self, what: &str) -> Result<(), Error> {
        let (name, text) = what.split_once(':').unwrap_or((what, ""));
        let path = self.player.state().cwd.join(name);
        let old = std::fs::read_to_string(&path).ok();
        let new = format!("{text}\n");
        std::fs::write(&path, &new).map_err(Error::into_internal_error)?;
        let diff = json!([{"type": "diff", "path": path, "oldText": old, "newText": new}]);
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c-2", "title": format!("Edit {name}"),
                          "kind": "edit", "status": "completed", "content": diff});
        self.session.tell(call)
    }

    async fn ask(&self) -> Result<(), Error> {
        let fields = ToolCallUpdateFields::new().title("Remove everything").raw_input(json!({"command": "rm -rf ."}));
        let fields = fields.kind(ToolKind::Execute);
        let options = vec![
            PermissionOption::new("yes!", "Yes", PermissionOptionKind::AllowOnce),
            PermissionOption::new("ever", "Always", PermissionOptionKind::AllowAlways),
            PermissionOption::new("nope", "No", PermissionOptionKind::RejectOnce),
        ];
        let call = ToolCallUpdate::new("c-3", fields);
        let request = RequestPermissionRequest::new(self.session.id.clone(), call, options);
        let answer = self.session.connection.send_request(request).block_task().await?;
        let outcome = match answer.outcome {
            RequestPermissionOutcome::Selected(selected) => selected.option_id.to_string(),
            _ => "cancelled".to_owned(),
        };
        self.session.said(&format!("The answer is {outcome}."))
    }

    /// Asks the client for what it does not have.
    async fn reach(&self) -> Result<(), Error> {
        let mut codes = Vec::new();
        for method in ["fs/read_text_file", "terminal/create", "_vendor/thing"] {
            let request = UntypedMessage::new(method, json!({"sessionId": self.session.id, "path": "/etc/passwd"}))?;
            let answer = self.session.connection.send_request(request).block_task().await;
            codes.push(answer.map_or_else(|e| e.code.value().to_string(), |value| value.to_string()));
        }
        self.session.said(&codes.join(" "))
    }

    fn flood(&self, count: usize) -> Result<(), Error> {
        for number in 0..count {
            let id = format!("f-{number}");
            self.session
                .tell(json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "x", "status": "in_progress"}))?;
        }
        Ok(())
    }

    async fn report(&self, role: &str) -> Result<(), Error> {
        let report = match role {
            "Scout" => json!({"plan": ["write the file that the criterion wants"]}),
            "Skeptic" => json!({"status": "PASS", "succeeded": [], "failed": [], "judged": [], "open_questions": []}),
            _ => json!({"intent": "meet the criterion", "actions": ["wrote the file"], "files_touched": ["done.txt"]}),
        };
        let servers = self.player.state().servers.clone();
        let server = servers.into_iter().find_map(|server| match server {
            McpServer::Stdio(server) => Some(server),
            _ => None,
        });
        match server {
            Some(server) => {
                let said = super::mcp_client::submit(&server, &report).await.map_err(Error::into_internal_error)?;
                self.session.said(&format!("I handed it in: {said}"))
            }
            None => self.session.said(&format!("That is all.\n```json\n{report}\n```\n")),
        }
    }
}
