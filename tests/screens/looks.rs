//! Everything an operator looks at, by name: how to get there.

use nightloop::console::model::Screen;
use nightloop::console::screens::ready::Ready;
use nightloop::console::screens::welcome::Welcome;
use nightloop::console::theme::Theme;
use nightloop::machine::event::{Event, PauseBegan, PauseRequested, RunEvent};
use nightloop::model::loop_file;
use nightloop::model::prd::Prd;
use nightloop::model::project_check::{Clues, infer};
use nightloop::model::purpose::Purpose;
use nightloop::model::ready_line::ItemCounts;
use nightloop::model::safe::Safe;
use nightloop::playbook::prompts::Prompts;

use super::operator::{Operator, Recorded};

pub type Size = (u16, u16);

/// A name, and a console that shows it.
pub type Sight = (&'static str, fn(Theme, Size) -> Operator);

pub const PANES: [Sight; 8] = [
    ("1-overview", |theme, size| at_work(theme, size, "1")),
    ("2-agent", |theme, size| at_work(theme, size, "2")),
    ("3-learnings", |theme, size| at_work(theme, size, "3")),
    ("4-plan", |theme, size| at_work(theme, size, "4")),
    ("5-evidence", |theme, size| at_work(theme, size, "5")),
    ("6-timeline", |theme, size| at_work(theme, size, "6")),
    ("7-changes", |theme, size| at_work(theme, size, "7")),
    ("0-runs", |theme, size| at_work(theme, size, "0")),
];

pub const OTHERS: [Sight; 11] = [
    ("ready", ready),
    ("ready-prd", ready_prd),
    ("ready-micro", ready_micro),
    ("welcome", welcome),
    ("inbox-empty", |theme, size| at_work(theme, size, "i")),
    ("inbox-refinement", |theme, size| at(Recorded::demo().at_refinement(), theme, size, "i")),
    ("inbox-action", |theme, size| at(Recorded::demo().at_action(), theme, size, "i")),
    ("help", |theme, size| at_work(theme, size, "?")),
    ("palette", |theme, size| at_work(theme, size, ":")),
    ("quit", |theme, size| at_work(theme, size, "q")),
    ("why", |theme, size| at(Recorded::demo().at_action(), theme, size, "w")),
];

pub const ENDED: [Sight; 8] = [
    ("ended-1-overview", |theme, size| ended(theme, size, "1")),
    ("ended-2-agent", |theme, size| ended(theme, size, "2")),
    ("ended-3-learnings", |theme, size| ended(theme, size, "3")),
    ("ended-4-plan", |theme, size| ended(theme, size, "4")),
    ("ended-5-evidence", |theme, size| ended(theme, size, "5")),
    ("ended-6-timeline", |theme, size| ended(theme, size, "6")),
    ("ended-7-changes", |theme, size| ended(theme, size, "7")),
    ("asked-1-overview", |theme, size| at(Recorded::demo().at_action(), theme, size, "1")),
];

fn at(count: usize, theme: Theme, size: Size, keys: &str) -> Operator {
    let mut operator = Operator::watching(Recorded::demo(), count, theme, size);
    operator.press(keys);
    operator
}

pub fn at_work(theme: Theme, size: Size, keys: &str) -> Operator {
    at(Recorded::demo().at_work(), theme, size, keys)
}

pub fn ended(theme: Theme, size: Size, keys: &str) -> Operator {
    at(Recorded::demo().events.len(), theme, size, keys)
}

/// Held by the operator.
pub fn paused(theme: Theme, size: Size) -> Operator {
    let mut operator = at_work(theme, size, "1");
    operator.happen(PauseRequested { by: "ann (console)".into() });
    operator.happen(PauseBegan {});
    operator
}

pub fn welcome(theme: Theme, size: Size) -> Operator {
    Operator::before(Screen::Welcome(Welcome::default()), theme, size)
}

pub fn ready(theme: Theme, size: Size) -> Operator {
    let Event::Run(RunEvent::RunStarted(started)) = &Recorded::demo().stamped(0).event else {
        panic!("the first event")
    };
    let prompt = Prompts::default().render(Purpose::Scout, &started.declaration.criteria()).unwrap();
    let notes = vec![Safe::line("the sandbox is not enforced here: agents and checks run with your rights")];
    let ready = Ready::new((*started.declaration).clone(), Safe::line("/tmp/slug"), Safe::lines(&prompt), notes);
    Operator::before(Screen::Ready(Box::new(ready)), theme, size)
}

/// An existing project, with a check that was inferred.
pub fn ready_prd(theme: Theme, size: Size) -> Operator {
    let text =
        include_str!("../../assets/demo/prd/loop.yaml").replace("[\"sh\", \"checks/sound.sh\"]", "[make, check]");
    let prd = Prd::read(include_bytes!("../../assets/demo/prd/prd.json")).unwrap();
    let mut ready = of_an_author(&text, "/tmp/greet");
    ready.items = Some(Ok(ItemCounts::from(&prd)));
    let mut clues = Clues::default();
    clues.keep("Makefile", "check:\n".to_owned());
    ready.inferred = infer(&clues);
    Operator::before(Screen::Ready(Box::new(ready)), theme, size)
}

pub fn ready_micro(theme: Theme, size: Size) -> Operator {
    let ready = of_an_author(include_str!("../../assets/demo/micro/loop.yaml"), "/tmp/count");
    Operator::before(Screen::Ready(Box::new(ready)), theme, size)
}

fn of_an_author(declaration: &str, place: &str) -> Ready {
    let declared = loop_file::parse(declaration, "loop.yaml").unwrap();
    let prompt = Prompts::default().render(Purpose::Author, &declared.criteria()).unwrap();
    Ready::new(declared, Safe::line(place), Safe::lines(&prompt), Vec::new())
}
