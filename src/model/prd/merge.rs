//! Bringing our change into a file that somebody else has changed meanwhile.
//!
//! Role: from what we read (`base`), what we would write (`ours`) and what is on disk now (`theirs`), the text that
//! has both. Not its role: deciding a conflict. Invariants: everything in `theirs` that is not our item's verdict or
//! notes stays byte for byte; a verdict that somebody else touched is never overwritten; `ours` is `base` with one
//! item changed and nothing else, so nothing of ours is lost either.

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
    #[error("more was changed than whether one item passes, and its notes: make one such change at a time")]
    NotOneChange,
    #[error(transparent)]
    Unwritable(#[from] ChangeError),
}

/// The text with their changes and ours.
pub fn merge(base: &Prd, ours: &Prd, theirs: &[u8]) -> Result<Merged, NotMerged> {
    // Nothing happened, or our text is there already: after a crash the same write may be tried again.
    if theirs == base.text.as_bytes() || theirs == ours.text.as_bytes() {
        return Ok(Merged { text: ours.text.clone(), asks_differently: false });
    }
    let theirs = Prd::read(theirs).map_err(NotMerged::NotAPrd)?;
    let Some((before, after, change)) = our_change(base, ours)? else {
        return Ok(Merged { text: theirs.text, asks_differently: false });
    };
    let id = &before.id;
    let now = theirs.item(id).ok_or_else(|| NotMerged::Gone { id: id.clone() })?;
    if change.passes.is_some() && said(base, before) != said(&theirs, now) {
        let all = [said(base, before), said(ours, after), said(&theirs, now)];
        let [base, ours, theirs] = all.map(|said| said.join(", "));
        return Err(NotMerged::Conflict { id: id.clone(), base, ours, theirs });
    }
    let text = theirs.with_item(id, &change)?;
    Ok(Merged { text, asks_differently: !now.asks_the_same(before) })
}

/// What we changed: none when nothing, an error when it is not one item's verdict and notes.
fn our_change<'a>(base: &'a Prd, ours: &'a Prd) -> Result<Option<(&'a Item, &'a Item, Change)>, NotMerged> {
    if base.text == ours.text {
        return Ok(None);
    }
    let pairs = base.items.iter().zip(&ours.items);
    let (before, after) = pairs
        .into_iter()
        .find(|(before, after)| before.passes != after.passes || before.notes != after.notes)
        .ok_or(NotMerged::NotOneChange)?;
    let change = Change {
        passes: (before.passes != after.passes).then_some(after.passes),
        note: after.notes.as_deref().map(|now| added(before.notes.as_deref(), now).to_owned()),
    };
    // The proof that this is all we changed is that it leads to our text.
    match base.with_item(&before.id, &change) {
        Ok(text) if text == ours.text => Ok(Some((before, after, change))),
        _ => Err(NotMerged::NotOneChange),
    }
}

/// What was added to the notes.
fn added<'a>(before: Option<&str>, now: &'a str) -> &'a str {
    let before = before.unwrap_or_default();
    let rest = now.strip_prefix(before).unwrap_or(now);
    if before.trim().is_empty() { now } else { rest.strip_prefix('\n').unwrap_or(rest) }
}

/// The words with which an item says whether it passes, as written.
fn said(prd: &Prd, item: &Item) -> Vec<String> {
    item.verdicts().iter().map(|verdict| format!("{}: {}", verdict.key, verdict.value.of(&prd.text))).collect()
}
