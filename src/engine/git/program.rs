//! The `git` program, run so that a repository cannot make it run anything else.
//!
//! Role: one command at a time, in the sandbox, with bounded time and output, an environment of our own, and a
//! configuration laid over the repository's. Not its role: knowing what any of it is for.
//! Invariants: where the machine has a sandbox, git wears one that lets it write the workspace, the repository and its
//! private index, and nothing else, without network; no hook, no file system monitor, no filter, no remote helper, no
//! signature program and no submodule is entered, whatever the repository's configuration says; before each command the
//! places that git writes are looked at (`place`); a stop ends a command, and git takes its locks away when it is told to
//! end.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::tool::process::{self, CommandSpec, End};
use crate::tool::sandbox::Confinement;
use crate::workspace::plain::FileKind;
use crate::workspace::tree::name_of;
use crate::workspace::walk;

use super::place::Place;

/// What one command may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Kept of a stream; a command that says more has failed, for us.
const MAX_OUTPUT: usize = 32 << 20;
/// Settings of filters that are overruled.
const MAX_FILTERS: usize = 400;
/// Files that git looks for in every folder.
const RULES: &[&str] = &[".gitignore", ".gitattributes", ".gitmodules"];
/// Kept of what git says about a failure.
const MAX_WORDS: usize = 400;

/// Over whatever the repository's configuration says.
const SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.splitIndex", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.alternateRefsCommand", ""),
    ("core.sshCommand", "false"),
    ("core.askPass", ""),
    ("core.editor", "false"),
    ("core.useReplaceRefs", "false"),
    ("credential.helper", ""),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("protocol.allow", "never"),
    ("commit.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("advice.graftFileDeprecated", "false"),
];

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// There is no `git` here.
    NoProgram(String),
    /// There is a repository, but not one that the run may work on.
    Elsewhere(String),
    /// A stop came first.
    Stopped,
    /// It cannot or must not be done; words for people.
    Refused(String),
}

impl Trouble {
    pub(super) fn refused(words: impl Into<String>) -> Self {
        Self::Refused(words.into())
    }
}

/// A repository as its commands see it.
pub(super) struct Git {
    setting: Setting,
    settings: Vec<(String, String)>,
}

/// Where and how git is run.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub workspace: PathBuf,
    /// `None`: no repository begins here.
    pub place: Option<Place>,
    /// Names the run in the environment of its processes.
    pub marker: String,
    pub stop: CancellationToken,
    /// What git wears; `None` where there is no sandbox.
    pub cage: Option<Arc<Confinement>>,
    /// Where a private index may lie, so that git in its cage can write it.
    pub scratch: Option<PathBuf>,
}

/// One command.
#[derive(Default)]
pub(super) struct Call<'a> {
    pub arguments: &'a [&'a str],
    /// In place of the user's index.
    pub index: Option<&'a str>,
    pub input: Option<Vec<u8>>,
}

pub(super) struct Answer {
    pub code: i32,
    pub output: Vec<u8>,
    pub words: String,
}

impl Git {
    /// Gets to know what has to be overruled here.
    pub(super) async fn open(setting: Setting) -> Result<Self, Trouble> {
        let mut git = Self::unprepared(setting);
        git.look_for_pipes()?;
        git.overrule_filters().await?;
        git.name_the_author().await?;
        Ok(git)
    }

    /// For questions that touch no file of the work tree.
    pub(super) fn unprepared(setting: Setting) -> Self {
        let settings = SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Self { setting, settings }
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.setting.workspace
    }

    /// The folder that is this work tree's own.
    pub(super) fn folder(&self) -> Result<&Path, Trouble> {
        let place = self.setting.place.as_ref().ok_or_else(|| Trouble::refused("there is no repository here"))?;
        Ok(&place.folder)
    }

    pub(super) fn scratch(&self) -> Option<&Path> {
        self.setting.scratch.as_deref()
    }

    /// Git opens the files with its rules wherever it comes by, and would wait for a pipe.
    fn look_for_pipes(&self) -> Result<(), Trouble> {
        let mut odd = None;
        let stop = || self.setting.stop.is_cancelled();
        let range = walk::Range { enter: &|_| true, depth: None, stop: &stop, ignored: false };
        let walked = walk::walk(self.workspace(), &range, &mut |seen| match seen {
            walk::Seen::Entry(entry)
                if entry.kind == FileKind::Other && RULES.iter().any(|name| entry.name == *name) =>
            {
                odd = Some(name_of(entry.path));
                ControlFlow::Break(())
            }
            walk::Seen::Entry(_) | walk::Seen::LeftOut(_) => ControlFlow::Continue(()),
        });
        match (odd, walked) {
            (Some(place), _) => {
                Err(Trouble::refused(format!("{place} is {}: git would wait for it", FileKind::Other.name())))
            }
            (None, Ok(true)) => Ok(()),
            (None, Ok(false)) => Err(Trouble::Stopped),
            (None, Err(error)) => Err(Trouble::refused(format!("the workspace cannot be read: {error}"))),
        }
    }

