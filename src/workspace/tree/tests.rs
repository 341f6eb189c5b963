//! Real folders: what is seen, what is not, and that the cache never hides a change.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn shot(root: &Path, cache: Option<&TreeCache>) -> (TreeSnapshot, TreeCache) {
    snapshot(root, &["evidence/", "logs"], cache, &|| Pace::Walk).unwrap().unwrap()
}

fn names(snapshot: &TreeSnapshot) -> Vec<&str> {
    snapshot.files.keys().map(String::as_str).collect()
}

/// Sets the times of a file an hour back, so that it counts as settled.
fn age(path: &Path) {
    let then = SystemTime::now() - std::time::Duration::from_secs(3600);
    File::options().append(true).open(path).unwrap().set_modified(then).unwrap();
}

/// A cache as if it had been taken ten seconds later than it was.
fn later(mut cache: TreeCache) -> TreeCache {
    cache.taken += 10_000_000_000;
    cache
}

#[test]
fn sees_what_counts() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for path in ["src/a.rs", ".hidden", "target/x", "deep/target/y", "evidence/e", "logs/l", ".git/HEAD", "evidence2"] {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), path).unwrap();
    }
    fs::write(root.join(".gitignore"), "target/\n").unwrap();
    symlink("/etc/passwd", root.join("link")).unwrap();
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"bad\xffname")), "").unwrap();
    let (tree, _) = shot(root, None);
    assert_eq!(names(&tree), [".gitignore", ".hidden", "bad\\xffname", "evidence2", "link", "src/a.rs"]);
    assert_eq!(tree.files["src/a.rs"].sha256, Digest::of(b"src/a.rs"));
    assert_eq!(tree.files["link"].sha256, Digest::of(b"symlink\0/etc/passwd"));
    assert!(tree.skipped.is_empty(), "{:?}", tree.skipped);
}

#[test]
fn special_files_are_named_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let (tree, _) = shot(folder.path(), None);
    assert!(tree.files.is_empty());
    assert_eq!(tree.skipped, ["fifo: not a file, folder or symlink"]);
    assert!(snapshot(&folder.path().join("none"), &[], None, &|| Pace::Walk).is_err());
    assert!(snapshot(&fifo, &[], None, &|| Pace::Walk).is_err());
}

#[test]
fn diff_names_each_kind() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for name in ["keep", "change", "remove", "mode", "turn"] {
        fs::write(root.join(name), "text").unwrap();
    }
    let (before, _) = shot(root, None);
    fs::write(root.join("change"), "TEXT").unwrap();
    fs::remove_file(root.join("remove")).unwrap();
    fs::write(root.join("add"), "").unwrap();
    fs::set_permissions(root.join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(root.join("turn")).unwrap();
    symlink("text", root.join("turn")).unwrap();
    let (after, _) = shot(root, None);
    let changes = diff(&before, &after);
    let seen: Vec<(&str, ChangeKind)> = changes.iter().map(|c| (c.path.as_str(), c.kind)).collect();
    let expected = [
        ("add", ChangeKind::Added),
        ("change", ChangeKind::Modified),
        ("mode", ChangeKind::Modified),
        ("remove", ChangeKind::Deleted),
        ("turn", ChangeKind::Modified),
    ];
    assert_eq!(seen, expected);
    assert_eq!(changes[1].sha256, Some(Digest::of(b"TEXT")));
    assert_eq!(changes[3].sha256, None);
    assert!(diff(&after, &after).is_empty());
    assert_ne!(before.digest(), after.digest());
    assert_eq!(after.digest(), shot(root, None).0.digest());
}

/// A wrong digest put into the cache shows through exactly when the cache is used.
#[test]
fn cache_is_used_only_for_settled_unchanged_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "text").unwrap();
    age(&path);
    let wrong = Digest::of(b"wrong");
    let poisoned = || {
        let (_, mut cache) = shot(folder.path(), None);
        cache.files.get_mut("file").unwrap().1 = wrong;
        cache
    };
    let seen = |cache: &TreeCache| shot(folder.path(), Some(cache)).0.files["file"].sha256;
    assert_eq!(seen(&later(poisoned())), wrong, "the cache is never used");
    // Changed just before the cache was taken: within the clock's grain.
    assert_eq!(seen(&poisoned()), Digest::of(b"text"));
    // Same size, same modification time, new content.
    let cache = later(poisoned());
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "TEXT").unwrap();
    File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(seen(&cache), Digest::of(b"TEXT"));
    // Replaced by another file.
    let cache = later(poisoned());
    fs::write(folder.path().join("other"), "othr").unwrap();
    fs::rename(folder.path().join("other"), &path).unwrap();
    assert_eq!(seen(&cache), Digest::of(b"othr"));
}

#[test]
fn same_size_change_is_found_through_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for round in 0..50 {
        fs::write(&path, format!("{round:04}")).unwrap();
        let (before, cache) = shot(folder.path(), None);
        fs::write(&path, format!("{:04}", round + 5000)).unwrap();
        let (after, _) = shot(folder.path(), Some(&cache));
        assert_eq!(diff(&before, &after).len(), 1, "round {round}");
    }
}
