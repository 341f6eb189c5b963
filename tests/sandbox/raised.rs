//! Files that give their owner's rights to whoever runs them, and how other processes are run.

use std::os::unix::fs::PermissionsExt;

use nightloop::tool::process::End;

use super::stage::{Case, Stage};

/// A program of the system that has the bit.
const THEIRS: &str = "p=$(find /usr/bin /bin /usr/sbin -xdev -perm -4000 -type f 2>/dev/null | head -n 1); \
     test -n \"$p\" || exit 0";
/// The stage itself looks for such files afterwards.
const LOOK: &str = "find . -perm /6000 | grep . && echo GOT-THROUGH";

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, script) in [
        ("chmod", "chmod 4755 mine"),
        ("chmod by letter", "chmod u+s mine"),
        ("chmod group", "chmod 2755 mine"),
        ("chmod a folder", "chmod g+s sub"),
        ("chmod and run", "cp /bin/sh s; chmod 6755 s; ./s -pc id"),
        ("install", "install -m 4755 /bin/sh s"),
        ("mkdir", "mkdir -m 2755 d"),
        ("tar", "tar --mode=4755 -cf a.tar mine && mkdir x && tar -xpf a.tar -C x"),
        ("umask", "umask 0; chmod 7777 mine"),
        ("python", "python3 -c 'import os; os.chmod(\"mine\", 0o4755)'"),
        ("perl", "perl -e 'chmod 04755, \"mine\"'"),
        ("call: chmod", "@HELPER@ do=raise:chmod"),
        ("call: fchmod", "@HELPER@ do=raise:fchmod"),
        ("call: fchmodat", "@HELPER@ do=raise:fchmodat"),
        ("call: fchmodat2", "@HELPER@ do=raise:fchmodat2"),
        ("call: open", "@HELPER@ do=raise:open"),
        ("call: openat", "@HELPER@ do=raise:openat"),
        ("call: openat2", "@HELPER@ do=raise:openat2"),
        ("call: creat", "@HELPER@ do=raise:creat"),
        ("call: mknod", "@HELPER@ do=raise:mknod"),
        ("call: nameless, then linked", "@HELPER@ do=raise:nameless"),
        ("call: file capabilities", "@HELPER@ do=raise:capability"),
    ] {
        cases.push(Case::new(format!("raised: {name}"), format!("{script}; {LOOK}")));
    }
    for (name, script) in [
        ("copied", "cp -p $p s"),
        ("copied as root does", "cp -a $p s"),
        ("linked", "ln $p s"),
        ("moved", "mv $p s"),
        ("archived", "tar -C / -cf a.tar ${p#/} && tar -xpf a.tar"),
    ] {
        cases.push(Case::new(format!("raised: the system's, {name}"), format!("{THEIRS}; {script}; {LOOK}")));
    }
    for (name, verb) in [("affinity", "affinity"), ("scheduler", "scheduler"), ("io priority", "io")] {
        for (who, pid) in [("parent", "$PPID"), ("bystander", "@BYSTANDER@")] {
            cases.push(Case::new(format!("run otherwise: {name} of the {who}"), format!("@HELPER@ do={verb}:{pid}")));
        }
    }
    // Refused by the filter, whatever the kernel would have said. Number 1 is the launcher, or somebody outside.
    for (name, x86_64, aarch64, arguments) in [
        ("affinity", 203, 122, "1:0:0"),
        ("parameters", 142, 118, "1:0"),
        ("scheduler", 144, 119, "1:3:0"),
        ("attributes", 314, 274, "1:0:0"),
        ("io priority", 251, 30, "1:1:24576"),
        ("io priority of a group", 251, 30, "2:0:24576"),
        ("io priority of a user", 251, 30, "3:0:24576"),
        ("priority of a group", 141, 140, "1:0:19"),
        ("priority of a user", 141, 140, "2:0:19"),
        ("limits", 302, 261, "1:7:0:0"),
    ] {
        let number = if cfg!(target_arch = "aarch64") { aarch64 } else { x86_64 };
        let script = format!("@HELPER@ do=call:{number}:{arguments}");
        cases.push(Case::new(format!("run otherwise: {name}, by call"), script));
    }
    cases
}

/// A file that has the bit already loses it when it is written, whoever writes.
#[test]
fn what_is_written_loses_the_bit() {
    let stage = Stage::set();
    let path = stage.path("ws/had");
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let outcome = stage.perform(&Case::new("write", "echo id >> had"), None);
    assert_eq!(outcome.end, End::Exited(0));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7000, 0);
}

/// Whoever treats only itself is left alone.
#[test]
fn ones_own_scheduling_is_ones_own() {
    let stage = Stage::set();
    for (program, script) in [
        ("taskset", "taskset 1 true"),
        ("nice", "nice -n 3 true"),
        ("ionice", "ionice -c 3 true"),
        ("chrt", "chrt -b 0 true"),
        ("python3", "python3 -c 'import os; os.sched_setaffinity(0, {0}); os.nice(1)'"),
        (
            "python3",
            "python3 -c 'import multiprocessing as m\nif __name__ == \"__main__\":\n with m.Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]'",
        ),
        ("make", "printf 'a: b c\\nb c:\\n\\ttrue\\n' > Makefile; make -j2"),
        ("node", "node -e 'new (require(\"worker_threads\").Worker)(\"1\", {eval: true})'"),
        ("chmod", "chmod 1777 sub && chmod 755 mine && install -m 755 mine other && mkdir -m 700 d"),
    ] {
        let case = Case::new(program, format!("command -v {program} >/dev/null || exit 0; {script}"));
        let outcome = stage.perform(&case, None);
        let complained = String::from_utf8_lossy(&outcome.stderr.bytes).into_owned();
        assert_eq!(outcome.end, End::Exited(0), "{script}: {complained}");
    }
}
