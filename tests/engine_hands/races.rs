//! Races between look and use: a place changes between what it should be and a trap, as fast as a thread can.
//!
//! Commands of an agent end with their call; a bystander in the workspace does not. It cannot win by being quick.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::stage::{PATIENCE, Stage, check, hold_each};
use crate::trap;
use crate::worlds::PRODUCT;
use crate::worlds::World::{self, Prd, PrdGit, Swarm, Value};

/// What the place is in every other moment: a link to this in the canary, or a FIFO.
#[derive(Debug, Clone, Copy)]
enum Other {
    Link(&'static str),
    Fifo,
}
use Other::{Fifo, Link};

const RACES: &[(World, &str, Other)] = &[
    (Swarm, "AGENTS.md", Link(".ssh/key")),
    (Swarm, "AGENTS.md", Link(".bashrc")),
    (Swarm, "AGENTS.md", Fifo),
    (Swarm, "evidence/loop/manifest.json", Link(".ssh/key")),
    (Swarm, "evidence/loop/manifest.json", Fifo),
    (Swarm, "evidence/loop", Link("dir")),
    (Swarm, "evidence", Link("dir")),
    (Swarm, "evidence/loop/iter_0", Link("dir/iter_0")),
    (Swarm, "NORTHSTAR.md", Link(".ssh/key")),
    (Swarm, ".gitignore", Fifo),
    (Swarm, "scratch", Link("dir")),
    (Swarm, PRODUCT, Link(".ssh/key")),
    (Swarm, "src", Link("dir")),
    (Prd, "prd.json", Link(".ssh/key")),
    (Prd, "prd.json", Fifo),
    (Prd, "progress.txt", Link(".bashrc")),
    (Prd, "loop/log.txt", Link(".bashrc")),
    (Prd, "loop", Link("dir/loop")),
    (PrdGit, ".git/index", Link("dir/index")),
    (PrdGit, ".git/objects", Link("objects")),
    (Value, ".loop_state.json", Link(".bashrc")),
];

fn name((world, place, other): &(World, &str, Other)) -> String {
    format!("race {world:?} {place} {other:?}")
}

pub fn names() -> Vec<String> {
    RACES.iter().map(name).collect()
}

fn run((world, place, other): &(World, &str, Other)) -> Result<(), String> {
    let stage = Stage::new(*world);
    let (place, side) = (stage.place(place), stage.bench.dir.path().join("side"));
    stage.release();
    let over = AtomicBool::new(false);
    let set = || match other {
        Link(target) => symlink(stage.canary.path(target), &side).unwrap(),
        Fifo => trap::fifo(&side),
    };
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| swap(&place, &side, set, &over));
        let ended = stage.start(&["run", "--headless"]).wait(PATIENCE);
        over.store(true, Ordering::SeqCst);
        ended
    })?;
    stage.unharmed(&ended)?;
    let documented = [0, 1, 2, 3, 4, 64, 74, 75].contains(&ended.code);
    check(documented, || format!("exit {}: {}", ended.code, ended.stderr))?;
    // What was put back last may well be an old text: `verify` may say so, but it has to come to an end.
    let verified = stage.start(&["verify"]).wait(PATIENCE).map_err(|why| format!("verify: {why}"))?;
    stage.unharmed(&verified).map_err(|why| format!("verify: {why}"))
}

/// Puts the trap into the place and takes it out again, each in one step, until it is over.
fn swap(place: &Path, side: &Path, set: impl Fn(), over: &AtomicBool) {
    let exchange = || renameat_with(CWD, place, CWD, side, RenameFlags::EXCHANGE).is_ok();
    while !over.load(Ordering::SeqCst) {
        if !place.exists() && fs::symlink_metadata(place).is_err() {
            // Not there yet.
            std::thread::yield_now();
            continue;
        }
        if fs::symlink_metadata(side).is_err() {
            set();
        }
        if exchange() {
            std::thread::yield_now();
            exchange();
        }
        // If the trap was put right meanwhile, what is aside now is an old file.
        if !is_trap(side) {
            if is_trap(place) {
                exchange();
            }
            trap::clear(side);
        }
    }
    if is_trap(place) {
        exchange();
    }
}

fn is_trap(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

#[test]
fn no_race_is_won() {
    hold_each(RACES, name, run);
}
