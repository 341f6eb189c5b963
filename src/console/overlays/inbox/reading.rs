//! Reading: where the reader is in a decision, and what has been in sight.

use super::super::super::action::Action;
use super::super::Stage;
use super::super::sheet::{furthest, reveal};
use super::Inbox;
use super::detail::Detail;

impl Inbox {
    /// Moves through the detail; through the changes where there are some.
    pub(super) fn turn(&mut self, action: Action, stage: &Stage<'_>) {
        let hunks = self.draft().and_then(|draft| draft.review.as_ref()).is_some_and(|review| !review.previewing());
        if hunks && matches!(action, Action::Up | Action::Down) {
            if let Some(review) = self.review_mut() {
                if action == Action::Down { review.next() } else { review.previous() }
            }
            self.to_cursor = true;
            return;
        }
        let (detail, height) = self.rows(stage);
        let from = self.offset(&detail, height);
        let page = usize::from(height).saturating_sub(2).max(1);
        let to = match action {
            Action::Up => from.saturating_sub(1),
            Action::Down => from + 1,
            Action::PageUp => from.saturating_sub(page),
            Action::PageDown => from + page,
            Action::Top => 0,
            Action::Bottom => usize::MAX,
            _ => return,
        };
        self.scroll = to.min(furthest(detail.lines.len(), height));
        self.to_cursor = false;
        self.read = self.read.max(self.in_sight(&detail, height));
    }

    /// The row after the last one in sight.
    fn in_sight(&self, detail: &Detail, height: u16) -> usize {
        let all = detail.lines.len();
        if all <= usize::from(height) {
            return all;
        }
        self.offset(detail, height) + usize::from(height.saturating_sub(1))
    }

    /// Is there a part of a command that the operator cannot have seen?
    pub(super) fn unread(&self, stage: &Stage<'_>) -> bool {
        let (detail, height) = self.rows(stage);
        self.read.max(self.in_sight(&detail, height)) < detail.to_read
    }

    /// The first row in sight: where the reader scrolled to, or where the change under the cursor is.
    pub(super) fn offset(&self, detail: &Detail, height: u16) -> usize {
        let all = detail.lines.len();
        match detail.cursor.filter(|_| self.to_cursor) {
            // Some rows of the change are wanted, not only its title.
            Some(at) => reveal(reveal(self.scroll, (at + 5).min(all.saturating_sub(1)), all, height), at, all, height),
            None => self.scroll.min(furthest(all, height)),
        }
    }
}
