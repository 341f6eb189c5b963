//! Living on, filling up, and multiplying.

use std::time::Duration;

use nightloop::tool::process::{self, CommandSpec, End};
use nightloop::tool::sandbox::Confinement;

use super::stage::{self, Case, Stage};

/// Each child in a session of its own, so that no signal reaches them all. The kernel's limit on processes ends it,
/// which does not hold the superuser (docs/sandbox.md); so where that is us, it runs as nobody.
const SESSIONS: &str = "export b='setsid sh -c \"$b\" & setsid sh -c \"$b\" &'; \
     test $(id -u) = 0 && exec perl -e '$<=$>=65534; exec \"sh\",\"-c\",$ENV{b}.\" sleep 30\"'; sh -c \"$b\"; sleep 30";

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, script) in [
        ("background", "sleep 600@TOKEN@ & exit 0"),
        ("disowned", "sleep 600@TOKEN@ & disown; exit 0"),
        ("nohup", "nohup sleep 600@TOKEN@ >/dev/null 2>&1 & exit 0"),
        ("own session", "setsid sleep 600@TOKEN@ & exit 0"),
        ("own session twice", "setsid setsid setsid sleep 600@TOKEN@ & exit 0"),
        ("double fork", "(sleep 600@TOKEN@ &) ; exit 0"),
        ("double fork and session", "(setsid sh -c 'sleep 600@TOKEN@ & sleep 600@TOKEN@' &) ; exit 0"),
        ("deaf to signals", "(trap '' TERM HUP INT; sleep 600@TOKEN@) & exit 0"),
        ("held pipe", "(sleep 600@TOKEN@ 1>&2 &) ; exit 0"),
        ("stopped", "sleep 600@TOKEN@ & kill -STOP $!; exit 0"),
        ("failing leader", "setsid sleep 600@TOKEN@ & exit 3"),
        ("killed leader", "setsid sleep 600@TOKEN@ & kill -9 $$"),
        ("chain", "for i in 1 2 3 4 5 6 7 8; do setsid sleep 600@TOKEN@ & done; exit 0"),
        ("respawning", "setsid sh -c 'while :; do sleep 0.1; : @TOKEN@; done' & exit 0"),
    ] {
        cases.push(Case::new(format!("left behind: {name}"), script));
    }
    for (name, script) in [
        ("no environment", "env -i sleep 600@TOKEN@ & exit 0"),
        ("no environment, own session", "env -i setsid sleep 600@TOKEN@ & exit 0"),
        ("daemon without a trace", "(env -i setsid sh -c 'env -i setsid sleep 600@TOKEN@ &' &) ; sleep 0.1; exit 0"),
        ("daemon by the book", "@HELPER@ do=daemon:@TOKEN@; sleep 0.1"),
        (
            "daemon that forks",
            "(env -i setsid sh -c 'env -i setsid sh -c \"sleep 600@TOKEN@ & sleep 600@TOKEN@\" &' &); sleep 0.1",
        ),
    ] {
        cases.push(Case::new(format!("left behind: {name}"), script).alone());
    }
    for (name, script) in [
        ("sleeping", "sleep 600@TOKEN@"),
        ("busy", "while :; do :; done"),
        ("deaf", "trap '' TERM INT HUP; while :; do sleep 600@TOKEN@; done"),
        ("waiting for input", "cat /dev/zero > /dev/null"),
        ("with a deaf child", "(trap '' TERM; exec sleep 600@TOKEN@) & wait"),
        ("waiting on a pipe", "mkfifo p; cat p"),
    ] {
        cases.push(Case::new(format!("never ending: {name}"), script).never_ends(400));
    }
    for (name, script) in
        [("output", "yes GARBAGE-GARBAGE"), ("one line", "tr '\\0' x < /dev/zero"), ("both streams", "yes & yes >&2")]
    {
        cases.push(Case::new(format!("endless: {name}"), script).never_ends(700));
    }
    let through = "&& echo GOT-THROUGH";
    for (name, script) in [
        ("giant file", format!("truncate -s 20G big {through}; ls big 2>/dev/null")),
        ("giant file by seeking", format!("dd if=/dev/zero of=big bs=1 count=1 seek=20G 2>/dev/null {through}")),
        ("giant allocation", format!("fallocate -l 20G big {through}")),
        ("open files", "@HELPER@ do=files".to_owned()),
        ("core limit", "@HELPER@ do=core".to_owned()),
        ("core file", "sh -c 'kill -SEGV $$'; ls | grep -i core && echo GOT-THROUGH".to_owned()),
        ("hiding from the sweep", "@HELPER@ do=undumpable".to_owned()),
    ] {
        cases.push(Case::new(format!("limit: {name}"), script));
    }
    // They take the machine for a moment, so nobody else should be on it.
    for (name, script) in [
        ("fork bomb", "bomb() { bomb | bomb & }; bomb; sleep 30"),
        ("fork bomb in sessions", SESSIONS),
        ("crowd of sleepers", "while :; do sleep 600@TOKEN@ & done"),
    ] {
        cases.push(Case::new(format!("multiplying: {name}"), script).never_ends(4_000).alone());
    }
    cases.push(Case::new("multiplying: threads", "@HELPER@ do=threads").timeout(8_000).alone());
    cases
}

/// Odd arguments are told, not run.
#[test]
fn impossible_arguments_start_nothing() {
    let stage = Stage::set();
    let huge = "x".repeat(3 << 20);
    for (text, why) in [(huge.as_str(), "too long"), ("a\0b", "NUL byte")] {
        let argv = ["/bin/echo", text].map(str::to_owned).to_vec();
        let mut spec = CommandSpec::new(argv, stage.path("ws"), &stage.marker);
        let policy = stage.policy(&Case::new("x", ""));
        spec.confinement = Some(std::sync::Arc::new(Confinement::build(policy).unwrap()));
        match stage::run(spec).end {
            End::NotStarted(text) => assert!(text.contains(why), "{text}"),
            end => panic!("{end:?}"),
        }
    }
}

/// A gigabyte in one line, and all of it counted, in little memory.
#[test]
fn a_giant_line_is_counted_not_kept() {
    let stage = Stage::set();
    let case = Case::new("line", "head -c 1000000000 /dev/zero | tr '\\0' x").timeout(60_000);
    let before = peak_memory();
    let outcome = stage.perform(&case, None);
    assert_eq!((outcome.end, outcome.stdout.total), (End::Exited(0), 1_000_000_000));
    assert!(outcome.stdout.bytes.len() <= 64 * 1024 + 200);
    assert!(peak_memory() < before + 200_000, "kilobytes: {before} before, {} after", peak_memory());
}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// What a bomb leaves is gone, and said.
#[test]
fn a_crowd_is_ended_and_said() {
    process::become_subreaper();
    let stage = Stage::set();
    let case = Case::new("crowd", "while :; do sleep 600@TOKEN@ & done").timeout(60_000).alone();
    let outcome = stage.perform(&case, None);
    let said = String::from_utf8_lossy(&outcome.stderr.bytes).into_owned();
    // The kernel's own limit holds everybody but the superuser: then the shell itself gives up or goes on asking.
    if rustix::process::geteuid().is_root() {
        assert!(said.contains("more than 1000 processes"), "{:?} {said}", outcome.end);
    }
    assert!(stage.left_behind().is_empty());
    assert!(Duration::from_millis(outcome.millis) < Duration::from_secs(60));
}
