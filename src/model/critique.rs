//! What an author and a critic hand in: the work, and the judgement of it.
//!
//! Role: the typed reports of both, and what a critique must say to be one. Not its role: what follows from it
//! (`playbook::micro`). Invariants: a critique always says whether another pass can help; every concern has a
//! severity and a place; nothing grave stands in a critique that says VERIFIED.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::report::Judgement;

/// More concerns than this are noise.
pub const MAX_CONCERNS: usize = 50;
/// The longest text of a concern that is kept.
pub const MAX_WORDS: usize = 2_000;

/// What the author did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthorReport {
    /// What the change is for, in one sentence.
    pub intent: String,
    /// What was done, one action per line.
    pub actions: Vec<String>,
    #[serde(default)]
    pub files_touched: Vec<String>,
    /// One sentence for the notes of the item, once it passes: what was done, and where.
    #[serde(default)]
    pub notes: String,
    /// What the next one who works here should know.
    #[serde(default)]
    pub learnings: Vec<String>,
    /// After a failed attempt: the one thing that this attempt does differently.
    #[serde(default)]
    pub retry: Option<RetryNote>,
}

/// What an attempt does differently from the one before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryNote {
    pub kind: RetryKind,
    /// Which variable, or the scope of what.
    pub what: String,
    pub from: String,
    pub to: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryKind {
    VariableChanged,
    ScopeNarrowed,
}

impl RetryNote {
    /// Does it say that something is different? The error goes back to the author.
    pub fn check(&self) -> Result<(), String> {
        if self.what.trim().is_empty() {
            return Err("`retry.what` is empty: name the one thing that is different".to_owned());
        }
        if self.from.trim() == self.to.trim() {
            return Err("`retry.from` and `retry.to` are the same: a retry changes one thing".to_owned());
        }
        Ok(())
    }
}

/// What the critic found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Critique {
    pub status: Status,
    /// Can another pass of the author fix what is wrong? Needed in every critique.
    #[serde(deserialize_with = "yes_or_no")]
    pub can_further_iteration_help: bool,
    pub recommendation: Recommendation,
    /// Why, in one sentence.
    pub reason: String,
    pub concerns: Vec<Concern>,
    /// One entry for each criterion you were asked to judge.
    #[serde(default)]
    pub judged: Vec<Judgement>,
    /// What had to be assumed.
    #[serde(default)]
    pub assumptions: Vec<String>,
}

/// VERIFIED: as it should be. UNVERIFIED: work is there, and concerns. BLOCKED: an input is missing or unreadable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    Verified,
    Unverified,
    Blocked,
}

impl Status {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verified => "VERIFIED",
            Self::Unverified => "UNVERIFIED",
            Self::Blocked => "BLOCKED",
        }
    }
}

/// What the critic would do next. Recorded; the kernel decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Recommendation {
    Continue,
    Loop,
    Detour,
    Escalate,
}

/// How much it matters. Other scales' words are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Severity {
    #[serde(alias = "CRITICAL", alias = "BLOCKING", alias = "high")]
    High,
    #[serde(alias = "MAJOR", alias = "DEGRADED", alias = "medium")]
    Medium,
    #[serde(alias = "MINOR", alias = "NIT", alias = "POLISH", alias = "low")]
    Low,
}

