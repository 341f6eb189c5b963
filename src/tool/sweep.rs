//! Finds and kills processes that outlived what started them.
//!
//! A process group kill misses a child that called `setsid`, and a parent's death hides a double
//! fork. The environment is inherited through both, so every command carries three markers: one
//! for the run, one for the engine, one for the call. Here `/proc` is read for them.
//!
//! A confined process that dropped its environment *and* left its session *and* lost its parent is
//! known by two things it cannot shed: the filter it wears, and that orphans come to us. It is ended
//! when no other command runs, because then it belongs to nobody else. Not covered: such a process of
//! an engine that was itself killed, and such an unconfined one. Only a pid namespace catches those.
//!
//! Invariants: never signals ourselves; a signal goes to the process that was examined, not to a
//! later one with the same pid; never reaps a child that has a waiter (`owned`). All
//! waits are bounded. On other systems than Linux these functions do nothing.

use super::environment::{ENGINE_VAR, RUN_VAR};

/// Whose processes are meant.
#[derive(Debug, Clone, Copy)]
pub enum Marker<'a> {
    Run(&'a str),
    Engine(&'a str),
}

impl Marker<'_> {
    /// The line of an environment that gives a process away; `None` where nothing is named.
    fn needle(self) -> Option<String> {
        let (variable, value) = match self {
            Self::Run(run) => (RUN_VAR, run),
            Self::Engine(engine) => (ENGINE_VAR, engine),
        };
        (!value.is_empty()).then(|| format!("{variable}={value}"))
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::{Rush, count, descendants, end_call, running, start_time};
#[cfg(target_os = "linux")]
pub use linux::{become_subreaper, survivors, sweep};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::collections::BTreeSet;

    use super::Marker;

    pub fn become_subreaper() {}
    pub fn sweep(_marker: Marker<'_>) -> usize {
        0
    }
    pub fn survivors(_marker: Marker<'_>) -> Vec<u32> {
        Vec::new()
    }
    pub fn end_call(_call: &str, _leader: u32, _since: u64, _seen: &BTreeSet<(u32, u64)>) -> usize {
        0
    }
    pub fn descendants(_leader: u32) -> BTreeSet<(u32, u64)> {
        BTreeSet::new()
    }
    pub fn start_time(_pid: u32) -> u64 {
        0
    }
    pub struct Rush;
    impl Rush {
        pub fn begin() -> Self {
            Self
        }
    }
    pub fn running() -> u64 {
        0
    }
    pub fn count(_leader: u32, _since: u64) -> usize {
        0
    }
}
#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{Rush, count, descendants, end_call, running, start_time};
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{become_subreaper, survivors, sweep};

/// The commands that run now, in this process.
static PRESENT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// A command runs as long as this lives.
pub(super) struct Presence(());

impl Presence {
    pub(super) fn new() -> Self {
        PRESENT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        PRESENT.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

    use super::{Marker, PRESENT};
    use crate::tool::environment::CALL_VAR;
    use crate::tool::owned;

    /// A killed process may need time to leave the kernel; one in an uninterruptible wait never
    /// does, and we do not wait for it longer than this.
    const BOUND: Duration = Duration::from_secs(5);

    static IS_SUBREAPER: AtomicBool = AtomicBool::new(false);

    /// Makes orphans of our children our own children, so that they cannot hide behind init.
    pub fn become_subreaper() {
        // Failing only means that orphans go to init; the sweep still finds them.
        let done = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        IS_SUBREAPER.store(done.is_ok(), Ordering::Relaxed);
    }

    /// Is it certain, without a look at every process, that nothing of a call is left? Its leader must be dead.
    ///
    /// Whoever outlives a dead parent becomes a child of the subreaper. So where we are that, and have no child
    /// that we did not start ourselves, nobody escaped.
    fn nobody_escaped(leader: u32) -> bool {
        if !IS_SUBREAPER.load(Ordering::Relaxed) {
            return false;
        }
        let Ok(tasks) = fs::read_dir("/proc/self/task") else { return false };
        let owned = owned::pids();
        for task in tasks.flatten() {
            // Not every kernel has this file; without it we look at everything.
            let Ok(children) = fs::read_to_string(task.path().join("children")) else { return false };
            let pids = children.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok());
            for pid in pids.filter(|pid| *pid != leader && !owned.contains(pid)) {
                if !examine(pid).is_none_or(|process| process.dead) {
                    return false;
                }
                // An orphan that ended by itself; nobody else will ever ask for its status.
                let _ = rustix::process::waitpid(to_pid(pid), WaitOptions::NOHANG);
            }
        }
        true
    }

    /// Kills every process that carries the marker, except ourselves; returns how many.
    pub fn sweep(marker: Marker<'_>) -> usize {
        marker.needle().map_or(0, |needle| hunt(|process| carries(process.pid, &needle)))
    }

    /// The live processes that carry the marker, except ourselves.
    pub fn survivors(marker: Marker<'_>) -> Vec<u32> {
        let Some(needle) = marker.needle() else { return Vec::new() };
        let ourselves = std::process::id();
        let table = table();
        let alive = table.values().filter(|p| p.pid != ourselves && !p.dead);
        alive.filter(|p| carries(p.pid, &needle)).map(|p| p.pid).collect()
    }

    /// Kills what is left of one call: its session, whoever carries its marker, and the
    /// descendants that were seen while it ran. The leader itself must be dead and not yet
    /// waited for, so that its pid still names this session and no other.
    pub fn end_call(call: &str, leader: u32, since: u64, seen: &BTreeSet<(u32, u64)>) -> usize {
        if seen.is_empty() && nobody_escaped(leader) {
            return 0;
        }
        let needle = format!("{CALL_VAR}={call}");
        hunt(|process| {
            // Older than the call: cannot come from it, and its environment need not be read.
            process.started >= since
                && process.pid != leader
                && (process.session == leader
                    || seen.contains(&(process.pid, process.started))
                    || is_nobodys(process)
                    || carries(process.pid, &needle))
        })
    }

    /// An orphan that came to us, wears a filter that we do not wear, and can belong to no other command.
    fn is_nobodys(process: &Process) -> bool {
        IS_SUBREAPER.load(Ordering::Relaxed)
            && PRESENT.load(Ordering::SeqCst) <= 1
            && process.parent == std::process::id()
            && !owned::pids().contains(&process.pid)
            && filters(process.pid) > filters(std::process::id())
    }

    /// How many filters on system calls a process wears.
    fn filters(pid: u32) -> u32 {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// More of the processor for us, against thousands of processes that all want it. Only the superuser may, and
    /// only for the superuser is it needed: everybody else's crowd stops growing at the kernel's limit.
    pub struct Rush(());

    /// Sessions share the processor evenly; each has a niceness of its own here.
    const OF_SESSION: &str = "/proc/self/autogroup";

    impl Rush {
        pub fn begin() -> Self {
            let _ = fs::write(OF_SESSION, "-20");
            // Of this thread, which ends with the command.
            let _ = rustix::process::setpriority_process(None, -20);
            Self(())
        }
    }

    impl Drop for Rush {
        fn drop(&mut self) {
            let _ = fs::write(OF_SESSION, "0");
        }
    }

    /// The number of processes and threads on this machine; cheap, since the kernel keeps it.
    pub fn running() -> u64 {
        let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let field = text.split_ascii_whitespace().nth(3).and_then(|field| field.split_once('/'));
        field.and_then(|(_, all)| all.parse().ok()).unwrap_or(0)
    }

    /// The processes of a call, as far as they can be told without reading environments.
    pub fn count(leader: u32, since: u64) -> usize {
        let table = table();
        let ourselves = std::process::id();
        let alone = PRESENT.load(Ordering::SeqCst) <= 1;
        let of_call = |process: &&Process| {
            // With other commands about, an orphan may be theirs; a dead one may be of a command that is over.
            let orphan = alone && !process.dead && process.parent == ourselves && process.session != leader;
            process.started >= since && (process.session == leader || descends(process, leader, &table) || orphan)
        };
        table.values().filter(of_call).count()
    }

    /// The live descendants of a process, each as pid and start time. To be taken while it
    /// lives: its death cuts the tie.
    pub fn descendants(leader: u32) -> BTreeSet<(u32, u64)> {
        let table = table();
        let found = table.values().filter(|process| !process.dead && descends(process, leader, &table));
        found.map(|process| (process.pid, process.started)).collect()
    }

    /// When a process started, in kernel ticks; 0 if it is gone.
    pub fn start_time(pid: u32) -> u64 {
        examine(pid).map_or(0, |process| process.started)
    }

    struct Process {
        pid: u32,
        parent: u32,
        session: u32,
        started: u64,
        /// A zombie: it runs no more, only its exit status is left.
        dead: bool,
    }

    /// Kills what `is_prey` names until two looks in a row find nothing, or time is up. Two,
    /// because a process in the middle of `exec` has no environment for a moment.
    fn hunt(is_prey: impl Fn(&Process) -> bool) -> usize {
        let deadline = Instant::now() + BOUND;
        let ourselves = std::process::id();
        let mut killed: BTreeSet<(u32, u64)> = BTreeSet::new();
        let mut quiet = 0;
        while quiet < 2 && Instant::now() < deadline {
            let table = table();
            let mut seen = false;
            for process in table.values() {
                if process.pid == ourselves || process.dead || !is_prey(process) {
                    continue;
                }
                seen = true;
                if kill(process) {
                    killed.insert((process.pid, process.started));
                }
            }
            reap(&killed, &table, ourselves);
            if seen {
                quiet = 0;
                std::thread::sleep(Duration::from_millis(1));
            } else {
                quiet += 1;
            }
        }
        reap(&killed, &table(), ourselves);
        killed.len()
    }

    /// Sends KILL to exactly the process that was examined.
    fn kill(process: &Process) -> bool {
        let Some(pid) = to_pid(process.pid) else {
            return false;
        };
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            // The handle pins whoever has the pid now; the start time says whether it is still
            // the one we looked at.
            Ok(handle) => {
                start_time(process.pid) == process.started
                    && rustix::process::pidfd_send_signal(handle, Signal::KILL).is_ok()
            }
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
                start_time(process.pid) == process.started && rustix::process::kill_process(pid, Signal::KILL).is_ok()
            }
            Err(_) => false,
        }
    }

    /// Collects the exit status of killed orphans that became our children.
    fn reap(killed: &BTreeSet<(u32, u64)>, table: &BTreeMap<u32, Process>, ourselves: u32) {
        let owned = owned::pids();
        for (pid, started) in killed {
            let ours = table.get(pid).is_some_and(|p| p.started == *started && p.parent == ourselves);
            if ours && !owned.contains(pid) {
                let _ = rustix::process::waitpid(to_pid(*pid), WaitOptions::NOHANG);
            }
        }
    }

    fn descends(process: &Process, ancestor: u32, table: &BTreeMap<u32, Process>) -> bool {
        let mut parent = process.parent;
        // The table is a snapshot of a moving thing; the bound keeps a torn one from looping.
        for _ in 0..table.len() {
            if parent == ancestor {
                return true;
            }
            match table.get(&parent) {
                Some(next) if next.parent != 0 => parent = next.parent,
                _ => return false,
            }
        }
        false
    }

    /// Whether the environment a process was started with holds this `NAME=value`.
    fn carries(pid: u32, needle: &str) -> bool {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|var| var == needle.as_bytes()))
    }

    fn table() -> BTreeMap<u32, Process> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return BTreeMap::new();
        };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| Some((pid, examine(pid)?))).collect()
    }

    fn examine(pid: u32) -> Option<Process> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the program's name, which may hold spaces and parentheses.
        let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(&stat[after_name..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Process {
            pid,
            dead: matches!(*fields.first()?, "Z" | "X" | "x"),
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    fn to_pid(pid: u32) -> Option<Pid> {
        Pid::from_raw(i32::try_from(pid).ok()?)
    }
}
