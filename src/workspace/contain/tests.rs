//! Attempts to leave the workspace or to reach what is protected.

use std::io::Read;
use std::os::unix::fs::symlink;

use super::*;

struct Place {
    _folder: tempfile::TempDir,
    workspace: PathBuf,
    outside: PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("work");
    let outside = folder.path().join("outside");
    std::fs::create_dir_all(workspace.join("sub")).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    std::fs::write(workspace.join("in"), "in").unwrap();
    Place { _folder: folder, workspace, outside }
}

fn read(root: &Root, asked: &str) -> Result<String, String> {
    let mut text = String::new();
    let path = root.relative(asked)?;
    root.read(&path)?.read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn write(root: &Root, asked: &str, protected: &[&str]) -> Result<(), String> {
    let protected: Vec<PathBuf> = protected.iter().map(PathBuf::from).collect();
    let target = root.target(&root.relative(asked)?, &protected)?;
    target.replace(b"new").map_err(|error| error.to_string())
}

#[test]
fn only_one_folder_may_be_written_where_that_is_the_limit() {
    let place = place();
    let root = Root::open(&place.workspace).unwrap();
    symlink("../in", place.workspace.join("sub/link")).unwrap();
    let within = |asked: &str| root.target_within(Path::new(asked), &[], Some(Path::new("sub"))).map(|_| ());
    within("sub/new").unwrap();
    for asked in ["in", "subway", "sub/link", "other/x"] {
        assert!(within(asked).unwrap_err().contains("not yours to write"), "{asked}");
    }
}

#[test]
fn inside_works() {
    let place = place();
    let root = Root::open(&place.workspace).unwrap();
    symlink("../in", place.workspace.join("sub/link")).unwrap();
    for asked in ["in", "./in", "sub/link", &place.workspace.join("in").display().to_string()] {
        assert_eq!(read(&root, asked).as_deref(), Ok("in"), "{asked}");
    }
    write(&root, "a/b/c", &[]).unwrap();
    assert_eq!(std::fs::read_to_string(place.workspace.join("a/b/c")).unwrap(), "new");
    // Through the symlink, the real file is replaced and the link stays.
    write(&root, "sub/link", &[]).unwrap();
    assert_eq!(std::fs::read_to_string(place.workspace.join("in")).unwrap(), "new");
    assert!(place.workspace.join("sub/link").is_symlink());
}

#[test]
fn outside_is_refused() {
    let place = place();
    let root = Root::open(&place.workspace).unwrap();
    symlink(&place.outside, place.workspace.join("out")).unwrap();
    symlink("../outside", place.workspace.join("relout")).unwrap();
    symlink(place.outside.join("secret"), place.workspace.join("leak")).unwrap();
    symlink(place.outside.join("new"), place.workspace.join("dangling")).unwrap();
    symlink("/proc/self/root", place.workspace.join("magic")).unwrap();
    let absolute = place.outside.join("secret").display().to_string();
    let dotted = format!("{}/../outside/secret", place.workspace.display());
    let prefix = format!("{}-other/secret", place.workspace.display());
    let tries = [
        "../outside/secret",
        "sub/../../outside/secret",
        "out/secret",
        "relout/secret",
        "leak",
        "dangling",
        "magic/etc/passwd",
        "/etc/passwd",
        "in\0",
        &absolute,
        &dotted,
        &prefix,
    ];
    for asked in tries {
        assert!(read(&root, asked).is_err(), "read {asked}");
        assert!(write(&root, asked, &[]).is_err(), "write {asked}");
    }
    assert!(read(&root, "leak").unwrap_err().contains("leaves the workspace"));
    assert!(write(&root, "out/new", &[]).is_err());
    assert!(write(&root, "out/deep/new", &[]).is_err());
    let left: Vec<_> = std::fs::read_dir(&place.outside).unwrap().flatten().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(std::fs::read_to_string(place.outside.join("secret")).unwrap(), "secret");
}

#[test]
fn protected_is_refused_by_any_name() {
    let place = place();
    let root = Root::open(&place.workspace).unwrap();
    let work = &place.workspace;
    std::fs::create_dir_all(work.join("evidence")).unwrap();
    std::fs::create_dir_all(work.join(".git/hooks")).unwrap();
    std::fs::create_dir_all(work.join("scratch")).unwrap();
    std::fs::write(work.join("AGENTS.md"), "old").unwrap();
    symlink("AGENTS.md", work.join("alias")).unwrap();
    symlink("evidence", work.join("ev")).unwrap();
    symlink(".git", work.join("g")).unwrap();
    let protected = ["AGENTS.md", "evidence/", "scratch/STOP", "not/yet/there"];
    let refused = [
        "AGENTS.md",
        "./AGENTS.md",
        "alias",
        "evidence/x",
        "evidence/deep/x",
        "ev/x",
        "ev/deep/x",
        "scratch/STOP",
        "scratch/STOP/x",
        "not/yet",
        "not",
        ".git/hooks/pre-commit",
        ".git/config",
        "g/config",
        "g/hooks/post-checkout",
        "sub/.git/config",
        "sub/.git",
    ];
    for asked in refused {
        assert!(write(&root, asked, &protected).is_err(), "{asked}");
    }
    assert_eq!(std::fs::read_to_string(work.join("AGENTS.md")).unwrap(), "old");
    assert!(!work.join("evidence/deep").exists() && !work.join("sub/.git").exists());
    for asked in ["AGENTS.md.bak", "evidence2/x", "scratch/STOPPED", ".gitignore"] {
        write(&root, asked, &protected).unwrap_or_else(|error| panic!("{asked}: {error}"));
    }
}

#[test]
fn a_hard_link_keeps_its_content() {
    let place = place();
    let root = Root::open(&place.workspace).unwrap();
    std::fs::hard_link(place.outside.join("secret"), place.workspace.join("hard")).unwrap();
    write(&root, "hard", &[]).unwrap();
    assert_eq!(std::fs::read_to_string(place.outside.join("secret")).unwrap(), "secret");
    assert_eq!(read(&root, "hard").as_deref(), Ok("new"));
}

#[test]
fn special_files_do_not_hang() {
    let place = place();
    let root = Root::open(&place.workspace).unwrap();
    let fifo = place.workspace.join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    assert!(read(&root, "fifo").unwrap_err().contains("not a regular file"));
    assert!(write(&root, "fifo", &[]).is_err());
    assert!(read(&root, "sub").unwrap_err().contains("folder"));
    assert!(write(&root, "sub", &[]).is_err());
    assert!(write(&root, ".", &[]).is_err());
    assert!(write(&root, "in/x", &[]).is_err());
}

#[test]
fn mode_bits_are_kept_and_no_temporary_stays() {
    let place = place();
    let root = Root::open(&place.workspace).unwrap();
    let script = place.workspace.join("in");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o751)).unwrap();
    write(&root, "in", &[]).unwrap();
    assert_eq!(std::fs::metadata(&script).unwrap().mode() & 0o7777, 0o751);
    let names: Vec<_> = std::fs::read_dir(&place.workspace).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("nightloop")), "{names:?}");
}
