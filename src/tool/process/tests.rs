//! Real processes: how they end, what is captured, and that nothing survives.

use std::process::Command;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::*;
use crate::model::digest::Digest;
use crate::tool::environment::{CALL_VAR, ENGINE_VAR, INHERITED, new_call_id};

fn marker() -> String {
    format!("test-{}", new_call_id())
}

fn sh(script: &str, marker: &str) -> CommandSpec {
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let mut spec = CommandSpec::new(argv, std::env::temp_dir(), marker);
    spec.timeout = Duration::from_secs(60);
    spec
}

fn run_now(spec: CommandSpec) -> ProcessOutcome {
    run_with(spec, &CancellationToken::new())
}

fn run_with(spec: CommandSpec, cancel: &CancellationToken) -> ProcessOutcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(spec, cancel))
}

/// Waits for a condition; the bound only turns a hang into a failure.
fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

fn pid_in(file: &std::path::Path) -> Option<u32> {
    std::fs::read_to_string(file).ok().filter(|text| text.ends_with('\n'))?.trim().parse().ok()
}

#[test]
fn ends_are_told_apart() {
    assert_eq!(run_now(sh("exit 0", &marker())).end, End::Exited(0));
    assert_eq!(run_now(sh("exit 7", &marker())).end, End::Exited(7));
    assert_eq!(run_now(sh("kill -9 $$", &marker())).end, End::Signaled(9));
    let mut missing = sh("", &marker());
    missing.argv = vec!["/no/such/program".to_owned()];
    assert!(matches!(run_now(missing).end, End::NotStarted(why) if why.contains("installed")));
    let mut empty = sh("", &marker());
    empty.argv.clear();
    assert!(matches!(run_now(empty).end, End::NotStarted(_)));
    let mut nowhere = sh("exit 0", &marker());
    nowhere.cwd = "/no/such/folder".into();
    assert!(matches!(run_now(nowhere).end, End::NotStarted(why) if why.contains("/no/such/folder")));
    assert!(matches!(run_now(sh("echo \0", &marker())).end, End::NotStarted(why) if why.contains("NUL")));
    let long = run_now(sh(&"x".repeat(1 << 20), &marker()));
    assert!(matches!(long.end, End::NotStarted(why) if why.contains("too long")));
}

#[test]
fn both_streams_and_stdin() {
    let mut spec = sh("cat; echo oops >&2", &marker());
    let input = b"line\n".repeat(100_000);
    spec.stdin = Some(input.clone());
    let outcome = run_now(spec);
    assert_eq!(outcome.end, End::Exited(0));
    assert_eq!(outcome.stdout.bytes, input);
    assert_eq!(outcome.stderr.bytes, b"oops\n");
    // Without stdin the command reads nothing and does not wait for a terminal.
    assert_eq!(run_now(sh("cat", &marker())).stdout.total, 0);
    // A command that ignores its input still ends.
    let mut deaf = sh("exit 3", &marker());
    deaf.stdin = Some(input);
    assert_eq!(run_now(deaf).end, End::Exited(3));
}

#[test]
fn environment_is_the_allow_list() {
    let mark = marker();
    let mut spec = sh("env", &mark);
    spec.env = vec![("EXTRA".to_owned(), "1".to_owned())];
    let outcome = run_now(spec);
    let text = String::from_utf8(outcome.stdout.bytes).unwrap();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    for name in &names {
        let known = INHERITED.contains(name)
            || name.starts_with("LC_")
            // The shell sets these three itself.
            || ["GIT_TERMINAL_PROMPT", "EXTRA", RUN_VAR, ENGINE_VAR, CALL_VAR, "PWD", "SHLVL", "_", "OLDPWD"].contains(name);
        assert!(known, "{name} leaked");
    }
    // The test runner has variables outside the list, so the test above can fail.
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO")));
    assert!(text.contains(&format!("{RUN_VAR}={mark}\n")));
    assert!(text.contains("GIT_TERMINAL_PROMPT=0\n") && text.contains("EXTRA=1\n"));
}

