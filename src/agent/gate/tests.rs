//! The rules one by one, any order of events, and a night of many runs.

use super::super::error::CallError;
use super::super::retry;
use super::*;
use crate::model::failure::{self, FailureClass};
use jiff::Timestamp;
use proptest::prelude::*;

const NOW: u64 = 1_800_000_000_000;

fn window(limit: u64, remaining: u64, reset: u64) -> RateLimits {
    let reset = Timestamp::from_millisecond(i64::try_from(reset).unwrap()).ok();
    let requests = RateWindow { limit: Some(limit), remaining: Some(remaining), reset };
    RateLimits { requests, ..RateLimits::default() }
}

fn waits(verdict: GateAnswer) -> Option<(u64, Why)> {
    match verdict {
        GateAnswer::Go => None,
        GateAnswer::Wait { millis, why } => Some((millis, why)),
    }
}

#[test]
fn where_nothing_is_known_one_goes_ahead() {
    let mut shared = Shared::default();
    assert_eq!(shared.ask(1, NOW, 0), GateAnswer::Go);
    assert_eq!(waits(shared.ask(2, NOW, 0)), Some((LOOK_AGAIN_MS, Why::Asking)));
    shared.heard(1, &RateLimits::default(), NOW);
    assert!((2..100).all(|ticket| shared.ask(ticket, NOW, 0) == GateAnswer::Go), "a server without limits has none");
    let mut gone = Shared::default();
    assert_eq!(gone.ask(1, NOW, 0), GateAnswer::Go);
    assert_eq!(gone.ask(2, NOW + LEASE_MS, 0), GateAnswer::Go, "a run that died does not hold the others for ever");
}

#[test]
fn no_more_go_than_are_left_and_all_come_back_after_the_reset() {
    let mut shared = Shared::default();
    shared.ask(1, NOW, 0);
    shared.heard(1, &window(5, 3, NOW + 1_000), NOW);
    assert!((2..5).all(|ticket| shared.ask(ticket, NOW, 0) == GateAnswer::Go));
    assert_eq!(waits(shared.ask(5, NOW, 7)), Some((1_007, Why::UsedUp)));
    // The answer to ticket 2 was counted before 3 and 4 got there.
    shared.heard(2, &window(5, 2, NOW + 1_000), NOW + 10);
    assert!(waits(shared.ask(5, NOW + 10, 0)).is_some(), "what is on the way is used up too");
    // Two are still on the way when the window is full again: they may be counted in the new one.
    let went = (10..20).filter(|ticket| shared.ask(*ticket, NOW + 1_000, 0) == GateAnswer::Go).count();
    assert_eq!(went, 0, "half of five, less the two");
    shared.heard(3, &window(5, 4, NOW + 2_000), NOW + 1_001);
    let went = (10..20).filter(|ticket| shared.ask(*ticket, NOW + 1_001, 0) == GateAnswer::Go).count();
    assert_eq!(went, 3, "four are left, and one more is on the way");
}

#[test]
fn after_a_refusal_nobody_calls_before_its_time() {
    let mut shared = Shared::default();
    shared.ask(1, NOW, 0);
    shared.heard(1, &window(50, 40, NOW + 60_000), NOW);
    shared.ask(2, NOW, 0);
    shared.refused(2, Some(Duration::from_secs(20)), NOW);
    shared.refused(3, Some(Duration::from_secs(5)), NOW);
    for jitter in [0, 1, u64::MAX] {
        let (millis, why) = waits(shared.ask(9, NOW + 1, jitter)).unwrap();
        assert!((19_999..=19_999 + 5_000).contains(&millis) && why == Why::Told, "{millis}");
    }
    assert_eq!(shared.ask(9, NOW + 20_000, 0), GateAnswer::Go);
    assert!(waits(shared.ask(10, NOW + 20_000, 0)).is_some(), "one goes ahead, the others wait for what it hears");
}

#[test]
fn tokens_hold_back_only_when_none_are_left() {
    let mut shared = Shared::default();
    shared.ask(1, NOW, 0);
    let reset = Timestamp::from_millisecond(i64::try_from(NOW).unwrap() + 500).ok();
    let output_tokens = RateWindow { limit: Some(8_000), remaining: Some(0), reset };
    let input_tokens = RateWindow { limit: Some(8_000), remaining: Some(10), reset };
    shared.heard(1, &RateLimits { input_tokens, output_tokens, ..RateLimits::default() }, NOW);
    assert_eq!(waits(shared.ask(2, NOW, 0)), Some((500, Why::UsedUp)));
    assert_eq!(shared.ask(2, NOW + 500, 0), GateAnswer::Go);
}

proptest! {
    /// Whatever is heard in whatever order: no panic, and no wait beyond what is believed.
    #[test]
    fn any_history_gives_a_bounded_answer(
        steps in proptest::collection::vec((0u8..4, 0u64..6, any::<u64>(), any::<u64>(), any::<i64>()), 0..60),
    ) {
        let mut shared = Shared::default();
        let mut now = NOW;
        for (step, ticket, a, b, c) in steps {
            now += a % 5_000;
            match step {
                0 => {
                    if let GateAnswer::Wait { millis, .. } = shared.ask(ticket, now, b) {
                        prop_assert!(millis <= LONGEST_WAIT_MS + LONGEST_SPREAD_MS);
                    }
                }
                1 => {
                    let reset = Timestamp::from_millisecond(c % 4_000_000_000_000).ok();
                    let requests = RateWindow { limit: Some(a % 10), remaining: Some(b % 10), reset };
                    shared.heard(ticket, &RateLimits { requests, ..RateLimits::default() }, now);
                }
                2 => shared.refused(ticket, Some(Duration::from_millis(b)), now),
                _ => shared.close(ticket),
            }
            prop_assert!(shared.is_ours());
        }
        // And it always ends: far enough in the future somebody may go.
        prop_assert_eq!(shared.ask(999, now + LONGEST_WAIT_MS + LONGEST_SPREAD_MS + LEASE_MS, 0), GateAnswer::Go);
    }
}

