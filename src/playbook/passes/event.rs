//! Events of the playbooks in which an author works and a critic judges: items of a PRD, passes, routes.
//!
//! `ItemChosen`, `PassJudged` and `RouteDecided` follow from the facts before them, and `verify` makes them again;
//! `PrdRead` and `ItemSettled` are facts.

use serde::{Deserialize, Serialize};

use crate::machine::event::{family, work_event};
use crate::machine::words::{Place, Told, Topic::Run};

use crate::model::critique::Concern;
use crate::model::digest::Digest;
use crate::model::prd::Needs;
pub use crate::model::prd::ReadWhen;
use crate::model::signature::Signature;
use crate::model::tools::Fix;

use super::state;

/// Lines about what items wait for and will not get.
const MOST_WARNINGS: usize = 5;

family! {
    /// What happened to items, passes and routes.
    PassEvent {
        PrdRead = "prd.read", Fact, |read| read.sha256.into_iter().chain(read.theirs).collect();
        ItemChosen = "item.chosen", Decided;
        PassJudged = "pass.judged", Decided;
        RouteDecided = "route.decided", Decided;
        ItemSettled = "item.settled", Fact, |settled| settled.sha256.into_iter().collect();
    }
}
work_event!(PassEvent);

impl PassEvent {
    pub fn told(&self, _at: &Place) -> Told {
        let (text, good) = match self {
            Self::PrdRead(read) => match (&read.problem, read.when) {
                (Some(problem), _) => (format!("items: {problem}"), Some(false)),
                (None, _) if !read.touched.is_empty() => {
                    let what = read.touched.join(", ");
                    (format!("the PRD was changed while an agent worked ({what}): not believed"), Some(false))
                }
                (None, ReadWhen::Restored) => ("the items are put back as they were".to_owned(), None),
                (None, ReadWhen::Start | ReadWhen::Between | ReadWhen::AfterWork) => {
                    let Some(items) = &read.items else { return Told::quiet(Run, self.kind()) };
                    let passing = items.iter().filter(|item| item.passes).count();
                    let waiting = state::waiting(items);
                    let warnings = Needs::of(&waiting).warnings(&waiting, MOST_WARNINGS);
                    let good = (!warnings.is_empty()).then_some(false);
                    let by = if read.by_hand { ", changed by hand meanwhile" } else { "" };
                    let head = format!("items: {passing} of {} pass{by}", items.len());
                    let archived = read.archived.iter().map(|folder| format!("the last branch's are in {folder}"));
                    let words = std::iter::once(head).chain(archived).chain(warnings).chain(read.notes.clone());
                    (words.collect::<Vec<_>>().join("; "), good)
                }
            },
            Self::ItemChosen(chosen) => {
                (format!("item {}, attempt {}: {}", chosen.item, chosen.pass, chosen.why), None)
            }
            Self::PassJudged(judged) => {
                let who = match &judged.by {
                    By::Author => String::new(),
                    By::Detour(name) => format!(" after {name}"),
                };
                let item = judged.subject.as_ref().map(|item| format!("{item} ")).unwrap_or_default();
                let good = judged.verdict == PassVerdict::Verified;
                let remarks: String = judged.remarks().iter().map(|remark| format!("; {remark}")).collect();
                (format!("{item}{}{who}: {}{remarks}", judged.verdict.name(), judged.detail), Some(good))
            }
            Self::RouteDecided(decided) => {
                let target = match &decided.route {
                    Route::Detour(name) => format!(" to {name}"),
                    _ => String::new(),
                };
                let count = format!("pass {} of {}", decided.pass, decided.limit);
                (format!("{}{target} ({count}): {}", decided.route.name(), decided.why), None)
            }
            Self::ItemSettled(settled) => match (&settled.problem, settled.passes) {
                (Some(problem), _) => (format!("{} is not flipped: {problem}", settled.item), Some(false)),
                (None, true) => (format!("{} passes", settled.item), Some(true)),
                (None, false) => return Told::quiet(Run, self.kind()),
            },
        };
        Told { good, ..Told::new(Run, text) }
    }
}

/// An item as the file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemSeen {
    pub id: String,
    pub title: String,
    pub passes: bool,
    /// Its place in the order of the work: by priority, then as in the file.
    pub order: u32,
    /// What must hold; only of items that do not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<String>,
    /// Ids of what has to pass before, as written; only of items that do not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The command of its own that the file names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
}

