//! What was used, by iteration, role and model.
//!
//! Role: fold requests, replies and broken attempts into rows. Not its role: prices; each event brings its cost.
//! Invariants: unknown plus anything is unknown; a request whose end nobody saw is counted as lost, with the most
//! it may have cost, never as free.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::decimal::Exact;
use crate::model::failure::FailureClass;
use crate::model::ids::Role;

use super::event::{LlmFailed, LlmRequested, LlmResponded, Usage};

/// Tokens, calls and money of one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Used {
    /// Requests that went out, answered or not.
    pub calls: u64,
    /// Input that no cache held.
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
    /// Part of the output.
    pub thinking: u64,
    pub searches: u64,
    /// `None`: unknown.
    pub cost_usd: Option<Exact>,
}

impl Default for Used {
    fn default() -> Self {
        let cost_usd = Some(Exact::ZERO);
        Self { calls: 0, input: 0, cache_read: 0, cache_write: 0, output: 0, thinking: 0, searches: 0, cost_usd }
    }
}

impl Used {
    fn add(&mut self, usage: &Usage, cost: Option<Exact>) {
        // The server's numbers are foreign: they must not wrap.
        for (sum, more) in [
            (&mut self.input, usage.input),
            (&mut self.cache_read, usage.cache_read),
            (&mut self.cache_write, usage.cache_write),
            (&mut self.output, usage.output),
            (&mut self.thinking, usage.thinking),
            (&mut self.searches, usage.web_searches),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.cost_usd = add_cost(self.cost_usd, cost);
    }

    /// Both together.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            thinking: self.thinking.saturating_add(other.thinking),
            searches: self.searches.saturating_add(other.searches),
            cost_usd: add_cost(self.cost_usd, other.cost_usd),
        }
    }
}

/// Which row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub iteration: u32,
    pub role: Role,
    pub model: String,
}

/// A request that is out.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Open {
    call: String,
    reserved_usd: Option<Exact>,
}

/// The whole run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    pub rows: BTreeMap<Row, Used>,
    /// Requests whose end nobody saw: the engine died, or the answer was cut before the server counted anything.
    pub lost: u64,
    /// The most they cost together; `None`: unknown.
    pub lost_usd: Option<Exact>,
    open: Option<Open>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), lost: 0, lost_usd: Some(Exact::ZERO), open: None }
    }
}

impl Ledger {
    pub(super) fn requested(&mut self, row: Row, requested: &LlmRequested) {
        self.lose();
        let used = self.rows.entry(row).or_default();
        used.calls = used.calls.saturating_add(1);
        self.open = Some(Open { call: requested.call.clone(), reserved_usd: requested.reserved_usd });
    }

    pub(super) fn responded(&mut self, row: Row, reply: &LlmResponded) {
        self.open = None;
        self.rows.entry(row).or_default().add(&reply.usage, reply.cost_usd);
    }

    /// A broken attempt costs what the server had counted. Where the server refused, that is nothing.
    pub(super) fn failed(&mut self, row: Row, failed: &LlmFailed) {
        match &failed.usage {
            Some(usage) => {
                self.open = None;
                self.rows.entry(row).or_default().add(usage, failed.cost_usd);
            }
            // It broke off before anything was counted: it may have cost its reserve.
            None if failed.class == FailureClass::Transient => self.lose(),
            None => self.open = None,
        }
    }

    /// Nobody will hear of the open request any more.
    pub(super) fn lose(&mut self) {
        if let Some(open) = self.open.take() {
            self.lost = self.lost.saturating_add(1);
            self.lost_usd = add_cost(self.lost_usd, open.reserved_usd);
        }
    }

    /// All rows of a role together.
    pub fn of_role(&self, role: Role) -> Used {
        let rows = self.rows.iter().filter(|(row, _)| row.role == role);
        rows.fold(Used::default(), |sum, (_, used)| sum.plus(used))
    }

    pub fn total(&self) -> Used {
        self.rows.values().fold(Used::default(), |sum, used| sum.plus(used))
    }
}

/// Unknown plus anything is unknown.
pub(super) fn add_cost(total: Option<Exact>, cost: Option<Exact>) -> Option<Exact> {
    total?.checked_add(cost?)
}