#[test]
fn own_session_and_no_core_dumps() {
    let outcome =
        run_now(sh("cut -d' ' -f1,5,6 /proc/self/stat; cut -d' ' -f1,5,6 /proc/$$/stat; ulimit -c", &marker()));
    let text = String::from_utf8(outcome.stdout.bytes).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let leader: Vec<&str> = lines[1].split(' ').collect();
    assert!(leader[0] == leader[1] && leader[1] == leader[2], "{text}");
    assert_eq!(lines[2], "0");
}

#[test]
fn giant_line_is_bounded() {
    const SIZE: usize = 16 << 20;
    let mut spec = sh(&format!("head -c {SIZE} /dev/zero | tr '\\0' x"), &marker());
    spec.keep_bytes = 1000;
    let outcome = run_now(spec);
    assert_eq!(outcome.end, End::Exited(0));
    assert_eq!(outcome.stdout.total, SIZE as u64);
    assert!(outcome.stdout.truncated);
    assert!(outcome.stdout.bytes.len() < 1100, "{}", outcome.stdout.bytes.len());
    assert_eq!(outcome.stdout.sha256, Digest::of(&vec![b'x'; SIZE]));
}

/// Each script leaves a process behind in its own way, and then does not end.
const ESCAPES: [(&str, &str); 6] = [
    ("background child", "sleep 600 & echo $! >$PIDFILE; wait"),
    ("ignores TERM", "trap '' TERM; echo $$ >$PIDFILE; while :; do sleep 600; done"),
    ("setsid", "setsid sh -c 'echo $$ >$PIDFILE; exec sleep 600' & wait; sleep 600"),
    ("double fork", "(setsid sh -c 'echo $$ >$PIDFILE; exec sleep 600' &) ; sleep 600"),
    ("setsid, ignores TERM", "(setsid sh -c 'trap \"\" TERM; echo $$ >$PIDFILE; sleep 600; sleep 600' &); sleep 600"),
    (
        "no marker, but a parent",
        "env -i PIDFILE=$PIDFILE PATH=$PATH setsid sh -c 'echo $$ >$PIDFILE; exec sleep 600' & wait; sleep 600",
    ),
];

#[test]
fn cancel_leaves_no_survivors() {
    for (name, script) in ESCAPES {
        let folder = tempfile::tempdir().unwrap();
        let pidfile = folder.path().join("pid");
        let mark = marker();
        let mut spec = sh(script, &mark);
        spec.env = vec![("PIDFILE".to_owned(), pidfile.display().to_string())];
        let cancel = CancellationToken::new();
        let handle = cancel.clone();
        let runner = std::thread::spawn(move || run_with(spec, &handle));
        wait_for("the escapee to start", || pid_in(&pidfile).is_some());
        let escapee = pid_in(&pidfile).unwrap();
        assert!(alive(escapee), "{name}");
        cancel.cancel();
        assert_eq!(runner.join().unwrap().end, End::Cancelled, "{name}");
        assert!(!alive(escapee), "{name} survived");
        assert_eq!(survivors(Marker::Run(&mark)), Vec::<u32>::new(), "{name}");
    }
}

#[test]
fn timeout_leaves_no_survivors() {
    for (name, script) in ESCAPES {
        let folder = tempfile::tempdir().unwrap();
        let pidfile = folder.path().join("pid");
        let mark = marker();
        let mut spec = sh(script, &mark);
        spec.env = vec![("PIDFILE".to_owned(), pidfile.display().to_string())];
        spec.timeout = Duration::from_millis(500);
        assert_eq!(run_now(spec).end, End::TimedOut, "{name}");
        if let Some(escapee) = pid_in(&pidfile) {
            assert!(!alive(escapee), "{name} survived");
        }
        assert_eq!(survivors(Marker::Run(&mark)), Vec::<u32>::new(), "{name}");
    }
}

