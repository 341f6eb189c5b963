//! The real program on a real pseudo-terminal: how soon it shows something, and how much memory it takes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::operator::fixtures;
use super::{millis, row, share};

/// The program, its screen, and when the first sign came.
struct Shown {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    started: Instant,
    bytes: mpsc::Receiver<(Instant, Vec<u8>)>,
    screen: vt100::Parser,
    first: Option<Duration>,
}

impl Shown {
    fn start(arguments: &[&str], dir: &Path, state: &Path) -> Self {
        let size = PtySize { rows: 40, cols: 120, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_nightloop"));
        command.args(arguments);
        command.cwd(dir);
        command.env("TERM", "xterm-256color");
        // Named, so that the terminal need not be asked: this one answers nothing.
        command.env("NIGHTLOOP_THEME", "dark");
        command.env("NIGHTLOOP_STATE_DIR", state);
        command.env("NIGHTLOOP_CONFIG_DIR", state.join("none"));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, bytes) = mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send((Instant::now(), buffer[..count].to_vec())).is_err() {
                    return;
                }
            }
        });
        let started = Instant::now();
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let screen = vt100::Parser::new(40, 120, 0);
        Self { child, master: pair.master, started, bytes, screen, first: None }
    }

    /// When this text was first on the screen, from the start on.
    fn until(&mut self, text: &str) -> Duration {
        loop {
            let (when, bytes) = self.bytes.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| {
                panic!("`{text}` never came:\n{}", self.screen.screen().contents());
            });
            let after = when.duration_since(self.started);
            self.first.get_or_insert(after);
            self.screen.process(&bytes);
            if self.screen.screen().contents().contains(text) {
                return after;
            }
        }
    }

    fn press(&mut self, keys: &str) {
        let mut writer = self.master.take_writer().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
    }

    /// Leaves by the operator's key, or by force where that does not help.
    fn end(mut self) {
        self.press("q");
        let deadline = Instant::now() + Duration::from_secs(5);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn workspace(dir: &Path) {
    for (name, text) in [
        ("loop.yaml", include_str!("../../assets/demo/swarm/loop.yaml")),
        ("NORTHSTAR.md", include_str!("../../assets/demo/swarm/NORTHSTAR.md")),
        ("PRD.md", include_str!("../../assets/demo/swarm/PRD.md")),
        ("rehearsal.yaml", include_str!("../../assets/demo/swarm/rehearsal.yaml")),
        ("slug.sh", include_str!("../../assets/demo/swarm/slug.sh")),
        ("checks/run.sh", include_str!("../../assets/demo/swarm/checks/run.sh")),
        ("checks/count-failing.sh", include_str!("../../assets/demo/swarm/checks/count-failing.sh")),
        ("checks/count-passing.sh", include_str!("../../assets/demo/swarm/checks/count-passing.sh")),
    ] {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

pub fn first_frames() {
    const STARTS: usize = 20;
    let dir = tempfile::tempdir().unwrap();
    let (work, state) = (dir.path().join("work"), dir.path().join("state"));
    fs::create_dir_all(&work).unwrap();
    workspace(&work);
    let recorded = fixtures().join("demo-run-2");
    let recorded = recorded.to_str().unwrap();
    for (what, arguments, text) in [
        ("`nightloop replay` of a run of 316 events", vec!["replay", recorded], "Overview"),
        ("`nightloop run`, the ready screen", vec!["run"], "Nothing has been spent"),
    ] {
        let (mut first, mut whole) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            let mut shown = Shown::start(&arguments, &work, &state);
            whole.push(shown.until(text));
            first.extend(shown.first);
            shown.end();
        }
        let figure = format!(
            "first byte {}, first frame {} (p50 of {STARTS}), slowest {}",
            millis(share(&mut first, 50)),
            millis(share(&mut whole, 50)),
            millis(share(&mut whole, 100))
        );
        row(&format!("**start**: {what}"), &figure);
    }
}

/// Resident memory of a process and of everything below it, in kB.
fn resident(pid: u32) -> Vec<u64> {
    let status = |pid: u32, key: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
        line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok())
    };
    let mut family = vec![pid];
    let all: Vec<u32> =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok()).collect();
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        family.extend(all.iter().filter(|pid| status(**pid, "PPid:") == Some(u64::from(parent))));
        at += 1;
    }
    family.into_iter().filter_map(|pid| status(pid, "VmRSS:")).collect()
}

fn tell(what: &str, all: &[u64]) {
    let (largest, sum) = (all.iter().max().copied().unwrap_or(0), all.iter().sum::<u64>());
    let figure = format!(
        "console and engine {:.1} MB; with the {} small processes beside it {:.1} MB",
        largest as f64 / 1_024.0,
        all.len().saturating_sub(1),
        sum as f64 / 1_024.0
    );
    row(what, &figure);
}

pub fn memory() {
    let dir = tempfile::tempdir().unwrap();
    let (work, state) = (dir.path().join("work"), dir.path().join("state"));
    fs::create_dir_all(&work).unwrap();
    workspace(&work);
    let mut shown = Shown::start(&["run"], &work, &state);
    shown.until("Nothing has been spent");
    tell("**resident memory**, ready screen", &resident(shown.child.process_id().unwrap()));
    shown.end();
    let place = dir.path().join("demo");
    let arguments = ["demo", "--auto", "--speed", "20", "--into", place.to_str().unwrap()];
    let mut shown = Shown::start(&arguments, dir.path(), &state);
    shown.until("certificate EXACT");
    tell("resident memory, the demo at its end", &resident(shown.child.process_id().unwrap()));
    shown.end();
}
