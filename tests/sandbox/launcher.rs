//! Nothing lives on: after a call, while others run, after a timeout, after `kill -9` of the engine.
//!
//! Where this machine gives no process space of its own, the tests of it are skipped aloud.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nightloop::tool::process::{self, End};
use nightloop::tool::sandbox::{Layer, level};

use super::stage::{self, Case, Stage};

/// Ways to get away from session, parent, environment and open files.
const ESCAPES: &[&str] = &[
    "env -i sleep 600@TOKEN@ &",
    "env -i setsid sleep 600@TOKEN@ &",
    "(env -i setsid sh -c 'env -i setsid sleep 600@TOKEN@ &' &)",
    "(env -i setsid sh -c 'cd /; exec 0<&- 1>&- 2>&-; exec 3>&- 4>&-; trap \"\" HUP TERM INT; sleep 600@TOKEN@ & wait' &)",
    "env -i perl -e 'fork and exit; use POSIX; setsid; fork and exit; POSIX::close($_) for 0..9; chdir \"/\"; sleep 1 while 1; # @TOKEN@' &",
];

fn in_force() -> bool {
    stage::ready();
    let has = level().pids;
    if !has {
        eprintln!("SKIPPED: this machine gives us no process space of its own");
    }
    has
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What is left of each escape, with another command of ours still running.
fn left_while_others_run(without: Option<Layer>) -> Vec<usize> {
    let _alone = stage::alone();
    process::become_subreaper();
    let other = Stage::within();
    let long = Case::new("long", "touch there; sleep 300").timeout(300_000);
    let stop = tokio_util::sync::CancellationToken::new();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| other.perform_until(&long, without, &stop));
        wait_for("the long command", || other.path("ws/there").exists());
        let left = ESCAPES.iter().map(|script| {
            let stage = Stage::within();
            let outcome = stage.perform(&Case::new("escape", format!("{script}\nsleep 0.3; exit 3")), without);
            assert_eq!(outcome.end, End::Exited(3), "{script}");
            stage.left_behind().len()
        });
        let left = left.collect();
        stop.cancel();
        assert_eq!(running.join().unwrap().end, End::Cancelled);
        assert_eq!(other.left_behind(), Vec::<u32>::new());
        left
    })
}

#[test]
fn nothing_is_left_although_others_run() {
    if in_force() {
        assert_eq!(left_while_others_run(None), vec![0; ESCAPES.len()]);
    }
}

/// Without a launcher nobody knows whose they are as long as others run: the test above can fail.
#[test]
fn without_a_launcher_something_is_left() {
    stage::ready();
    let left = left_while_others_run(Some(Layer::Launcher));
    assert!(left.iter().any(|count| *count > 0), "{left:?}");
}

#[test]
fn nothing_is_left_after_a_timeout() {
    if !in_force() {
        return;
    }
    for script in ESCAPES {
        let stage = Stage::set();
        let case = Case::new("timeout", format!("{script}\ntrap '' TERM; while :; do sleep 1; done")).timeout(500);
        assert_eq!(stage.perform(&case, None).end, End::TimedOut, "{script}");
        assert_eq!(stage.left_behind(), Vec::<u32>::new(), "{script}");
    }
}

/// One launcher serves many calls, and each finds nothing of those before it.
#[test]
fn calls_do_not_meet() {
    if !in_force() {
        return;
    }
    let stage = Stage::set();
    let confinement = stage.confinement(&Case::new("x", ""), None);
    let first = "set -- /proc/[0-9]*; echo $#; sleep 600@TOKEN@ & readlink /proc/self/ns/pid";
    let outcomes: Vec<String> = (0..5)
        .map(|_| {
            let outcome = stage.perform_in(&Case::new("x", first), confinement.clone(), &Default::default());
            assert_eq!(outcome.end, End::Exited(0));
            String::from_utf8_lossy(&outcome.stdout.bytes).into_owned()
        })
        .collect();
    assert!(outcomes.iter().all(|one| *one == outcomes[0]), "{outcomes:?}");
    assert_eq!(stage.left_behind(), Vec::<u32>::new());
}

/// A launcher that somebody killed is replaced, and the call it had is over.
#[test]
fn a_killed_launcher_takes_its_call_with_it() {
    if !in_force() {
        return;
    }
    let stage = Stage::set();
    let confinement = stage.confinement(&Case::new("x", ""), None);
    let space = || {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let token = format!("600{}", stage.token);
        let found = pids.find(|pid| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.split(|b| *b == 0).any(|w| w == token.as_bytes()))
        })?;
        let status = fs::read_to_string(format!("/proc/{found}/status")).ok()?;
        let shell: u32 = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
        let status = fs::read_to_string(format!("/proc/{shell}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse::<i32>().ok()
    };
    let case = Case::new("x", "sleep 600@TOKEN@; true");
    let worn = confinement.clone();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| stage.perform_in(&case, worn, &Default::default()));
        let mut first = None;
        wait_for("the command", || {
            first = space();
            first.is_some()
        });
        let pid = rustix::process::Pid::from_raw(first.unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        assert_eq!(running.join().unwrap().end, End::Signaled(9));
    });
    assert_eq!(stage.left_behind(), Vec::<u32>::new());
    let again = stage.perform_in(&Case::new("x", "true"), confinement, &Default::default());
    assert_eq!(again.end, End::Exited(0));
}

