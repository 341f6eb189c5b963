//! What a command sees in place of the workspace: layers over it, and a folder for what it writes.
//!
//! Role: what an overlay is made of, whether one can stand in for a workspace, and finding that out by trying. The mount
//! itself is `mount`'s, what the layers hold is `workspace::layer`'s.
//!
//! Invariants: an overlay hides no file system that is mounted in the workspace; its folders lie where the command
//! cannot see them; what cannot be had is said in words, never replaced by something weaker.

#[cfg(target_os = "linux")]
pub(super) mod mount;
#[cfg(target_os = "linux")]
mod rehearsal;

use std::path::{Path, PathBuf};

use super::policy::Policy;
#[cfg(target_os = "linux")]
pub(super) use rehearsal::{rehearse, rehearse_anywhere};

/// Layers over a workspace: their names must fit what the kernel takes in one piece.
const MAX_OVER: usize = 8;

/// What a command sees in place of the workspace. One command at a time: a second one is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlay {
    /// Read-only layers over the workspace, the topmost first. A device 0:0 in them hides what is below.
    pub over: Vec<PathBuf>,
    /// Where what the command writes ends up.
    pub upper: PathBuf,
    /// The kernel's own folder, on the file system of `upper`; nothing else may be in it.
    pub work: PathBuf,
}

/// An overlay, and the folder that it is put over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub at: PathBuf,
    pub overlay: Overlay,
}

impl Placed {
    /// An overlay for commands of this policy, its paths free of links.
    pub(super) fn over(workspace: &Path, overlay: &Overlay, policy: &Policy) -> Result<Self, String> {
        let real = |path: &Path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
        let at = real(workspace)?;
        if let Some(why) = mounted_below(&at) {
            return Err(why);
        }
        if overlay.over.len() > MAX_OVER {
            return Err(format!("an overlay has at most {MAX_OVER} layers over the workspace"));
        }
        let over = overlay.over.iter().map(|path| real(path)).collect::<Result<Vec<_>, _>>()?;
        let overlay = Overlay { over, upper: real(&overlay.upper)?, work: real(&overlay.work)? };
        for path in overlay.over.iter().chain([&overlay.upper, &overlay.work]) {
            let seen = !policy.hidden.iter().any(|hidden| path.starts_with(hidden));
            if seen || path.starts_with(&at) || at.starts_with(path) {
                return Err(format!("{} is not out of the command's sight", path.display()));
            }
        }
        Ok(Self { at, overlay })
    }

    /// Paths that a layer brings, as the command will name them. What a layer holds as a link is not what is meant.
    pub(super) fn brought(&self, path: &Path) -> Option<PathBuf> {
        let plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let brings = |layer: &PathBuf| {
            let there = layer.join(path);
            // Without links, a path is its own real one.
            there.canonicalize().is_ok_and(|real| real == there && (real.is_dir() || real.is_file()))
        };
        (plain && self.overlay.over.iter().any(brings)).then(|| self.at.join(path))
    }
}

/// A file system that is mounted inside a folder would be out of sight below an overlay.
pub(super) fn mounted_below(folder: &Path) -> Option<String> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let Ok(mounts) = std::fs::read("/proc/self/mountinfo") else {
        return Some("what is mounted here cannot be read".to_owned());
    };
    let points = mounts.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    let below = points.map(unescaped).find(|point| point != folder && point.starts_with(folder))?;
    Some(format!("another file system is mounted at {}, inside the workspace", below.display()))
}

/// A path as the kernel lists it: blanks and backslashes are `\` and three octal digits.
fn unescaped(listed: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    let mut bytes = Vec::with_capacity(listed.len());
    let mut rest = listed;
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *byte == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_paths_are_read_back() {
        assert_eq!(unescaped(b"/a\\040b\\134c\\x"), Path::new("/a b\\c\\x"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_mounted_inside_is_found() {
        let why = mounted_below(Path::new("/")).unwrap();
        assert!(why.starts_with("another file system is mounted at /"), "{why}");
        assert_eq!(mounted_below(Path::new("/proc/self")), None);
        assert_eq!(mounted_below(tempfile::tempdir().unwrap().path()), None);
    }
}
