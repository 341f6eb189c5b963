//! Compaction: old iterations shrink to what must never be lost.
//!
//! Role: when to compact, what an old iteration keeps, and the log line that says so.
//! Not its role: rewriting files.
//! Invariants: a function of the entries alone, so the journal gives the same bytes at any time. Kept:
//! Lane A lines and operator checks byte for byte, the heading of every iteration, the latest three
//! iterations whole. Everything else of an old iteration becomes one witness line.

use serde::{Deserialize, Serialize};

use super::render::{FAILED, ITERATION, Lines, SUCCEEDED, render_document, render_entry};
use super::{Claim, Entry, Header, SpecVersion};
use crate::model::lane::Lane;

/// Above this, a document is compacted.
pub const MOST_TOKENS: usize = 8000;
/// The latest iterations that always stay whole.
pub const WHOLE_ITERATIONS: usize = 3;

pub(super) const WITNESS: &str = "- iter ";

/// What a compaction did. Lines are counted over the compacted iterations, without this log's own line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionLog {
    pub first: u32,
    pub last: u32,
    pub witness_lines: u32,
    pub lines_before: u32,
    pub lines_after: u32,
}

/// A quarter of the bytes, rounded up: the same for every model, and known before any is asked.
pub fn estimate_tokens(bytes: usize) -> usize {
    bytes.div_ceil(4)
}

/// Below which iteration to compact: all but the latest three. None while the whole document has at
/// most 8000 tokens, or when there is nothing old enough.
pub fn compaction_point(header: &Header, entries: &[Entry], spec: SpecVersion) -> Option<u32> {
    let first_whole = entries.get(entries.len().checked_sub(WHOLE_ITERATIONS).filter(|old| *old > 0)?)?;
    let whole = render_document(header, entries, spec, None);
    (estimate_tokens(whole.len()) > MOST_TOKENS).then_some(first_whole.iteration)
}

/// What compacting below `point` does; none when no iteration is old enough.
pub fn compaction_log(_: &Header, entries: &[Entry], spec: SpecVersion, point: u32) -> Option<CompactionLog> {
    let old: Vec<&Entry> = entries
        .iter()
        .enumerate()
        .filter(|(index, _)| is_compacted(entries, *index, Some(point)))
        .map(|(_, entry)| entry)
        .collect();
    let iterations = || old.iter().map(|entry| entry.iteration);
    let lines = |render: fn(&Entry, SpecVersion) -> String| {
        let count = old.iter().map(|entry| render(entry, spec).lines().count()).sum::<usize>();
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    Some(CompactionLog {
        first: iterations().min()?,
        last: iterations().max()?,
        witness_lines: u32::try_from(old.len()).unwrap_or(u32::MAX),
        lines_before: lines(render_entry),
        lines_after: lines(compacted_entry),
    })
}

pub(super) fn is_compacted(entries: &[Entry], index: usize, compacted_before: Option<u32>) -> bool {
    let old = index + WHOLE_ITERATIONS < entries.len();
    old && entries.get(index).zip(compacted_before).is_some_and(|(entry, point)| entry.iteration < point)
}

/// An old iteration: heading, witness line, Lane A lines, operator check.
pub(super) fn compacted_entry(entry: &Entry, spec: SpecVersion) -> String {
    let entry = entry.sanitized(spec);
    let n = entry.iteration;
    let mut out = Lines::default();
    out.line(&format!("{ITERATION}{n}"));
    out.line("");
    out.line(&witness(&entry));
    for (number, title, claims) in [(2, SUCCEEDED, &entry.succeeded), (3, FAILED, &entry.failed)] {
        let facts: Vec<Claim> = claims.iter().filter(|claim| claim.lane == Lane::A).cloned().collect();
        if !facts.is_empty() {
            out.section(n, number, title);
            out.claims(&facts);
        }
    }
    if let Some(operators) = &entry.operators {
        out.operators(n, operators);
    }
    out.rule();
    out.0
}

pub(super) fn witness(entry: &Entry) -> String {
    let count = |claims: &[Claim], lane| claims.iter().filter(|claim| claim.lane == lane).count();
    // The seeds know no failure in Lane B; should one occur, it is counted too.
    let failed = match count(&entry.failed, Lane::B) {
        0 => String::new(),
        some => format!("B×{some} "),
    };
    format!(
        "{WITNESS}{}: tried {}, succeeded B×{} C×{}, failed {failed}C×{}, residual {}, certificate {}",
        entry.iteration,
        entry.tried.len(),
        count(&entry.succeeded, Lane::B),
        count(&entry.succeeded, Lane::C),
        count(&entry.failed, Lane::C),
        entry.measures.residual.as_deref().unwrap_or("null"),
        entry.measures.certificate,
    )
}
