//! Draws the model. Pure: no clock, no files, no locks.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::action::Action;
use super::ascii;
use super::bars::{self, HeaderInfo};
use super::model::{Model, Screen};
use super::overlays::{Stage, allowed};
use super::panes::PaneId;
use super::theme::Glyphs;

/// Below this height the header has one row.
const ROOM_FOR_TABS: u16 = 12;
/// From this height on a message has a row of its own.
const ROOM_FOR_MESSAGE: u16 = 20;

/// The parts of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Areas {
    pub header: Rect,
    pub body: Rect,
    pub footer: Rect,
}

/// The parts of this console's screen: before a run there is nothing for a header to say.
pub fn areas_of(model: &Model, size: Rect) -> Areas {
    let areas = areas(size);
    if matches!(model.screen, Screen::Run) {
        return areas;
    }
    let body = Rect { y: size.y, height: areas.body.height + areas.header.height, ..areas.body };
    Areas { header: Rect { height: 0, ..areas.header }, body, ..areas }
}

/// Divides the screen: the body gets what the bars leave, and is never larger than the screen.
pub fn areas(size: Rect) -> Areas {
    let header = match size.height {
        0..=2 => 0,
        3..ROOM_FOR_TABS => 1,
        _ => bars::HEADER_ROWS,
    };
    let footer = match size.height {
        0..=3 => 0,
        4..ROOM_FOR_MESSAGE => bars::FOOTER_ROWS,
        _ => bars::FOOTER_ROWS + 1,
    };
    let body = size.height.saturating_sub(header + footer);
    Areas {
        header: Rect { height: header, ..size },
        body: Rect { y: size.y + header, height: body, ..size },
        footer: Rect { y: size.y + header + body, height: footer, ..size },
    }
}

pub fn view(frame: &mut Frame<'_>, model: &Model) {
    let areas = areas_of(model, frame.area());
    let theme = &model.world.theme;
    let scene = model.world.scene(model.overlays.is_empty());
    match &model.screen {
        Screen::Welcome(welcome) if model.shown != PaneId::Runs => welcome.view(frame, areas.body, theme),
        Screen::Ready(ready) if model.shown != PaneId::Runs => ready.view(frame, areas.body, theme),
        Screen::Welcome(_) | Screen::Ready(_) => {
            model.panes.runs.draw(frame, areas.body, theme, model.overlays.is_empty(), None);
        }
        Screen::Run => {
            if let Some(scene) = &scene {
                let info = HeaderInfo { shown: Some(model.shown), frozen: model.world.frozen() };
                bars::header(frame, areas.header, scene, &info);
                model.panes.get(model.shown).view(frame, areas.body, scene);
            }
        }
    }
    let stage = Stage { scene: scene.as_ref(), theme, keymap: &model.keymap, read_only: model.world.read_only };
    bars::footer(frame, areas.footer, theme, &hints(model, &stage), model.message.as_ref());
    for overlay in &model.overlays {
        overlay.view(frame, areas.body, &stage);
    }
    if *theme.glyphs() == Glyphs::ASCII {
        ascii::simplify(frame.buffer_mut());
    }
}

/// Keys that do something now. A box has all keys while it is open, and names its own.
fn hints(model: &Model, stage: &Stage<'_>) -> Vec<(String, &'static str)> {
    if !model.overlays.is_empty() {
        return Vec::new();
    }
    let scopes = model.scopes();
    let mut hints = model.keymap.hints_for(&scopes, |action| allowed::why_not(action, &scopes, stage).is_none());
    let paused = stage.scene.is_some_and(|scene| scene.run.operator.pause.is_some());
    for (_, hint) in hints.iter_mut().filter(|(_, hint)| paused && *hint == Action::Pause.hint()) {
        *hint = "continue";
    }
    hints
}
