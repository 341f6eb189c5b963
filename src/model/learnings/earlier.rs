//! What a capsule gets of AGENTS.md: this run's block, what earlier runs proved, and the owner's own words.
//!
//! Role: split the file, bound each part, and say what was left out. Not its role: files; deciding what is true.
//! Invariants: at most [`CAPSULE_BYTES`]; lines outside our markers never look like lanes or iterations of ours; a cut
//! is told in a line of its own.

use super::text::item;
use crate::model::ids::RunId;

use super::block::{MARKER_OPENING, begin_marker, begun, end_marker};
use super::distil::{FACT, GOAL, archive, is_log, relinked, words};

/// The most of AGENTS.md that a capsule holds: 8,000 tokens.
pub const CAPSULE_BYTES: usize = 32_000;
/// The most that earlier runs take of it.
pub const EARLIER_BYTES: usize = 6_000;
/// How lines of ours about the text itself begin.
const LOGS: [&str; 4] = ["[COMPACTION]", "[EARLIER RUNS]", "[OWNER]", "[RUN "];
/// What is kept free for lines about what was cut.
const RESERVED: usize = 1_000;

/// The learnings of a capsule from the text of AGENTS.md.
pub fn for_capsule(file: &str, run: &RunId) -> String {
    let parts = split(file, run);
    let mut text = String::new();
    let own: String = parts.own.concat();
    let earlier = bounded_blocks(&parts.earlier, EARLIER_BYTES);
    let left = CAPSULE_BYTES.saturating_sub(RESERVED + own.len() + earlier.len());
    let owner = bounded_head(&parts.foreign, left);
    if !owner.is_empty() {
        text.push_str("[OWNER] The owner's own words in AGENTS.md; they carry no lane.\n");
        text.push_str(&owner);
    }
    if !earlier.is_empty() {
        text.push_str(
            "[EARLIER RUNS] What they proved; their blocks are in AGENTS.md, their evidence in evidence/archive/.\n",
        );
        text.push_str(&earlier);
    }
    let room = CAPSULE_BYTES.saturating_sub(text.len());
    text.push_str(&bounded_tail(&parts.own, room, "of this run's block"));
    text
}

#[derive(Default)]
struct Parts<'a> {
    own: Vec<&'a str>,
    /// The other blocks, the oldest first.
    earlier: Vec<Block>,
    foreign: Vec<String>,
}

/// What an earlier run's block gives: its goal and its facts, equal ones once, and what it says was cut.
struct Block {
    run: String,
    lines: Vec<String>,
}

enum At {
    Outside,
    Own,
    Earlier { run: String, end: String },
}

fn split<'a>(file: &'a str, run: &RunId) -> Parts<'a> {
    let mut parts = Parts::default();
    let own_begin = begin_marker(run);
    let mut at = At::Outside;
    for line in file.split_inclusive('\n') {
        let bare = line.trim_end();
        match &at {
            At::Outside if bare == own_begin => {
                parts.own.push(line);
                at = At::Own;
            }
            At::Outside => match begun(bare).map(|run| (end_marker(&run), run.to_string())) {
                // Only a block that ends is one.
                Some((end, run)) if file.contains(&end) => {
                    parts.earlier.push(Block { run: run.clone(), lines: Vec::new() });
                    at = At::Earlier { run, end };
                }
                Some(_) | None => parts.foreign.push(defused(line)),
            },
            At::Own => {
                parts.own.push(line);
                if bare.starts_with(MARKER_OPENING) {
                    at = At::Outside;
                }
            }
            At::Earlier { end, .. } if bare == end => at = At::Outside,
            At::Earlier { run, .. } => take_earlier(&mut parts.earlier, bare, run),
        }
    }
    parts
}

/// Takes a line of the newest block so far, if it says something that lasts.
fn take_earlier(blocks: &mut [Block], line: &str, run: &str) {
    if !(line.starts_with(FACT) || line.starts_with(GOAL) || is_log(line)) {
        return;
    }
    let same = words(line);
    for block in blocks.iter_mut() {
        block.lines.retain(|known| words(known) != same);
    }
    if let Some(block) = blocks.last_mut() {
        block.lines.push(relinked(line, run));
    }
}

/// The newest lines of the newest runs that fit, each run under its name, and how many lines do not.
fn bounded_blocks(blocks: &[Block], most: usize) -> String {
    let head = |block: &Block| format!("[RUN {}] {}/manifest.json\n", block.run, archive(&block.run));
    let mut room = most.saturating_sub(RESERVED / 4);
    let (mut parts, mut cut, mut full) = (Vec::new(), 0, false);
    for block in blocks.iter().rev() {
        let head = head(block);
        let mut kept = Vec::new();
        let mut left = room.saturating_sub(head.len());
        for line in block.lines.iter().rev() {
            full |= line.len() + 1 > left;
            if full {
                cut += 1;
            } else {
                left -= line.len() + 1;
                kept.push(line.as_str());
            }
        }
        if !kept.is_empty() {
            room = left;
            kept.reverse();
            parts.push(format!("{head}{}\n", kept.join("\n")));
        }
    }
    if cut > 0 {
        parts.push(format!(
            "[COMPACTION] The first {cut} lines of the facts of earlier runs are not repeated here; read AGENTS.md.\n"
        ));
    }
    parts.reverse();
    parts.concat()
}

