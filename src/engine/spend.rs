//! Tokens and money of one call: what it may use before it is made, and what it has used while it runs.
//!
//! Role: reserve, shrink or refuse; watch the stream. Not its role: prices, recording.
//! Invariants: a call whose worst case does not fit what is left is made smaller or not made; a stream that passes
//! what is left is cut; nothing that the server counted is forgotten when a reply never ends.

use crate::agent::price::cautious_tokens;
use crate::agent::{CacheTtl, Delta, Price, Request, Thinking, Usage};
use crate::machine::event;
use crate::machine::run::RunState;
use crate::model::budget::{Dimension, Exhausted};
use crate::model::decimal::Exact;
use crate::model::learnings::estimate_tokens;

use super::setup::Setup;

/// A reply shorter than this cannot hold a report: such a call would be money for nothing.
const SHORTEST_REPLY: u32 = 256;
/// Bytes of a reply that are more than one token for sure.
const BYTES_PER_TOKEN_AT_MOST: u64 = 8;

/// The size of a request before the server has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Input tokens, as likely.
    pub tokens: u64,
    /// Input tokens, rather too many than too few: for money.
    pub cautious: u64,
}

impl Size {
    pub fn estimate(bytes: usize) -> Self {
        Self { tokens: estimate_tokens(bytes) as u64, cautious: cautious_tokens(bytes) }
    }

    pub const fn counted(tokens: u64) -> Self {
        Self { tokens, cautious: tokens }
    }
}

/// What is left for one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    pub tokens: Option<u64>,
    pub usd: Option<Exact>,
}

impl Left {
    /// A request whose end nobody saw may have cost its reserve.
    pub fn of(state: &RunState) -> Self {
        // What is unknown cannot be counted; what is known still bounds the rest.
        let known = state.spent.cost_usd.or(state.spent.known_cost_usd).unwrap_or(Exact::ZERO);
        let spent = known.checked_add(state.ledger.lost_usd.unwrap_or(Exact::ZERO));
        Self {
            tokens: state.limits.max_total_tokens.map(|limit| limit.saturating_sub(state.spent.tokens())),
            usd: state
                .limits
                .max_cost_usd
                .zip(spent)
                .map(|(limit, spent)| limit.checked_sub(spent).unwrap_or(Exact::ZERO)),
        }
    }

    /// Is an estimate not good enough? Within a fifth of a limit the server is asked to count.
    pub fn is_near(&self, size: Size, context: Option<u64>) -> bool {
        let near = |limit: u64| size.tokens.saturating_mul(5) >= limit.saturating_mul(4);
        self.tokens.is_some_and(near) || context.is_some_and(near)
    }
}

/// What may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    pub max_tokens: u32,
    pub reserved_usd: Option<Exact>,
    /// The limit that made the reply shorter.
    pub bound_by: Option<Dimension>,
}

/// Makes a call fit into what is left, or says which limit is in the way.
pub fn fit(request: &Request, size: Size, searches: u32, setup: &Setup, state: &RunState) -> Result<Fit, Exhausted> {
    let left = Left::of(state);
    let needed = shortest(request).min(request.max_tokens);
    let mut fit = Fit { max_tokens: request.max_tokens, reserved_usd: None, bound_by: None };
    if let Some(room) = setup.context.map(|context| context.saturating_sub(size.tokens)).filter(|room| *room > 0) {
        fit.max_tokens = fit.max_tokens.min(u32::try_from(room).unwrap_or(u32::MAX).max(needed));
    }
    if let Some(tokens) = left.tokens {
        let room = u32::try_from(tokens.saturating_sub(size.tokens)).unwrap_or(u32::MAX);
        if room < needed {
            let observed = state.spent.tokens().saturating_add(size.tokens).saturating_add(needed.into()).to_string();
            let limit = state.limits.max_total_tokens.unwrap_or_default().to_string();
            return Err(Exhausted { dimension: Dimension::TotalTokens, observed, limit });
        }
        if room < fit.max_tokens {
            (fit.max_tokens, fit.bound_by) = (room, Some(Dimension::TotalTokens));
        }
    }
    let Some(price) = &setup.price else { return Ok(fit) };
    if let (Some(usd), Some(limit)) = (left.usd, state.limits.max_cost_usd) {
        match price.affordable(usd, size.cautious, fit.max_tokens, searches, setup.cache) {
            Some(tokens) if tokens >= needed => {
                if tokens < fit.max_tokens {
                    (fit.max_tokens, fit.bound_by) = (tokens, Some(Dimension::CostUsd));
                }
            }
            Some(_) | None => {
                let least = price.reserve(size.cautious, needed, searches, setup.cache);
                let observed = limit.checked_sub(usd).zip(least).and_then(|(spent, least)| spent.checked_add(least));
                let observed = observed.map_or_else(|| "unknown".to_owned(), |usd| usd.to_string());
                return Err(Exhausted { dimension: Dimension::CostUsd, observed, limit: limit.to_string() });
            }
        }
    }
    fit.reserved_usd = price.reserve(size.cautious, fit.max_tokens, searches, setup.cache);
    Ok(fit)
}

