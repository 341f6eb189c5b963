//! `nightloop init`: writes a commented loop.yaml. Never overwrites anything.

pub(super) mod agent;
mod from_prd;
mod template;

use std::path::{Component, Path};

use clap::Args;

use crate::engine::clues;
use crate::engine::error::EngineError;
use crate::model::loop_file;
use crate::model::prd::{self, Prd};
use crate::model::project_check::{self, Inferred};
use crate::model::ready_line::ItemCounts;
use crate::workspace::document;
use crate::workspace::plain::{self, Bits, Durability, FileKind};

use super::doctor::programs;
use super::{Outcome, text};
use agent::Agent;
use template::Template;

#[derive(Debug, Default, Args)]
pub struct Options {
    /// What the loop is for.
    #[arg(long, value_enum, default_value = "green-tests")]
    template: Template,
    /// Make a loop from the items of this prd.json, or of the one found in this folder; its check is inferred from the
    /// project's files.
    #[arg(long, value_name = "PRD", conflicts_with = "template")]
    from: Option<String>,
    /// Who does the work. Default: the API if its key is set, else the first installed agent program.
    #[arg(long, value_parser = Agent::parse, value_name = "AGENT")]
    agent: Option<Agent>,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let has_key = std::env::var_os("ANTHROPIC_API_KEY").is_some_and(|key| !key.is_empty());
    let agent = options.agent.unwrap_or_else(|| Agent::usual(has_key, |program| programs::find(program).is_ok()));
    let by_itself = options.agent.is_none();
    match &options.from {
        Some(file) => from_prd(here, file, agent, by_itself),
        None => from_template(here, options.template, agent, by_itself),
    }
}

fn from_template(here: &Path, template: Template, agent: Agent, by_itself: bool) -> Outcome {
    write_declaration(here, &template.declaration(agent), agent, by_itself)?;
    for (name, content) in template.documents() {
        let path = here.join(name);
        if write_new(here, name, content)? {
            text::line(format!("wrote {}", path.display()));
        }
    }
    text::line(format!("next: {}, then `nightloop doctor` and `nightloop run`", template.to_do()));
    Ok(0)
}

/// A loop for a PRD that is there already. Nothing but loop.yaml is written.
fn from_prd(here: &Path, file: &str, agent: Agent, by_itself: bool) -> Outcome {
    let file = found(here, file)?;
    let prd = read_prd(here, &file)?;
    let checks = project_check::infer(&clues::find(here));
    let line = agent.line().unwrap_or_else(|| agent::USUAL.to_owned());
    let declaration = from_prd::declaration(&prd, &file, &checks, &line);
    // It is made of foreign text: what could not be read again is not written.
    loop_file::parse(&declaration, "loop.yaml").map_err(|e| EngineError::Internal(format!("the declaration: {e}")))?;
    write_declaration(here, &declaration, agent, by_itself)?;
    tell(&prd, &file, &checks);
    Ok(0)
}

fn tell(prd: &Prd, file: &str, checks: &[Inferred]) {
    let counts = prd.counts();
    let next = prd.next_item(&Default::default());
    let order = match next {
        Some(item) => format!("first item: {} ({})", item.id, item.title),
        None => "nothing is left to do: set `passes` to false for the items that are not done".to_owned(),
    };
    let told = ItemCounts::from(prd);
    text::line(text::safe(&format!("{file}: {} items, {} pass; {order}", counts.all, counts.passing)));
    for warning in &told.warnings {
        text::line(warning);
    }
    if told.commands > 0 {
        text::line(format!("{} of them name a command of their own, which is run as well", told.commands));
    }
    if let Some(branch) = &told.branch {
        text::line(format!(
            "branch: {branch}, used with `git: {{ mode: branch }}` in loop.yaml; git is off until then"
        ));
    }
    for check in checks {
        text::line(format!("check: {}, inferred from {}; it runs after every item", check.command(), check.from));
    }
    let own = if checks.is_empty() {
        text::line("check: none was found; without one the run ends with NEED_INFO (exit code 3)");
        "add a check to loop.yaml"
    } else {
        "review the check in loop.yaml"
    };
    text::line(format!("next: {own}, then `nightloop doctor` and `nightloop run`"));
}

/// Where people keep the file, and what they call it.
const FOLDERS: [&str; 8] = ["", "scripts/ralph/", ".ralph/", "ralph/", "plans/", "tasks/", "docs/", ".agent/"];
const NAMES: [&str; 2] = ["prd.json", "feature_list.json"];

