//! How a model call fails, and how long is waited before it is tried again.
//!
//! Role: the classes of failed attempts, and the overnight back-off as a pure function. Not its role: telling the class
//! of an error (`agent::retry`), or whether the run waits, asks or stops (`machine::failure`).
//!
//! Invariants: no wait is shorter than the server asked for; our own back-off never exceeds [`BACKOFF_CAP_MS`]; a spend
//! limit, a refused key and a broken request are never repeated.

use serde::{Deserialize, Serialize};

/// Longest back-off of our own making. A longer `retry-after` still wins.
pub const BACKOFF_CAP_MS: u64 = 300_000;
/// Attempts after which a transient fault is called permanent.
pub const TRANSIENT_ATTEMPTS: u32 = 300;
/// Attempts after which a program that breaks down is given up.
pub const CRASH_ATTEMPTS: u32 = 3;

const BACKOFF_BASE_MS: u64 = 500;
/// Full jitter may draw zero; this keeps a dead server from being hammered.
const BACKOFF_FLOOR_MS: u64 = 100;

/// What a failed attempt of a model call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// Money or quota is used up: pause until the operator or the calendar helps.
    SpendLimit,
    /// Too many requests: wait, without limit of attempts.
    RateLimited,
    /// The service is short of capacity: wait, without limit of attempts.
    Overloaded,
    /// A fault that usually passes: wait, at most [`TRANSIENT_ATTEMPTS`] times.
    Transient,
    /// An agent program broke down: try again, at most [`CRASH_ATTEMPTS`] times. A turn of it is dear.
    Crashed,
    /// The key is not accepted: pause.
    Auth,
    /// The request does not fit: make it smaller once.
    TooLarge,
    /// Sending it again cannot help.
    Fatal,
    /// The server refused a thinking block; without such blocks it may take the conversation, once per call.
    PrefixMismatch,
    /// We ended the attempt ourselves.
    Cancelled,
}

impl FailureClass {
    /// As the journal names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SpendLimit => "spend_limit",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Transient => "transient",
            Self::Crashed => "crashed",
            Self::Auth => "auth",
            Self::TooLarge => "too_large",
            Self::Fatal => "fatal",
            Self::PrefixMismatch => "prefix_mismatch",
            Self::Cancelled => "cancelled",
        }
    }

    /// Does the server ask everybody with this key to wait?
    pub const fn asks_to_wait(self) -> bool {
        matches!(self, Self::RateLimited | Self::Overloaded)
    }

    /// Did something break down? A wait that a server asked for, or an end of our own making, did not.
    pub const fn is_breakdown(self) -> bool {
        !matches!(self, Self::RateLimited | Self::Overloaded | Self::Cancelled)
    }
}

/// What is known, beside the run itself, when an attempt has failed. Recorded, so that what followed can be decided again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureFacts {
    /// How long the server asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Random bits of the back-off.
    pub jitter: u32,
    /// What was left of the run's time.
    pub left_ms: u64,
}

/// The wait before the next attempt in milliseconds, or `None` when there must be none.
///
/// `attempt` counts the attempts that have failed so far, from 1.
pub fn delay(class: FailureClass, attempt: u32, retry_after_ms: Option<u64>, jitter: u32) -> Option<u64> {
    match class {
        FailureClass::SpendLimit | FailureClass::Auth | FailureClass::TooLarge | FailureClass::Fatal => None,
        FailureClass::PrefixMismatch | FailureClass::Cancelled => Some(0),
        FailureClass::Transient if attempt >= TRANSIENT_ATTEMPTS => None,
        FailureClass::Crashed if attempt >= CRASH_ATTEMPTS => None,
        FailureClass::Transient | FailureClass::Crashed | FailureClass::RateLimited | FailureClass::Overloaded => {
            Some(backoff(attempt, jitter).max(retry_after_ms.unwrap_or_default()))
        }
    }
}

/// Full jitter: a uniform draw between nothing and a ceiling that doubles up to the cap.
fn backoff(attempt: u32, jitter: u32) -> u64 {
    let doublings = attempt.saturating_sub(1).min(20);
    let ceiling = (BACKOFF_BASE_MS << doublings).min(BACKOFF_CAP_MS);
    (u64::from(jitter) % (ceiling + 1)).max(BACKOFF_FLOOR_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use FailureClass::*;
    use proptest::prelude::*;

    #[test]
    fn transient_ends_after_300_attempts_and_the_others_do_not() {
        assert!(delay(Transient, 299, None, 0).is_some());
        assert_eq!(delay(Transient, 300, None, 0), None);
        assert!(delay(RateLimited, 1_000_000, None, 0).is_some());
        assert!(delay(Overloaded, u32::MAX, None, u32::MAX).is_some());
    }

    #[test]
    fn the_class_is_written_in_snake_case() {
        assert_eq!(serde_json::to_string(&SpendLimit).unwrap(), "\"spend_limit\"");
        assert_eq!(serde_json::from_str::<FailureClass>("\"rate_limited\"").unwrap(), RateLimited);
    }

    #[test]
    fn the_name_is_the_one_that_is_written() {
        for class in
            [SpendLimit, RateLimited, Overloaded, Transient, Crashed, Auth, TooLarge, Fatal, PrefixMismatch, Cancelled]
        {
            assert_eq!(serde_json::to_string(&class).unwrap(), format!("\"{}\"", class.name()));
        }
    }

    proptest! {
        #[test]
        fn waits_stay_in_bounds(attempt in any::<u32>(), after in proptest::option::of(0u64..100_000_000), jitter in any::<u32>()) {
            for class in [RateLimited, Overloaded] {
                let wait = delay(class, attempt, after, jitter).unwrap();
                prop_assert!(wait >= after.unwrap_or_default());
                prop_assert!(wait >= BACKOFF_FLOOR_MS);
                prop_assert!(wait <= BACKOFF_CAP_MS.max(after.unwrap_or_default()));
            }
            let transient = delay(Transient, attempt, after, jitter);
            prop_assert_eq!(transient.is_none(), attempt >= TRANSIENT_ATTEMPTS);
            for class in [SpendLimit, Auth, TooLarge, Fatal] {
                prop_assert_eq!(delay(class, attempt, after, jitter), None);
            }
        }

        #[test]
        fn early_attempts_wait_less(attempt in 1u32..9, jitter in any::<u32>()) {
            prop_assert!(delay(Transient, attempt, None, jitter).unwrap() <= 500 << (attempt - 1));
        }
    }
}
