//! An index of our own, so that the user's stays as it is while a commit is built.
//!
//! Role: what differs from a commit, seen through a private index; lists of differences. Invariant: nothing here
//! writes the user's index.

use std::fs;
use std::path::Path;

use crate::workspace::plain;

use super::paths::{Name, pieces};
use super::program::{Call, Git, Trouble};

/// A file that git keeps a reference to another repository for.
const SUBMODULE: &str = "160000";
/// An index of a million files.
const MAX_INDEX: usize = 256 << 20;
/// No file.
const NOTHING: &str = "000000";

/// A private index file; gone with the value.
pub(super) struct Index {
    _folder: tempfile::TempDir,
    path: String,
}

impl Index {
    /// One that holds the files of a commit.
    pub(super) async fn at(git: &Git, commit: &str) -> Result<Self, Trouble> {
        let private = |e: std::io::Error| Trouble::refused(format!("no place for a private index: {e}"));
        let mut folder = tempfile::Builder::new();
        folder.prefix("nightloop-index-");
        let folder = git.scratch().map_or_else(|| folder.tempdir(), |scratch| folder.tempdir_in(scratch));
        let folder = folder.map_err(private)?;
        let path = folder.path().join("index");
        // Git resolves what is not absolute in ways of its own.
        let path = std::path::absolute(path).map_err(private)?;
        // A copy, because it knows which files it need not read again, and which are not checked out on purpose.
        copy_with_time(git.folder()?, &path)
            .map_err(|why| Trouble::refused(format!("the index cannot be read: {why}")))?;
        let path = path.to_str().ok_or_else(|| Trouble::refused("the temporary folder's name is no UTF-8"))?.to_owned();
        let index = Self { _folder: folder, path };
        // Without a look at the files: they may well differ from both.
        index.must(git, &["read-tree", "-i", "--reset", "--no-recurse-submodules", commit], None).await?;
        // Its exit code says that some files differ: that is what is looked for next.
        let refresh = ["update-index", "-q", "--ignore-submodules", "--refresh"];
        git.run(Call { arguments: &refresh, index: Some(&index.path), input: None }).await?;
        Ok(index)
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) async fn must(&self, git: &Git, arguments: &[&str], input: Option<Vec<u8>>) -> Result<Vec<u8>, Trouble> {
        git.must(Call { arguments, index: Some(&self.path), input }).await
    }

    /// Tracked files that are not as in the index.
    pub(super) async fn changed(&self, git: &Git) -> Result<Vec<Entry>, Trouble> {
        let list = ["diff-files", "-z", "--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=all"];
        parse(&self.must(git, &list, None).await?)
    }

    /// Files that are neither in the index nor ignored. A name that ends with `/` is another repository.
    pub(super) async fn untracked(&self, git: &Git) -> Result<Vec<Name>, Trouble> {
        let list = self.must(git, &["ls-files", "-z", "--others", "--exclude-standard"], None).await?;
        Ok(pieces(&list).map(<[u8]>::to_vec).collect())
    }
}

/// Git takes a file for unchanged if it is older than the index: a copy that looks younger would hide changes that
/// were made right after the index was written.
fn copy_with_time(folder: &Path, to: &Path) -> Result<(), String> {
    let Some(stat) = plain::stat(folder, "index")? else { return Ok(()) };
    let Some(file) = plain::read(folder, "index", MAX_INDEX)? else { return Ok(()) };
    let copy = || {
        fs::write(to, &file.bytes)?;
        fs::File::options().write(true).open(to)?.set_modified(plain::modified(&stat))
    };
    copy().map_err(|error: std::io::Error| error.to_string())
}

/// One path that differs between two sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub name: Name,
    pub old: Side,
    pub new: Side,
    pub status: u8,
}

/// What a path is on one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Side {
    pub mode: String,
    pub id: String,
}

impl Side {
    pub(super) fn is_there(&self) -> bool {
        self.mode != NOTHING
    }
}

impl Entry {
    pub(super) fn is_submodule(&self) -> bool {
        self.old.mode == SUBMODULE || self.new.mode == SUBMODULE
    }
}

/// What differs between two commits: from `old` to `new`.
pub(super) async fn between(git: &Git, old: &str, new: &str) -> Result<Vec<Entry>, Trouble> {
    let list = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=none", old, new];
    parse(&git.output(&list).await?)
}

/// Reads `:old new id id S\0path\0 …`.
pub(super) fn parse(raw: &[u8]) -> Result<Vec<Entry>, Trouble> {
    let odd = || Trouble::refused("git lists differences in a form that is not known");
    let mut pieces = pieces(raw);
    let mut entries = Vec::new();
    while let Some(head) = pieces.next() {
        let head = std::str::from_utf8(head).ok().and_then(|head| head.strip_prefix(':')).ok_or_else(odd)?;
        let parts: Vec<&str> = head.split(' ').collect();
        let [old_mode, new_mode, old_id, new_id, status] = parts[..] else { return Err(odd()) };
        let name = pieces.next().ok_or_else(odd)?.to_vec();
        let side = |mode: &str, id: &str| Side { mode: mode.to_owned(), id: id.to_owned() };
        let status = *status.as_bytes().first().ok_or_else(odd)?;
        entries.push(Entry { name, old: side(old_mode, old_id), new: side(new_mode, new_id), status });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    /// Git compares the age of the index with that of the files in it.
    #[test]
    fn a_copy_is_as_old_as_its_original() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("index"), dir.path().join("to"));
        fs::write(&from, "x").unwrap();
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        fs::File::options().write(true).open(&from).unwrap().set_modified(then).unwrap();
        copy_with_time(dir.path(), &to).unwrap();
        assert_eq!(fs::metadata(&to).unwrap().modified().unwrap(), then);
    }

    #[test]
    fn differences_are_read_and_odd_ones_refused() {
        let raw = b":100644 000000 aa 00 D\0a\nb\0:000000 120000 00 bb A\0link\0";
        let entries = parse(raw).unwrap();
        assert_eq!(entries.len(), 2);
        assert!(entries[0].name == b"a\nb" && entries[0].old.is_there() && !entries[0].new.is_there());
        assert!(entries[1].status == b'A' && entries[1].new.mode == "120000");
        for odd in [&b"100644 x\0a\0"[..], b":1 2 3 4 M\0", b":1 2 3 M\0a\0"] {
            assert!(parse(odd).is_err());
        }
    }
}
