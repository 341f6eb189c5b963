//! What a run remembers, within a bound: a fold over its entries, so that the next one costs what the first did.
//!
//! Role: which entries stand whole, what older ones shrink to, and the line that says so.
//! Not its role: files, markers, other runs' blocks (see `earlier`).
//! Invariants: a function of the entries in their order; the text never has more than it is given, [`OWN_BYTES`] at
//! most, with its header.
//! What goes first is the oldest: whole entries become a witness line and their facts, witness lines become one line,
//! equal facts stand once, and Lane A goes last; the latest entries stay whole while facts have their share. Nothing goes without being counted in the log.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::compact::{CompactionLog, witness};
use super::render::{Lines, render_entry, render_header};
use super::text::claim_line;
use super::{Claim, Entry, Header, Link, SpecVersion};
use crate::model::digest::Digest;
use crate::model::lane::Lane;

/// The most that the block of one run takes, in bytes, with its header. With what earlier runs left it makes 8,000 tokens.
pub const OWN_BYTES: usize = 24_000;
/// The same where an agent is called for every small item, and reads it each time.
pub const ITEMS_BYTES: usize = 5_000;
/// The iterations have a third of the room, however long the header is.
const LEAST_SHARE: usize = 3;
/// The latest entries that stay whole while there is room.
const WHOLE: usize = 3;
/// An entry that is longer than this share of the room stands there shortened.
const ENTRY_SHARE: (usize, usize) = (7, 24);
/// How many items of a list, and how many characters of each, are tried in turn until an entry is short enough.
const SHORTER: [(usize, usize); 4] = [(20, 400), (10, 200), (5, 100), (2, 60)];
/// Facts of older iterations have this share of the room whatever the latest entries take: half of it.
const FACT_SHARE: usize = 2;
/// A longer fact is in the evidence alone: it would push out many.
const LONGEST_FACT: usize = 1_000;

/// A Lane A claim as it is spelt, and what makes two of them equal: their words, whatever shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fact {
    words: String,
    line: String,
}

/// An iteration that still stands there by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    iteration: u32,
    /// The entry as it stands there while it is whole.
    text: String,
    witness: String,
    facts: Vec<Fact>,
}

/// What had to shrink for an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shrunk {
    pub compaction: Option<CompactionLog>,
    pub shortened: Option<Shortened>,
}

/// An entry that was too long to stand there whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortened {
    pub iteration: u32,
    pub bytes_before: u32,
    pub bytes_after: u32,
}

impl fmt::Display for Shortened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { iteration, bytes_before, bytes_after } = self;
        write!(f, "[COMPACTION] Shortened iteration {iteration}: {bytes_before} bytes → {bytes_after} bytes. Whole: ")?;
        f.write_str(&entry_path(*iteration))
    }
}

/// What a run remembers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    whole: Vec<Kept>,
    witnesses: Vec<String>,
    facts: Vec<Fact>,
    /// Iterations without a line of their own: how many, and where the residual began.
    gone: u32,
    gone_facts: u32,
    /// The iterations that are no longer whole, and the lines they had.
    distilled: Option<(u32, u32)>,
    lines_before: u32,
    /// Of everything but the header.
    bytes: usize,
}

impl Memory {
    /// Takes the next entry. What comes back is what had to shrink for it.
    pub fn push(&mut self, entry: &Entry, header: &Header, spec: SpecVersion, most: usize) -> Shrunk {
        let (kept, shortened) = kept(entry, spec, most * ENTRY_SHARE.0 / ENTRY_SHARE.1);
        self.bytes += kept.text.len() + 1;
        self.whole.push(kept);
        let before = (self.distilled, self.gone, self.gone_facts);
        let room = most.saturating_sub(render_header(header, spec).len()).max(most / LEAST_SHARE);
        while self.bytes + OVERHEAD > room && self.shrink(most / FACT_SHARE) {}
        let changed = before != (self.distilled, self.gone, self.gone_facts);
        Shrunk { compaction: if changed { self.log() } else { None }, shortened }
    }

