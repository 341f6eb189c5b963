//! Who may call now: one decision for all runs that share a key and a model.
//!
//! Role: given what was heard so far, the clock and who is on the way, say "go" or "wait"; take over what a server
//! answered. Pure: the caller brings the time, random bits and a place to keep [`Shared`].
//! Not its role: the file that runs share (the engine), waiting, retrying.
//!
//! Invariants: nobody goes before a time that a server named; within one window no more go than the server said
//! were left, those still on the way included; where nothing is known, one goes ahead and the others wait for what
//! it hears. Everything is bounded, whatever a file or a header says.

use super::message::{RateLimits, RateWindow};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a request may be on the way before it no longer counts: whoever sent it is gone.
const LEASE_MS: u64 = 120_000;
/// Looking again for what another run is about to hear.
const LOOK_AGAIN_MS: u64 = 100;
/// Runs come back over at most this time, not all at once.
const LONGEST_SPREAD_MS: u64 = 10_000;
/// No server is believed when it names a time further away.
const LONGEST_WAIT_MS: u64 = 31 * 24 * 3600 * 1000;
/// How long a window lasts of which the server has said nothing: its limits are per minute.
const ASSUMED_WINDOW_MS: u64 = 60_000;
/// More requests than this are never on the way.
const MAX_OPEN: usize = 1_024;
const VERSION: u32 = 1;

/// What the runs of one user know together. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shared {
    v: u32,
    /// Nobody calls before this.
    not_before: u64,
    /// Over how long they come back after it.
    spread: u64,
    /// A server has answered since the last refusal: its limits, or that it has none, are known.
    heard: bool,
    requests: Option<Window>,
    tokens: Option<Window>,
    open: Vec<Open>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    limit: Option<u64>,
    left: u64,
    /// When it is full again.
    reset: u64,
    /// The last one the server spoke of is over, and it has not spoken since: this one is our own guess.
    assumed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    ticket: u64,
    until: u64,
}

/// The answer to "may I call?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateAnswer {
    Go,
    Wait { millis: u64, why: Why },
}

/// Why one waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A server told one of the runs to wait.
    Told,
    /// The server's window is used up.
    UsedUp,
    /// Another run is just finding out how much is left.
    Asking,
}

impl Default for Shared {
    fn default() -> Self {
        Self { v: VERSION, not_before: 0, spread: 0, heard: false, requests: None, tokens: None, open: Vec::new() }
    }
}

impl Shared {
    /// Of another version or plainly absurd: better forgotten.
    pub fn is_ours(&self) -> bool {
        self.v == VERSION && self.open.len() <= MAX_OPEN
    }

    /// May the request with this ticket go now? "Go" counts it.
    pub fn ask(&mut self, ticket: u64, now: u64, jitter: u64) -> GateAnswer {
        // Another run's clock may have been read a little later than ours, but not much.
        self.open.retain(|open| open.until > now && open.until <= now + 2 * LEASE_MS);
        // A clock that jumped must not lock anybody out.
        if self.not_before > now + LONGEST_WAIT_MS {
            self.not_before = 0;
        }
        if self.not_before > now {
            let late = jitter % (self.spread.min(LONGEST_SPREAD_MS) + 1);
            return GateAnswer::Wait { millis: self.not_before - now + late, why: Why::Told };
        }
        let on_the_way = self.open.len() as u64;
        if let Some(verdict) = Self::used_up(&mut self.tokens, on_the_way, now, jitter) {
            return verdict;
        }
        if let Some(verdict) = Self::used_up(&mut self.requests, on_the_way, now, jitter) {
            return verdict;
        }
        if (!self.heard && on_the_way > 0) || self.open.len() >= MAX_OPEN {
            return GateAnswer::Wait { millis: LOOK_AGAIN_MS + jitter % LOOK_AGAIN_MS, why: Why::Asking };
        }
        self.go(ticket, now);
        GateAnswer::Go
    }

