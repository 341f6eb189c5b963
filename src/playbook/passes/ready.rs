//! What an author and a critic will work on, before the start: the items of a PRD, or the flow of a microloop.
//!
//! Not here: reading the PRD; it comes as it was found, or with the reason why it cannot be used.

use crate::machine::words::counted;
use crate::model::loop_file::LoopFile;
use crate::model::ready_line::{Items, Look, ReadyLine};

/// The lines of a loop with items.
pub fn of_items(declared: &LoopFile, items: Option<&Items>) -> Vec<ReadyLine> {
    let settings = declared.prd();
    let file = &settings.file;
    let mut lines = Vec::new();
    let mut say = |label, look, text: String| lines.push(ReadyLine::new(label, look, text));
    match items {
        Some(Ok(items)) => {
            let count = counted(items.all as usize, "item", "items");
            say("items", Look::Emphasis, format!("{file}: {count}, {} pass", items.passing));
            match &items.next {
                Some(next) => say("", Look::Plain, format!("next: {next}")),
                None => say("", Look::Bad, "every one passes already: the run will end with NEED_INFO".to_owned()),
            }
        }
        Some(Err(problem)) => {
            for (index, line) in problem.iter().enumerate() {
                say(if index == 0 { "items" } else { "" }, Look::Bad, line.to_string());
            }
        }
        None => say("items", Look::Muted, format!("{file}: not looked at")),
    }
    let meanwhile = if settings.parks() { "; the others go on meanwhile" } else { "" };
    let attempts = declared.pass_limit();
    say("", Look::Muted, format!("{attempts} attempts each, then you are asked{meanwhile}"));
    if !settings.only.is_empty() {
        say("", Look::Emphasis, format!("only {}", settings.only.join(", ")));
    }
    let own = settings.items.values().filter(|item| item.check.is_some()).count();
    if own > 0 {
        say("", Look::Muted, format!("with a check of its own: {own}"));
    }
    lines.extend(detours(declared));
    lines
}

/// The lines of a microloop.
pub fn of_flow(declared: &LoopFile) -> Vec<ReadyLine> {
    let flow = declared.micro.as_ref().map(|micro| micro.flow).unwrap_or_default();
    let passes = counted(declared.pass_limit() as usize, "pass", "passes");
    let text = format!("{}: at most {passes} of the author", flow.name());
    std::iter::once(ReadyLine::new("flow", Look::Plain, text)).chain(detours(declared)).collect()
}

fn detours(declared: &LoopFile) -> impl Iterator<Item = ReadyLine> {
    declared.detours().iter().enumerate().map(|(index, detour)| {
        let how = detour.command.as_ref().map_or_else(|| "an agent".to_owned(), |argv| argv.join(" "));
        let text = format!("{} twice in a row: {how}", detour.class.name());
        ReadyLine::new(if index == 0 { "detours" } else { "" }, Look::Plain, text)
    })
}
