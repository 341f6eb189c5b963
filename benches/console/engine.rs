//! The same loop three times: with nobody watching, with a console in the process, with a viewer that is stuck.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nightloop::agent::rehearsal::Speed;
use nightloop::console::feed::Update;
use nightloop::console::model::Screen;
use nightloop::console::scene::Link;
use nightloop::console::source;
use nightloop::console::theme::Theme;
use nightloop::console::update::Msg;
use nightloop::engine::control::client;
use nightloop::engine::declaration::read_declaration;
use nightloop::engine::host::{self, Hosted, Wanted};
use nightloop::engine::places::StateRoot;
use nightloop::tool::reaper;

use super::operator::Operator;
use super::{draw, row, terminal};

/// The engine starts its reaper from the program it runs in.
pub fn serve_as_reaper() {
    let mut arguments = std::env::args().skip(1);
    if let (Some(reaper::SUBCOMMAND), Some(run)) = (arguments.next().as_deref(), arguments.next()) {
        let _ = reaper::reap_main(&run);
        std::process::exit(0);
    }
}

const LOOP: &str = r#"spec: "1.0"
name: bench
goal: "Keep going."
acceptance_criteria:
  - { id: done, text: "Never.", check: ["sh", "check.sh"] }
halting_certificates: [EXACT]
residual: { command: ["sh", "residual.sh"] }
rung_target: 641
budget: { max_iterations: ITERATIONS, max_total_tool_calls: 1000000, max_total_seconds: 86400 }
agents: { model: { backend: rehearsal, script: rehearsal.yaml } }
"#;

const SCRIPT: &str = r#"rehearsal: 1
model: rehearsal-1
steps:
  - role: scout
    turns:
      - text: "I look at what is there, and plan the next line."
        calls: [{ tool: submit_scout_report, input: { plan: ["Append a line."] } }]
  - role: solver
    turns:
      - calls: [{ tool: bash, input: { command: "echo line >> work.txt" } }]
      - calls: [{ tool: submit_solver_report, input: { intent: "i", actions: ["Appended a line."] } }]
  - role: skeptic
    turns:
      - calls: [{ tool: submit_skeptic_report, input: { status: FAIL, succeeded: [], failed: [], open_questions: [] } }]
"#;

fn start(dir: &Path, name: &str, iterations: usize) -> Hosted {
    let workspace = dir.join(name);
    fs::create_dir_all(&workspace).unwrap();
    fs::write(workspace.join("loop.yaml"), LOOP.replace("ITERATIONS", &iterations.to_string())).unwrap();
    fs::write(workspace.join("rehearsal.yaml"), SCRIPT).unwrap();
    fs::write(workspace.join("check.sh"), "exit 1\n").unwrap();
    fs::write(workspace.join("residual.sh"), "echo 1\n").unwrap();
    let declaration = Box::new(read_declaration(&workspace.join("loop.yaml")).unwrap());
    host::host(&StateRoot::at(dir.join("state")), Wanted::New { workspace, declaration }, Speed::Instant).unwrap()
}

fn alone(dir: &Path, name: &str, iterations: usize) -> Duration {
    let started = Instant::now();
    start(dir, name, iterations).join().unwrap();
    started.elapsed()
}

/// A console in the same process, that draws as often as it would for a local terminal.
fn watched(dir: &Path, name: &str, iterations: usize) -> (Duration, u64, u64) {
    let started = Instant::now();
    let hosted = start(dir, name, iterations);
    let mut source = source::local(&hosted, "bench");
    let console = std::thread::spawn(move || {
        let mut operator = Operator::before(Screen::Run, Theme::dark(), (120, 40));
        let mut terminal = terminal();
        let mut drawn = Instant::now();
        while let Some(updates) = source.updates.blocking_recv() {
            let over = updates.iter().any(|update| matches!(update, Update::Ended));
            let lost = updates.iter().find(|update| matches!(update, Update::Linked(Link::Lost(_))));
            assert!(lost.is_none(), "the console lost the run: {lost:?}");
            operator.tell(Msg::Feed(updates));
            if drawn.elapsed() >= Duration::from_millis(33) {
                draw(&mut terminal, &operator);
                drawn = Instant::now();
            }
            if over {
                break;
            }
        }
        terminal.stats()
    });
    hosted.join().unwrap();
    let took = started.elapsed();
    let stats = console.join().unwrap();
    (took, stats.frames, stats.bytes)
}

/// A viewer at the socket that has asked for everything and reads nothing.
fn stuck(dir: &Path, name: &str, iterations: usize) -> Duration {
    let started = Instant::now();
    let hosted = start(dir, name, iterations);
    // The socket opens a moment after the run.
    let viewer = loop {
        match client::connect(hosted.run_dir.path(), "stuck", false, Some(0)) {
            Ok(viewer) => break viewer,
            Err(error) => assert!(!hosted.is_over() && started.elapsed() < Duration::from_secs(5), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    hosted.join().unwrap();
    let took = started.elapsed();
    drop(viewer);
    took
}

pub fn with_and_without(iterations: usize) {
    let dir = tempfile::tempdir().unwrap();
    let (mut bare, mut seen, mut blocked) = (Duration::MAX, (Duration::MAX, 0, 0), Duration::MAX);
    // The best of three in turn: whatever else the machine does falls on all of them.
    for round in 0..3 {
        bare = bare.min(alone(dir.path(), &format!("alone-{round}"), iterations));
        seen = seen.min(watched(dir.path(), &format!("watched-{round}"), iterations));
        blocked = blocked.min(stuck(dir.path(), &format!("stuck-{round}"), iterations));
    }
    let ratio = |took: Duration| took.as_secs_f64() / bare.as_secs_f64();
    let each = bare.as_secs_f64() * 1_000.0 / iterations as f64;
    row(&format!("**engine, {iterations} iterations**, nobody watches"), &format!("{each:.1} ms an iteration"));
    row(
        "the same, a console in the process",
        &format!("{:.2} times as long ({} frames, {} kB drawn)", ratio(seen.0), seen.1, seen.2 / 1_000),
    );
    row("the same, a viewer that reads nothing", &format!("{:.2} times as long", ratio(blocked)));
}