    /// Takes one step back from the oldest. Was there one?
    fn shrink(&mut self, facts: usize) -> bool {
        if self.whole.len() > WHOLE {
            self.distil_oldest();
        } else if !self.witnesses.is_empty() {
            let witness = self.witnesses.remove(0);
            self.bytes -= witness.len() + 1;
            self.gone += 1;
        } else if self.facts.iter().map(|fact| fact.line.len() + 3).sum::<usize>() > facts {
            self.drop_oldest_fact();
        } else if self.whole.len() > 1 {
            self.distil_oldest();
        } else if !self.facts.is_empty() {
            self.drop_oldest_fact();
        } else {
            return false;
        }
        true
    }

    fn drop_oldest_fact(&mut self) {
        let fact = self.facts.remove(0);
        self.bytes -= fact.line.len() + 3;
        self.gone_facts += 1;
    }

    fn distil_oldest(&mut self) {
        let old = self.whole.remove(0);
        self.bytes -= old.text.len() + 1;
        self.bytes += old.witness.len() + 1;
        self.witnesses.push(old.witness);
        self.distilled = Some((self.distilled.map_or(old.iteration, |(first, _)| first), old.iteration));
        let lines = u32::try_from(old.text.lines().count()).unwrap_or(u32::MAX);
        self.lines_before = self.lines_before.saturating_add(lines);
        for fact in old.facts {
            if let Some(same) = self.facts.iter().position(|known| known.words == fact.words) {
                // The newest place of a fact is the one it keeps.
                self.bytes -= self.facts.remove(same).line.len() + 3;
            }
            if fact.line.len() > LONGEST_FACT {
                self.gone_facts += 1;
                continue;
            }
            self.bytes += fact.line.len() + 3;
            self.facts.push(fact);
        }
    }

    fn log(&self) -> Option<CompactionLog> {
        let (first, last) = self.distilled?;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let lines = self.distilled_text().lines().count();
        let (witness_lines, lines_before) = (count(self.witnesses.len()), self.lines_before);
        Some(CompactionLog { first, last, witness_lines, lines_before, lines_after: count(lines) })
    }

    /// The section of older iterations; empty while there are none.
    fn distilled_text(&self) -> String {
        let Some((first, _)) = self.distilled else { return String::new() };
        let mut out = Lines::default();
        out.line(OLDER);
        out.line("");
        out.line(WHERE);
        if self.gone > 0 {
            let last = first.saturating_add(self.gone - 1);
            out.line(&format!("- iterations {first} to {last}: {} more witness lines are there alone", self.gone));
        }
        for witness in &self.witnesses {
            out.line(witness);
        }
        if !self.facts.is_empty() || self.gone_facts > 0 {
            out.line("");
            out.line(FACTS);
            if self.gone_facts > 0 {
                out.line(&format!("- {} more facts are there alone", self.gone_facts));
            }
            for fact in &self.facts {
                out.line(&format!("- {}", fact.line));
            }
        }
        out.rule();
        out.0
    }

    /// The document of the run.
    pub fn render(&self, header: &Header, spec: SpecVersion) -> String {
        let mut text = render_header(header, spec);
        if let Some(log) = self.log() {
            text.push_str(&format!("\n{log}\n\n{}", self.distilled_text()));
        }
        for kept in &self.whole {
            text.push('\n');
            text.push_str(&kept.text);
        }
        text
    }
}

const OLDER: &str = "## Older iterations";
const WHERE: &str =
    "Whole: evidence/loop/iter_N/agents_md_entry.md, listed with their digests in evidence/loop/manifest.json.";
const FACTS: &str = "### Facts of older iterations [Lane A]";
/// Headings, counts and the log line of what was distilled.
const OVERHEAD: usize = 600;

