//! Commits of what the run changed, and the way back.
//!
//! Role: `Commit`, `Checkpoint`, `Restore` and taking an iteration back. Not its role: deciding when.
//! Invariants: only on the run's own branch; only files that are the run's; what a way back replaces is committed
//! before, so that nothing of the run is lost; done twice it comes to the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::model::value::settings::GitSettings;
use crate::workspace::plain::{self, FileKind, What};

use super::index::{self, Entry, Index, Side};
use super::paths::{self, Bounds, Name, Whose, pieces, shown};
use super::program::{Call, Git, Trouble};
use super::repository::{self, Standing};

/// Files of one commit.
const MAX_FILES: usize = 20_000;
/// Larger files stay out of commits.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Names that are recorded of each list.
const LISTED: usize = 1_000;
/// The longest first line of a message.
const MAX_MESSAGE: usize = 200;

/// The run's hold on its branch.
pub(super) struct Work<'a> {
    pub git: &'a Git,
    pub branch: &'a str,
    pub bounds: Bounds,
    pub settings: &'a GitSettings,
    /// Committed like all the rest, but never put back: what people want does not change because the work did, and
    /// what is rendered follows the run, not the files.
    pub kept: &'a [String],
    /// The name of the loop, for messages.
    pub name: &'a str,
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub head: String,
    pub files: Vec<String>,
    pub sensitive: Vec<String>,
    pub notes: Vec<String>,
}

/// An iteration's part of the branch.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub iteration: u32,
    pub start: String,
}

/// The first line of a message.
pub(super) fn first_line(text: &str) -> String {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    words.join(" ").chars().take(MAX_MESSAGE).collect()
}

/// What is to be committed, and what not.
#[derive(Default)]
struct Sorted {
    ours: Vec<Name>,
    sensitive: Vec<String>,
    notes: Vec<String>,
}

