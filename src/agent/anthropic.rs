//! The Messages API over HTTP: one attempt of one call.
//!
//! Role: send the request with its headers, turn what comes back into a [`Reply`] or a [`CallError`].
//! Not its role: the connection (`super::http`), retrying, waiting, remembering anything between calls.
//!
//! Invariants: the key is in one header and nowhere else (no Debug, no error, no redirect);
//! a wait for bytes never exceeds the idle limit; every buffer is bounded.

use super::cassette::{Recorded, Recorder, Take};
use super::envelope;
use super::error::{CallError, text};
use super::headers;
use super::http::{self, HttpClient};
use super::message::{Backend, Delta, ModelLimits, Pending, Reply, Request};
use super::stream::StreamReader;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A question beside the conversation (a model's limits, a count) must not hold it up.
const ASIDE_LIMIT: Duration = Duration::from_secs(3);
/// Largest request body the API takes.
pub const MAX_REQUEST_BYTES: usize = 32 * 1024 * 1024;

/// Settings of the client.
#[derive(Clone)]
pub struct AnthropicConfig {
    /// With or without a trailing `/v1`.
    pub base_url: String,
    /// Without a key no credential is sent.
    pub api_key: Option<String>,
    pub auth: AuthStyle,
    /// The `anthropic-version` header.
    pub version: String,
    /// Longest silence, before and within the answer.
    pub idle_timeout: Duration,
    pub connect_timeout: Duration,
    /// Keeps what the server sends.
    pub recorder: Option<Arc<dyn Recorder>>,
    /// Certificates to trust besides the system's, as PEM.
    pub ca_pem: Option<Vec<u8>>,
}

/// Which header carries the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthStyle {
    #[default]
    Bearer,
    XApiKey,
}

impl Default for AnthropicConfig {
    fn default() -> Self {
        AnthropicConfig {
            base_url: "https://api.anthropic.com".to_owned(),
            api_key: None,
            auth: AuthStyle::Bearer,
            version: "2026-10-21".to_owned(),
            idle_timeout: Duration::from_secs(180),
            connect_timeout: Duration::from_secs(5),
            recorder: None,
            ca_pem: None,
        }
    }
}

impl fmt::Debug for AnthropicConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicConfig")
            .field("base_url", &http::shown_base(&self.base_url))
            .field("api_key", &self.api_key.as_ref().map(|_| "(set)"))
            .field("auth", &self.auth)
            .field("version", &self.version)
            .field("idle_timeout", &self.idle_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("ca_pem", &self.ca_pem.is_some())
            .finish()
    }
}

/// The client.
pub struct Anthropic {
    http: HttpClient,
    url: Url,
    headers: HeaderMap,
    config: AnthropicConfig,
}

