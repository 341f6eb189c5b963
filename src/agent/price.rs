//! What a call costs, exactly.
//!
//! Role: prices as data, the cost of a finished call, the most an open one may cost.
//! Not its role: where prices come from ([`super::models`]), what is done about them (the engine).
//!
//! Invariants: nothing passes through floating point; what cannot be priced has no cost (`None`), never zero.

use super::message::Usage;
use crate::model::decimal::Exact;
use crate::model::loop_file::{CacheDecl, PriceDecl};
use serde::Deserialize;

/// US dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    pub input: Exact,
    pub output: Exact,
    pub cache_read: Exact,
    pub cache_write_5m: Exact,
    pub cache_write_1h: Exact,
}

/// The price of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    pub rates: Rates,
    /// Other rates for the whole request once its prompt, cached parts included, is longer than this.
    pub above: Option<(u64, Rates)>,
    /// One search by the server.
    pub web_search: Option<Exact>,
}

/// How long the server keeps a prefix: it decides what writing it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheTtl {
    FiveMinutes,
    Hour,
}

impl CacheTtl {
    /// As declared; `None`: no caching. An hour is the default: a check or a build between two requests takes
    /// longer than five minutes often enough, and one lost prefix costs more than the dearer write.
    pub const fn declared(cache: Option<CacheDecl>) -> Option<Self> {
        match cache {
            None | Some(CacheDecl::Hour) => Some(Self::Hour),
            Some(CacheDecl::FiveMinutes) => Some(Self::FiveMinutes),
            Some(CacheDecl::Off) => None,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::FiveMinutes => "5m",
            Self::Hour => "1h",
        }
    }
}

/// Tokens per million, as a factor.
fn per_token() -> Option<Exact> {
    Exact::parse("0.000001").ok()
}

fn part(tokens: u64, per_million: Exact) -> Option<Exact> {
    Exact::from_u64(tokens).checked_mul(per_million)?.checked_mul(per_token()?)
}

impl Price {
    /// From loop.yaml. Cache prices that it leaves out follow the vendor's rule for writing (1.25 and 2 times the
    /// input), and for reading the input price: never less than is charged.
    pub fn declared(decl: &PriceDecl, web_search: Option<Exact>) -> Option<Self> {
        let times = |factor: &str| decl.input.checked_mul(Exact::parse(factor).ok()?);
        let rates = Rates {
            input: decl.input,
            output: decl.output,
            cache_read: decl.cache_read.unwrap_or(decl.input),
            cache_write_5m: decl.cache_write.or_else(|| times("1.25"))?,
            cache_write_1h: decl.cache_write.or_else(|| times("2"))?,
        };
        Some(Self { rates, above: None, web_search })
    }

    /// The rates for a prompt of this length.
    fn rates(&self, prompt_tokens: u64) -> &Rates {
        match &self.above {
            Some((limit, above)) if prompt_tokens > *limit => above,
            _ => &self.rates,
        }
    }

    /// What a call cost. `ttl` is what was asked for; the server's own split of the cache writes wins over it.
    pub fn cost(&self, usage: &Usage, ttl: Option<CacheTtl>) -> Option<Exact> {
        let rates = self.rates(usage.prompt());
        let written = usage.cache_creation_input_tokens;
        let for_an_hour = match (usage.cache_creation_1h_input_tokens, ttl) {
            (Some(tokens), _) => tokens.min(written),
            (None, Some(CacheTtl::Hour)) => written,
            (None, Some(CacheTtl::FiveMinutes) | None) => 0,
        };
        let searches = match usage.web_search_requests {
            0 => Exact::ZERO,
            count => Exact::from_u64(count).checked_mul(self.web_search?)?,
        };
        part(usage.input_tokens, rates.input)?
            .checked_add(part(usage.output_tokens, rates.output)?)?
            .checked_add(part(usage.cache_read_input_tokens, rates.cache_read)?)?
            .checked_add(part(for_an_hour, rates.cache_write_1h)?)?
            .checked_add(part(written - for_an_hour, rates.cache_write_5m)?)?
            .checked_add(searches)
    }

    /// The most a call may cost before it is made: nothing cached yet, every token of the reply used. What the
    /// server's own tools read is not in it; nobody can know that before.
    pub fn reserve(&self, input_tokens: u64, max_tokens: u32, searches: u32, ttl: Option<CacheTtl>) -> Option<Exact> {
        let rates = self.rates(input_tokens);
        let input = match ttl {
            Some(CacheTtl::Hour) => rates.cache_write_1h.max(rates.input),
            Some(CacheTtl::FiveMinutes) => rates.cache_write_5m.max(rates.input),
            None => rates.input,
        };
        let searches = match searches {
            0 => Exact::ZERO,
            count => Exact::from_u64(count.into()).checked_mul(self.web_search?)?,
        };
        part(input_tokens, input)?.checked_add(part(max_tokens.into(), rates.output)?)?.checked_add(searches)
    }

