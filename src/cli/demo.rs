//! `nightloop demo`: a whole run in a fresh directory, offline, with a scripted model and real checks.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::agent::rehearsal::Speed;
use crate::engine::declaration::read_declaration;
use crate::engine::error::EngineError;
use crate::engine::genesis;
use crate::engine::host::Wanted;
use crate::engine::places::StateRoot;
use crate::evidence::verify::{self, RenderedPlace, VerifyVerdict};
use crate::journal::RunDir;
use crate::workspace::plain::{self, Bits, Durability};

use super::headless::Format;
use super::hold::{self, Ground};
use super::run::{Answers, Manner};
use super::watch::{self, Look, Plan};
use super::{Outcome, run, text};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Show {
    /// Scout, Solver and Skeptic repair a script.
    #[default]
    Swarm,
    /// A vision becomes a small tool.
    Value,
    /// A vision becomes a small web service (the value playbook; needs python3).
    Service,
    /// The items of a prd.json, one by one.
    Prd,
    /// An author, a critic and a known fix.
    Micro,
}

#[derive(Debug, Args)]
pub struct Options {
    /// What to show: a playbook, or a web service.
    #[arg(value_enum, default_value = "swarm", value_name = "WHAT")]
    show: Show,
    /// Play the model's pauses this many times faster than written.
    #[arg(long, value_name = "N")]
    speed: Option<f64>,
    /// Put the workspace here instead of a fresh temporary directory.
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Answer the run's questions automatically (the default without a terminal).
    #[arg(long)]
    auto: bool,
    /// Print lines instead of opening the console (the default without a terminal).
    #[arg(long)]
    headless: bool,
    /// Print one JSON object per event.
    #[arg(long, conflicts_with = "headless")]
    json: bool,
    #[command(flatten)]
    look: Look,
}

/// Slow enough to be read, quick enough to be watched.
const CONSOLE_SPEED: f64 = 0.4;
/// How long a question stands before `--auto` answers it, in the console.
const AUTO_PAUSE: Duration = Duration::from_secs(4);

/// The swarm's workspace.
const SWARM: &[(&str, &str)] = &[
    ("loop.yaml", include_str!("../../assets/demo/swarm/loop.yaml")),
    ("NORTHSTAR.md", include_str!("../../assets/demo/swarm/NORTHSTAR.md")),
    ("PRD.md", include_str!("../../assets/demo/swarm/PRD.md")),
    ("rehearsal.yaml", include_str!("../../assets/demo/swarm/rehearsal.yaml")),
    ("slug.sh", include_str!("../../assets/demo/swarm/slug.sh")),
    ("checks/run.sh", include_str!("../../assets/demo/swarm/checks/run.sh")),
    ("checks/count-failing.sh", include_str!("../../assets/demo/swarm/checks/count-failing.sh")),
    ("checks/count-passing.sh", include_str!("../../assets/demo/swarm/checks/count-passing.sh")),
];

/// The value playbook's workspace.
const VALUE: &[(&str, &str)] = &[
    ("loop.yaml", include_str!("../../assets/demo/value/loop.yaml")),
    ("NORTHSTAR.md", include_str!("../../assets/demo/value/NORTHSTAR.md")),
    ("VISION.md", include_str!("../../assets/demo/value/VISION.md")),
    ("PRD.md", include_str!("../../assets/demo/value/PRD.md")),
    ("rehearsal.yaml", include_str!("../../assets/demo/value/rehearsal.yaml")),
];

/// The value playbook's workspace for a web service.
const SERVICE: &[(&str, &str)] = &[
    ("loop.yaml", include_str!("../../assets/demo/service/loop.yaml")),
    ("NORTHSTAR.md", include_str!("../../assets/demo/service/NORTHSTAR.md")),
    ("VISION.md", include_str!("../../assets/demo/service/VISION.md")),
    ("PRD.md", include_str!("../../assets/demo/service/PRD.md")),
    ("rehearsal.yaml", include_str!("../../assets/demo/service/rehearsal.yaml")),
];

/// The prd playbook's workspace.
const PRD: &[(&str, &str)] = &[
    ("loop.yaml", include_str!("../../assets/demo/prd/loop.yaml")),
    ("prd.json", include_str!("../../assets/demo/prd/prd.json")),
    ("greet.sh", include_str!("../../assets/demo/prd/greet.sh")),
    ("checks/sound.sh", include_str!("../../assets/demo/prd/checks/sound.sh")),
    ("checks/names.sh", include_str!("../../assets/demo/prd/checks/names.sh")),
    ("checks/shouts.sh", include_str!("../../assets/demo/prd/checks/shouts.sh")),
    ("checks/refuses.sh", include_str!("../../assets/demo/prd/checks/refuses.sh")),
    ("rehearsal.yaml", include_str!("../../assets/demo/prd/rehearsal.yaml")),
];

