//! The first lines of what a client says to a proxy: whom it wants, and what that one is to be told.
//!
//! Bytes in, values out. Invariants: a head has one meaning or is refused; what is passed on names the host that was
//! judged, and nothing of what is between the client and us.

use crate::model::hosts;

/// The longest head.
pub(super) const MAX_HEAD: usize = 16 * 1024;
/// Headers that are between the client and us, or that we write ourselves.
const OURS: &[&str] = &["host", "connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "upgrade"];

/// Whom a client wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub host: String,
    pub port: u16,
    /// What the server is to be told first; `None`: nothing, it is a tunnel.
    pub head: Option<Vec<u8>>,
}

/// Where the head ends in what has come, if it does.
pub(super) fn end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// Reads a head that is whole. The error is for the client.
pub(super) fn read(bytes: &[u8]) -> Result<Wanted, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the request is not text")?;
    let mut lines = text.trim_end_matches("\r\n").split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("the first line is no request");
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0")
        || method.is_empty()
        || !method.bytes().all(|b| b.is_ascii_alphabetic())
    {
        return Err("the first line is no request");
    }
    if method == "CONNECT" {
        let (host, port) = authority(target, None)?;
        return Ok(Wanted { host, port, head: None });
    }
    let Some(rest) = target.get(..7).filter(|start| start.eq_ignore_ascii_case("http://")).map(|_| &target[7..]) else {
        return Err("this is a proxy: ask for http://… or CONNECT");
    };
    let (name, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (host, port) = authority(name, Some(80))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let shown = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let port_shown = if port == 80 { String::new() } else { format!(":{port}") };
    let mut head = format!("{method} {slash}{path} {version}\r\nHost: {shown}{port_shown}\r\n");
    for line in lines {
        let (name, _) = line.split_once(':').ok_or("a header has no name")?;
        let is_name =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
        if !is_name || line.bytes().any(|b| b == b'\n' || b == b'\r') {
            return Err("a header is not one");
        }
        if !OURS.contains(&name.to_ascii_lowercase().as_str()) {
            head.push_str(line);
            head.push_str("\r\n");
        }
    }
    // One request each: what follows would be for a server that nobody judged.
    head.push_str("Connection: close\r\n\r\n");
    Ok(Wanted { host, port, head: Some(head.into_bytes()) })
}

/// A host and a port; no names or passwords.
fn authority(text: &str, usual: Option<u16>) -> Result<(String, u16), &'static str> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, digits)) if !digits.contains(']') => (name, digits.parse().ok().filter(|port| *port > 0)),
        _ => (text, usual),
    };
    let host = hosts::host(name).ok_or("the host is not one")?;
    Ok((host, port.ok_or("the port is not one")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel() {
        let wanted = read(b"CONNECT Registry.Example.org:443 HTTP/1.1\r\nHost: other.org\r\n\r\n").unwrap();
        assert_eq!(wanted, Wanted { host: "registry.example.org".into(), port: 443, head: None });
        assert_eq!(read(b"CONNECT [::1]:443 HTTP/1.1\r\n\r\n").unwrap().host, "::1");
    }

    #[test]
    fn a_request_says_the_host_that_was_judged() {
        let wanted = read(b"GET http://a.org/x?y HTTP/1.1\r\nHost: evil.org\r\nAccept: */*\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\n\r\n");
        let wanted = wanted.unwrap();
        assert_eq!((wanted.host.as_str(), wanted.port), ("a.org", 80));
        let head = String::from_utf8(wanted.head.unwrap()).unwrap();
        assert_eq!(head, "GET /x?y HTTP/1.1\r\nHost: a.org\r\nAccept: */*\r\nConnection: close\r\n\r\n");
        let bare = read(b"GET http://a.org:8080?q HTTP/1.0\r\n\r\n").unwrap();
        assert!(bare.head.unwrap().starts_with(b"GET /?q HTTP/1.0\r\nHost: a.org:8080\r\n"));
    }

    #[test]
    fn what_has_two_meanings_is_refused() {
        for odd in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"CONNECT a.org HTTP/1.1\r\n\r\n",
            b"CONNECT a.org:0 HTTP/1.1\r\n\r\n",
            b"CONNECT user@a.org:443 HTTP/1.1\r\n\r\n",
            b"GET http://user:pw@a.org/ HTTP/1.1\r\n\r\n",
            b"GET http://a.org/ HTTP/2\r\n\r\n",
            b"GET http://a.org/ x HTTP/1.1\r\n\r\n",
            b"GET ftp://a.org/ HTTP/1.1\r\n\r\n",
            b"GET http://a.org/ HTTP/1.1\r\nX\r\n\r\n",
            b"GET http://a.org/ HTTP/1.1\r\nX : y\r\n\r\n",
            b"GET http://a.org/ HTTP/1.1\r\nX: a\nHost: b\r\n\r\n",
            b"GET http://127.1/ HTTP/1.1\r\n\r\n",
            b"\xff\xff\r\n\r\n",
            b"\r\n\r\n",
        ] {
            assert!(read(odd).is_err(), "{}", String::from_utf8_lossy(odd));
        }
        assert_eq!(end(b"GET\r\n\r\nrest"), Some(7));
        assert_eq!(end(b"GET\r\n"), None);
    }
}
