//! The repository of a run: a branch of its own, commits of what it changed, the way back.
//!
//! Role: announce what is done to the repository, do it, record what came of it. Not its role: deciding when
//! (`playbook::value`), or what an undone iteration means (`machine::repository`).
//! Invariants: an operation that was announced and interrupted is done again from the start, and comes to the same;
//! nothing here stashes, resets or cleans; `docs/git.md` says what is never touched.

mod change;
pub(super) mod effective;
mod index;
mod paths;
mod place;
mod program;
mod repository;
#[cfg(test)]
mod tests;

use std::path::Path;

use tokio_util::sync::CancellationToken;

use crate::journal;
use crate::machine::event::{GitFacts, GitFinished, GitIntended, GitOperation, IterationUndone};
use crate::machine::run::RunState;
use crate::model::value::settings::{GitMode, GitSettings};
use crate::tool::sandbox::Sandbox;

use self::change::{Done, Span, Work};
use self::effective::Effective;
use self::paths::Bounds;
use self::place::Found;
use self::program::{Git, Setting, Trouble};

use super::context::{Context, Cutoff, Guarded};
use super::error::EngineError;
use super::evidence_files::EvidenceFiles;

/// A stop came first.
pub(super) struct Stopped;

/// Everything an operation needs to know, apart from the run that goes on meanwhile.
struct Job {
    setting: Result<Setting, Trouble>,
    run: String,
    name: String,
    settings: GitSettings,
    /// The part of loop.yaml that they stand in.
    section: &'static str,
    /// Never put back: the vision and the PRD are people's, and the views show the run as it is now.
    kept: Vec<String>,
    known: Option<GitFacts>,
}

impl Job {
    fn new(setting: Result<Setting, Trouble>, run: &RunState) -> Self {
        Self {
            setting,
            run: run.run().as_str().to_owned(),
            name: run.loop_file().name.clone().unwrap_or_else(|| "loop".to_owned()),
            settings: run.playbook().git_settings(run.loop_file()).clone(),
            section: run.playbook().name().name(),
            kept: run.playbook().kept_files(run.loop_file()).iter().map(|file| paths::plain(file)).collect(),
            known: run.git.facts.clone(),
        }
    }

    async fn open(&self) -> Result<Git, Trouble> {
        Git::open(self.setting.clone()?).await
    }

