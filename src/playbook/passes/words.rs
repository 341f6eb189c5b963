//! The events of these playbooks in words, for lines and lists. Text of agents and files is in them, and not cleaned.

use crate::machine::event::{By, Event, PassVerdict, ReadWhen, Route};

/// The line for an event, and whether it is good news; `None`: nothing worth a line.
pub fn line(event: &Event) -> Option<(String, Option<bool>)> {
    Some(match event {
        Event::PrdRead(read) => match (&read.problem, read.when) {
            (Some(problem), _) => (format!("items: {problem}"), Some(false)),
            (None, _) if !read.touched.is_empty() => {
                let what = read.touched.join(", ");
                (format!("the PRD was changed while an agent worked ({what}): not believed"), Some(false))
            }
            (None, ReadWhen::Restored) => ("the items are put back as they were".to_owned(), None),
            (None, ReadWhen::Start | ReadWhen::Between | ReadWhen::AfterWork) => {
                let items = read.items.as_ref()?;
                let passing = items.iter().filter(|item| item.passes).count();
                (format!("items: {passing} of {} pass", items.len()), None)
            }
        },
        Event::ItemChosen(chosen) => (format!("item {}, attempt {}: {}", chosen.item, chosen.pass, chosen.why), None),
        Event::PassJudged(judged) => {
            let who = match &judged.by {
                By::Author => String::new(),
                By::Detour(name) => format!(" after {name}"),
            };
            let item = judged.subject.as_ref().map(|item| format!("{item} ")).unwrap_or_default();
            let well = judged.verdict == PassVerdict::Verified;
            (format!("{item}{}{who}: {}", judged.verdict.name(), judged.detail), Some(well))
        }
        Event::RouteDecided(decided) => {
            let target = match &decided.route {
                Route::Detour(name) => format!(" to {name}"),
                _ => String::new(),
            };
            let count = format!("pass {} of {}", decided.pass, decided.limit);
            (format!("{}{target} ({count}): {}", decided.route.name(), decided.why), None)
        }
        Event::ItemSettled(settled) => match (&settled.problem, settled.passes) {
            (Some(problem), _) => (format!("{} is not flipped: {problem}", settled.item), Some(false)),
            (None, true) => (format!("{} passes", settled.item), Some(true)),
            (None, false) => return None,
        },
        _ => return None,
    })
}
