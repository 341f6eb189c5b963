//! A state directory that is really full: a small tmpfs in a user namespace of its own.

use std::process::Command;

use crate::harness::small;

/// Prints the exit code of every step; the file system lives as long as the script.
const SCRIPT: &str = r#"
mount -t tmpfs -o size="$SIZE" none "$NIGHTLOOP_STATE_DIR" || exit 99
"$NIGHTLOOP" run >/dev/null 2>"$OUT/run"; echo "run $?"
"$NIGHTLOOP" verify >"$OUT/verify" 2>&1; echo "verify $?"
mount -o remount,size=64m "$NIGHTLOOP_STATE_DIR" || exit 98
"$NIGHTLOOP" resume >"$OUT/resume" 2>&1; echo "resume $?"
"$NIGHTLOOP" verify >"$OUT/again" 2>&1; echo "again $?"
"#;

pub fn namespaces_work() -> bool {
    let probe = Command::new("unshare").args(["-Urm", "sh", "-c", "mount -t tmpfs none /mnt"]).output();
    probe.is_ok_and(|output| output.status.success())
}

#[test]
fn a_full_state_disk_stops_the_run_and_room_lets_it_go_on() {
    if !namespaces_work() {
        println!("skipped: user and mount namespaces are not available here");
        return;
    }
    // The reserve takes 4096k of it; the run needs some 300k in blocks.
    for size in ["4140k", "4180k", "4220k", "4260k"] {
        let bench = small();
        std::fs::create_dir_all(&bench.state).unwrap();
        let command = bench.command(&[]);
        let mut script = Command::new("unshare");
        script.args(["-Urm", "sh", "-c", SCRIPT]).current_dir(&bench.workspace).env_clear();
        for (name, value) in command.get_envs() {
            script.env(name, value.unwrap_or_default());
        }
        script.env("NIGHTLOOP", command.get_program()).env("SIZE", size).env("OUT", bench.dir.path());
        let output = script.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let read = |name: &str| std::fs::read_to_string(bench.dir.path().join(name)).unwrap_or_default();
        let codes: Vec<i32> = told.lines().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
        let [run, verify, resume, again] = codes[..] else { panic!("{size}: {told}") };
        let texts = [read("run"), read("verify"), read("resume"), read("again")].join("\n--\n");
        assert!([75, 74].contains(&run), "{size}: the disk was not full? {told}{texts}");
        assert!(read("run").contains("space"), "{size}: {texts}");
        assert!([0, 2].contains(&verify), "{size}: {told}{texts}");
        assert_eq!((resume, again), (0, 0), "{size}: {told}{texts}");
    }
}
