//! The command line: one file per command, one place for exit codes and errors.

mod answer;
mod attach;
mod auto;
mod clues;
mod completions;
mod demo;
mod doctor;
mod export;
mod goal;
mod headless;
mod hold;
mod inbox;
mod init;
mod item;
mod keys;
mod mcp;
mod order;
mod outcome;
mod pause;
mod ready;
mod rehearse;
mod replay;
mod resume;
mod rules;
mod run;
mod runs;
mod select;
mod status;
mod steer;
mod stop;
mod text;
mod themes;
mod typed;
mod undo;
mod verify;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::console::screens::welcome::Choice;
use crate::engine::error::EngineError;
use crate::engine::genesis;
use crate::engine::offline;
use crate::engine::places::StateRoot;
use crate::engine::resources;
use crate::model::safe::Safe;
#[cfg(target_os = "linux")]
use crate::tool::launcher;
use crate::tool::reaper;
use crate::workspace::plain;

/// Runs agent loops until there is proof that they are done, or a recorded reason to stop.
#[derive(Debug, Parser)]
#[command(name = "nightloop", version, about, max_term_width = 100, disable_help_subcommand = true)]
struct Arguments {
    /// Work in this directory instead of the current one.
    #[arg(short = 'C', long, global = true, value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show a whole run in a fresh directory, offline and without a key.
    Demo(demo::Options),
    /// Write a commented loop.yaml to start from.
    Init(init::Options),
    /// Start the loop that loop.yaml declares.
    Run(run::Options),
    /// Continue a run that was stopped, killed or interrupted.
    Resume(resume::Options),
    /// Ask a running loop to stop: writes scratch/STOP.
    Stop(stop::Options),
    /// Open the console on a running run.
    Attach(attach::Options),
    /// Play a journal back in the console.
    Replay(replay::Options),
    /// List the themes and show them.
    Themes(themes::Options),
    /// Pause a run after its current step, or continue it.
    Pause(pause::Options),
    /// Show the decisions waiting for you.
    Inbox(inbox::Options),
    /// Answer a decision.
    Answer(answer::Options),
    /// Try a stuck item again, with a hint.
    Retry(item::Retry),
    /// Leave a stuck item out of the run.
    Skip(item::Skip),
    /// Replace a stuck item by smaller ones; the old one stays in the file, linked.
    Split(item::Split),
    /// Send a message to the next agent call.
    Steer(steer::Options),
    /// Undo what a finished iteration changed (value playbook, with a git branch of the run's own).
    Undo(undo::Options),
    /// Show what a run is doing, or how it ended.
    Status(status::Options),
    /// List the runs of this user.
    Runs(runs::Options),
    /// List the remembered `always` rules of this workspace, or forget one.
    Rules(rules::Options),
    /// Check offline whether a run can be trusted, and say what is proven.
    Verify(verify::Options),
    /// Write a run into one file that `verify` checks on any machine.
    Export(export::Options),
    /// Show the key that your runs are signed with, or export its public part.
    Keys(keys::Options),
    /// Try this loop with a scripted model in a copy of the workspace, at no cost and with chosen faults.
    Rehearse(rehearse::Options),
    /// Look for anything that would keep a loop from running well.
    Doctor(doctor::Options),
    /// Offer a turn's tools to an agent program, over MCP on standard input and output.
    Mcp,
    /// Print a completion script for your shell.
    Completions(completions::Options),
    /// Print the manual page (roff).
    Man,
    /// Ends what a killed engine left behind. Started by the engine itself.
    #[command(name = reaper::SUBCOMMAND, hide = true)]
    Reap { marker: String },
    /// Starts commands inside the sandbox. Started by the engine itself.
    #[cfg(target_os = "linux")]
    #[command(name = launcher::SUBCOMMAND, hide = true)]
    Launch { engine: u32 },
}

