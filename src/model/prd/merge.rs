//! Bringing our change into a file that somebody else has changed meanwhile.
//!
//! Role: from what we read (`base`), our change of one item and what is on disk now (`theirs`), the text that has both.
//! Not its role: deciding a conflict. Invariants: everything in `theirs` that the change is not about stays byte for
//! byte; a verdict that somebody else touched is never overwritten.

use super::error::{PrdError, quote};
use super::{Change, ChangeError, Item, Prd};

/// A text that holds their changes and ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    pub text: String,
    /// They changed what our item asks for (title, description, acceptance): what was proven may be something else.
    pub asks_differently: bool,
}

/// Why nothing was merged. Nothing is lost: both texts are still there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotMerged {
    #[error("the file is no longer a PRD: {0}")]
    NotAPrd(PrdError),
    #[error("item `{}` is no longer in the file: put it back, or drop the change", quote(.id))]
    Gone { id: String },
    #[error(
        "somebody else changed whether item `{}` passes: it said {}, the file now says {}, and {} was to be written",
        quote(.id), quote(.base), quote(.theirs), quote(.ours)
    )]
    Conflict { id: String, base: String, ours: String, theirs: String },
    #[error(transparent)]
    Unwritable(#[from] ChangeError),
}

/// The text with their changes and ours: this change of one item.
pub fn merge(base: &Prd, id: &str, change: &Change, theirs: &[u8]) -> Result<Merged, NotMerged> {
    let ours = base.with_item(id, change)?;
    // Nothing happened, or our text is there already: after a crash the same write may be tried again.
    if theirs == base.text.as_bytes() || theirs == ours.as_bytes() {
        return Ok(Merged { text: ours, asks_differently: false });
    }
    let theirs = Prd::read(theirs).map_err(NotMerged::NotAPrd)?;
    let (Some(before), Some(now)) = (base.item(id), theirs.item(id)) else {
        return Err(NotMerged::Gone { id: id.to_owned() });
    };
    let turns = change.passes.is_some_and(|passes| passes != before.passes);
    if turns && said(base, before) != said(&theirs, now) {
        let ours = Prd::read(ours.as_bytes()).map_err(NotMerged::NotAPrd)?;
        let after = ours.item(id).map(|after| said(&ours, after)).unwrap_or_default();
        let [base, ours, theirs] = [said(base, before), after, said(&theirs, now)].map(|said| said.join(", "));
        return Err(NotMerged::Conflict { id: id.to_owned(), base, ours, theirs });
    }
    let text = theirs.with_item(id, change)?;
    Ok(Merged { text, asks_differently: !now.asks_the_same(before) })
}

/// The words with which an item says whether it passes, as written.
fn said(prd: &Prd, item: &Item) -> Vec<String> {
    item.verdicts().iter().map(|verdict| format!("{}: {}", verdict.key, verdict.value.of(&prd.text))).collect()
}
