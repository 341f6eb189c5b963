//! Figures, not tests: `cargo bench`. Each line says what was measured and against what.
//!
//! `NIGHTLOOP_BENCH_ITERATIONS` (default 200) and `NIGHTLOOP_BENCH_EVENTS` (default 1,000,000) set the sizes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nightloop::engine::recorded;
use nightloop::evidence::verify::{RenderedPlace, verify};
use nightloop::journal::{self, Draft, RunDir, SystemClock, Tail, Writer, WriterOptions};
use nightloop::machine::event::{
    AgentStarted, Event, IterationBegan, LlmFailed, LlmRequested, PlanWritten, REDUCER_VERSION, RunStarted,
    TreePurpose, TreeTaken,
};
use nightloop::machine::fold::{self, Stamped};
use nightloop::machine::run::RunState;
use nightloop::machine::state::State;
use nightloop::machine::step::{Input, step};
use nightloop::machine::{document, iteration};
use nightloop::model::digest::Digest;
use nightloop::model::ids::{Role, RunId};
use nightloop::model::loop_file::SandboxDecl;
use nightloop::model::{budget, loop_file};
use nightloop::tool::process::{self, Access, CommandSpec};
use nightloop::tool::sandbox::{self, Sandbox};
use tokio_util::sync::CancellationToken;

fn main() {
    let iterations = size("NIGHTLOOP_BENCH_ITERATIONS", 200);
    let events = size("NIGHTLOOP_BENCH_EVENTS", 1_000_000);
    processes();
    appends();
    big_journal(events);
    iteration_overhead(iterations);
}