/// A file that the engine replaces is sealed again before the next call.
#[test]
fn what_is_replaced_is_sealed_again() {
    if !in_force() {
        return;
    }
    let stage = Stage::set();
    let confinement = stage.confinement_sealing(&Case::new("x", ""), "ws/mine");
    let write =
        || stage.perform_in(&Case::new("x", "echo theirs > mine"), confinement.clone(), &Default::default()).end;
    assert_ne!(write(), End::Exited(0));
    for round in 0..3 {
        fs::write(stage.path("ws/new"), format!("{round}\n")).unwrap();
        fs::rename(stage.path("ws/new"), stage.path("ws/mine")).unwrap();
        assert_ne!(write(), End::Exited(0), "round {round}");
        assert_eq!(fs::read_to_string(stage.path("ws/mine")).unwrap(), format!("{round}\n"));
    }
}

/// A file that whoever started the engine left open is not handed on.
#[test]
fn open_files_of_ours_stay_ours() {
    use rustix::fs::{Mode, OFlags};
    use std::os::fd::AsRawFd;
    stage::ready();
    for without in [None, Some(Layer::Launcher)] {
        let stage = Stage::set();
        let victim = rustix::fs::open(stage.path("outside/victim"), OFlags::RDWR, Mode::empty()).unwrap();
        let script = format!("ls -l /proc/self/fd | grep victim; echo x >&{0} && echo through", victim.as_raw_fd());
        let outcome = stage.perform(&Case::new("open file", script), without);
        assert_eq!(String::from_utf8_lossy(&outcome.stdout.bytes), "", "{without:?}");
        assert_eq!(fs::read_to_string(stage.path("outside/victim")).unwrap(), "victim\n");
    }
}

/// An engine of the real program whose check leaves a process and waits.
struct Engine {
    child: Child,
    folder: tempfile::TempDir,
    token: String,
}

impl Engine {
    /// `None`, said aloud, where another user cannot be had.
    fn start(check: &str, as_nobody: bool) -> Option<Self> {
        const NOBODY: u32 = 65_534;
        let folder = tempfile::Builder::new().prefix("engine-").tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (work, state) = (root.join("work"), root.join("state"));
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(&state).unwrap();
        let token = format!("9{}", std::process::id()) + &format!("{:04}", stage::next());
        let check = check.replace("@TOKEN@", &token);
        for (name, text) in [
            ("loop.yaml", include_str!("../durability/fixture/loop.yaml")),
            ("NORTHSTAR.md", include_str!("../durability/fixture/NORTHSTAR.md")),
            ("rehearsal.yaml", include_str!("../durability/fixture/rehearsal.yaml")),
            ("check.sh", &check),
        ] {
            fs::write(work.join(name), text).unwrap();
        }
        let mut program = PathBuf::from(env!("CARGO_BIN_EXE_nightloop"));
        let mut command = Command::new(&program);
        if as_nobody {
            if !rustix::process::geteuid().is_root() || !has("setpriv") {
                eprintln!("SKIPPED: only the superuser can become another user, with setpriv");
                return None;
            }
            // Where it was built others may not look.
            let copy = root.join("nightloop");
            fs::copy(&program, &copy).unwrap();
            program = copy;
            fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
            for path in [&work, &state, &root] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            for entry in fs::read_dir(&work).unwrap().flatten() {
                chown(entry.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            }
            command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(&program);
        }
        command.arg("run").current_dir(&work).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", &root);
        command.env("NIGHTLOOP_STATE_DIR", &state).env("NIGHTLOOP_TEST_DISK_PERCENT", "10");
        let log = fs::File::create(root.join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Some(Self { child: command.spawn().unwrap(), folder, token })
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn marked(&self) -> Vec<u32> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let ours = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.windows(self.token.len()).any(|part| part == self.token.as_bytes())
        };
        pids.filter(ours).collect()
    }

    /// Kills it with the given means, and says what is left after everybody had time to clean up.
    fn killed(mut self) -> Vec<u32> {
        let mut ended = None;
        wait_for("what the check starts", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some() || self.marked().len() >= 2
        });
        assert!(ended.is_none(), "the engine ended by itself: {}", self.log());
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.marked().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.marked()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in self.marked() {
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

fn has(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(program).exists())
}

fn killed_engines_leave_nothing(as_nobody: bool) {
    for escape in ESCAPES.iter().filter(|script| !script.contains("perl") || has("perl")) {
        let check = format!("{escape}\nexec sleep 600@TOKEN@\n");
        let Some(engine) = Engine::start(&check, as_nobody) else { return };
        assert_eq!(engine.killed(), Vec::<u32>::new(), "{escape}");
    }
}

#[test]
fn a_killed_engine_leaves_nothing() {
    if in_force() {
        killed_engines_leave_nothing(false);
    }
}

#[test]
fn a_killed_engine_of_a_normal_user_leaves_nothing() {
    // What the superuser may, says nothing about others.
    if in_force() && Path::new("/proc/self/ns/user").exists() {
        killed_engines_leave_nothing(true);
    }
}

/// `cargo test --test sandbox launcher::how_long -- --ignored --nocapture`: figures for people, no judgement.
#[test]
#[ignore = "a measurement"]
fn how_long_a_start_takes() {
    let stage = Stage::set();
    for (name, without) in [("launcher", None), ("fork and exec", Some(Layer::Launcher))] {
        let confinement = stage.confinement(&Case::new("x", ""), without);
        let mut times: Vec<Duration> = (0..300)
            .map(|_| {
                let mut spec = process::CommandSpec::new(vec!["/bin/true".to_owned()], stage.path("ws"), &stage.marker);
                spec.confinement = Some(confinement.clone());
                let started = Instant::now();
                assert_eq!(stage::run(spec).end, End::Exited(0));
                started.elapsed()
            })
            .collect();
        times.sort();
        println!("{name}: p10 {:?}, median {:?}, p90 {:?}", times[30], times[150], times[270]);
    }
}