/// The shortest reply that is worth asking for. A thinking budget must fit in besides.
fn shortest(request: &Request) -> u32 {
    match request.thinking {
        Some(Thinking::Enabled { budget_tokens }) => budget_tokens.saturating_add(SHORTEST_REPLY),
        Some(Thinking::Adaptive { .. } | Thinking::BetweenTools | Thinking::Disabled) | None => SHORTEST_REPLY,
    }
}

/// Watches one stream.
#[derive(Debug)]
pub struct Meter {
    left: Left,
    price: Option<(Price, Option<CacheTtl>)>,
    /// Bytes that the reply may have where a limit bounds it.
    longest: Option<(u64, Dimension)>,
    bytes: u64,
    usage: Option<Usage>,
    passed: Option<Dimension>,
    watching: bool,
}

impl Meter {
    pub fn new(fit: &Fit, setup: &Setup, state: &RunState) -> Self {
        Self {
            left: Left::of(state),
            price: setup.price.clone().map(|price| (price, setup.cache)),
            longest: fit.bound_by.map(|limit| (u64::from(fit.max_tokens) * BYTES_PER_TOKEN_AT_MOST, limit)),
            bytes: 0,
            usage: None,
            passed: None,
            watching: true,
        }
    }

    /// Takes one piece. True when a limit is passed and the stream must end.
    pub fn take(&mut self, delta: &Delta<'_>) -> bool {
        match delta {
            Delta::Text(text) | Delta::Thinking(text) | Delta::ToolInput(text) => self.bytes += text.len() as u64,
            Delta::ToolStarted { name } => self.bytes += name.len() as u64,
            Delta::Usage { usage, last } => {
                self.usage = Some(*usage);
                // The reply is written and paid: cutting it now would save nothing. The limit is seen next.
                if *last {
                    self.watching = false;
                }
            }
            Delta::Limits(_) => {}
        }
        if self.watching && self.passed.is_none() {
            self.passed = self.over();
        }
        self.passed.is_some()
    }

    /// Strictly more than is left: a reply that uses up the last token is still whole.
    fn over(&self) -> Option<Dimension> {
        if let Some(usage) = &self.usage {
            if self.left.tokens.is_some_and(|left| usage.total() > left) {
                return Some(Dimension::TotalTokens);
            }
            let cost = self.price.as_ref().and_then(|(price, ttl)| price.cost(usage, *ttl));
            if cost.zip(self.left.usd).is_some_and(|(cost, left)| cost > left) {
                return Some(Dimension::CostUsd);
            }
        }
        self.longest.filter(|(bytes, _)| self.bytes > *bytes).map(|(_, dimension)| dimension)
    }

    /// The limit that was passed.
    pub fn passed(&self) -> Option<Dimension> {
        self.passed
    }

    /// What a reply that never ended is owed: what the server counted, and at least what we saw of it.
    pub fn owed(&self) -> Option<Usage> {
        let mut usage = self.usage?;
        usage.output_tokens =
            usage.output_tokens.max(estimate_tokens(usize::try_from(self.bytes).unwrap_or(usize::MAX)) as u64);
        Some(usage)
    }
}

/// The server's numbers as the journal keeps them.
pub fn recorded(usage: &Usage) -> event::Usage {
    event::Usage {
        input: usage.input_tokens,
        cache_write: usage.cache_creation_input_tokens,
        cache_read: usage.cache_read_input_tokens,
        output: usage.output_tokens,
        thinking: usage.thinking_tokens,
        web_searches: usage.web_search_requests,
    }
}
