//! What it cost: by iteration, role and model, and what is left of the limit. Exact decimals; unknown is not zero.

use serde::Serialize;

use crate::machine::ledger::Used;
use crate::machine::run::RunState;
use crate::model::decimal::Exact;

use super::quoted;

#[derive(Debug, Clone, Serialize)]
pub struct Money {
    /// `None`: unknown.
    pub cost_usd: Option<Exact>,
    pub known_cost_usd: Option<Exact>,
    pub limit_usd: Option<Exact>,
    /// `None`: there is no limit, or the cost is unknown.
    pub left_usd: Option<Exact>,
    pub tokens: u64,
    pub requests: u64,
    pub tool_calls: u64,
    pub by_iteration: Vec<Share>,
    pub by_role: Vec<Share>,
    pub by_model: Vec<Share>,
    /// Requests whose end nobody saw, and the most they may have cost.
    pub lost: u64,
    pub lost_at_most_usd: Option<Exact>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Share {
    pub of: String,
    pub calls: u64,
    pub tokens: u64,
    pub cost_usd: Option<Exact>,
}

pub(super) fn of(state: &RunState) -> Money {
    let spent = &state.spent;
    let cost_usd = spent.cost_usd;
    let limit_usd = state.limits.max_cost_usd;
    Money {
        cost_usd,
        known_cost_usd: spent.known_cost_usd,
        limit_usd,
        left_usd: limit_usd.zip(cost_usd).map(|(limit, cost)| limit.checked_sub(cost).unwrap_or(Exact::ZERO)),
        tokens: spent.tokens(),
        requests: spent.requests,
        tool_calls: spent.tool_calls,
        by_iteration: shares(state, |row| row.iteration.to_string()),
        by_role: shares(state, |row| row.role.name().to_owned()),
        by_model: shares(state, |row| quoted(&row.model)),
        lost: state.ledger.lost,
        lost_at_most_usd: state.ledger.lost_usd,
    }
}

/// The rows of the ledger put together by what `name` says, in the ledger's order.
fn shares(state: &RunState, name: impl Fn(&crate::machine::ledger::Row) -> String) -> Vec<Share> {
    let mut sums: Vec<(String, Used)> = Vec::new();
    for (row, used) in &state.ledger.rows {
        let name = name(row);
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum = sum.plus(used),
            None => sums.push((name, used.clone())),
        }
    }
    let share = |(of, used): (String, Used)| Share {
        of,
        calls: used.calls,
        tokens: [used.input, used.cache_read, used.cache_write, used.output].into_iter().fold(0, u64::saturating_add),
        cost_usd: used.cost_usd,
    };
    sums.into_iter().map(share).collect()
}
