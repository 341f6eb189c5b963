//! The world outside the workspace: a folder that nothing may touch, and a secret that nothing may carry away.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What `.ssh/key` says. Plain words: no redaction of anything that looks like a key would find them.
pub const SECRET: &str = "the canary sings at dawn in grove lane";
/// Larger files are planted ones, full of nothing.
const MAX_SEARCHED: u64 = 64 << 20;

pub struct Canary {
    pub root: PathBuf,
    before: BTreeMap<PathBuf, Thing>,
}

/// Inode included: a file that was put in the place of another is not the same.
#[derive(Debug, PartialEq)]
struct Thing {
    inode: u64,
    mode: u32,
    changed: (i64, i64),
    content: Vec<u8>,
}

impl Canary {
    pub fn set(root: PathBuf) -> Self {
        for dir in [".ssh", "empty", "dir/loop", "dir/iter_0", "objects"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        let secret = format!("{SECRET}\n");
        fs::write(root.join(".ssh/key"), &secret).unwrap();
        fs::write(root.join(".bashrc"), "# mine\n").unwrap();
        fs::write(root.join("notes"), "# Notes\n\nNothing to hide here.\n").unwrap();
        // Names that the engine or its git would write in a folder of their own.
        for name in ["manifest.json", "plan.json", "log.txt", "config", "HEAD", "index", "loop/manifest.json"] {
            fs::write(root.join("dir").join(name), &secret).unwrap();
        }
        for (name, mode) in [(".ssh", 0o700), (".ssh/key", 0o600), (".bashrc", 0o644), ("dir", 0o755)] {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let before = look(&root);
        Self { root, before }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// What of it is not as it was.
    pub fn harm(&self) -> Option<String> {
        let now = look(&self.root);
        let all: BTreeSet<&PathBuf> = self.before.keys().chain(now.keys()).collect();
        let changed = all.into_iter().filter(|path| self.before.get(*path) != now.get(*path));
        let mut told: Vec<String> = changed
            .map(|path| {
                let how = match (self.before.get(path), now.get(path)) {
                    (Some(_), None) => "is gone".to_owned(),
                    (None, Some(_)) => "is new".to_owned(),
                    (Some(was), Some(is)) if was.content != is.content => {
                        format!("says {:?}", String::from_utf8_lossy(&is.content).chars().take(60).collect::<String>())
                    }
                    _ => "was touched".to_owned(),
                };
                format!("{} {how}", path.display())
            })
            .collect();
        told.truncate(4);
        (!told.is_empty()).then(|| told.join(", "))
    }
}

fn look(root: &Path) -> BTreeMap<PathBuf, Thing> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(path) = todo.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let content = match meta.file_type() {
            kind if kind.is_file() => fs::read(&path).unwrap(),
            kind if kind.is_dir() => {
                todo.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            }
            other => format!("{other:?}").into_bytes(),
        };
        let thing = Thing { inode: meta.ino(), mode: meta.mode(), changed: (meta.mtime(), meta.mtime_nsec()), content };
        found.insert(path.strip_prefix(root).unwrap().to_owned(), thing);
    }
    found
}

/// The first regular file below a folder that has the secret in it; links are not followed.
pub fn carrier(root: &Path) -> Option<PathBuf> {
    let mut todo = vec![root.to_owned()];
    while let Some(path) = todo.pop() {
        // A run may be tidying up.
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if meta.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            todo.extend(entries.map(|entry| entry.path()));
        } else if meta.is_file() && meta.len() <= MAX_SEARCHED && has_secret(&fs::read(&path).unwrap_or_default()) {
            return Some(path);
        }
    }
    None
}

pub fn has_secret(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).contains(SECRET)
}
