//! An agent program as loop.yaml declares it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::models::Catalogue;
use crate::agent::{Price, Usage, acp, cli};
use crate::engine::setup::Setup;
use crate::model::decimal::Exact;
use crate::model::loop_file::{AgentDecl, BackendName, ProgramProfile, PromptBy};

/// The longest silence when loop.yaml does not say: a build may take its time.
const DEFAULT_SILENCE: Duration = Duration::from_secs(900);
/// The longest turn when loop.yaml does not say.
const DEFAULT_TURN: Duration = Duration::from_secs(4 * 3600);
/// A program as declared, ready to be started.
#[derive(Debug, Clone)]
pub struct Program {
    pub profile: ProgramProfile,
    pub speaks_acp: bool,
    pub argv: Vec<String>,
    pub prompt_by: Option<PromptBy>,
    /// Variables of our environment that it may see.
    pub env: Vec<String>,
    /// Folders it may write besides the workspace.
    pub write: Vec<PathBuf>,
    pub silence: Duration,
    pub turn_limit: Duration,
    pub model: Option<String>,
    /// Only its price is used.
    pub setup: Setup,
    /// What models cost.
    prices: Option<Arc<Catalogue>>,
}

impl Program {
    pub fn of(decl: &AgentDecl, price: Option<Price>) -> Self {
        let seconds = |given: Option<u64>, usual: Duration| given.map_or(usual, Duration::from_secs);
        Self {
            profile: decl.program_profile(),
            speaks_acp: decl.backend == BackendName::Acp,
            argv: decl.command.clone().unwrap_or_default(),
            prompt_by: decl.prompt,
            env: decl.env.clone(),
            write: decl.write.iter().map(PathBuf::from).collect(),
            silence: seconds(decl.silence_seconds, DEFAULT_SILENCE),
            turn_limit: seconds(decl.turn_seconds, DEFAULT_TURN),
            model: decl.model.clone(),
            setup: Setup { price, ..Setup::default() },
            prices: None,
        }
    }

    /// The same, knowing what models cost.
    #[must_use]
    pub fn with_prices(self, prices: &Arc<Catalogue>) -> Self {
        Self { prices: Some(Arc::clone(prices)), ..self }
    }

    pub const fn backend_name(&self) -> &'static str {
        if self.speaks_acp { BackendName::Acp.name() } else { BackendName::Command.name() }
    }

    /// The program's file name, for the record.
    pub fn name(&self) -> String {
        let program = self.argv.first().map_or("", String::as_str);
        program.rsplit('/').next().unwrap_or(program).to_owned()
    }

    /// What is known of it as a program that speaks ACP.
    pub fn acp(&self) -> Option<&'static acp::profile::Profile> {
        self.speaks_acp.then(|| acp::profile::of(&self.name())).flatten()
    }

    /// Is it Claude Code, by itself or behind ACP?
    pub fn is_claude(&self) -> bool {
        self.profile == ProgramProfile::Claude
            || self.acp().is_some_and(|row| row.folders.iter().any(|own| own == ".claude"))
    }

    /// Folders that it may write besides the workspace: its own, and what is declared. `~` is the home folder.
    pub fn folders(&self) -> Vec<PathBuf> {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let own: Vec<&str> = match self.acp() {
            Some(row) => row.folders.iter().map(String::as_str).collect(),
            None if self.speaks_acp => Vec::new(),
            None => cli::own_folders(self.profile).to_vec(),
        };
        let own = own.into_iter().filter_map(|folder| Some(home.as_ref()?.join(folder)));
        let declared = self.write.iter().map(|folder| match (folder.strip_prefix("~"), &home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => folder.clone(),
        });
        own.chain(declared).collect()
    }

    /// Files of its own outside those folders, as far as they are there.
    pub fn files(&self) -> Vec<PathBuf> {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let own: Vec<&str> = match self.acp() {
            Some(row) => row.files.iter().map(String::as_str).collect(),
            None if !self.speaks_acp && self.profile == ProgramProfile::Claude => vec![".claude.json"],
            None => Vec::new(),
        };
        let own = own.into_iter().filter_map(|file| Some(home.as_ref()?.join(file)));
        own.filter(|file| file.is_file()).collect()
    }

    /// Is it known what a turn costs: by its own figure, or by a declared price?
    pub fn tells_cost(&self) -> bool {
        self.setup.price.is_some() || self.has_own_figure()
    }

    fn has_own_figure(&self) -> bool {
        let own_figure =
            matches!(self.profile, ProgramProfile::Claude | ProgramProfile::Opencode | ProgramProfile::Aider);
        own_figure && !self.speaks_acp
    }

    /// What a turn cost that ended without the program's own figure.
    pub fn cost(&self, usage: &Usage, model: Option<&str>) -> Option<Exact> {
        if self.setup.price.is_some() {
            return self.setup.cost(usage);
        }
        let price = self.prices.as_ref()?.price(model.filter(|_| self.has_own_figure())?)?;
        price.cost(usage, None)
    }

    /// Can it be given our tools?
    pub fn takes_tools(&self) -> bool {
        self.speaks_acp || cli::takes_tools(self.profile)
    }

    /// Can a later turn go on in the same conversation?
    pub fn can_go_on(&self) -> bool {
        self.speaks_acp || self.profile != ProgramProfile::Plain
    }
}
