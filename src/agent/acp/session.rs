//! From hello to a session that is ready for its prompt.
//!
//! Role: initialize, a new session or one that goes on, its mode and its model.
//! Not its role: the prompt. Invariant: a mode or model that cannot be set is told, and is no reason to stop:
//! the sandbox holds, whatever a program calls its modes.

use std::sync::Mutex;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AuthMethod, ClientCapabilities, ClientSessionCapabilities, CompactionCapabilities, EnvVariable, Implementation,
    InitializeRequest, InitializeResponse, LoadSessionRequest, McpServer, McpServerStdio, NewSessionRequest,
    NoticeCapabilities, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelectOptions, SessionModeState,
};
use agent_client_protocol::{Agent, Error, ErrorCode, UntypedMessage};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::error::{CallError, ProgramFault, text, token};
use super::super::program::Task;
use super::hearing::Hearing;
use super::{fault, locked, within};

/// A session's name longer than this is not one we keep.
const MAX_SESSION_BYTES: usize = 1_000;
/// Ways to sign in that are named.
const MAX_WAYS: usize = 8;
/// What programs call a mode that changes nothing, best first; blanks, dashes and case do not matter.
const READ_ONLY_MODES: [&str; 2] = ["readonly", "plan"];
/// What they call a mode that asks nobody, for a program that our sandbox holds.
const UNASKED_MODES: [&str; 6] = ["bypasspermissions", "yolo", "fullaccess", "agentfullaccess", "build", "dontask"];

/// A session that is ready.
#[derive(Debug)]
pub(super) struct Opened {
    pub id: String,
    pub model: Option<String>,
    /// Does it know what was said before?
    pub goes_on: bool,
    /// The ways to sign in that the program names.
    pub sign_in: Vec<String>,
}

pub(super) async fn open(
    connection: &ConnectionTo<Agent>,
    task: &Task,
    hearing: &Mutex<Hearing<'_>>,
) -> Result<Opened, CallError> {
    let agent = hello(connection).await?;
    let sign_in = ways_to_sign_in(&agent.auth_methods);
    let (id, offered, goes_on) = match resumed(connection, task, &agent, &sign_in, hearing).await? {
        Some((id, offered)) => (id, offered, true),
        None => {
            let request = NewSessionRequest::new(&task.workspace).mcp_servers(servers(task));
            let what = "a session was opened";
            let answer = ask(connection, "session/new", json!(request), what).await?;
            let answer = answer.map_err(|e| fault::of(&e, what, &sign_in))?;
            let id = answer.get("sessionId").and_then(Value::as_str).unwrap_or_default().to_owned();
            if id.is_empty() || id.len() > MAX_SESSION_BYTES {
                return Err(fault::program(ProgramFault::NotStarted, "it gave its session no usable name"));
            }
            (id, Offered::of(&answer), false)
        }
    };
    let setting = Setting { connection, id: &id, hearing };
    if task.caged {
        setting.mode(&offered, &UNASKED_MODES, None).await?;
    } else if task.read_only {
        let note = "it offers no read-only mode, and no sandbox keeps it from writing";
        setting.mode(&offered, &READ_ONLY_MODES, Some(note)).await?;
    }
    let model = setting.model(&offered, task.model.as_deref()).await?;
    Ok(Opened { id, model, goes_on, sign_in })
}

async fn hello(connection: &ConnectionTo<Agent>) -> Result<InitializeResponse, CallError> {
    let notices = ClientSessionCapabilities::new()
        .compaction(CompactionCapabilities::default())
        .notices(NoticeCapabilities::default());
    let request = InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(ClientCapabilities::new().session(notices))
        .client_info(Implementation::new("nightloop", env!("CARGO_PKG_VERSION")));
    let what = "it started";
    let answer = within(what, connection.send_request(request).block_task()).await?;
    answer.map_err(|error| match fault::of(&error, what, &[]) {
        // It answered, but not as an agent of this protocol's version does.
        CallError::Program { fault: ProgramFault::Crash, message, .. } => {
            let words = format!("it does not speak version 1 of the Agent Client Protocol: {message}");
            fault::program(ProgramFault::NotStarted, &words)
        }
        other => other,
    })
}

