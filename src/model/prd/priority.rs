//! How urgent an item is, as far as that can be compared.
//!
//! Role: read priorities and order them: the lowest number, or the most urgent word, first.
//! Not its role: choosing an item. Invariants: numbers are exact; no item without a priority counts as urgent; a file
//! keeps to one scale, since nobody can say whether 2 comes before "high".

use rust_decimal::Decimal;

use super::error::{Why, quote};
use super::is;
use super::item::Item;
use super::json::{JsonKind, Member};
use crate::model::decimal::Exact;

/// Words of a scale with their ranks.
type Words = &'static [(&'static str, u32)];

const LEVELS: Words = &[
    ("blocker", 0),
    ("critical", 1),
    ("urgent", 1),
    ("highest", 1),
    ("high", 2),
    ("medium", 3),
    ("normal", 3),
    ("moderate", 3),
    ("low", 4),
    ("lowest", 5),
    ("trivial", 5),
];
const NEEDS: Words = &[
    ("must", 0),
    ("musthave", 0),
    ("should", 1),
    ("shouldhave", 1),
    ("could", 2),
    ("couldhave", 2),
    ("nicetohave", 2),
];

/// What kinds of priority can be compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scale {
    /// 1 is first.
    Numbers,
    /// critical, high, medium, low.
    Levels,
    /// must, should, could.
    Needs,
    /// P0 to P9.
    Classes,
}

/// A priority, as written and as compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priority {
    pub written: String,
    pub scale: Scale,
    /// The lowest comes first.
    pub rank: Decimal,
}

impl Priority {
    /// None where there is none; null is none. The byte is where the trouble is.
    pub(super) fn read(text: &str, item: &str, member: Option<&Member>) -> Result<Option<Self>, (usize, Why)> {
        let Some(Member { value, .. }) = member else { return Ok(None) };
        let (written, read) = match &value.kind {
            JsonKind::Null => return Ok(None),
            JsonKind::Number => (value.span.of(text), number(value.span.of(text)).map(|rank| (Scale::Numbers, rank))),
            JsonKind::Text(word) if word.trim().is_empty() => return Ok(None),
            JsonKind::Text(word) => (word.as_str(), word_or_number(word.trim())),
            JsonKind::Flag(_) | JsonKind::List(_) | JsonKind::Object(_) => (value.noun(), None),
        };
        let bad = || (value.span.start, Why::BadPriority { item: quote(item), found: quote(written) });
        let (scale, rank) = read.ok_or_else(bad)?;
        Ok(Some(Self { written: written.to_owned(), scale, rank }))
    }
}

fn word_or_number(word: &str) -> Option<(Scale, Decimal)> {
    let of = |words: Words| words.iter().find(|(known, _)| is(word, known)).map(|(_, rank)| Decimal::from(*rank));
    let class = || word.strip_prefix(['p', 'P']).filter(|digits| digits.len() == 1)?.parse::<u32>().ok();
    None.or_else(|| Some((Scale::Levels, of(LEVELS)?)))
        .or_else(|| Some((Scale::Needs, of(NEEDS)?)))
        .or_else(|| Some((Scale::Classes, Decimal::from(class()?))))
        .or_else(|| Some((Scale::Numbers, number(word)?)))
}

/// Any decimal that can be held exactly; priorities may be below zero.
fn number(digits: &str) -> Option<Decimal> {
    let magnitude = Exact::parse(digits.strip_prefix('-').unwrap_or(digits)).ok()?.decimal();
    Some(if digits.starts_with('-') { -magnitude } else { magnitude })
}

/// All priorities of a file can be compared.
pub(super) fn one_scale(items: &[Item]) -> Result<(), (usize, Why)> {
    let mut with = items.iter().filter_map(|item| Some((item, item.priority.as_ref()?)));
    let Some((other, there)) = with.next() else { return Ok(()) };
    match with.find(|(_, here)| here.scale != there.scale) {
        None => Ok(()),
        Some((item, here)) => {
            let why = Why::TwoScales {
                item: quote(&item.id),
                here: quote(&here.written),
                other: quote(&other.id),
                there: quote(&there.written),
            };
            Err((item.span.start, why))
        }
    }
}
