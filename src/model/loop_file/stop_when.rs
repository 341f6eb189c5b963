//! `stop_when:`: when a run is to leave off for today, with everything in its place. No limit of the run: what it has
//! not done by then it goes on with.
//!
//! Role: what may be declared. Not its role: the clock (`engine::ends` brings it in), or what follows (`machine::ends`).

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::decimal::Exact;
use crate::model::value::settings::Wrong;

/// A day, in minutes.
const MOST_IDLE: u64 = 1_440;

/// `stop_when:` as declared. What is left out ends nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StopWhen {
    /// A local time, "06:30": the next one after the run starts, or goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub at: Option<TimeOfDay>,
    /// US dollars as a decimal string, counted from the start of the run, or from where it last went on after a stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub cost_usd: Option<Exact>,
    /// The item (or iteration) at hand is finished first; alone: the run stops after the first one.
    pub after_item: bool,
    /// So many iterations, counted like `cost_usd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Minutes in which nothing happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_minutes: Option<u64>,
}

impl StopWhen {
    /// Does nothing else say when?
    pub fn is_after_item_alone(&self) -> bool {
        *self == Self { after_item: true, ..Self::default() }
    }

    pub(super) fn check(&self) -> Result<(), Wrong> {
        if self.cost_usd.is_some_and(|cost| cost <= Exact::ZERO) {
            return Err(("cost_usd", "stop_when.cost_usd must be greater than 0".to_owned(), "for example \"15.00\""));
        }
        if self.iterations == Some(0) {
            return Err(("iterations", "stop_when.iterations must be greater than 0".to_owned(), ""));
        }
        if self.idle_minutes.is_some_and(|minutes| !(1..=MOST_IDLE).contains(&minutes)) {
            return Err(("idle_minutes", format!("stop_when.idle_minutes must be 1 to {MOST_IDLE}"), ""));
        }
        Ok(())
    }
}

/// An hour and a minute of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfDay {
    pub hour: u8,
    pub minute: u8,
}

impl FromStr for TimeOfDay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str, below: u8| {
            let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u8>().ok().filter(|number| digits && *number < below)
        };
        let split = text.split_once(':').filter(|(_, minute)| minute.len() == 2);
        let read = split.and_then(|(hour, minute)| Some((number(hour, 24)?, number(minute, 60)?)));
        let wrong = || format!("`{text}` is no time of day: write hours and minutes, for example \"06:30\"");
        read.map(|(hour, minute)| Self { hour, minute }).ok_or_else(wrong)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)
    }
}

impl Serialize for TimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimeOfDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The moment at which a run is to leave off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndTime {
    /// As it was asked for.
    pub at: TimeOfDay,
    /// The moment itself, RFC 3339 in UTC.
    pub moment: String,
}

#[cfg(test)]
mod tests {
    use crate::model::loop_file::parse;

    #[test]
    fn a_time_of_day_is_hours_and_minutes() {
        for (text, shown) in [("06:30", "06:30"), ("6:30", "06:30"), ("0:00", "00:00"), ("23:59", "23:59")] {
            assert_eq!(text.parse::<super::TimeOfDay>().unwrap().to_string(), shown);
        }
        for bad in ["", "6", "24:00", "06:60", "6:3", "06:30:00", "+6:30", "6.30", "06:3o", "half past six"] {
            let why = bad.parse::<super::TimeOfDay>().unwrap_err();
            assert!(why.contains("06:30"), "{why}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        for (text, expected) in [
            ("stop_when: {at: \"25:00\"}", "no time of day"),
            ("stop_when: {cost_usd: 15.0}", "quoted decimal string"),
            ("stop_when: {cost_usd: \"0\"}", "greater than 0"),
            ("stop_when: {idle_minutes: 0}", "1 to 1440"),
            ("stop_when: {after: true}", "unknown key `after`"),
        ] {
            let error = parse(text, "loop.yaml").unwrap_err().to_string();
            assert!(error.starts_with("loop.yaml:1") && error.contains(expected), "{expected}: {error}");
        }
        let file = parse("stop_when: {at: 06:30, cost_usd: \"15.00\", after_item: true}", "loop.yaml").unwrap();
        let again = serde_json::from_str(&serde_json::to_string(&file).unwrap()).unwrap();
        assert_eq!(file, again, "the journal keeps it");
    }
}
