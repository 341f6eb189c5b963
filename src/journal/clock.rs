//! Wall clock, boot clock and boot id.
//!
//! Role: the only place of the journal that asks for the time. Not its role: budgets.
//! Invariant: `mono_ms` never runs backwards within one boot and counts suspended time, so
//! that a changed wall clock or a closed lid can neither stretch nor cut a budget.

use std::sync::OnceLock;

/// Where the time stamps of events come from.
pub trait Clock: Send {
    /// RFC 3339 with milliseconds, in UTC (`2026-11-15T23:28:41.123Z`).
    fn wall(&self) -> String;
    /// Milliseconds since boot, suspended time included.
    fn mono_ms(&self) -> u64;
    /// Which boot `mono_ms` counts from.
    fn boot_id(&self) -> String;
}

/// The clocks of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall(&self) -> String {
        format!("{:.3}", jiff::Timestamp::now())
    }

    fn mono_ms(&self) -> u64 {
        mono_ms()
    }

    fn boot_id(&self) -> String {
        boot_id().to_owned()
    }
}

/// Milliseconds since boot, suspended time included.
pub fn mono_ms() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000)
}

/// The boot id cannot change while this process lives, so it is read once.
pub(super) fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        match text.trim() {
            "" => "unknown".to_owned(),
            id => id.to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_has_the_documented_shape() {
        let wall = SystemClock.wall();
        let shape: String = wall.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
        assert_eq!(shape, "9999-99-99T99:99:99.999Z", "{wall}");
    }

    #[test]
    fn boot_clock_does_not_run_backwards() {
        let first = mono_ms();
        assert!(mono_ms() >= first && first > 0);
        assert_eq!(SystemClock.boot_id(), SystemClock.boot_id());
    }
}
