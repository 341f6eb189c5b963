//! The night as spans of time: what the run spent its hours on.
//!
//! Not here: events as such, drawing. Invariants: spans follow each other without overlap; totals are exact,
//! also when old spans have been made coarser to bound their number.

use crate::machine::event::{Event, RunEvent};
use crate::machine::fold::Stamped;
use crate::machine::run::RunState;
use crate::machine::state::State;

/// Silence of a model that is longer than this is a stall.
const STALL_MS: i64 = 5 * 60 * 1_000;
/// More spans are made coarser.
pub(crate) const MOST_SPANS: usize = 20_000;

/// A time of the journal in milliseconds since 1970.
pub fn millis_of(ts: &str) -> Option<i64> {
    ts.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

/// What time went into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    Work,
    Check,
    Limit,
    Human,
    Stalled,
    Down,
}

impl Doing {
    pub const ALL: [Self; 6] = [Self::Work, Self::Check, Self::Limit, Self::Human, Self::Stalled, Self::Down];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Check => "check",
            Self::Limit => "limit",
            Self::Human => "human",
            Self::Stalled => "stalled",
            Self::Down => "down",
        }
    }

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Work => 0,
            Self::Check => 1,
            Self::Limit => 2,
            Self::Human => 3,
            Self::Stalled => 4,
            Self::Down => 5,
        }
    }

    /// Is it time that the run lost? Such time must be seen, however short.
    pub const fn is_lost(self) -> bool {
        matches!(self, Self::Limit | Self::Human | Self::Stalled | Self::Down)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub doing: Doing,
    pub from: i64,
    pub to: i64,
}

/// Milliseconds by what they went into.
pub type Totals = [i64; 6];

#[derive(Debug, Clone, Default)]
pub struct Night {
    pub(crate) spans: Vec<Span>,
    totals: Totals,
    from: Option<i64>,
    pub(crate) last: i64,
    /// What the run does since its last event; `None`: it has ended.
    now: Option<Doing>,
    limit_until: i64,
    /// A request is out.
    asking: bool,
    /// The model has written something since the last event.
    spoke: bool,
}

impl Night {
    #[cfg(test)]
    pub(crate) fn beginning(from: i64) -> Self {
        Self { from: Some(from), ..Self::default() }
    }

    /// From the first event to the last.
    pub fn range(&self) -> Option<(i64, i64)> {
        self.from.map(|from| (from, self.last))
    }

    pub fn heard(&mut self) {
        self.spoke = true;
    }

    pub fn learn(&mut self, stamped: &Stamped, state: &RunState) {
        let at = millis_of(&stamped.ts).unwrap_or(self.last).max(self.last);
        if self.from.is_none() {
            self.from = Some(at);
        } else if matches!(stamped.event, Event::Run(RunEvent::RunResumed(_))) {
            self.add(Span { doing: Doing::Down, from: self.last, to: at });
        } else {
            for span in self.since_last(at).into_iter().flatten() {
                self.add(span);
            }
        }
        self.last = at;
        self.spoke = false;
        let call = state.call.as_ref();
        self.asking = call.is_some_and(|call| call.request_open);
        self.limit_until = at + i64::try_from(state.time.waiting_ms).unwrap_or(0);
        self.now = doing(state);
    }

    /// The time from the last event to `at`, as it looks now: at most two spans.
    fn since_last(&self, at: i64) -> [Option<Span>; 2] {
        let span = |doing, from: i64, to: i64| (to > from).then_some(Span { doing, from, to });
        match self.now {
            None => [None, None],
            Some(Doing::Limit) => {
                let until = self.limit_until.min(at);
                [span(Doing::Limit, self.last, until), span(Doing::Work, until.max(self.last), at)]
            }
            Some(Doing::Work) if self.asking && !self.spoke && at - self.last > STALL_MS => {
                [span(Doing::Stalled, self.last, at), None]
            }
            Some(doing) => [span(doing, self.last, at), None],
        }
    }

