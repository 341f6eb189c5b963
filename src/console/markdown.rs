//! Markdown as styled lines: headings, lists, quotes, code, emphasis, links, and the lanes of learnings.
//!
//! Not here: files, readers. One pass over the text, line by line; what is not understood is shown as it is.
//! Invariants: every line is made harmless before it is looked at for marks; nothing is left out but marks
//! and the tail of a digest, which is marked as cut.

use super::document::{DocLine, Sign};
use super::paint::Piece;
use super::prose;
use super::theme::Role;
use crate::model::lane::Lane;
use crate::model::learnings::Link;

/// Hex digits of a digest that are shown.
const SHORT: usize = 8;

/// A line and what it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Marked {
    pub line: DocLine,
    pub lane: Option<Lane>,
    /// The first artifact that it names.
    pub link: Option<Link>,
    pub heading: Option<u8>,
    /// The iteration whose heading this is.
    pub iteration: Option<u32>,
}

impl Marked {
    fn plain(line: DocLine) -> Self {
        Self { line, lane: None, link: None, heading: None, iteration: None }
    }
}

/// All lines of a Markdown text.
pub fn parse(text: &str) -> Vec<Marked> {
    let mut fenced = false;
    let mut out = Vec::new();
    for raw in text.lines() {
        let trimmed = raw.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            fenced = !fenced;
            out.push(Marked::plain(DocLine::new(prose::line(raw), Role::Muted)));
        } else if fenced {
            out.push(Marked::plain(DocLine::new(prose::line(raw), Role::Code).signed(Sign::Rule)));
        } else {
            out.push(one_line(raw));
        }
    }
    out
}

fn one_line(raw: &str) -> Marked {
    let text = raw.trim();
    let indent = u16::try_from(prose::line(raw).len() - prose::line(text).len()).unwrap_or(0).min(40);
    if let Some((level, title)) = heading(text) {
        let title = prose::line(title);
        let iteration = title.strip_prefix("Iteration ").and_then(|number| number.trim().parse().ok());
        let indent = u16::from(level.saturating_sub(1)).saturating_sub(1);
        let line = DocLine::new(title, Role::Heading).indented(indent);
        return Marked { heading: Some(level), iteration, ..Marked::plain(line) };
    }
    if text.starts_with("<!--") {
        return Marked::plain(DocLine::new(prose::line(text), Role::Comment));
    }
    if text.len() >= 3 && ["---", "***", "___"].iter().any(|rule| text.starts_with(rule) && same(text)) {
        return Marked::plain(DocLine::new("", Role::Muted));
    }
    if let Some(quote) = text.strip_prefix('>') {
        let (text, pieces, link) = inline(&prose::line(quote.trim_start()));
        let line = DocLine::new(text, Role::Muted).with(pieces).indented(indent).signed(Sign::Rule);
        return Marked { link, ..Marked::plain(line) };
    }
    for bullet in ["- ", "* ", "+ "] {
        if let Some(item) = text.strip_prefix(bullet) {
            return list_item(item, indent);
        }
    }
    let (text, pieces, link) = inline(&prose::line(text));
    Marked { link, ..Marked::plain(DocLine::new(text, Role::Text).with(pieces).indented(indent)) }
}

fn same(text: &str) -> bool {
    let first = text.chars().next();
    text.chars().all(|c| Some(c) == first)
}

fn heading(text: &str) -> Option<(u8, &str)> {
    let level = text.len() - text.trim_start_matches('#').len();
    let title = text.get(level..)?;
    ((1..=6).contains(&level) && title.starts_with(' ')).then(|| (u8::try_from(level).unwrap_or(6), title.trim()))
}

/// A list item; one with a lane is coloured by it, and keeps its mark.
fn list_item(item: &str, indent: u16) -> Marked {
    let safe = prose::line(item);
    let (text, mut pieces, link) = inline(&safe);
    let lane = [Lane::A, Lane::B, Lane::C].into_iter().find(|lane| text.starts_with(&format!("[{lane}] ")));
    if let Some(lane) = lane {
        pieces.insert(0, (0..3, lane_role(lane)));
    } else if let Some(colon) = key_end(&text) {
        pieces.insert(0, (0..colon, Role::Muted));
    }
    let line = DocLine::new(text, Role::Text).with(pieces).indented(indent).signed(Sign::Bullet);
    Marked { lane, link, ..Marked::plain(line) }
}

pub const fn lane_role(lane: Lane) -> Role {
    match lane {
        Lane::A => Role::LaneA,
        Lane::B => Role::LaneB,
        Lane::C => Role::LaneC,
    }
}

/// `key: value` with a short key.
fn key_end(text: &str) -> Option<usize> {
    let colon = text.find(": ")?;
    let key = text.get(..colon)?;
    (colon <= 24 && key.chars().all(|c| c.is_alphanumeric() || "_-".contains(c))).then_some(colon + 1)
}

