//! `nightloop mcp`: an MCP server on standard input and output, started by an agent program during its turn.
//!
//! It has no tools of its own: it offers those of the one call whose socket and token are in its environment,
//! and passes every call on to the engine. Not its role: judging or running anything.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};

use crate::agent::error::text;
use crate::engine::error::EngineError;
use crate::engine::host;
use crate::engine::offer::client::Caller;
use crate::engine::offer::wire::ToolSpecJson;
use crate::engine::offer::{SERVER_NAME, SOCKET_VAR, TOKEN_VAR};

pub fn main() -> super::Outcome {
    let socket = PathBuf::from(variable(SOCKET_VAR)?);
    let token = variable(TOKEN_VAR)?;
    let runtime = host::runtime()?;
    let served = runtime.block_on(serve(&socket, &token));
    // A read of standard input that is still under way must not hold the end up.
    runtime.shutdown_background();
    served.map(|()| 0)
}

fn variable(name: &str) -> Result<String, EngineError> {
    std::env::var(name).ok().filter(|value| !value.is_empty()).ok_or_else(|| {
        EngineError::usage(
            format!("{name} is not set: there are no tools to offer"),
            "`nightloop mcp` is started by an agent program during its turn; the engine gives it what it needs",
        )
    })
}

async fn serve(socket: &Path, token: &str) -> Result<(), EngineError> {
    let (caller, tools) = Caller::connect(socket, token).await?;
    let tools = tools.into_iter().map(listed).collect::<Result<Vec<_>, _>>()?;
    let (stdin, stdout) = rmcp::transport::stdio();
    let desk = Desk { tools, caller };
    match desk.serve((stdin, stdout)).await {
        Ok(running) => running
            .waiting()
            .await
            .map(|_| ())
            .map_err(|e| EngineError::Internal(format!("the MCP server failed: {e}"))),
        // Started and not used is no error.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(e) => Err(EngineError::usage(
            format!("standard input is not MCP: {}", text(&e.to_string())),
            "`nightloop mcp` is started by an agent program, not by hand",
        )),
    }
}

fn listed(tool: ToolSpecJson) -> Result<Tool, EngineError> {
    match tool.input_schema {
        // They hand in words and change no file: programs refuse others to roles that only read.
        serde_json::Value::Object(schema) => {
            let harmless = ToolAnnotations::from_raw(None, Some(true), Some(false), None, Some(false));
            Ok(Tool::new(tool.name, tool.description, Arc::new(schema)).with_annotations(harmless))
        }
        _ => Err(EngineError::Internal(format!("the schema of {} is not an object", text(&tool.name)))),
    }
}

/// Passes on what MCP asks.
struct Desk {
    tools: Vec<Tool>,
    caller: Caller,
}

impl ServerHandler for Desk {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let input = serde_json::Value::Object(request.arguments.unwrap_or_default());
        let answer = self.caller.call(request.name.into_owned(), input).await;
        let content = vec![ContentBlock::text(answer.text)];
        let result = if answer.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        Ok(result.into())
    }
}
