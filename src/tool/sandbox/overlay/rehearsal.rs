//! Tries an overlay out, on folders made for it: whether a file system can carry what is written shows only then.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::super::level::Level;
use super::super::policy::Policy;
use super::super::scratch;
use super::super::setup::Setup;
use super::{Overlay, Placed};
use crate::model::loop_file::NetworkDecl;
use crate::tool::environment;
use crate::tool::launcher;

/// A folder that a layer brings is seen, and can be replaced by an empty one: that takes marks which not every file
/// system keeps.
const SCRIPT: &str = "test -e .overlay-trial/below && rm -r .overlay-trial && mkdir .overlay-trial \
                      && test ! -e .overlay-trial/below";

/// Folders for one trial, gone with it.
struct Folders(PathBuf);

impl Folders {
    fn make(place: &Path) -> io::Result<Self> {
        let folder = place.canonicalize()?.join(format!("overlay-trial-{}", environment::new_call_id()));
        let make = |path: &Path| fs::DirBuilder::new().mode(0o700).create(path);
        make(&folder)?;
        let folders = Self(folder);
        for name in ["at", "over", "over/.overlay-trial", "upper", "work"] {
            make(&folders.0.join(name))?;
        }
        fs::write(folders.0.join("over/.overlay-trial/below"), "")?;
        Ok(folders)
    }

    fn overlay(&self) -> Overlay {
        let path = |name: &str| self.0.join(name);
        Overlay { over: vec![path("over")], upper: path("upper"), work: path("work") }
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        // What is left of an empty trial harms nobody.
        let _ = scratch::remove(&self.0);
    }
}

/// Does this machine let us have one at all?
pub(in crate::tool::sandbox) fn rehearse_anywhere(level: Level) -> bool {
    let tried = || -> io::Result<bool> {
        let folders = Folders::make(&std::env::temp_dir())?;
        let at = folders.0.join("at");
        let mut policy = Policy::trial(NetworkDecl::Off);
        policy.overlay = Some(Placed { at: at.clone(), overlay: folders.overlay() });
        let level = Level { landlock: 0, seccomp: false, ..level };
        launcher::works(&Setup { policy, level, without: None }, SCRIPT, &at)
    };
    tried().unwrap_or(false)
}

/// How often a trial that failed is made again: what is hidden may come and go while it is being hidden, and a run that
/// began with overlays must not go on without them for that.
const TRIES: usize = 3;

/// Can one be had over this workspace, with its layers in `state`? `policy` may write the workspace.
pub(in crate::tool::sandbox) fn rehearse(
    workspace: &Path,
    state: &Path,
    policy: &Policy,
    level: Level,
) -> Result<(), String> {
    let tried = || rehearse_once(workspace, state, policy.clone(), level);
    (1..TRIES).fold(tried(), |result, _| result.or_else(|_| tried()))
}

fn rehearse_once(workspace: &Path, state: &Path, mut policy: Policy, level: Level) -> Result<(), String> {
    let told = |error: io::Error| error.to_string();
    let folders = Folders::make(state).map_err(told)?;
    let placed = Placed::over(workspace, &folders.overlay(), &policy)?;
    let at = placed.at.clone();
    policy.overlay = Some(placed);
    if launcher::works(&Setup { policy, level, without: None }, SCRIPT, &at).map_err(told)? {
        return Ok(());
    }
    Err(format!("the file system of {} cannot hold what a check writes", state.display()))
}
