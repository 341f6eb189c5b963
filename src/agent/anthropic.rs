//! The Messages API over HTTP: one attempt of one call.
//!
//! Role: build the client, send the request, watch for silence, turn what comes back into a
//! [`Reply`] or a [`CallError`].
//! Not its role: retrying, waiting, remembering anything between calls.
//!
//! Invariants: the key is in one header and nowhere else (no Debug, no error, no redirect);
//! a wait for bytes never exceeds the idle limit; every buffer is bounded.

use super::cassette::{Recorded, Recorder, Take};
use super::envelope;
use super::error::{CallError, text};
use super::headers;
use super::message::{Backend, Delta, Reply, Request};
use super::stream::StreamReader;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use std::error::Error as _;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Largest request body the API takes.
pub const MAX_REQUEST_BYTES: usize = 32 * 1024 * 1024;
/// How much of an error answer is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

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
        }
    }
}

impl fmt::Debug for AnthropicConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL may hold a user and a password too.
        let host = Url::parse(&self.base_url).map(|url| url.origin().ascii_serialization());
        f.debug_struct("AnthropicConfig")
            .field("base_url", &host.unwrap_or_else(|_| "(not a URL)".to_owned()))
            .field("api_key", &self.api_key.as_ref().map(|_| "(set)"))
            .field("auth", &self.auth)
            .field("version", &self.version)
            .field("idle_timeout", &self.idle_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

/// The client.
pub struct Anthropic {
    client: Client,
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
        // Fails only when a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("nightloop/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(config.connect_timeout)
            .tcp_keepalive(Duration::from_secs(30))
            // A redirect could carry the key and the conversation to another host.
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|e| CallError::Config(text(&chain(&e))))?;
        Ok(Anthropic { client, url, headers, config })
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
        let mut call = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body);
        if let Some(beta) = request.thinking.as_ref().and_then(|thinking| thinking.beta()) {
            call = call.header("anthropic-beta", beta);
        }
        let response = self.in_time(call.send()).await?.map_err(connect_error)?;
        let response = Recorded::new(response, take);
        if !response.status().is_success() {
            return Err(self.error_answer(response).await);
        }
        if !is_event_stream(response.headers()) {
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
        let mut reader = StreamReader::new();
        loop {
            match self.in_time(response.chunk()).await? {
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

    async fn error_answer(&self, response: Recorded) -> CallError {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = envelope::read(&self.start_of(response).await);
        CallError::Http {
            status,
            kind: body.kind.unwrap_or_else(|| envelope::default_kind(status).to_owned()),
            code: body.code,
            message: body.message,
            retry_after: headers::retry_after(&headers, jiff::Timestamp::now()),
            should_retry: headers::should_retry(&headers),
            request_id: headers::request_id(&headers),
        }
    }

    /// Status 200 without a stream: a portal's page, or a gateway's error object.
    async fn strange_answer(&self, response: Recorded) -> CallError {
        let body = envelope::read(&self.start_of(response).await);
        match body.kind {
            Some(kind) if kind.ends_with("_error") => CallError::StreamError { kind, message: body.message },
            _ => CallError::BadReply(text(&format!("no event stream: {}", body.message))),
        }
    }

    /// The first bytes of an answer; what cannot be read is left out.
    async fn start_of(&self, mut response: Recorded) -> Vec<u8> {
        let mut body = Vec::new();
        while let Ok(Ok(Some(bytes))) = self.in_time(response.chunk()).await {
            let room = MAX_ERROR_BYTES - body.len();
            body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if body.len() == MAX_ERROR_BYTES {
                break;
            }
        }
        body
    }

    async fn in_time<T>(&self, future: impl Future<Output = T>) -> Result<T, CallError> {
        let limit = self.config.idle_timeout;
        tokio::time::timeout(limit, future).await.map_err(|_| CallError::Idle(limit))
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
}

fn endpoint(base: &str) -> Result<Url, CallError> {
    let not_a_url = |e| CallError::Config(format!("base_url is not a URL: {e}"));
    let given = Url::parse(base.trim()).map_err(not_a_url)?;
    if !matches!(given.scheme(), "http" | "https") || !given.has_host() {
        return Err(CallError::Config("base_url must begin with https:// or http://".to_owned()));
    }
    let base = base.trim().trim_end_matches('/');
    let base = base.strip_suffix("/v1").unwrap_or(base);
    Url::parse(&format!("{base}/v1/messages")).map_err(not_a_url)
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
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| CallError::Config("the API key has characters that no header can hold".to_owned()))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// No content type at all is read as a stream: gateways forget it.
fn is_event_stream(headers: &HeaderMap) -> bool {
    match headers.get("content-type").map(HeaderValue::to_str) {
        None => true,
        Some(Ok(kind)) => kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"),
        Some(Err(_)) => false,
    }
}

fn connect_error(error: reqwest::Error) -> CallError {
    let error = error.without_url();
    match certificate_fault(&error) {
        Some(fault) => CallError::Tls(text(&fault)),
        None => CallError::Connect(text(&chain(&error))),
    }
}

/// The certificate error at the bottom of `error`, if that is what it is. Other TLS faults (a
/// reset during the handshake) may pass by themselves.
fn certificate_fault(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        let fault = match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            // `source()` of such an error steps over what it holds.
            Some(held) => match certificate_fault(held) {
                Some(found) => return Some(found),
                None => held.downcast_ref::<rustls::Error>(),
            },
            None => error.downcast_ref::<rustls::Error>(),
        };
        if let Some(fault @ (rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)) = fault {
            return Some(fault.to_string());
        }
        next = error.source();
    }
    None
}

/// An error with its causes, outermost first, each named once.
fn chain(error: &reqwest::Error) -> String {
    let mut out = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !out.ends_with(&words) {
            out.push_str(": ");
            out.push_str(&words);
        }
        next = cause.source();
    }
    out
}

#[cfg(test)]
mod tests;
