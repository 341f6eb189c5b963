//! NORTHSTAR.md: the metrics a run must move towards, and how far away they are.
//!
//! Role: read metrics verbatim from three accepted shapes; read numbers out of them; measure distance.
//! Not its role: judging drift (the machine does), reading the file, watching its hash.
//! Invariants: texts are kept as written; ids are unique; a number is exact or absent; a metric without
//! numbers is listed as excluded, never counted as zero.

mod target;

use std::collections::BTreeSet;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::decimal::Exact;
use super::fraction::Fraction;

/// Larger files are refused.
pub const MOST_BYTES: usize = 1024 * 1024;
/// More metrics than this are refused.
pub const MOST_METRICS: usize = 200;

/// One victory condition, in the words of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    pub id: String,
    pub metric: String,
    pub current: String,
    pub target: String,
}

/// What NORTHSTAR.md says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Northstar {
    pub metrics: Vec<Metric>,
}

/// Why a NORTHSTAR.md cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NorthstarError {
    #[error("NORTHSTAR.md has {0} bytes: at most {MOST_BYTES} are read")]
    TooLarge(usize),
    #[error("NORTHSTAR.md has more than {MOST_METRICS} metrics")]
    TooMany,
    #[error("NORTHSTAR.md:{line}: the id `{id}` is used twice (first in line {first}): give each metric its own id")]
    DuplicateId { id: String, first: usize, line: usize },
    #[error("NORTHSTAR.md:{line}: {what}: write `- vc-1: metric | current | target`")]
    BadListLine { line: usize, what: String },
    #[error("NORTHSTAR.md:{line}: the block with `northstar_metrics` cannot be read: {why}")]
    BadBlock { line: usize, why: String },
    #[error(
        "no metric found in NORTHSTAR.md. Write one of these shapes:\n\
         \x20 a table:        | Metric | Current | Target |\n\
         \x20                 |--------|---------|--------|\n\
         \x20                 | tests passing | 12 | 40 |\n\
         \x20 a list line:    - vc-1: tests passing | 12 | 40\n\
         \x20 a fenced block: ```yaml\n\
         \x20                 northstar_metrics:\n\
         \x20                   - {{id: vc-1, metric: tests passing, current: \"12\", target: \"40\"}}\n\
         \x20                 ```"
    )]
    NothingFound,
}

/// A metric as found, before it has an id for certain.
struct Found {
    line: usize,
    id: Option<String>,
    metric: String,
    current: String,
    target: String,
}

