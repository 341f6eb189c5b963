//! Which item comes next, and how far the work is.
//!
//! Role: choose one item that does not pass; count; the residual. Not its role: how often an item may be tried.
//! Invariants: the order is priority ascending, then file order, and items without a priority come last; an item comes
//! after those it waits for; only an explicit request skips an item; the residual is exact, and 0 only when every item passes.

use std::collections::BTreeSet;

use super::error::quote;
use super::{Item, Needs, Prd, Waiting};
use crate::model::certificate::Residual;
use crate::model::fraction::Fraction;

/// A ratio is written with as many places, rounded up: a run never looks nearer to its goal than it is.
const RATIO_PLACES: u32 = 12;

/// How many items there are of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub all: u32,
    pub passing: u32,
    pub failing: u32,
}

/// Why no item can be worked on as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoChoice {
    #[error("{0} items were named: name one, an iteration works on one item")]
    Several(usize),
    #[error("there is no item `{}` in the PRD", quote(.0))]
    Unknown(String),
    #[error("item `{}` passes already: name one that does not", quote(.0))]
    PassesAlready(String),
}

impl Prd {
    /// The places of the items in the file, in the order of the work.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        // Of equals the first stays, which is file order.
        order.sort_by_key(|index| {
            let priority = self.items[*index].priority.as_ref();
            (priority.is_none(), priority.map(|priority| priority.rank))
        });
        order
    }

    /// The next item to work on, if any is left that is not to be skipped and waits for no other.
    pub fn next_item(&self, skip: &BTreeSet<String>) -> Option<&Item> {
        let needs = Needs::of(&self.waiting());
        let mut order = self.order().into_iter();
        let may = |item: &Item| !item.passes && !skip.contains(&item.id);
        order.find(|index| may(&self.items[*index]) && needs.open[*index].is_empty()).map(|index| &self.items[index])
    }

    /// The items in file order, as far as waiting goes.
    pub fn waiting(&self) -> Vec<Waiting<'_>> {
        let items = self.items.iter();
        let mut waiting: Vec<Waiting<'_>> =
            items.map(|item| Waiting { id: &item.id, passes: item.passes, order: 0, needs: &item.needs }).collect();
        for (order, index) in (0..).zip(self.order()) {
            waiting[index].order = order;
        }
        waiting
    }

    /// The item that was named, or the next one where none was.
    pub fn choose(&self, named: &[String], skip: &BTreeSet<String>) -> Result<Option<&Item>, NoChoice> {
        match named {
            [] => Ok(self.next_item(skip)),
            [id] => {
                let item = self.item(id).ok_or_else(|| NoChoice::Unknown(id.clone()))?;
                if item.passes { Err(NoChoice::PassesAlready(id.clone())) } else { Ok(Some(item)) }
            }
            several => Err(NoChoice::Several(several.len())),
        }
    }

    pub fn counts(&self) -> Counts {
        let count = |passes| self.items.iter().filter(|item| item.passes == passes).count();
        // At most MOST_ITEMS, so this never saturates.
        let [passing, failing] = [true, false].map(|passes| u32::try_from(count(passes)).unwrap_or(u32::MAX));
        Counts { all: passing.saturating_add(failing), passing, failing }
    }

    /// Items that do not pass / all items.
    pub fn unmet(&self) -> Fraction {
        let Counts { all, failing, .. } = self.counts();
        // There is always an item; were there none, nothing would be proven.
        Fraction::new(i128::from(failing), i128::from(all)).unwrap_or(Fraction::from_integer(1))
    }

    /// The same as the machine wants it. None is never the case: a ratio of counts can be written.
    pub fn residual(&self) -> Option<Residual> {
        let Counts { all, failing, .. } = self.counts();
        let value = self.unmet().to_exact_rounded_up(RATIO_PLACES)?;
        Some(Residual { value, unmet_of: Some((failing, all)) })
    }
}
