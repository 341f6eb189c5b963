//! Chat completions over HTTP: one attempt of one call, for every server that speaks this format.
//!
//! Role: send the translated request, turn what comes back into a [`Reply`] or a [`CallError`], and learn which of
//! two spellings a server wants.
//! Not its role: the connection (`super::http`), the translation (`translate`), reading a reply (`reader`),
//! retrying, waiting.
//!
//! Invariants: the key is in one header and nowhere else (no Debug, no error, no redirect); every buffer is bounded;
//! what is remembered between calls is only how the server wants to be asked.

mod collect;
mod fault;
mod reader;
mod translate;
mod wire;

#[cfg(test)]
mod samples;

use super::anthropic::MAX_REQUEST_BYTES;
use super::cassette::{Recorded, Take};
use super::envelope;
use super::error::{CallError, text};
use super::headers;
use super::http::{self, HttpClient};
use super::message::{Backend, Delta, Reply, Request};
use super::stream::{Assembled, MAX_REPLY_BYTES};
use collect::Asked;
use reader::Reader;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use translate::Dialect;
pub use translate::LimitField;

/// Settings of the client.
#[derive(Clone)]
pub struct OpenAiConfig {
    /// As the server's documentation gives it, usually with `/v1`; `/chat/completions` is appended.
    pub base_url: String,
    /// Without a key no credential is sent.
    pub api_key: Option<String>,
    /// The field that bounds a reply, to begin with.
    pub limit_field: LimitField,
    /// Longest silence, before and within the answer.
    pub idle_timeout: Duration,
    pub connect_timeout: Duration,
    /// Certificates to trust besides the system's, as PEM.
    pub ca_pem: Option<Vec<u8>>,
}

impl Default for OpenAiConfig {
    fn default() -> Self {
        OpenAiConfig {
            base_url: "https://api.openai.com/v1".to_owned(),
            api_key: None,
            limit_field: LimitField::default(),
            // A local model on a small machine thinks long about a long prompt before its first word.
            idle_timeout: Duration::from_secs(600),
            connect_timeout: Duration::from_secs(5),
            ca_pem: None,
        }
    }
}

impl fmt::Debug for OpenAiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiConfig")
            .field("base_url", &http::shown_base(&self.base_url))
            .field("api_key", &self.api_key.as_ref().map(|_| "(set)"))
            .field("limit_field", &self.limit_field)
            .field("idle_timeout", &self.idle_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

/// The client.
pub struct OpenAi {
    http: HttpClient,
    url: Url,
    headers: HeaderMap,
    config: OpenAiConfig,
    /// The server wants the other name of the limit.
    other_limit: AtomicBool,
    /// The server does not know `stream_options`.
    no_usage: AtomicBool,
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi").field("config", &self.config).finish_non_exhaustive()
    }
}

impl OpenAi {
    pub fn new(config: OpenAiConfig) -> Result<Self, CallError> {
        let url = endpoint(&config.base_url)?;
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("accept", HeaderValue::from_static("text/event-stream"));
        if let Some(key) = &config.api_key {
            headers.insert("authorization", http::secret_header(&format!("Bearer {}", key.trim()))?);
        }
        let http = HttpClient::new(&url, config.connect_timeout, config.idle_timeout, config.ca_pem.as_deref())?;
        Ok(OpenAi { http, url, headers, config, other_limit: AtomicBool::new(false), no_usage: AtomicBool::new(false) })
    }

    fn dialect(&self) -> Dialect {
        let first = self.config.limit_field;
        Dialect {
            limit: if self.other_limit.load(Ordering::Relaxed) { first.other() } else { first },
            ask_usage: !self.no_usage.load(Ordering::Relaxed),
        }
    }

