//! A decision: something that waits for a person. What is asked, what may be answered.
//!
//! Not here: waiting, asking, showing. An answer is never invented, and a time-out never means yes.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::digest::Digest;

/// The tool through which an agent asks a person.
pub const ASK_TOOL: &str = "ask_human";
/// The rule behind a permission to reach a host that is on no list.
pub const NETWORK_RULE: &str = "sandbox.network";
/// A run that asks more often than this is not asking but stuck.
pub const MAX_DECISIONS: usize = 200;
/// The longest text of a question, an instruction, an answer or a note.
pub const MAX_TEXT: usize = 16 * 1024;
/// A document that is proposed for approval.
pub const MAX_PROPOSAL: usize = 1 << 20;
/// How often a person may say "done" before the verification passes.
pub const MAX_CHECKS: u32 = 50;
/// The longest command of an operator, in arguments.
const MAX_ARGUMENTS: usize = 100;
/// Seconds a verification may take when the request does not say.
pub const DEFAULT_VERIFY_SECONDS: u64 = 120;

/// The number of a decision within its run, shown as `d1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DecisionId(pub u32);

impl DecisionId {
    /// `d3` or `3`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['d', 'D']).unwrap_or(text);
        digits.parse().ok().filter(|number| *number > 0).map(Self)
    }
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "d{}", self.0)
    }
}

/// How grave a finding about the vision is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Severity {
    /// Must be revised.
    Hard,
    /// May be acknowledged.
    Soft,
}

/// One finding about the vision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisionIssue {
    pub severity: Severity,
    pub text: String,
    #[serde(default)]
    pub alternatives: Vec<String>,
}

/// A file that guards a criterion, as it is now. `None`: it is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardFile {
    pub path: String,
    pub sha256: Option<Digest>,
}

/// A file that a run changed among its judges, and nobody accepted: digests of what it found there and what it left;
/// `None`: no file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unaccepted {
    pub path: String,
    pub found: Option<Digest>,
    #[serde(default)]
    pub executable: bool,
    pub left: Option<Digest>,
}

impl Unaccepted {
    /// Stands for installed programs, which no tree holds and nobody can put back.
    pub const PROGRAMS: &'static str = "(installed programs)";

    pub fn programs() -> Self {
        Self { path: Self::PROGRAMS.to_owned(), found: None, executable: false, left: None }
    }
}

/// A run of a check, and what it showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    pub what: String,
    pub output: Digest,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Request {
    /// Something only a person can do; the command proves that it is done.
    HumanAction {
        instructions: String,
        verify: Option<Vec<String>>,
        timeout_seconds: u64,
    },
    Question {
        question: String,
        choices: Vec<String>,
    },
    /// A tool call that a rule puts before a person.
    Permission {
        tool: String,
        command: String,
        directory: String,
        rule: String,
    },
    /// A new text of a document, to be approved by hunk.
    Refinement {
        path: String,
        before: Digest,
        after: Digest,
    },
    Vision {
        issues: Vec<VisionIssue>,
    },
    /// The iteration that turned a criterion green also changed what its check depends on.
    Tampering {
        iteration: u32,
        findings: Vec<String>,
        files: Vec<GuardFile>,
        /// What was changed, as a diff.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<Digest>,
        /// What the checks showed, as they are and against other trees.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        trials: Vec<Trial>,
    },
    /// The loop is at its wits' end.
    Escalation {
        problem: String,
        options: Vec<String>,
    },
    /// The account's spend limit is reached.
    SpendLimit {
        detail: String,
    },
    /// The attempts at something are used up: an item of the PRD, or the whole of a microloop.
    Stuck {
        /// The item; `None`: there are no items.
        subject: Option<String>,
        /// The iteration that was the last attempt.
        iteration: u32,
        problem: String,
        /// Does the run go on with something else meanwhile?
        parked: bool,
    },
}

impl Request {
    /// The texts it is about.
    pub fn blobs(&self) -> Vec<Digest> {
        match self {
            Self::Refinement { before, after, .. } => vec![*before, *after],
            Self::Tampering { diff, trials, .. } => trials.iter().map(|trial| trial.output).chain(*diff).collect(),
            Self::HumanAction { .. }
            | Self::Question { .. }
            | Self::Permission { .. }
            | Self::Vision { .. }
            | Self::Escalation { .. }
            | Self::SpendLimit { .. }
            | Self::Stuck { .. } => Vec::new(),
        }
    }

