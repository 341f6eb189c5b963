//! Long texts for agents: the beginning and the end, and a mark of what was left out.

use crate::journal::Blobs;
use crate::model::digest::Digest;

use super::error::EngineError;

/// At most about `limit` bytes of a stored text; nothing where there is none.
pub(super) fn of_blob(blobs: &Blobs, digest: Option<Digest>, limit: usize) -> Result<String, EngineError> {
    let Some(digest) = digest else { return Ok(String::new()) };
    let bytes = blobs.get(&digest)?;
    if bytes.len() <= limit {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let (head, tail) = (&bytes[..limit / 2], &bytes[bytes.len() - limit / 2..]);
    let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
    Ok(format!("{head}\n[… {} bytes left out …]\n{tail}", bytes.len() - limit))
}

/// At most `limit` bytes of a text: its beginning and its end, with a mark between them where there is room for it.
pub(super) fn cut_in_the_middle(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mark = format!("\n[… {} bytes in all …]\n", text.len());
    let mark = if mark.len() < limit { mark } else { String::new() };
    let half = (limit - mark.len()) / 2;
    let head = text.floor_char_boundary(half);
    let tail = text.ceil_char_boundary(text.len() - half);
    format!("{}{mark}{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_loses_its_middle_and_no_more() {
        assert_eq!(cut_in_the_middle("short", 5), "short");
        let text = format!("{}{}{}", "a".repeat(500), "ü".repeat(500), "z".repeat(500));
        let cut = cut_in_the_middle(&text, 200);
        assert!(cut.len() <= 200 && cut.starts_with("aaaa") && cut.ends_with("zzzz"), "{cut}");
        assert!(cut.contains("2000 bytes in all"));
        for limit in 0..60 {
            assert!(cut_in_the_middle(&"ü".repeat(100), limit).len() <= limit, "{limit}");
        }
    }
}
