//! The request of an open call, from the journal and its blobs alone.
//!
//! Role: put messages, system and tools together, so that a resumed conversation sends the same bytes again; the
//! tools of a role. Not its role: sending, budgets, what the replies mean.
//! Invariant: whatever stands before the newest message is what was sent before, byte for byte.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::agent::Request;
use crate::journal::Blobs;
use crate::machine::call::CallState;
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::loop_file::WebDecl;
use crate::model::purpose::Purpose;
use crate::model::report;
use crate::tool::process::Access;
use crate::tool::registry;

use super::ask;
use super::error::EngineError;
use super::setup::Setup;

/// Searches and fetches per request when loop.yaml does not say.
const DEFAULT_WEB_USES: u32 = 5;
/// A model whose maximum nobody knows is not asked for more than this.
const MAX_RAISED_TOKENS: u32 = 128_000;

/// Messages of the open conversation, so that blobs are read once.
pub type Messages = HashMap<Digest, Arc<RawValue>>;

/// The request that an open call sends next.
pub fn request(call: &CallState, setup: &Setup, blobs: &Blobs, known: &mut Messages) -> Result<Request, EngineError> {
    let mut messages = Vec::with_capacity(call.messages.len());
    for digest in &call.messages {
        messages.push(message(digest, blobs, known)?);
    }
    let tools = String::from_utf8(blobs.get(&call.started.tools)?).unwrap_or_default();
    let dropping = setup.thinking.filter(|_| call.drop_blocks).and_then(|thinking| thinking.dropping());
    Ok(Request {
        model: call.started.model.clone(),
        max_tokens: if call.raised == 0 { setup.max_tokens } else { raised(setup) },
        system: String::from_utf8_lossy(&blobs.get(&call.started.system)?).into_owned(),
        tools: RawValue::from_string(tools).map_err(|e| EngineError::Internal(e.to_string()))?,
        messages,
        thinking: dropping.or(setup.thinking),
        effort: setup.effort.map(|effort| effort.name().to_owned()),
        cache: setup.cache,
    })
}

/// A reply that was cut gets all the room there is, once: only what is written is paid.
fn raised(setup: &Setup) -> u32 {
    let most = setup.max_output.unwrap_or_else(|| setup.max_tokens.saturating_mul(2).min(MAX_RAISED_TOKENS));
    most.max(setup.max_tokens)
}

fn message(digest: &Digest, blobs: &Blobs, known: &mut Messages) -> Result<Arc<RawValue>, EngineError> {
    if let Some(message) = known.get(digest) {
        return Ok(Arc::clone(message));
    }
    let text = String::from_utf8(blobs.get(digest)?).unwrap_or_default();
    let raw =
        RawValue::from_string(text).map_err(|e| EngineError::Internal(format!("message {}: {e}", digest.short())))?;
    let message: Arc<RawValue> = Arc::from(raw);
    known.insert(*digest, Arc::clone(&message));
    Ok(message)
}

/// The tools of a role, in a fixed order: they are part of the prefix that is sent again and again.
pub(super) fn tools_json(purpose: Purpose, web: Option<&WebDecl>, held: bool) -> String {
    let access = if purpose.role().may_write() { Access::ReadWrite } else { Access::ReadOnly };
    // Readers get a shell only where it cannot write.
    let mut tools: Vec<Value> = registry::catalogue(access, held)
        .into_iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}))
        .collect();
    if purpose.may_ask() {
        tools.push(ask::specification());
    }
    if let Some(web) = web {
        tools.extend(web_tools(web));
    }
    tools.extend(structured(purpose));
    Value::Array(tools).to_string()
}

/// Our tools for a program.
pub(super) fn program_tools(purpose: Purpose) -> Vec<Value> {
    let asking = purpose.may_ask().then(ask::specification);
    asking.into_iter().chain(structured(purpose)).collect()
}

/// The structured tools of a call.
pub(super) fn structured(purpose: Purpose) -> impl Iterator<Item = Value> {
    purpose.tools().iter().map(|tool| {
        json!({
            "name": tool.name(),
            "description": tool.description(),
            "input_schema": report::schema(*tool),
        })
    })
}

/// What the server looks up by itself. `direct`: the model calls it, not code that runs over there.
fn web_tools(web: &WebDecl) -> Vec<Value> {
    let wanted = [(web.search, "web_search", "web_search_20260318"), (web.fetch, "web_fetch", "web_fetch_20260318")];
    let tool = |name: &str, kind: &str| {
        let mut tool = json!({
            "type": kind,
            "name": name,
            "max_uses": web_uses(web),
            "allowed_callers": ["direct"],
        });
        for (key, domains) in [("allowed_domains", &web.allowed_domains), ("blocked_domains", &web.blocked_domains)] {
            if !domains.is_empty() {
                tool[key] = json!(domains);
            }
        }
        tool
    };
    wanted.into_iter().filter(|(wanted, ..)| *wanted).map(|(_, name, kind)| tool(name, kind)).collect()
}

fn web_uses(web: &WebDecl) -> u32 {
    web.max_uses.unwrap_or(DEFAULT_WEB_USES)
}

/// Searches that one request of this role may cost.
pub(super) fn searches(role: Role, setup: &Setup) -> u32 {
    setup.web_for(role).filter(|web| web.search).map_or(0, web_uses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::CacheTtl;
    use crate::agent::Thinking;

    /// Whatever a call is for, its first request is one that the vendor's types describe.
    #[test]
    fn the_request_of_every_purpose_fits_the_schema() {
        let schema = include_str!("../../tests/fixtures/messages-request.schema.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        let schema = jsonschema::validator_for(&schema).unwrap();
        let web = WebDecl {
            search: true,
            fetch: true,
            max_uses: Some(3),
            allowed_domains: vec!["example.org".into()],
            blocked_domains: Vec::new(),
        };
        let setup = Setup { web: Some(web), ..Setup::default() };
        let mut with_web = 0;
        for (purpose, held) in Purpose::ALL.into_iter().flat_map(|purpose| [(purpose, true), (purpose, false)]) {
            let web = setup.web_for(purpose.role());
            with_web += usize::from(web.is_some());
            let request = Request {
                model: "claude-opus-5-5".into(),
                max_tokens: 1_000,
                system: "You are one of them.".into(),
                tools: RawValue::from_string(tools_json(purpose, web, held)).unwrap(),
                messages: vec![Arc::from(
                    RawValue::from_string(json!({"role": "user", "content": "Go."}).to_string()).unwrap(),
                )],
                thinking: Some(Thinking::summarized()),
                effort: Some("high".into()),
                cache: CacheTtl::declared(None),
            };
            let body: Value = serde_json::from_slice(&request.body()).unwrap();
            let faults: Vec<String> =
                schema.iter_errors(&body).map(|e| format!("{}: {e}", e.instance_path())).collect();
            assert!(faults.is_empty(), "{purpose}: {faults:#?}");
            let names: Vec<&str> =
                body["tools"].as_array().unwrap().iter().filter_map(|t| t["name"].as_str()).collect();
            let mut once = names.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), names.len(), "{purpose}: two tools of one name in {names:?}");
            if let Some(closing) = purpose.closing() {
                assert!(names.contains(&closing.name()), "{purpose}: {names:?}");
            }
        }
        assert!(with_web > 0, "the schema saw no web tool");
    }
}
