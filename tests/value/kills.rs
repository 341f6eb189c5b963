//! Every script of recovery, killed at random events and resumed: it ends as it would have, and verifies.
//!
//! Which events is random and the same each time. `NIGHTLOOP_KILLS=n` says how many in each script, 20 where
//! `NIGHTLOOP_THOROUGH` is set; `NIGHTLOOP_SCRIPT=name` looks at one script only.

use serde_json::Value;

use crate::case::Case;
use crate::dying::{Answers, Undisturbed, die_and_go_on};
use crate::harness::{check, for_each_case, thorough};
use crate::support::Bench;
use crate::{large, limits, recovery, scenarios, services};

struct Script {
    name: &'static str,
    case: fn() -> Case,
    answers: Answers,
    /// It takes long, or is much like another one: killed only where thoroughness is asked for.
    is_extra: bool,
}

const fn script(name: &'static str, case: fn() -> Case) -> Script {
    Script { name, case, answers: nobody, is_extra: false }
}

const SCRIPTS: &[Script] = &[
    script("chain", recovery::chain),
    script("restructured", recovery::restructured),
    script("descoped", recovery::descoped),
    Script { is_extra: true, ..script("replaced", recovery::replaced) },
    script("gate_shut_twice", recovery::shut_twice),
    script("flaky_at_the_gate", || recovery::flaky("2")),
    Script { is_extra: true, ..script("too_flaky_at_the_gate", || recovery::flaky("2|4|5")) },
    script("too_flaky_in_a_replay", || recovery::flaky("3|5|6")),
    script("wrong_check", recovery::wrongly_checked),
    script("wrong_check_of_a_task", recovery::task_wrongly_checked),
    Script { answers: with_another_check, ..script("wrong_pause", recovery::paused) },
    Script { answers: proceed, ..script("epics", scenarios::epics) },
    script("full_context", limits::full_context),
    Script { is_extra: true, ..script("task_of_150_calls", limits::large_task) },
    Script { is_extra: true, ..script("discovery_of_200_calls", limits::long_discovery) },
    Script { is_extra: true, ..script("installation", large::installation) },
    script("service_down_twice", services::down_twice),
];

fn nobody(_: &Bench, asked: &Value, _: usize) -> Vec<&'static str> {
    panic!("nobody is to be asked: {asked}")
}

fn proceed(_: &Bench, _: &Value, _: usize) -> Vec<&'static str> {
    vec!["proceed"]
}

/// The person did it, and the command that is to prove it looks elsewhere: another one is given.
fn with_another_check(bench: &Bench, _: &Value, answered: usize) -> Vec<&'static str> {
    std::fs::write(bench.workspace.join("key.txt"), "k\n").unwrap();
    if answered == 0 { vec!["done"] } else { vec!["check", "test -s key.txt"] }
}

/// A splitmix generator: each script has its own row of numbers, the same each time.
struct Random(u64);

impl Random {
    fn of(name: &str) -> Self {
        Self(name.bytes().fold(14, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte))))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(limit).unwrap()).unwrap()
    }
}

/// An event, and whether it is there, torn or missing when the engine dies.
fn points(script: &Script, expected: &Undisturbed, kills: usize) -> Vec<(&'static str, usize)> {
    let mut random = Random::of(script.name);
    // The last event is the end of the run: with that there is nothing to resume.
    let moments = ["after_sync", "before_write", "mid_write"];
    (0..kills).map(|_| (moments[random.below(3)], 1 + random.below(expected.kinds.len() - 2))).collect()
}

fn killed(script: &Script, expected: &Undisturbed, moment: &str, seq: usize) -> Result<(), String> {
    let (bench, point) = ((script.case)().written(), format!("{moment}:{seq}"));
    let told = format!("{} {point} ({})", script.name, expected.kinds[seq]);
    die_and_go_on(&bench, ("NIGHTLOOP_CRASH", &point), script.answers).map_err(|why| format!("{told}: {why}"))?;
    if expected.leaves_a_command(seq, moment == "after_sync") {
        return expected.compare_ends(&bench, &told);
    }
    expected.compare_work(&bench, &told)
}

#[test]
fn every_script_of_recovery_ends_the_same_after_a_kill() {
    let kills = std::env::var("NIGHTLOOP_KILLS").ok().map(|text| text.parse().unwrap());
    let all = thorough() || kills.is_some();
    let kills = kills.unwrap_or(if thorough() { 20 } else { 1 });
    let only = std::env::var("NIGHTLOOP_SCRIPT").ok();
    let wanted = |script: &&Script| {
        let has_what_it_needs = script.name != "service_down_twice" || services::has_python();
        has_what_it_needs && (all || !script.is_extra) && only.as_ref().is_none_or(|name| name == script.name)
    };
    let scripts: Vec<&Script> = SCRIPTS.iter().filter(wanted).collect();
    assert!(!scripts.is_empty(), "{only:?} is none of these scripts");
    for_each_case(&scripts, |script| {
        let expected = Undisturbed::of(&(script.case)().written(), script.answers);
        let failures: Vec<String> = points(script, &expected, kills)
            .into_iter()
            .filter_map(|(moment, seq)| killed(script, &expected, moment, seq).err())
            .collect();
        check(failures.is_empty(), || format!("{} of {kills}: {}", failures.len(), failures.join("\n")))
    });
}
