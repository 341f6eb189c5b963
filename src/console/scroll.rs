//! Places in long things: a window over rows, heights that add up fast, matches of a search.
//!
//! Not here: text, drawing. Invariants: a window never points outside of what there is; finding the thing at
//! a row takes logarithmic time, however many things there are.

use super::action::Action;

/// A cursor in a list and the part of it that is shown. Every entry is one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    cursor: usize,
    top: usize,
    page: usize,
}

impl Window {
    pub const fn cursor(&self) -> usize {
        self.cursor
    }

    pub const fn top(&self) -> usize {
        self.top
    }

    pub const fn page(&self) -> usize {
        self.page
    }

    /// Entries that are shown.
    pub fn shown(&self, len: usize, height: usize) -> std::ops::Range<usize> {
        let top = self.top.min(len.saturating_sub(1));
        top..len.min(top + height)
    }

    pub fn set_page(&mut self, page: usize, len: usize) {
        self.page = page;
        self.settle(len);
    }

    /// Puts the cursor on an entry and shows it.
    pub fn go(&mut self, to: usize, len: usize) {
        self.cursor = to;
        self.settle(len);
    }

    /// Puts the cursor on an entry and shows what follows it, if it was out of sight.
    pub fn jump(&mut self, to: usize, len: usize) {
        if to < self.top || to >= self.top + self.page.max(1) {
            self.top = to.saturating_sub(self.page / 4);
        }
        self.go(to, len);
    }

    /// Keeps cursor and window inside of `len` entries.
    pub fn settle(&mut self, len: usize) {
        self.cursor = self.cursor.min(len.saturating_sub(1));
        let page = self.page.max(1);
        if self.cursor < self.top {
            self.top = self.cursor;
        } else if self.cursor >= self.top + page {
            self.top = self.cursor + 1 - page;
        }
        self.top = self.top.min(len.saturating_sub(page));
    }

    /// Entries were taken away at the front.
    pub fn shift(&mut self, by: usize) {
        self.cursor = self.cursor.saturating_sub(by);
        self.top = self.top.saturating_sub(by);
    }

    /// Moves as the operator says. `false`: that was no move.
    pub fn act(&mut self, action: Action, len: usize) -> bool {
        let page = self.page.max(2) - 1;
        let last = len.saturating_sub(1);
        let to = match action {
            Action::Up => self.cursor.saturating_sub(1),
            Action::Down => (self.cursor + 1).min(last),
            Action::PageUp => self.cursor.saturating_sub(page),
            Action::PageDown => (self.cursor + page).min(last),
            Action::Top => 0,
            Action::Bottom => last,
            _ => return false,
        };
        self.go(to, len);
        true
    }
}

/// Heights of things in a row, with their sums: a Fenwick tree that grows at its end.
#[derive(Debug, Clone, Default)]
pub struct Heights {
    /// `tree[i]` sums the heights of a block that ends at `i`; its length is the lowest bit of `i + 1`.
    tree: Vec<u64>,
    each: Vec<u32>,
}

impl Heights {
    pub fn len(&self) -> usize {
        self.each.len()
    }

    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    pub fn clear(&mut self) {
        self.tree.clear();
        self.each.clear();
    }

    pub fn get(&self, index: usize) -> u32 {
        self.each.get(index).copied().unwrap_or(0)
    }

    pub fn push(&mut self, height: u32) {
        let index = self.each.len();
        self.each.push(height);
        let first = (index + 1) & index;
        let mut sum = u64::from(height);
        // The block that ends here is made of the blocks before it.
        let mut end = index;
        while end > first {
            sum += self.tree.get(end - 1).copied().unwrap_or(0);
            end &= end - 1;
        }
        self.tree.push(sum);
    }

    pub fn set(&mut self, index: usize, height: u32) {
        let Some(slot) = self.each.get_mut(index) else { return };
        let old = std::mem::replace(slot, height);
        let mut at = index;
        while let Some(sum) = self.tree.get_mut(at) {
            *sum = (*sum + u64::from(height)).saturating_sub(u64::from(old));
            at |= at + 1;
        }
    }

    /// Rows before a thing.
    pub fn before(&self, index: usize) -> u64 {
        let mut end = index.min(self.tree.len());
        let mut sum = 0;
        while end > 0 {
            sum += self.tree.get(end - 1).copied().unwrap_or(0);
            end &= end - 1;
        }
        sum
    }

    pub fn total(&self) -> u64 {
        self.before(self.tree.len())
    }

    /// The thing that a row belongs to, and the row within it. `None`: there are fewer rows.
    pub fn at(&self, row: u64) -> Option<(usize, u32)> {
        let mut left = row;
        let mut from = 0;
        let mut step = self.tree.len().checked_next_power_of_two().unwrap_or(0);
        while step > 0 {
            if let Some(sum) = self.tree.get((from + step).wrapping_sub(1))
                && *sum <= left
            {
                left -= sum;
                from += step;
            }
            step /= 2;
        }
        (from < self.each.len()).then(|| (from, u32::try_from(left).unwrap_or(u32::MAX)))
    }

