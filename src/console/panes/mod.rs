//! The panes: each one thing an operator looks at. A pane keeps only where the reader is in it.

pub mod agent;
pub mod changes;
pub mod evidence;
pub mod learnings;
pub mod list;
pub mod overview;
pub mod plan;
pub mod runs;
pub mod timeline;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::action::{Action, Scope};
use super::cmd::{Cmd, Loaded};
use super::scene::{News, Scene};

/// The panes by their number key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PaneId {
    Runs,
    Overview,
    Agent,
    Learnings,
    Plan,
    Evidence,
    Timeline,
    Changes,
}

impl PaneId {
    /// In the order of their keys, 1 to 7, then 0.
    pub const ALL: [Self; 8] = [
        Self::Overview,
        Self::Agent,
        Self::Learnings,
        Self::Plan,
        Self::Evidence,
        Self::Timeline,
        Self::Changes,
        Self::Runs,
    ];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Runs => "Runs",
            Self::Overview => "Overview",
            Self::Agent => "Agent",
            Self::Learnings => "Learnings",
            Self::Plan => "Plan",
            Self::Evidence => "Evidence",
            Self::Timeline => "Timeline",
            Self::Changes => "Changes",
        }
    }

    pub const fn key(self) -> char {
        match self {
            Self::Runs => '0',
            Self::Overview => '1',
            Self::Agent => '2',
            Self::Learnings => '3',
            Self::Plan => '4',
            Self::Evidence => '5',
            Self::Timeline => '6',
            Self::Changes => '7',
        }
    }

    /// Whose actions work here besides the global ones.
    pub const fn scope(self) -> Scope {
        match self {
            Self::Runs => Scope::Runs,
            Self::Overview => Scope::Overview,
            Self::Agent => Scope::Agent,
            Self::Learnings => Scope::Learnings,
            Self::Plan => Scope::Plan,
            Self::Evidence => Scope::Evidence,
            Self::Timeline => Scope::Timeline,
            Self::Changes => Scope::Changes,
        }
    }
}

/// One pane.
pub trait Pane {
    /// A key of the operator that is not global. What it does not know it ignores.
    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Cmd>;

    /// Something about the run is new. Called for every pane, shown or not.
    fn learn(&mut self, _news: News<'_>) {}

    /// Something that was asked for has been read.
    fn take(&mut self, _loaded: &Loaded) {}

    /// It is shown, or what it shows may have changed: ask for what is missing. Called before each frame
    /// that follows a change; must return nothing when everything is there or already asked for.
    fn refresh(&mut self, _scene: &Scene<'_>) -> Vec<Cmd> {
        Vec::new()
    }

    /// The operator searches for this text; empty: no more.
    fn search(&mut self, _text: &str, _scene: &Scene<'_>) {}

    /// How many rows it was given, so that pages can be turned. Called before `act` and `view`.
    fn resize(&mut self, _area: Rect) {}

    /// Draws itself, frame included. Pure.
    fn view(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>);
}