impl Work<'_> {
    /// Where the branch is; refuses where it is not HEAD.
    async fn head(&self) -> Result<String, Trouble> {
        let (branch, head) = match repository::look(self.git).await? {
            Standing::Usable { branch, head } => (branch, head),
            Standing::Absent(why) => return Err(Trouble::Refused(why)),
        };
        if branch != self.branch {
            return Err(Trouble::refused(format!(
                "the workspace is on branch {branch}, not on the run's own: `git switch {}`",
                self.branch
            )));
        }
        if repository::is_protected(self.settings, &branch) {
            return Err(Trouble::refused(format!("{branch} is a protected branch")));
        }
        repository::quiet(self.git).await?;
        Ok(head)
    }

    /// Commits what the run changed; nothing changed, no commit.
    pub(super) async fn commit(&self, what: &str) -> Result<Done, Trouble> {
        self.commit_as(&self.message(what)).await
    }

    /// The same, in words of one line.
    pub(super) async fn commit_as(&self, message: &str) -> Result<Done, Trouble> {
        let head = self.head().await?;
        let index = Index::at(self.git, "HEAD").await?;
        let changed = index.changed(self.git).await?.into_iter().map(|entry| entry.name);
        let names = changed.chain(index.untracked(self.git).await?).collect();
        let sorted = self.sort(names).await?;
        // Told apart by us: git refuses to look for a file where a link has taken the place of its folder.
        let (there, gone): (Vec<&Name>, Vec<&Name>) = sorted.ours.iter().partition(|name| self.is_there(name));
        let remove = ["update-index", "-z", "--force-remove", "--stdin"];
        index.must(self.git, &remove, Some(paths::list(gone))).await?;
        let add = ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
        index.must(self.git, &add, Some(paths::list(there))).await?;
        let tree = one_line(index.must(self.git, &["write-tree"], None).await?);
        let before = self.git.line(&["rev-parse", &format!("{head}^{{tree}}")]).await?.unwrap_or_default();
        let mut done = Done { head: head.clone(), sensitive: sorted.sensitive, notes: sorted.notes, ..Done::default() };
        if tree != before {
            let make = ["commit-tree", &tree, "-p", &head, "-F", "-"];
            let input = Some(format!("{message}\n").into_bytes());
            let made = one_line(self.git.must(Call { arguments: &make, index: None, input }).await?);
            // Only from where it was: a commit that somebody made meanwhile is not lost.
            let branch = format!("refs/heads/{}", self.branch);
            self.git.output(&["update-ref", "-m", message, &branch, &made, &head]).await?;
            let files = index::between(self.git, &head, &made).await?;
            list(&mut done.files, files.iter().map(|entry| shown(&entry.name)), &mut done.notes);
            done.head = made;
        }
        if let Err(Trouble::Refused(why)) = self.align().await {
            done.notes.push(format!("the index could not be brought in line, the next commit tries again: {why}"));
        }
        Ok(done)
    }

    fn is_there(&self, name: &[u8]) -> bool {
        matches!(plain::kind(self.git.workspace(), paths::path(name)), Ok(Some(kind)) if kind != FileKind::Folder)
    }

    /// Whose each path is; what git must not take by itself is left out with a word.
    async fn sort(&self, mut names: Vec<Name>) -> Result<Sorted, Trouble> {
        names.sort_unstable();
        names.dedup();
        let mut sorted = Sorted::default();
        let mut left_out = Vec::new();
        let mut sensitive = Vec::new();
        for name in names {
            match self.bounds.whose(&name) {
                Whose::Engine => {}
                // What lies there from before says nothing new, unless the run wrote to it; nobody can tell.
                Whose::Foreign => {}
                Whose::Sensitive => sensitive.push(shown(&name)),
                Whose::Run if name.ends_with(b"/") => {
                    left_out.push(format!("{}: a repository of its own", shown(&name)))
                }
                Whose::Run if is_huge(self.git.workspace(), &name) => {
                    left_out.push(format!("{}: larger than {} MiB", shown(&name), MAX_FILE_BYTES >> 20));
                }
                Whose::Run => sorted.ours.push(name),
            }
        }
        let filtered = filtered(self.git, &sorted.ours).await?;
        left_out.extend(filtered.iter().map(|name| format!("{}: a filter of git stands before it", shown(name))));
        sorted.ours.retain(|name| !filtered.contains(name));
        if sorted.ours.len() > MAX_FILES {
            return Err(Trouble::refused(format!(
                "more than {MAX_FILES} files are changed: name what is made, not written, in .gitignore"
            )));
        }
        let mut notes = Vec::new();
        list(&mut sorted.sensitive, sensitive, &mut notes);
        list(&mut sorted.notes, left_out, &mut notes);
        sorted.notes.extend(notes);
        Ok(sorted)
    }

    /// The user's index shows the run's own files as committed; what else is in it stays.
    async fn align(&self) -> Result<(), Trouble> {
        let list = ["diff-index", "--cached", "-z", "--raw", "--no-renames", "--no-abbrev", "HEAD"];
        let differs = index::parse(&self.git.output(&list).await?)?;
        let mut entries = Vec::new();
        for entry in differs {
            if self.bounds.whose(&entry.name) != Whose::Run || entry.is_submodule() || entry.status == b'U' {
                continue;
            }
            // A mode of zero takes the path out.
            let mode = if entry.old.is_there() { entry.old.mode.as_str() } else { "0" };
            entries.extend_from_slice(format!("{mode} {}\t", entry.old.id).as_bytes());
            entries.extend_from_slice(&entry.name);
            entries.push(0);
        }
        if entries.is_empty() {
            return Ok(());
        }
        let input = Some(entries);
        self.git.must(Call { arguments: &["update-index", "-z", "--index-info"], index: None, input }).await?;
        let refresh = ["update-index", "-q", "--ignore-submodules", "--refresh"];
        self.git.run(Call { arguments: &refresh, ..Call::default() }).await?;
        Ok(())
    }

    fn message(&self, what: &str) -> String {
        first_line(&format!("nightloop({}): {what}", self.name))
    }

    /// Puts the run's files back as they are at a commit of this branch.
    pub(super) async fn restore(&self, commit: &str, why: &str) -> Result<Done, Trouble> {
        self.head().await?;
        self.is_behind(commit).await?;
        let saved = self.commit(&format!("before going back: {why}")).await?;
        let entries = self.ours(index::between(self.git, &saved.head, commit).await?).await?;
        self.put_back(&entries, commit).await?;
        let mut done = self.commit(&format!("restore: {why}")).await?;
        done.files.clear();
        list(&mut done.files, entries.iter().map(|entry| shown(&entry.name)), &mut done.notes);
        Ok(done)
    }

    /// Takes back what one iteration changed. `spans` are the iterations whose beginnings are known, in order.
    pub(super) async fn undo(&self, iteration: u32, spans: &[Span]) -> Result<Done, Trouble> {
        let unknown = || Trouble::refused(format!("where iteration {iteration} began or ended is not on the branch"));
        let at = spans.iter().position(|span| span.iteration == iteration).ok_or_else(unknown)?;
        let (this, next) = (&spans[at], spans.get(at + 1).ok_or_else(unknown)?);
        if next.iteration != iteration + 1 {
            return Err(unknown());
        }
        self.head().await?;
        self.is_behind(&this.start).await?;
        self.is_behind(&next.start).await?;
        let saved = self.commit(&format!("before iteration {iteration} is taken back")).await?;
        let theirs = self.ours(index::between(self.git, &next.start, &this.start).await?).await?;
        let since = index::between(self.git, &next.start, &saved.head).await?;
        let since: BTreeMap<&Name, &Side> = since.iter().map(|entry| (&entry.name, &entry.new)).collect();
        let mut wanted = Vec::new();
        for entry in &theirs {
            match since.get(&entry.name) {
                None => wanted.push(entry.clone()),
                // Back already: this was interrupted once.
                Some(now) if **now == entry.new => {}
                Some(_) => return Err(self.changed_again(&entry.name, &spans[at + 1..], &saved.head).await?),
            }
        }
        self.put_back(&wanted, &this.start).await?;
        let mut done = self.commit(&format!("take back iteration {iteration}")).await?;
        done.files.clear();
        list(&mut done.files, theirs.iter().map(|entry| shown(&entry.name)), &mut done.notes);
        Ok(done)
    }

    /// Which later iteration has to go first.
    async fn changed_again(&self, name: &Name, later: &[Span], head: &str) -> Result<Trouble, Trouble> {
        for (at, span) in later.iter().enumerate().rev() {
            let end = later.get(at + 1).map_or(head, |next| next.start.as_str());
            if !index::between(self.git, &span.start, end).await?.iter().any(|entry| entry.name == *name) {
                continue;
            }
            let number = span.iteration;
            return Ok(Trouble::refused(if at + 1 == later.len() {
                format!("{} was changed again in iteration {number}, which is not over yet", shown(name))
            } else {
                format!("{} was changed again in iteration {number}: take that back first", shown(name))
            }));
        }
        Ok(Trouble::refused(format!("{} was changed again since", shown(name))))
    }

    /// Refuses a commit that this branch did not come from.
    async fn is_behind(&self, commit: &str) -> Result<(), Trouble> {
        let is_id = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_id {
            let asked = ["merge-base", "--is-ancestor", commit, "HEAD"];
            if self.git.run(Call { arguments: &asked, ..Call::default() }).await?.code == 0 {
                return Ok(());
            }
        }
        Err(Trouble::refused(format!("{commit} is no commit of the run's branch")))
    }

    /// Those that may be put back.
    async fn ours(&self, entries: Vec<Entry>) -> Result<Vec<Entry>, Trouble> {
        let mut entries = entries;
        entries.retain(|entry| self.bounds.whose(&entry.name) == Whose::Run && !entry.is_submodule());
        entries.retain(|entry| !self.kept.contains(&shown(&entry.name)));
        let names: Vec<Name> = entries.iter().map(|entry| entry.name.clone()).collect();
        let filtered = filtered(self.git, &names).await?;
        entries.retain(|entry| !filtered.contains(&entry.name));
        Ok(entries)
    }

    /// From how they are (`old`, and committed) to how they were (`new`, at `commit`).
    async fn put_back(&self, entries: &[Entry], commit: &str) -> Result<(), Trouble> {
        let root = self.git.workspace();
        for entry in entries.iter().filter(|entry| !entry.new.is_there()) {
            remove(root, &entry.name)?;
        }
        let wanted: Vec<&Name> = entries.iter().filter(|entry| entry.new.is_there()).map(|entry| &entry.name).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        for name in &wanted {
            is_free(root, name)?;
        }
        let index = Index::at(self.git, commit).await?;
        let write = ["checkout-index", "-z", "--force", "--quiet", "--stdin"];
        index.must(self.git, &write, Some(paths::list(wanted))).await?;
        Ok(())
    }
}

