//! Runs the commands that the engine learns facts from: checks, residual, metrics, security, interface.

use std::collections::BTreeSet;
use std::time::Duration;

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::machine::event::{Event, Phase, Probe, ProbeEnd, ProbeFinished, ProbeResult, ProbeStarted};
use crate::model::criterion::Proof;
use crate::model::digest::Digest;
use crate::model::guard::{self, Count};
use crate::model::learnings::flatten;
use crate::model::loop_file::DEFAULT_CHECK_SECONDS;
use crate::model::steady;
use crate::model::value::Verification;
use crate::playbook::passes;
use crate::tool::process::{CommandSpec, End, ProcessOutcome};

use super::checks::{self, View};
use super::confine;
use super::context::{Context, Cutoff, Guarded};
use super::diagnosed::{self, Diagnosed};
use super::error::EngineError;
use super::secrecy;
use super::value::scripts;
use super::value::services;
use super::value::sweep::{self, Job};

/// A measured line longer than this is no number.
const MAX_LINE: usize = 200;
/// Removed interface items that are named in the record.
const MAX_REMOVED: usize = 50;

/// Which of a command's streams are what it showed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Streams {
    Both,
    Stdout,
}

/// A claim of success is replayed whatever the clock says: its commands have just shown how long they take.
const fn cutoff(phase: Phase) -> Cutoff {
    match phase {
        Phase::Baseline | Phase::Scouted | Phase::Iteration | Phase::Detour => Cutoff::Check,
        Phase::Step(_) | Phase::StepAgain(..) | Phase::Empty => Cutoff::Check,
        Phase::Replay(_)
        | Phase::ReplayAgain(..)
        | Phase::Gate
        | Phase::Pristine
        | Phase::PristineWithTools
        | Phase::Reverted
        | Phase::Canary
        | Phase::PristineSince
        | Phase::CanaryAtStart
        | Phase::AtStart => Cutoff::Never,
    }
}

/// A machine without processes, memory or open files says nothing about the work. Not recorded: the probe runs again
/// on resume.
fn enough(outcome: &ProcessOutcome) -> Result<(), EngineError> {
    let End::Exhausted(why) = &outcome.end else { return Ok(()) };
    let hint = "make room for it, then `nightloop resume`".to_owned();
    Err(EngineError::Resumable { message: format!("RESOURCE_EXHAUSTED: {why}"), hint })
}

pub(super) async fn run_probe(cx: &mut Context<'_>, phase: Phase, probe: Probe) -> Result<(), EngineError> {
    let (argv, timeout) = command_of(cx, &probe)?;
    // After a crash the intent is already there; a check may be run again.
    let announced = cx.state().open_probes.contains(&(phase, probe.clone()));
    if !announced {
        cx.record(ProbeStarted { phase, probe: probe.clone(), argv: argv.clone() }).await?;
    }
    // Without the work nothing serves it either.
    if matches!(phase, Phase::Empty | Phase::Reverted | Phase::AtStart) {
        services::end_for_trial(cx).await?;
    }
    let view = checks::view(cx, phase, &probe)?;
    let job = job(cx, &probe, argv, timeout, 0, view.as_ref())?;
    let token = CancellationToken::new();
    let (outcome, cut) = match cx.guarded(&token, cutoff(phase), sweep::one(job, None, &token)).await? {
        Guarded::Done(outcome) => (outcome, false),
        Guarded::Cut(outcome) => (outcome, true),
        // Not recorded: it tells nothing about the workspace, and runs again on resume.
        Guarded::Stopped(_) => return Ok(()),
    };
    enough(&outcome)?;
    if let Some(view) = &view {
        checks::close(cx, view, &probe);
    }
    let outcome = believed(cx, &probe, secrecy::clean_process(cx.secrets(), outcome))?;
    let mut result = probe_result(cx, &probe, &outcome)?;
    result.canary_shown = canary_shown(cx, phase, &probe, &outcome);
    if let Some(view) = &view {
        result.wrote = checks::changed_meanwhile(cx, phase, view);
    }
    if probe == Probe::ApiSurface && matches!(phase, Phase::Gate | Phase::Pristine | Phase::PristineWithTools) {
        result.removed_lines = removed_lines(cx, &outcome)?;
    }
    cx.record(ProbeFinished { phase, probe, result }).await?;
    if cut {
        cx.recorder.cut_if_exhausted().await?;
    }
    Ok(())
}