    pub(crate) fn add(&mut self, span: Span) {
        let length = span.to - span.from;
        if length <= 0 {
            return;
        }
        if let Some(total) = self.totals.get_mut(span.doing.index()) {
            *total += length;
        }
        match self.spans.last_mut() {
            Some(last) if last.doing == span.doing && last.to == span.from => last.to = span.to,
            _ => self.spans.push(span),
        }
        if self.spans.len() > MOST_SPANS {
            self.coarsen();
        }
    }

    /// Two by two, the longer one stands for both.
    fn coarsen(&mut self) {
        let pairs = self.spans.chunks(2);
        self.spans = pairs
            .filter_map(|pair| {
                let (first, last) = (pair.first()?, pair.last()?);
                let longer = if last.to - last.from > first.to - first.from { last } else { first };
                Some(Span { doing: longer.doing, from: first.from, to: last.to })
            })
            .collect();
    }

    /// Totals up to `now`, where the run is still at it.
    pub fn totals(&self, now: Option<i64>) -> Totals {
        let mut totals = self.totals;
        if let Some(now) = now {
            for span in self.since_last(now).into_iter().flatten() {
                if let Some(total) = totals.get_mut(span.doing.index()) {
                    *total += span.to - span.from;
                }
            }
        }
        totals
    }

    /// What each of `columns` equal parts of `[from, to)` mostly was.
    pub fn columns(&self, from: i64, to: i64, columns: usize, now: Option<i64>) -> Vec<Option<Doing>> {
        let mut parts: Vec<Totals> = vec![[0; 6]; columns];
        let length = (to - from).max(1);
        let columns_i = i64::try_from(columns).unwrap_or(1).max(1);
        let tail = now.map_or([None, None], |now| self.since_last(now));
        for span in self.spans.iter().copied().chain(tail.into_iter().flatten()) {
            let (start, end) = (span.from.max(from), span.to.min(to));
            if end <= start {
                continue;
            }
            let first = (start - from) * columns_i / length;
            let last = (end - 1 - from) * columns_i / length;
            for column in first..=last {
                let left = from + column * length / columns_i;
                let right = from + (column + 1) * length / columns_i;
                let part = usize::try_from(column).ok().and_then(|column| parts.get_mut(column));
                if let Some(total) = part.and_then(|totals| totals.get_mut(span.doing.index())) {
                    *total += (end.min(right) - start.max(left)).max(1);
                }
            }
        }
        parts.iter().map(dominant).collect()
    }
}

/// Lost time wins from a quarter on, else the most wins.
fn dominant(totals: &Totals) -> Option<Doing> {
    let sum: i64 = totals.iter().sum();
    let of = |doing: &Doing| totals.get(doing.index()).copied().unwrap_or(0);
    let lost = Doing::ALL.into_iter().filter(|doing| doing.is_lost() && of(doing) * 4 >= sum && of(doing) > 0);
    let most = Doing::ALL.into_iter().filter(|doing| of(doing) > 0);
    lost.max_by_key(of).or_else(|| most.max_by_key(of))
}

/// What the run does until its next event.
fn doing(state: &RunState) -> Option<Doing> {
    if state.halt.is_some() {
        return None;
    }
    if state.waits_for_people() {
        return Some(Doing::Human);
    }
    if state.time.waiting_ms > 0 {
        return Some(Doing::Limit);
    }
    if !state.open_probes.is_empty() {
        return Some(Doing::Check);
    }
    if state.call.is_some() {
        return Some(Doing::Work);
    }
    Some(match state.state {
        State::SpawnSubagent | State::CollectArtifacts => Doing::Work,
        State::Init
        | State::IntakeGoal
        | State::NullCheck
        | State::DreamGoal
        | State::CheckHalting
        | State::AccumulateLearnings
        | State::GlowCheck
        | State::BudgetCheck
        | State::ExitConverged
        | State::ExitDiverged
        | State::ExitBudgetExceeded
        | State::ExitBlocked
        | State::ExitNeedInfo => Doing::Check,
    })
}
