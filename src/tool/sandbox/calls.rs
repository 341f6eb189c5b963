//! The seccomp filters: system calls that no build needs, and sockets that the policy does not give.
//!
//! Compiled to the kernel's byte code in the parent. Invariants: calls of another architecture than ours end the
//! process (they have other numbers); what is refused is refused with an error code, so that programs can say so.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use crate::model::loop_file::NetworkDecl;

const EPERM: u32 = 1;
const EACCES: u32 = 13;
const ENOSYS: u32 = 38;

/// Numbers of system calls on the two architectures we know.
macro_rules! calls {
    ($($name:ident $x86_64:literal $aarch64:literal)*) => {
        $(const $name: i64 = if cfg!(target_arch = "aarch64") { $aarch64 } else { $x86_64 };)*
    };
}

calls! {
    IOCTL 16 29
    FCHMOD 91 52
    SOCKET 41 198
    CLONE 56 220
    PTRACE 101 117
    SYSLOG 103 116
    PERSONALITY 135 92
    SETPRIORITY 141 140
    SCHED_SETPARAM 142 118
    SCHED_SETSCHEDULER 144 119
    VHANGUP 153 58
    PIVOT_ROOT 155 41
    PRCTL 157 167
    CHROOT 161 51
    ACCT 163 89
    SETTIMEOFDAY 164 170
    MOUNT 165 40
    UMOUNT2 166 39
    SWAPON 167 224
    SWAPOFF 168 225
    REBOOT 169 142
    SETHOSTNAME 170 161
    SETDOMAINNAME 171 162
    INIT_MODULE 175 105
    DELETE_MODULE 176 106
    QUOTACTL 179 60
    SCHED_SETAFFINITY 203 122
    LOOKUP_DCOOKIE 212 18
    CLOCK_SETTIME 227 112
    KEXEC_LOAD 246 104
    ADD_KEY 248 217
    REQUEST_KEY 249 218
    KEYCTL 250 219
    IOPRIO_SET 251 30
    OPENAT 257 56
    MKDIRAT 258 34
    MKNODAT 259 33
    FCHMODAT 268 53
    UNSHARE 272 97
    PERF_EVENT_OPEN 298 241
    FANOTIFY_INIT 300 262
    OPEN_BY_HANDLE_AT 304 265
    SETNS 308 268
    PRLIMIT64 302 261
    PROCESS_VM_READV 310 270
    PROCESS_VM_WRITEV 311 271
    KCMP 312 272
    FINIT_MODULE 313 273
    SCHED_SETATTR 314 274
    KEXEC_FILE_LOAD 320 294
    BPF 321 280
    USERFAULTFD 323 282
    IO_URING_SETUP 425 425
    IO_URING_ENTER 426 426
    IO_URING_REGISTER 427 427
    OPEN_TREE 428 428
    MOVE_MOUNT 429 429
    FSOPEN 430 430
    FSCONFIG 431 431
    FSMOUNT 432 432
    FSPICK 433 433
    CLONE3 435 435
    OPENAT2 437 437
    PIDFD_GETFD 438 438
    PROCESS_MADVISE 440 440
    MOUNT_SETATTR 442 442
    QUOTACTL_FD 443 443
    FCHMODAT2 452 452
}

/// Calls with a mode, and where it is: whoever sets one of [`RAISED`] there gives the file's rights to all who run it.
const MODES: &[(i64, u8)] = &[(FCHMOD, 1), (FCHMODAT, 2), (FCHMODAT2, 2), (MKDIRAT, 2), (MKNODAT, 2)];
/// Such calls that only the older architecture has: chmod, mkdir, creat, mknod.
const OLD_MODES: &[(i64, u8)] = &[(90, 1), (83, 1), (85, 1), (133, 1)];
/// Opening calls: the flags, after which the mode follows. The second is `open`, of the older architecture only.
const OPENING: &[(i64, u8)] = &[(OPENAT, 2), (2, 1)];
/// Without one of these the mode of an opening call means nothing, and may be anything: create, and nameless.
const CREATING: [u64; 2] = [0x40, 0x40_0000];
/// Set user, set group.
const RAISED: [u64; 2] = [0o4000, 0o2000];
/// Calls about how a process is run, by its number.
const SCHEDULING: [i64; 4] = [SCHED_SETPARAM, SCHED_SETSCHEDULER, SCHED_SETAFFINITY, SCHED_SETATTR];
/// `ioprio_set`: a process, rather than a group or a user.
const ONE_PROCESS: u64 = 1;

