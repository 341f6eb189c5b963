//! The one door to a workspace: everything the engine itself reads or writes where agents work goes through here.
//!
//! Whoever works in a workspace can put anything at any name: a link to a key, a pipe that never answers, a file without
//! an end. So nothing here trusts a name. Folders are opened one in the other by descriptor; what is opened is what is
//! used.
//!
//! * [`plain`]: files at exactly their names, no link anywhere on the way. For all that is the engine's own.
//! * [`contain`]: paths that people and agents name; links are followed as long as they stay inside.
//! * [`document`]: documents of people, read and replaced as a whole.
//! * [`head`]: the branch that is checked out, for a word before anything is done.
//! * [`walk`], [`tree`], [`copy`]: all files; what they hold, as digests; a copy of them to work in.
//! * [`stamps`]: files of program folders, by their times.
//! * [`layer`]: layers of an overlay over it, and what a command wrote into one.
//!
//! Not here: what the files mean, and processes (`tool`), which have the sandbox around them.
//!
//! Invariants: nothing outside the workspace is read or written; only regular files are; no call waits for a pipe, a
//! device or a lock; every read has a limit, and what may take long can be stopped. `tests/architecture.rs` keeps other
//! modules from touching the file system with a path of a workspace.

pub mod contain;
pub mod copy;
pub mod document;
pub mod head;
pub mod layer;
pub mod plain;
pub mod stamps;
pub mod tree;
pub mod walk;

use std::path::Path;

/// Files of the workspace that this process's own output goes to, as in `nightloop run > nightloop.log`: nobody's work.
/// Empty where the machine does not say.
pub fn own_output(workspace: &Path) -> Vec<String> {
    let named = |fd: &str| std::fs::read_link(Path::new("/proc/self/fd").join(fd)).ok();
    let files = ["1", "2"].into_iter().filter_map(named);
    let within = files.filter_map(|path| Some(path.strip_prefix(workspace).ok()?.to_str()?.to_owned()));
    within.collect()
}
