//! Files of program folders (`node_modules`, `.venv`) by their times: whether any was changed, without reading one.
//!
//! Such folders are ignored by git, so they are in no tree, and they are large. The change time of a file cannot be set
//! by a program, so a file whose stamp is as it was is as it was. Not here: which folders those are (`model::guard`).
//!
//! Invariants: nothing is opened but folders, none of them through a link; depth and number are bounded, and a cut is
//! told, never silent.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Stat};

use super::plain::{self, FileKind};
use crate::model::digest::Digest;

/// More than the program folders of nearly every project.
const MAX_FILES: usize = 150_000;
const MAX_DEPTH: usize = 60;
/// How deep below the root such a folder is looked for.
const FOUND_WITHIN: usize = 7;

/// The files of program folders at one moment, by a hash of the path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stamps {
    stamps: BTreeMap<u64, u64>,
    /// Are there more than were looked at?
    pub cut: bool,
}

/// What differs between two looks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Differs {
    /// The first few that changed.
    pub changed: Vec<String>,
    /// The first few that came.
    pub added: Vec<String>,
    pub changed_in_all: u64,
    pub added_in_all: u64,
    pub removed_in_all: u64,
    /// Not all of them were looked at.
    pub cut: bool,
}

/// What counts, by path from the root.
#[derive(Clone, Copy)]
pub struct Which<'a> {
    /// Is this a folder of programs?
    pub is_tool: &'a dyn Fn(&str) -> bool,
    /// Is this file of one passed over?
    pub skip: &'a dyn Fn(&str) -> bool,
}

/// Looks at all folders of programs.
pub fn look(root: &Path, which: Which<'_>, visit: &mut dyn FnMut(&Path)) -> io::Result<Stamps> {
    let folder = plain::open_root(root)?;
    let mut look = Look { which, visit, found: Stamps::default() };
    look.search(&folder, Path::new(""), 1);
    Ok(look.found)
}

struct Look<'a> {
    which: Which<'a>,
    visit: &'a mut dyn FnMut(&Path),
    found: Stamps,
}

impl Look<'_> {
    /// Looks for program folders.
    fn search(&mut self, folder: &OwnedFd, path: &Path, depth: usize) {
        for (name, kind) in names(folder) {
            if kind != FileKind::Folder || name.as_bytes() == b".git" {
                continue;
            }
            let below = path.join(&name);
            let Ok(next) = plain::open_folder(folder, &name) else { continue };
            if below.to_str().is_some_and(|path| (self.which.is_tool)(path)) {
                self.collect(&next, &below, 1);
            } else if depth < FOUND_WITHIN {
                self.search(&next, &below, depth + 1);
            }
        }
    }

    fn collect(&mut self, folder: &OwnedFd, path: &Path, depth: usize) {
        for (name, kind) in names(folder) {
            if self.found.stamps.len() >= MAX_FILES || depth > MAX_DEPTH {
                self.found.cut = true;
                return;
            }
            let below = path.join(&name);
            if kind == FileKind::Folder {
                if let Ok(next) = plain::open_folder(folder, &name) {
                    self.collect(&next, &below, depth + 1);
                }
                continue;
            }
            if below.to_str().is_some_and(|path| (self.which.skip)(path)) {
                continue;
            }
            let Ok(Some(stat)) = plain::stat_at(folder, &name) else { continue };
            self.found.stamps.insert(hash(below.as_os_str()), stamp(&stat));
            (self.visit)(&below);
        }
    }
}

fn names(folder: &OwnedFd) -> Vec<(std::ffi::OsString, FileKind)> {
    let Ok(entries) = Dir::read_from(folder) else { return Vec::new() };
    let mut names: Vec<_> = entries
        .filter_map(Result::ok)
        .filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."))
        .take(MAX_FILES)
        .map(|entry| {
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            let kind = match entry.file_type() {
                FileType::Unknown => plain::kind_at(folder, &name),
                known => FileKind::of(known),
            };
            (name, kind)
        })
        .collect();
    names.sort();
    names
}