/// The probes of a step: `nth` is 0 for the first run of them, and counts those after it.
pub(super) async fn run_probes(cx: &mut Context<'_>, probes: Vec<Probe>, nth: u8) -> Result<(), EngineError> {
    let step = cx.state().value().step.as_ref();
    let step = step.ok_or_else(|| EngineError::Internal("no step is open".to_owned()))?.number;
    let phase = if nth == 0 { Phase::Step(step) } else { Phase::StepAgain(step, nth) };
    run_together(cx, probes, phase).await
}

/// All at the same time: announced together, run, recorded together in their order.
async fn run_together(cx: &mut Context<'_>, probes: Vec<Probe>, phase: Phase) -> Result<(), EngineError> {
    if probes.is_empty() {
        return Err(EngineError::Internal("a step wants no probe to be run".to_owned()));
    }
    let mut announced: Vec<Event> = Vec::new();
    let mut commands = Vec::new();
    for probe in &probes {
        let (argv, timeout) = command_of(cx, probe)?;
        // After a crash the intents are already there.
        if !cx.state().open_probes.contains(&(phase, probe.clone())) {
            announced.push(ProbeStarted { phase, probe: probe.clone(), argv: argv.clone() }.into());
        }
        commands.push((argv, timeout));
    }
    if !announced.is_empty() {
        cx.record_all(announced).await?;
    }
    let jobs = probes.iter().zip(commands).enumerate();
    let jobs: Result<Vec<Job>, EngineError> =
        jobs.map(|(index, (probe, (argv, timeout)))| job(cx, probe, argv, timeout, index, None)).collect();
    let limit = Duration::from_secs(cx.state().value_settings().sweep_seconds);
    let token = CancellationToken::new();
    let sweep = sweep::run(jobs?, sweep::at_once(), limit, &token);
    let (outcomes, cut) = match cx.guarded(&token, cutoff(phase), sweep).await? {
        Guarded::Done(outcomes) => (outcomes, false),
        Guarded::Cut(outcomes) => (outcomes, true),
        // Not recorded: it tells nothing about the workspace, and runs again on resume.
        Guarded::Stopped(_) => return Ok(()),
    };
    outcomes.iter().try_for_each(enough)?;
    let mut finished = Vec::new();
    for (probe, outcome) in probes.into_iter().zip(outcomes) {
        let outcome = believed(cx, &probe, secrecy::clean_process(cx.secrets(), outcome))?;
        let result = probe_result(cx, &probe, &outcome)?;
        finished.push(ProbeFinished { phase, probe, result }.into());
    }
    cx.record_all(finished).await?;
    if cut {
        cx.recorder.cut_if_exhausted().await?;
    }
    Ok(())
}

fn command_of(cx: &Context<'_>, probe: &Probe) -> Result<(Vec<String>, Duration), EngineError> {
    let command = probe_command(cx, probe)?;
    command.ok_or_else(|| EngineError::Internal(format!("no command for {}", probe.name())))
}

/// A probe made ready: its script is what was recorded, and it shares no port and no folder with its neighbours.
fn job(
    cx: &Context<'_>,
    probe: &Probe,
    argv: Vec<String>,
    timeout: Duration,
    index: usize,
    view: Option<&View>,
) -> Result<Job, EngineError> {
    let cannot = |why: String| Ok(Job { spec: Err(why), data: None });
    if let Some(verification) = verification_of(cx, probe) {
        let script = cx.blobs().get(&verification.script)?;
        if let Err(why) = scripts::restore(cx.workspace(), verification, &script) {
            return cannot(format!("its script cannot be put back: {why}"));
        }
    }
    // An agent wrote this command into the plan: the rules hold for what is run on its word, too.
    if let Probe::Task(_) = probe
        && let Err(why) = confine::permitted(&cx.rules, &argv)
    {
        return cannot(why);
    }
    let mut spec = CommandSpec::new(argv, cx.workspace(), cx.state().run().as_str());
    spec.timeout = timeout;
    spec.confinement = match view {
        Some(view) => confine::of_check_through(cx, &view.overlay, view.apart.as_ref().map(TempDir::path))?,
        None => confine::of_check(cx)?,
    };
    let data = match probe {
        Probe::Verification(_) | Probe::Task(_) => match data_folder(cx) {
            Ok(data) => Some(data),
            Err(error) => return cannot(format!("it has no folder for its data: {error}")),
        },
        Probe::Criterion(_)
        | Probe::Item(_)
        | Probe::Detour(_)
        | Probe::Residual
        | Probe::Metric(_)
        | Probe::SubGoal
        | Probe::Security
        | Probe::SecurityVersion
        | Probe::ApiSurface => None,
    };
    spec.env = data.iter().flat_map(|data| sweep::surroundings(index, data)).collect();
    spec.env.extend(view.into_iter().flat_map(|view| view.env.iter().cloned()));
    Ok(Job { spec: Ok(spec), data })
}