/// Refused whatever the arguments.
const REFUSED: &[i64] = &[
    // Into other processes.
    PTRACE,
    PROCESS_VM_READV,
    PROCESS_VM_WRITEV,
    PROCESS_MADVISE,
    PIDFD_GETFD,
    KCMP,
    PERF_EVENT_OPEN,
    // Around the filter: work queued there is not looked at by seccomp.
    IO_URING_SETUP,
    IO_URING_ENTER,
    IO_URING_REGISTER,
    // Large and young parts of the kernel.
    BPF,
    USERFAULTFD,
    FANOTIFY_INIT,
    ADD_KEY,
    REQUEST_KEY,
    KEYCTL,
    LOOKUP_DCOOKIE,
    // Another view of the file system.
    MOUNT,
    UMOUNT2,
    PIVOT_ROOT,
    CHROOT,
    OPEN_TREE,
    MOVE_MOUNT,
    FSOPEN,
    FSCONFIG,
    FSMOUNT,
    FSPICK,
    MOUNT_SETATTR,
    OPEN_BY_HANDLE_AT,
    SETNS,
    UNSHARE,
    // The machine itself.
    KEXEC_LOAD,
    KEXEC_FILE_LOAD,
    INIT_MODULE,
    FINIT_MODULE,
    DELETE_MODULE,
    SWAPON,
    SWAPOFF,
    REBOOT,
    ACCT,
    QUOTACTL,
    QUOTACTL_FD,
    SETTIMEOFDAY,
    CLOCK_SETTIME,
    SETHOSTNAME,
    SETDOMAINNAME,
    SYSLOG,
    VHANGUP,
];

/// New namespaces, as flags of `clone`: mount, cgroup, host name, IPC, user, pid, network.
const NAMESPACES: [u64; 7] =
    [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];
/// What may be asked of `personality`: the plain one, no random addresses (sanitizers), and the present one.
const PERSONALITIES: [u64; 3] = [0, 0x0004_0000, 0xffff_ffff];
/// Puts characters into a terminal as if they were typed.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];
/// `prctl`: readable by debuggers, and by the sweep, which looks for markers in the environment.
const SET_DUMPABLE: u64 = 4;

/// The number of a launcher, for those in its space.
const LAUNCHER: u64 = 1;

const UNIX: u64 = 1;
const INET: u64 = 2;
const INET6: u64 = 10;
const NETLINK: u64 = 16;

/// The first call number of the x32 convention, under which the same calls have other numbers.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Puts a filter on this thread, which must end soon.
pub(super) fn try_on() -> bool {
    refused_calls(false).is_ok_and(|filter| seccompiler::apply_filter(&filter).is_ok())
}