/// Reads every metric in order of appearance, whatever its shape.
pub fn parse(text: &str) -> Result<Northstar, NorthstarError> {
    if text.len() > MOST_BYTES {
        return Err(NorthstarError::TooLarge(text.len()));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() && found.len() <= MOST_METRICS {
        at = if let Some(fence) = Fence::opening(lines[at]) {
            fence.read(&lines, at, &mut found)?
        } else if lines[at].trim_start().starts_with("<!--") {
            after_comment(&lines, at)
        } else if let Some(columns) = Columns::of(&lines, at) {
            columns.read(&lines, at + 2, &mut found)
        } else {
            found.extend(list_line(lines[at], at + 1)?);
            at + 1
        };
    }
    if found.len() > MOST_METRICS {
        return Err(NorthstarError::TooMany);
    }
    if found.is_empty() {
        return Err(NorthstarError::NothingFound);
    }
    Ok(Northstar { metrics: with_ids(found)? })
}

/// Given ids are kept; the others are numbered in order, stepping over given ones.
fn with_ids(found: Vec<Found>) -> Result<Vec<Metric>, NorthstarError> {
    let mut given: Vec<(String, usize)> = Vec::new();
    for one in &found {
        let Some(id) = &one.id else { continue };
        if let Some((_, first)) = given.iter().find(|(known, _)| known == id) {
            return Err(NorthstarError::DuplicateId { id: id.clone(), first: *first, line: one.line });
        }
        given.push((id.clone(), one.line));
    }
    let taken: BTreeSet<String> = given.into_iter().map(|(id, _)| id).collect();
    let mut free = (1u32..).map(|number| format!("vc-{number}")).filter(|id| !taken.contains(id));
    Ok(found
        .into_iter()
        .map(|one| Metric {
            id: one.id.or_else(|| free.next()).unwrap_or_default(),
            metric: one.metric,
            current: one.current,
            target: one.target,
        })
        .collect())
}

/// A comment that starts a line hides everything up to the line where it ends.
fn after_comment(lines: &[&str], at: usize) -> usize {
    let end = lines.iter().skip(at).position(|line| line.contains("-->"));
    end.map_or(lines.len(), |offset| at + offset + 1)
}

/// An opened code fence. Only YAML and JSON are looked into; the rest is somebody's example.
struct Fence {
    mark: String,
    language: String,
}

impl Fence {
    fn opening(line: &str) -> Option<Self> {
        let line = line.trim();
        let first = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = line.chars().take_while(|c| *c == first).count();
        let language = line[length..].split_whitespace().next().unwrap_or_default().to_lowercase();
        (length >= 3).then(|| Self { mark: first.to_string().repeat(length), language })
    }

    /// Returns the line after the fence.
    fn read(&self, lines: &[&str], at: usize, found: &mut Vec<Found>) -> Result<usize, NorthstarError> {
        let closes = |line: &&str| {
            let line = line.trim();
            line.starts_with(&self.mark) && line.trim_start_matches(['`', '~']).is_empty()
        };
        let end = lines.iter().skip(at + 1).position(closes).map_or(lines.len(), |offset| at + 1 + offset);
        let body = lines[at + 1..end.max(at + 1).min(lines.len())].join("\n");
        let json = self.language == "json";
        if (json || matches!(self.language.as_str(), "yaml" | "yml")) && body.contains("northstar_metrics") {
            let items = if json { block::json(&body) } else { block::yaml(&body) };
            let line = at + 1;
            for item in items.map_err(|why| NorthstarError::BadBlock { line, why })? {
                found.push(item.found(line)?);
            }
        }
        Ok(end + 1)
    }
}

/// The fenced block: every value is taken as the text that stands there, so that no number passes
/// through floating point.
mod block {
    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::{Found, NorthstarError};

    #[derive(Deserialize)]
    #[serde(bound(deserialize = "T: Deserialize<'de>"))]
    struct Document<T> {
        northstar_metrics: Option<Vec<Item<T>>>,
    }

    #[derive(Deserialize)]
    #[serde(bound(deserialize = "T: Deserialize<'de>"))]
    pub struct Item<T> {
        id: Option<T>,
        metric: Option<T>,
        description: Option<T>,
        #[serde(alias = "now")]
        current: Option<T>,
        target: Option<T>,
    }

    impl<T> Item<T> {
        fn map<U>(self, to: impl Fn(T) -> Result<U, String>) -> Result<Item<U>, String> {
            Ok(Item {
                id: self.id.map(&to).transpose()?,
                metric: self.metric.map(&to).transpose()?,
                description: self.description.map(&to).transpose()?,
                current: self.current.map(&to).transpose()?,
                target: self.target.map(&to).transpose()?,
            })
        }
    }

    impl Item<String> {
        pub fn found(self, line: usize) -> Result<Found, NorthstarError> {
            let missing = |key: &str| NorthstarError::BadBlock { line, why: format!("a metric has no `{key}`") };
            let filled = |text: &String| !text.trim().is_empty();
            Ok(Found {
                line,
                id: self.id.filter(filled),
                metric: self.metric.or(self.description).filter(filled).ok_or_else(|| missing("metric"))?,
                current: self.current.unwrap_or_else(|| "unknown".to_owned()),
                target: self.target.ok_or_else(|| missing("target"))?,
            })
        }
    }

    pub fn yaml(body: &str) -> Result<Vec<Item<String>>, String> {
        let document: Document<String> = serde_yaml::from_str(body).map_err(|error| error.to_string())?;
        Ok(document.northstar_metrics.unwrap_or_default())
    }

    pub fn json(body: &str) -> Result<Vec<Item<String>>, String> {
        let document: Document<Box<RawValue>> = serde_json::from_str(body).map_err(|error| error.to_string())?;
        document.northstar_metrics.unwrap_or_default().into_iter().map(|item| item.map(|raw| scalar(&raw))).collect()
    }

    fn scalar(raw: &RawValue) -> Result<String, String> {
        match raw.get().as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw.get()).map_err(|error| error.to_string()),
            Some(b'{' | b'[') => Err("a metric's values must be texts or numbers".to_owned()),
            _ => Ok(raw.get().to_owned()),
        }
    }
}