fn size(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn millis(duration: Duration, per: u64) -> f64 {
    duration.as_secs_f64() * 1_000.0 / per as f64
}

/// A command through the supervisor, against the same command through the standard library.
fn processes() {
    const RUNS: u64 = 200;
    process::become_subreaper();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let started = Instant::now();
    for _ in 0..RUNS {
        let spec = CommandSpec::new(vec!["true".into()], "/", "bench");
        runtime.block_on(process::run(spec, &CancellationToken::new()));
    }
    let ours = started.elapsed();
    let started = Instant::now();
    for _ in 0..RUNS {
        Command::new("true").status().unwrap();
    }
    let bare = started.elapsed();
    let confined = confined(&runtime, RUNS);
    println!(
        "process: {:.2} ms supervised, {:.2} ms in the sandbox, {:.2} ms bare",
        millis(ours, RUNS),
        millis(confined, RUNS),
        millis(bare, RUNS)
    );
}

/// The same command, as a tool of a run wears it.
fn confined(runtime: &tokio::runtime::Runtime, runs: u64) -> Duration {
    let (workspace, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let declared = SandboxDecl::default();
    let in_force = sandbox::decide(&declared, true).unwrap();
    let run = format!("bench-{}", std::process::id());
    let sandbox = Sandbox::open(&declared, in_force, workspace.path(), state.path(), Vec::new(), &run).unwrap();
    let started = Instant::now();
    for _ in 0..runs {
        let mut spec = CommandSpec::new(vec!["true".into()], workspace.path(), "bench");
        spec.confinement = sandbox.for_tool(Access::ReadWrite).unwrap();
        runtime.block_on(process::run(spec, &CancellationToken::new()));
    }
    started.elapsed()
}

fn draft(event: &Event) -> Draft {
    recorded::draft(Some(0), event).unwrap()
}

/// Durable appends, one by one and in groups.
fn appends() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(&dir.path().join("run"), b"{}").unwrap();
    let writer =
        Writer::start(&run, Tail::fresh(run.genesis_digest()), Box::new(SystemClock), WriterOptions::default())
            .unwrap();
    let event = Event::from(requested("it0.scout", 0));
    let started = Instant::now();
    const SINGLE: u64 = 500;
    for _ in 0..SINGLE {
        writer.append_blocking(vec![draft(&event)]).unwrap();
    }
    let single = started.elapsed();
    let started = Instant::now();
    const GROUPS: u64 = 200;
    for _ in 0..GROUPS {
        writer.append_blocking((0..64).map(|_| draft(&event)).collect()).unwrap();
    }
    let grouped = started.elapsed();
    println!(
        "append: {:.2} ms alone, {:.0} events/s in groups of 64",
        millis(single, SINGLE),
        (GROUPS * 64) as f64 / grouped.as_secs_f64()
    );
}

fn requested(call: &str, attempt: u32) -> LlmRequested {
    LlmRequested {
        call: call.to_owned(),
        turn: 0,
        attempt,
        request_sha256: Digest::of(b"request"),
        reserved_tokens: 9_000,
        reserved_usd: None,
        drop_blocks: false,
    }
}

/// Fold and verify of a long journal with a story that holds.
fn big_journal(events: u64) {
    let dir = tempfile::tempdir().unwrap();
    let run_dir = RunDir::create(&dir.path().join("run"), b"{}").unwrap();
    let writer =
        Writer::start(&run_dir, Tail::fresh(run_dir.genesis_digest()), Box::new(SystemClock), WriterOptions::default())
            .unwrap();
    let mut story = Story { writer, state: None };
    story.until_first_call(&run_dir);
    let call = iteration::call_key(0, Role::Scout, None);
    let mut written = 0;
    while written < events {
        let batch: Vec<Event> = (0..500u32)
            .flat_map(|attempt| {
                let failed = LlmFailed {
                    call: call.clone(),
                    turn: 0,
                    attempt,
                    class: nightloop::model::failure::FailureClass::Overloaded,
                    message: "the model server answered 529 overloaded_error: try again".into(),
                    wait_millis: Some(0),
                    usage: None,
                    cost_usd: None,
                    facts: None,
                };
                [Event::from(requested(&call, attempt)), Event::from(failed)]
            })
            .collect();
        written += batch.len() as u64;
        story.append_unfolded(&batch);
    }
    let bytes: u64 =
        fs::read_dir(dir.path().join("run/journal")).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
    let started = Instant::now();
    let mut folded = None;
    for record in journal::read(&run_dir) {
        recorded::fold_record(&mut folded, &record.unwrap()).unwrap();
    }
    let fold = started.elapsed();
    let started = Instant::now();
    let found = verify(&run_dir, None, &RenderedPlace::Nowhere);
    let verified = started.elapsed();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    println!(
        "journal: {} events, {} MB: read, check and fold {:.2} s, verify {:.2} s",
        found.events,
        bytes / 1_000_000,
        fold.as_secs_f64(),
        verified.as_secs_f64()
    );
}

/// Drives the pure machine far enough that an agent call is open.
struct Story {
    writer: Writer,
    state: Option<RunState>,
}

impl Story {
    fn append(&mut self, events: Vec<Event>) {
        let records = self.writer.append_blocking(events.iter().map(draft).collect()).unwrap();
        for (record, event) in records.iter().zip(events) {
            let stamped = Stamped {
                seq: record.seq,
                ts: record.ts.clone(),
                mono_ms: record.mono_ms,
                boot: record.boot.clone(),
                event,
            };
            match &mut self.state {
                None => self.state = Some(nightloop::playbook::start(&stamped).unwrap()),
                Some(state) => fold::apply(state, &stamped).unwrap(),
            }
        }
    }

    fn append_unfolded(&self, events: &[Event]) {
        self.writer.append_blocking(events.iter().map(draft).collect()).unwrap();
    }

    fn until_first_call(&mut self, run_dir: &RunDir) {
        let blob = run_dir.blobs().put(b"{}").unwrap();
        let declared = loop_file::parse(
            "spec: \"1.0\"\ngoal: g\nacceptance_criteria: [{text: t, judge: skeptic}]\nhalting_certificates: [EXACT]\n\
             agents: {a: {backend: anthropic, model: m}}\n",
            "loop.yaml",
        )
        .unwrap();
        self.append(vec![
            RunStarted {
                run: RunId::parse("01M7H10KWR95ZK35MRXDV3VR6T").unwrap(),
                engine_version: "bench".into(),
                reducer_version: REDUCER_VERSION,
                started: "2026-11-16T00:00:00Z".into(),
                loop_sha256: Digest::of(b""),
                budget: budget::effective(&declared.budget, declared.profile),
                declared_text: None,
                typed: Vec::new(),
                end: None,
                declaration: Box::new(declared),
                sandbox: "none".into(),
                overlays: true,
                unaccepted: Vec::new(),
                remembered: Vec::new(),
                warnings: Vec::new(),
                patience: nightloop::model::decision::Patience::STOP,
            }
            .into(),
        ]);
        loop {
            let state = self.state.as_ref().unwrap();
            if state.state == State::DreamGoal && state.baseline.tree.is_none() {
                let taken = TreeTaken {
                    purpose: TreePurpose::Baseline,
                    tree: blob,
                    files: 0,
                    drifted: Vec::new(),
                    changed: Vec::new(),
                    held: false,
                };
                self.append(vec![taken.into()]);
            } else if state.state == State::DreamGoal && state.baseline.residual.is_some() && state.plan.is_none() {
                let sha256 = document::digest(&document::plan(state));
                self.append(vec![PlanWritten { sha256 }.into()]);
            } else if state.state == State::SpawnSubagent {
                break;
            } else {
                let events = step(state, Input::Proceed);
                self.append(events);
            }
        }
        self.append(vec![
            IterationBegan {
                iteration: 0,
                capsule: blob,
                capsule_replay_sha256: blob,
                rebuilt: false,
                bleeds: false,
                carries_questions: true,
            }
            .into(),
        ]);
        self.append(vec![
            AgentStarted {
                call: iteration::call_key(0, Role::Scout, None),
                role: Role::Scout,
                purpose: None,
                subject: None,
                agent: "a".into(),
                backend: "anthropic".into(),
                model: "m".into(),
                system: blob,
                tools: blob,
                message: blob,
                paraphrase: None,
                bounds: None,
            }
            .into(),
        ]);
    }
}

const LOOP: &str = r#"spec: "1.0"
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
      - calls: [{ tool: submit_scout_report, input: { plan: ["Append a line."] } }]
  - role: solver
    turns:
      - calls: [{ tool: bash, input: { command: "echo line >> work.txt" } }]
      - calls: [{ tool: submit_solver_report, input: { intent: "i", actions: ["Appended a line."] } }]
  - role: skeptic
    turns:
      - calls: [{ tool: submit_skeptic_report, input: { status: FAIL, succeeded: [], failed: [], open_questions: [] } }]
"#;

/// Whole iterations against a shell loop that runs the same commands, with memory along the way.
fn iteration_overhead(iterations: u64) {
    let dir = tempfile::tempdir().unwrap();
    let workspace = dir.path().join("work");
    fs::create_dir_all(&workspace).unwrap();
    fs::write(workspace.join("loop.yaml"), LOOP.replace("ITERATIONS", &iterations.to_string())).unwrap();
    fs::write(workspace.join("rehearsal.yaml"), SCRIPT).unwrap();
    fs::write(workspace.join("check.sh"), "exit 1\n").unwrap();
    fs::write(workspace.join("residual.sh"), "echo 1\n").unwrap();
    let started = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_nightloop"))
        .args(["run", "--json"])
        .current_dir(&workspace)
        .env("NIGHTLOOP_STATE_DIR", dir.path().join("state"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let memory = watch(&mut child, iterations);
    assert_eq!(child.wait().unwrap().code(), Some(2), "the loop ends by its budget");
    let ours = started.elapsed();

    let bare_dir = dir.path().join("bare");
    fs::create_dir_all(&bare_dir).unwrap();
    for name in ["check.sh", "residual.sh"] {
        fs::copy(workspace.join(name), bare_dir.join(name)).unwrap();
    }
    let script = format!(
        "i=0; while [ $i -lt {iterations} ]; do bash -c 'echo line >> work.txt'; sh check.sh; sh residual.sh >/dev/null; i=$((i+1)); done"
    );
    let started = Instant::now();
    Command::new("sh").args(["-c", &script]).current_dir(&bare_dir).status().unwrap();
    let bare = started.elapsed();
    println!(
        "iteration: {:.1} ms (3 agent calls over HTTP, 1 tool, 2 checks, all recorded), {:.1} ms for the same commands in a shell loop",
        millis(ours, iterations),
        millis(bare, iterations)
    );
    println!("memory: {} kB after the first iteration, {} kB at the end of {iterations}", memory.0, memory.1);
}

/// Resident memory early and late, in kB.
fn watch(child: &mut std::process::Child, iterations: u64) -> (u64, u64) {
    use std::io::{BufRead, BufReader};
    let status = format!("/proc/{}/status", child.id());
    let (mut first, mut last) = (0, 0);
    let mut began = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        if line.contains("\"type\":\"iteration.began\"") {
            began += 1;
            if began == 2 {
                first = resident(Path::new(&status));
            }
            if began == iterations {
                last = resident(Path::new(&status));
            }
        }
    }
    (first, last)
}

fn resident(status: &Path) -> u64 {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}