    /// A filter is a command that an agent could have written into the configuration: even in the sandbox it would
    /// decide what is committed.
    async fn overrule_filters(&mut self) -> Result<(), Trouble> {
        let list = ["config", "-z", "--name-only", "--get-regexp", "^filter\\."];
        let answer = self.run(Call { arguments: &list, ..Call::default() }).await?;
        let mut names = Vec::new();
        for name in answer.output.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let text = std::str::from_utf8(name)
                .map_err(|_| Trouble::refused("the repository's configuration has a filter with an unreadable name"))?;
            if let Some((driver, _)) = text.rsplit_once('.') {
                names.push(driver.to_owned());
            }
        }
        names.sort_unstable();
        names.dedup();
        if names.len() > MAX_FILTERS {
            return Err(Trouble::refused(format!("git's configuration has more than {MAX_FILTERS} filters")));
        }
        for driver in names {
            for (key, value) in [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")] {
                self.settings.push((format!("{driver}.{key}"), value.to_owned()));
            }
        }
        Ok(())
    }

    /// The user's own name where one is set.
    async fn name_the_author(&mut self) -> Result<(), Trouble> {
        for (key, value) in [("user.name", "nightloop"), ("user.email", "nightloop@localhost")] {
            let known = self.run(Call { arguments: &["config", "--get", key], ..Call::default() }).await?;
            if known.output.trim_ascii().is_empty() {
                self.settings.push((key.to_owned(), value.to_owned()));
            }
        }
        Ok(())
    }

    /// Runs a command; its exit code is the caller's to judge.
    pub(super) async fn run(&self, call: Call<'_>) -> Result<Answer, Trouble> {
        let Setting { workspace, place, marker, stop, cage, .. } = &self.setting;
        if stop.is_cancelled() {
            return Err(Trouble::Stopped);
        }
        if let Some(place) = place {
            place.inspect()?;
        }
        let mut argv = vec!["git".to_owned(), "--no-pager".to_owned(), "--literal-pathspecs".to_owned()];
        argv.extend(call.arguments.iter().map(|argument| (*argument).to_owned()));
        let mut spec = CommandSpec::new(argv, workspace, marker);
        spec.confinement.clone_from(cage);
        spec.timeout = TIMEOUT;
        spec.keep_bytes = MAX_OUTPUT;
        spec.stdin = call.input;
        spec.env = self.environment(call.index);
        let what = call.arguments.first().copied().unwrap_or("git");
        // It is told to end first, and takes its locks away then.
        let outcome = process::run(spec, stop).await;
        if outcome.stdout.truncated {
            return Err(Trouble::refused(format!("git {what} says more than {MAX_OUTPUT} bytes")));
        }
        let words = String::from_utf8_lossy(&outcome.stderr.bytes);
        let words: String = words.trim().chars().take(MAX_WORDS).collect();
        match outcome.end {
            End::Exited(code) => Ok(Answer { code, output: outcome.stdout.bytes, words }),
            End::NotStarted(why) | End::Exhausted(why) => {
                Err(Trouble::NoProgram(format!("git cannot be started: {why}")))
            }
            End::Signaled(signal) => Err(Trouble::refused(format!("git {what} was ended by signal {signal}"))),
            End::TimedOut => Err(Trouble::refused(format!("git {what} took more than {} s", TIMEOUT.as_secs()))),
            End::Cancelled => Err(Trouble::Stopped),
        }
    }

    fn environment(&self, index: Option<&str>) -> Vec<(String, String)> {
        let mut variables = vec![
            // Words that are looked at are English.
            ("LC_ALL".to_owned(), "C".to_owned()),
            // Nothing is fetched: a remote's address may name a program.
            ("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned()),
            ("GIT_ALLOW_PROTOCOL".to_owned(), "none".to_owned()),
            ("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned()),
            ("GIT_NO_REPLACE_OBJECTS".to_owned(), "1".to_owned()),
            ("GIT_ATTR_NOSYSTEM".to_owned(), "1".to_owned()),
            ("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned()),
            ("GIT_CONFIG_COUNT".to_owned(), self.settings.len().to_string()),
        ];
        if let Some(index) = index {
            variables.push(("GIT_INDEX_FILE".to_owned(), index.to_owned()));
        }
        // Not `-c`: a name may have a `=` in it.
        for (number, (key, value)) in self.settings.iter().enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{number}"), key.clone()));
            variables.push((format!("GIT_CONFIG_VALUE_{number}"), value.clone()));
        }
        variables
    }

    /// Runs a command that has to succeed.
    pub(super) async fn must(&self, call: Call<'_>) -> Result<Vec<u8>, Trouble> {
        let what = call.arguments.first().copied().unwrap_or_default().to_owned();
        let answer = self.run(call).await?;
        if answer.code == 0 {
            return Ok(answer.output);
        }
        Err(Trouble::refused(format!("git {what} failed ({}): {}", answer.code, answer.words)))
    }

    /// The output of a command with plain arguments.
    pub(super) async fn output(&self, arguments: &[&str]) -> Result<Vec<u8>, Trouble> {
        self.must(Call { arguments, ..Call::default() }).await
    }

    /// The one line that a command says; `None` where it fails.
    pub(super) async fn line(&self, arguments: &[&str]) -> Result<Option<String>, Trouble> {
        let answer = self.run(Call { arguments, ..Call::default() }).await?;
        let text = String::from_utf8_lossy(&answer.output);
        Ok((answer.code == 0).then(|| text.trim_end_matches('\n').to_owned()))
    }
}
