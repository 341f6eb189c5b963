//! What every view may look at. Built by the root for each frame; no locks, no clock, no files.

use crate::engine::hub::LiveText;
pub use crate::evidence::night::millis_of;
use crate::machine::fold::Stamped;
use crate::machine::run::RunState;

use super::theme::Theme;

/// How the console hangs together with the run it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// The engine is in this process.
    InProcess,
    /// Over a socket.
    Attached,
    /// A journal is played back.
    Replay { playing: bool, speed: u32, at: u64, of: u64 },
    /// The other end is gone.
    Lost(String),
}

/// The present, as a view sees it.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The run at the moment that is shown: now, or an earlier one.
    pub run: &'a RunState,
    /// Is `run` the present? `false` while an earlier moment is shown.
    pub live: bool,
    pub theme: &'a Theme,
    /// Unix milliseconds, as of the latest message. Only to say how long ago something was.
    pub now_ms: i64,
    /// Difference of local time to UTC, for clock times.
    pub utc_offset_seconds: i32,
    pub link: &'a Link,
    pub read_only: bool,
    /// Does this pane have the keys?
    pub focused: bool,
}

impl Scene<'_> {
    /// A journal time stamp as local clock time, `22:14:03`.
    pub fn clock(&self, ts: &str) -> String {
        match millis_of(ts) {
            Some(millis) => self.clock_at(millis),
            None => "--:--:--".to_owned(),
        }
    }

    /// Unix milliseconds as local clock time.
    pub fn clock_at(&self, millis: i64) -> String {
        let seconds = millis.div_euclid(1_000) + i64::from(self.utc_offset_seconds);
        let day = seconds.rem_euclid(86_400);
        format!("{:02}:{:02}:{:02}", day / 3_600, day / 60 % 60, day % 60)
    }

    /// Milliseconds since a journal time stamp.
    pub fn since(&self, ts: &str) -> Option<u64> {
        millis_of(ts).map(|then| u64::try_from(self.now_ms - then).unwrap_or(0))
    }
}

/// What happened, for parts that keep something of their own about the run (transcript, timeline).
#[derive(Debug, Clone, Copy)]
pub enum News<'a> {
    /// An event, the state after it, and its text.
    Event {
        stamped: &'a Stamped,
        state: &'a RunState,
        body: Option<&'a [u8]>,
    },
    Live(&'a LiveText),
    /// Another run is shown from here on: forget everything.
    Reset,
}
