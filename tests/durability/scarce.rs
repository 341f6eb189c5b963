//! Memory, descriptors and file sizes that run out, by the limits of a real shell.

use std::fs;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::harness::{Running, run_dirs, single_iteration, small, tool_is_running, wait_until, with_script};
use crate::support::{Bench, Ended};

/// The command under `ulimit`.
fn limited(bench: &Bench, limit: &str, arguments: &[&str]) -> Ended {
    let command = bench.command(arguments);
    let mut shell = Command::new("sh");
    let script = format!("ulimit -c 0; ulimit {limit} || exit 98; exec \"$0\" \"$@\"");
    shell.arg("-c").arg(script).arg(command.get_program()).args(arguments).current_dir(&bench.workspace).env_clear();
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    shell.output().unwrap().into()
}

/// Without the limit everything is as it should be.
fn goes_on(bench: &Bench, what: &str) {
    let next = if run_dirs(bench).is_empty() { "run" } else { "resume" };
    let ended = bench.nightloop(&[next]);
    assert_eq!(ended.code, 0, "{what}, {next}: {}{}", ended.stdout, ended.stderr);
    bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn too_little_memory_is_told_as_such() {
    let mut told = 0;
    let mut ran = false;
    // From less than the program itself needs to enough.
    for mib in (40..=400).step_by(12) {
        let bench = small();
        let ended = limited(&bench, &format!("-v {}", mib * 1024), &["run"]);
        match ended.code {
            0 => ran = true,
            75 => {
                assert!(ended.stderr.contains("memory") && ended.stderr.contains("ulimit"), "{}", ended.stderr);
                told += 1;
            }
            // The loader found no room for the program, or an allocation failed: neither is ours to tell.
            127 | -1 => assert!(!ended.stderr.contains("internal error at"), "{mib} MiB: {}", ended.stderr),
            code => panic!("{mib} MiB: {code}: {}{}", ended.stdout, ended.stderr),
        }
        goes_on(&bench, &format!("{mib} MiB"));
        if ran {
            break;
        }
    }
    assert!(told > 0 && ran, "no limit was too small ({told} told) or none large enough");
}

#[test]
fn too_few_descriptors_are_told_as_such() {
    for descriptors in [4, 8, 12, 16, 24, 40, 63, 127] {
        let bench = small();
        let ended = limited(&bench, &format!("-n {descriptors}"), &["run"]);
        // With fewer than the loader needs, it speaks itself.
        if ended.code == 127 {
            continue;
        }
        assert_eq!(ended.code, 75, "{descriptors}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("open files") && ended.stderr.contains("ulimit"), "{}", ended.stderr);
        assert!(run_dirs(&bench).is_empty(), "{descriptors}");
        goes_on(&bench, &format!("{descriptors} descriptors"));
    }
    limited(&small(), "-n 128", &["run"]).expect(0);
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_no_death() {
    // In blocks of 512 bytes; the reserve is the largest file.
    for blocks in [1, 4, 64, 1000, 8000] {
        let bench = small();
        let ended = limited(&bench, &format!("-f {blocks}"), &["run"]);
        assert!([74, 75].contains(&ended.code), "{blocks}: {}: {}{}", ended.code, ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("File too large"), "{blocks}: {}", ended.stderr);
        goes_on(&bench, &format!("{blocks} blocks"));
    }
    let bench = Bench::new();
    let ended = limited(&bench, "-f 1", &["init"]);
    assert_eq!(ended.code, 74, "{}", ended.stderr);
}

/// An engine that waits for its tool; then a limit strikes, and the tool may end.
fn strike(resource: Resource, limit: impl Fn(&Bench, Pid) -> u64) -> (Bench, Ended) {
    let script = single_iteration("until test -e go.log; do sleep 0.01; done");
    let bench = with_script(&script).file(".gitignore", "*.log\n");
    let engine = Running::start(bench.command(&["run"]));
    wait_until("the tool runs", || tool_is_running(&bench, "bash"));
    let pid = Pid::from_child(&engine.0);
    let most = limit(&bench, pid);
    prlimit(Some(pid), resource, Rlimit { current: Some(most), maximum: None }).unwrap();
    fs::write(bench.workspace.join("go.log"), "").unwrap();
    let (code, stderr) = engine.end();
    (bench, Ended { code, stderr, stdout: String::new() })
}

fn address_space(pid: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_pid())).unwrap();
    let size = text.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    size.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn memory_that_runs_out_in_the_middle_is_no_fault_of_the_program() {
    for more in [0, 1 << 20, 4 << 20, 16 << 20] {
        let (bench, ended) = strike(Resource::As, |_, pid| address_space(pid) + more);
        // A new thread without room for its signal stack is ended by the standard library, which nobody can keep from it;
        // what counts then is what follows.
        let by_library = ended.stderr.contains("failed to allocate an alternative stack");
        assert!(by_library || !ended.stderr.contains("internal error at"), "{more}: {}", ended.stderr);
        assert!(by_library || ended.code != 101, "{more}: {}", ended.stderr);
        // Whatever came of it, the record is whole.
        assert!([0, 2].contains(&bench.nightloop(&["verify"]).code), "{more}");
        let resumed = bench.nightloop(&["resume"]);
        assert!([0, 1].contains(&resumed.code), "{more}: {}: {}", resumed.code, resumed.stderr);
        bench.nightloop(&["verify"]).expect(0);
    }
}

#[test]
fn a_journal_that_may_not_grow_stops_the_run_and_goes_on_later() {
    let (bench, ended) = strike(Resource::Fsize, |bench, _| {
        fs::metadata(bench.run_dir().join("journal/00000001.jsonl")).unwrap().len() + 100
    });
    assert!([74, 75].contains(&ended.code), "{}: {}", ended.code, ended.stderr);
    assert!(ended.stderr.contains("File too large"), "{}", ended.stderr);
    bench.nightloop(&["resume"]).expect(0);
    bench.nightloop(&["verify"]).expect(0);
}
