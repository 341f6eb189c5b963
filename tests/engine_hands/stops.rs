//! Stop signals and their file: seen and obeyed whatever stands in the workspace.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::journal_text;
use crate::stage::Moment::{self, Before, Between, During};
use crate::stage::{Engine, Played, Stage, check, hold_each, wait_for};
use crate::trap::Kind::{
    self, Dangling, DevTty, DevZero, Fifo, HardLink, LinkDir, LinkFile, LinkLoop, Socket, Sparse, Wrong,
};
use crate::trap::{Shape, plant, sparse};
use crate::worlds::World::{self, Prd, Swarm, Value};

/// `scratch/STOP` itself is the trap: when, what, and the exit codes that it may come to.
const FILES: &[(Moment, Kind, &[i32])] = &[
    // What exists stops the run, whatever it is.
    (During, LinkFile, &[4]),
    (During, LinkDir, &[4]),
    (During, DevZero, &[4]),
    (During, DevTty, &[4]),
    (During, Fifo, &[4]),
    (During, Socket, &[4]),
    (During, Wrong, &[4]),
    (During, Sparse, &[4]),
    (During, HardLink, &[4]),
    // A name that leads nowhere may count or not.
    (During, Dangling, &[0, 4]),
    (During, LinkLoop, &[0, 4]),
    (Before, LinkFile, &[4]),
    (Before, Fifo, &[4]),
    (Before, DevZero, &[4]),
    (Between, LinkFile, &[75]),
    (Between, Fifo, &[75]),
    (Between, DevZero, &[75]),
];

fn name_of_file((moment, kind, _): &(Moment, Kind, &[i32])) -> String {
    format!("scratch/STOP {kind:?} {moment:?}")
}

#[test]
fn whatever_the_stop_file_is_it_is_not_waited_for() {
    hold_each(FILES, name_of_file, |(moment, kind, codes)| {
        let stage = Stage::new(Swarm);
        let trap = || plant(&stage.place("scratch/STOP"), *kind, Shape::File, &stage.canary);
        match stage.play(*moment, trap)? {
            Played::Impossible(why) => {
                println!("skipped: scratch/STOP {kind:?}: {why}");
                Ok(())
            }
            Played::Ended(ended) => {
                stage.judge(&ended, None)?;
                check(codes.contains(&ended.code), || format!("exit {}: {}", ended.code, ended.stderr))
            }
        }
    });
}

/// Who says that it is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    File,
    Order,
    Interrupt,
    Terminate,
    /// Nobody has to: the time that the loop was given is over.
    Budget,
}

/// What takes the engine hours if it is let: which loop, from when on, which files are huge, and who stops it.
const ENDLESS: &[(World, Moment, &str, Stop)] = &[
    (Swarm, Before, "big", Stop::File),
    (Swarm, Before, "big", Stop::Order),
    (Swarm, Before, "big", Stop::Interrupt),
    (Swarm, Before, "big", Stop::Terminate),
    (Swarm, Before, "big", Stop::Budget),
    (Swarm, During, "big", Stop::File),
    (Swarm, During, "big", Stop::Order),
    (Swarm, During, "big", Stop::Interrupt),
    (Swarm, During, "big", Stop::Terminate),
    (Swarm, During, "big", Stop::Budget),
    (Swarm, During, ".gitignore", Stop::File),
    (Swarm, During, "NORTHSTAR.md", Stop::File),
    (Prd, During, "big", Stop::File),
    (Prd, During, "big", Stop::Terminate),
    (Value, During, "big", Stop::File),
    (Value, During, "big", Stop::Terminate),
];

/// The time that a loop is given, where that is what stops it.
const SPARE: Duration = Duration::from_secs(5);

/// Obeyed within 2.5 s, on a machine that does nothing else; hashing would go on for hours.
const OBEYED: Duration = Duration::from_secs(15);

fn name_of_endless((world, moment, place, stop): &(World, Moment, &str, Stop)) -> String {
    format!("stop {world:?} {place} {moment:?} {stop:?}")
}

pub fn names() -> Vec<String> {
    FILES.iter().map(name_of_file).chain(ENDLESS.iter().map(name_of_endless)).collect()
}

/// 40 files of 15 GiB, or one at a place of its own.
fn fill(stage: &Stage, place: &str) -> Result<(), String> {
    if place != "big" {
        return sparse(&stage.place(place));
    }
    fs::create_dir(stage.place("big")).unwrap();
    (0..40).try_for_each(|number| sparse(&stage.place(&format!("big/{number}"))))
}

/// Gives the loop little time.
fn hurry(stage: &Stage) {
    let path = stage.place("loop.yaml");
    let mut declared: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    declared["budget"] = serde_json::json!({"max_total_seconds": SPARE.as_secs()});
    fs::write(path, declared.to_string()).unwrap();
}

/// The run in the middle of reading; `None` where there can be no such files.
fn reading(world: World, moment: Moment, place: &str, stop: Stop) -> Result<Option<(Stage, Engine)>, String> {
    let stage = Stage::new(world);
    if stop == Stop::Budget {
        hurry(&stage);
    }
    // The last state that is entered before a tree is read.
    let (state, filled, mut engine);
    if moment == Before {
        state = "\"DREAM_GOAL\"";
        filled = fill(&stage, place);
        engine = stage.start(&["run", "--headless"]);
    } else {
        state = "\"COLLECT_ARTIFACTS\"";
        engine = stage.start(&["run", "--headless"]);
        stage.until_held(&mut engine)?;
        filled = fill(&stage, place);
        stage.release();
    }
    if let Err(why) = filled {
        println!("skipped: {place}: {why}");
        return Ok(None);
    }
    wait_for("the tree is read", || journal_text(&stage.bench).contains(state) || engine.has_ended())?;
    Ok(Some((stage, engine)))
}

#[test]
fn a_stop_is_obeyed_while_huge_files_are_read() {
    hold_each(ENDLESS, name_of_endless, |&(world, moment, place, stop)| {
        let Some((stage, engine)) = reading(world, moment, place, stop)? else { return Ok(()) };
        let codes: &[i32] = match stop {
            Stop::File => {
                fs::create_dir_all(stage.place("scratch")).unwrap();
                fs::write(stage.place("scratch/STOP"), "").unwrap();
                &[4]
            }
            Stop::Order => {
                let ordered = stage.start(&["stop"]).wait(OBEYED).map_err(|why| format!("nightloop stop: {why}"))?;
                check(ordered.code == 0, || format!("nightloop stop: exit {}: {}", ordered.code, ordered.stderr))?;
                &[4]
            }
            Stop::Interrupt => {
                engine.signal(Signal::INT);
                &[130]
            }
            Stop::Terminate => {
                engine.signal(Signal::TERM);
                &[143]
            }
            // Nobody waits for what is too large to be read: it may even be done by then. Else partial, or blocked.
            Stop::Budget => &[0, 1, 2],
        };
        let ended = engine.wait(OBEYED + SPARE)?;
        stage.unharmed(&ended)?;
        check(codes.contains(&ended.code), || format!("exit {}: {}", ended.code, ended.stderr))
    });
}