/// Which cells of a table row are which.
struct Columns {
    id: Option<usize>,
    metric: usize,
    current: usize,
    target: usize,
}

impl Columns {
    /// Is this line the header of a table of metrics?
    fn of(lines: &[&str], at: usize) -> Option<Self> {
        let header = cells(lines.get(at)?)?;
        let rule = cells(lines.get(at + 1)?)?;
        if !rule.iter().all(|cell| cell.contains('-') && cell.chars().all(|c| matches!(c, '-' | ':'))) {
            return None;
        }
        let words: Vec<Vec<String>> = header
            .iter()
            .map(|cell| cell.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect())
            .collect();
        let column =
            |names: &[&str]| words.iter().position(|cell| cell.iter().any(|word| names.contains(&word.as_str())));
        let metric = column(&["metric", "metrics"])?;
        let current = column(&["now", "current"])?;
        let target = column(&["target"]).unwrap_or(header.len() - 1);
        let id = header.iter().position(|cell| cell.eq_ignore_ascii_case("id"));
        (metric != current && target != metric && target != current).then_some(Self { id, metric, current, target })
    }

    /// Returns the line after the table.
    fn read(&self, lines: &[&str], from: usize, found: &mut Vec<Found>) -> usize {
        for (at, line) in lines.iter().enumerate().skip(from) {
            let Some(row) = cells(line) else { return at };
            let cell = |column: usize| row.get(column).cloned().unwrap_or_default();
            if cell(self.metric).is_empty() {
                continue;
            }
            found.push(Found {
                line: at + 1,
                id: self.id.map(cell).filter(|id| !id.is_empty()),
                metric: cell(self.metric),
                current: cell(self.current),
                target: cell(self.target),
            });
        }
        lines.len()
    }
}

/// The trimmed cells of a table row; `\|` is a bar inside a cell.
fn cells(line: &str) -> Option<Vec<String>> {
    let line = line.trim();
    if !line.contains('|') {
        return None;
    }
    let mut cells = vec![String::new()];
    let mut chars = line.strip_prefix('|').unwrap_or(line).chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek(), cells.last_mut()) {
            ('\\', Some('|'), Some(cell)) => {
                cell.push('|');
                chars.next();
            }
            ('|', None, _) => {}
            ('|', Some(_), _) => cells.push(String::new()),
            (c, _, Some(cell)) => cell.push(c),
            (_, _, None) => {}
        }
    }
    Some(cells.into_iter().map(|cell| cell.trim().to_owned()).collect())
}

/// `- vc-1: metric | current | target`, the id being optional.
fn list_line(line: &str, number: usize) -> Result<Option<Found>, NorthstarError> {
    let Some(item) = ["- ", "* ", "+ "].iter().find_map(|bullet| line.trim().strip_prefix(bullet)) else {
        return Ok(None);
    };
    let (id, rest) = match item.split_once(':') {
        Some((id, rest)) if is_id(id) && rest.starts_with(char::is_whitespace) => (Some(id.to_owned()), rest),
        _ => (None, item),
    };
    let Some(parts) = cells(rest) else { return Ok(None) };
    match <[String; 3]>::try_from(parts) {
        Ok([metric, current, target]) if !metric.is_empty() => {
            Ok(Some(Found { line: number, id, metric, current, target }))
        }
        // With an id it was meant as a metric; dropping it would hide it.
        _ if id.is_some() => Err(NorthstarError::BadListLine {
            line: number,
            what: "a metric needs three parts between bars".to_owned(),
        }),
        _ => Ok(None),
    }
}

