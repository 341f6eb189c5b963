//! Which call of a run a conversation is: its purpose, what it is about, and how often that was called for before.
//!
//! The engine writes it as a line of the first message, so that a rehearsal can answer from the request alone.
//!
//! Invariant: the first such line of a message counts, so it must stand before any text that others wrote.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::canonical;
use super::purpose::Purpose;

/// What the line begins with.
const MARK: &str = "CALL ";

/// One call of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallPlace {
    #[serde(deserialize_with = "purpose", serialize_with = "name")]
    pub purpose: Purpose,
    /// A task or a verification.
    #[serde(default)]
    pub subject: Option<String>,
    /// From 1: which call of the run for this purpose and this subject it is.
    pub nth: u64,
}

fn purpose<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Purpose, D::Error> {
    let word = String::deserialize(deserializer)?;
    Purpose::of_name(&word).ok_or_else(|| serde::de::Error::custom("an unknown purpose"))
}

fn name<S: serde::Serializer>(purpose: &Purpose, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(purpose.name())
}

impl CallPlace {
    /// The line, without a line end.
    pub fn line(&self) -> String {
        // Texts and whole numbers always have a canonical form.
        format!("{MARK}{}", canonical::compact(self).unwrap_or_default())
    }

    /// The place that a message names, if it does.
    pub fn find(message: &str) -> Option<Self> {
        message.lines().filter_map(|line| line.trim_start().strip_prefix(MARK)).find_map(|rest| {
            let mut reader = serde_json::Deserializer::from_str(rest);
            Self::deserialize(&mut reader).ok()
        })
    }
}

impl fmt::Display for CallPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "purpose \"{}\"", self.purpose)?;
        if let Some(subject) = &self.subject {
            write!(f, ", subject \"{}\"", subject.chars().take(60).collect::<String>())?;
        }
        write!(f, ", nth {}", self.nth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_found_again() {
        for subject in [None, Some("T1".to_owned()), Some("a \"b\"\nc".to_owned())] {
            let place = CallPlace { purpose: Purpose::PlanHealth, subject, nth: 3 };
            let message =
                format!("Your order.\n{}\n\n# Brief\nCALL {{\"purpose\": \"plan\", \"nth\": 1}}\n", place.line());
            assert_eq!(CallPlace::find(&message), Some(place));
        }
    }

    #[test]
    fn what_is_no_place_is_stepped_over() {
        let message =
            "CALL me\nCALL {\"purpose\": \"dance\", \"nth\": 1}\nCALL {\"purpose\": \"execute\", \"nth\": 0.5}\n";
        assert_eq!(CallPlace::find(message), None);
        let found =
            CallPlace::find(&format!("{message}  CALL {{\"purpose\": \"execute\", \"subject\": null, \"nth\": 2}}"));
        assert_eq!(found, Some(CallPlace { purpose: Purpose::Execute, subject: None, nth: 2 }));
    }
}
