//! A cursor in a list: moving, paging, and which rows are seen.
//!
//! Not here: what the rows are. Invariant: the cursor is always on a row that exists, if there is one.

use crate::console::action::Action;

/// Where a reader is in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListCursor {
    at: usize,
    /// Rows of a page.
    page: usize,
}

impl ListCursor {
    pub fn at(&self, len: usize) -> usize {
        self.at.min(len.saturating_sub(1))
    }

    pub fn set(&mut self, at: usize) {
        self.at = at;
    }

    pub fn set_page(&mut self, rows: u16) {
        self.page = usize::from(rows);
    }

    /// Moves; `false`: the action is none of its own.
    pub fn act(&mut self, action: Action, len: usize) -> bool {
        let (at, last, page) = (self.at(len), len.saturating_sub(1), self.page.max(1));
        self.at = match action {
            Action::Up => at.saturating_sub(1),
            Action::Down => (at + 1).min(last),
            Action::PageUp => at.saturating_sub(page),
            Action::PageDown => (at + page).min(last),
            Action::Top => 0,
            Action::Bottom => last,
            _ => return false,
        };
        true
    }

    /// The next row that matches, from the cursor on and round the end; backwards if asked so.
    pub fn seek(&mut self, len: usize, backwards: bool, matches: impl Fn(usize) -> bool) {
        let at = self.at(len);
        let order = (1..=len).map(|step| if backwards { (at + len - step) % len } else { (at + step) % len });
        if let Some(found) = order.into_iter().find(|index| matches(*index)) {
            self.at = found;
        }
    }

    /// The first row to show so that the cursor is seen in `rows` rows.
    pub fn first(&self, len: usize, rows: usize) -> usize {
        let at = self.at(len);
        // The list scrolls by pages of its own height, so that it rests while the cursor moves.
        let most = len.saturating_sub(rows);
        (at / rows.max(1) * rows.max(1)).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_is_always_seen() {
        for len in 0..40 {
            for rows in 1..15 {
                for at in 0..len.max(1) {
                    let cursor = ListCursor { at, page: rows };
                    let first = cursor.first(len, rows);
                    assert!(first <= cursor.at(len) && cursor.at(len) < first + rows, "{len} {rows} {at}");
                }
            }
        }
    }

    #[test]
    fn it_never_leaves_the_list() {
        let mut cursor = ListCursor::default();
        cursor.set_page(5);
        for action in [Action::Bottom, Action::Down, Action::PageDown, Action::Up, Action::PageUp, Action::Top] {
            assert!(cursor.act(action, 7));
            assert!(cursor.at(7) < 7);
            assert!(cursor.act(action, 0));
            assert_eq!(cursor.at(0), 0);
        }
        assert!(!cursor.act(Action::Pause, 7));
    }

    #[test]
    fn seeking_goes_round() {
        let mut cursor = ListCursor::default();
        let even = |index: usize| index.is_multiple_of(2);
        cursor.seek(5, false, even);
        assert_eq!(cursor.at(5), 2);
        cursor.seek(5, true, even);
        cursor.seek(5, true, even);
        assert_eq!(cursor.at(5), 4);
        cursor.seek(0, false, even);
        assert_eq!(cursor.at(5), 4);
    }
}
