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
