//! What the blocks of earlier runs shrink to, so that all generated blocks of a file together stay within a bound.
//!
//! Role: a file with smaller earlier blocks, and a line per block about what went. Not its role: files; this run's own
//! block (see `bounded`); what a capsule shows of the result (see `earlier`).
//! Invariants: a function of the file alone. Bytes outside the generated blocks stay as they are. The oldest goes first:
//! a whole block becomes its facts, facts become one line, and a block of one line is counted in the next one. Facts go
//! last: not while a block is whole, nor while two blocks are lines. Every step is logged in the block and in the lines that come back; the
//! whole is in the run's archived evidence.

use std::collections::BTreeSet;

use super::bounded::OWN_BYTES;
use super::earlier::CAPSULE_BYTES;
use super::text::parse_claim;
use crate::model::ids::RunId;

use super::block::{extract, foreign, others, splice};

/// The most that blocks of earlier runs take in a file: with this run's own, 8,000 tokens.
pub const EARLIER_FILE_BYTES: usize = CAPSULE_BYTES - OWN_BYTES - MARKERS;
/// The two marker lines of a block.
const MARKERS: usize = 160;
/// Characters of a goal in a block of one line.
const SHORT_GOAL: usize = 120;

const RUN: &str = "[COMPACTION] Run ";
const ALONE: &str = "/manifest.json alone; ";
const BEFORE: &str = " and earlier are in evidence/archive/ alone";
pub(super) const GOAL: &str = "- goal: ";
pub(super) const FACT: &str = "- [A] ";

/// A file whose earlier blocks were made smaller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distilled {
    pub file: Vec<u8>,
    /// One line per step that was taken.
    pub log: Vec<String>,
}

/// Where the evidence of an earlier run lies now.
pub(super) fn archive(run: &str) -> String {
    format!("evidence/archive/{run}")
}

/// A line of an earlier run with its links as they resolve now.
pub(super) fn relinked(line: &str, run: &str) -> String {
    line.replace("evidence/loop/", &format!("{}/", archive(run)))
}

/// What makes two facts equal: their words, whatever shows them.
pub(super) fn words(line: &str) -> String {
    let claim = line.strip_prefix("- ").and_then(parse_claim);
    claim.map_or_else(|| line.to_owned(), |claim| claim.text)
}

/// Is it a line that says which facts of earlier runs do not stand here any more?
pub(super) fn is_log(line: &str) -> bool {
    (line.starts_with(RUN) && line.contains(ALONE))
        || line.strip_prefix("[COMPACTION] ").is_some_and(|rest| rest.ends_with(BEFORE))
}

/// The file with earlier blocks of at most `most` bytes; none when they have no more than that, or nothing can go.
pub fn distil(file: &[u8], own: &RunId, most: usize) -> Option<Distilled> {
    let mut done = Distilled { file: file.to_vec(), log: Vec::new() };
    while size(&done.file, own) > most {
        let blocks: Vec<Past> = others(&done.file, own).iter().filter_map(|run| Past::of(&done.file, run)).collect();
        let (file, log) = step(&done.file, &blocks)?;
        done.file = file;
        done.log.push(log);
    }
    (!done.log.is_empty()).then_some(done)
}

/// What the blocks of other runs take, with their markers.
fn size(file: &[u8], own: &RunId) -> usize {
    let without = others(file, own).iter().fold(file.to_vec(), |rest, run| foreign(&rest, run));
    file.len() - without.len()
}

