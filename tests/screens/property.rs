//! Whatever comes, in whatever order: no panic, no frame outside of its area, no change without a frame.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use nightloop::console::action::Action;
use nightloop::console::cmd::{EditPurpose, Loaded};
use nightloop::console::feed::Update;
use nightloop::console::model::Screen;
use nightloop::console::scene::Link;
use nightloop::console::theme::{Glyphs, Theme};
use nightloop::console::update::Msg;
use nightloop::model::safe::{Safe, is_clean};
use proptest::prelude::*;
use ratatui::buffer::Buffer;

use super::looks::{ready, welcome};
use super::operator::{Operator, Recorded, key, live};

/// Something that happens to a console.
#[derive(Debug, Clone)]
enum Step {
    Key(KeyEvent),
    Paste(String),
    Resize(u16, u16),
    /// So many events more; at the end, from the beginning.
    Events(usize),
    Live(String),
    Later(i64),
    Read(usize),
    Edited(Option<String>),
    Receipt(bool, String),
    Link(u8),
    LookedAt(bool),
    Theme(u8),
    Said(String),
    Ended,
}

fn any_key() -> impl Strategy<Value = KeyEvent> {
    let bound: Vec<KeyEvent> =
        Action::ALL.iter().flat_map(|action| action.default_keys().split_whitespace()).map(key).collect();
    prop_oneof![
        8 => proptest::sample::select(bound),
        1 => any::<char>().prop_map(|c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)),
        1 => proptest::sample::select(vec!["backspace", "enter", "esc", "left", "right"]).prop_map(key),
    ]
}

fn any_size() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1u16..=130, 1u16..=45),
        1 => (1u16..=300, 1u16..=120),
        1 => proptest::sample::select(vec![(1, 1), (80, 24), (40, 12), (300, 120), (2, 90), (250, 1)]),
    ]
    .prop_map(|(width, height)| Step::Resize(width, height))
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => any_key().prop_map(Step::Key),
        3 => any_size(),
        6 => (1usize..60).prop_map(Step::Events),
        2 => ".{0,60}".prop_map(Step::Live),
        2 => (0i64..4_000_000).prop_map(Step::Later),
        5 => any::<usize>().prop_map(Step::Read),
        1 => ".{0,40}".prop_map(Step::Paste),
        1 => proptest::option::of("(?s).{0,200}").prop_map(Step::Edited),
        1 => (any::<bool>(), ".{0,40}").prop_map(|(ok, text)| Step::Receipt(ok, text)),
        1 => (0u8..5).prop_map(Step::Link),
        1 => any::<bool>().prop_map(Step::LookedAt),
        1 => (0u8..3).prop_map(Step::Theme),
        1 => ".{0,90}".prop_map(Step::Said),
        1 => Just(Step::Ended),
    ]
}

struct Chaos {
    operator: Operator,
    at: usize,
    shown: Buffer,
}

impl Chaos {
    fn new(mut operator: Operator, at: usize) -> Self {
        operator.slow = Some(Vec::new());
        let shown = operator.cells();
        Self { operator, at, shown }
    }

    fn step(&mut self, step: Step) {
        let recorded = Recorded::demo();
        let operator = &mut self.operator;
        match step {
            Step::Key(key) => operator.tell(Msg::Key(key)),
            Step::Paste(text) => operator.tell(Msg::Paste(text)),
            Step::Resize(width, height) => operator.tell(Msg::Resized(width, height)),
            Step::Events(count) => {
                if self.at >= recorded.events.len() {
                    operator.tell(Msg::Feed(vec![Update::Reset]));
                    self.at = 0;
                }
                let to = (self.at + count).min(recorded.events.len());
                operator.hear(recorded, self.at..to);
                self.at = to;
            }
            Step::Live(text) => operator.tell(Msg::Feed(vec![live("it0.scout", 0, text), Update::CaughtUp])),
            Step::Later(millis) => {
                operator.now_ms += millis;
                operator.tell(Msg::Tick);
            }
            Step::Read(which) => operator.read_one(which),
            Step::Edited(text) => {
                let purpose = if text.is_some() { EditPurpose::Refinement } else { EditPurpose::Answer };
                operator.tell(Msg::Loaded(Loaded::Edited { purpose, text }));
            }
            Step::Receipt(ok, text) => {
                operator.tell(Msg::Feed(vec![Update::Receipt(if ok { Ok(text) } else { Err(text) })]));
            }
            Step::Link(which) => operator.linked(match which {
                0 => Link::Attached,
                1 => Link::Lost("gone".into()),
                2 => Link::Replay { playing: true, speed: 8, at: 3, of: 400 },
                3 => Link::Replay { playing: false, speed: 1_024, at: 400, of: 400 },
                _ => Link::InProcess,
            }),
            Step::LookedAt(yes) => operator.tell(Msg::LookedAt(yes)),
            Step::Theme(which) => operator.tell(Msg::Themed(Box::new(match which {
                0 => Theme::dark(),
                1 => Theme::plain(),
                _ => Theme::plain().with_glyphs(Glyphs::ASCII),
            }))),
            Step::Said(text) => {
                operator.tell(Msg::Loaded(Loaded::Failed(Safe::line(&text))));
            }
            Step::Ended => operator.tell(Msg::Feed(vec![Update::Ended])),
        }
    }

    /// Draws, and holds the frame against the one before.
    fn look(&mut self, after: &Step) {
        let dirty = self.operator.model.dirty;
        let cells = self.operator.cells();
        let size = self.operator.model.size;
        assert_eq!((cells.area.width, cells.area.height), (size.width, size.height));
        assert!(dirty || cells == self.shown, "{after:?} changed the screen and did not say so");
        assert_eq!(self.operator.cells(), cells, "the same model is drawn the same");
        for cell in &self.operator.unscrubbed().content {
            assert!(is_clean(cell.symbol()), "{:?} is on the screen", cell.symbol());
        }
        self.shown = cells;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_breaks_a_console(
        start in 0u8..5,
        count in 1usize..400,
        steps in proptest::collection::vec(any_step(), 1..60),
    ) {
        let recorded = Recorded::demo();
        let count = count.min(recorded.events.len());
        let size = (80, 24);
        let mut chaos = match start {
            0 => Chaos::new(ready(Theme::dark(), size), 0),
            1 => Chaos::new(welcome(Theme::dark(), size), 0),
            // A run of which nothing has been heard yet.
            2 => Chaos::new(Operator::before(Screen::Run, Theme::dark(), size), 0),
            _ => Chaos::new(Operator::watching(recorded, count, Theme::dark(), size), count),
        };
        for step in steps {
            chaos.step(step.clone());
            chaos.look(&step);
        }
    }
}

#[test]
fn every_pane_and_box_bears_every_size() {
    let recorded = Recorded::demo();
    let sizes =
        [(1, 1), (2, 3), (7, 4), (12, 12), (20, 5), (39, 11), (41, 13), (60, 16), (79, 23), (200, 60), (300, 120)];
    for count in [1, recorded.at_refinement(), recorded.at_action(), recorded.events.len()] {
        let mut operator = Operator::watching(recorded, count, Theme::dark(), (80, 24));
        for keys in ["1", "2", "3", "4", "5", "6", "7", "0", "i", "esc ?", "esc :", "esc q", "esc w", "esc s", "esc b"]
        {
            operator.press(keys);
            for (width, height) in sizes {
                operator.tell(Msg::Resized(width, height));
                operator.cells();
            }
        }
    }
}
