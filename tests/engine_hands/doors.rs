//! Every kind of trap at every door: the places in a workspace that the engine itself reads or writes.

use crate::harness::thorough;
use crate::stage::Moment::{Again, Before, Between, ByAgent, During};
use crate::stage::{Case, Demand, Moment, Played, Stage, hold_all, hold_each};
use crate::trap::Kind::{
    self, Dangling, DevTty, DevZero, Fifo, HardLink, LinkDir, LinkFile, LinkLoop, Socket, Sparse, Wrong,
};
use crate::trap::{FOR_FILES, FOR_FOLDERS, Shape};
use crate::worlds::World::{self, Prd, PrdGit, Swarm, Value, ValueGit};
use Demand::{Ends, RightOrNamed};
use Shape::{File, Folder};

/// A place, what should be there, and which traps are set there when. Unless everything is wanted: `thorough`.
type Door = (&'static str, Shape, Demand, &'static [(Moment, &'static [Kind])]);

const SWARM: &[Door] = &[
    (
        "AGENTS.md",
        File,
        RightOrNamed,
        &[
            (Before, &[LinkFile, Dangling, DevZero, Fifo, Wrong, Sparse, LinkLoop]),
            (During, FOR_FILES),
            (Between, &[LinkFile, Dangling, Fifo]),
        ],
    ),
    (
        "evidence",
        Folder,
        RightOrNamed,
        &[(Before, &[LinkDir, Dangling, Fifo, Wrong, LinkLoop]), (During, &[LinkDir, LinkFile, DevZero])],
    ),
    (
        "evidence/loop",
        Folder,
        RightOrNamed,
        &[(Before, &[LinkDir, LinkFile, Wrong]), (During, &[LinkDir, Dangling, Fifo]), (Between, &[LinkDir, Socket])],
    ),
    (
        "evidence/loop/manifest.json",
        File,
        RightOrNamed,
        &[
            (Before, &[LinkFile, Fifo, DevZero]),
            (During, &[LinkFile, Dangling, DevZero, Fifo, Socket, Wrong, Sparse, HardLink, LinkLoop]),
            (Between, &[LinkFile, Fifo]),
        ],
    ),
    ("evidence/loop/plan.json", File, RightOrNamed, &[(During, &[Fifo, HardLink]), (Between, &[LinkFile])]),
    (
        "evidence/loop/iter_0",
        Folder,
        RightOrNamed,
        &[(During, &[LinkDir, Dangling, Wrong]), (Between, &[LinkDir, Fifo])],
    ),
    ("evidence/loop/iter_0/checks", Folder, RightOrNamed, &[(During, &[LinkDir, Fifo])]),
    ("evidence/archive", Folder, RightOrNamed, &[(Again, &[LinkDir, Dangling, Wrong, Fifo])]),
    ("scratch", Folder, Ends, &[(Before, &[LinkDir, Fifo, Wrong]), (During, &[LinkDir, Dangling, LinkLoop])]),
    (
        "NORTHSTAR.md",
        File,
        RightOrNamed,
        &[(Before, &[LinkFile, DevZero, Fifo, Wrong, Sparse]), (During, &[LinkFile, Fifo, DevZero])],
    ),
    (
        "loop.yaml",
        File,
        RightOrNamed,
        &[(Before, &[LinkFile, DevZero, Fifo, Wrong, Sparse]), (During, &[LinkFile, Fifo]), (Between, &[Fifo])],
    ),
    ("rehearsal.yaml", File, Ends, &[(Between, &[Fifo, DevZero])]),
    (
        ".gitignore",
        File,
        Ends,
        &[(Before, &[LinkFile, DevZero, Fifo, Wrong]), (During, &[LinkFile, DevZero, Fifo, LinkLoop])],
    ),
    ("sub/.gitignore", File, Ends, &[(Before, &[Fifo]), (During, &[LinkFile, DevZero, Fifo])]),
    (".ignore", File, Ends, &[(During, &[Fifo])]),
    (".git/info/exclude", File, Ends, &[(Before, &[Fifo]), (During, &[DevZero])]),
    (".git", Folder, Ends, &[(Before, &[LinkDir]), (During, &[LinkDir, Wrong, Fifo])]),
    (".git/config", File, Ends, &[(Before, &[Fifo]), (During, &[LinkFile, DevZero, Fifo])]),
    (".git/hooks", Folder, Ends, &[(During, &[LinkDir, Fifo])]),
    (".git/hooks/pre-commit", File, Ends, &[(During, &[Fifo, DevZero])]),
];

const PRD: &[Door] = &[
    (
        "prd.json",
        File,
        RightOrNamed,
        &[
            (Before, &[LinkFile, DevZero, Fifo, Wrong, Sparse]),
            (During, &[LinkFile, Dangling, DevZero, Fifo, HardLink, LinkLoop]),
            (Between, &[LinkFile, Fifo]),
        ],
    ),
    ("loop", Folder, RightOrNamed, &[(Before, &[LinkDir, Wrong]), (During, &[LinkDir, Dangling, Fifo])]),
    (
        "loop/log.txt",
        File,
        RightOrNamed,
        &[(Before, &[Fifo]), (During, &[LinkFile, Dangling, DevZero, Fifo, HardLink, Wrong])],
    ),
    ("loop/last_error.txt", File, RightOrNamed, &[(During, &[LinkFile, Fifo])]),
    ("loop/log.archive.txt", File, Ends, &[(During, &[Fifo])]),
    (
        "progress.txt",
        File,
        RightOrNamed,
        &[(Before, &[LinkFile, Fifo]), (During, &[LinkFile, Dangling, DevZero, Fifo, HardLink, DevTty])],
    ),
];

const VALUE: &[Door] = &[
    ("VISION.md", File, RightOrNamed, &[(Before, &[LinkFile, DevZero, Fifo, Wrong])]),
    ("PRD.md", File, RightOrNamed, &[(Before, &[LinkFile, Fifo])]),
    // Read before the first iteration and not again.
    ("PRD.md", File, Ends, &[(During, &[LinkFile, Fifo])]),
    (
        "IMPLEMENTATION_PLAN.md",
        File,
        RightOrNamed,
        &[(Before, &[LinkFile]), (During, &[LinkFile, Dangling, Fifo, HardLink])],
    ),
    ("VALUE_CHECKLIST.md", File, RightOrNamed, &[(During, &[LinkFile, DevZero, Wrong])]),
    ("DELIVERY_REPORT.md", File, RightOrNamed, &[(Before, &[Fifo]), (During, &[LinkFile, Dangling, LinkLoop])]),
    (".loop_state.json", File, RightOrNamed, &[(During, &[LinkFile, Dangling, Fifo, Socket])]),
    (".loop", Folder, Ends, &[(During, &[LinkDir, Fifo])]),
];

/// What an agent does to the engine's places by itself, as far as its cage lets it.
const BY_AGENTS: &[(World, &[Door])] = &[
    (
        Swarm,
        &[
            ("AGENTS.md", File, RightOrNamed, &[(ByAgent, &[LinkFile, Dangling, DevZero, Fifo, HardLink])]),
            ("evidence/loop", Folder, RightOrNamed, &[(ByAgent, &[LinkDir, Fifo])]),
            ("evidence/loop/manifest.json", File, RightOrNamed, &[(ByAgent, &[LinkFile, Fifo])]),
            ("scratch/STOP", File, Ends, &[(ByAgent, &[LinkFile, DevZero, Fifo])]),
            ("NORTHSTAR.md", File, RightOrNamed, &[(ByAgent, &[LinkFile, Fifo])]),
            ("loop.yaml", File, RightOrNamed, &[(ByAgent, &[LinkFile])]),
            (".gitignore", File, Ends, &[(ByAgent, &[DevZero, Fifo])]),
            (".git/config", File, Ends, &[(ByAgent, &[Fifo])]),
            ("src/product.txt", File, Ends, &[(ByAgent, &[LinkFile, DevZero, Fifo])]),
        ],
    ),
    (Prd, &[("prd.json", File, RightOrNamed, &[(ByAgent, &[LinkFile, Fifo])])]),
    (Prd, &[("loop", Folder, RightOrNamed, &[(ByAgent, &[LinkDir])])]),
    (Value, &[(".loop_state.json", File, RightOrNamed, &[(ByAgent, &[LinkFile, Fifo])])]),
    (PrdGit, &[(".git/logs/HEAD", File, RightOrNamed, &[(ByAgent, &[LinkFile])])]),
    (PrdGit, &[(".git/HEAD", File, RightOrNamed, &[(ByAgent, &[LinkFile, Fifo])])]),
];

/// Places of the engine's git, where it commits.
const COMMITTED: &[Door] = &[
    (".git", Folder, RightOrNamed, &[(During, &[LinkDir, Fifo])]),
    (".git/index", File, RightOrNamed, &[(During, &[LinkFile, Fifo, DevZero])]),
    (".gitattributes", File, Ends, &[(During, &[LinkFile, Fifo, DevZero])]),
];

fn cases(world: World, doors: &[Door]) -> Vec<Case> {
    let mut cases = Vec::new();
    for &(place, shape, demand, traps) in doors {
        let every = if shape == File { FOR_FILES } else { FOR_FOLDERS };
        for &(moment, kinds) in traps {
            // A file of the project is hashed: how long 15 GiB take is a matter of the machine; see `stops`.
            let of_project = demand == Ends || moment != Before && ["NORTHSTAR.md", "loop.yaml"].contains(&place);
            let hashed = |kind: Kind| kind == Sparse && of_project;
            let kinds = if thorough() { every } else { kinds }.iter().copied();
            let kinds = kinds.filter(|kind| !hashed(*kind));
            cases.extend(kinds.map(|kind| Case { world, place, shape, kind, moment, demand }));
        }
    }
    cases
}

pub fn swarm() -> Vec<Case> {
    cases(Swarm, SWARM)
}

pub fn prd() -> Vec<Case> {
    cases(Prd, PRD)
}

pub fn value() -> Vec<Case> {
    cases(Value, VALUE).into_iter().chain(cases(ValueGit, COMMITTED)).collect()
}

pub fn by_agents() -> Vec<Case> {
    BY_AGENTS.iter().flat_map(|(world, doors)| cases(*world, doors)).collect()
}

#[test]
fn what_an_agent_does_to_the_doors_is_held() {
    hold_all(&by_agents());
}

/// What the traps are set in works without them: else they would show nothing.
#[test]
fn without_a_trap_every_loop_succeeds() {
    let plain =
        [(Swarm, Between), (Swarm, Again), (Prd, Between), (Value, During), (PrdGit, During), (ValueGit, During)];
    let name = |(world, moment): &(World, Moment)| format!("{world:?} without a trap {moment:?}");
    hold_each(&plain, name, |&(world, moment)| {
        let stage = Stage::new(world);
        match stage.play(moment, || Ok(()))? {
            Played::Impossible(why) => Err(why),
            Played::Ended(ended) if ended.code == 0 => stage.judge(&ended, None),
            Played::Ended(ended) => Err(format!("exit {}: {}\n{}", ended.code, ended.stdout, ended.stderr)),
        }
    });
}

#[test]
fn the_doors_of_every_loop_are_held() {
    hold_all(&swarm());
}

#[test]
fn the_doors_of_the_prd_playbook_are_held() {
    hold_all(&prd());
}

#[test]
fn the_doors_of_the_value_playbook_are_held() {
    hold_all(&value());
}
