//! `nightloop doctor`: what would keep a loop from running well.
//!
//! Role: look at the machine, the declaration and each declared agent, and say what to do.
//! Not its role: repairing anything.
//!
//! Invariants: it spends nothing (`--online` asks for the list of models, which is free); it shows no secret, only
//! where one is found; exit code 1 when something that is declared would fail.

mod agents;
pub(super) mod programs;

use std::path::Path;

use clap::Args;

use crate::engine::declaration::read_declaration;
use crate::engine::error::EngineError;
use crate::engine::host::runtime;
use crate::engine::network;
use crate::engine::places::{self, StateRoot};
use crate::engine::signals::{self, STOP_FILE};
use crate::model::feasible;
use crate::model::loop_file::{LoopFile, ReachDecl, SandboxDecl};
use crate::tool::sandbox::{self, Sandbox};
use crate::workspace::document;

use super::{Outcome, text};

/// A larger NORTHSTAR.md is refused by its parser.
const MAX_NORTHSTAR: usize = 2 << 20;

#[derive(Debug, Args)]
pub struct Options {
    /// Also ask each model server for its list of models. That costs nothing, but uses the key.
    #[arg(long)]
    online: bool,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let mut findings = Findings::default();
    let root = StateRoot::locate()?;
    findings.note(writable(root.path()), &format!("state directory {}", root.path().display()));
    findings.note(writable(here), &format!("workspace {}", here.display()));
    let unattended = sandbox::decide(&SandboxDecl::default(), true).map(|_| ()).map_err(|refusal| refusal.message);
    findings.note(unattended, &format!("sandbox {}", sandbox::detect()));
    overlays(here, &root, &mut findings);
    reachable(here, &mut findings);
    findings.note(programs::find("sh").map(|_| ()), "a POSIX shell");
    findings.note(programs::find("git").map(|_| ()), "git (for you; the engine does not need it)");
    if signals::stop_is_there(here) {
        findings.note(Err(format!("{STOP_FILE} exists: a loop would stop immediately")), "no stop file");
    }
    match places::prompts() {
        Ok(prompts) => {
            let own: Vec<&str> = prompts.replaced().collect();
            if !own.is_empty() {
                findings.note(Ok(()), &format!("your own prompts: {}", own.join(", ")));
            }
        }
        Err(error) => findings.note(Err(error.to_string()), "your own prompts"),
    }
    let runtime = runtime()?;
    let mut declared = Vec::new();
    match read_declaration(&here.join("loop.yaml")) {
        Ok(declaration) => {
            findings.note(Ok(()), "loop.yaml can be read");
            look_at(here, &declaration.file, &mut findings);
            declared = declaration.file.agents.iter().map(|(_, agent)| agent.program_profile()).collect();
            runtime.block_on(agents::look(here, &declaration.file, options.online, &mut findings));
        }
        Err(error @ EngineError::Usage { .. }) => findings.remark(error.to_string()),
        Err(error) => findings.note(Err(error.to_string()), "loop.yaml"),
    }
    runtime.block_on(programs::installed(here, &declared, &mut findings));
    logind(&mut findings);
    Ok(u8::from(findings.problems > 0))
}

/// What was found, printed as it is found.
#[derive(Default)]
struct Findings {
    problems: usize,
}

impl Findings {
    fn note(&mut self, result: Result<(), String>, what: &str) {
        match result {
            Ok(()) => text::line(format!("✓  {}", text::safe(what))),
            Err(why) => {
                self.problems += 1;
                text::line(format!("✗  {}: {}", text::safe(what), text::safe(&why)));
            }
        }
    }

    /// Something to know; no problem.
    fn remark(&mut self, what: impl AsRef<str>) {
        text::line(format!("–  {}", text::safe(what.as_ref())));
    }
}

