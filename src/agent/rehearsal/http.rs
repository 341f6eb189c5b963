//! As much HTTP/1.1 as the rehearsal server needs, over any byte stream.
//!
//! Role: read one request with a known length; write one answer, whole or in chunks.
//! Not its role: routing, keep-alive, TLS. Every answer closes its connection.
//!
//! Invariants: head and body are bounded before they are stored; a request that breaks the
//! grammar is an error value.

use bytes::{Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Largest body taken, as with the real service.
pub const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// Why a request could not be read.
#[derive(Debug)]
pub enum ReadError {
    Io(io::Error),
    /// The peer closed before saying anything whole.
    Closed,
    /// To be answered with this status.
    Refused(u16, &'static str),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        ReadError::Io(error)
    }
}

pub async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> Result<HttpRequest, ReadError> {
    let mut buffer = BytesMut::with_capacity(8 * 1024);
    let mut searched = 0;
    let head_end = loop {
        if let Some(at) = find_blank_line(&buffer[searched..]) {
            break searched + at;
        }
        searched = buffer.len().saturating_sub(3);
        if buffer.len() > MAX_HEAD_BYTES {
            return Err(ReadError::Refused(431, "the request head is too large"));
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Err(ReadError::Closed);
        }
    };
    let head = buffer.split_to(head_end + 4);
    let (method, path, headers) = parse_head(&head).ok_or(ReadError::Refused(400, "the request head is malformed"))?;
    let length = body_length(&headers)?;
    while buffer.len() < length {
        if stream.read_buf(&mut buffer).await? == 0 {
            return Err(ReadError::Closed);
        }
    }
    buffer.truncate(length);
    Ok(HttpRequest { method, path, headers, body: buffer.freeze() })
}

fn find_blank_line(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n")
}

type Head = (String, String, Vec<(String, String)>);

fn parse_head(head: &[u8]) -> Option<Head> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.trim_end_matches("\r\n").split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path, version) = (first.next()?, first.next()?, first.next()?);
    if !version.starts_with("HTTP/1.") || first.next().is_some() {
        return None;
    }
    let headers = lines
        .map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect::<Option<Vec<_>>>()?;
    Some((method.to_owned(), path.to_owned(), headers))
}

fn body_length(headers: &[(String, String)]) -> Result<usize, ReadError> {
    if headers.iter().any(|(name, _)| name == "transfer-encoding") {
        return Err(ReadError::Refused(411, "the rehearsal server needs a content-length"));
    }
    match headers.iter().find(|(name, _)| name == "content-length") {
        None => Ok(0),
        Some((_, value)) => match value.parse::<usize>() {
            Ok(length) if length <= MAX_BODY_BYTES => Ok(length),
            Ok(_) => Err(ReadError::Refused(413, "the request body is larger than 32 MiB")),
            Err(_) => Err(ReadError::Refused(400, "content-length is not a number")),
        },
    }
}

/// Writes a whole answer and closes.
pub async fn write_answer<S: AsyncWrite + Unpin>(
    stream: &mut S,
    status: u16,
    headers: &[(&str, String)],
    body: &[u8],
) -> io::Result<()> {
    let mut out = head(status, headers);
    out.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    stream.write_all(out.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.shutdown().await
}

/// Begins an answer that comes in chunks.
pub async fn start_chunks<S: AsyncWrite + Unpin>(stream: &mut S, headers: &[(&str, String)]) -> io::Result<()> {
    let mut out = head(200, headers);
    out.push_str("transfer-encoding: chunked\r\n\r\n");
    stream.write_all(out.as_bytes()).await?;
    stream.flush().await
}

pub async fn write_chunk<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        // An empty chunk would mean the end.
        return Ok(());
    }
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    stream.write_all(&out).await?;
    stream.flush().await
}

pub async fn end_chunks<S: AsyncWrite + Unpin>(stream: &mut S) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n").await?;
    stream.shutdown().await
}

fn head(status: u16, headers: &[(&str, String)]) -> String {
    let mut out = format!("HTTP/1.1 {status} {}\r\nconnection: close\r\n", reason(status));
    for (name, value) in headers {
        out.push_str(&format!("{name}: {}\r\n", value.replace(['\r', '\n'], " ")));
    }
    out
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400..=499 => "Client Error",
        _ => "Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> Result<HttpRequest, ReadError> {
        read_request(&mut &bytes[..]).await
    }

    #[tokio::test]
    async fn reads_a_request_at_every_cut() {
        let bytes = b"POST /v1/messages HTTP/1.1\r\nContent-Length: 5\r\nX-Api-Key:  k \r\n\r\nhello";
        let whole = read(bytes).await.unwrap();
        assert_eq!(
            (whole.method.as_str(), whole.path.as_str(), &whole.body[..]),
            ("POST", "/v1/messages", &b"hello"[..])
        );
        assert_eq!(whole.headers[1], ("x-api-key".to_owned(), "k".to_owned()));
        for cut in 0..bytes.len() {
            assert!(matches!(read(&bytes[..cut]).await, Err(ReadError::Closed)), "cut at {cut}");
            let mut parts = (&bytes[..cut]).chain(&bytes[cut..]);
            assert_eq!(read_request(&mut parts).await.unwrap(), whole, "split at {cut}");
        }
    }

    #[tokio::test]
    async fn refuses_what_it_does_not_take() {
        let long = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(MAX_HEAD_BYTES));
        for (bytes, status) in [
            ("nonsense\r\n\r\n", 400),
            ("GET / HTTP/2\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\ncontent-length: 33554433\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", 411),
            (long.as_str(), 431),
        ] {
            let error = read(bytes.as_bytes()).await.unwrap_err();
            assert!(matches!(error, ReadError::Refused(s, _) if s == status), "{bytes:.60} {error:?}");
        }
    }
}