    /// A name for lists.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::HumanAction { .. } => "pause",
            Self::Question { .. } => "question",
            Self::Permission { .. } => "permission",
            Self::Refinement { .. } => "refinement",
            Self::Vision { .. } => "vision",
            Self::Tampering { .. } => "tampering",
            Self::Escalation { .. } => "escalation",
            Self::SpendLimit { .. } => "spend limit",
            Self::Stuck { .. } => "stuck",
        }
    }

    /// The heart of it, in one piece of text.
    pub fn gist(&self) -> String {
        match self {
            Self::HumanAction { instructions, .. } => instructions.clone(),
            Self::Question { question, .. } => question.clone(),
            Self::Permission { tool, command, .. } => format!("{tool}: {command}"),
            Self::Refinement { path, .. } => format!("a new text for {path}"),
            Self::Vision { issues } => match issues.first() {
                Some(issue) if issues.len() == 1 => issue.text.clone(),
                Some(issue) => format!("{} (and {} more)", issue.text, issues.len() - 1),
                None => "the vision".to_owned(),
            },
            Self::Tampering { findings, .. } => findings.join("; "),
            Self::Escalation { problem, .. } => problem.clone(),
            Self::SpendLimit { detail } => detail.clone(),
            Self::Stuck { subject: Some(item), problem, .. } => format!("{item}: {problem}"),
            Self::Stuck { subject: None, problem, .. } => problem.clone(),
        }
    }

    /// May this be the answer? The error says what may.
    pub fn permits(&self, answer: &Answer) -> Result<(), &'static str> {
        let long = |text: &String| text.len() > MAX_TEXT;
        match (self, answer) {
            (_, Answer::Text(text)) if long(text) => Err("the text is too long"),
            (_, Answer::Revise(text)) if long(text) => Err("the text is too long"),
            (_, Answer::Quit) => Ok(()),
            (Self::HumanAction { .. }, Answer::Done) => Ok(()),
            (Self::HumanAction { verify: Some(_), .. }, Answer::Override) => Ok(()),
            (Self::HumanAction { verify: Some(_), .. }, Answer::DoneBy { command }) => by_another_command(command),
            (Self::HumanAction { verify: Some(_), .. }, _) => {
                Err("answer `done` once it is done, `check COMMAND`, `override` with a note, or `quit`")
            }
            (Self::HumanAction { verify: None, .. }, _) => Err("answer `done` once it is done, or `quit`"),
            (Self::Question { .. } | Self::Escalation { .. }, Answer::Text(text)) if !text.trim().is_empty() => Ok(()),
            (Self::Question { .. } | Self::Escalation { .. }, _) => Err("answer with a text, or `quit`"),
            (Self::Permission { .. }, Answer::Allow | Answer::AllowAlways | Answer::Deny) => Ok(()),
            (Self::Permission { .. }, _) => Err("answer `allow`, `always`, `deny` or `quit`"),
            (Self::Refinement { .. }, Answer::Approve { .. } | Answer::Reject) => Ok(()),
            (Self::Refinement { .. }, _) => Err("answer `approve`, `reject` or `quit`"),
            (Self::Tampering { .. }, Answer::Accept | Answer::Reject) => Ok(()),
            (Self::Tampering { .. }, _) => Err("answer `accept`, `reject` or `quit`"),
            (Self::Vision { issues }, Answer::Acknowledge) => {
                if issues.iter().any(|issue| issue.severity == Severity::Hard) {
                    Err("a HARD issue cannot be acknowledged: revise or quit")
                } else {
                    Ok(())
                }
            }
            (Self::Vision { .. }, Answer::Revise(_)) => Ok(()),
            (Self::Vision { .. }, _) => Err("answer `revise`, `acknowledge` or `quit`"),
            (Self::Stuck { .. }, Answer::Retry) => Ok(()),
            (Self::Stuck { .. }, Answer::Text(text)) if !text.trim().is_empty() => Ok(()),
            (Self::Stuck { .. }, Answer::Skip) | (Self::Stuck { subject: Some(_), .. }, Answer::Split) => Ok(()),
            (Self::Stuck { subject: Some(_), .. }, _) => {
                Err("answer `retry`, a hint for the next attempt, `split`, `skip` or `quit`")
            }
            (Self::Stuck { subject: None, .. }, _) => {
                Err("answer `retry`, a hint for the next attempt, `skip` to leave it as it is, or `quit`")
            }
            (Self::SpendLimit { .. }, Answer::Retry) => Ok(()),
            (Self::SpendLimit { .. }, _) => Err("answer `retry` once the limit is raised, or `quit`"),
        }
    }

    /// Does the run go on while it is open?
    pub fn is_parked(&self) -> bool {
        matches!(self, Self::Stuck { parked: true, .. }) || self.host().is_some()
    }

    /// The host that commands are to reach, if that is what is asked.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::Permission { command, rule, .. } if rule == NETWORK_RULE => Some(command),
            _ => None,
        }
    }

    /// Does anything have to be done before this answer closes the decision?
    pub const fn needs_settling(&self, answer: &Answer) -> bool {
        match (self, answer) {
            (Self::HumanAction { verify, .. }, Answer::Done) => verify.is_some(),
            (Self::HumanAction { .. }, Answer::DoneBy { .. }) => true,
            (Self::Refinement { .. }, Answer::Approve { .. }) => true,
            _ => false,
        }
    }
}