/// A fresh folder that the command and we can see, and nobody else.
fn data_folder(cx: &Context<'_>) -> std::io::Result<tempfile::TempDir> {
    let place = cx.sandbox().shared_folder().unwrap_or_else(std::env::temp_dir);
    tempfile::Builder::new().prefix("nightloop-data-").tempdir_in(place)
}

fn verification_of<'a>(cx: &'a Context<'_>, probe: &Probe) -> Option<&'a Verification> {
    let Probe::Verification(id) = probe else { return None };
    cx.state().value().verifications.get(id)
}

/// What a script showed counts only if it is still the script that was to be run.
fn believed(cx: &Context<'_>, probe: &Probe, outcome: ProcessOutcome) -> Result<ProcessOutcome, EngineError> {
    let Some(verification) = verification_of(cx, probe) else { return Ok(outcome) };
    let script = cx.blobs().get(&verification.script)?;
    Ok(match scripts::restore(cx.workspace(), verification, &script) {
        Ok(false) => outcome,
        Ok(true) | Err(_) => {
            let why = "its script was changed while it ran, so what it showed does not count";
            ProcessOutcome { end: End::NotStarted(why.to_owned()), ..outcome }
        }
    })
}

/// `None`: there is nothing to run for it.
fn probe_command(cx: &Context<'_>, probe: &Probe) -> Result<Option<(Vec<String>, Duration)>, EngineError> {
    let Some(verification) = verification_of(cx, probe) else { return Ok(declared_command(cx, probe)) };
    let script = cx.blobs().get(&verification.script)?;
    let seconds = cx.state().value_settings().script_seconds;
    Ok(Some((scripts::argv(verification, &script), Duration::from_secs(seconds))))
}

fn declared_command(cx: &Context<'_>, probe: &Probe) -> Option<(Vec<String>, Duration)> {
    let declared = cx.state().loop_file();
    let seconds = |given: Option<u64>| Duration::from_secs(given.unwrap_or(DEFAULT_CHECK_SECONDS));
    match probe {
        Probe::Criterion(id) => {
            let criterion = cx.state().criteria.iter().find(|criterion| criterion.id == *id)?;
            match &criterion.proof {
                Proof::Check { argv, timeout_seconds } => Some((argv.clone(), Duration::from_secs(*timeout_seconds))),
                Proof::Judged | Proof::ExitGate | Proof::Items | Proof::Verified => None,
            }
        }
        Probe::Residual => {
            let residual = declared.residual.as_ref()?;
            Some((residual.command.clone()?, seconds(residual.timeout_seconds)))
        }
        Probe::Metric(id) => Some((declared.northstar.as_ref()?.measure.get(id)?.clone(), seconds(None))),
        Probe::SubGoal => {
            let iteration = cx.state().current.as_ref()?;
            Some((iteration.scout()?.sub_goal.as_ref()?.check.clone(), Duration::from_secs(60)))
        }
        // A script is known by what was found, not by what was declared.
        Probe::Verification(_) => None,
        Probe::Task(id) => {
            let task = cx.state().value().task(id)?;
            let seconds = cx.state().value_settings().script_seconds;
            Some((task.check.clone()?, Duration::from_secs(seconds)))
        }
        Probe::Item(id) => {
            let (check, timeout) = passes::measure::own_check(cx.state(), id)?;
            Some((check, seconds(timeout)))
        }
        Probe::Detour(name) => {
            let iteration = cx.state().current.as_ref()?;
            let due = passes::due_detour(cx.state(), iteration).filter(|due| due.name == *name)?;
            Some((due.command?, seconds(due.timeout_seconds)))
        }
        Probe::Security => {
            let security = declared.security.as_ref()?;
            Some((security.command.clone(), seconds(security.timeout_seconds)))
        }
        Probe::SecurityVersion => Some((declared.security.as_ref()?.version_command.clone()?, Duration::from_secs(60))),
        Probe::ApiSurface => {
            let surface = declared.api_surface.as_ref()?;
            Some((surface.command.clone(), seconds(surface.timeout_seconds)))
        }
    }
}