/// Makes one block smaller: the oldest that is not as small as the others.
fn step(file: &[u8], blocks: &[Past]) -> Option<(Vec<u8>, String)> {
    let (past, text, log) = if let Some(at) = blocks.iter().position(|past| past.kind == Kind::Whole) {
        let newer = blocks[at + 1..].iter().flat_map(|past| &past.facts);
        let (text, log) = blocks[at].facts_alone(newer.map(|fact| words(fact)).collect());
        (&blocks[at], text, log)
    } else if let [oldest, next, ..] = blocks
        && (oldest.kind, next.kind) == (Kind::Line, Kind::Line)
    {
        let (text, log) = next.counting(oldest);
        let file = foreign(file, &oldest.run);
        return Some((splice(&file, &next.run, &text).ok()?, log));
    } else {
        let past = blocks.iter().find(|past| past.kind == Kind::Facts)?;
        let (text, log) = past.one_line();
        (past, text, log)
    };
    Some((splice(file, &past.run, &text).ok()?, log))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Facts,
    Line,
}

/// The block of an earlier run, as far as it is kept.
struct Past {
    run: RunId,
    kind: Kind,
    lines: usize,
    goal: Option<String>,
    facts: Vec<String>,
    /// The line about its own facts, and the one about runs before it.
    own_log: Option<String>,
    before: Option<String>,
}

impl Past {
    fn of(file: &[u8], run: &RunId) -> Option<Self> {
        let inner = extract(file, run).ok().flatten()?;
        let text = String::from_utf8_lossy(inner);
        let name = run.to_string();
        let find = |prefix: &str| text.lines().find(|line| line.starts_with(prefix)).map(str::to_owned);
        let own_log = find(&format!("{RUN}{name}: "));
        let goal = find(GOAL);
        let kind = match (&own_log, &goal) {
            (None, _) => Kind::Whole,
            (Some(_), Some(_)) => Kind::Facts,
            (Some(_), None) => Kind::Line,
        };
        let facts = text.lines().filter(|line| line.starts_with(FACT)).map(|line| relinked(line, &name)).collect();
        let before = text.lines().find(|line| line.ends_with(BEFORE)).map(str::to_owned);
        Some(Self { run: run.clone(), kind, lines: text.lines().count(), goal, facts, own_log, before })
    }

    fn text(&self, lines: &[String]) -> String {
        self.before.iter().chain(lines).map(|line| format!("{line}\n")).collect()
    }

    /// Its goal and its facts, but those that a newer run knows too.
    fn facts_alone(&self, mut known: BTreeSet<String>) -> (String, String) {
        let facts: Vec<&String> = self.facts.iter().filter(|fact| known.insert(words(fact))).collect();
        let twice = self.facts.len() - facts.len();
        let log = format!(
            "{RUN}{}: {} lines to {} facts, {twice} more are said elsewhere; whole: {}/manifest.json",
            self.run,
            self.lines,
            facts.len(),
            archive(&self.run.to_string())
        );
        let goal = self.goal.clone().unwrap_or_else(|| format!("{GOAL}(not known)"));
        let lines: Vec<String> = [log.clone(), goal].into_iter().chain(facts.into_iter().cloned()).collect();
        (self.text(&lines), log)
    }

    fn one_line(&self) -> (String, String) {
        let goal = self.goal.as_deref().and_then(|goal| goal.strip_prefix(GOAL)).unwrap_or_default();
        let goal: String = goal.chars().take(SHORT_GOAL).collect();
        let (facts, place) = (self.facts.len(), archive(&self.run.to_string()));
        let log = format!("{RUN}{}: {facts} facts are in {place}{ALONE}its goal: {goal}", self.run);
        (self.text(std::slice::from_ref(&log)), log)
    }

