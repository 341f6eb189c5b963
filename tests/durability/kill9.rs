//! kill -9 at random moments, several times in one run.

use nightloop::tool::process::{Marker, survivors};

use crate::harness::{
    Running, difference, journal_lines, outcome, run_id, single_iteration, small, tool_is_running, wait_until,
    with_script,
};

/// Kills of one run before it is left to finish.
const KILLS_PER_RUN: u64 = 5;

/// xorshift64*: a test needs a stream that a seed reproduces, not good randomness.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

#[test]
fn random_kills_lose_nothing() {
    let (kills, seed) = (number("NIGHTLOOP_KILLS", 15), number("NIGHTLOOP_SEED", 0x5eed));
    println!("NIGHTLOOP_KILLS={kills} NIGHTLOOP_SEED={seed}");
    let undisturbed = small();
    undisturbed.nightloop(&["run"]).expect(0);
    let expected = outcome(&undisturbed);
    let mut random = Random(seed.max(1));
    let mut done = 0;
    while done < kills {
        let bench = small();
        let mut arguments: &[&str] = &["run"];
        let (mut kept, mut killed) = (Vec::new(), 0);
        while killed < KILLS_PER_RUN {
            // At least one event besides `run.resumed`, or the engine rightly refuses to go on.
            let target = journal_lines(&bench) + 2 + usize::try_from(random.below(60)).unwrap();
            let mut engine = Running::start(bench.command(arguments));
            wait_until("the journal has grown or the run has ended", || {
                journal_lines(&bench) >= target || engine.has_ended()
            });
            if engine.has_ended() {
                break;
            }
            let acknowledged = whole_lines(&bench);
            engine.kill9();
            killed += 1;
            let run = run_id(&bench);
            wait_until("the reaper has swept the run", || survivors(Marker::Run(&run)).is_empty());
            let after = whole_lines(&bench);
            assert!(after.starts_with(&acknowledged), "seed {seed}: a kill took back events that were there");
            assert!(after.starts_with(&kept), "seed {seed}: a resume rewrote the journal");
            kept = after;
            let verified = bench.nightloop(&["verify"]);
            // The kill may have come after the seal: then there is nothing incomplete.
            assert!([0, 2].contains(&verified.code), "seed {seed}, kill {done}: {}", verified.stdout);
            arguments = &["resume"];
        }
        done += killed.max(1);
        bench.nightloop(&["resume"]).expect(0);
        bench.nightloop(&["verify"]).expect(0);
        assert_eq!(difference(&expected, &outcome(&bench)), None, "seed {seed}, {killed} kills");
        assert!(whole_lines(&bench).starts_with(&kept));
    }
}

/// The journal up to its last newline.
fn whole_lines(bench: &crate::support::Bench) -> Vec<u8> {
    let mut bytes = std::fs::read(bench.run_dir().join("journal/00000001.jsonl")).unwrap();
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    bytes.truncate(end);
    bytes
}

#[test]
fn the_reaper_ends_what_a_killed_engine_left_behind() {
    for command in ["sleep 300", "setsid sleep 300 & sleep 300", "trap '' TERM INT HUP; sleep 300; sleep 300"] {
        let bench = with_script(&single_iteration(command));
        let mut engine = Running::start(bench.command(&["run"]));
        wait_until("the tool runs", || tool_is_running(&bench, "bash"));
        let run = run_id(&bench);
        wait_until("its process carries the run's marker", || !survivors(Marker::Run(&run)).is_empty());
        engine.kill9();
        wait_until("the reaper has swept the sleepers", || survivors(Marker::Run(&run)).is_empty());
        bench.nightloop(&["resume"]).expect(0);
        let unknown = bench
            .events()
            .iter()
            .filter(|(kind, data)| kind == "tool.finished" && data["outcome"] == "unknown")
            .count();
        assert_eq!(unknown, 1, "{command}: the agent is told once that nobody knows");
        bench.nightloop(&["verify"]).expect(0);
        assert!(survivors(Marker::Run(&run)).is_empty());
    }
}