/// What the simulated server of a day does with a call at `now`.
struct DayServer {
    window: u64,
    counted: u64,
    /// Nobody may call before this: the latest `retry-after` that was given.
    closed_until: u64,
    most_in_a_window: u64,
    early: u64,
}

const LIMIT: u64 = 20;
const WINDOW_MS: u64 = 60_000;

impl DayServer {
    fn call(&mut self, now: u64, random: u64) -> Result<RateLimits, CallError> {
        if now < self.closed_until {
            self.early += 1;
        }
        let window = now / WINDOW_MS;
        if window != self.window {
            (self.window, self.counted) = (window, 0);
        }
        self.counted += 1;
        self.most_in_a_window = self.most_in_a_window.max(self.counted);
        let http = |status: u16, wait: Option<u64>| CallError::Http {
            status,
            kind: String::new(),
            code: None,
            message: String::new(),
            retry_after: wait.map(Duration::from_secs),
            should_retry: None,
            request_id: None,
        };
        // Hours of trouble: an outage, a storm of refusals, an overloaded afternoon, a bad line.
        let hour = now % (24 * 3_600_000) / 3_600_000;
        let error = match hour {
            2 => Some(http(503, None)),
            5 | 6 if !random.is_multiple_of(4) => Some(http(429, Some(30 + random % 240))),
            13..=15 if !random.is_multiple_of(3) => Some(http(529, random.is_multiple_of(2).then_some(20))),
            20 if random.is_multiple_of(2) => Some(CallError::Connect("reset".into())),
            _ if random.is_multiple_of(50) => Some(CallError::StreamCut { after_bytes: 1 }),
            _ => None,
        };
        match error {
            Some(error) => {
                if let Some(wait) = error.retry_after() {
                    self.closed_until = self.closed_until.max(now + u64::try_from(wait.as_millis()).unwrap());
                }
                Err(error)
            }
            None => Ok(window_at(LIMIT, LIMIT.saturating_sub(self.counted), (window + 1) * WINDOW_MS)),
        }
    }
}

fn window_at(limit: u64, remaining: u64, reset: u64) -> RateLimits {
    window(limit, remaining, reset)
}

fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let mixed = *seed ^ (*seed >> 33);
    mixed.wrapping_mul(0xff51_afd7_ed55_8ccd) >> 11
}

/// Real HTTP cannot run on a clock that jumps, so this day drives what decides: the gate, the classes and the
/// waits of the policy, with fifty runs, a virtual clock and a server that counts.
#[test]
fn a_day_of_storms_ends_well_and_nobody_comes_early() {
    for seed in 1..=5u64 {
        let mut seed = seed;
        let mut shared = Shared::default();
        let start = NOW / (24 * 3_600_000) * (24 * 3_600_000);
        let mut server = DayServer { window: 0, counted: 0, closed_until: 0, most_in_a_window: 0, early: 0 };
        // Per run: when it acts next, failed attempts in a row, calls that ended well.
        let mut runs: Vec<(u64, u32, u32)> = (0..50).map(|n| (start + n, 0, 0)).collect();
        let end = start + 24 * 3_600_000;
        let mut ticket = 0;
        while let Some(run) = runs.iter_mut().min_by_key(|run| run.0).filter(|run| run.0 < end) {
            let now = run.0;
            match shared.ask(ticket, now, random(&mut seed)) {
                GateAnswer::Wait { millis, .. } => run.0 = now + millis.max(1),
                GateAnswer::Go => {
                    let answer = server.call(now, random(&mut seed));
                    match &answer {
                        Ok(limits) => {
                            shared.heard(ticket, limits, now);
                            // Some minutes of work with tools before the next call.
                            *run = (now + 60_000 + random(&mut seed) % 600_000, 0, run.2 + 1);
                        }
                        Err(error) => {
                            let class = retry::classify(error);
                            match class {
                                FailureClass::RateLimited | FailureClass::Overloaded => {
                                    shared.refused(ticket, error.retry_after(), now);
                                }
                                _ => shared.close(ticket),
                            }
                            run.1 += 1;
                            let after = error.retry_after().map(|after| after.as_millis() as u64);
                            let wait = failure::delay(class, run.1, after, random(&mut seed) as u32);
                            run.0 = now + wait.expect("storms are waited out");
                        }
                    }
                    ticket += 1;
                }
            }
        }
        assert_eq!(server.early, 0, "calls before their retry-after");
        assert!(server.most_in_a_window <= LIMIT, "{} calls in a window of {LIMIT}", server.most_in_a_window);
        let least = runs.iter().map(|run| run.2).min().unwrap();
        assert!(least >= 50, "a run got only {least} answers in a day");
    }
}
