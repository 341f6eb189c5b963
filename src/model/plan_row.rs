//! The rows of a plan, whatever the playbook: what has to be true at the end, how far it is, and what shows it.
//!
//! Not here: judging any of it, drawing. Invariant: foreign text in a row is harmless.

use super::decimal::Exact;
use super::safe::Safe;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    Criterion,
    /// What the run is worth so far.
    Value,
    /// Whether the work goes as it should.
    Course,
    Epic,
    Task,
    Check,
    Service,
    /// A round of refinement.
    Round,
    Gate,
    /// Of a PRD.
    Item,
    /// Of a critic.
    Concern,
}

impl RowKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Criterion => "criterion",
            Self::Value => "value",
            Self::Course => "course",
            Self::Epic => "epic",
            Self::Task => "task",
            Self::Check => "check",
            Self::Service => "service",
            Self::Round => "round",
            Self::Gate => "gate",
            Self::Item => "item",
            Self::Concern => "concern",
        }
    }

    /// Of several, in the margin beside them.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Criterion => "goal",
            Self::Value => "value",
            Self::Course => "course",
            Self::Epic => "epics",
            Self::Task => "tasks",
            Self::Check => "checks",
            Self::Service => "services",
            Self::Round => "rounds",
            Self::Gate => "gates",
            Self::Item => "items",
            Self::Concern => "concerns",
        }
    }
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowStatus {
    Met,
    NotMet,
    /// Nobody has looked yet.
    NotJudged,
    /// Green, but what guards it was changed.
    NotAccepted,
    /// Not agreed to as it was, but made anew: what follows judges the new text.
    Changed,
    /// Its time has not come.
    Waiting,
    Working,
    Blocked,
    /// No longer wanted.
    Dropped,
}

impl RowStatus {
    /// The word for it, of this kind of item.
    pub const fn word(self, kind: RowKind) -> &'static str {
        match (kind, self) {
            (RowKind::Task | RowKind::Epic, Self::Met) => "done",
            (RowKind::Epic, Self::Dropped) => "skipped",
            (RowKind::Check, Self::Met) => "passes",
            (RowKind::Check, Self::NotMet) => "fails",
            (RowKind::Gate, Self::Met) => "passed",
            (RowKind::Gate, Self::NotMet) => "failed",
            (RowKind::Round, Self::Met) => "agreed",
            (RowKind::Round, Self::NotAccepted) => "not agreed",
            (RowKind::Round, Self::Changed) => "new text",
            (RowKind::Value, Self::NotMet) => "not yet",
            (RowKind::Course, Self::Met) => "good",
            (RowKind::Course, Self::NotAccepted) => "look at it",
            (RowKind::Course, Self::NotMet) => "off course",
            (RowKind::Item, Self::Met) => "passes",
            (RowKind::Item, Self::NotMet) => "fails",
            (RowKind::Item, Self::Blocked) => "stuck",
            (RowKind::Item, Self::Dropped) => "skipped",
            (RowKind::Concern, Self::Met) => "small",
            (RowKind::Concern, Self::NotMet) => "open",
            (RowKind::Service, Self::Met) => "healthy",
            (RowKind::Service, Self::NotMet) => "not healthy",
            (_, status) => status.usual_word(),
        }
    }

    const fn usual_word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::NotJudged => "not judged",
            Self::NotAccepted => "not accepted",
            Self::Changed => "changed",
            Self::Waiting => "pending",
            Self::Working => "in progress",
            Self::Blocked => "blocked",
            Self::Dropped => "descoped",
        }
    }
}

/// Since when it has been so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    Start,
    Iteration(u32),
}

/// One thing that has to be true at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub kind: RowKind,
    pub id: Safe,
    pub text: Safe,
    pub status: RowStatus,
    pub since: Option<Since>,
    /// Path and short digest of what proves or disproves it.
    pub proof: Option<(Safe, String)>,
    pub why: Safe,
    /// How it is checked.
    pub how: Safe,
    /// What must not change in the iteration that turns it green.
    pub guards: Safe,
    /// Is it being checked right now?
    pub running: bool,
    /// Met or not, over time.
    pub story: Vec<(String, bool)>,
    /// Scores from 0 to 1, over time.
    pub trend: Vec<Exact>,
    /// What it hangs on, beside it in the list where nothing is said about since when.
    pub aside: Safe,
    /// More to know, each with its name.
    pub more: Vec<(&'static str, Safe)>,
}

impl Row {
    /// A row that says no more than this.
    pub fn new(kind: RowKind, id: &str, text: &str, status: RowStatus) -> Self {
        Self {
            kind,
            id: Safe::line(id),
            text: Safe::line(text),
            status,
            since: None,
            proof: None,
            why: Safe::default(),
            how: Safe::default(),
            guards: Safe::default(),
            running: false,
            story: Vec::new(),
            trend: Vec::new(),
            aside: Safe::default(),
            more: Vec::new(),
        }
    }

    /// Something more to know, unless there is nothing to say.
    pub fn add(&mut self, name: &'static str, text: &str) {
        if !text.is_empty() {
            self.more.push((name, Safe::line(text)));
        }
    }

    pub fn contains(&self, lower: &str) -> bool {
        let more = self.more.iter().map(|(_, text)| text);
        let mut texts = [&self.id, &self.text, &self.why, &self.how].into_iter().chain(more);
        texts.any(|text| text.as_str().to_lowercase().contains(lower))
    }

    pub fn since_text(&self) -> String {
        match self.since {
            Some(Since::Start) => "since start".to_owned(),
            Some(Since::Iteration(number)) => format!("since it{number}"),
            None => String::new(),
        }
    }

    pub fn as_text(&self) -> String {
        let proof = self.proof.as_ref().map(|(path, sha)| format!(", proof {path}#{sha}")).unwrap_or_default();
        format!("{}: {} ({}): {}{proof}", self.id, self.text, self.status.word(self.kind), self.why)
    }
}
