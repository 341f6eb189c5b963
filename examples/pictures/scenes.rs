//! Which moments are worth a picture.

use nightloop::console::theme::Theme;
use nightloop::console::update::Msg;

use super::operator::{Operator, Recorded, live};
use super::svg;

const SIZE: (u16, u16) = (100, 30);

/// File names with what belongs into them.
pub fn all() -> Vec<(&'static str, String)> {
    let recorded = Recorded::demo();
    let at = |count: usize, keys: &str| {
        let mut operator = Operator::watching(recorded, count, Theme::dark(), SIZE);
        operator.press(keys);
        operator
    };
    let mut agent = at(recorded.at_work(), "2");
    agent.tell(Msg::Feed(vec![live("it2.solver", 1, "I want to try this on titles that people really write, and")]));
    [
        ("overview.svg", "The overview of a run at work", at(recorded.at_last_work(), "1")),
        ("inbox.svg", "The inbox with a new text for PRD.md, change by change", at(recorded.at_refinement(), "i")),
        ("agent.svg", "What the agents say and do", agent),
        ("ended.svg", "A run that ended with a certificate", at(recorded.events.len(), "1")),
    ]
    .into_iter()
    .map(|(name, title, mut operator)| {
        let theme = Theme::dark();
        let picture = svg::draw(&operator.cells(), title, &svg::Ground::of(&theme));
        (name, picture)
    })
    .collect()
}
