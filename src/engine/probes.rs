//! Runs the commands that the engine learns facts from: checks, residual, metrics, security, interface.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::machine::event::{Phase, Probe, ProbeEnd, ProbeFinished, ProbeResult, ProbeStarted};
use crate::model::criterion::Proof;
use crate::model::digest::Digest;
use crate::model::learnings::flatten;
use crate::model::loop_file::DEFAULT_CHECK_SECONDS;
use crate::tool::process::{self, Access, CommandSpec, End, ProcessOutcome};

use super::driver::{Cutoff, Driver, Guarded};
use super::error::EngineError;

/// A measured line longer than this is no number.
const MAX_LINE: usize = 200;
/// How long checks may go on after the time budget is used up, at least; else a twentieth of it.
const GRACE: Duration = Duration::from_secs(10);
/// Removed interface items that are named in the record.
const MAX_REMOVED: usize = 50;

impl Driver<'_> {
    pub(super) async fn run_probe(&mut self, phase: Phase, probe: Probe) -> Result<(), EngineError> {
        let Some((argv, timeout)) = self.probe_command(&probe) else {
            return Err(EngineError::Internal(format!("no command for {}", probe.name())));
        };
        // After a crash the intent is already there; a check may be run again.
        let announced = self.session.state.open_probes.contains(&(phase, probe.clone()));
        if !announced {
            self.record(ProbeStarted { phase, probe: probe.clone(), argv: argv.clone() }).await?;
        }
        let mut spec = CommandSpec::new(argv, &self.session.workspace, self.session.state.run().as_str());
        spec.timeout = timeout;
        spec.confinement = self.confinement(Access::ReadWrite)?;
        let token = CancellationToken::new();
        let (outcome, cut) = match self.guarded(&token, Cutoff::Probe(phase), process::run(spec, &token)).await? {
            Guarded::Done(outcome) => (outcome, false),
            Guarded::Cut(outcome) => (outcome, true),
            // Not recorded: it tells nothing about the workspace, and runs again on resume.
            Guarded::Stopped(_) => return Ok(()),
        };
        let outcome = self.clean_process(outcome);
        let mut result = self.probe_result(&probe, &outcome)?;
        if probe == Probe::ApiSurface && phase == Phase::Gate {
            result.removed_lines = self.removed_lines(&outcome)?;
        }
        self.record(ProbeFinished { phase, probe, result }).await?;
        if cut {
            self.cut_if_exhausted().await?;
        }
        Ok(())
    }

    /// What is left of the time budget, and a grace in which the last state can still be measured. A claim of
    /// success is replayed whatever the clock says: its commands have just shown how long they take.
    pub(super) fn probe_limit(&self, phase: Phase) -> Option<Duration> {
        match phase {
            Phase::Baseline | Phase::Scouted | Phase::Iteration | Phase::Step(_) => {
                let limit = self.session.state.limits.max_total_seconds;
                let left = (limit * 1_000).saturating_sub(self.spent_now().millis);
                let past = self.spent_now().millis.saturating_sub(limit * 1_000);
                let grace = (GRACE.as_millis() as u64).max(limit / 20 * 1_000).saturating_sub(past);
                Some(Duration::from_millis(left.saturating_add(grace)))
            }
            Phase::Replay(_) | Phase::Gate => None,
        }
    }

    fn probe_command(&self, probe: &Probe) -> Option<(Vec<String>, Duration)> {
        let declared = self.session.state.loop_file();
        let seconds = |given: Option<u64>| Duration::from_secs(given.unwrap_or(DEFAULT_CHECK_SECONDS));
        match probe {
            Probe::Criterion(id) => {
                let criterion = self.session.state.criteria.iter().find(|criterion| criterion.id == *id)?;
                match &criterion.proof {
                    Proof::Check { argv, timeout_seconds } => {
                        Some((argv.clone(), Duration::from_secs(*timeout_seconds)))
                    }
                    Proof::Judged | Proof::ExitGate => None,
                }
            }
            Probe::Residual => {
                let residual = declared.residual.as_ref()?;
                Some((residual.command.clone()?, seconds(residual.timeout_seconds)))
            }
            Probe::Metric(id) => Some((declared.northstar.as_ref()?.measure.get(id)?.clone(), seconds(None))),
            Probe::SubGoal => {
                let iteration = self.session.state.current.as_ref()?;
                Some((iteration.scout()?.sub_goal.as_ref()?.check.clone(), Duration::from_secs(60)))
            }
            Probe::Verification(id) => {
                let verification = self.session.state.value.verifications.get(id)?;
                let seconds = self.session.state.value_settings().script_seconds;
                Some((vec![format!("./{}", verification.path)], Duration::from_secs(seconds)))
            }
            Probe::Task(id) => {
                let task = self.session.state.value.task(id)?;
                let seconds = self.session.state.value_settings().script_seconds;
                Some((task.check.clone()?, Duration::from_secs(seconds)))
            }
            Probe::Security => {
                let security = declared.security.as_ref()?;
                Some((security.command.clone(), seconds(security.timeout_seconds)))
            }
            Probe::SecurityVersion => {
                Some((declared.security.as_ref()?.version_command.clone()?, Duration::from_secs(60)))
            }
            Probe::ApiSurface => {
                let surface = declared.api_surface.as_ref()?;
                Some((surface.command.clone(), seconds(surface.timeout_seconds)))
            }
        }
    }

    pub(super) fn probe_result(&self, probe: &Probe, outcome: &ProcessOutcome) -> Result<ProbeResult, EngineError> {
        // The interface is what is printed; progress on stderr is no part of it.
        let stderr = if *probe == Probe::ApiSurface { &[] } else { outcome.stderr.bytes.as_slice() };
        let output = [outcome.stdout.bytes.as_slice(), stderr].concat();
        let output_digest = self.session.blobs.put(&output)?;
        Ok(ProbeResult {
            end: match &outcome.end {
                End::Exited(code) => ProbeEnd::Exited(*code),
                End::Signaled(signal) => ProbeEnd::Signaled(*signal),
                End::TimedOut => ProbeEnd::TimedOut,
                End::Cancelled => ProbeEnd::Cancelled,
                End::NotStarted(why) => ProbeEnd::NotStarted(flatten(why)),
            },
            output: output_digest,
            stdout_sha256: outcome.stdout.sha256,
            output_bytes: outcome.stdout.total + outcome.stderr.total,
            last_line: last_line(&outcome.stdout.bytes),
            removed_lines: None,
            millis: outcome.millis,
        })
    }

    /// `None`: the interface is too large to be kept whole, so nobody can say.
    fn removed_lines(&self, after: &ProcessOutcome) -> Result<Option<Vec<String>>, EngineError> {
        let Some(before) = self.session.state.baseline.probes.get(&Probe::ApiSurface) else { return Ok(None) };
        let text = self.session.blobs.get(&before.output)?;
        if after.stdout.truncated || Digest::of(&text) != before.stdout_sha256 {
            return Ok(None);
        }
        let lines = |bytes: &[u8]| -> BTreeSet<String> {
            let text = String::from_utf8_lossy(bytes);
            text.lines().map(|line| flatten(line.trim())).filter(|line| !line.is_empty()).collect()
        };
        let removed = lines(&text).difference(&lines(&after.stdout.bytes)).take(MAX_REMOVED).cloned().collect();
        Ok(Some(removed))
    }
}

fn last_line(stdout: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stdout);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(flatten(&line.chars().take(MAX_LINE).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::last_line;

    #[test]
    fn the_last_line_that_says_something_counts() {
        assert_eq!(last_line(b"noise\n 0.25 \n\n \n").as_deref(), Some("0.25"));
        assert_eq!(last_line(b" \n"), None);
    }
}
