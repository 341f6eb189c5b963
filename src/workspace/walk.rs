//! The one way to walk a workspace, for search and for snapshots.
//!
//! Everything that `.gitignore` files of the workspace do not exclude, hidden files included, `.git` excluded. Rules
//! from outside (parent folders, the user's global excludes) do not count: two people see the same tree. Symlinks are
//! seen, never followed. Works without a git repository. Opens no files but `.gitignore`.
//!
//! Invariants: each folder is opened in the one that holds it, so a folder that turns into a link under our feet leads
//! nowhere; depth, names in a folder and rules are bounded, and what is left out is said; a stop is heard within a
//! thousand names.

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Dir, FileType};

use super::plain::{self, FileKind};

/// Deeper folders are not entered; each level holds a descriptor.
const MAX_DEPTH: usize = 200;
/// Names of one folder; what follows is left out.
const MAX_NAMES: usize = 250_000;
/// A larger file of rules does not count, nor do further rules.
const MAX_RULES_BYTES: usize = 256 * 1024;
const MAX_RULES: usize = 5_000;
/// How often a listing asks whether it should go on.
const ASK_EVERY: usize = 1_000;
/// Where the rules think the workspace is: they only ever see names below it.
const SOMEWHERE: &str = "/w";

/// What a walk comes by.
pub enum Seen<'a> {
    Entry(Entry<'a>),
    /// Something was left out, and why.
    LeftOut(String),
}

/// A name that is no folder.
pub struct Entry<'a> {
    /// The folder it lies in.
    pub folder: &'a OwnedFd,
    pub name: &'a OsStr,
    /// From the root of the walk.
    pub path: &'a Path,
    pub kind: FileKind,
}

/// What to visit.
pub struct Range<'a> {
    /// Which names, by relative path, count.
    pub enter: &'a dyn Fn(&Path) -> bool,
    /// Names below the root; 1 is what lies in it.
    pub depth: Option<usize>,
    /// Is it time to end?
    pub stop: &'a dyn Fn() -> bool,
    /// Is what rules exclude visited, too?
    pub ignored: bool,
}

/// Visits what lies in `root`, in the order of names. `false`: it was stopped.
pub fn walk(root: &Path, range: &Range<'_>, visit: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>) -> io::Result<bool> {
    let folder = plain::open_root(root)?;
    let mut walker = Walker { range, visit, rules: Vec::new(), stopped: false };
    let _ = walker.folder(&folder, Path::new(""), 1);
    Ok(!walker.stopped)
}

struct Walker<'a, 'b> {
    range: &'a Range<'b>,
    visit: &'a mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
    /// The rules of the folders on the way, outermost first.
    rules: Vec<Gitignore>,
    stopped: bool,
}

impl Walker<'_, '_> {
    fn folder(&mut self, folder: &OwnedFd, path: &Path, depth: usize) -> ControlFlow<()> {
        if self.range.depth.is_some_and(|most| depth > most) {
            return ControlFlow::Continue(());
        }
        if depth > MAX_DEPTH {
            return self.left_out(path, &format!("deeper than {MAX_DEPTH} folders"));
        }
        let names = match self.names(folder, path)? {
            Ok(names) => names,
            Err(error) => return self.left_out(path, &error.to_string()),
        };
        let has_rules = !self.range.ignored && names.iter().any(|(name, _)| name == ".gitignore");
        let rules = if has_rules { self.read_rules(folder, path)? } else { None };
        let many = self.rules.len();
        self.rules.extend(rules);
        let flow = self.entries(folder, path, depth, &names);
        self.rules.truncate(many);
        flow
    }

    fn entries(
        &mut self,
        folder: &OwnedFd,
        path: &Path,
        depth: usize,
        names: &[(OsString, FileKind)],
    ) -> ControlFlow<()> {
        for (name, kind) in names {
            self.ask()?;
            let below = path.join(name);
            let is_folder = *kind == FileKind::Folder;
            if name == ".git" || !(self.range.enter)(&below) || self.is_ignored(&below, is_folder) {
                continue;
            }
            if !is_folder {
                (self.visit)(Seen::Entry(Entry { folder, name, path: &below, kind: *kind }))?;
                continue;
            }
            match plain::open_folder(folder, name) {
                Ok(next) => self.folder(&next, &below, depth + 1)?,
                // It went, or became something else; the next look will see that.
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => {}
                Err(error) => self.left_out(&below, &io::Error::from(error).to_string())?,
            }
        }
        ControlFlow::Continue(())
    }

    /// The names in a folder with their kinds, sorted. The outer break: it is time to end.
    #[allow(clippy::type_complexity)]
    fn names(&mut self, folder: &OwnedFd, path: &Path) -> ControlFlow<(), io::Result<Vec<(OsString, FileKind)>>> {
        let mut names = Vec::new();
        let listing = match Dir::read_from(folder) {
            Ok(listing) => listing,
            Err(error) => return ControlFlow::Continue(Err(error.into())),
        };
        for (count, entry) in listing.enumerate() {
            if count % ASK_EVERY == 0 {
                self.ask()?;
            }
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return ControlFlow::Continue(Err(error.into())),
            };
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name == "." || name == ".." {
                continue;
            }
            if names.len() >= MAX_NAMES {
                self.left_out(path, &format!("more than {MAX_NAMES} names in one folder"))?;
                break;
            }
            // Some file systems do not tell the kind while they list.
            let kind = match entry.file_type() {
                FileType::Unknown => plain::kind_at(folder, &name),
                known => FileKind::of(known),
            };
            names.push((name, kind));
        }
        names.sort();
        ControlFlow::Continue(Ok(names))
    }

    /// The rules that a folder adds. What is no ordinary file holds none.
    fn read_rules(&mut self, folder: &OwnedFd, path: &Path) -> ControlFlow<(), Option<Gitignore>> {
        let place = path.join(".gitignore");
        let bytes = match plain::read_at(folder, OsStr::new(".gitignore"), MAX_RULES_BYTES) {
            Ok(Some(file)) => file.bytes,
            Ok(None) => return ControlFlow::Continue(None),
            Err(why) => {
                self.left_out(&place, &format!("{why}: its rules do not count"))?;
                return ControlFlow::Continue(None);
            }
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut rules = GitignoreBuilder::new(Path::new(SOMEWHERE).join(path));
        for (number, line) in text.lines().enumerate() {
            if number >= MAX_RULES {
                self.left_out(&place, &format!("more than {MAX_RULES} lines: the rest does not count"))?;
                break;
            }
            let line = if number == 0 { line.trim_start_matches('\u{feff}') } else { line };
            // A line that is no rule is passed over, as git does.
            let _ = rules.add_line(None, line);
        }
        ControlFlow::Continue(rules.build().ok())
    }

    fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        let path = Path::new(SOMEWHERE).join(path);
        let verdicts = self.rules.iter().rev().map(|rules| rules.matched(&path, is_folder));
        verdicts.filter(|verdict| !verdict.is_none()).map(|verdict| verdict.is_ignore()).next().unwrap_or(false)
    }

    fn left_out(&mut self, path: &Path, why: &str) -> ControlFlow<()> {
        let name = if path.as_os_str().is_empty() { ".".to_owned() } else { super::tree::name_of(path) };
        (self.visit)(Seen::LeftOut(format!("{name}: {why}")))
    }

    fn ask(&mut self) -> ControlFlow<()> {
        if (self.range.stop)() {
            self.stopped = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
