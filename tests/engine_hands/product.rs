//! Files of the project: hashed, compared and committed by the engine, whatever they turn into.

use crate::stage::Moment::{Before, During};
use crate::stage::{Case, Demand, Moment, hold_all};
use crate::trap::Kind::{self, DevTty, DevZero, Dangling, Fifo, HardLink, LinkDir, LinkFile, LinkLoop, Socket, Unreadable, Wrong};
use crate::trap::Shape;
use crate::worlds::World::{self, PrdGit, Swarm, ValueGit};
use crate::worlds::PRODUCT;

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
    // A file that the engine hands to a check, and one that it reads for a metric.
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

#[test]
fn no_file_of_the_project_leads_out_or_holds_up() {
    hold_all(&cases());
}
