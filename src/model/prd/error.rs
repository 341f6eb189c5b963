//! Why a file is not a PRD that can be worked on, in words that say what to write instead.
//!
//! Role: the error values of reading, changing and merging, and their place in the file.
//! Not its role: finding them. Invariants: a message is bounded and holds nothing of the file that could harm a
//! screen; a question (NEED_INFO) is told apart from a file that is simply something else.

use std::fmt;

use super::json::Syntax;
use super::{MOST_BYTES, MOST_ITEMS, MOST_NOTE_BYTES, is};
use crate::model::diagnose::Diagnostic;
use crate::model::safe::Safe;

/// Quoted text of the file is cut here.
const LONGEST_QUOTE: usize = 60;

const ITEMS_HINT: &str = r#"write {"items": [{"id": "A-1", "title": "...", "acceptance": ["..."], "passes": false}]}"#;
const STATUS_HINT: &str = "write pending, in-progress or done, or take it out and write \"passes\": false or true";

/// Why a file cannot be used, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrdError {
    pub why: Why,
    /// From one; columns count characters.
    pub line: usize,
    pub column: usize,
}

/// What is wrong. `item` is an id, or a path where there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("the file has {0} bytes; at most {MOST_BYTES} are read")]
    TooLarge(usize),
    #[error("not UTF-8 text")]
    NotUtf8,
    #[error("UTF-16 text, not UTF-8")]
    Utf16,
    #[error("marks of a merge that was not finished")]
    MergeMarks,
    #[error("not JSON: {0}")]
    NotJson(Syntax),
    #[error("no list of items: {what}")]
    NoList { what: String },
    #[error("the list of items ({list}) is empty: nothing to do is not the same as all done")]
    NoItems { list: String },
    #[error("more than {MOST_ITEMS} items")]
    TooManyItems,
    #[error("two lists could be meant: `{first}` and `{second}`")]
    TwoLists { first: String, second: String },
    #[error("{path} is {found}, not a list of items")]
    NotAList { path: String, found: &'static str },
    #[error("{path} is {found}, not an item")]
    NotAnItem { path: String, found: &'static str },
    #[error("item {item} does not say whether it passes")]
    VerdictMissing { item: String },
    #[error("item {item}: `{key}` is {found}, which says neither that it passes nor that it does not")]
    VerdictUnclear { item: String, key: String, found: &'static str },
    #[error("item {item}: the {key} `{word}` says neither that it passes nor that it does not")]
    StatusUnknown { item: String, key: String, word: String },
    #[error("item {item} contradicts itself: {first}, but {second}")]
    Contradiction { item: String, first: String, second: String },
    #[error("the id `{id}` is used twice (first in line {first_line})")]
    TwiceId { id: String, first_line: usize },
    #[error("items without an id that read the same (the first in line {first_line})")]
    Twins { first_line: usize },
    #[error("{path}: the id is {found}")]
    BadId { path: String, found: &'static str },
    #[error("item {item} says nothing of what is to be done")]
    SaysNothing { item: String },
    #[error("item {item}: the priority {found} cannot be put in an order")]
    BadPriority { item: String, found: String },
    #[error("item {item}: the priority `{here}` cannot be compared with `{there}` of item {other}")]
    TwoScales { item: String, here: String, other: String, there: String },
}

impl Why {
    /// What the author of the file should do.
    pub fn hint(&self) -> String {
        match self {
            Self::TooLarge(_) | Self::TooManyItems => "split it: keep in prd.json what is to be done next".to_owned(),
            Self::NotUtf8 | Self::Utf16 => "save the file as UTF-8".to_owned(),
            Self::MergeMarks => "finish the merge: keep one side and remove the marks".to_owned(),
            Self::NotJson(syntax) => syntax_hint(syntax).to_owned(),
            Self::NoList { .. } | Self::NotAList { .. } | Self::NotAnItem { .. } | Self::NoItems { .. } => {
                ITEMS_HINT.to_owned()
            }
            Self::TwoLists { .. } => {
                "keep the items to work on in one list called items, and the other list in another file".to_owned()
            }
            Self::VerdictMissing { .. } => "write \"passes\": false, or true if it is proven".to_owned(),
            Self::VerdictUnclear { key, .. } if is(key, "status") => STATUS_HINT.to_owned(),
            Self::VerdictUnclear { key, .. } => format!("write \"{key}\": false, or true if it is proven"),
            Self::StatusUnknown { .. } => STATUS_HINT.to_owned(),
            Self::Contradiction { .. } => "make both say the same, or take one out".to_owned(),
            Self::TwiceId { .. } => "give each item its own id".to_owned(),
            Self::Twins { .. } => "give each of them an id".to_owned(),
            Self::BadId { .. } => "write a short text, e.g. \"A-1\", or a number".to_owned(),
            Self::SaysNothing { .. } => "write a title or a description".to_owned(),
            Self::BadPriority { .. } => {
                "write a number (1 is first), or critical, high, medium, low, or P0 to P9, or must, should, could"
                    .to_owned()
            }
            Self::TwoScales { .. } => "use either numbers or one set of words for all priorities".to_owned(),
        }
    }

    /// A PRD that leaves a question open, which only its author can answer; otherwise it is no PRD at all.
    pub const fn is_need_info(&self) -> bool {
        match self {
            Self::NoItems { .. }
            | Self::TwoLists { .. }
            | Self::VerdictMissing { .. }
            | Self::VerdictUnclear { .. }
            | Self::StatusUnknown { .. }
            | Self::Contradiction { .. }
            | Self::TwiceId { .. }
            | Self::Twins { .. }
            | Self::BadId { .. }
            | Self::SaysNothing { .. }
            | Self::BadPriority { .. }
            | Self::TwoScales { .. } => true,
            Self::TooLarge(_)
            | Self::NotUtf8
            | Self::Utf16
            | Self::MergeMarks
            | Self::NotJson(_)
            | Self::NoList { .. }
            | Self::TooManyItems
            | Self::NotAList { .. }
            | Self::NotAnItem { .. } => false,
        }
    }
}

fn syntax_hint(syntax: &Syntax) -> &'static str {
    match syntax {
        Syntax::Nothing => ITEMS_HINT,
        Syntax::Cut => "the end is missing: restore the file, or close its lists and objects",
        Syntax::NoValue => "write text in double quotes, a number, true, false, null, a list or an object",
        Syntax::NoKey => "write keys in double quotes",
        Syntax::NoColon => "write \"key\": value",
        Syntax::NoComma(_) => "put a comma between values, or close what is open",
        Syntax::SpareComma => "take the comma out",
        Syntax::Comment => "take the comment out, or make it a key of its own",
        Syntax::BadNumber => "write digits, perhaps a fraction and an exponent, without a leading zero",
        Syntax::OpenText => "close the text with a double quote; write line breaks in it as \\n",
        Syntax::BadEscape => "write \\\\ for a backslash, \\\" for a quote",
        Syntax::Behind => "a file holds one value: take out the rest, or join the two by hand",
        Syntax::TooDeep | Syntax::TooMany => "keep only the items in this file",
        Syntax::TwiceKey { .. } => "keep one of the two",
    }
}

impl PrdError {
    pub const fn is_need_info(&self) -> bool {
        self.why.is_need_info()
    }

    /// In the shape of all messages about files.
    pub fn diagnostic(&self, file: &str) -> Diagnostic {
        Diagnostic::new(file, Safe::line(&self.why.to_string()).as_str())
            .at(self.line, self.column)
            .with_hint(self.why.hint())
    }
}

impl fmt::Display for PrdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.diagnostic("prd.json"))
    }
}

impl std::error::Error for PrdError {}

/// Why an item cannot be changed as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("there is no item `{}` in the PRD", quote(.id))]
    NoSuchItem { id: String },
    #[error(
        "line {line}: the notes of item `{}` are {found}: a note can be added to text or to a list of texts",
        quote(.id)
    )]
    NotesAreNotText { id: String, line: usize, found: &'static str },
    #[error("a note of {0} bytes is too long: at most {MOST_NOTE_BYTES} are written")]
    NoteTooLong(usize),
    #[error("with the change the file would have {0} bytes: at most {MOST_BYTES} are read again")]
    TooLarge(usize),
}

/// Text of the file inside a sentence: one line, harmless and short.
pub fn quote(text: &str) -> String {
    let line = Safe::line(text);
    let mut chars = line.as_str().chars();
    let head: String = chars.by_ref().take(LONGEST_QUOTE).collect();
    if chars.next().is_some() { format!("{head}…") } else { head }
}