/// The filter against calls that nobody needs. Where a launcher starts the commands they cannot name anybody else's
/// processes, and may treat their own threads as they like.
pub(super) fn refused_calls(launched: bool) -> Result<BpfProgram, String> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    if cfg!(target_arch = "x86_64") {
        const IOPL: i64 = 172;
        const IOPERM: i64 = 173;
        rules.insert(IOPL, Vec::new());
        rules.insert(IOPERM, Vec::new());
    }
    let namespaces: Result<_, String> = NAMESPACES.iter().map(|flag| all(&[(0, masked(*flag), *flag)])).collect();
    rules.insert(CLONE, namespaces?);
    rules.insert(PERSONALITY, vec![none_of(0, &PERSONALITIES)?]);
    let typed: Result<_, String> = TERMINAL_INPUT.iter().map(|command| all(&[(1, Eq, *command)])).collect();
    rules.insert(IOCTL, typed?);
    // Limits and priorities of others: a limit on processor time would end the engine. Zero is oneself.
    rules.insert(PRLIMIT64, vec![all(&[(0, Ne, 0)])?]);
    rules.insert(SETPRIORITY, vec![all(&[(0, Ne, 0)])?, all(&[(1, Ne, 0)])?]);
    rules.insert(IOPRIO_SET, vec![all(&[(0, Ne, ONE_PROCESS)])?, all(&[(1, Ne, 0)])?]);
    for call in SCHEDULING {
        // The launcher itself would hand it on to what it starts next.
        let other = if launched { (0, Eq, LAUNCHER) } else { (0, Ne, 0) };
        rules.insert(call, vec![all(&[other])?]);
    }
    let old = if cfg!(target_arch = "x86_64") { OLD_MODES } else { &[] };
    for (call, mode) in MODES.iter().chain(old) {
        let raised: Result<_, String> = RAISED.iter().map(|bit| all(&[(*mode, masked(*bit), *bit)])).collect();
        rules.insert(*call, raised?);
    }
    let opening = if cfg!(target_arch = "x86_64") { OPENING } else { &OPENING[..1] };
    for (call, flags) in opening {
        let both = CREATING.iter().flat_map(|creating| RAISED.iter().map(move |bit| (*creating, *bit)));
        let raised: Result<_, String> =
            both.map(|(new, bit)| all(&[(*flags, masked(new), new), (flags + 1, masked(bit), bit)])).collect();
        rules.insert(*call, raised?);
    }
    rules.insert(PRCTL, vec![all(&[(0, Eq, SET_DUMPABLE), (1, Ne, 1)])?]);
    compile(rules, EPERM)
}

/// `clone3` hides its flags behind a pointer, and `openat2` its mode. As if they did not exist: libraries then use
/// `clone` and `openat`.
pub(super) fn unknown_calls() -> Result<BpfProgram, String> {
    compile(Rules::from([(CLONE3, Vec::new()), (OPENAT2, Vec::new())]), ENOSYS)
}

/// The filter on kinds of sockets.
pub(super) fn sockets(network: NetworkDecl, local: bool) -> Result<BpfProgram, String> {
    let allowed: &[u64] = match (network, local) {
        (NetworkDecl::Off, true) => &[UNIX],
        (NetworkDecl::Off, false) => &[],
        (NetworkDecl::Loopback | NetworkDecl::On, _) => &[UNIX, INET, INET6, NETLINK],
    };
    let rules = if allowed.is_empty() { Vec::new() } else { vec![none_of(0, allowed)?] };
    compile(Rules::from([(SOCKET, rules)]), EACCES)
}

use SeccompCmpOp::{Eq, Ne};

const fn masked(flag: u64) -> SeccompCmpOp {
    SeccompCmpOp::MaskedEq(flag)
}

/// All conditions, each an argument, a comparison and a value.
fn all(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, String> {
    let conditions: Result<Vec<_>, _> = conditions
        .iter()
        .map(|(argument, compare, value)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, compare.clone(), *value)
        })
        .collect();
    conditions.and_then(SeccompRule::new).map_err(|error| format!("a seccomp rule is wrong: {error}"))
}

fn none_of(argument: u8, values: &[u64]) -> Result<SeccompRule, String> {
    let conditions: Vec<_> = values.iter().map(|value| (argument, Ne, *value)).collect();
    all(&conditions)
}

fn compile(rules: Rules, errno: u32) -> Result<BpfProgram, String> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Err("system calls are known for x86_64 and aarch64 only".to_owned());
    }
    let target = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), target);
    let program = filter.and_then(BpfProgram::try_from);
    let program = program.map_err(|error| format!("the seccomp filter cannot be compiled: {error}"))?;
    Ok(one_convention(program))
}

/// Refuses the x32 convention before anything else is looked at.
#[cfg(target_arch = "x86_64")]
fn one_convention(program: BpfProgram) -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const RETURN_ERRNO: u32 = 0x0005_0000;
    let first = [
        sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_GREATER_OR_EQUAL, jt: 0, jf: 1, k: X32 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: RETURN_ERRNO | ENOSYS },
    ];
    first.into_iter().chain(program).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn one_convention(program: BpfProgram) -> BpfProgram {
    program
}
