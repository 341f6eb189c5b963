//! `nightloop doctor`: what would keep a loop from running well. First form: looks, spends nothing.

use std::path::Path;

use clap::Args;

use crate::engine::error::EngineError;
use crate::engine::places::StateRoot;
use crate::engine::session::read_declaration;
use crate::engine::signals::STOP_FILE;
use crate::model::loop_file::{BackendName, LoopFile, SandboxDecl};
use crate::tool::sandbox;

use super::{Outcome, text};

#[derive(Debug, Args)]
pub struct Options {}

pub fn main(here: &Path, _: &Options) -> Outcome {
    let mut findings = Findings::default();
    let root = StateRoot::locate()?;
    findings.note(writable(root.path()), &format!("state directory {}", root.path().display()));
    findings.note(writable(here), &format!("workspace {}", here.display()));
    let unattended = sandbox::decide(&SandboxDecl::default(), true).map(|_| ()).map_err(|refusal| refusal.message);
    findings.note(unattended, &format!("sandbox {}", sandbox::detect()));
    findings.note(program("sh"), "a POSIX shell");
    findings.note(program("git"), "git (for you; the engine does not need it)");
    if here.join(STOP_FILE).exists() {
        findings.note(Err(format!("{STOP_FILE} exists: a loop would stop at once")), "no stop file");
    }
    match read_declaration(&here.join("loop.yaml")) {
        Ok(declaration) => {
            findings.note(Ok(()), "loop.yaml can be read");
            declared(here, &declaration.file, &mut findings);
        }
        Err(error @ EngineError::Usage { .. }) => text::line(format!("–  {error}")),
        Err(error) => findings.note(Err(error.to_string()), "loop.yaml"),
    }
    logind(&mut findings);
    Ok(u8::from(findings.problems > 0))
}

#[derive(Default)]
struct Findings {
    problems: usize,
}

impl Findings {
    fn note(&mut self, result: Result<(), String>, what: &str) {
        match result {
            Ok(()) => text::line(format!("✓  {what}")),
            Err(why) => {
                self.problems += 1;
                text::line(format!("✗  {what}: {}", text::safe(&why)));
            }
        }
    }
}

fn declared(here: &Path, file: &LoopFile, findings: &mut Findings) {
    for (name, agent) in file.agents.iter() {
        match agent.backend {
            BackendName::Anthropic => {
                let variable = agent.api_key_env.as_deref().unwrap_or("ANTHROPIC_API_KEY");
                let key = std::env::var_os(variable).filter(|key| !key.is_empty()).map(|_| ());
                findings.note(key.ok_or_else(|| format!("{variable} is not set")), &format!("agent {name}: a key"));
            }
            BackendName::Openai | BackendName::Command | BackendName::Acp => {}
            BackendName::Rehearsal => {
                let script = agent.script.as_deref().unwrap_or_default();
                let there = here.join(script).is_file();
                findings.note(
                    if there { Ok(()) } else { Err("not found".into()) },
                    &format!("agent {name}: script {script}"),
                );
            }
        }
    }
    let northstar = here.join(file.northstar_file());
    if file.spec() == crate::model::learnings::SpecVersion::V2 {
        let parsed = std::fs::read_to_string(&northstar)
            .map_err(|e| e.to_string())
            .and_then(|text| crate::model::northstar::parse(&text).map(|_| ()).map_err(|e| e.to_string()));
        findings.note(parsed, file.northstar_file());
    }
}

fn writable(dir: &Path) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
    tempfile::Builder::new().prefix(".nightloop-").tempfile_in(dir).map(|_| ()).map_err(|e| e.to_string())
}

fn program(name: &str) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    if found { Ok(()) } else { Err("not found in PATH".to_owned()) }
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