impl fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Anthropic").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Anthropic {
    pub fn new(config: AnthropicConfig) -> Result<Self, CallError> {
        let url = endpoint(&config.base_url)?;
        let headers = fixed_headers(&config)?;
        let ca = config.ca_pem.as_deref();
        let http = HttpClient::new(&url, config.connect_timeout, config.idle_timeout, ca)?;
        Ok(Anthropic { http, url, headers, config })
    }

    async fn attempt(
        &self,
        request: &Request,
        on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<Reply, CallError> {
        let body = request.body();
        if body.len() > MAX_REQUEST_BYTES {
            let size = body.len();
            return Err(CallError::TooLarge(format!("the request has {size} bytes, the limit is {MAX_REQUEST_BYTES}")));
        }
        let take = Take::begin(self.config.recorder.as_ref(), &body);
        let mut call = self.http.post(&self.url).headers(self.headers.clone()).body(body);
        if let Some(beta) = request.thinking.as_ref().and_then(|thinking| thinking.beta()) {
            call = call.header("anthropic-beta", beta);
        }
        let response = self.http.send(call, take).await?;
        if !http::is_event_stream(response.headers()) {
            return Err(self.strange_answer(response).await);
        }
        self.read_stream(response, on_delta).await
    }

    async fn read_stream(
        &self,
        mut response: Recorded,
        on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<Reply, CallError> {
        let request_id = headers::request_id(response.headers());
        let limits = headers::rate_limits(response.headers());
        on_delta(Delta::Limits(&limits));
        let mut reader = StreamReader::new();
        loop {
            match self.http.in_time(response.chunk()).await? {
                Ok(Some(bytes)) => {
                    if reader.push(&bytes, on_delta)? {
                        response.finished();
                        break;
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    return Err(CallError::StreamCut { after_bytes: reader.bytes() });
                }
            }
        }
        let whole = reader.finish()?;
        Ok(Reply {
            message: whole.message,
            blocks: whole.blocks,
            stop: whole.stop,
            stop_details: whole.stop_details,
            usage: whole.usage,
            request_id,
            limits,
        })
    }

    /// A small JSON answer to a question aside, in time or not at all.
    async fn aside(&self, call: reqwest::RequestBuilder) -> Option<serde_json::Value> {
        let answer = async {
            let response = self.http.send(call.headers(self.headers.clone()), Take::begin(None, &[])).await.ok()?;
            serde_json::from_slice(&self.http.start_of(response).await).ok()
        };
        tokio::time::timeout(ASIDE_LIMIT, answer).await.ok()?
    }

    async fn count(&self, request: &Request) -> Option<u64> {
        let url = http::base_url(&format!("{}/count_tokens", self.url)).ok()?;
        let mut call = self.http.post(&url).body(request.count_body());
        if let Some(beta) = request.thinking.as_ref().and_then(|thinking| thinking.beta()) {
            call = call.header("anthropic-beta", beta);
        }
        self.aside(call).await?["input_tokens"].as_u64()
    }

    async fn limits(&self, model: &str) -> Option<ModelLimits> {
        let mut url = self.url.clone();
        // `/v1/messages` becomes `/v1/models/…`; the name is a path segment, whatever it holds.
        url.path_segments_mut().ok()?.pop().extend(["models", model]);
        let facts = self.aside(self.http.get(&url)).await?;
        let limits = ModelLimits {
            max_input_tokens: facts["max_input_tokens"].as_u64().filter(|tokens| *tokens > 0),
            max_tokens: facts["max_tokens"].as_u64().and_then(|n| u32::try_from(n).ok()).filter(|tokens| *tokens > 0),
        };
        (limits != ModelLimits::default()).then_some(limits)
    }

    /// Status 200 without a stream: a portal's page, or a gateway's error object.
    async fn strange_answer(&self, response: Recorded) -> CallError {
        let body = envelope::read(&self.http.start_of(response).await);
        match body.kind {
            Some(kind) if kind.ends_with("_error") => CallError::StreamError { kind, message: body.message },
            _ => CallError::BadReply(text(&format!("no event stream: {}", body.message))),
        }
    }
}

impl Backend for Anthropic {
    fn complete<'a>(
        &'a self,
        request: &'a Request,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Pin<Box<dyn Future<Output = Result<Reply, CallError>> + Send + 'a>> {
        Box::pin(self.attempt(request, on_delta))
    }

    fn count_tokens<'a>(&'a self, request: &'a Request) -> Pending<'a, Option<u64>> {
        Box::pin(self.count(request))
    }

    fn model_limits<'a>(&'a self, model: &'a str) -> Pending<'a, Option<ModelLimits>> {
        Box::pin(self.limits(model))
    }
}

fn endpoint(base: &str) -> Result<Url, CallError> {
    http::base_url(base)?;
    let base = base.trim().trim_end_matches('/');
    let base = base.strip_suffix("/v1").unwrap_or(base);
    http::base_url(&format!("{base}/v1/messages"))
}

fn fixed_headers(config: &AnthropicConfig) -> Result<HeaderMap, CallError> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("accept", HeaderValue::from_static("text/event-stream"));
    let version = HeaderValue::from_str(&config.version)
        .map_err(|_| CallError::Config("the API version has characters that no header can hold".to_owned()))?;
    headers.insert("anthropic-version", version);
    if let Some(key) = &config.api_key {
        let key = key.trim();
        let (name, value) = match config.auth {
            AuthStyle::Bearer => (HeaderName::from_static("authorization"), format!("Bearer {key}")),
            AuthStyle::XApiKey => (HeaderName::from_static("x-api-key"), key.to_owned()),
        };
        headers.insert(name, http::secret_header(&value)?);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests;