    async fn attempt(
        &self,
        request: &Request,
        on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<Reply, CallError> {
        let (response, asked) = loop {
            let dialect = self.dialect();
            match self.send(request, dialect).await {
                // Asked again at once: the server refused the words, not the request.
                Err(error) if self.learn(&error, dialect) => {}
                outcome => break outcome?,
            }
        };
        let request_id = headers::request_id(response.headers());
        let limits = headers::x_rate_limits(response.headers(), jiff::Timestamp::now());
        on_delta(Delta::Limits(&limits));
        let Assembled { message, blocks, stop, stop_details, usage } = match kind_of(response.headers()) {
            Answer::Stream => self.read_stream(response, asked, on_delta).await?,
            Answer::Json => reader::whole(&self.read_whole(response).await?, asked, on_delta)?,
            Answer::Page => {
                let page = envelope::read(&self.http.start_of(response).await);
                return Err(CallError::BadReply(text(&format!("no event stream: {}", page.message))));
            }
        };
        Ok(Reply { message, blocks, stop, stop_details, usage, request_id, limits })
    }

    async fn send(&self, request: &Request, dialect: Dialect) -> Result<(Recorded, Asked), CallError> {
        let (body, ids) = translate::body(request, dialect)?;
        let bytes = body.len();
        if bytes > MAX_REQUEST_BYTES {
            return Err(CallError::TooLarge(format!(
                "the request has {bytes} bytes, the limit is {MAX_REQUEST_BYTES}"
            )));
        }
        // A cassette holds what the rehearsal server can say again, and that is the Messages API.
        let take = Take::begin(None, &[]);
        let call = self.http.post(&self.url).headers(self.headers.clone()).body(body);
        let response = self.http.send(call, take).await?;
        Ok((response, Asked { ids, bytes }))
    }

    /// Notes what a refusal says about how to ask. True when there is something new to try; that happens at most
    /// once per spelling in the life of the client, so a server that likes neither is not asked for ever.
    fn learn(&self, error: &CallError, tried: Dialect) -> bool {
        let CallError::Http { status: 400 | 422, message, .. } = error else { return false };
        if message.contains(tried.limit.other().name()) && tried.limit == self.config.limit_field {
            self.other_limit.store(true, Ordering::Relaxed);
            return true;
        }
        if message.contains("stream_options") && tried.ask_usage {
            self.no_usage.store(true, Ordering::Relaxed);
            return true;
        }
        false
    }

    async fn read_stream(
        &self,
        mut response: Recorded,
        asked: Asked,
        on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<Assembled, CallError> {
        let mut reader = Reader::new(asked);
        loop {
            match self.http.in_time(response.chunk()).await? {
                Ok(Some(bytes)) => {
                    if reader.push(&bytes, on_delta)? {
                        break;
                    }
                }
                Ok(None) => break,
                Err(_) => return Err(CallError::StreamCut { after_bytes: reader.bytes() }),
            }
        }
        reader.finish()
    }

    async fn read_whole(&self, mut response: Recorded) -> Result<Vec<u8>, CallError> {
        let mut body = Vec::new();
        loop {
            match self.http.in_time(response.chunk()).await? {
                Ok(Some(bytes)) if (body.len() + bytes.len()) as u64 > MAX_REPLY_BYTES => {
                    return Err(reader::too_large());
                }
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) => return Ok(body),
                Err(_) => return Err(CallError::StreamCut { after_bytes: body.len() as u64 }),
            }
        }
    }
}

impl Backend for OpenAi {
    fn complete<'a>(
        &'a self,
        request: &'a Request,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Pin<Box<dyn Future<Output = Result<Reply, CallError>> + Send + 'a>> {
        Box::pin(self.attempt(request, on_delta))
    }
}

/// True when `base_url` is on this machine; such a server needs no key.
pub fn is_local(base_url: &str) -> bool {
    http::base_url(base_url).is_ok_and(|url| http::is_loopback(&url))
}

fn endpoint(base: &str) -> Result<Url, CallError> {
    http::base_url(base)?;
    let base = base.trim().trim_end_matches('/');
    http::base_url(&format!("{base}/chat/completions"))
}

enum Answer {
    Stream,
    Json,
    Page,
}

/// Anything but JSON and HTML is read as a stream: gateways forget the type, or write another one.
fn kind_of(headers: &HeaderMap) -> Answer {
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.trim_start().to_ascii_lowercase() {
        kind if kind.starts_with("application/json") => Answer::Json,
        kind if kind.starts_with("text/html") => Answer::Page,
        _ => Answer::Stream,
    }
}

#[cfg(test)]
mod tests;