/// Parses the arguments, runs the command, returns the exit code.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(text::fault));
    resources::heed_size_limit();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors; a wrong word is exit code 64.
            let code = if error.use_stderr() { ExitCode::from(64) } else { ExitCode::SUCCESS };
            // The complaint echoes words: each is made one harmless line first.
            let words = std::env::args_os().map(|word| Safe::line_of(word.as_encoded_bytes()).to_string());
            text::parser(&Arguments::try_parse_from(words).err().unwrap_or(error));
            return code;
        }
    };
    #[cfg(target_os = "linux")]
    launcher::ourselves();
    let here = arguments.directory;
    let Some(command) = arguments.command else { return finish(console(&here)) };
    let result = match command {
        Command::Attach(options) => attach::main(&here, &options),
        Command::Replay(options) => replay::main(&here, &options),
        Command::Themes(options) => themes::main(&options),
        Command::Demo(options) => demo::main(&options),
        Command::Init(options) => init::main(&here, &options),
        Command::Run(options) => run::main(&here, &options),
        Command::Resume(options) => resume::main(&here, &options),
        Command::Stop(options) => stop::main(&here, &options),
        Command::Pause(options) => pause::main(&here, &options),
        Command::Inbox(options) => inbox::main(&here, &options),
        Command::Answer(options) => answer::main(&here, &options),
        Command::Retry(options) => item::retry(&here, &options),
        Command::Skip(options) => item::skip(&here, &options),
        Command::Split(options) => item::split(&here, &options),
        Command::Steer(options) => steer::main(&here, &options),
        Command::Undo(options) => undo::main(&here, &options),
        Command::Status(options) => status::main(&here, &options),
        Command::Runs(options) => runs::main(&options),
        Command::Rules(options) => rules::main(&here, &options),
        Command::Verify(options) => verify::main(&here, &options),
        Command::Export(options) => export::main(&here, &options),
        Command::Keys(options) => keys::main(&options),
        Command::Rehearse(options) => rehearse::main(&here, &options),
        Command::Doctor(options) => doctor::main(&here, &options),
        Command::Mcp => mcp::main(),
        Command::Completions(options) => completions::main(&options),
        Command::Man => completions::man(),
        Command::Reap { marker } => return reaper::reap_main(&marker),
        #[cfg(target_os = "linux")]
        Command::Launch { engine } => return launcher::inside::main(engine),
    };
    finish(result)
}

fn finish(result: Outcome) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(EngineError::AlreadyMet(said)) => {
            text::line(said);
            ExitCode::SUCCESS
        }
        Err(error) => {
            text::error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

/// The console on this directory: its run where one goes on, its loop where one is declared, else a welcome.
fn console(here: &Path) -> Outcome {
    let root = StateRoot::locate()?;
    let workspace = genesis::canonical_workspace(here)?;
    let running = root.run_of(&workspace).filter(|run| offline::is_driven(&root, run));
    if !watch::has_terminal() {
        return match running {
            Some(_) => status::main(here, &status::Options::default()),
            None => {
                Err(EngineError::usage("nothing to do without a terminal", "`nightloop --help` lists the commands"))
            }
        };
    }
    let look = watch::Look::default();
    if let Some(run) = running.filter(|_| !hold::is_held()) {
        return watch::over_other_run(&look, &run, false);
    }
    if plain::kind(&workspace, "loop.yaml").is_ok_and(|kind| kind.is_some()) {
        return run::main(here, &run::Options::default());
    }
    match watch::welcome(&look)? {
        Some(Choice::Demo) => again(&["demo"]),
        Some(Choice::Init) => init::main(here, &init::Options::default()),
        Some(Choice::Runs | Choice::Help | Choice::Quit) | None => Ok(0),
    }
}

/// Becomes this program with other arguments.
fn again(arguments: &[&str]) -> Outcome {
    use std::os::unix::process::CommandExt as _;
    let program = std::env::current_exe().map_err(|e| EngineError::Internal(format!("no program: {e}")))?;
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(EngineError::Internal(format!("cannot continue: {error}")))
}

fn command() -> clap::Command {
    Arguments::command()
}

/// What a command returns: an exit code, or an error that has one.
type Outcome = Result<u8, EngineError>;