    /// Does it; the facts as far as they are known, and why it was not done.
    async fn perform(&self, operation: &GitOperation) -> Result<(GitFacts, Option<String>), Trouble> {
        let done = match operation {
            GitOperation::Prepare => self.prepare().await,
            GitOperation::Commit { what } | GitOperation::Checkpoint { label: what } => {
                self.change(async |work: Work<'_>| work.commit(what).await).await
            }
            GitOperation::Restore { commit, why } => {
                if self.branch().is_none() {
                    Err(Trouble::refused("the run has no branch to go back on"))
                } else {
                    self.change(async |work: Work<'_>| work.restore(commit, why).await).await
                }
            }
        };
        match done {
            Ok(facts) => Ok((facts, None)),
            Err(Trouble::Stopped) => Err(Trouble::Stopped),
            Err(Trouble::Refused(why) | Trouble::NoProgram(why) | Trouble::Elsewhere(why)) => {
                Ok((self.facts(Done::default()), Some(why)))
            }
        }
    }

    async fn prepare(&self) -> Result<GitFacts, Trouble> {
        if self.settings.mode == GitMode::Off {
            return Ok(GitFacts::default());
        }
        let git = match self.open().await {
            Ok(git) => git,
            Err(Trouble::NoProgram(why) | Trouble::Elsewhere(why)) if self.settings.mode == GitMode::Auto => {
                return Ok(GitFacts { notes: vec![why], ..GitFacts::default() });
            }
            Err(trouble) => return Err(trouble),
        };
        let wanted = repository::branch_name(&self.name, &self.run);
        repository::prepare(&git, (&self.settings, self.section), &wanted, self.known.as_ref()).await
    }

    fn branch(&self) -> Option<&str> {
        self.known.as_ref().and_then(|known| known.branch.as_deref())
    }

    /// Works on the run's branch; without one there is nothing to do.
    async fn change(&self, work: impl AsyncFnOnce(Work<'_>) -> Result<Done, Trouble>) -> Result<GitFacts, Trouble> {
        let Some(known) = &self.known else { return Ok(GitFacts::default()) };
        let Some(branch) = &known.branch else { return Ok(GitFacts::default()) };
        let git = self.open().await?;
        let bounds = Bounds::new(&known.foreign, &self.settings.sensitive)?;
        let (settings, kept) = (&self.settings, self.kept.as_slice());
        let done = work(Work { git: &git, branch, bounds, settings, kept, name: &self.name }).await?;
        Ok(self.facts(done))
    }

    /// What is foreign is said once, when the repository is first looked at.
    fn facts(&self, done: Done) -> GitFacts {
        let known = self.known.clone().unwrap_or_default();
        GitFacts {
            head: Some(done.head).filter(|head| !head.is_empty()).or(known.head),
            files: done.files,
            sensitive: done.sensitive,
            notes: done.notes,
            foreign: Vec::new(),
            ..known
        }
    }
}

/// Where the repository is, and what git wears there.
fn setting(workspace: &Path, sandbox: &Sandbox, run: &str, stop: &CancellationToken) -> Result<Setting, Trouble> {
    let place = match place::find(workspace)? {
        Found::Place(place) => Some(place),
        Found::Nothing => None,
        Found::Elsewhere(why) => return Err(Trouble::Elsewhere(why)),
    };
    let outside = place.as_ref().map(|place| place.outside(workspace)).unwrap_or_default();
    let cage = sandbox.for_git(&outside);
    let cage = cage.map_err(|why| Trouble::refused(format!("git gets no sandbox: {why}")))?;
    let (workspace, marker, stop) = (workspace.to_owned(), run.to_owned(), stop.clone());
    Ok(Setting { workspace, place, marker, stop, cage, scratch: sandbox.shared_folder() })
}

fn git_setting(cx: &Context<'_>, stop: &CancellationToken) -> Result<Setting, Trouble> {
    setting(cx.workspace(), cx.sandbox(), cx.state().run().as_str(), stop)
}

/// What git's configuration, taken together, comes to, unless that is known; nothing where no repository begins here, or there is no git.
/// The error: it was stopped.
pub(super) fn configuration(
    cx: &Context<'_>,
    stop: &CancellationToken,
    known: Option<Effective>,
) -> impl Future<Output = Result<Option<Effective>, Stopped>> + use<> {
    let setting = git_setting(cx, stop);
    async move {
        let setting = match setting {
            Ok(setting) => setting,
            Err(Trouble::Elsewhere(_) | Trouble::NoProgram(_)) => return Ok(None),
            Err(Trouble::Refused(why)) => return Ok(Some(effective::refused(why))),
            Err(Trouble::Stopped) => return Err(Stopped),
        };
        let Some(place) = &setting.place else { return Ok(None) };
        // Looked at each time, whatever is known: a link among git's files tells nothing of itself elsewhere.
        if let Err(Trouble::Refused(why)) = place.inspect() {
            return Ok(Some(effective::refused(why)));
        }
        match known {
            Some(known) => Ok(Some(known)),
            None => effective::ask(&Git::unprepared(setting)).await.map_err(|_| Stopped),
        }
    }
}

/// Announces an operation, does it, records what came of it. Interrupted, it is done again.
pub(super) async fn perform(cx: &mut Context<'_>, operation: GitOperation) -> Result<(), EngineError> {
    if cx.state().git.open.as_ref() != Some(&operation) {
        cx.record(GitIntended { operation: operation.clone() }).await?;
    }
    journal::failpoint("git");
    let stop = CancellationToken::new();
    let job = Job::new(git_setting(cx, &stop), cx.state());
    let performed = cx.guarded(&stop, Cutoff::Never, job.perform(&operation)).await?;
    let (Guarded::Done(result) | Guarded::Stopped(result) | Guarded::Cut(result)) = performed;
    // A stop came between two commands; the announcement stands, and a resume does it again.
    let Ok((facts, problem)) = result else { return Ok(()) };
    journal::failpoint("git_done");
    cx.record(GitFinished { operation, facts, problem }).await
}

/// Takes back what an iteration changed, where nothing was built on it.
pub(super) async fn undo(
    cx: &mut Context<'_>,
    evidence: &mut EvidenceFiles,
    iteration: u32,
) -> Result<(), EngineError> {
    let stop = CancellationToken::new();
    let job = Job::new(git_setting(cx, &stop), cx.state());
    let starts = &cx.state().git.starts;
    let spans: Vec<Span> =
        starts.iter().map(|(iteration, start)| Span { iteration: *iteration, start: start.clone() }).collect();
    let effect = async {
        if job.branch().is_none() {
            return Err(Trouble::refused("the run has no branch of its own in a git repository"));
        }
        job.change(async |work: Work<'_>| work.undo(iteration, &spans).await).await
    };
    let performed = cx.guarded(&stop, Cutoff::Never, effect).await?;
    let (Guarded::Done(result) | Guarded::Stopped(result) | Guarded::Cut(result)) = performed;
    let undone = match result {
        Ok(facts) => IterationUndone { iteration, files: facts.files, head: facts.head, problem: None },
        Err(Trouble::Stopped) => return Ok(()),
        Err(Trouble::Refused(why) | Trouble::NoProgram(why) | Trouble::Elsewhere(why)) => {
            IterationUndone { iteration, files: Vec::new(), head: None, problem: Some(why) }
        }
    };
    journal::failpoint("undo");
    cx.record(undone).await?;
    // Whoever reads the evidence of that iteration must find that it no longer stands for the workspace.
    evidence.write_run(cx.workspace(), cx.state(), cx.blobs())
}

/// Before an iteration begins: where it begins on the branch, so that it can be taken back. `false`: a stop came
/// first.
pub(super) async fn mark_iteration(cx: &mut Context<'_>) -> Result<bool, EngineError> {
    let branch = cx.state().git.facts.as_ref().and_then(|facts| facts.branch.as_ref());
    if branch.is_none() {
        return Ok(true);
    }
    let what = format!("before iteration {}", cx.state().iteration_number());
    perform(cx, GitOperation::Commit { what }).await?;
    Ok(cx.state().git.open.is_none())
}
