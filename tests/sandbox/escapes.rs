//! At other processes, devices, and more rights.

use super::stage::Case;

pub fn cases() -> Vec<Case> {
    let through = "&& echo GOT-THROUGH";
    let mut cases = Vec::new();
    for (name, script) in [
        ("engine", "kill -9 $PPID && echo GOT-THROUGH"),
        ("engine politely", "kill -TERM $PPID && echo GOT-THROUGH"),
        ("engine stopped", "kill -STOP $PPID && echo GOT-THROUGH"),
        ("engine probed", "kill -0 $PPID && echo GOT-THROUGH"),
        ("engine from a child", "sh -c 'sh -c \"kill -9 $PPID\"'; kill -9 $PPID && echo GOT-THROUGH"),
        ("bystander", "kill -9 @BYSTANDER@ && echo GOT-THROUGH"),
        ("bystander from a daemon", "setsid sh -c 'kill -9 @BYSTANDER@'; true"),
        ("bystander by handle", "@HELPER@ do=pidfd-kill:@BYSTANDER@"),
        ("bystander by call", "@HELPER@ do=kill:@BYSTANDER@"),
        ("group of the bystander", "kill -9 -$(ps -o pgid= -p @BYSTANDER@ | tr -d ' ') && echo GOT-THROUGH"),
        ("init", "kill -0 1 && echo GOT-THROUGH"),
        // A signal that is ignored unless somebody waits for it: a hole must not end the machine.
        ("everybody", "trap '' URG; kill -URG -1; sleep 0.1"),
        ("by a limit", "prlimit --pid @BYSTANDER@ --nofile=3 && echo GOT-THROUGH"),
        ("by a limit, by call", "@HELPER@ do=limit:@BYSTANDER@"),
        ("by renicing", "renice -n 19 -p $PPID && echo GOT-THROUGH; renice -n 19 -p @BYSTANDER@ && echo GOT-THROUGH"),
    ] {
        cases.push(Case::new(format!("kill: {name}"), script));
    }
    for name in ["environ", "mem", "maps", "fd/0", "auxv", "io", "stack", "syscall", "pagemap", "smaps"] {
        for (who, pid) in [("engine", "$PPID"), ("bystander", "@BYSTANDER@")] {
            let script = format!("head -c 1 /proc/{pid}/{name} {through}");
            cases.push(Case::new(format!("proc: {name} of the {who}"), script));
        }
    }
    for (name, script) in [
        ("engine's folder", "ls /proc/$PPID/cwd/ && echo GOT-THROUGH"),
        ("bystander's root", "cat /proc/@BYSTANDER@/root@HOME@/.ssh/id_ed25519"),
        ("bystander's handles", "ls -l /proc/@BYSTANDER@/fd && echo GOT-THROUGH"),
        ("bystander's environment", "tr '\\0' '\\n' < /proc/@BYSTANDER@/environ"),
        ("core pattern", "echo x > /proc/sys/kernel/core_pattern && echo GOT-THROUGH"),
        ("magic key", "echo h > /proc/sysrq-trigger && echo GOT-THROUGH"),
        ("kernel memory", "head -c 1 /proc/kcore && echo GOT-THROUGH"),
        ("own maps of users", "echo 0 0 1 > /proc/self/uid_map && echo GOT-THROUGH"),
        ("out of memory score", "echo -1000 > /proc/$PPID/oom_score_adj && echo GOT-THROUGH"),
    ] {
        cases.push(Case::new(format!("proc: {name}"), script));
    }
    for device in [
        "/dev/mem",
        "/dev/kmem",
        "/dev/port",
        "/dev/kmsg",
        "/dev/vda",
        "/dev/sda",
        "/dev/nvme0n1",
        "/dev/loop0",
        "/dev/fuse",
        "/dev/kvm",
        "/dev/net/tun",
        "/dev/loop-control",
        "/dev/mapper/control",
        "/dev/input/event0",
        "/dev/pts/ptmx",
        "/dev/ptmx",
        "/dev/vsock",
        "/dev/uinput",
        "/dev/console",
        "/dev/tty1",
    ] {
        let script = format!("head -c 1 {device} {through}; exec 3<>{device} {through}");
        cases.push(Case::new(format!("device: {device}"), script).timeout(5_000));
    }
    for (name, script) in [
        ("made here", "mknod n b 8 0 && head -c 1 n && echo GOT-THROUGH"),
        ("null made here", "mknod n c 1 3 && echo GOT-THROUGH"),
        ("steering a disk", "blockdev --rereadpt /dev/vda && echo GOT-THROUGH"),
    ] {
        cases.push(Case::new(format!("device: {name}"), script));
    }
    for (name, script) in [
        ("su", "su -c 'echo GOT-THROUGH' nobody </dev/null"),
        ("sudo", "sudo -n sh -c 'echo GOT-THROUGH'"),
        ("own setuid program", "cp /bin/sh s; chmod 4755 s; ./s -pc 'echo x > @OUTSIDE@/victim'"),
        (
            "as another user",
            "perl -e '$<=$>=65534; exec \"sh\",\"-c\",\"cat @HOME@/.netrc; echo x > @OUTSIDE@/victim\"'",
        ),
        ("limits raised", "@HELPER@ do=raise-limit"),
        ("file size raised", "ulimit -f unlimited 2>/dev/null && echo GOT-THROUGH"),
        ("priority raised", "renice -n -20 -p $$ && echo GOT-THROUGH"),
        ("capabilities", "grep -E 'CapEff:.*[1-9a-f].{7}$' /proc/self/status && echo GOT-THROUGH"),
        ("in memory only", "@HELPER@ do=memfd:@OUTSIDE@/victim"),
        ("preloaded", "LD_PRELOAD=@HOME@/.netrc cat @HOME@/.netrc; LD_PRELOAD=./mine cat @HOME@/.netrc"),
        ("by the linker", "/lib64/ld-linux-x86-64.so.2 /bin/cat @HOME@/.netrc"),
        ("user namespace", "unshare -r true && echo GOT-THROUGH"),
        ("pid namespace", "unshare -rpf true && echo GOT-THROUGH"),
        ("another namespace", "nsenter -t 1 -m true && echo GOT-THROUGH"),
        ("debugger", "strace -o /dev/null true && echo GOT-THROUGH"),
        ("debugger at the bystander", "timeout 3 strace -p @BYSTANDER@ 2>&1 | grep attached && echo GOT-THROUGH"),
        ("service manager", "systemd-run --wait true && echo GOT-THROUGH"),
        ("user's service manager", "systemd-run --user --wait true && echo GOT-THROUGH"),
        ("cron", "echo '* * * * * true' | crontab - && echo GOT-THROUGH"),
        ("at", "echo true | at now && echo GOT-THROUGH"),
        ("docker", "docker ps && echo GOT-THROUGH"),
        ("kernel log", "dmesg && echo GOT-THROUGH"),
        ("clock", "date -s 2001-01-01 && echo GOT-THROUGH"),
        ("host name", "hostname evil && echo GOT-THROUGH"),
        ("unloading", "rmmod loop && echo GOT-THROUGH"),
    ] {
        cases.push(Case::new(format!("rights: {name}"), script));
    }
    cases
}