    /// This block, with an older one counted in it instead of standing by itself.
    fn counting(&self, oldest: &Self) -> (String, String) {
        let already = oldest.before.as_deref().and_then(|line| line.strip_prefix("[COMPACTION] "));
        let already = already.and_then(|line| line.split(' ').next()?.parse::<u32>().ok()).unwrap_or(0);
        let log = format!("[COMPACTION] {} runs: {}{BEFORE}", already.saturating_add(1), oldest.run);
        let lines = [Some(log.clone()), self.own_log.clone()];
        (lines.into_iter().flatten().map(|line| format!("{line}\n")).collect(), log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::digest::Digest;
    use crate::model::learnings::{blocks, for_capsule};

    const LETTERS: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

    fn run(number: usize) -> RunId {
        let letter = |at: usize| LETTERS.as_bytes()[at % 32] as char;
        RunId::parse(&format!("01ARZ3NDEKTSV4RRFFQ69G5F{}{}", letter(number / 32), letter(number))).unwrap()
    }

    /// A file with words of its owner between the blocks of `runs` earlier runs.
    fn file(runs: usize, facts: usize) -> Vec<u8> {
        let mut file = b"# House\r\nUse tabs.".to_vec();
        for number in 1..=runs {
            let fact = |n: usize| {
                format!(
                    "- [A] fact {number}.{n} (evidence/loop/iter_0/a.txt#{})\n- [B] seen {}\n",
                    Digest::of(b"x"),
                    "and more ".repeat(20)
                )
            };
            let facts: String = (0..facts).map(fact).collect();
            let text = format!("- goal: Goal {number}.\n- [A] always so\n{facts}");
            file = splice(&file, &run(number), &text).unwrap();
            file.extend_from_slice(format!("owner {number}\n").as_bytes());
        }
        file
    }

    fn owners(file: &[u8]) -> Vec<u8> {
        others(file, &run(0)).iter().fold(file.to_vec(), |rest, run| foreign(&rest, run))
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(distil(&file(3, 3), &run(0), EARLIER_FILE_BYTES), None);
        assert_eq!(distil(b"", &run(0), 0), None);
    }

    #[test]
    fn the_oldest_blocks_become_their_facts_and_the_owners_words_stay() {
        let before = file(5, 6);
        let done = distil(&before, &run(0), EARLIER_FILE_BYTES).unwrap();
        assert!(size(&done.file, &run(0)) <= EARLIER_FILE_BYTES);
        assert_eq!(owners(&done.file), owners(&before));
        let text = String::from_utf8(done.file.clone()).unwrap();
        let first = run(1).to_string();
        assert!(text.contains(&format!("- [A] fact 1.0 (evidence/archive/{first}/iter_0/a.txt#")), "{text}");
        assert!(text.contains("- goal: Goal 1.") && done.log[0].starts_with(&format!("{RUN}{first}: 14 lines")));
        assert!(text.contains(&done.log[0]), "what went is told in the block, too: {text}");
        assert_eq!(extract(&done.file, &run(5)).unwrap(), extract(&before, &run(5)).unwrap(), "the newest is whole");
        assert_eq!(text.matches("- [A] always so").count(), 5 - done.log.len(), "equal facts once: {text}");
        // What is distilled once is small enough for ever.
        assert_eq!(distil(&done.file, &run(0), EARLIER_FILE_BYTES), None);
    }

    #[test]
    fn hundreds_of_runs_stay_within_the_bound_and_are_counted() {
        let mut text = b"mine\n".to_vec();
        let mut steps = 0;
        for number in 1..=300 {
            let block = format!("- goal: Goal {number}.\n{}", format!("- [A] fact {number}\n").repeat(20));
            text = splice(&text, &run(number), &block).unwrap();
            if let Some(done) = distil(&text, &run(0), EARLIER_FILE_BYTES) {
                text = done.file;
                steps += done.log.len();
            }
            assert!(size(&text, &run(0)) <= EARLIER_FILE_BYTES, "after {number}");
        }
        let left = blocks(&text, &run(0)).len();
        let told = String::from_utf8(text.clone()).unwrap();
        assert!(told.contains(&format!("[COMPACTION] {} runs: ", 300 - left)), "{left} are left: {told}");
        assert!(steps > 500 && told.starts_with("mine\n") && told.contains("- [A] fact 300\n"), "{steps}");
        let capsule = for_capsule(&told, &run(0));
        assert!(capsule.contains(BEFORE), "a capsule says it, too: {capsule}");
    }
}