/// The same in every version: what is kept is read by a later engine, too.
fn short(bytes: &[u8]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *Digest::of(bytes).as_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

fn hash(text: &OsStr) -> u64 {
    short(text.as_bytes())
}

fn stamp(stat: &Stat) -> u64 {
    let (modified, changed) = ((stat.st_mtime, stat.st_mtime_nsec), (stat.st_ctime, stat.st_ctime_nsec));
    short(format!("{} {} {} {modified:?} {changed:?}", stat.st_ino, stat.st_size, stat.st_mode).as_bytes())
}

impl Stamps {
    /// What a new look at the same folders shows.
    pub fn compare(&self, root: &Path, which: Which<'_>, name_most: usize) -> io::Result<Differs> {
        let mut differs = Differs::default();
        let mut paths: Vec<PathBuf> = Vec::new();
        let now = look(root, which, &mut |path| paths.push(path.to_owned()))?;
        for path in paths {
            let key = hash(path.as_os_str());
            let text = || path.to_string_lossy().into_owned();
            match self.stamps.get(&key) {
                None => {
                    differs.added_in_all += 1;
                    if differs.added.len() < name_most {
                        differs.added.push(text());
                    }
                }
                Some(known) if now.stamps.get(&key) != Some(known) => {
                    differs.changed_in_all += 1;
                    if differs.changed.len() < name_most {
                        differs.changed.push(text());
                    }
                }
                Some(_) => {}
            }
        }
        differs.cut = self.cut || now.cut;
        let removed = self.stamps.keys().filter(|key| !now.stamps.contains_key(key)).count();
        differs.removed_in_all = u64::try_from(removed).unwrap_or(u64::MAX);
        Ok(differs)
    }

    /// As bytes, to be kept beside the run.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.cut)];
        for (path, stamp) in &self.stamps {
            out.extend_from_slice(&path.to_le_bytes());
            out.extend_from_slice(&stamp.to_le_bytes());
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (cut, rest) = bytes.split_first()?;
        let (pairs, odd) = rest.as_chunks::<16>();
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
        let stamps = pairs.iter().map(|pair| Some((number(&pair[..8])?, number(&pair[8..])?)));
        let stamps: Option<BTreeMap<u64, u64>> = stamps.collect();
        Some(Self { stamps: stamps.filter(|_| odd.is_empty())?, cut: *cut != 0 })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TOOLS: Which<'_> =
        Which { is_tool: &|path| path.ends_with("node_modules"), skip: &|path| path.ends_with(".package-lock.json") };

    #[test]
    fn a_changed_program_is_seen_although_its_times_are_set_back() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("web/node_modules/.bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("jest"), "real").unwrap();
        fs::write(bin.join("gone"), "real").unwrap();
        fs::write(dir.path().join("web/code.js"), "code").unwrap();
        let before = look(dir.path(), TOOLS, &mut |_| ()).unwrap();
        let kept = Stamps::decode(&before.encode()).unwrap();
        assert_eq!(kept, before);
        assert_eq!(kept.compare(dir.path(), TOOLS, 5).unwrap(), Differs::default());
        let times = fs::metadata(bin.join("jest")).unwrap().modified().unwrap();
        fs::write(bin.join("jest"), "fake").unwrap();
        fs::File::options().write(true).open(bin.join("jest")).unwrap().set_modified(times).unwrap();
        fs::remove_file(bin.join("gone")).unwrap();
        fs::write(bin.join("new"), "x").unwrap();
        fs::write(bin.join(".package-lock.json"), "passed over").unwrap();
        fs::write(dir.path().join("web/code.js"), "other code").unwrap();
        let differs = kept.compare(dir.path(), TOOLS, 5).unwrap();
        assert_eq!(differs.changed, ["web/node_modules/.bin/jest"]);
        assert_eq!((differs.changed_in_all, differs.added_in_all, differs.removed_in_all), (1, 1, 1));
    }
}
