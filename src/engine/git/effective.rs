//! What git makes of all its configuration files together, as far as the workspace decides it.
//!
//! Role: one digest of every setting that comes from a file of the workspace and could make git run, read or write
//! something. A file that is included counts like the one that includes it, and a header that hides in another is seen
//! as git sees it. Not its role: judging a change (`engine::protect`).
//! Invariant: what only says who writes, which branch follows which, and what a new repository says of itself does not
//! count; everything else does.

use std::path::Path;

use crate::model::digest::Digest;
use crate::workspace::tree::FileState;

use super::program::{Answer, Call, Git, Trouble};

/// The name under which it stands among what is guarded.
pub const NAME: &str = ".git (configuration in force)";

/// Settings that run nothing and lead nowhere.
const HARMLESS: &[&str] = &[
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "user.name",
    "user.email",
    "init.defaultbranch",
    "pull.rebase",
    "push.default",
    "extensions.objectformat",
    "extensions.refstorage",
    "gc.auto",
];
/// Of a branch.
const HARMLESS_OF_BRANCHES: &[&str] =
    &["remote", "merge", "rebase", "description", "pushremote", "nightlooporiginal", "vscode-merge-base"];

/// What was asked, and whether the answer may have changed although git's own files did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    pub state: FileState,
    pub includes: bool,
    /// Why git cannot be asked: something stands among its files that does not belong there.
    pub odd: Option<String>,
}

/// The state of a repository whose configuration says nothing that counts.
pub fn nothing() -> FileState {
    state(&[])
}

/// Asks git. `None`: there is no git here.
pub(super) async fn ask(git: &Git) -> Result<Option<Effective>, Trouble> {
    let arguments = ["config", "--list", "-z", "--show-origin", "--includes"];
    match git.run(Call { arguments: &arguments, ..Call::default() }).await {
        Ok(Answer { code: 0, output, .. }) => {
            let settings = counting(git.workspace(), &output);
            let includes = settings.iter().any(|setting| setting.starts_with("include"));
            Ok(Some(Effective { state: state(&settings), includes, odd: None }))
        }
        // It cannot be read, which is a state of its own.
        Ok(answer) => {
            Ok(Some(refused(format!(".git: its configuration cannot be read ({}): {}", answer.code, answer.words))))
        }
        Err(Trouble::Stopped) => Err(Trouble::Stopped),
        Err(Trouble::NoProgram(_)) => Ok(None),
        Err(Trouble::Refused(why) | Trouble::Elsewhere(why)) => Ok(Some(refused(why))),
    }
}

/// The state of a repository that cannot be asked.
pub(super) fn refused(why: String) -> Effective {
    Effective { state: state(std::slice::from_ref(&why)), includes: true, odd: Some(why) }
}

fn state(settings: &[String]) -> FileState {
    let text = settings.join("\0");
    FileState { sha256: Digest::of(text.as_bytes()), size: text.len() as u64, executable: false }
}

/// The settings that count, sorted. The list reads `origin\0key\nvalue\0…`.
fn counting(workspace: &Path, list: &[u8]) -> Vec<String> {
    let mut pieces = list.split(|byte| *byte == 0);
    let mut settings = Vec::new();
    while let (Some(origin), Some(setting)) = (pieces.next(), pieces.next()) {
        let setting = String::from_utf8_lossy(setting).into_owned();
        let key = setting.split('\n').next().unwrap_or_default();
        if is_of(workspace, &String::from_utf8_lossy(origin)) && !is_harmless(key) {
            settings.push(setting);
        }
    }
    settings.sort();
    settings
}

/// Does a file of the workspace say it? Git names files of the repository relative to the workspace.
fn is_of(workspace: &Path, origin: &str) -> bool {
    let Some(file) = origin.strip_prefix("file:") else { return false };
    let file = Path::new(file);
    file.is_relative() || file.starts_with(workspace)
}

fn is_harmless(key: &str) -> bool {
    let of_branch = key.strip_prefix("branch.").and_then(|rest| rest.rsplit_once('.'));
    HARMLESS.contains(&key) || of_branch.is_some_and(|(_, name)| HARMLESS_OF_BRANCHES.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_counts_and_what_only_describes_does_not() {
        let list = b"file:.git/config\0core.bare\nfalse\0file:.git/config\0branch.a.b.remote\norigin\0\
            file:/home/me/.gitconfig\0core.pager\nless\0command line:\0core.hookspath\n/dev/null\0\
            file:.git/../shared.cfg\0core.fsmonitor\n./x\0file:/ws/.git/config\0filter.x.clean\ncat\0";
        let found = counting(Path::new("/ws"), list);
        assert_eq!(found, ["core.fsmonitor\n./x", "filter.x.clean\ncat"]);
        assert!(!is_harmless("branch.a.command") && !is_harmless("core.fsmonitor") && !is_harmless("include.path"));
    }
}
