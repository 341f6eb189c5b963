//! Brings the clock in: when the time to stop has come, when nothing happens, and when the machine slept.
//!
//! Role: find the moment that `stop_when.at` means, look at the clock while the run works, and tell. Not its role: what
//! follows from it (`machine::ends`, `machine::claim`).
//! Invariants: the wall clock alone says that the time has come, at each look anew, so that a machine that slept or a
//! clock that was set is heeded; a machine without a time zone uses UTC.

use std::time::Duration;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::journal;
use crate::machine::event::{MachineSlept, Signal};
use crate::machine::run::RunState;
use crate::model::loop_file::{EndTime, LoopFile, TimeOfDay};

use super::hub::Hub;
use super::signals::Raiser;

/// How often the clock is looked at.
const EVERY: Duration = Duration::from_secs(1);
/// The same where the clock is a test's.
const EVERY_IN_TESTS: Duration = Duration::from_millis(10);
/// A shorter sleep is not worth a word.
const NAP_MS: u64 = 60_000;
/// Naps that may wait to be recorded.
const QUEUE: usize = 16;

/// What the clocks say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    wall: Timestamp,
    /// Milliseconds since boot, suspended time included.
    all_ms: u64,
    /// The same without suspended time.
    awake_ms: u64,
}

impl Reading {
    fn now() -> Self {
        let all_ms = journal::mono_ms();
        #[cfg(debug_assertions)]
        if let Some(reading) = rehearsed(all_ms) {
            return reading;
        }
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let (seconds, nanos) = (u64::try_from(time.tv_sec).unwrap_or(0), u64::try_from(time.tv_nsec).unwrap_or(0));
        let awake_ms = seconds.saturating_mul(1_000).saturating_add(nanos / 1_000_000);
        Self { wall: Timestamp::now(), all_ms, awake_ms }
    }
}

/// Tests have a clock of their own: a file with a moment, and the milliseconds that the machine has slept so far and
/// been awake besides.
#[cfg(debug_assertions)]
fn rehearsed(all_ms: u64) -> Option<Reading> {
    let text = std::fs::read_to_string(std::env::var_os("NIGHTLOOP_TEST_CLOCK")?).ok()?;
    let mut words = text.split_whitespace();
    let wall = words.next()?.parse().ok()?;
    let mut millis = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let (slept, awake_ms) = (millis(), all_ms.saturating_add(millis()));
    Some(Reading { wall, all_ms: awake_ms.saturating_add(slept), awake_ms })
}

fn is_rehearsed() -> bool {
    cfg!(debug_assertions) && std::env::var_os("NIGHTLOOP_TEST_CLOCK").is_some()
}

/// When a run of this declaration is to leave off, if it starts or goes on now.
pub(super) fn of(declared: &LoopFile) -> Option<EndTime> {
    let at = declared.stop_when.as_ref()?.at?;
    next(at, &Reading::now().wall.to_zoned(TimeZone::system()))
}

/// The next moment at which a clock on the wall shows that time. Where the clock is set forward over it, the moment is as
/// much later; where it comes twice, the first one counts.
fn next(at: TimeOfDay, now: &Zoned) -> Option<EndTime> {
    let time = Time::new(i8::try_from(at.hour).ok()?, i8::try_from(at.minute).ok()?, 0, 0).ok()?;
    let on = |date: Date| date.to_datetime(time).to_zoned(now.time_zone().clone()).ok();
    let today = on(now.date()).filter(|moment| moment.timestamp() > now.timestamp());
    let moment = match today {
        Some(moment) => moment,
        None => on(now.date().checked_add(1.day()).ok()?)?,
    };
    Some(EndTime { at, moment: moment.timestamp().to_string() })
}

/// What a look at the clock showed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum News {
    Due,
    Idle,
    Slept(MachineSlept),
}

/// Compares each look with the one before.
struct Lookout {
    due: Option<Timestamp>,
    idle_ms: Option<u64>,
    last: Reading,
    /// How many events there were, and for how long there have been no more while the machine was awake.
    heard: (u64, u64),
}

impl Lookout {
    fn new(end: Option<&EndTime>, idle_minutes: Option<u64>, now: Reading) -> Self {
        let due = end.and_then(|end| end.moment.parse().ok());
        Self { due, idle_ms: idle_minutes.map(|minutes| minutes.saturating_mul(60_000)), last: now, heard: (0, 0) }
    }

    /// `events`: how many there are by now.
    fn look(&mut self, now: Reading, events: u64) -> Vec<News> {
        let all = now.all_ms.saturating_sub(self.last.all_ms);
        let awake = now.awake_ms.saturating_sub(self.last.awake_ms);
        let mut news = Vec::new();
        if all.saturating_sub(awake) >= NAP_MS {
            news.push(News::Slept(MachineSlept { from: shown(self.last.wall), to: shown(now.wall) }));
        }
        if self.due.is_some_and(|due| now.wall >= due) {
            self.due = None;
            news.push(News::Due);
        }
        self.heard = if self.heard.0 == events { (events, self.heard.1.saturating_add(awake)) } else { (events, 0) };
        if self.idle_ms.is_some_and(|most| self.heard.1 >= most) {
            self.idle_ms = None;
            news.push(News::Idle);
        }
        self.last = now;
        news
    }
}