/// Names that a filter stands before: what git would keep of them is not what is in the file.
pub(super) async fn filtered(git: &Git, names: &[Name]) -> Result<BTreeSet<Name>, Trouble> {
    let arguments = ["check-attr", "-z", "--stdin", "filter"];
    let input = Some(paths::list(names));
    let output = git.must(Call { arguments: &arguments, index: None, input }).await?;
    let parts: Vec<&[u8]> = pieces(&output).collect();
    let has_one = |part: &&[&[u8]]| part.get(2).is_some_and(|value| !matches!(*value, b"unspecified" | b"unset"));
    Ok(parts.chunks(3).filter(has_one).filter_map(|part| part.first().map(|name| name.to_vec())).collect())
}

fn is_huge(root: &Path, name: &[u8]) -> bool {
    let stat = plain::stat(root, paths::path(name)).ok().flatten();
    stat.is_some_and(|stat| u64::try_from(stat.st_size).is_ok_and(|size| size > MAX_FILE_BYTES))
}

fn one_line(output: Vec<u8>) -> String {
    String::from_utf8_lossy(&output).trim().to_owned()
}

/// Adds as many as are recorded, and says how many are not.
fn list(into: &mut Vec<String>, from: impl IntoIterator<Item = String>, notes: &mut Vec<String>) {
    let mut from = from.into_iter();
    into.extend(from.by_ref().take(LISTED));
    let more = from.count();
    if more > 0 {
        notes.push(format!("{more} more are not listed"));
    }
}

