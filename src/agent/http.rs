//! The HTTP part of a model client, the same for every wire format.
//!
//! Role: build the connection, send a request, watch for silence, turn an error status into a [`CallError`].
//! Not its role: bodies, headers of one API, what a good answer means.
//!
//! Invariants: no redirect is followed (it could carry the key and the conversation to another host); a wait
//! for bytes never exceeds the idle limit; at most [`MAX_ERROR_BYTES`] of an error answer are read; a secret
//! is never shown.

use super::cassette::{Recorded, Take};
use super::envelope;
use super::error::{CallError, text};
use super::headers;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder, Url};
use std::error::Error as _;
use std::future::Future;
use std::time::Duration;

/// How much of an error answer is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// A connection to one model server.
pub struct HttpClient {
    client: Client,
    idle_timeout: Duration,
}

impl HttpClient {
    /// `ca_pem`: certificates to trust besides the system's.
    pub fn new(
        url: &Url,
        connect_timeout: Duration,
        idle_timeout: Duration,
        ca_pem: Option<&[u8]>,
    ) -> Result<Self, CallError> {
        // Fails only when a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("nightloop/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(connect_timeout)
            .tcp_keepalive(Duration::from_secs(30))
            // A redirect could carry the key and the conversation to another host.
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(url) {
            builder = builder.no_proxy();
        }
        if let Some(pem) = ca_pem {
            let bad = |why: String| CallError::Config(text(&format!("the ca_file holds no usable certificate: {why}")));
            let certificates = reqwest::Certificate::from_pem_bundle(pem).map_err(|e| bad(chain(&e)))?;
            if certificates.is_empty() {
                return Err(bad("it has no PEM block".to_owned()));
            }
            builder = builder.tls_certs_merge(certificates);
        }
        let client = builder.build().map_err(|e| CallError::Config(text(&chain(&e))))?;
        Ok(HttpClient { client, idle_timeout })
    }

    pub fn post(&self, url: &Url) -> RequestBuilder {
        self.client.post(url.clone())
    }

    pub fn get(&self, url: &Url) -> RequestBuilder {
        self.client.get(url.clone())
    }

    /// Sends `call`; an answer with an error status is an error.
    pub async fn send(&self, call: RequestBuilder, take: Take) -> Result<Recorded, CallError> {
        let response = self.in_time(call.send()).await?.map_err(connect_error)?;
        let response = Recorded::new(response, take);
        if response.status().is_success() { Ok(response) } else { Err(self.error_answer(response).await) }
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

    /// The first bytes of an answer; what cannot be read is left out.
    pub async fn start_of(&self, mut response: Recorded) -> Vec<u8> {
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

    /// Waits for `future`, at most as long as silence is allowed.
    pub async fn in_time<T>(&self, future: impl Future<Output = T>) -> Result<T, CallError> {
        let limit = self.idle_timeout;
        tokio::time::timeout(limit, future).await.map_err(|_| CallError::Idle(limit))
    }
}

/// An address that a model server can have.
pub fn base_url(base: &str) -> Result<Url, CallError> {
    let url = Url::parse(base.trim()).map_err(|e| CallError::Config(format!("base_url is not a URL: {e}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(CallError::Config("base_url must begin with https:// or http://".to_owned()));
    }
    Ok(url)
}

/// The part of a base URL that may be shown: it can hold a user and a password too.
pub fn shown_base(base: &str) -> String {
    Url::parse(base).map_or_else(|_| "(not a URL)".to_owned(), |url| url.origin().ascii_serialization())
}

/// A header value that is never shown.
pub fn secret_header(value: &str) -> Result<HeaderValue, CallError> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| CallError::Config("the API key has characters that no header can hold".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// True for an address of this machine.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// No content type at all is read as a stream: gateways forget it.
pub fn is_event_stream(headers: &HeaderMap) -> bool {
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
mod tests {
    use super::*;

    #[test]
    fn loopback_is_recognised() {
        let yes = ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost"];
        assert!(yes.iter().all(|url| is_loopback(&Url::parse(url).unwrap())));
        let no = ["http://10.0.0.1", "https://localhost.example.org", "https://127.0.0.1.example.org"];
        assert!(!no.iter().any(|url| is_loopback(&Url::parse(url).unwrap())));
    }

    #[test]
    fn a_bad_certificate_is_found_however_deep() {
        use std::io::{Error, ErrorKind};
        let fault = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let deep = Error::other(Error::new(ErrorKind::InvalidData, fault.clone()));
        assert!(certificate_fault(&deep).is_some());
        assert!(certificate_fault(&fault).is_some());
        let passing = Error::other(rustls::Error::General("handshake reset".into()));
        assert!(certificate_fault(&passing).is_none());
        assert!(certificate_fault(&Error::from(ErrorKind::ConnectionReset)).is_none());
    }
}
