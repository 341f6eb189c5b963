//! A small process that outlives the engine, to clean up after a `kill -9`.
//!
//! The engine holds the write end of the reaper's stdin and never writes. However the engine
//! ends, the kernel closes the pipe; the reaper reads end-of-file, sweeps the engine's processes and
//! exits. It decides nothing while the engine lives.
//!
//! It sweeps what *its* engine started: the run may have gone on under another engine by then.
//!
//! Invariants: the reaper does not carry the engine's marker (it would kill itself), has its own
//! session (a terminal's ctrl-c does not reach it), and runs for a bounded time once it begins.

use std::io::{self, Read};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use super::environment;
use super::owned;
use super::spawn::{self, OnParentDeath};
use super::sweep::{Marker, survivors, sweep};

/// The hidden subcommand that runs [`reap_main`].
pub const SUBCOMMAND: &str = "__reap";

/// How long the reaper keeps sweeping.
const BOUND: Duration = Duration::from_secs(30);

/// The running reaper. Dropping it makes it sweep and end.
#[derive(Debug)]
pub struct Reaper {
    child: Child,
    stdin: Option<ChildStdin>,
}

/// Starts the reaper of this engine.
pub fn start() -> io::Result<Reaper> {
    start_with(&std::env::current_exe()?, &[SUBCOMMAND, environment::engine_id()])
}

fn start_with(program: &std::path::Path, arguments: &[&str]) -> io::Result<Reaper> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // The allow-list holds no marker, not even that of an engine around this one.
    environment::only_allowed(&mut command);
    // A folder in use cannot be unmounted or removed; the reaper needs none.
    command.current_dir("/");
    let mut child = spawn::spawn(command, OnParentDeath::Live, None)?;
    let stdin = child.stdin.take();
    Ok(Reaper { child, stdin })
}

impl Reaper {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.stdin = None;
        let deadline = Instant::now() + BOUND;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        owned::disown(self.child.id());
    }
}

/// Waits for the engine's end, then sweeps until nothing is left. Fails if something is.
pub fn reap_main(marker: &str) -> ExitCode {
    let mut stdin = io::stdin().lock();
    let mut ignored = [0; 64];
    loop {
        match stdin.read(&mut ignored) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let deadline = Instant::now() + BOUND;
    loop {
        sweep(Marker::Engine(marker));
        if survivors(Marker::Engine(marker)).is_empty() {
            return ExitCode::SUCCESS;
        }
        if Instant::now() >= deadline {
            return ExitCode::FAILURE;
        }
    }
}

#[cfg(test)]
mod tests {
    //! The test binary plays the engine and the reaper: started again with the exact name of a
    //! helper test and the marker as one more filter, which the helper reads from its arguments.

    use super::*;

    const REAPER: &str = "tool::reaper::tests::helper_reaper";
    const ENGINE: &str = "tool::reaper::tests::helper_engine";

    fn helper_marker(name: &str) -> Option<String> {
        let mut arguments = std::env::args();
        let mark = arguments.find(|argument| argument.starts_with("reap-mark-"));
        mark.filter(|_| std::env::args().any(|argument| argument == name))
    }

    fn start_reaper(mark: &str) -> Reaper {
        start_with(&std::env::current_exe().unwrap(), &["--exact", "--nocapture", REAPER, mark]).unwrap()
    }

    fn leave_escapees(mark: &str) {
        for script in ["setsid sleep 600 & exit", "(setsid setsid sh -c 'sleep 600; sleep 600' &)"] {
            let started = Command::new("/bin/sh").args(["-c", script]).env("NIGHTLOOP_ENGINE", mark).status();
            assert!(started.unwrap().success());
        }
        wait_for("the escapees", || survivors(Marker::Engine(mark)).len() >= 3);
    }

    fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !condition() {
            assert!(Instant::now() < deadline, "waited in vain for {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn helper_reaper() {
        if let Some(mark) = helper_marker(REAPER) {
            assert_eq!(reap_main(&mark), ExitCode::SUCCESS);
        }
    }

    /// An engine that starts its reaper, leaves processes behind, and waits to be killed.
    #[test]
    fn helper_engine() {
        if let Some(mark) = helper_marker(ENGINE) {
            let _reaper = start_reaper(&mark);
            leave_escapees(&mark);
            let _ = io::stdin().read(&mut [0]);
        }
    }

    fn new_mark() -> String {
        format!("reap-mark-{}", environment::new_call_id())
    }

    #[test]
    fn a_killed_engine_leaves_nothing() {
        let mark = new_mark();
        let mut engine = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", ENGINE, &mark])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("the engine's processes", || survivors(Marker::Engine(&mark)).len() >= 3);
        engine.kill().unwrap();
        engine.wait().unwrap();
        wait_for("the reaper's work", || survivors(Marker::Engine(&mark)).is_empty());
    }

    #[test]
    fn the_run_under_another_engine_is_left_alone() {
        let (mark, other) = (new_mark(), new_mark());
        let mut command = Command::new("/bin/sleep");
        command.arg("600").env("NIGHTLOOP_RUN", &mark).env("NIGHTLOOP_ENGINE", &other);
        let mut next = command.spawn().unwrap();
        drop(start_reaper(&mark));
        assert!(next.try_wait().unwrap().is_none(), "the next engine's process is gone");
        next.kill().unwrap();
        next.wait().unwrap();
    }

    #[test]
    fn dropping_the_reaper_ends_it_and_the_run() {
        let mark = new_mark();
        let reaper = start_reaper(&mark);
        leave_escapees(&mark);
        assert!(!survivors(Marker::Engine(&mark)).contains(&reaper.pid()), "the reaper carries the marker");
        let session = format!("/proc/{}/stat", reaper.pid());
        let stat = std::fs::read_to_string(&session).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        assert_eq!(fields[3], reaper.pid().to_string(), "the reaper leads no session");
        drop(reaper);
        assert_eq!(survivors(Marker::Engine(&mark)), Vec::<u32>::new());
        assert!(!std::path::Path::new(&session).exists());
    }
}
