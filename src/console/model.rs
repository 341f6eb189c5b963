//! The whole console as data: the world, the panes, what lies over them.

use ratatui::layout::Rect;

use super::action::Scope;
use super::bars::Message;
use super::cmd::{Cmd, Loaded};
use super::keymap::Keymap;
use super::overlays::{Overlay, Stage};
use super::panes::agent::AgentPane;
use super::panes::changes::ChangesPane;
use super::panes::evidence::EvidencePane;
use super::panes::learnings::LearningsPane;
use super::panes::overview::Overview;
use super::panes::plan::Plan;
use super::panes::runs::Runs;
use super::panes::timeline::TimelinePane;
use super::panes::{Pane, PaneId};
use super::scene::News;
use super::screens::ready::Ready;
use super::screens::welcome::Welcome;
use super::view;
use super::world::World;

/// What fills the screen.
pub enum Screen {
    /// A directory without a loop.
    Welcome(Welcome),
    /// A loop that has not been started.
    Ready(Box<Ready>),
    /// A run.
    Run,
}

/// The panes.
#[derive(Default)]
pub struct Panes {
    pub runs: Runs,
    pub overview: Overview,
    agent: AgentPane,
    learnings: LearningsPane,
    plan: Plan,
    evidence: EvidencePane,
    timeline: TimelinePane,
    pub changes: ChangesPane,
}

impl Panes {
    pub fn get(&self, pane: PaneId) -> &dyn Pane {
        match pane {
            PaneId::Runs => &self.runs,
            PaneId::Overview => &self.overview,
            PaneId::Agent => &self.agent,
            PaneId::Learnings => &self.learnings,
            PaneId::Plan => &self.plan,
            PaneId::Evidence => &self.evidence,
            PaneId::Timeline => &self.timeline,
            PaneId::Changes => &self.changes,
        }
    }

    pub fn get_mut(&mut self, pane: PaneId) -> &mut dyn Pane {
        match pane {
            PaneId::Runs => &mut self.runs,
            PaneId::Overview => &mut self.overview,
            PaneId::Agent => &mut self.agent,
            PaneId::Learnings => &mut self.learnings,
            PaneId::Plan => &mut self.plan,
            PaneId::Evidence => &mut self.evidence,
            PaneId::Timeline => &mut self.timeline,
            PaneId::Changes => &mut self.changes,
        }
    }

    pub fn learn(&mut self, news: News<'_>) {
        for pane in PaneId::ALL {
            self.get_mut(pane).learn(news);
        }
    }

    pub fn take(&mut self, loaded: &Loaded) {
        for pane in PaneId::ALL {
            self.get_mut(pane).take(loaded);
        }
    }
}

/// The console.
pub struct Model {
    pub world: World,
    pub screen: Screen,
    pub panes: Panes,
    pub shown: PaneId,
    pub overlays: Vec<Box<dyn Overlay>>,
    /// The inbox while it is closed, with what was begun in it.
    pub inbox: Option<Box<dyn Overlay>>,
    pub keymap: Keymap,
    /// A line for the operator that goes away with the next key.
    pub message: Option<Message>,
    pub size: Rect,
    pub mouse: bool,
    /// Does the operator look at this terminal? `None`: it does not say.
    pub looked_at: Option<bool>,
    pub last_search: String,
    /// What the terminal's title says.
    pub title: String,
    /// Must a frame be drawn?
    pub dirty: bool,
}

impl Model {
    pub fn new(world: World, keymap: Keymap, screen: Screen) -> Self {
        let mut panes = Panes::default();
        panes.overview.set_keys(&|action| keymap.first_key(action));
        Self {
            world,
            screen,
            panes,
            shown: PaneId::Overview,
            overlays: Vec::new(),
            inbox: None,
            keymap,
            message: None,
            size: Rect::new(0, 0, 80, 24),
            mouse: false,
            looked_at: None,
            last_search: String::new(),
            title: String::new(),
            dirty: true,
        }
    }

    /// Whose keys work, nearest first, when nothing lies over the panes.
    pub fn scopes(&self) -> Vec<Scope> {
        let here = match &self.screen {
            Screen::Welcome(_) | Screen::Ready(_) if self.shown == PaneId::Runs => Scope::Runs,
            Screen::Welcome(_) | Screen::Ready(_) => Scope::Ready,
            Screen::Run => self.shown.scope(),
        };
        let mut scopes = vec![here];
        if matches!(self.world.link, super::scene::Link::Replay { .. }) {
            scopes.push(Scope::Replay);
        }
        scopes.extend([Scope::Move, Scope::Global]);
        scopes
    }

    /// Is a pane shown, rather than the welcome or the ready screen?
    pub fn shows_pane(&self) -> bool {
        matches!(self.screen, Screen::Run) || self.shown == PaneId::Runs
    }

    /// Lets look at everything an overlay may look at.
    pub fn on_stage<T>(&mut self, act: impl FnOnce(&mut Vec<Box<dyn Overlay>>, &Stage<'_>) -> T) -> T {
        let scene = self.world.scene(true);
        let stage = Stage {
            scene: scene.as_ref(),
            theme: &self.world.theme,
            keymap: &self.keymap,
            read_only: self.world.read_only,
        };
        act(&mut self.overlays, &stage)
    }

    /// Tells everyone how much room there is.
    pub fn fit(&mut self) {
        let areas = view::areas_of(self, self.size);
        self.panes.get_mut(self.shown).resize(areas.body);
        if let Screen::Ready(ready) = &mut self.screen {
            ready.resize(areas.body);
        }
        for overlay in &mut self.overlays {
            overlay.resize(areas.body);
        }
    }

    /// Asks for what the shown parts lack.
    pub fn refresh(&mut self) -> Vec<Cmd> {
        let mut cmds = Vec::new();
        if let (true, Some(scene)) = (self.shows_pane(), self.world.scene(true)) {
            cmds.extend(self.panes.get_mut(self.shown).refresh(&scene));
        }
        cmds.extend(
            self.on_stage(|overlays, stage| {
                overlays.last_mut().map(|overlay| overlay.refresh(stage)).unwrap_or_default()
            }),
        );
        cmds
    }
}