/// The file that was named, or the only one of that kind in the folder that was.
fn found(here: &Path, named: &str) -> Result<String, EngineError> {
    let top = Path::new(named).components().all(|part| part == Component::CurDir) && !named.is_empty();
    let place = if top { String::new() } else { in_workspace(here, named)? };
    let kind = |path: &str| plain::kind(here, path).ok().flatten();
    if !top && kind(&place) != Some(FileKind::Folder) {
        return Ok(place);
    }
    let folders: Vec<String> = if top {
        FOLDERS.map(str::to_owned).into()
    } else {
        vec![format!("{place}/"), format!("{place}/scripts/ralph/")]
    };
    let all = folders.iter().flat_map(|folder| NAMES.map(|name| format!("{folder}{name}")));
    let there: Vec<String> = all.filter(|path| kind(path) == Some(FileKind::File)).collect();
    match there.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(EngineError::usage(
            format!("no prd.json was found in {named}: looked in {}", folders.join(" ").trim()),
            "name the file: `nightloop init --from path/to/prd.json`",
        )),
        [first, ..] => Err(EngineError::usage(
            format!("several files could be meant: {}", there.join(", ")),
            format!("name one: `nightloop init --from {first}`"),
        )),
    }
}

/// The path as loop.yaml names it: below this directory, without detours.
fn in_workspace(here: &Path, file: &str) -> Result<String, EngineError> {
    let outside = || {
        EngineError::usage(
            format!("{file} is not a file in {}", here.display()),
            "run `nightloop init --from` in the project directory, with a PRD inside it",
        )
    };
    let path = Path::new(file);
    // An absolute path means the same place by whatever name this directory goes.
    let canonical = here.canonicalize().unwrap_or_else(|_| here.to_owned());
    let inner = match path.is_absolute() {
        true => path.strip_prefix(here).or_else(|_| path.strip_prefix(&canonical)).map_err(|_| outside())?,
        false => path,
    };
    let mut parts = Vec::new();
    for part in inner.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) => parts.push(part.to_str().ok_or_else(outside)?),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    if parts.is_empty() { Err(outside()) } else { Ok(parts.join("/")) }
}

fn read_prd(here: &Path, file: &str) -> Result<Prd, EngineError> {
    let unread = |why: String| EngineError::usage(why, "name a prd.json: `nightloop init --from prd.json`");
    let bytes = document::read(here, file, prd::MOST_BYTES).map_err(unread)?;
    let bytes = bytes.ok_or_else(|| unread(format!("{file} does not exist")))?;
    Prd::read(&bytes).map_err(|e| EngineError::Declaration(e.diagnostic(file)))
}

fn write_declaration(here: &Path, content: &str, agent: Agent, by_itself: bool) -> Result<(), EngineError> {
    let declaration = here.join("loop.yaml");
    if !write_new(here, "loop.yaml", content)? {
        return Err(EngineError::usage(
            format!("{} already exists", declaration.display()),
            "edit it, or run `nightloop init` in another directory",
        ));
    }
    text::line(format!("wrote {}", declaration.display()));
    if let (true, Agent::Program(profile)) = (by_itself, agent) {
        text::line(format!("agent: {}, which is installed here (--agent chooses another)", profile.name()));
    }
    Ok(())
}

/// `false` when something is there already.
fn write_new(here: &Path, name: &str, content: &str) -> Result<bool, EngineError> {
    let failed = |fault: plain::Fault| EngineError::io("cannot write", &here.join(name), fault.into_io());
    if plain::kind(here, name).map_err(failed)?.is_some() {
        return Ok(false);
    }
    plain::put(here, name, content.as_bytes(), Bits::Kept, Durability::Synced).map_err(failed)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prd_lies_in_the_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path();
        let absolute = here.join("plans/prd.json");
        for (file, place) in [
            ("prd.json", "prd.json"),
            ("./prd.json", "prd.json"),
            ("plans//prd.json", "plans/prd.json"),
            (absolute.to_str().unwrap(), "plans/prd.json"),
        ] {
            assert_eq!(in_workspace(here, file).unwrap(), place);
        }
        for file in ["", ".", "../prd.json", "plans/../../prd.json", "/etc/prd.json"] {
            assert!(in_workspace(here, file).is_err(), "{file}");
        }
    }
}