/// A moment as the clock on the wall showed it.
fn shown(moment: Timestamp) -> String {
    moment.to_zoned(TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// Looks at the clock beside a run, until it is dropped.
pub(super) struct Watch {
    slept: mpsc::Receiver<MachineSlept>,
    task: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watch {
    /// Begins to look. Needs a running tokio runtime.
    pub(super) fn begin(state: &RunState, raiser: Raiser, hub: Hub) -> Self {
        let idle = state.loop_file().stop_when.as_ref().and_then(|when| when.idle_minutes);
        let at = state.end.as_ref().map(|end| end.at.to_string()).unwrap_or_default();
        let mut lookout = Lookout::new(state.end.as_ref(), idle, Reading::now());
        let (sender, slept) = mpsc::channel(QUEUE);
        let task = tokio::spawn(async move {
            loop {
                for news in lookout.look(Reading::now(), hub.head().next_seq) {
                    match news {
                        News::Due => raiser.raise(Signal::EndTime, at.clone()),
                        News::Idle => {
                            let minutes = idle.unwrap_or_default();
                            raiser.raise(Signal::Idle, format!("after {minutes} min in which nothing happened"));
                        }
                        // Nobody counts naps beyond these.
                        News::Slept(slept) => drop(sender.try_send(slept)),
                    }
                }
                tokio::time::sleep(if is_rehearsed() { EVERY_IN_TESTS } else { EVERY }).await;
            }
        });
        Self { slept, task }
    }

    /// A nap that nobody has recorded yet.
    pub(super) fn nap(&mut self) -> Option<MachineSlept> {
        self.slept.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Central Europe, without a data base of time zones.
    fn at(moment: &str) -> Zoned {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        moment.parse::<Timestamp>().unwrap().to_zoned(zone)
    }

    fn found(time: &str, now: &str) -> String {
        next(time.parse().unwrap(), &at(now)).unwrap().moment
    }

    #[test]
    fn the_next_time_is_today_or_tomorrow() {
        assert_eq!(found("06:30", "2026-11-19T22:00:00Z"), "2026-11-20T05:30:00Z");
        assert_eq!(found("06:30", "2026-11-20T05:29:59Z"), "2026-11-20T05:30:00Z");
        assert_eq!(found("06:30", "2026-11-20T05:30:00Z"), "2026-11-21T05:30:00Z", "now is not later");
        assert_eq!(found("00:00", "2026-12-31T22:00:00Z"), "2026-12-31T23:00:00Z");
    }

    #[test]
    fn the_night_of_a_change_is_longer_or_shorter() {
        // The clock goes from 2 to 3 at 01:00Z.
        assert_eq!(found("06:30", "2026-03-28T21:00:00Z"), "2026-03-29T04:30:00Z");
        assert_eq!(found("02:30", "2026-03-28T21:00:00Z"), "2026-03-29T01:30:00Z", "there is no 02:30: it is 03:30");
        // From 3 back to 2 at 01:00Z.
        assert_eq!(found("06:30", "2026-10-24T20:00:00Z"), "2026-10-25T05:30:00Z");
        assert_eq!(found("02:30", "2026-10-24T20:00:00Z"), "2026-10-25T00:30:00Z", "the first of the two");
        assert_eq!(found("02:30", "2026-10-25T00:45:00Z"), "2026-10-26T01:30:00Z", "the second is not another night");
    }

    fn reading(wall: &str, all_ms: u64, awake_ms: u64) -> Reading {
        Reading { wall: wall.parse().unwrap(), all_ms, awake_ms }
    }

    fn lookout(end: &str, idle: Option<u64>) -> Lookout {
        let end = EndTime { at: "06:30".parse().unwrap(), moment: end.to_owned() };
        Lookout::new(Some(&end), idle, reading("2026-11-20T01:10:00Z", 0, 0))
    }

    #[test]
    fn the_wall_clock_says_that_the_time_has_come_once() {
        let mut lookout = lookout("2026-11-20T05:30:00Z", None);
        assert_eq!(lookout.look(reading("2026-11-20T05:29:59Z", 1, 1), 0), []);
        // Set back: what is later by the clock comes later.
        assert_eq!(lookout.look(reading("2026-11-20T04:00:00Z", 2, 2), 0), []);
        assert_eq!(lookout.look(reading("2026-11-20T05:30:00Z", 3, 3), 0), [News::Due]);
        assert_eq!(lookout.look(reading("2026-11-20T05:29:00Z", 4, 4), 0), []);
        assert_eq!(lookout.look(reading("2026-11-20T05:31:00Z", 5, 5), 0), []);
    }

    #[test]
    fn a_machine_that_slept_over_it_says_both() {
        let mut lookout = lookout("2026-11-20T05:30:00Z", Some(60));
        let hour = 3_600_000;
        let news = lookout.look(reading("2026-11-20T07:10:00Z", 6 * hour, 1_000), 0);
        let [News::Slept(slept), News::Due] = news.as_slice() else { panic!("{news:?}") };
        let moments = [&slept.from, &slept.to].map(|time| time.parse::<Timestamp>().unwrap().to_string());
        assert_eq!(moments, ["2026-11-20T01:10:00Z", "2026-11-20T07:10:00Z"]);
    }

    #[test]
    fn idle_is_awake_and_without_an_event() {
        let mut lookout = lookout("2026-11-21T05:30:00Z", Some(1));
        let wall = "2026-11-20T02:00:00Z";
        assert_eq!(lookout.look(reading(wall, 59_000, 59_000), 0), []);
        assert_eq!(lookout.look(reading(wall, 61_000, 61_000), 1), [], "something happened");
        assert_eq!(lookout.look(reading(wall, 120_000, 120_000), 1), []);
        assert_eq!(lookout.look(reading(wall, 121_000, 121_000), 1), [News::Idle]);
        assert_eq!(lookout.look(reading(wall, 500_000, 500_000), 1), [], "told once");
    }
}
