//! What agents say and do, as a long row of items that is cheap to add to and to look at.
//!
//! Not here: where a reader is (the agent pane), drawing, what becomes an item (`build`).
//! Invariants: adding costs what is added; looking costs what is looked at; what is kept is bounded, and how
//! much was dropped is known.

mod acts;
mod build;
pub mod item;

use std::collections::VecDeque;
use std::ops::Range;

use crate::model::ids::Role;

use super::prose;
use super::scroll::{Heights, Matches};
use build::Context;
use item::{Item, ItemKind};

/// A place that survives changes around it: an item by its number, a line in it, a row of that line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    pub item: u64,
    /// 0 is the head, `k + 1` body line `k`.
    pub line: u32,
    pub within: u32,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    pub lines: usize,
    pub bytes: usize,
}

impl Default for Keep {
    fn default() -> Self {
        Self { lines: 200_000, bytes: 64 << 20 }
    }
}

/// One row to draw.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    pub item: &'a Item,
    pub place: Place,
}

#[derive(Debug, Clone, Default)]
pub struct Transcript {
    items: VecDeque<Item>,
    /// The number of the first kept item.
    first: u64,
    heights: Heights,
    columns: u16,
    keep: Keep,
    lines: usize,
    bytes: usize,
    dropped_lines: u64,
    only: Option<Role>,
    /// Items that belong to the moment that is shown; `None`: the present.
    until: Option<u64>,
    undone: Vec<u64>,
    headings: VecDeque<(u64, Option<u32>)>,
    context: Context,
    pub matches: Matches<(u64, u32)>,
}

impl Transcript {
    pub fn new(keep: Keep) -> Self {
        Self { keep, columns: 80, ..Self::default() }
    }

    pub fn dropped_lines(&self) -> u64 {
        self.dropped_lines
    }

    pub fn only(&self) -> Option<Role> {
        self.only
    }

    pub fn columns(&self) -> u16 {
        self.columns
    }

    fn index(&self, id: u64) -> Option<usize> {
        usize::try_from(id.checked_sub(self.first)?).ok()
    }

    pub fn item(&self, id: u64) -> Option<&Item> {
        self.items.get(self.index(id)?)
    }

    /// Items that are shown: all, or those of an earlier moment.
    fn limit(&self) -> usize {
        let Some(until) = self.until else { return self.items.len() };
        self.index(until).unwrap_or(0).min(self.items.len())
    }

    pub fn total_rows(&self) -> u64 {
        self.heights.before(self.limit())
    }

    pub fn row_of(&self, place: Place) -> u64 {
        let Some(index) = self.index(place.item) else { return 0 };
        let before = self.heights.before(index);
        match self.items.get(index) {
            Some(item) if self.heights.get(index) > 0 => before + u64::from(item.row_of(place.line, place.within)),
            _ => before,
        }
    }

    pub fn place_at(&self, row: u64) -> Option<Place> {
        if row >= self.total_rows() {
            return None;
        }
        let (index, within) = self.heights.at(row)?;
        let item = self.items.get(index)?;
        let (line, within) = item.line_at(within);
        Some(Place { item: self.first + u64::try_from(index).ok()?, line, within })
    }