/// Deletes a file of the run, and the folders that are empty without it.
fn remove(root: &Path, name: &[u8]) -> Result<(), Trouble> {
    let path = paths::path(name);
    match plain::remove(root, path) {
        Ok(_) => {}
        // A folder in its place, or a link on the way to it, is not what was committed.
        Err(fault) if fault.is_odd() => return Ok(()),
        Err(fault) => return Err(in_the_way(name, &fault.to_string())),
    }
    for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
        // Not empty, or not ours: it stays, and so does what holds it.
        if !plain::remove_folder(root, folder).unwrap_or(false) {
            break;
        }
    }
    Ok(())
}

/// Makes sure that writing the file takes nothing else away: git would clear a whole folder for it.
fn is_free(root: &Path, name: &[u8]) -> Result<(), Trouble> {
    let path = paths::path(name);
    match plain::kind(root, path) {
        Ok(Some(FileKind::Folder)) => match plain::remove_folder(root, path) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(in_the_way(name, "a folder with other files lies in its place")),
        },
        Ok(_) => Ok(()),
        Err(fault) if matches!(fault.what, What::NotAFolder(_)) => {
            Err(in_the_way(name, "a file or a link lies where its folder was"))
        }
        Err(fault) => Err(in_the_way(name, &fault.to_string())),
    }
}

fn in_the_way(name: &[u8], why: &str) -> Trouble {
    Trouble::refused(format!("{} cannot be put back: {why}", shown(name)))
}
