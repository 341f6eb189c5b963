//! Files of the project: hashed, compared and committed by the engine, whatever they turn into.

use std::process::Command;

use crate::canary::has_secret;
use crate::stage::Moment::{Before, During};
use crate::stage::{Case, Demand, Moment, Played, Stage, hold_all};
use crate::trap::Kind::{
    self, Dangling, DevTty, DevZero, Fifo, HardLink, LinkDir, LinkFile, LinkLoop, Socket, Unreadable, Wrong,
};
use crate::trap::{Shape, plant};
use crate::worlds::PRODUCT;
use crate::worlds::World::{self, PrdGit, Swarm, ValueGit};

/// Where, what, when; in which loop.
const TRAPS: &[(World, &str, Shape, Moment, &[Kind])] = &[
    (Swarm, PRODUCT, Shape::File, Before, &[LinkFile, DevZero, Fifo, Socket]),
    (
        Swarm,
        PRODUCT,
        Shape::File,
        During,
        &[LinkFile, LinkDir, Dangling, DevZero, DevTty, Fifo, Socket, Wrong, Unreadable, HardLink, LinkLoop],
    ),
    // The folder above a file that was read at the start.
    (Swarm, "src", Shape::Folder, During, &[LinkDir, LinkFile, Fifo, LinkLoop]),
    // A file that an agent writes next and a check looks at.
    (Swarm, "a", Shape::File, During, &[LinkFile, Fifo]),
    (PrdGit, PRODUCT, Shape::File, During, &[LinkFile, DevZero, Fifo, HardLink]),
    (PrdGit, "src", Shape::Folder, During, &[LinkDir]),
    (ValueGit, PRODUCT, Shape::File, During, &[LinkFile, Fifo]),
];

pub fn cases() -> Vec<Case> {
    let case = |&(world, place, shape, moment, kinds): &(World, &'static str, Shape, Moment, &'static [Kind])| {
        kinds.iter().map(move |&kind| Case { world, place, shape, kind, moment, demand: Demand::Ends })
    };
    TRAPS.iter().flat_map(case).collect()
}

/// What was committed is compressed: git has to say what it is.
fn committed_secret(stage: &Stage) -> bool {
    let objects = stage.place(".git/objects");
    let clean = stage.bench.dir.path().join("clean");
    let mut git = Command::new("git");
    git.args(["init", "-q", "--bare"]).arg(&clean);
    assert!(git.status().unwrap().success());
    let mut git = Command::new("git");
    git.args(["cat-file", "--batch", "--batch-all-objects"])
        .env("GIT_DIR", &clean)
        .env("GIT_OBJECT_DIRECTORY", objects);
    let output = git.output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    has_secret(&output.stdout)
}

#[test]
fn no_commit_takes_in_what_a_link_leads_to() {
    for world in [PrdGit, ValueGit] {
        let stage = Stage::new(world);
        let trap = || plant(&stage.place(PRODUCT), LinkFile, Shape::File, &stage.canary);
        assert!(matches!(stage.play(During, trap), Ok(Played::Ended(_))));
        assert!(!committed_secret(&stage), "{world:?}");
    }
}

#[test]
fn no_file_of_the_project_leads_out_or_holds_up() {
    hold_all(&cases());
}