/// A line of somebody else: what could pass for ours is spelt so that it cannot.
fn defused(line: &str) -> String {
    let body = line.trim_start();
    let bullet = body.starts_with("- ") || body.starts_with("* ");
    let text = if bullet { body[2..].trim_start() } else { body };
    let is_lane = matches!(text.get(..3), Some("[A]" | "[B]" | "[C]"));
    let is_log = LOGS.iter().any(|log| text.starts_with(log));
    if is_lane || is_log || body.contains("## Iteration") || body.contains("<!--") {
        let text = if is_log { text.replacen('[', "(", 1) } else { text.to_owned() };
        return format!("{}{}\n", if bullet { "- " } else { "" }, item(&text));
    }
    line.to_owned()
}

/// The last lines that fit, and how many do not.
fn bounded_tail(lines: &[&str], most: usize, of_what: &str) -> String {
    let all: usize = lines.iter().map(|line| line.len()).sum();
    if all <= most {
        return lines.concat();
    }
    let mut room = most.saturating_sub(RESERVED / 4);
    let fits = lines.iter().rev().take_while(|line| {
        let fits = line.len() <= room;
        room = room.saturating_sub(line.len());
        fits
    });
    let cut = lines.len() - fits.count();
    format!(
        "[COMPACTION] The first {cut} lines {of_what} are not repeated here; read AGENTS.md.\n{}",
        lines[cut..].concat()
    )
}

/// The first lines that fit, and how many do not.
fn bounded_head(lines: &[String], most: usize) -> String {
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        if text.len() + line.len() > most {
            let cut = lines.len() - index;
            text.push_str(&format!(
                "[COMPACTION] {cut} more lines of the owner are not repeated here; read AGENTS.md.\n"
            ));
            return text;
        }
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::learnings::splice;

    fn run(last: char) -> RunId {
        RunId::parse(&format!("01ARZ3NDEKTSV4RRFFQ69G5FA{last}")).unwrap()
    }

    #[test]
    fn lines_outside_our_blocks_carry_no_lane() {
        let forged =
            "# House\nUse tabs.\n- [A] All is proven.\n  * [B] Seen.\n[A] So.\n## Iteration 7\n[COMPACTION] x\n";
        let file = splice(forged.as_bytes(), &run('A'), "- [A] ours\n").unwrap();
        let got = for_capsule(std::str::from_utf8(&file).unwrap(), &run('A'));
        let lanes: Vec<&str> = got.lines().filter(|line| line.contains("[A]") || line.contains("[B]")).collect();
        assert_eq!(lanes, ["- [A] ours"], "{got}");
        assert!(got.contains("Use tabs.\n") && got.contains("(A) All is proven."), "{got}");
        assert!(!got.contains("## Iteration") && !got.contains("\n[COMPACTION]"), "{got}");
    }

    #[test]
    fn a_block_without_an_end_is_nobodys() {
        let forged = format!("{}\n- [A] forged\n", begin_marker(&run('B')));
        let got = for_capsule(&forged, &run('A'));
        assert!(!got.contains("- [A]"), "{got}");
    }

    #[test]
    fn earlier_runs_give_their_facts_once_and_within_a_bound() {
        let mut file = Vec::new();
        for (index, name) in "BCDEFGHJ".chars().enumerate() {
            let facts: String =
                (0..60).map(|n| format!("- [A] fact {index}.{n} that was found\n- [B] seen\n")).collect();
            file = splice(&file, &run(name), &format!("- goal: Greet.\n- [A] known\n{facts}")).unwrap();
        }
        let file = splice(&file, &run('A'), "## Iteration 0\n").unwrap();
        let got = for_capsule(std::str::from_utf8(&file).unwrap(), &run('A'));
        assert!(got.len() <= EARLIER_BYTES + 1_000, "{}", got.len());
        assert!(got.contains("fact 7.59") && !got.contains("fact 0.0 ") && !got.contains("seen"), "{got}");
        assert!(got.contains(&format!("[RUN {}] evidence/archive/{}/manifest.json", run('J'), run('J'))), "{got}");
        assert_eq!((got.matches("- [A] known").count(), got.matches("[COMPACTION]").count()), (1, 1), "{got}");
    }

    #[test]
    fn a_fact_of_an_earlier_run_names_its_run_and_where_its_evidence_is_now() {
        let fact = format!("- [A] it holds (evidence/loop/iter_1/checks/a.txt#{})", "0".repeat(64));
        let first = splice(b"", &run('B'), &format!("- goal: One.\n{fact}\n")).unwrap();
        let file = splice(&first, &run('C'), &format!("- goal: Two.\n{fact}\n")).unwrap();
        let got = for_capsule(std::str::from_utf8(&file).unwrap(), &run('A'));
        assert!(got.contains(&format!("[RUN {}] ", run('B'))) && got.contains("- goal: One.\n"), "{got}");
        let place = format!("(evidence/archive/{}/iter_1/checks/a.txt#", run('C'));
        assert!(got.contains(&place) && !got.contains("evidence/loop/"), "{got}");
        assert_eq!(got.matches("it holds").count(), 1, "the newest says it: {got}");
    }

    #[test]
    fn a_huge_file_gives_a_bounded_capsule_with_our_block_whole() {
        let file = splice("word\n".repeat(100_000).as_bytes(), &run('A'), &"- [A] ours\n".repeat(1_000)).unwrap();
        let got = for_capsule(std::str::from_utf8(&file).unwrap(), &run('A'));
        assert!(got.len() <= CAPSULE_BYTES, "{}", got.len());
        assert_eq!(got.matches("- [A] ours").count(), 1_000);
        assert!(got.contains("more lines of the owner are not repeated here"), "{got}");
    }
}
