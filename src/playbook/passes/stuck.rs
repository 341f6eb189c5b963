//! What waits for a person after its attempts were used up, and how it is gone on with: for the morning.
//!
//! Not here: asking (`route`), or what an answer does (`state`).

use crate::machine::run::RunState;
use crate::model::decision::{DecisionId, Request};
use crate::model::learnings::flatten;

use super::event::By;
use super::measure;

/// The longest line of a check's output that is repeated.
const MOST_OUTPUT: usize = 200;

/// An item whose attempts are used up, or a microloop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    pub decision: DecisionId,
    /// `None`: there are no items.
    pub item: Option<String>,
    pub title: String,
    /// How often its author tried.
    pub attempts: usize,
    /// How the last attempt came out.
    pub problem: String,
    /// The last line that a failing check of it printed.
    pub output: Option<String>,
}

impl Stuck {
    /// In a few lines, the commands that go on with it last.
    pub fn lines(&self) -> Vec<String> {
        let tries = if self.attempts == 1 { "1 attempt".to_owned() } else { format!("{} attempts", self.attempts) };
        let mut lines = vec![match &self.item {
            Some(item) => format!("parked: {} ({tries})", format!("{item} {}", self.title).trim_end()),
            None => format!("stuck after {tries}"),
        }];
        lines.push(format!("last: {}", self.problem));
        lines.extend(self.output.iter().map(|line| format!("it printed: {line}")));
        lines.push(format!("next: {}", self.command()));
        lines
    }

    /// The exact command that tries it again.
    pub fn command(&self) -> String {
        match &self.item {
            Some(item) => format!("nightloop retry {} --hint '…'", quoted(item)),
            None => format!("nightloop answer {} 'a hint'", self.decision),
        }
    }
}

/// As a shell has to be given it.
fn quoted(item: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b':');
    let is_plain = !item.starts_with('-') && !item.is_empty() && item.bytes().all(plain);
    if is_plain { item.to_owned() } else { format!("'{}'", item.replace('\'', "'\\''")) }
}

/// All that wait, in the order in which they were asked about.
pub fn stuck(run: &RunState) -> Vec<Stuck> {
    let open = run.operator.open().filter_map(|decision| match &decision.request {
        Request::Stuck { subject, iteration, problem, .. } => {
            Some((decision.id, subject.as_deref(), *iteration, problem))
        }
        _ => None,
    });
    open.map(|(decision, item, iteration, problem)| {
        let title = item.and_then(|item| run.passes().prd.item(item)).map(|item| item.title.clone());
        let last = run.iterations().find(|done| done.number() == iteration);
        let failed = last.map(|done| measure::failed_checks(run, done)).unwrap_or_default();
        // What the problem says already is not said twice.
        let printed = failed.iter().rev().find_map(|(_, result)| result.and_then(|result| result.last_line.as_deref()));
        Stuck {
            decision,
            item: item.map(str::to_owned),
            title: title.unwrap_or_default(),
            attempts: run.passes().of(item).filter(|pass| pass.by == By::Author).count(),
            problem: flatten(problem),
            output: printed
                .map(|line| flatten(line).chars().take(MOST_OUTPUT).collect())
                .filter(|line: &String| !problem.contains(line.as_str())),
        }
    })
    .collect()
}