fn is_id(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Words that multiply: a number before one of them is not the value.
const MULTIPLIERS: [&str; 17] = [
    "k", "m", "b", "g", "t", "bn", "mn", "mio", "mrd", "hundred", "thousand", "million", "millions", "billion",
    "billions", "trillion", "dozen",
];

/// The number in a cell such as `~50`, `1,000`, `>= 80%` or `100+ skills`. None when there is none, when it
/// could be read in two ways (`1,5`, `5k`, `3 of 10`), or when it cannot be held exactly.
pub fn number(text: &str) -> Option<Decimal> {
    let text = text.trim().trim_matches(['*', '`', '_']);
    let text =
        text.trim_start_matches(|c: char| matches!(c, '~' | '<' | '>' | '=' | '≈' | '≤' | '≥') || c.is_whitespace());
    let (negative, text) = match text.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let end = numeral_end(text);
    let rest = text[end..].trim_start_matches(['+', '%']);
    let word_follows =
        rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || c.is_alphabetic() || c == '°');
    let word = rest.trim_start().split(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    if !word_follows || rest.contains(|c: char| c.is_numeric()) || MULTIPLIERS.contains(&word.as_str()) {
        return None;
    }
    let value = Exact::parse(&without_commas(&text[..end])?).ok()?.decimal();
    Some(if negative && !value.is_zero() { -value } else { value })
}

/// Where digits, commas, a point and a well-formed exponent end.
fn numeral_end(text: &str) -> usize {
    let plain = text.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '.').unwrap_or(text.len());
    let Some(power) = text[plain..].strip_prefix(['e', 'E']) else { return plain };
    let digits = power.strip_prefix(['-', '+']).unwrap_or(power);
    match digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()) {
        0 => plain,
        count => text.len() - digits.len() + count,
    }
}

/// Commas are allowed only between groups of three digits before the point.
fn without_commas(text: &str) -> Option<String> {
    if !text.contains(',') {
        return Some(text.to_owned());
    }
    let (whole, tail) = text.split_at(text.find(['.', 'e', 'E']).unwrap_or(text.len()));
    let mut groups = whole.split(',');
    let first = groups.next().is_some_and(|group| (1..=3).contains(&group.len()));
    (first && groups.all(|group| group.len() == 3) && !tail.contains(',')).then(|| whole.replace(',', "") + tail)
}

/// How far the metrics are from their targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distance {
    /// The mean of the relative distances; none when no metric has numbers.
    pub total: Option<Fraction>,
    /// Ids of metrics that were left out: no number to read, or a sum that does not fit.
    pub excluded: Vec<String>,
}

/// The mean of the relative distances to what the targets ask for.
pub fn distance(metrics: &[Metric]) -> Distance {
    mean(metrics, target::distance)
}

/// The same with every target as a point, whatever sign stands before it: how older runs were measured.
pub fn distance_to_points(metrics: &[Metric]) -> Distance {
    mean(metrics, relative)
}

fn mean(metrics: &[Metric], one: impl Fn(&Metric) -> Option<Fraction>) -> Distance {
    let mut sum = Fraction::zero();
    let mut count = 0u64;
    let mut excluded = Vec::new();
    for metric in metrics {
        match one(metric).and_then(|distance| sum.checked_add(distance)) {
            Some(longer) => {
                sum = longer;
                count += 1;
            }
            None => excluded.push(metric.id.clone()),
        }
    }
    Distance { total: sum.checked_div(Fraction::from_integer(count)), excluded }
}

/// |current - target| / |target|; for a target of zero, |current|.
fn relative(metric: &Metric) -> Option<Fraction> {
    let current = Fraction::from_decimal(number(&metric.current)?)?;
    let target = Fraction::from_decimal(number(&metric.target)?)?;
    let gap = current.checked_sub(target)?.abs();
    if target.is_zero() { Some(gap) } else { gap.checked_div(target.abs()) }
}

#[cfg(test)]
#[path = "northstar_tests.rs"]
mod tests;
