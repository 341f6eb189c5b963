//! Runs the probes of a step: all at the same time, bounded together.
//!
//! Role: commands in, outcomes out, in the order of the list. Not its role: what is run and recorded (`probes`).
//! Invariants: at most [`at_once`] processes; the whole list ends within its limit (and the grace of a process that
//! does not want to end): what is not done by then has timed out, what has not begun does not begin.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::tool::process::{self, CommandSpec, End, ProcessOutcome};

const MAX_AT_ONCE: usize = 4;
/// The first port that scripts are given.
const FIRST_PORT: u16 = 3_100;

/// A command that is ready, or why it cannot be run.
pub(in crate::engine) struct Job {
    pub(in crate::engine) spec: Result<CommandSpec, String>,
    /// Removed when the job is over.
    pub(in crate::engine) data: Option<TempDir>,
}

/// As many as this machine can run without making each other slow, within reason.
pub(in crate::engine) fn at_once() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_AT_ONCE)
}

/// What scripts that run at the same time must not share.
pub(in crate::engine) fn surroundings(index: usize, data: &TempDir) -> Vec<(String, String)> {
    let port = FIRST_PORT.saturating_add(u16::try_from(index).unwrap_or(u16::MAX));
    vec![
        ("PORT".to_owned(), port.to_string()),
        ("TEST_DATA_DIR".to_owned(), data.path().to_string_lossy().into_owned()),
    ]
}

/// Runs them all; the outcomes are in the order of the jobs.
pub(in crate::engine) async fn run(
    jobs: Vec<Job>,
    at_once: usize,
    limit: Duration,
    cancel: &CancellationToken,
) -> Vec<ProcessOutcome> {
    let end = Instant::now() + limit;
    let running = jobs.into_iter().enumerate().map(|(index, job)| async move {
        let outcome = one(job, Some(end), cancel).await;
        (index, outcome)
    });
    // In the order they end, so that a slow one at the front holds up nobody; sorted afterwards.
    let ended = futures_util::stream::iter(running).buffer_unordered(at_once.max(1));
    let mut outcomes: Vec<(usize, ProcessOutcome)> = ended.collect().await;
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Runs one, for no longer than until `end`.
pub(in crate::engine) async fn one(job: Job, end: Option<Instant>, cancel: &CancellationToken) -> ProcessOutcome {
    let mut spec = match job.spec {
        Ok(spec) => spec,
        Err(why) => return ProcessOutcome::without_output(End::NotStarted(why)),
    };
    if let Some(end) = end {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return ProcessOutcome::without_output(End::TimedOut);
        }
        spec.timeout = spec.timeout.min(left);
    }
    let outcome = process::run(spec, cancel).await;
    drop(job.data);
    outcome
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn job(dir: &Path, index: usize, script: &str) -> Job {
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        let mut spec = CommandSpec::new(argv, dir, "test");
        let data = tempfile::tempdir().unwrap();
        spec.env = surroundings(index, &data);
        Job { spec: Ok(spec), data: Some(data) }
    }

    fn text(outcome: &ProcessOutcome) -> String {
        String::from_utf8_lossy(&outcome.stdout.bytes).trim().to_owned()
    }

    #[tokio::test]
    async fn results_come_in_the_order_of_the_list_and_nothing_is_shared() {
        let dir = tempfile::tempdir().unwrap();
        let script = "test -z \"$(ls -A $TEST_DATA_DIR)\" && touch $TEST_DATA_DIR/x && echo $PORT $TEST_DATA_DIR";
        // The first ends last: it waits for the file that the last one writes.
        let mut jobs = vec![job(dir.path(), 0, &format!("until test -e done; do sleep 0.02; done; {script}"))];
        jobs.extend((1..5).map(|index| job(dir.path(), index, script)));
        jobs.push(job(dir.path(), 5, &format!("{script}; touch done")));
        let outcomes = run(jobs, 2, Duration::from_secs(60), &CancellationToken::new()).await;
        assert!(outcomes.iter().all(|outcome| outcome.end == End::Exited(0)), "{outcomes:?}");
        let ports: Vec<String> = outcomes.iter().map(|one| text(one).split(' ').next().unwrap().to_owned()).collect();
        assert_eq!(ports, ["3100", "3101", "3102", "3103", "3104", "3105"]);
        let folders: BTreeSet<String> = outcomes.iter().map(|one| text(one)[5..].to_owned()).collect();
        assert_eq!(folders.len(), 6);
        assert!(folders.iter().all(|folder| !Path::new(folder).exists()), "a folder is left behind");
    }

    #[tokio::test]
    async fn one_limit_holds_for_the_whole_list() {
        let dir = tempfile::tempdir().unwrap();
        let jobs = vec![
            job(dir.path(), 0, "echo quick"),
            job(dir.path(), 1, "sleep 600"),
            job(dir.path(), 2, "touch began; sleep 600"),
            job(dir.path(), 3, "touch began; sleep 600"),
        ];
        let outcomes = run(jobs, 1, Duration::from_secs(1), &CancellationToken::new()).await;
        let ends: Vec<End> = outcomes.iter().map(|outcome| outcome.end.clone()).collect();
        assert_eq!(ends, [End::Exited(0), End::TimedOut, End::TimedOut, End::TimedOut]);
        assert!(!dir.path().join("began").exists(), "it began after the limit");
    }

    #[tokio::test]
    async fn what_cannot_be_run_says_why_and_holds_up_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let broken = Job { spec: Err("its folder is a link".to_owned()), data: None };
        let jobs = vec![broken, job(dir.path(), 1, "exit 3")];
        let outcomes = run(jobs, 4, Duration::from_secs(60), &CancellationToken::new()).await;
        assert_eq!(outcomes[0].end, End::NotStarted("its folder is a link".to_owned()));
        assert_eq!(outcomes[1].end, End::Exited(3));
    }
}