/// Where an entry stands whole.
fn entry_path(iteration: u32) -> String {
    format!("evidence/loop/iter_{iteration}/agents_md_entry.md")
}

fn kept(entry: &Entry, spec: SpecVersion, most: usize) -> (Kept, Option<Shortened>) {
    let whole = Link { path: entry_path(entry.iteration), sha256: Digest::of(render_entry(entry, spec).as_bytes()) };
    let entry = entry.without_operators().sanitized(spec);
    let facts = entry.succeeded.iter().chain(&entry.failed).filter(|claim| claim.lane == Lane::A);
    let (text, shortened) = short_enough(&entry, spec, most);
    let kept = Kept {
        iteration: entry.iteration,
        witness: format!("{} ({whole})", witness(&entry)),
        facts: facts.map(|claim| Fact { words: claim.text.clone(), line: claim_line(claim) }).collect(),
        text,
    };
    (kept, shortened)
}

/// The entry whole if it is short, else with fewer and shorter items, under a line that says so and where the rest is.
fn short_enough(entry: &Entry, spec: SpecVersion, most: usize) -> (String, Option<Shortened>) {
    let whole = render_entry(entry, spec);
    if whole.len() <= most {
        return (whole, None);
    }
    let shorter = SHORTER.iter().map(|(items, chars)| render_entry(&shortened(entry, *items, *chars), spec));
    let fits = shorter.into_iter().find(|text| text.len() <= most);
    let text = fits.unwrap_or_else(|| render_entry(&shortened(entry, 0, 0), spec));
    let bytes = |text: &str| u32::try_from(text.len()).unwrap_or(u32::MAX);
    let log = Shortened { iteration: entry.iteration, bytes_before: bytes(&whole), bytes_after: bytes(&text) };
    (format!("{log}\n\n{text}"), Some(log))
}

