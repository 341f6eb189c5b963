//! Agent programs on this machine: installed, which version, signed in?

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::agent::cli::{self, Checkup};
use crate::model::loop_file::{AgentDecl, ProgramProfile};
pub use crate::tool::lookup::find;
use crate::tool::process::{self, CommandSpec, End};

use super::Findings;

const VERSION_LIMIT: Duration = Duration::from_secs(2);
const MAX_VERSION: usize = 80;
const MARKER: &str = "doctor";

/// What is known about a program; nothing is known about any command.
fn checkup(profile: ProgramProfile) -> Option<Checkup> {
    (profile != ProgramProfile::Plain).then(|| cli::checkup(profile))
}

/// The variables with a key that are set here and that the program would see.
fn key_variable(checkup: &Checkup, passed: impl Fn(&str) -> bool) -> Option<&'static str> {
    let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    checkup.signed_in_variables.iter().copied().find(|name| set(name) && passed(name))
}

/// Where a sign-in was found. Never what it is. A variable counts only where the program would see it.
fn signed_in(checkup: &Checkup, passed: impl Fn(&str) -> bool) -> Option<String> {
    if let Some(variable) = key_variable(checkup, passed) {
        return Some(format!("by the variable {variable}"));
    }
    let home = std::env::var_os("HOME").map(PathBuf::from)?;
    let file = checkup.signed_in_files.iter().find(|file| home.join(file).is_file())?;
    Some(format!("by ~/{file}"))
}

/// The program of a declared agent.
pub(super) async fn declared(here: &Path, name: &str, agent: &AgentDecl, findings: &mut Findings) {
    let program = agent.command.as_ref().and_then(|argv| argv.first()).map_or("", String::as_str);
    let what = format!("agent {name}: program {program}");
    let path = match find(program) {
        Ok(path) => path,
        Err(why) => return findings.note(Err(format!("{why}; install it, or name its path")), &what),
    };
    let Some(checkup) = checkup(agent.program_profile()) else { return findings.note(Ok(()), &what) };
    match version(here, &path, &checkup.version_argv).await {
        Ok(version) => findings.note(Ok(()), &format!("{what} ({version})")),
        Err(why) => findings.note(Err(why), &what),
    }
    let passed = |variable: &str| agent.env.iter().any(|declared| declared == variable);
    match (signed_in(&checkup, passed), key_variable(&checkup, |_| true)) {
        (Some(how), _) => findings.note(Ok(()), &format!("agent {name}: signed in {how}")),
        (None, Some(variable)) => {
            let hint = format!("{variable} is set, but not passed on; add `env: [{variable}]`");
            findings.remark(format!("agent {name}: no sign-in of {program} was found; {hint}"));
        }
        // It may keep its sign-in where we do not look: a system's keyring, for one.
        (None, None) => {
            findings.remark(format!("agent {name}: no sign-in of {program} was found; sign in with it once"));
        }
    }
}

/// The known programs that no agent uses: for whoever looks for one.
pub(super) async fn installed(here: &Path, declared: &[ProgramProfile], findings: &mut Findings) {
    for profile in ProgramProfile::ALL.into_iter().filter(|profile| !declared.contains(profile)) {
        let (Some(checkup), Ok(path)) = (checkup(profile), find(profile.name())) else { continue };
        let version = version(here, &path, &checkup.version_argv).await.unwrap_or_else(|why| why);
        let signed = signed_in(&checkup, |_| true)
            .map_or_else(|| "no sign-in found".to_owned(), |how| format!("signed in {how}"));
        findings.remark(format!("{} is installed ({version}; {signed})", profile.name()));
    }
}

async fn version(here: &Path, program: &Path, arguments: &[&str]) -> Result<String, String> {
    let argv = std::iter::once(program.to_string_lossy().into_owned()).chain(arguments.iter().map(|&a| a.to_owned()));
    let mut spec = CommandSpec::new(argv.collect(), here, MARKER);
    spec.timeout = VERSION_LIMIT;
    let outcome = process::run(spec, &CancellationToken::new()).await;
    match outcome.end {
        End::Exited(0) => {
            let text = String::from_utf8_lossy(&outcome.stdout.bytes);
            let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it printed no version");
            Ok(line.chars().take(MAX_VERSION).collect())
        }
        End::TimedOut => Err(format!("it did not print its version within {} s", VERSION_LIMIT.as_secs())),
        End::NotStarted(why) | End::Exhausted(why) => Err(why),
        End::Exited(code) => Err(format!("asked for its version, it exited with code {code}")),
        End::Signaled(signal) => Err(format!("asked for its version, it was killed by signal {signal}")),
        End::Cancelled => Err("it was interrupted".to_owned()),
    }
}
