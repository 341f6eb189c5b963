//! One run over a trap: started, held, released, waited for, and looked at from all sides.
//!
//! Invariants: nothing waits for ever; a program that does not end is killed and is the failure.

use std::cell::Cell;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};

use crate::canary::{Canary, carrier, has_secret};
use crate::harness;
use crate::support::{Bench, Ended};
use crate::trap::{Kind, Shape, is_right, plant, script};
use crate::worlds::{ACT, GO, HELD, World};

/// No run here takes a twentieth of it: what takes longer hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Address space of the engine: whoever reads without end finds it here, and not in the machine's memory.
const MEMORY: u64 = 4 << 30;
/// What it may really use; a run here needs a tenth.
const USED: u64 = 1 << 30;
/// What a run may end with, whatever it met. Internal errors (70) and a corrupt journal (65) are not among them.
const CODES: &[i32] = &[0, 1, 2, 3, 4, 64, 73, 74, 75, 130, 143];
/// A contradiction, says `verify`.
const CONTRADICTION: i32 = 1;

/// When the trap is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// It stands when the run starts.
    Before,
    /// While an agent of the first iteration works.
    During,
    /// While the run is stopped; it is resumed then.
    Between,
    /// By the agent itself, from inside its cage: it may well be refused.
    ByAgent,
    /// After a whole run, before the next one in the same workspace.
    Again,
}

/// What has to be true of the place in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// It is what it should be, or the program said which place is wrong, and did not succeed.
    RightOrNamed,
    /// What stands there is nobody's business; the run has to come to some end.
    Ends,
}

pub struct Case {
    pub world: World,
    pub place: &'static str,
    pub shape: Shape,
    pub kind: Kind,
    pub moment: Moment,
    pub demand: Demand,
}

impl Case {
    pub fn name(&self) -> String {
        format!("{:?} {} {:?} {:?}", self.world, self.place, self.kind, self.moment)
    }

    fn run(&self) -> Result<(), String> {
        let stage = Stage::new(self.world);
        let place = stage.place(self.place);
        let trap = || match self.moment {
            Moment::ByAgent => {
                fs::write(stage.place(ACT), script(&place, self.kind, self.shape, &stage.canary)).unwrap();
                Ok(())
            }
            _ => plant(&place, self.kind, self.shape, &stage.canary),
        };
        match stage.play(self.moment, trap)? {
            Played::Impossible(why) => {
                println!("skipped: {}: {why}", self.name());
                Ok(())
            }
            Played::Ended(ended) => {
                stage.judge(&ended, Some(self.place))?;
                self.demanded(&stage, &ended)
            }
        }
    }

    fn demanded(&self, stage: &Stage, ended: &Ended) -> Result<(), String> {
        let right = is_right(&stage.place(self.place), self.shape);
        if self.demand == Demand::Ends || right {
            return Ok(());
        }
        let told = stage.told(ended);
        let named = names(&told, self.place);
        check(ended.code != 0, || format!("it succeeded over a wrong {}", self.place))?;
        check(named, || format!("exit {}: {} is neither put right nor named: {told}", ended.code, self.place))
    }
}

/// Is the place named? Some are usual words: these count as part of a path or at the head of a remark only.
fn names(text: &str, place: &str) -> bool {
    let usual = !place.contains(['/', '.']);
    let forms =
        [format!("/{place}"), format!("{place}/"), format!("{place} is "), format!("{place}:"), format!("`{place}`")];
    if usual { forms.iter().any(|form| text.contains(form)) } else { text.contains(place) }
}