fn shortened(entry: &Entry, items: usize, chars: usize) -> Entry {
    let rest = |all: usize| {
        let left = all.saturating_sub(items);
        (left > 0).then(|| format!("(and {left} more in {})", entry_path(entry.iteration)))
    };
    let cut = |text: &String| match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.clone(),
    };
    let texts = |all: &[String]| all.iter().take(items).map(cut).chain(rest(all.len())).collect();
    let claims = |all: &[Claim]| {
        // Facts first: they are what must not be lost.
        let mut sorted: Vec<&Claim> = all.iter().collect();
        sorted.sort_by_key(|claim| claim.lane);
        let kept = sorted.into_iter().take(items).map(|claim| Claim { text: cut(&claim.text), ..claim.clone() });
        let note = rest(all.len()).map(|text| Claim { lane: Lane::C, text, link: None, demoted_from: None });
        kept.chain(note).collect()
    };
    Entry {
        tried: texts(&entry.tried),
        succeeded: claims(&entry.succeeded),
        failed: claims(&entry.failed),
        open_questions: texts(&entry.open_questions),
        ..entry.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::learnings::{Measures, ResidualDirection};
    use crate::model::rung::Rung;

    fn header() -> Header {
        Header {
            goal: "Greet.".into(),
            started: "now".into(),
            r_p: "0".into(),
            max_iterations: 2000,
            rung_target: Rung::Local,
            northstar_metrics: Vec::new(),
            seed_checksum: None,
        }
    }

    fn claim(lane: Lane, text: String, seen: u32) -> Claim {
        let link = Link { path: format!("file{seen}"), sha256: Digest::of(&seen.to_le_bytes()) };
        Claim { lane, text, link: (lane == Lane::A).then_some(link), demoted_from: None }
    }

    fn entry(iteration: u32, words: usize) -> Entry {
        Entry {
            iteration,
            tried: vec![format!("way {iteration} {}", "on ".repeat(words))],
            succeeded: vec![
                claim(Lane::A, "the same as ever".into(), iteration),
                claim(Lane::A, format!("fact {iteration}"), iteration),
                claim(Lane::B, format!("seen {iteration}"), iteration),
            ],
            failed: Vec::new(),
            measures: Measures {
                residual_metric: "unmet".into(),
                residual: Some("1".into()),
                residual_direction: ResidualDirection::Stable,
                certificate: "NONE".into(),
                glow: None,
                northstar_distance: None,
                northstar_direction: None,
            },
            open_questions: vec!["What next?".into()],
            operators: None,
        }
    }

    fn after(iterations: u32, words: usize) -> (Memory, Vec<CompactionLog>, String) {
        let mut memory = Memory::default();
        let logs = (0..iterations)
            .filter_map(|n| memory.push(&entry(n, words), &header(), SpecVersion::V2, OWN_BYTES).compaction)
            .collect();
        let text = memory.render(&header(), SpecVersion::V2);
        (memory, logs, text)
    }

    #[test]
    fn a_short_run_stands_there_whole() {
        let (_, logs, text) = after(6, 1);
        assert!(logs.is_empty() && !text.contains("[COMPACTION]"));
        for n in 0..6 {
            assert!(text.contains(&render_entry(&entry(n, 1), SpecVersion::V2)), "{text}");
        }
    }

    #[test]
    fn fifteen_hundred_iterations_stay_within_the_bound() {
        let (memory, logs, text) = after(1_500, 20);
        assert!(text.len() <= OWN_BYTES, "{}", text.len());
        assert!(memory.bytes <= OWN_BYTES);
        assert!(!logs.is_empty() && text.contains("[COMPACTION] Distilled iterations 0-1496 "), "{text}");
        assert_eq!(text.matches("the same as ever").count(), 1 + 3, "once of the old ones, and in the whole ones");
        for n in 1_497..1_500 {
            assert!(text.contains(&format!("## Iteration {n}\n")), "iteration {n}");
        }
        assert!(text.contains("more facts are there alone") && text.contains("evidence/loop/manifest.json"), "{text}");
    }

    #[test]
    fn a_witness_line_links_to_the_whole_entry() {
        let (_, _, text) = after(40, 20);
        let whole = render_entry(&entry(0, 20), SpecVersion::V2);
        let link = Link { path: entry_path(0), sha256: Digest::of(whole.as_bytes()) };
        let line = text.lines().find(|line| line.starts_with("- iter 0: ")).expect("a witness");
        assert!(line.ends_with(&format!("({link})")), "{line}");
    }

    #[test]
    fn facts_outlive_everything_else_of_their_iteration() {
        let (_, _, text) = after(40, 20);
        assert!(text.contains("- [A] fact 0 ("), "{text}");
        assert!(!text.contains("seen 0\n") && !text.contains("way 0 "), "{text}");
    }

    #[test]
    fn one_huge_entry_is_shortened_and_says_where_the_rest_is() {
        let mut huge = entry(0, 1);
        huge.tried = vec!["é".repeat(2_000); 50];
        huge.failed = (0..50).map(|n| claim(Lane::C, format!("{n} {}", "x".repeat(1_900)), n)).collect();
        let mut memory = Memory::default();
        let shrunk = memory.push(&huge, &header(), SpecVersion::V2, OWN_BYTES);
        let text = memory.render(&header(), SpecVersion::V2);
        let log = shrunk.shortened.expect("it is told").to_string();
        assert!(log.starts_with("[COMPACTION] Shortened iteration 0: ") && text.contains(&log), "{log}");
        assert_eq!(
            (shrunk.compaction, log.ends_with("evidence/loop/iter_0/agents_md_entry.md")),
            (None, true),
            "{log}"
        );
        assert!(text.len() <= OWN_BYTES && text.contains("more in evidence/loop/iter_0/agents_md_entry.md)"), "{text}");
        assert!(text.contains("- [A] fact 0 ("), "{text}");
    }
}