    /// Counts a request that goes whatever is known: the operator said so.
    pub fn go(&mut self, ticket: u64, now: u64) {
        if let Some(requests) = &mut self.requests {
            requests.left = requests.left.saturating_sub(1);
        }
        self.open.truncate(MAX_OPEN - 1);
        self.open.push(Open { ticket, until: now + LEASE_MS });
    }

    /// Does this window hold a request back? After its end a new one begins, of which we only know the limit. Half
    /// of that until the server speaks again: a window of the server meets at most two of ours.
    fn used_up(slot: &mut Option<Window>, on_the_way: u64, now: u64, jitter: u64) -> Option<GateAnswer> {
        let window = slot.as_mut()?;
        if window.reset <= now || window.reset > now + LONGEST_WAIT_MS {
            let Some(limit) = window.limit else {
                *slot = None;
                return None;
            };
            let left = (limit / 2).max(1).saturating_sub(on_the_way);
            *window = Window { limit: Some(limit), left, reset: now + ASSUMED_WINDOW_MS, assumed: true };
        }
        if window.left > 0 {
            return None;
        }
        // Somebody is about to hear what the new window really holds.
        if window.assumed && on_the_way > 0 {
            return Some(GateAnswer::Wait { millis: LOOK_AGAIN_MS + jitter % LOOK_AGAIN_MS, why: Why::Asking });
        }
        let wait = window.reset - now;
        Some(GateAnswer::Wait { millis: wait + jitter % (wait / 10).clamp(1, 2_000), why: Why::UsedUp })
    }

    /// A server answered the request with this ticket, and said how much is left.
    pub fn heard(&mut self, ticket: u64, limits: &RateLimits, now: u64) {
        self.close(ticket);
        let on_the_way = self.open.len() as u64;
        let scarcest = [limits.tokens, limits.input_tokens, limits.output_tokens]
            .into_iter()
            .filter(|window| window.remaining.is_some())
            .min_by_key(|window| window.remaining);
        Self::learn(&mut self.requests, &limits.requests, on_the_way, now);
        // Nobody knows how many tokens the others will use.
        Self::learn(&mut self.tokens, &scarcest.unwrap_or_default(), 0, now);
        self.heard = true;
    }

    fn learn(slot: &mut Option<Window>, said: &RateWindow, on_the_way: u64, now: u64) {
        let (Some(remaining), Some(reset)) = (said.remaining, said.reset) else { return };
        let left = remaining.saturating_sub(on_the_way);
        let reset = u64::try_from(reset.as_millisecond()).unwrap_or(0);
        match slot {
            // From the same window, or a late word of an older one: the lower count is the later one.
            Some(known) if !known.assumed && reset <= known.reset => known.left = known.left.min(left),
            // A window that is over by the server's own word says nothing about the next; nor does one whose end is
            // further away than any server is believed, for it would come nearer and be believed then.
            Some(_) | None if reset <= now || reset > now.saturating_add(LONGEST_WAIT_MS) => {}
            Some(_) | None => *slot = Some(Window { limit: said.limit, left, reset, assumed: false }),
        }
    }

    /// The server refused: too many requests, or too busy. Everybody waits as long as it said.
    pub fn refused(&mut self, ticket: u64, retry_after: Option<Duration>, now: u64) {
        self.close(ticket);
        let Some(wait) = retry_after else { return };
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).min(LONGEST_WAIT_MS);
        self.not_before = self.not_before.max(now.saturating_add(wait));
        self.spread = (wait / 4).min(LONGEST_SPREAD_MS);
        // Afterwards one goes ahead again: what was known was not the whole truth.
        self.heard = false;
    }

    /// The request with this ticket is over; nothing was heard.
    pub fn close(&mut self, ticket: u64) {
        self.open.retain(|open| open.ticket != ticket);
    }
}

#[cfg(test)]
mod tests;
