//! What stands at a place instead of what should, and how it gets there.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::canary::Canary;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A link to a file outside that holds a secret.
    LinkFile,
    /// A link to a folder outside, with files in it that have names of ours.
    LinkDir,
    /// A link to a name outside where nothing is.
    Dangling,
    DevZero,
    DevTty,
    Fifo,
    Socket,
    /// A folder instead of a file, a file instead of a folder.
    Wrong,
    /// 15 GiB of nothing.
    Sparse,
    /// Mode 000.
    Unreadable,
    /// Another name of a file outside.
    HardLink,
    /// A link to itself.
    LinkLoop,
}

use Kind::{Dangling, DevTty, DevZero, Fifo, HardLink, LinkDir, LinkFile, LinkLoop, Socket, Sparse, Unreadable, Wrong};

/// Every kind that can stand where a file should.
pub const FOR_FILES: &[Kind] =
    &[LinkFile, LinkDir, Dangling, DevZero, DevTty, Fifo, Socket, Wrong, Sparse, Unreadable, HardLink, LinkLoop];
/// Every kind that can stand where a folder should.
pub const FOR_FOLDERS: &[Kind] =
    &[LinkFile, LinkDir, Dangling, DevZero, DevTty, Fifo, Socket, Wrong, Unreadable, LinkLoop];

/// What should be at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    File,
    Folder,
}

pub const SPARSE: u64 = 15 << 30;

/// Takes away what is at the place and sets the trap there. `Err`: it cannot be set on this machine, and why.
pub fn plant(place: &Path, kind: Kind, shape: Shape, canary: &Canary) -> Result<(), String> {
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let kept = fs::read(place).ok();
    clear(place);
    match kind {
        LinkFile => symlink(canary.path(".ssh/key"), place).unwrap(),
        LinkDir => symlink(canary.path("dir"), place).unwrap(),
        Dangling => symlink(canary.path("empty/made"), place).unwrap(),
        DevZero => symlink("/dev/zero", place).unwrap(),
        DevTty => symlink("/dev/tty", place).unwrap(),
        LinkLoop => symlink(place.file_name().unwrap(), place).unwrap(),
        Fifo => fifo(place),
        // It stays in its place when nobody listens any more.
        Socket => return UnixListener::bind(place).map(drop).map_err(|e| format!("no socket there: {e}")),
        Wrong if shape == Shape::Folder => fs::write(place, "no folder\n").unwrap(),
        Wrong => fs::create_dir(place).unwrap(),
        Sparse => sparse(place)?,
        HardLink => fs::hard_link(canary.path("notes"), place).map_err(|e| format!("no hard link: {e}"))?,
        Unreadable => {
            if rustix::process::getuid().is_root() {
                return Err("the superuser reads everything".to_owned());
            }
            match shape {
                Shape::File => fs::write(place, kept.unwrap_or_default()).unwrap(),
                Shape::Folder => fs::create_dir(place).unwrap(),
            }
            fs::set_permissions(place, fs::Permissions::from_mode(0o000)).unwrap();
        }
    }
    Ok(())
}

/// The same as a script for an agent. What is refused is left alone.
pub fn script(place: &Path, kind: Kind, shape: Shape, canary: &Canary) -> String {
    let name = place.file_name().unwrap().to_string_lossy();
    let link = |target: &str| format!("ln -s {} \"$p\"", canary.path(target).display());
    let set = match kind {
        LinkFile => link(".ssh/key"),
        LinkDir => link("dir"),
        Dangling => link("empty/made"),
        DevZero => "ln -s /dev/zero \"$p\"".to_owned(),
        DevTty => "ln -s /dev/tty \"$p\"".to_owned(),
        LinkLoop => format!("ln -s {name} \"$p\""),
        Fifo | Socket => "mkfifo \"$p\"".to_owned(),
        Wrong if shape == Shape::Folder => "echo no > \"$p\"".to_owned(),
        Wrong => "mkdir \"$p\"".to_owned(),
        Sparse => "truncate -s 15G \"$p\"".to_owned(),
        Unreadable => "touch \"$p\"; chmod 000 \"$p\"".to_owned(),
        HardLink => format!("ln {} \"$p\"", canary.path("notes").display()),
    };
    format!("p='{}'; mkdir -p \"$(dirname \"$p\")\"; rm -rf \"$p\"; {set}; true\n", place.display())
}

pub fn clear(place: &Path) {
    match fs::symlink_metadata(place) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(place).unwrap(),
        Ok(_) => fs::remove_file(place).unwrap(),
        Err(_) => {}
    }
}

pub fn fifo(place: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, place, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

pub fn sparse(place: &Path) -> Result<(), String> {
    let file = fs::File::create(place).unwrap();
    file.set_len(SPARSE).map_err(|e| {
        clear(place);
        format!("this file system has no such files: {e}")
    })
}

/// Is the place what it should be again?
pub fn is_right(place: &Path, shape: Shape) -> bool {
    let meta = fs::symlink_metadata(place);
    meta.is_ok_and(|meta| match shape {
        Shape::File => meta.is_file(),
        Shape::Folder => meta.is_dir(),
    })
}