/// Marks inside a line become roles; `path#sha256` becomes a link with a short digest.
fn inline(text: &str) -> (String, Vec<Piece>, Option<Link>) {
    let mut out = String::with_capacity(text.len());
    let mut pieces = Vec::new();
    let mut link = None;
    let mut rest = text;
    while !rest.is_empty() {
        let Some(at) = rest.find(['`', '*', '[', '(']) else { break };
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let start = out.len();
        let took = if let Some((inner, took)) = between(from, "`", "`") {
            out.push_str(inner);
            pieces.push((start..out.len(), Role::Code));
            took
        } else if let Some((inner, took)) = between(from, "**", "**") {
            out.push_str(inner);
            pieces.push((start..out.len(), Role::Emphasis));
            took
        } else if let Some((inner, took)) = between(from, "*", "*").filter(|(inner, _)| emphasis(inner)) {
            out.push_str(inner);
            pieces.push((start..out.len(), Role::Emphasis));
            took
        } else if let Some((artifact, took)) = artifact(from) {
            let digest: String = artifact.sha256.to_string().chars().take(SHORT).collect();
            out.push_str(&format!("({}#{digest}..)", prose::line(&artifact.path)));
            pieces.push((start + 1..out.len() - 1, Role::Link));
            link.get_or_insert(artifact);
            took
        } else if let Some((label, url, took)) = reference(from) {
            out.push_str(label);
            pieces.push((start..out.len(), Role::Link));
            out.push_str(&format!(" ({url})"));
            took
        } else {
            let one = from.chars().next().map_or(1, char::len_utf8);
            out.push_str(from.get(..one).unwrap_or_default());
            one
        };
        rest = from.get(took..).unwrap_or_default();
    }
    out.push_str(rest);
    (out, pieces, link)
}

/// What stands between two marks at the beginning, and the length of all of it.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<(&'a str, usize)> {
    let rest = text.strip_prefix(open)?;
    let end = rest.find(close).filter(|end| *end > 0)?;
    Some((rest.get(..end)?, open.len() + end + close.len()))
}

/// A single star is emphasis only around a word.
fn emphasis(inner: &str) -> bool {
    !inner.starts_with([' ', '*']) && !inner.ends_with(' ')
}

/// `(path#sha256)` at the beginning.
fn artifact(text: &str) -> Option<(Link, usize)> {
    let (inner, took) = between(text, "(", ")")?;
    Link::parse(inner).map(|link| (link, took))
}

/// `[label](url)` at the beginning.
fn reference(text: &str) -> Option<(&str, &str, usize)> {
    let (label, took) = between(text, "[", "]")?;
    let (url, more) = between(text.get(took..)?, "(", ")")?;
    Some((label, url, took + more))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::digest::Digest;

    fn roles(line: &DocLine) -> Vec<(&str, Role)> {
        line.pieces.iter().map(|(range, role)| (&line.text[range.clone()], *role)).collect()
    }

    #[test]
    fn marks_become_roles() {
        let marked = parse("# Title\n\n- **bold** and *thin* and `code` and [text](http://x)\n> quoted\n2 * 3 * 4");
        assert_eq!(marked[0].heading, Some(1));
        let item = &marked[2].line;
        assert_eq!(&*item.text, "bold and thin and code and text (http://x)");
        assert_eq!(
            roles(item),
            [("bold", Role::Emphasis), ("thin", Role::Emphasis), ("code", Role::Code), ("text", Role::Link)]
        );
        assert_eq!(marked[3].line.sign, Some(Sign::Rule));
        assert_eq!(&*marked[4].line.text, "2 * 3 * 4");
    }

    #[test]
    fn lanes_links_and_iterations_are_known() {
        let sha256 = Digest::of(b"x");
        let text = format!("## Iteration 3\n- [A] it works (out/a.json#{sha256})\n- [C] maybe");
        let marked = parse(&text);
        assert_eq!(marked[0].iteration, Some(3));
        assert_eq!(&*marked[0].line.text, "Iteration 3");
        assert_eq!(marked[1].lane, Some(Lane::A));
        assert_eq!(marked[1].link.as_ref().unwrap().path, "out/a.json");
        assert!(marked[1].line.text.len() < 60, "{}", marked[1].line.text);
        assert_eq!(marked[2].lane, Some(Lane::C));
        assert_eq!(roles(&marked[2].line), [("[C]", Role::LaneC)]);
    }

    #[test]
    fn code_is_left_alone_and_hostile_text_is_harmless() {
        let marked = parse("```\n# not a *heading*\n```\n\u{1b}]0;title\u{7}text\n- [A\u{202e}] x");
        assert_eq!(marked[1].heading, None);
        assert_eq!(&*marked[1].line.text, "# not a *heading*");
        for one in &marked {
            assert!(!one.line.text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{one:?}");
        }
        assert_eq!(marked[4].lane, None);
    }
}