/// Like `assert!`, for a case in a list.
pub fn check(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Plays all cases that `NIGHTLOOP_CASE` wants, some at a time; fails with the list of those that were not held.
#[track_caller]
pub fn hold_all(cases: &[Case]) {
    hold_each(cases, Case::name, Case::run);
}

#[track_caller]
pub fn hold_each<T: Sync>(
    all: &[T],
    name: impl Fn(&T) -> String + Sync,
    run: impl Fn(&T) -> Result<(), String> + Sync,
) {
    let wanted = std::env::var("NIGHTLOOP_CASE").unwrap_or_default();
    let cases: Vec<&T> = all.iter().filter(|case| name(case).contains(&wanted)).collect();
    harness::for_each_case(&cases, |case| {
        let began = Instant::now();
        let held = run(case).map_err(|why| format!("{}: {why}", name(case)));
        // A failure is told at once, too: the list at the end is not endless.
        let word = held.as_ref().err().map_or("held", String::as_str);
        println!("{:>6} ms  {}: {word}", began.elapsed().as_millis(), name(case));
        held
    });
}

pub enum Played {
    Ended(Ended),
    /// This machine or this user cannot set the trap.
    Impossible(String),
}

pub struct Stage {
    pub bench: Bench,
    pub canary: Canary,
    world: World,
    started: Cell<u32>,
}

impl Stage {
    pub fn new(world: World) -> Self {
        let bench = world.bench();
        let canary = Canary::set(bench.dir.path().join("canary"));
        Self { bench, canary, world, started: Cell::new(0) }
    }

    pub fn place(&self, name: &str) -> PathBuf {
        self.bench.workspace.join(name)
    }

    /// Runs with a trap that is set at this moment.
    pub fn play(&self, moment: Moment, trap: impl Fn() -> Result<(), String>) -> Result<Played, String> {
        let run = || self.start(&["run", "--headless"]);
        let mut last = "run";
        match moment {
            Moment::Before => self.release(),
            Moment::During | Moment::ByAgent => {
                let mut engine = run();
                self.until_held(&mut engine)?;
                let planted = trap();
                self.release();
                let ended = engine.wait(PATIENCE)?;
                return Ok(planted.map_or_else(Played::Impossible, |()| Played::Ended(ended)));
            }
            Moment::Between => {
                let mut engine = run();
                self.until_held(&mut engine)?;
                engine.signal(Signal::TERM);
                let stopped = engine.wait(PATIENCE)?;
                check(stopped.code == 143, || format!("the stop before: exit {}\n{}", stopped.code, stopped.stderr))?;
                self.release();
                last = "resume";
            }
            Moment::Again => {
                self.release();
                let first = run().wait(PATIENCE)?;
                check(first.code == 0, || format!("the run before: exit {}\n{}", first.code, first.stderr))?;
                self.world.undo(&self.bench);
            }
        }
        if let Err(why) = trap() {
            return Ok(Played::Impossible(why));
        }
        self.start(&[last, "--headless"]).wait(PATIENCE).map(Played::Ended)
    }

    pub fn start(&self, arguments: &[&str]) -> Engine {
        let number = self.started.replace(self.started.get() + 1);
        let file = |name: &str| self.bench.dir.path().join(format!("{name}.{number}"));
        let (out, err) = (file("out"), file("err"));
        let mut command = self.bench.command(arguments);
        command.stdin(Stdio::null()).stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let child = command.spawn().unwrap();
        let hard = getrlimit(Resource::As).maximum;
        let bound = Rlimit { current: Some(MEMORY), maximum: hard };
        // It may have ended already.
        let _ = prlimit(Some(Pid::from_child(&child)), Resource::As, bound);
        Engine { child, out, err }
    }

    /// Waits until an agent is held, or the program ends before.
    pub fn until_held(&self, engine: &mut Engine) -> Result<(), String> {
        let held = self.place(HELD);
        wait_for("an agent is held", || held.exists() || engine.has_ended())
    }

    /// Whoever is held, or will be, goes on.
    pub fn release(&self) {
        fs::write(self.place(GO), "").unwrap();
    }

    /// What the program said about its end: errors, the last words, and what the record says.
    pub fn told(&self, ended: &Ended) -> String {
        let last = ended.stdout.rsplit("\n\n").next().unwrap_or_default();
        let journal = harness::journal_text(&self.bench);
        let events = journal.lines().filter(|line| {
            ["run.halted", "decision.asked", "git.finished"]
                .iter()
                .any(|kind| line.contains(&format!("\"type\":\"{kind}\"")))
        });
        let events: Vec<&str> = events.collect();
        format!("{}\n{last}\n{}", ended.stderr, events.join("\n"))
    }

    /// What must be true after every run, whatever the trap was. `place` is where it stood.
    pub fn judge(&self, ended: &Ended, place: Option<&str>) -> Result<(), String> {
        self.unharmed(ended)?;
        check(CODES.contains(&ended.code), || format!("exit {}: {}", ended.code, tail(&ended.stderr)))?;
        if harness::run_dirs(&self.bench).is_empty() {
            return Ok(());
        }
        let verified = self.start(&["verify"]).wait(PATIENCE).map_err(|why| format!("verify: {why}"))?;
        self.unharmed(&verified).map_err(|why| format!("verify: {why}"))?;
        // A trap that still stands may well contradict the record; but then it is named.
        let words = format!("{}{}", verified.stdout, verified.stderr);
        let named = ended.code != 0 && place.is_some_and(|place| words.contains(place));
        check(verified.code != CONTRADICTION || named, || format!("verify contradicts: {}", tail(&words)))?;
        check([0, 1, 2].contains(&verified.code), || format!("verify: exit {}: {}", verified.code, tail(&words)))
    }

    /// Nothing outside was touched, nothing was carried away, nothing is left running.
    pub fn unharmed(&self, ended: &Ended) -> Result<(), String> {
        if let Some(harm) = self.canary.harm() {
            return Err(format!("the canary was harmed: {harm}"));
        }
        for (name, text) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
            check(!has_secret(text.as_bytes()), || format!("the secret is on {name}"))?;
        }
        for root in [&self.bench.state, &self.bench.workspace] {
            if let Some(path) = carrier(root) {
                return Err(format!(
                    "the secret is in {}",
                    path.strip_prefix(self.bench.dir.path()).unwrap().display()
                ));
            }
        }
        // The reaper looks around once more after the engine's end.
        wait_for("nothing is left running", || self.left_behind().is_empty())
            .map_err(|_| format!("left running: {:?}", self.left_behind()))
    }

    /// Processes that work in our folders, or carry their names.
    fn left_behind(&self) -> Vec<String> {
        let ours = self.bench.dir.path().to_str().unwrap();
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
        let processes = processes.filter(|path| {
            let number = path.file_name().is_some_and(|name| name.to_string_lossy().parse::<u32>().is_ok());
            let cwd = fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(ours));
            let text = |name: &str| fs::read(path.join(name)).unwrap_or_default();
            let carries = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).contains(ours);
            number && (cwd || carries(text("environ")))
        });
        let line =
            |path: PathBuf| String::from_utf8_lossy(&fs::read(path.join("cmdline")).unwrap_or_default()).into_owned();
        processes.map(line).collect()
    }
}

/// A nightloop that goes on; whoever forgets it ends it.
pub struct Engine {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Engine {
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The most that it had at once so far, in bytes.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or_default() * 1024
    }

    /// Waits for the end; the error is that there is none.
    pub fn wait(mut self, patience: Duration) -> Result<Ended, String> {
        let until = Instant::now() + patience;
        while !self.has_ended() {
            if Instant::now() > until {
                let words = tail(&fs::read_to_string(&self.out).unwrap_or_default());
                return Err(format!("it does not end ({} s): {words}", patience.as_secs()));
            }
            let used = self.memory();
            check(used <= USED, || format!("it uses {} MiB of memory", used >> 20))?;
            std::thread::sleep(Duration::from_millis(5));
        }
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let text = |path: &PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        Ok(Ended { code, stdout: text(&self.out), stderr: text(&self.err) })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) -> Result<(), String> {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        if Instant::now() > until {
            return Err(format!("waited in vain until {what}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The last lines of a text.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}
