//! The repository as the run finds it, and the branch of its own.
//!
//! Role: `Prepare`. Not its role: commits (`change`). Invariants: no file of the workspace is touched, no branch
//! that was there is moved; done twice it says the same.

use std::path::Path;

use crate::machine::event::GitFacts;
use crate::model::value::settings::{GitMode, GitSettings};
use crate::workspace::plain;

use super::change;
use super::index::Index;
use super::paths::{Bounds, Name, Whose, is_engines, pieces, shown};
use super::program::{Call, Git, Trouble};

/// Paths that are remembered as not the run's, and their bytes.
const MAX_FOREIGN: usize = 5_000;
const MAX_FOREIGN_BYTES: usize = 256 * 1024;
/// Changed files that a refusal names.
const NAMED: usize = 10;
/// The longest part of a branch's name that comes from the loop's.
const MAX_NAME: usize = 40;
/// What git leaves in its folder while something is half-done.
const UNFINISHED: &[(&str, &str)] = &[
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
];

/// What is there.
pub(super) enum Standing {
    /// On this branch, at this commit.
    Usable { branch: String, head: String },
    /// Nothing that could be used, and why.
    Absent(String),
}

/// The name of a run's branch.
pub(super) fn branch_name(loop_name: &str, run: &str) -> String {
    let mut name = String::new();
    for c in loop_name.chars().flat_map(char::to_lowercase) {
        let c = if c.is_ascii_alphanumeric() { c } else { '-' };
        if name.len() < MAX_NAME && !(c == '-' && (name.is_empty() || name.ends_with('-'))) {
            name.push(c);
        }
    }
    let name = name.trim_end_matches('-');
    let name = if name.is_empty() { "run" } else { name };
    let tail = run.len().saturating_sub(8);
    format!("nightloop/{name}-{}", run.get(tail..).unwrap_or(run).to_ascii_lowercase())
}

/// Goes to the run's branch; the facts have no branch where there is none to go to.
pub(super) async fn prepare(
    git: &Git,
    (settings, section): (&GitSettings, &str),
    wanted: &str,
    known: Option<&GitFacts>,
) -> Result<GitFacts, Trouble> {
    let (branch, head) = match look(git).await? {
        Standing::Usable { branch, head } => (branch, head),
        Standing::Absent(why) if settings.mode == GitMode::Branch => return Err(Trouble::Refused(why)),
        Standing::Absent(why) => return Ok(GitFacts { notes: vec![why], ..GitFacts::default() }),
    };
    quiet(git).await?;
    if is_protected(settings, wanted) {
        return Err(Trouble::refused(format!("the run's own branch {wanted} would be a protected one")));
    }
    if branch == wanted
        && let Some(known) = known.filter(|known| known.branch.as_deref() == Some(wanted))
    {
        // Looked at before: what was foreign then is foreign still.
        return Ok(GitFacts { head: Some(head), files: Vec::new(), sensitive: Vec::new(), ..known.clone() });
    }
    let found = find_foreign(git, settings).await?;
    if !settings.allow_dirty && !found.changed.is_empty() {
        return Err(Trouble::Refused(dirty(&found.changed, section)));
    }
    let original = if branch == wanted {
        git.line(&["config", "--get", &origin_key(wanted)]).await?.unwrap_or_default()
    } else {
        switch(git, &branch, &head, wanted).await?;
        branch
    };
    let mut foreign: Vec<String> = found.changed.into_iter().chain(found.untracked).collect();
    foreign.sort_unstable();
    foreign.dedup();
    Ok(GitFacts {
        branch: Some(wanted.to_owned()),
        original: Some(original).filter(|name| !name.is_empty()),
        head: Some(head),
        foreign,
        ..GitFacts::default()
    })
}

/// Is this a repository whose tree is the workspace, with a branch that has commits?
pub(super) async fn look(git: &Git) -> Result<Standing, Trouble> {
    let asked = ["rev-parse", "--is-bare-repository", "--is-inside-work-tree"];
    let answer = git.run(Call { arguments: &asked, ..Call::default() }).await?;
    if answer.code != 0 && answer.words.contains("not a git repository") {
        return Ok(Standing::Absent(
            "the workspace is no git repository; `git init` and a first commit make it one".into(),
        ));
    }
    if answer.code != 0 {
        return Err(Trouble::refused(format!("the repository cannot be read: {}", answer.words)));
    }
    if answer.output.starts_with(b"true") {
        return Err(Trouble::refused("the repository is bare: it has no files to work on; clone it first"));
    }
    let top = git.line(&["rev-parse", "--show-toplevel"]).await?.unwrap_or_default();
    // Both are free of links: git says it so, and so does whoever opened the workspace.
    if Path::new(&top) != git.workspace() {
        let why =
            format!("the repository's files begin at {top}, not at the workspace; run nightloop there to use git");
        return Ok(Standing::Absent(why));
    }
    let Some(branch) = current_branch(git).await? else {
        return Err(Trouble::refused("HEAD is detached: go to a branch first, `git switch BRANCH`"));
    };
    match git.line(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).await? {
        Some(head) => Ok(Standing::Usable { branch, head }),
        None => Ok(Standing::Absent("the repository has no commit yet; make a first one with `git commit`".into())),
    }
}