fn probe_result(cx: &Context<'_>, probe: &Probe, outcome: &ProcessOutcome) -> Result<ProbeResult, EngineError> {
    // The interface is what is printed; progress on stderr is no part of it.
    let streams = if *probe == Probe::ApiSurface { Streams::Stdout } else { Streams::Both };
    let result = held_back(cx, probe, shown(cx, outcome, streams)?, counted(probe, outcome))?;
    let failed = outcome.end != End::Exited(0) && is_check(probe);
    let Diagnosed { signature, fix, missing } = match failed {
        true => diagnosed::of(cx, &command_of(cx, probe)?.0, &outcome.end, &cx.blobs().get(&result.output)?),
        false => Diagnosed::default(),
    };
    let complaints = (outcome.end != End::Exited(0) && is_check(probe)).then(|| guard::complaints(&both(outcome)));
    let steady_sha256 = matches!(probe, Probe::Criterion(_)).then(|| steady::digest(&outcome.stdout.bytes));
    Ok(ProbeResult { signature, fix, missing, count: counted(probe, outcome), complaints, steady_sha256, ..result })
}

const fn is_check(probe: &Probe) -> bool {
    matches!(probe, Probe::Criterion(_) | Probe::Item(_))
}

fn both(outcome: &ProcessOutcome) -> String {
    String::from_utf8_lossy(&[outcome.stdout.bytes.as_slice(), &outcome.stderr.bytes].concat()).into_owned()
}

fn counted(probe: &Probe, outcome: &ProcessOutcome) -> Option<Count> {
    is_check(probe).then(|| guard::count(&both(outcome))).flatten()
}

/// Does the output show the test that must fail?
fn canary_shown(cx: &Context<'_>, phase: Phase, probe: &Probe, outcome: &ProcessOutcome) -> Option<bool> {
    let Probe::Criterion(id) = probe else { return None };
    let guards = cx.state().current.as_ref()?.guards.as_ref()?;
    let canary = guards.canaries.get(id).filter(|_| matches!(phase, Phase::Canary | Phase::CanaryAtStart))?;
    Some(both(outcome).contains(&canary.marker))
}

/// Of a check that sees held-back files, everybody but the operator gets how it ended and how many tests ran: its output
/// could quote those files, and evidence lies where agents read.
fn held_back(
    cx: &Context<'_>,
    probe: &Probe,
    result: ProbeResult,
    count: Option<Count>,
) -> Result<ProbeResult, EngineError> {
    if !checks::is_held_back(cx, probe) {
        return Ok(result);
    }
    let tests = count.map_or_else(String::new, |count| {
        format!(", tests: {} passed, {} failed, {} skipped", count.passed, count.failed, count.skipped)
    });
    let said = format!("{}{tests}\nIts output is held back, like its files.\n", result.end.describe());
    let output = cx.blobs().put(said.as_bytes())?;
    Ok(ProbeResult { held_back: Some(result.output), output, last_line: None, ..result })
}

/// The end of a command as it is recorded.
pub(super) fn as_recorded(end: &End) -> ProbeEnd {
    match end {
        End::Exited(code) => ProbeEnd::Exited(*code),
        End::Signaled(signal) => ProbeEnd::Signaled(*signal),
        End::TimedOut => ProbeEnd::TimedOut,
        End::Cancelled => ProbeEnd::Cancelled,
        End::NotStarted(why) | End::Exhausted(why) => ProbeEnd::NotStarted(flatten(why)),
    }
}

/// What a command showed, kept and described.
pub(super) fn shown(cx: &Context<'_>, outcome: &ProcessOutcome, streams: Streams) -> Result<ProbeResult, EngineError> {
    let stderr = match streams {
        Streams::Both => outcome.stderr.bytes.as_slice(),
        Streams::Stdout => &[],
    };
    let output = cx.blobs().put(&[outcome.stdout.bytes.as_slice(), stderr].concat())?;
    Ok(ProbeResult {
        end: as_recorded(&outcome.end),
        output,
        stdout_sha256: outcome.stdout.sha256,
        output_bytes: outcome.stdout.total + outcome.stderr.total,
        last_line: last_line(&outcome.stdout.bytes),
        held_back: None,
        removed_lines: None,
        count: None,
        canary_shown: None,
        wrote: Vec::new(),
        complaints: None,
        steady_sha256: None,
        signature: None,
        fix: None,
        missing: None,
        millis: outcome.millis,
    })
}

/// `None`: the interface is too large to be kept whole, so nobody can say.
fn removed_lines(cx: &Context<'_>, after: &ProcessOutcome) -> Result<Option<Vec<String>>, EngineError> {
    let Some(before) = cx.state().baseline.probes.get(&Probe::ApiSurface) else { return Ok(None) };
    let text = cx.blobs().get(&before.output)?;
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
