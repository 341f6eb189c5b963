//! What is typed beside loop.yaml for one run: `run --iterations 5 --item US-003 --agent claude --until 06:30`.
//!
//! Role: put it into the declaration, so that the run, its journal and everything that reads it know one declaration;
//! keep the words for the record. Not its role: what the options mean to a run.
//! Invariant: an unknown name is an error that lists what there is, before anything starts.

use std::path::Path;

use clap::Args;

use crate::engine::declaration::Declaration;
use crate::engine::error::EngineError;
use crate::model::loop_file::{self, Agents, BackendName, LoopFile, TimeOfDay};
use crate::model::prd::{self, Prd};
use crate::playbook;
use crate::workspace::document;

use super::init::agent::{self, Agent};

/// How many ids an error lists.
const MOST_LISTED: usize = 30;

#[derive(Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "In place of what loop.yaml says, for this run")]
pub struct Options {
    /// At most this many iterations; where loop.yaml allows more, `nightloop resume` goes on.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// Work on this item of the PRD alone. May be given several times.
    #[arg(long, value_name = "ID")]
    item: Vec<String>,
    /// Who does all the work: an agent that loop.yaml declares, or a name that `init --agent` knows. With --goal also the
    /// command of an agent program.
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// The model of every agent.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Stop at this local time, once what is begun is finished; `nightloop resume` goes on.
    #[arg(long, value_name = "HH:MM")]
    until: Option<TimeOfDay>,
}

impl Options {
    /// Puts what was typed into the declaration.
    pub fn apply(&self, here: &Path, declaration: &mut Declaration, has_goal: bool) -> Result<(), EngineError> {
        let file = &mut declaration.file;
        let mut typed = Vec::new();
        if let Some(most) = self.iterations {
            // More than loop.yaml allows is a higher limit; fewer are enough for today.
            if most >= file.budget_in_force().limits.max_iterations {
                file.budget.max_iterations = Some(most);
            } else {
                file.stop_when.get_or_insert_default().iterations = Some(most);
            }
            typed.push(format!("--iterations {most}"));
        }
        if !self.item.is_empty() {
            only_items(here, file, &self.item)?;
            typed.extend(self.item.iter().map(|id| format!("--item {id}")));
        }
        if let Some(name) = &self.agent {
            // A loop without a file was made with it.
            if !has_goal {
                only_agent(file, name)?;
            }
            typed.push(format!("--agent {name}"));
        }
        if let Some(model) = &self.model {
            declaration.notes.extend(with_model(file, model)?);
            typed.push(format!("--model {model}"));
        }
        if let Some(at) = self.until {
            file.stop_when.get_or_insert_default().at = Some(at);
            typed.push(format!("--until {at}"));
        }
        declaration.typed = typed;
        Ok(())
    }
}

fn only_items(here: &Path, file: &mut LoopFile, ids: &[String]) -> Result<(), EngineError> {
    let Some(items_file) = playbook::of(file.playbook).items_file(file).map(str::to_owned) else {
        return Err(EngineError::usage(
            format!("--item is for the prd playbook, and this loop runs {}", file.playbook.name()),
            "leave --item out",
        ));
    };
    let missing = || format!("{items_file} does not exist");
    let read = document::read(here, &items_file, prd::MOST_BYTES)
        .and_then(|bytes| bytes.ok_or_else(missing))
        .and_then(|bytes| Prd::read(&bytes).map_err(|e| e.diagnostic(&items_file).to_string()));
    let prd = read.map_err(|why| EngineError::usage(why, "--item names an item of that file"))?;
    if let Some(unknown) = ids.iter().find(|id| prd.item(id).is_none()) {
        let known: Vec<&str> = prd.items().iter().map(|item| item.id.as_str()).collect();
        return Err(EngineError::usage(
            format!("{items_file} has no item `{unknown}`"),
            format!("its items: {}", listed(&known)),
        ));
    }
    file.prd.get_or_insert_default().only = ids.to_vec();
    Ok(())
}

/// The first of them, and how many more there are.
pub fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(MOST_LISTED).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// One agent for all roles; the others are not asked for their keys.
fn only_agent(file: &mut LoopFile, name: &str) -> Result<(), EngineError> {
    let declared = file.agents.get(name).map(|(name, agent)| (name.to_owned(), agent.clone()));
    let agent = match (declared, Agent::parse(name)) {
        (Some(declared), _) => declared,
        (None, Ok(known)) => {
            let line = known.line().unwrap_or_else(|| agent::USUAL.to_owned());
            let made = loop_file::parse(&format!("agents:\n  {name}: {line}\n"), "--agent");
            let made = made.map_err(EngineError::Declaration)?.agents;
            let agent = made.get(name).map(|(_, agent)| agent.clone());
            (name.to_owned(), agent.ok_or_else(|| EngineError::Internal(format!("no agent {name}")))?)
        }
        (None, Err(known)) => {
            let names: Vec<&str> = file.agents.names().collect();
            return Err(EngineError::usage(
                format!("there is no agent `{name}`"),
                format!(
                    "declared in loop.yaml: {}; known besides: {}",
                    listed(&names),
                    known.trim_start_matches("one of: ")
                ),
            ));
        }
    };
    file.agents = Agents::from_iter([agent]);
    file.roles.clear();
    Ok(())
}

/// The model of every agent. A price belongs to the model that it was declared for.
fn with_model(file: &mut LoopFile, model: &str) -> Result<Vec<String>, EngineError> {
    if model.trim().is_empty() || model.starts_with('-') {
        return Err(EngineError::usage(
            format!("`{model}` is no name of a model"),
            "for example --model claude-opus-5-5",
        ));
    }
    let scripted = file.agents.iter().find(|(_, agent)| agent.backend == BackendName::Rehearsal);
    if let Some((name, _)) = scripted {
        return Err(EngineError::usage(
            format!("the agent `{name}` plays a script, and has no other model"),
            "name another agent with --agent, or leave --model out",
        ));
    }
    let mut notes = Vec::new();
    let agents: Agents = file
        .agents
        .iter()
        .map(|(name, agent)| {
            let mut agent = agent.clone();
            let other = agent.model.as_deref() != Some(model);
            if other && agent.price.take().is_some() {
                notes.push(format!(
                    "the price of `{name}` was declared for another model, and does not count for {model}"
                ));
            }
            agent.model = Some(model.to_owned());
            (name.to_owned(), agent)
        })
        .collect();
    file.agents = agents;
    Ok(notes)
}