/// The micro playbook's workspace.
const MICRO: &[(&str, &str)] = &[
    ("loop.yaml", include_str!("../../assets/demo/micro/loop.yaml")),
    ("count.sh", include_str!("../../assets/demo/micro/count.sh")),
    ("sample.txt", include_str!("../../assets/demo/micro/sample.txt")),
    ("tools/check.sh", include_str!("../../assets/demo/micro/tools/check.sh")),
    ("tools/lint.sh", include_str!("../../assets/demo/micro/tools/lint.sh")),
    ("tools/format.sh", include_str!("../../assets/demo/micro/tools/format.sh")),
    ("rehearsal.yaml", include_str!("../../assets/demo/micro/rehearsal.yaml")),
];

pub fn main(options: &Options) -> Outcome {
    let manner = Manner::of(options.headless, options.json, false);
    let usual = if manner == Manner::Console { Speed::Times(CONSOLE_SPEED) } else { Speed::Instant };
    let speed = match options.speed {
        Some(factor) if factor.is_finite() && factor > 0.0 => Speed::Times(factor),
        Some(factor) => {
            return Err(EngineError::usage(format!("--speed {factor} is not a valid speed"), "use a number above 0"));
        }
        None => usual,
    };
    if manner == Manner::Console && !hold::is_held() {
        return hold::hold(Ground::Terminal);
    }
    let workspace = workspace(options.show, options.into.as_deref())?;
    let declaration = Box::new(read_declaration(&workspace.join("loop.yaml"))?);
    let wanted = Wanted::New { workspace: workspace.clone(), declaration };
    let Manner::Headless(format) = manner else { return in_console(options, &workspace, wanted, speed) };
    let code = run::headless_with(&StateRoot::locate()?, wanted, format, speed, Answers::Demo)?;
    if format == Format::Lines {
        tell(&workspace)?;
    }
    Ok(code)
}

fn in_console(options: &Options, workspace: &Path, wanted: Wanted, speed: Speed) -> Outcome {
    let greeting =
        "The demo: a scripted model with made-up prices; real files and checks. i shows what is waiting for you.";
    let auto = options.auto.then_some(AUTO_PAUSE);
    let plan = Plan { wanted, means: speed.into(), start: true, auto, greeting: Some(greeting.to_owned()) };
    let closed = watch::over_own_run(&options.look, plan)?;
    if !closed.dark {
        tell(workspace)?;
    }
    Ok(closed.code)
}

fn workspace(show: Show, into: Option<&Path>) -> Result<PathBuf, EngineError> {
    let dir = match into {
        Some(dir) => {
            let empty = fs::read_dir(dir).map_or(true, |mut entries| entries.next().is_none());
            if !empty {
                return Err(EngineError::usage(
                    format!("{} is not empty", dir.display()),
                    "the demo needs an empty directory of its own",
                ));
            }
            fs::create_dir_all(dir).map_err(|e| EngineError::io("cannot create the workspace", dir, e))?;
            dir.to_owned()
        }
        None => {
            let temp = std::env::temp_dir();
            let made = tempfile::Builder::new().prefix("nightloop-demo-").tempdir_in(&temp);
            made.map_err(|e| EngineError::io("cannot create the workspace", &temp, e))?.keep()
        }
    };
    let files = match show {
        Show::Swarm => SWARM,
        Show::Value => VALUE,
        Show::Service => SERVICE,
        Show::Prd => PRD,
        Show::Micro => MICRO,
    };
    for (name, content) in files {
        plain::put(&dir, name, content.as_bytes(), Bits::Kept, Durability::Replaceable)
            .map_err(|fault| EngineError::io("cannot write the workspace", &dir, fault.into_io()))?;
    }
    Ok(dir)
}

/// Verifies the run it has just made, and says where everything is.
fn tell(workspace: &Path) -> Result<(), EngineError> {
    let root = StateRoot::locate()?;
    let workspace = genesis::canonical_workspace(workspace)?;
    let Some(run) = root.run_of(&workspace) else { return Ok(()) };
    let run_dir = RunDir::open(&root.run(&run))?;
    let found = verify::verify(&run_dir, Some(&root.anchors()), &RenderedPlace::Workspace(workspace.clone()));
    let verdict = match found.verdict() {
        VerifyVerdict::Ok => "verified: chain, decisions and files agree",
        VerifyVerdict::Tampered => "NOT AS WRITTEN",
        VerifyVerdict::Incomplete => "incomplete",
    };
    text::line(format!("  {verdict} ({} events)", found.events));
    text::line("");
    text::line(format!("workspace  {}", workspace.display()));
    text::line(format!("learnings  {}", workspace.join("AGENTS.md").display()));
    text::line(format!("evidence   {}", workspace.join("evidence/loop").display()));
    text::line(format!("journal    {}", run_dir.path().display()));
    Ok(())
}