    /// The rows from `top` on. Touches nothing else.
    pub fn rows(&self, top: u64, height: usize) -> Vec<Row<'_>> {
        let mut rows = Vec::with_capacity(height);
        let total = self.total_rows();
        let Some((mut index, mut within)) = self.heights.at(top) else { return rows };
        let mut row = top;
        while rows.len() < height && row < total {
            let Some(item) = self.items.get(index) else { break };
            if within >= self.heights.get(index) {
                // Things of no height are jumped over by search, not one by one.
                match self.heights.at(row) {
                    Some((next, _)) if next > index => (index, within) = (next, 0),
                    _ => break,
                }
                continue;
            }
            let (line, part) = item.line_at(within);
            let id = self.first + u64::try_from(index).unwrap_or(u64::MAX);
            rows.push(Row { item, place: Place { item: id, line, within: part } });
            within += 1;
            row += 1;
        }
        rows
    }

    fn height_of(item: &mut Item, only: Option<Role>, columns: u16) -> u32 {
        let hidden = only.is_some() && item.role.is_some() && item.role != only;
        if hidden { 0 } else { item.lay_out(columns) }
    }

    fn lay_out(&mut self, index: usize) {
        if let Some(item) = self.items.get_mut(index) {
            let height = Self::height_of(item, self.only, self.columns);
            self.heights.set(index, height);
        }
    }

    fn lay_out_all(&mut self) {
        self.heights.clear();
        for item in &mut self.items {
            self.heights.push(Self::height_of(item, self.only, self.columns));
        }
    }

    /// `true`: rows are different now.
    pub fn set_columns(&mut self, columns: u16) -> bool {
        let columns = columns.max(1);
        let changed = columns != self.columns;
        if changed {
            self.columns = columns;
            self.lay_out_all();
        }
        changed
    }

    /// Is there anything of this role?
    pub fn speaks(&self, role: Role) -> bool {
        self.items.iter().any(|item| item.role == Some(role))
    }

    pub fn show_only(&mut self, role: Option<Role>) {
        self.only = role;
        self.lay_out_all();
    }

    /// Shows what was there before event `next_seq`; `None`: everything.
    pub fn show_moment(&mut self, next_seq: Option<u64>) {
        for id in std::mem::take(&mut self.undone) {
            if let Some(index) = self.index(id) {
                if let Some(item) = self.items.get_mut(index) {
                    item.undone = false;
                }
                self.lay_out(index);
            }
        }
        self.until = None;
        let Some(next_seq) = next_seq else { return };
        let limit = self.items.partition_point(|item| item.seq < next_seq);
        self.until = Some(self.first + u64::try_from(limit).unwrap_or(0));
        // Only things of the call that was open can have been unfinished.
        for index in (0..limit).rev() {
            let Some(item) = self.items.get_mut(index) else { break };
            if matches!(item.kind, ItemKind::Heading { .. }) {
                break;
            }
            if item.done_seq.is_some_and(|done| done >= next_seq) {
                item.undone = true;
                self.undone.push(self.first + u64::try_from(index).unwrap_or(0));
                self.lay_out(index);
            }
        }
    }

    pub fn toggle_fold(&mut self, id: u64) {
        let Some(index) = self.index(id) else { return };
        if let Some(item) = self.items.get_mut(index).filter(|item| item.can_fold()) {
            item.toggle_fold();
            self.lay_out(index);
        }
    }

    pub fn unfold(&mut self, id: u64) {
        let Some(index) = self.index(id) else { return };
        if let Some(item) = self.items.get_mut(index).filter(|item| item.can_fold()) {
            item.fold(false);
            self.lay_out(index);
        }
    }

    pub fn fold_all(&mut self, folded: bool) {
        for item in self.items.iter_mut().filter(|item| item.can_fold()) {
            item.fold(folded);
        }
        self.lay_out_all();
    }

    /// The first heading of another iteration after (or before) an item.
    pub fn iteration_from(&self, id: u64, forward: bool) -> Option<u64> {
        let here = self.headings.iter().rev().find(|(at, _)| *at <= id);
        let shown = |(at, _): &&(u64, Option<u32>)| self.until.is_none_or(|until| *at < until);
        if forward {
            let other = |(at, it): &&(u64, Option<u32>)| *at > id && here.is_none_or(|(_, now)| it != now);
            return self.headings.iter().filter(shown).find(other).map(|(at, _)| *at);
        }
        // Back to the beginning of this iteration first, then to that of the one before.
        let first_of = |wanted: Option<u32>| self.headings.iter().find(|(_, it)| *it == wanted).map(|(at, _)| *at);
        let now = here?.1;
        let start = first_of(now)?;
        if start < id {
            return Some(start);
        }
        let before = self.headings.iter().rev().find(|(at, it)| *at < start && *it != now)?;
        first_of(before.1)
    }

    fn push(&mut self, mut item: Item) -> u64 {
        let height = Self::height_of(&mut item, self.only, self.columns);
        let id = self.first + u64::try_from(self.items.len()).unwrap_or(0);
        if matches!(item.kind, ItemKind::Heading { .. }) {
            self.headings.push_back((id, item.iteration));
        }
        self.lines += item.line_count();
        self.bytes += item.bytes();
        self.heights.push(height);
        self.items.push_back(item);
        self.find_in(id);
        self.keep_bounded();
        id
    }

    /// Changes an item; its rows, weight and matches follow.
    fn change(&mut self, id: u64, with: impl FnOnce(&mut Item)) {
        let Some(index) = self.index(id) else { return };
        let Some(item) = self.items.get_mut(index) else { return };
        let (lines, bytes) = (item.line_count(), item.bytes());
        with(item);
        self.lines = (self.lines + item.line_count()).saturating_sub(lines);
        self.bytes = (self.bytes + item.bytes()).saturating_sub(bytes);
        self.lay_out(index);
        self.matches.forget((id, 0), (id + 1, 0));
        self.find_in(id);
        self.keep_bounded();
    }

    /// Text grows at the end of an item: costs what is new.
    fn grow(&mut self, id: u64, from: usize, lines: Vec<item::BodyLine>) {
        let Some(index) = self.index(id) else { return };
        let Some(item) = self.items.get_mut(index) else { return };
        let weigh = |lines: &[item::BodyLine]| lines.iter().map(item::BodyLine::bytes).sum::<usize>();
        self.bytes = self.bytes.saturating_sub(weigh(item.body.get(from..).unwrap_or_default()));
        self.lines = self.lines.saturating_sub(item.body.len().saturating_sub(from));
        item.body.truncate(from);
        self.bytes += weigh(&lines);
        self.lines += lines.len();
        item.body.extend(lines);
        let hidden = self.only.is_some() && item.role.is_some() && item.role != self.only;
        let height = match item.fold {
            _ if hidden => 0,
            item::Fold::Full => item.lay_out_from(from, self.columns),
            item::Fold::Folded | item::Fold::Brief => item.lay_out(self.columns),
        };
        self.heights.set(index, height);
        self.keep_bounded();
    }

    /// Drops the oldest items, a good many at a time.
    fn keep_bounded(&mut self) {
        if self.lines <= self.keep.lines && self.bytes <= self.keep.bytes {
            return;
        }
        let (lines, bytes) = (self.keep.lines / 20 * 19, self.keep.bytes / 20 * 19);
        let mut dropped = 0;
        while (self.lines > lines || self.bytes > bytes) && self.items.len() > 1 {
            let Some(item) = self.items.pop_front() else { break };
            self.lines = self.lines.saturating_sub(item.line_count());
            self.bytes = self.bytes.saturating_sub(item.bytes());
            self.dropped_lines += u64::try_from(item.line_count()).unwrap_or(0);
            dropped += 1;
        }
        self.first += u64::try_from(dropped).unwrap_or(0);
        self.heights.drop_front(dropped);
        self.matches.forget((0, 0), (self.first, 0));
        while self.headings.front().is_some_and(|(id, _)| *id < self.first) {
            self.headings.pop_front();
        }
    }

    /// Searches everything that is kept.
    pub fn search(&mut self, needle: &str) {
        self.matches.start(needle);
        let ids: Range<u64> = self.first..self.first + u64::try_from(self.items.len()).unwrap_or(0);
        for id in ids {
            self.find_in(id);
        }
    }

    fn find_in(&mut self, id: u64) {
        if !self.matches.is_on() {
            return;
        }
        let Some(item) = self.index(id).and_then(|index| self.items.get(index)) else { return };
        if item.kind == ItemKind::Gone {
            return;
        }
        if prose::find(&item.head_text(), self.matches.needle(), 0).is_some() {
            self.matches.add((id, 0));
        }
        for (line, body) in (1u32..).zip(&item.body) {
            if prose::find(&body.text, self.matches.needle(), 0).is_some() {
                self.matches.add((id, line));
            }
        }
    }

    fn forget_everything(&mut self) {
        *self = Self { columns: self.columns, ..Self::new(self.keep) };
    }
}
