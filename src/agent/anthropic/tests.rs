//! Tests of the client's parts that need no server; the rest is in `wire_tests`.

use super::*;

fn config(base_url: &str, key: &str, auth: AuthStyle) -> AnthropicConfig {
    AnthropicConfig { base_url: base_url.into(), api_key: Some(key.into()), auth, ..AnthropicConfig::default() }
}

#[test]
fn the_key_is_never_shown() {
    for auth in [AuthStyle::Bearer, AuthStyle::XApiKey] {
        let config = config("https://user:sk-secret@example.org", "sk-secret", auth);
        let shown = format!("{config:?} {config:#?}");
        let client = Anthropic::new(config).unwrap();
        let shown = format!("{shown} {client:?} {client:#?} {:?}", client.headers);
        assert!(!shown.contains("sk-secret"), "{shown}");
        assert!(shown.contains("example.org"));
    }
    let error = Anthropic::new(config("https://example.org", "sk-secret\n\u{1}", AuthStyle::Bearer)).unwrap_err();
    assert!(matches!(error, CallError::Config(_)));
    assert!(!format!("{error} {error:?}").contains("secret"));
}

#[test]
fn the_endpoint() {
    for base in ["https://h", "https://h/", "https://h/v1", " https://h/v1/ "] {
        assert_eq!(endpoint(base).unwrap().as_str(), "https://h/v1/messages");
    }
    assert_eq!(endpoint("http://h:8080/proxy").unwrap().as_str(), "http://h:8080/proxy/v1/messages");
    for bad in ["", "h", "ftp://h", "https://", "file:///etc"] {
        assert!(matches!(endpoint(bad), Err(CallError::Config(_))), "{bad}");
    }
}

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