pub(super) async fn current_branch(git: &Git) -> Result<Option<String>, Trouble> {
    let full = git.line(&["symbolic-ref", "--quiet", "HEAD"]).await?;
    Ok(full.and_then(|full| full.strip_prefix("refs/heads/").map(str::to_owned)))
}

/// Refuses while something of the user's is half-done.
pub(super) async fn quiet(git: &Git) -> Result<(), Trouble> {
    let folder = git.folder()?;
    let is_there = |name: &str| plain::kind(folder, name).is_ok_and(|kind| kind.is_some());
    if let Some((_, what)) = UNFINISHED.iter().find(|(file, _)| is_there(file)) {
        return Err(Trouble::refused(format!("{what} is in progress: finish it, or end it with its `--abort`")));
    }
    if !git.output(&["ls-files", "-z", "--unmerged"]).await?.is_empty() {
        return Err(Trouble::refused("files have conflicts that are not resolved: resolve them first"));
    }
    Ok(())
}

pub(super) fn is_protected(settings: &GitSettings, branch: &str) -> bool {
    let matches =
        |pattern: &String| globset::Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(branch));
    settings.protected.iter().any(|pattern| pattern == branch || matches(pattern))
}

fn origin_key(branch: &str) -> String {
    format!("branch.{branch}.nightloopOriginal")
}

/// Makes the branch where HEAD is, and goes there. No file and no index entry changes: it is the same commit.
async fn switch(git: &Git, from: &str, head: &str, to: &str) -> Result<(), Trouble> {
    let full = format!("refs/heads/{to}");
    match git.line(&["rev-parse", "--quiet", "--verify", &full]).await? {
        Some(there) if there != head => {
            return Err(Trouble::refused(format!(
                "the run's branch {to} is at another commit than {from}: `git switch {to}` goes on with it"
            )));
        }
        Some(_) => {}
        None => {
            // An empty old value: only if nobody made it meanwhile.
            git.output(&["update-ref", "-m", "nightloop: a branch of its own", &full, head, ""]).await?;
        }
    }
    // Before the switch: after a crash it is the only place that knows.
    git.output(&["config", &origin_key(to), from]).await?;
    git.output(&["symbolic-ref", "-m", &format!("nightloop: from {from} to {to}"), "HEAD", &full]).await?;
    Ok(())
}

struct Found {
    /// Tracked, and not as committed.
    changed: Vec<String>,
    untracked: Vec<String>,
}

/// What is not as HEAD has it, before the run has done anything.
async fn find_foreign(git: &Git, settings: &GitSettings) -> Result<Found, Trouble> {
    let bounds = Bounds::new(&[], &settings.sensitive)?;
    let index = Index::at(git, "HEAD").await?;
    let mut changed: Vec<Name> = index.changed(git).await?.into_iter().map(|entry| entry.name).collect();
    let staged = git.output(&["diff-index", "--cached", "-z", "--name-only", "--no-renames", "HEAD"]).await?;
    changed.extend(pieces(&staged).map(<[u8]>::to_vec));
    changed.retain(|name| bounds.whose(name) != Whose::Engine);
    changed.sort_unstable();
    changed.dedup();
    // With its filter a file may well be unchanged; those are never touched anyway.
    let filtered = change::filtered(git, &changed).await?;
    changed.retain(|name| !filtered.contains(name));
    let mut untracked = index.untracked(git).await?;
    // What is ignored now may be no longer when the run has changed the rules.
    let ignored = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
    let ignored = git.must(Call { arguments: &ignored, index: Some(index.path()), input: None }).await?;
    untracked.extend(pieces(&ignored).map(<[u8]>::to_vec));
    let name = |name: &Name| Some(shown(name)).filter(|path| !is_engines(path));
    let found = Found {
        changed: changed.iter().filter_map(name).collect(),
        untracked: untracked.iter().filter_map(name).collect(),
    };
    let all = || found.changed.iter().chain(&found.untracked);
    if all().count() > MAX_FOREIGN || all().map(String::len).sum::<usize>() > MAX_FOREIGN_BYTES {
        return Err(Trouble::refused(format!(
            "more than {MAX_FOREIGN} files are changed or untracked: commit them, or name them in .gitignore"
        )));
    }
    Ok(found)
}

fn dirty(changed: &[String], section: &str) -> String {
    let named: Vec<&str> = changed.iter().take(NAMED).map(String::as_str).collect();
    let more = changed.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "files of yours are changed and not committed: {}{more}; commit them first, or set `{section}.git.allow_dirty: true` \
         (then the run leaves them out)",
        named.join(", ")
    )
}