#[test]
fn normal_exit_leaves_no_survivors() {
    for script in ["sleep 600 & exit 5", "(setsid sleep 600 &) ; exit 5", "setsid setsid sleep 600 & exit 5"] {
        let mark = marker();
        assert_eq!(run_now(sh(script, &mark)).end, End::Exited(5));
        assert_eq!(survivors(Marker::Run(&mark)), Vec::<u32>::new(), "{script}");
    }
}

#[test]
fn a_dropped_future_ends_the_command() {
    let mark = marker();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cancel = CancellationToken::new();
    runtime.block_on(async {
        let running = run(sh("trap '' TERM; setsid sleep 600 & sleep 600; sleep 600", &mark), &cancel);
        tokio::select! {
            outcome = running => panic!("ended: {outcome:?}"),
            () = async { while survivors(Marker::Run(&mark)).len() < 3 { tokio::task::yield_now().await } } => {}
        }
    });
    wait_for("the dropped command to be gone", || survivors(Marker::Run(&mark)).is_empty());
}

/// A process that kept the pipe but shook off session, parent and marker: not found, and not
/// waited for either.
#[test]
fn inherited_pipe_does_not_hang() {
    let folder = tempfile::tempdir().unwrap();
    let pidfile = folder.path().join("pid");
    let script = "(env -i setsid sh -c 'echo $$ >pid; exec /bin/sleep 60' &)
        until [ -s pid ]; do sleep 0.01; done; echo done";
    let mut spec = sh(script, &marker());
    spec.cwd = folder.path().to_owned();
    let outcome = run_now(spec);
    let holder = pid_in(&pidfile).unwrap();
    let held = alive(holder);
    let pid = rustix::process::Pid::from_raw(i32::try_from(holder).unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    assert_eq!((outcome.end, outcome.stdout.bytes.as_slice()), (End::Exited(0), &b"done\n"[..]));
    // Still holding the pipe: so it was not its end that let us go.
    assert!(held, "the command ended only with the process that held its pipe");
}

#[test]
fn a_cancelled_token_starts_nothing() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let folder = tempfile::tempdir().unwrap();
    let mut spec = sh("touch started", &marker());
    spec.cwd = folder.path().to_owned();
    assert_eq!(run_with(spec, &cancel).end, End::Cancelled);
    assert!(!folder.path().join("started").exists());
}

#[test]
fn sweep_kills_marked_escapees_and_nobody_else() {
    become_subreaper();
    let (mark, other) = (marker(), marker());
    let start = |mark: &str, script: &str| {
        Command::new("/bin/sh").args(["-c", script]).env(RUN_VAR, mark).status().unwrap();
    };
    start(&mark, "setsid sleep 600 & exit 0");
    start(&mark, "(setsid sh -c 'setsid sleep 600 & trap \"\" TERM; sleep 600' &)");
    start(&other, "setsid sleep 600 & exit 0");
    wait_for("the escapees", || survivors(Marker::Run(&mark)).len() >= 4 && survivors(Marker::Run(&other)).len() == 1);
    let escapees = survivors(Marker::Run(&mark));
    assert!(sweep(Marker::Run(&mark)) >= escapees.len());
    assert_eq!(survivors(Marker::Run(&mark)), Vec::<u32>::new());
    assert!(escapees.iter().all(|pid| !alive(*pid)));
    assert_eq!(survivors(Marker::Run(&other)).len(), 1, "a stranger was killed");
    assert_eq!(sweep(Marker::Run(&mark)), 0);
    assert_eq!(sweep(Marker::Run(&other)), 1);
    assert_eq!(sweep(Marker::Run("")), 0);
}

/// Want of processes, memory or open files is no fault of the command, and is not called one.
#[test]
fn exhaustion_is_told_from_a_missing_program() {
    let number = std::io::Error::from_raw_os_error;
    for (errno, word) in [(11, "ulimit -u"), (12, "memory"), (24, "ulimit -n"), (23, "open files")] {
        let end = End::failed("cannot start \"x\"", &number(errno));
        assert!(matches!(&end, End::Exhausted(why) if why.contains(word)), "{end:?}");
    }
    assert!(matches!(End::failed("cannot start \"x\"", &number(2)), End::NotStarted(_)));
}
