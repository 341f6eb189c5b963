//! System calls that no build needs.

use super::stage::Case;

/// Name, number on x86_64 and on aarch64, arguments.
const CALLS: &[(&str, u32, u32, &str)] = &[
    ("ptrace", 101, 117, ":16:1"),
    ("process_vm_readv", 310, 270, ":1"),
    ("process_vm_writev", 311, 271, ":1"),
    ("process_madvise", 440, 440, ""),
    ("pidfd_getfd", 438, 438, ":-1"),
    ("kcmp", 312, 272, ":1:1"),
    ("perf_event_open", 298, 241, ""),
    ("io_uring_setup", 425, 425, ":8"),
    ("io_uring_enter", 426, 426, ":-1"),
    ("io_uring_register", 427, 427, ":-1"),
    ("bpf", 321, 280, ""),
    ("userfaultfd", 323, 282, ":1"),
    ("fanotify_init", 300, 262, ""),
    ("add_key", 248, 217, ""),
    ("request_key", 249, 218, ""),
    ("keyctl", 250, 219, ":0:-3"),
    ("mount", 165, 40, ""),
    ("umount2", 166, 39, ""),
    ("pivot_root", 155, 41, ""),
    ("chroot", 161, 51, ""),
    ("open_tree", 428, 428, ":-100"),
    ("move_mount", 429, 429, ":-100"),
    ("fsopen", 430, 430, ""),
    ("fsconfig", 431, 431, ":-1"),
    ("fsmount", 432, 432, ":-1"),
    ("fspick", 433, 433, ":-100"),
    ("mount_setattr", 442, 442, ":-100"),
    ("open_by_handle_at", 304, 265, ":-100"),
    ("setns", 308, 268, ":-1"),
    ("unshare users", 272, 97, ":0x10000000"),
    ("unshare mounts", 272, 97, ":0x20000"),
    ("unshare network", 272, 97, ":0x40000000"),
    ("unshare nothing", 272, 97, ":0"),
    ("clone users", 56, 220, ":0x10000011"),
    ("clone mounts", 56, 220, ":0x20011"),
    ("clone pids", 56, 220, ":0x20000011"),
    ("clone network", 56, 220, ":0x40000011"),
    ("clone cgroup", 56, 220, ":0x2000011"),
    ("clone3", 435, 435, ""),
    ("kexec_load", 246, 104, ""),
    ("kexec_file_load", 320, 294, ":-1"),
    ("init_module", 175, 105, ""),
    ("finit_module", 313, 273, ":-1"),
    ("delete_module", 176, 106, ""),
    ("swapon", 167, 224, ""),
    ("swapoff", 168, 225, ""),
    ("reboot", 169, 142, ":0"),
    ("acct", 163, 89, ":1"),
    ("quotactl", 179, 60, ""),
    ("settimeofday", 164, 170, ":1"),
    ("clock_settime", 227, 112, ":0"),
    ("sethostname", 170, 161, ":0:0"),
    ("setdomainname", 171, 162, ":0:0"),
    ("syslog", 103, 116, ":10"),
    ("vhangup", 153, 58, ""),
    ("personality of another system", 135, 92, ":0x8"),
    ("personality that reads as executable", 135, 92, ":0x400000"),
    ("typing into a terminal", 16, 29, ":0:0x5412:0"),
    ("terminal control", 16, 29, ":0:0x541c:0"),
    ("typing with high bits set", 16, 29, ":0:0x100005412:0"),
    ("hiding from the sweep", 157, 167, ":4:0"),
    ("hiding half", 157, 167, ":4:2"),
];

pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = CALLS
        .iter()
        .map(|(name, x86_64, aarch64, arguments)| {
            let number = if cfg!(target_arch = "aarch64") { aarch64 } else { x86_64 };
            Case::new(format!("call: {name}"), format!("@HELPER@ do=call:{number}{arguments}"))
        })
        .collect();
    if cfg!(target_arch = "x86_64") {
        cases.push(Case::new("call: iopl", "@HELPER@ do=call:172:3"));
        cases.push(Case::new("call: ioperm", "@HELPER@ do=call:173:0:1:1"));
        // The x32 numbers of getpid, ptrace and io_uring_setup.
        for number in ["0x40000027", "0x40000209", "0x400001a9"] {
            cases.push(Case::new(format!("call: x32 {number}"), format!("@HELPER@ do=call:{number}:8")));
        }
        cases.push(Case::new("call: 32-bit", "@HELPER@ do=old-calls"));
    }
    cases
}