fn ways_to_sign_in(methods: &[AuthMethod]) -> Vec<String> {
    let name = |method: &AuthMethod| match method {
        AuthMethod::Agent(method) => token(&method.name),
        AuthMethod::Terminal(method) => token(&method.name),
        // The enum may grow.
        _ => "another way".to_owned(),
    };
    methods.iter().take(MAX_WAYS).map(name).collect()
}

/// Our tools, as a server that the program starts.
fn servers(task: &Task) -> Vec<McpServer> {
    let server = task.offer.as_ref().and_then(|offer| {
        let (command, args) = offer.argv.split_first()?;
        let env = offer.env.iter().map(|(name, value)| EnvVariable::new(name, value)).collect();
        Some(McpServer::Stdio(McpServerStdio::new(&offer.name, command).args(args.to_vec()).env(env)))
    });
    server.into_iter().collect()
}

/// The session that is to go on, if the program can and still has it.
async fn resumed(
    connection: &ConnectionTo<Agent>,
    task: &Task,
    agent: &InitializeResponse,
    sign_in: &[String],
    hearing: &Mutex<Hearing<'_>>,
) -> Result<Option<(String, Offered)>, CallError> {
    let Some(id) = &task.session else { return Ok(None) };
    let can = &agent.agent_capabilities;
    // Both take the same; `resume` only tells nothing of what was.
    let method = match (can.load_session, &can.session_capabilities.resume) {
        (true, _) => "session/load",
        (false, Some(_)) => "session/resume",
        (false, None) => {
            locked(hearing).note("it cannot go on in an earlier session; a new one was begun");
            return Ok(None);
        }
    };
    let request = LoadSessionRequest::new(id.clone(), &task.workspace).mcp_servers(servers(task));
    let what = "its session was loaded";
    match ask(connection, method, json!(request), what).await? {
        Ok(answer) => Ok(Some((id.clone(), Offered::of(&answer)))),
        Err(error) if error.code == ErrorCode::AUTH_REQUIRED => Err(fault::of(&error, what, sign_in)),
        Err(error) => {
            locked(hearing)
                .note(&format!("its earlier session is lost, a new one was begun: {}", text(&error.message)));
            Ok(None)
        }
    }
}

/// A request of which we read the answer ourselves: programs add to it, and leave out.
async fn ask(
    connection: &ConnectionTo<Agent>,
    method: &str,
    params: Value,
    what: &str,
) -> Result<Result<Value, Error>, CallError> {
    match UntypedMessage::new(method, params) {
        Ok(request) => within(what, connection.send_request(request).block_task()).await,
        Err(error) => Ok(Err(error)),
    }
}

/// What a session lets us choose.
#[derive(Debug, Default)]
struct Offered {
    modes: Option<SessionModeState>,
    options: Vec<SessionConfigOption>,
    /// Models as programs offered them before there were options.
    models: Option<Value>,
}

impl Offered {
    fn of(answer: &Value) -> Self {
        Self {
            modes: part(answer, "modes"),
            options: part(answer, "configOptions").unwrap_or_default(),
            models: part(answer, "models"),
        }
    }

    /// The option of a category.
    fn option(&self, category: &SessionConfigOptionCategory) -> Option<Choice> {
        let option = self.options.iter().find(|option| option.category.as_ref() == Some(category))?;
        let SessionConfigKind::Select(select) = &option.kind else { return None };
        let values = match &select.options {
            SessionConfigSelectOptions::Ungrouped(values) => values.iter().collect::<Vec<_>>(),
            SessionConfigSelectOptions::Grouped(groups) => groups.iter().flat_map(|group| &group.options).collect(),
            // The enum may grow.
            _ => Vec::new(),
        };
        let values = values.into_iter().map(|value| (value.value.to_string(), value.name.clone())).collect();
        Some(Choice { id: option.id.to_string(), current: select.current_value.to_string(), values })
    }
}