impl Severity {
    pub const fn name(self) -> &'static str {
        match self {
            Self::High => "HIGH",
            Self::Medium => "MEDIUM",
            Self::Low => "LOW",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Concern {
    pub severity: Severity,
    pub description: String,
    /// `path:line`; for something without lines, `n/a: ` and why.
    pub location: String,
    pub recommendation: String,
}

impl Concern {
    /// Is it the same concern as one of an earlier round? Lines move; the place and the words stay.
    pub fn is_like(&self, other: &Self) -> bool {
        let file = |concern: &Self| concern.location.rsplit_once(':').map_or("", |(file, _)| file).to_owned();
        file(self) == file(other) && self.description.trim() == other.description.trim()
    }
}

/// A critic may say it in a word.
fn yes_or_no<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Said {
        Flag(bool),
        Word(String),
    }
    match Said::deserialize(deserializer)? {
        Said::Flag(flag) => Ok(flag),
        Said::Word(word) if word.eq_ignore_ascii_case("yes") => Ok(true),
        Said::Word(word) if word.eq_ignore_ascii_case("no") => Ok(false),
        Said::Word(word) => Err(serde::de::Error::custom(format!("`{word}` is neither true nor false"))),
    }
}

/// `src/lib.rs:12`, or `n/a: the requirement itself`.
fn is_a_place(location: &str) -> bool {
    let location = location.trim();
    if let Some(why) = location.strip_prefix("n/a") {
        return !why.trim_start_matches([':', '-', ' ', '(']).trim().is_empty();
    }
    // A range of lines or a column may follow the line.
    let mut parts = location.splitn(2, ':');
    let (Some(path), Some(rest)) = (parts.next(), parts.next()) else { return false };
    !path.trim().is_empty() && rest.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
}

impl AuthorReport {
    pub fn check(&self) -> Result<(), String> {
        if self.actions.is_empty() {
            return Err("`actions` is empty: say what was done".to_owned());
        }
        self.retry.as_ref().map_or(Ok(()), RetryNote::check)
    }
}

impl Critique {
    /// Is it a critique at all? The error goes back to the critic.
    pub fn check(&self) -> Result<(), String> {
        if self.concerns.len() > MAX_CONCERNS {
            return Err(format!("{} concerns: name the {MAX_CONCERNS} that matter most", self.concerns.len()));
        }
        for concern in &self.concerns {
            let words = concern.description.trim();
            if words.is_empty() || concern.recommendation.trim().is_empty() {
                return Err("every concern needs a description and a recommendation".to_owned());
            }
            if !is_a_place(&concern.location) {
                return Err(format!(
                    "the concern `{}` has no place: give `path:line`, or `n/a: why` for something without lines",
                    &words[..words.floor_char_boundary(60)]
                ));
            }
        }
        if self.reason.trim().is_empty() {
            return Err("`reason` is empty: say why, in one sentence".to_owned());
        }
        let grave = |concern: &&Concern| concern.severity != Severity::Low;
        match self.status {
            Status::Verified if self.concerns.iter().any(|concern| grave(&concern)) => {
                Err("VERIFIED with a HIGH or MEDIUM concern contradicts itself: say UNVERIFIED, or drop the concern"
                    .to_owned())
            }
            Status::Verified if self.judged.iter().any(|judgement| !judgement.met) => {
                Err("VERIFIED with a criterion that is not met contradicts itself: say UNVERIFIED".to_owned())
            }
            Status::Unverified if self.concerns.is_empty() && self.judged.iter().all(|judgement| judgement.met) => {
                Err("UNVERIFIED without a concern tells the author nothing: name what is wrong, and where".to_owned())
            }
            Status::Verified | Status::Unverified | Status::Blocked => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn critique(change: impl FnOnce(&mut serde_json::Value)) -> Result<Critique, String> {
        let mut value = json!({
            "status": "UNVERIFIED",
            "can_further_iteration_help": true,
            "recommendation": "LOOP",
            "reason": "An edge case is missing.",
            "concerns": [{
                "severity": "HIGH",
                "description": "Empty input panics.",
                "location": "src/lib.rs:12",
                "recommendation": "Return an error.",
            }],
        });
        change(&mut value);
        let critique: Critique = serde_json::from_value(value).map_err(|e| e.to_string())?;
        critique.check().map(|()| critique)
    }

    #[test]
    fn a_critique_says_whether_another_pass_helps() {
        assert!(critique(|_| {}).is_ok());
        let missing = critique(|value| drop(value.as_object_mut().unwrap().remove("can_further_iteration_help")));
        assert!(missing.unwrap_err().contains("can_further_iteration_help"));
        for (word, helps) in [(json!("yes"), true), (json!("NO"), false), (json!(false), false)] {
            let said = critique(|value| value["can_further_iteration_help"] = word);
            assert_eq!(said.unwrap().can_further_iteration_help, helps);
        }
        let vague = critique(|value| value["can_further_iteration_help"] = json!("maybe"));
        assert!(vague.unwrap_err().contains("neither true nor false"));
    }

    #[test]
    fn concerns_have_a_place_and_a_severity_of_any_scale() {
        for place in ["src/lib.rs", "", "n/a", "n/a: ", ":12", "src/lib.rs:x"] {
            let said = critique(|value| value["concerns"][0]["location"] = json!(place));
            assert!(said.unwrap_err().contains("no place"), "{place}");
        }
        for place in ["src/lib.rs:12", "src/lib.rs:12:5", "a:1-3", "n/a: the goal itself", "n/a (no file yet)"] {
            assert!(critique(|value| value["concerns"][0]["location"] = json!(place)).is_ok(), "{place}");
        }
        for (word, severity) in [("CRITICAL", Severity::High), ("MAJOR", Severity::Medium), ("NIT", Severity::Low)] {
            let said = critique(|value| value["concerns"][0]["severity"] = json!(word)).unwrap();
            assert_eq!(said.concerns[0].severity, severity);
        }
        assert!(critique(|value| value["concerns"][0]["severity"] = json!("bad")).is_err());
    }

    #[test]
    fn verified_and_grave_do_not_go_together() {
        let said = critique(|value| value["status"] = json!("VERIFIED"));
        assert!(said.unwrap_err().contains("contradicts itself"));
        let fine = critique(|value| {
            value["status"] = json!("VERIFIED");
            value["concerns"][0]["severity"] = json!("LOW");
        });
        assert!(fine.is_ok());
        let unmet = critique(|value| {
            value["status"] = json!("VERIFIED");
            value["concerns"] = json!([]);
            value["judged"] = json!([{"criterion": "1", "met": false, "why": "not there"}]);
        });
        assert!(unmet.unwrap_err().contains("not met"));
        let empty = critique(|value| value["concerns"] = json!([]));
        assert!(empty.unwrap_err().contains("tells the author nothing"));
    }

    #[test]
    fn a_retry_changes_something() {
        let note = |from: &str, to: &str| RetryNote {
            kind: RetryKind::VariableChanged,
            what: "the parser".into(),
            from: from.into(),
            to: to.into(),
        };
        assert!(note("regex", "by hand").check().is_ok());
        assert!(note("regex", " regex ").check().unwrap_err().contains("the same"));
    }

    #[test]
    fn a_concern_is_known_again_on_another_line() {
        let at = |location: &str, words: &str| Concern {
            severity: Severity::Low,
            description: words.into(),
            location: location.into(),
            recommendation: "x".into(),
        };
        assert!(at("a.rs:3", "leaks").is_like(&at("a.rs:9", "leaks ")));
        assert!(!at("a.rs:3", "leaks").is_like(&at("b.rs:3", "leaks")));
        assert!(!at("a.rs:3", "leaks").is_like(&at("a.rs:3", "panics")));
    }
}