    /// Forgets the first things.
    pub fn drop_front(&mut self, count: usize) {
        let kept: Vec<u32> = self.each.iter().skip(count).copied().collect();
        self.clear();
        for height in kept {
            self.push(height);
        }
    }
}

/// What was searched for, and where it was found. Places are kept in order.
#[derive(Debug, Clone)]
pub struct Matches<P> {
    needle: String,
    places: Vec<P>,
    current: Option<P>,
}

impl<P> Default for Matches<P> {
    fn default() -> Self {
        Self { needle: String::new(), places: Vec::new(), current: None }
    }
}

impl<P: Copy + Ord> Matches<P> {
    /// A new search.
    pub fn start(&mut self, needle: &str) {
        *self = Self { needle: needle.trim().to_owned(), places: Vec::new(), current: None };
    }

    /// What is searched for; empty: nothing.
    pub fn needle(&self) -> &str {
        &self.needle
    }

    pub fn is_on(&self) -> bool {
        !self.needle.is_empty()
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub fn current(&self) -> Option<P> {
        self.current
    }

    /// A place that was found; usually after all others.
    pub fn add(&mut self, place: P) {
        if self.places.last().is_none_or(|last| *last < place) {
            self.places.push(place);
        } else if let Err(at) = self.places.binary_search(&place) {
            self.places.insert(at, place);
        }
    }

    /// Forgets the places in `[from, to)`.
    pub fn forget(&mut self, from: P, to: P) {
        let start = self.places.partition_point(|place| *place < from);
        let end = self.places.partition_point(|place| *place < to);
        self.places.drain(start..end.max(start));
    }

    /// The first match at or after `from`, else the first of all.
    pub fn seek(&mut self, from: P) -> Option<P> {
        let at = self.places.partition_point(|place| *place < from);
        self.current = self.places.get(at).or_else(|| self.places.first()).copied();
        self.current
    }

    /// The next match after `from`, around the end.
    pub fn next(&mut self, from: P) -> Option<P> {
        let at = self.places.partition_point(|place| *place <= from);
        self.current = self.places.get(at).or_else(|| self.places.first()).copied();
        self.current
    }

    /// The match before `from`, around the beginning.
    pub fn previous(&mut self, from: P) -> Option<P> {
        let at = self.places.partition_point(|place| *place < from);
        self.current = at.checked_sub(1).and_then(|at| self.places.get(at)).or_else(|| self.places.last()).copied();
        self.current
    }

    /// "3/17", for the title.
    pub fn label(&self) -> Option<String> {
        if !self.is_on() {
            return None;
        }
        if self.places.is_empty() {
            return Some("no match".to_owned());
        }
        let at = self.current.and_then(|place| self.places.binary_search(&place).ok());
        Some(match at {
            Some(at) => format!("{}/{}", at + 1, self.places.len()),
            None => format!("-/{}", self.places.len()),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_window_follows_its_cursor() {
        let mut window = Window::default();
        window.set_page(5, 20);
        for _ in 0..7 {
            window.act(Action::Down, 20);
        }
        assert_eq!((window.cursor(), window.top()), (7, 3));
        window.act(Action::Bottom, 20);
        assert_eq!((window.cursor(), window.top()), (19, 15));
        window.act(Action::PageUp, 20);
        assert_eq!(window.cursor(), 15);
        window.settle(3);
        assert_eq!((window.cursor(), window.top()), (2, 0));
        assert_eq!(window.shown(0, 5), 0..0);
    }

    #[test]
    fn matches_go_around() {
        let mut found = Matches::default();
        found.start("x");
        for place in [3, 9, 5] {
            found.add(place);
        }
        assert_eq!(found.seek(4), Some(5));
        assert_eq!(found.label().as_deref(), Some("2/3"));
        assert_eq!(found.next(9), Some(3));
        assert_eq!(found.previous(3), Some(9));
        found.forget(4, 9);
        assert_eq!(found.len(), 2);
    }

    proptest! {
        #[test]
        fn heights_add_up(
            pushed in prop::collection::vec(0u32..5, 0..80),
            changes in prop::collection::vec((0usize..80, 0u32..5), 0..20),
            dropped in 0usize..20,
        ) {
            let mut plain = Vec::new();
            let mut heights = Heights::default();
            for height in pushed {
                plain.push(height);
                heights.push(height);
            }
            for (at, height) in changes {
                heights.set(at, height);
                if let Some(slot) = plain.get_mut(at) {
                    *slot = height;
                }
            }
            heights.drop_front(dropped);
            plain.drain(..dropped.min(plain.len()));
            let mut row = 0u64;
            for (index, height) in plain.iter().enumerate() {
                prop_assert_eq!(heights.before(index), row);
                for within in 0..*height {
                    prop_assert_eq!(heights.at(row), Some((index, within)));
                    row += 1;
                }
            }
            prop_assert_eq!(heights.total(), row);
            prop_assert_eq!(heights.at(row), None);
        }
    }
}