/// The file of items as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrdRead {
    pub when: ReadWhen,
    /// The believed text, as a blob; `None`: it cannot be used, and `problem` says why.
    pub sha256: Option<Digest>,
    /// `None`: as known before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<ItemSeen>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Items whose verdict changed while an agent worked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touched: Vec<String>,
    /// What else people should know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The folder in which what belongs to an earlier branch is kept now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<String>,
    /// The text that was found and is not believed, as a blob. The believed one has to be put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theirs: Option<Digest>,
    /// Neither agents nor checks could write the file meanwhile: what it says now is a person's word, verdicts too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
    /// Which folders the file lies in, by what they are and not by their names: an agent may move them. `None`: it can
    /// be reached by another way as well, so that sealing it is not enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// The one item that the next iteration works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemChosen {
    pub iteration: u32,
    pub item: String,
    /// Which attempt, from 1.
    pub pass: u32,
    pub why: String,
}

/// Who changed the workspace in a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    Author,
    /// A known fix, by its name.
    Detour(String),
}

/// What a pass came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PassVerdict {
    /// The checks pass and the critic agrees.
    Verified,
    Unverified,
    /// Something that is needed is missing or unreadable.
    Blocked,
    /// A retry that changed nothing: it was not judged.
    Refused,
    /// The critic changed files: its word does not count.
    Discarded,
}

impl PassVerdict {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verified => "VERIFIED",
            Self::Unverified => "UNVERIFIED",
            Self::Blocked => "BLOCKED",
            Self::Refused => "REFUSED",
            Self::Discarded => "DISCARDED",
        }
    }
}

/// A pass is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PassJudged {
    pub iteration: u32,
    /// The item, where there are items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub by: By,
    pub verdict: PassVerdict,
    /// Can the author do something about it?
    pub help: bool,
    /// The failure without places, times and numbers; `None`: it cannot be told from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    /// The fix that the tool of the first failed check has for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// Checks that failed, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concerns: Vec<Concern>,
    /// Files changed outside the item's declared scope.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_scope: Vec<String>,
    /// Files that somebody else changed while the critic read, and that it did not judge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanwhile: Vec<String>,
    pub detail: String,
}

impl PassJudged {
    /// What else is to be known of it: files outside the item's scope, files that somebody else changed meanwhile.
    pub fn remarks(&self) -> Vec<String> {
        let remark =
            |what: &str, files: &[String]| (!files.is_empty()).then(|| format!("{what}: {}", files.join(", ")));
        let outside = remark("changed outside the item's scope", &self.out_of_scope);
        let meanwhile = remark("changed by somebody else while the critic read", &self.meanwhile);
        outside.into_iter().chain(meanwhile).collect()
    }
}

/// Where the flow goes after a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Route {
    /// Verified: go on.
    Continue,
    /// The author's turn again, with the critique.
    Loop,
    /// A known fix is tried.
    Detour(String),
    /// A person has to look.
    Escalate,
    /// No pass can help: go on with the concerns written down. Never counts as verified.
    Terminate,
    /// The limit is reached: go on with warnings. Never counts as verified.
    AdvanceWithWarnings,
}

impl Route {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Continue => "CONTINUE",
            Self::Loop => "LOOP",
            Self::Detour(_) => "DETOUR",
            Self::Escalate => "ESCALATE",
            Self::Terminate => "TERMINATE",
            Self::AdvanceWithWarnings => "ADVANCE_WITH_WARNINGS",
        }
    }

    /// Is it anything else than the straight way?
    pub const fn is_offroad(&self) -> bool {
        !matches!(self, Self::Continue)
    }
}

/// A routing decision, with its reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouteDecided {
    pub iteration: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub route: Route,
    pub why: String,
    pub offroad: bool,
    /// Passes of the author so far, and how many there may be.
    pub pass: u32,
    pub limit: u32,
}

/// What a judged pass means for its item is in the files: prd.json, the log, the progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemSettled {
    pub iteration: u32,
    pub item: String,
    pub passes: bool,
    /// The text of prd.json now, as a blob.
    pub sha256: Option<Digest>,
    /// The items now, where more is different than this one; `None`: as known before, but for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<ItemSeen>>,
    /// Why a verified item was not flipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