/// An option to choose a value of.
struct Choice {
    id: String,
    current: String,
    /// The values there are, with their names.
    values: Vec<(String, String)>,
}

fn part<T: DeserializeOwned>(answer: &Value, name: &str) -> Option<T> {
    serde_json::from_value(answer.get(name)?.clone()).ok()
}

/// The value that goes by one of these names, best name first.
fn named(values: &[(String, String)], wanted: &[&str]) -> Option<String> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let is = |value: &(String, String), want: &str| plain(&value.0) == plain(want) || plain(&value.1) == plain(want);
    wanted.iter().find_map(|want| values.iter().find(|value| is(value, want))).map(|value| value.0.clone())
}

/// Chooses among what a session offers.
struct Setting<'a, 'b> {
    connection: &'a ConnectionTo<Agent>,
    id: &'a str,
    hearing: &'a Mutex<Hearing<'b>>,
}

impl Setting<'_, '_> {
    /// Chooses the first of these modes that there is; `missing` is noted where there is none.
    async fn mode(&self, offered: &Offered, wanted: &[&str], missing: Option<&str>) -> Result<(), CallError> {
        if let Some(choice) = offered.option(&SessionConfigOptionCategory::Mode)
            && let Some(mode) = named(&choice.values, wanted)
        {
            return if mode == choice.current { Ok(()) } else { self.option(&choice.id, &mode).await.map(|_| ()) };
        }
        let modes = offered.modes.as_ref();
        let values: Vec<_> = modes.map_or_else(Vec::new, |modes| {
            modes.available_modes.iter().map(|mode| (mode.id.to_string(), mode.name.clone())).collect()
        });
        match named(&values, wanted) {
            Some(mode) if modes.is_some_and(|modes| modes.current_mode_id.to_string() == mode) => Ok(()),
            Some(mode) => self.set("session/set_mode", json!({"modeId": mode})).await.map(|_| ()),
            None => {
                missing.into_iter().for_each(|note| locked(self.hearing).note(note));
                Ok(())
            }
        }
    }

    /// The model that the session runs with, as far as it is known.
    async fn model(&self, offered: &Offered, wanted: Option<&str>) -> Result<Option<String>, CallError> {
        let by_option = offered.option(&SessionConfigOptionCategory::Model);
        let (current, values) = match (&by_option, &offered.models) {
            (Some(choice), _) => (Some(choice.current.clone()), choice.values.clone()),
            (None, Some(models)) => earlier_models(models),
            (None, None) => (None, Vec::new()),
        };
        let Some(wanted) = wanted.filter(|wanted| Some(*wanted) != current.as_deref()) else { return Ok(current) };
        let Some(model) = named(&values, &[wanted]) else {
            locked(self.hearing).note(&format!("it does not offer the model {}", token(wanted)));
            return Ok(current);
        };
        let set = match by_option {
            Some(choice) => self.option(&choice.id, &model).await?,
            None => self.set("session/set_model", json!({"modelId": model})).await?,
        };
        Ok(if set { Some(model) } else { current })
    }

    async fn option(&self, option: &str, value: &str) -> Result<bool, CallError> {
        self.set("session/set_config_option", json!({"configId": option, "value": value})).await
    }

    /// Was it set? An error of the program is told; the end of the conversation is ours to return.
    async fn set(&self, method: &str, mut params: Value) -> Result<bool, CallError> {
        params["sessionId"] = self.id.into();
        match ask(self.connection, method, params, "it was set up").await? {
            Ok(_) => Ok(true),
            Err(error) => {
                locked(self.hearing).note(&format!("{method} failed: {}", text(&error.message)));
                Ok(false)
            }
        }
    }
}

fn earlier_models(models: &Value) -> (Option<String>, Vec<(String, String)>) {
    let field = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let available = models.get("availableModels").and_then(Value::as_array);
    let values = available.map_or_else(Vec::new, |available| {
        available.iter().map(|model| (field(model, "modelId"), field(model, "name"))).collect()
    });
    (models.get("currentModelId").and_then(Value::as_str).map(str::to_owned), values)
}