/// Is this a command that can prove an action?
fn by_another_command(command: &[String]) -> Result<(), &'static str> {
    let bytes: usize = command.iter().map(String::len).sum();
    match command.first() {
        Some(program) if program.trim().is_empty() => Err("the command names no program"),
        None => Err("the command names no program"),
        Some(_) if command.len() > MAX_ARGUMENTS || bytes > MAX_TEXT => Err("the command is too long"),
        Some(_) => Ok(()),
    }
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is done; the verification may run.
    Done,
    /// It is done, and this command proves it: the one that was asked for is wrong.
    DoneBy {
        command: Vec<String>,
    },
    /// It is done whatever the command says; whoever answers so says why in the note.
    Override,
    Text(String),
    Allow,
    /// Allow, and the same again for the rest of this run and for later ones in this workspace.
    AllowAlways,
    Deny,
    /// The document becomes this text: the proposal, a part of it, or an edited one.
    Approve {
        result: Digest,
    },
    /// The changed guards are as they should be.
    Accept,
    Reject,
    Revise(String),
    Acknowledge,
    Retry,
    /// Leave this item alone for the rest of the run.
    Skip,
    /// The item was replaced by smaller ones in the file, by hand: go on with what is there.
    Split,
    /// End the run.
    Quit,
}

impl Answer {
    /// The text that was approved.
    pub fn blob(&self) -> Option<Digest> {
        match self {
            Self::Approve { result } => Some(*result),
            _ => None,
        }
    }

    pub const fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::DoneBy { .. } => "check",
            Self::Override => "override",
            Self::Text(_) => "text",
            Self::Allow => "allow",
            Self::AllowAlways => "always",
            Self::Deny => "deny",
            Self::Approve { .. } => "approve",
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Revise(_) => "revise",
            Self::Acknowledge => "acknowledge",
            Self::Retry => "retry",
            Self::Skip => "skip",
            Self::Split => "split",
            Self::Quit => "quit",
        }
    }
}

/// What happens to a decision nobody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patience {
    pub mode: Mode,
    /// After this the run stops; 0: it waits on.
    pub timeout_minutes: u64,
}

impl Patience {
    pub const STOP: Self = Self { mode: Mode::Stop, timeout_minutes: 0 };
    pub const WAIT: Self = Self { mode: Mode::Wait, timeout_minutes: 0 };

    /// In words, for the inbox.
    pub fn describe(self) -> String {
        match (self.mode, self.timeout_minutes) {
            (Mode::Stop, _) => "the run stops, and can be resumed after an answer".to_owned(),
            (Mode::Wait, 0) => "the run waits; waiting costs nothing".to_owned(),
            (Mode::Wait, minutes) => format!("after {minutes} min the run stops, and can be resumed after an answer"),
        }
    }
}

/// Runs written before there were decisions asked nobody.
impl Default for Patience {
    fn default() -> Self {
        Self::STOP
    }
}

/// Wait for a person, or stop and say what is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Wait,
    Stop,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_as_they_are_shown() {
        assert_eq!(DecisionId::parse("d7"), Some(DecisionId(7)));
        assert_eq!(DecisionId::parse("7"), Some(DecisionId(7)));
        assert_eq!(DecisionId::parse("d0"), None);
        assert_eq!(DecisionId::parse("dd1"), None);
        assert_eq!(DecisionId(7).to_string(), "d7");
    }

    #[test]
    fn a_hard_issue_cannot_be_waved_through() {
        let issue = |severity| VisionIssue { severity, text: "vague".into(), alternatives: Vec::new() };
        let soft = Request::Vision { issues: vec![issue(Severity::Soft)] };
        assert!(soft.permits(&Answer::Acknowledge).is_ok());
        let hard = Request::Vision { issues: vec![issue(Severity::Soft), issue(Severity::Hard)] };
        assert!(hard.permits(&Answer::Acknowledge).is_err());
        assert!(hard.permits(&Answer::Revise("narrower".into())).is_ok());
    }

    #[test]
    fn a_verification_can_be_replaced_or_overridden_where_there_is_one() {
        let pause = |verify| Request::HumanAction { instructions: "i".into(), verify, timeout_seconds: 1 };
        let by = |words: &[&str]| Answer::DoneBy { command: words.iter().map(|word| (*word).to_owned()).collect() };
        let checked = pause(Some(vec!["false".into()]));
        assert!(checked.permits(&by(&["test", "-e", "a"])).is_ok() && checked.permits(&Answer::Override).is_ok());
        for bad in [by(&[]), by(&[" "]), by(&["x"; MAX_ARGUMENTS + 1]), by(&[&"x".repeat(MAX_TEXT + 1)])] {
            assert!(checked.permits(&bad).is_err());
        }
        let unchecked = pause(None);
        assert!(unchecked.permits(&by(&["true"])).is_err() && unchecked.permits(&Answer::Override).is_err());
        assert!(checked.needs_settling(&by(&["true"])) && !checked.needs_settling(&Answer::Override));
    }

    #[test]
    fn answers_of_another_kind_are_refused() {
        let question = Request::Question { question: "Which?".into(), choices: Vec::new() };
        assert!(question.permits(&Answer::Text("this".into())).is_ok());
        assert!(question.permits(&Answer::Text("  ".into())).is_err());
        assert!(question.permits(&Answer::Allow).is_err());
        assert!(question.permits(&Answer::Quit).is_ok());
        assert!(question.permits(&Answer::Text("x".repeat(MAX_TEXT + 1))).is_err());
    }
}
