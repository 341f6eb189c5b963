//! The overview: where the run is, how far from its goal, what it costs, what happens now and who is asked.
//!
//! Not here: the transcript, answers. Invariants: at 80x20 everything is there in compact form; what needs a
//! person stands at the top; after the end, the verdict does.

mod arrange;
mod sections;
mod verdict;

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::console::action::Action;
use crate::console::charts::residual::{Scale, Series};
use crate::console::cmd::Cmd;
use crate::console::recent::Recent;
use crate::console::scene::{News, Scene};
use crate::console::why::default_key;
use crate::console::widget;

use super::Pane;
use arrange::Arrangement;

/// The pane. It keeps the chart's cursor and scale, and what was learnt from the latest events.
#[derive(Debug, Clone, Default)]
pub struct Overview {
    recent: Recent,
    scale: Scale,
    /// The point under the cursor; `None`: the latest, and it follows.
    cursor: Option<usize>,
    keys: Keys,
}

/// The operator's keys for what the overview advises; an action without one has its default.
#[derive(Debug, Clone, Default)]
struct Keys(Vec<(Action, String)>);

impl Keys {
    fn of(&self, action: Action) -> String {
        let own = self.0.iter().find(|(known, _)| *known == action).map(|(_, key)| key.clone());
        own.unwrap_or_else(|| default_key(action))
    }
}

impl Overview {
    /// Actions whose keys the overview names.
    const ADVISED: [Action; 3] = [Action::OpenInbox, Action::RetryNow, Action::ShowEvidence];

    pub fn new() -> Self {
        Self::default()
    }

    /// Names the operator's own keys from here on.
    pub fn set_keys(&mut self, key: &dyn Fn(Action) -> String) {
        self.keys = Keys(Self::ADVISED.into_iter().map(|action| (action, key(action))).collect());
    }

    /// What was learnt from the latest events, for "why is it not moving?".
    pub fn recent(&self) -> &Recent {
        &self.recent
    }

    fn cursor(&self, series: &Series) -> usize {
        let last = series.points.len().saturating_sub(1);
        self.cursor.map_or(last, |cursor| cursor.min(last))
    }

    fn move_cursor(&mut self, series: &Series, to: usize) {
        let last = series.points.len().saturating_sub(1);
        self.cursor = (to < last).then_some(to);
    }
}

impl Pane for Overview {
    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Vec<Cmd> {
        let series = Series::of(scene.run);
        let cursor = self.cursor(&series);
        match action {
            Action::Left | Action::PreviousIteration => self.move_cursor(&series, cursor.saturating_sub(1)),
            Action::Right | Action::NextIteration => self.move_cursor(&series, cursor.saturating_add(1)),
            Action::Top => self.move_cursor(&series, 0),
            Action::Bottom => self.cursor = None,
            Action::ToggleScale => self.scale = self.scale.other(),
            Action::Copy => {
                let text = series.describe(cursor, scene.theme.glyphs());
                return vec![Cmd::Copy { what: "residual", text }];
            }
            _ => {}
        }
        Vec::new()
    }

    fn learn(&mut self, news: News<'_>) {
        if matches!(news, News::Reset) {
            self.cursor = None;
        }
        self.recent.learn(news);
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let area = area.intersection(frame.area());
        let framed = area.width >= 40 && area.height >= 12;
        let inner = if framed {
            let block = widget::panel(scene.theme, "Overview", scene.focused);
            let inner = block.inner(area);
            frame.render_widget(block, area);
            inner
        } else {
            area
        };
        let series = Series::of(scene.run);
        let cursor = self.cursor(&series);
        let (recent, keys, scale) = (&self.recent, &self.keys, self.scale);
        let view = sections::View { scene, recent, keys, series: &series, scale, cursor };
        let arrangement = Arrangement::of(inner, view.head_rows(inner));
        view.draw(frame.buffer_mut(), &arrangement);
    }
}

#[cfg(test)]
mod tests;