fn look_at(here: &Path, file: &LoopFile, findings: &mut Findings) {
    let without: Vec<&str> =
        file.playbook.roles().iter().filter(|role| file.agent_for(**role).is_none()).map(|role| role.name()).collect();
    if !without.is_empty() {
        findings
            .note(Err(format!("none for {}; add one under `agents`", without.join(", "))), "an agent for each role");
    }
    let mut metrics = Vec::new();
    if file.spec() == crate::model::learnings::SpecVersion::V2 {
        let parsed = document::read(here, file.northstar_file(), MAX_NORTHSTAR)
            .and_then(|bytes| bytes.ok_or_else(|| "it does not exist".to_owned()))
            .and_then(|bytes| String::from_utf8(bytes).map_err(|e| e.to_string()))
            .and_then(|text| crate::model::northstar::parse(&text).map_err(|e| e.to_string()));
        metrics = parsed.as_ref().map(|northstar| northstar.metrics.clone()).unwrap_or_default();
        findings.note(parsed.map(|_| ()), file.northstar_file());
    }
    for obstacle in feasible::obstacles(file, &metrics) {
        let said = format!("{} ({})", obstacle.message, obstacle.hint);
        match obstacle.fatal {
            Some(_) => findings.note(Err(said), &format!("{}: this loop cannot succeed", obstacle.key)),
            None => findings.remark(format!("{}: {said}", obstacle.key)),
        }
    }
}

fn writable(dir: &Path) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
    tempfile::Builder::new().prefix(".nightloop-").tempfile_in(dir).map(|_| ()).map_err(|e| e.to_string())
}

/// Without overlays a loop works all the same, but its judges can be trusted less.
fn overlays(here: &Path, root: &StateRoot, findings: &mut Findings) {
    let declared = read_declaration(&here.join("loop.yaml")).map(|read| read.file.sandbox).unwrap_or_default();
    let Ok(in_force) = sandbox::decide(&declared, false) else { return };
    let marker = format!("doctor-{}", std::process::id());
    let workspace = here.canonicalize().unwrap_or_else(|_| here.to_owned());
    let opened = Sandbox::open(&declared, in_force, &workspace, root.path(), Vec::new(), &marker);
    let why = opened.map_or_else(|error| Some(error.to_string()), |sandbox| sandbox.no_overlay());
    match why {
        None => findings.note(Ok(()), "overlays: what checks write stays out of the workspace"),
        Some(why) => findings.remark(format!(
            "overlays are not available: {why}. So checks run in the workspace itself, and what they write stays there; \
             they cannot be replayed with the judges of the start, so changed guards always need a person; and nothing \
             can be held back (`hidden`)"
        )),
    }
}

/// Which hosts commands of this loop may reach through the run's proxy.
fn reachable(here: &Path, findings: &mut Findings) {
    let declared = read_declaration(&here.join("loop.yaml")).map(|read| read.file.sandbox).unwrap_or_default();
    let Some(network) = declared.network.filter(ReachDecl::is_listed) else { return };
    if !sandbox::level().loopback {
        let why = "a network by list needs a network namespace: commands will have no network at all".to_owned();
        return findings.note(Err(why), "network by list");
    }
    let opened = network::open_at_start(Some(&network), here);
    let opened: Vec<String> = opened.into_iter().map(|(hosts, why)| format!("{why} ({} hosts)", hosts.len())).collect();
    let none = "nothing yet: a tool's registry opens once the workspace holds its file";
    let said = if opened.is_empty() { none.to_owned() } else { opened.join(", ") };
    findings.note(Ok(()), &format!("network by list: {said}"));
}

/// systemd may end everything when you log out; a run would not outlive its SSH line.
fn logind(findings: &mut Findings) {
    let Ok(text) = std::fs::read_to_string("/etc/systemd/logind.conf") else { return };
    let kills = text.lines().any(|line| line.trim() == "KillUserProcesses=yes");
    if kills {
        let why = "logind ends your processes when you log out; `loginctl enable-linger` keeps them";
        findings.note(Err(why.to_owned()), "runs outlive your session");
    }
}