    /// The longest reply, at most `wanted` tokens, whose reserve fits into `left`; `None`: not even an empty one.
    pub fn affordable(
        &self,
        left: Exact,
        input_tokens: u64,
        wanted: u32,
        searches: u32,
        ttl: Option<CacheTtl>,
    ) -> Option<u32> {
        let fits = |tokens: u32| self.reserve(input_tokens, tokens, searches, ttl).is_some_and(|cost| cost <= left);
        if !fits(0) {
            return None;
        }
        // The reserve grows with the tokens: halve the range until its edge is found.
        let (mut low, mut high) = (0, wanted);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if fits(middle) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Some(low)
    }
}

/// Tokens that `bytes` of a request are at most likely to be: newer models count some 30 % more than a quarter.
pub fn cautious_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exact(text: &str) -> Exact {
        Exact::parse(text).unwrap()
    }

    fn rates(input: &str, output: &str, read: &str, five: &str, hour: &str) -> Rates {
        let [input, output, cache_read, cache_write_5m, cache_write_1h] = [input, output, read, five, hour].map(exact);
        Rates { input, output, cache_read, cache_write_5m, cache_write_1h }
    }

    fn stepped() -> Price {
        Price {
            rates: rates("0.10", "0.50", "0.01", "0.125", "0.20"),
            above: Some((100_000, rates("0.50", "2.50", "0.05", "0.625", "1"))),
            web_search: Some(exact("0.01")),
        }
    }

    #[test]
    fn every_part_of_a_call_is_priced() {
        let price = Price { rates: rates("4", "20", "0.20", "5", "8"), above: None, web_search: Some(exact("0.01")) };
        let usage = Usage {
            input_tokens: 2_000,
            cache_creation_input_tokens: 9_000,
            cache_creation_1h_input_tokens: Some(8_000),
            cache_read_input_tokens: 140_000,
            output_tokens: 1_500,
            thinking_tokens: 1_400,
            web_search_requests: 3,
        };
        // 0.008 + 0.030 + 0.028 + 0.064 + 0.005 + 0.03
        assert_eq!(price.cost(&usage, None), Some(exact("0.165")));
        // Without the server's split, what was asked for decides.
        let unsplit = Usage { cache_creation_1h_input_tokens: None, ..usage };
        assert_eq!(price.cost(&unsplit, Some(CacheTtl::Hour)), Some(exact("0.168")));
        assert_eq!(price.cost(&unsplit, Some(CacheTtl::FiveMinutes)), Some(exact("0.141")));
    }

    #[test]
    fn the_step_counts_the_whole_prompt_and_prices_the_whole_request() {
        let at = Usage { input_tokens: 1, cache_read_input_tokens: 99_999, output_tokens: 1_000, ..Usage::default() };
        assert_eq!(stepped().cost(&at, None), Some(exact("0.00150009")));
        let past = Usage { cache_read_input_tokens: 100_000, ..at };
        assert_eq!(stepped().cost(&past, None), Some(exact("0.0075005")));
    }

    #[test]
    fn a_search_without_a_price_makes_the_cost_unknown() {
        let price = Price { web_search: None, ..stepped() };
        let usage = Usage { web_search_requests: 1, ..Usage::default() };
        assert_eq!(price.cost(&usage, None), None);
        assert_eq!(price.cost(&Usage::default(), None), Some(Exact::ZERO));
        assert_eq!(price.reserve(1, 1, 1, None), None);
    }

    #[test]
    fn a_declared_price_never_leaves_the_cache_cheap_by_accident() {
        let decl = PriceDecl { input: exact("3"), output: exact("15"), cache_read: None, cache_write: None };
        let price = Price::declared(&decl, None).unwrap();
        assert_eq!(price.rates, rates("3", "15", "3", "3.75", "6"));
    }

    proptest! {
        #[test]
        fn what_is_affordable_fits_and_one_token_more_does_not(
            left in 0u64..2_000_000, input in 0u64..300_000, wanted in 0u32..128_000, searches in 0u32..5,
        ) {
            let left = Exact::from_u64(left).checked_mul(exact("0.000001")).unwrap();
            let price = stepped();
            match price.affordable(left, input, wanted, searches, Some(CacheTtl::Hour)) {
                None => prop_assert!(price.reserve(input, 0, searches, Some(CacheTtl::Hour)).unwrap() > left),
                Some(tokens) => {
                    prop_assert!(tokens <= wanted);
                    prop_assert!(price.reserve(input, tokens, searches, Some(CacheTtl::Hour)).unwrap() <= left);
                    if tokens < wanted {
                        prop_assert!(price.reserve(input, tokens + 1, searches, Some(CacheTtl::Hour)).unwrap() > left);
                    }
                }
            }
        }

        #[test]
        fn a_call_within_its_limits_never_costs_more_than_its_reserve(
            fresh in 0u64..100_000, written in 0u64..100_000, read in 0u64..100_000, output in 0u32..64_000,
        ) {
            let usage = Usage {
                input_tokens: fresh,
                cache_creation_input_tokens: written,
                cache_read_input_tokens: read,
                output_tokens: output.into(),
                ..Usage::default()
            };
            for ttl in [Some(CacheTtl::Hour), Some(CacheTtl::FiveMinutes)] {
                let reserve = stepped().reserve(fresh + written + read, output, 0, ttl).unwrap();
                prop_assert!(stepped().cost(&usage, ttl).unwrap() <= reserve);
            }
        }
    }
}
