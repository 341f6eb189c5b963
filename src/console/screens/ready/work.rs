//! What an author and a critic will work on: the items of a PRD, or the flow of a microloop, and when checks run.
//!
//! Not here: reading the PRD; it comes as it was found, or with the reason why it cannot be used.

use std::collections::BTreeSet;

use crate::console::theme::Role;
use crate::model::loop_file::Playbook;
use crate::model::prd::{Counts, Prd};
use crate::model::safe::Safe;

use super::{Body, Ready};

/// The items, as the file has them before the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Items {
    pub all: u32,
    pub passing: u32,
    /// The first in order that does not pass.
    pub next: Option<Safe>,
}

impl From<&Prd> for Items {
    fn from(prd: &Prd) -> Self {
        let Counts { all, passing, .. } = prd.counts();
        let next = prd.next_item(&BTreeSet::new());
        Self { all, passing, next: next.map(|item| Safe::line(&format!("{} {}", item.id, item.title))) }
    }
}

impl Ready {
    pub(super) fn work(&self, body: &mut Body<'_>) {
        match self.declared.playbook {
            Playbook::Prd => self.items(body),
            Playbook::Micro => {
                let flow = self.declared.micro.as_ref().map(|micro| micro.flow).unwrap_or_default();
                let passes = counted(self.declared.pass_limit(), "pass", "passes");
                body.entry("flow", &format!("{}: at most {passes} of the author", flow.name()), Role::Text);
            }
            Playbook::Swarm | Playbook::Value => return,
        }
        for (index, detour) in self.declared.detours().iter().enumerate() {
            let name = if index == 0 { "detours" } else { "" };
            let how = detour.command.as_ref().map_or_else(|| "an agent".to_owned(), |argv| argv.join(" "));
            let text = format!("{} twice in a row: {how}", detour.class.name());
            body.entry(name, Safe::line(&text).as_str(), Role::Text);
        }
    }

    fn items(&self, body: &mut Body<'_>) {
        let settings = self.declared.prd();
        let file = Safe::line(&settings.file);
        match &self.items {
            Some(Ok(items)) => {
                let count = counted(items.all, "item", "items");
                body.entry("items", &format!("{file}: {count}, {} pass", items.passing), Role::Emphasis);
                match &items.next {
                    Some(next) => body.entry("", &format!("next: {next}"), Role::Text),
                    None => body.entry("", "every one passes already: the run will end with NEED_INFO", Role::Bad),
                }
            }
            Some(Err(problem)) => {
                for (index, line) in problem.iter().enumerate() {
                    body.entry(if index == 0 { "items" } else { "" }, line.as_str(), Role::Bad);
                }
            }
            None => body.entry("items", &format!("{file}: not looked at"), Role::Muted),
        }
        let meanwhile = if settings.park_and_continue { "; the others go on meanwhile" } else { "" };
        let attempts = self.declared.pass_limit();
        body.entry("", &format!("{attempts} attempts each, then you are asked{meanwhile}"), Role::Muted);
        let own = settings.items.values().filter(|item| item.check.is_some()).count();
        if own > 0 {
            body.entry("", &format!("with a check of its own: {own}"), Role::Muted);
        }
    }

    /// When a check runs and where it comes from, for loops in which both matter.
    pub(super) fn when_it_runs(&self, argv: &[String]) -> Option<(String, Role)> {
        let when = match self.declared.playbook {
            Playbook::Prd => "runs after every item",
            Playbook::Micro => return Some(("runs after every pass".to_owned(), Role::Muted)),
            Playbook::Swarm | Playbook::Value => return None,
        };
        let told = self.inferred.iter().find(|inferred| inferred.is(argv));
        Some(match told {
            Some(inferred) => (format!("inferred from {}, {when}: is it right?", inferred.from), Role::Warning),
            None => (format!("declared, {when}"), Role::Muted),
        })
    }
}

fn counted(count: u32, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::sample::screen;
    use crate::console::theme::Theme;
    use crate::model::loop_file;
    use crate::model::project_check::{Clues, infer};

    fn drawn(ready: &Ready) -> String {
        screen(80, 40, |frame| ready.view(frame, frame.area(), &Theme::plain()))
    }

    fn ready(declaration: &str) -> Ready {
        Ready::new(loop_file::parse(declaration, "loop.yaml").unwrap(), Safe::default(), Vec::new(), Vec::new())
    }

    const PRD: &str = "playbook: prd\ngoal: g\nacceptance_criteria:\n  - {text: sound, check: [make, check]}\n";

    #[test]
    fn a_prd_says_what_comes_first_and_what_proves_it() {
        let text = br#"{"items": [{"id": "B", "title": "two", "priority": 2, "passes": false},
            {"id": "A", "title": "one", "priority": 1, "passes": false}, {"id": "C", "title": "x", "passes": true}]}"#;
        let mut ready = ready(PRD);
        ready.items = Some(Ok(Items::from(&Prd::read(text).unwrap())));
        let text = drawn(&ready);
        for part in ["prd.json: 3 items, 1 pass", "next: A one", "3 attempts each", "declared, runs after every item"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        ready.inferred = infer(&Clues { makefile: Some("check:\n".into()), ..Clues::default() });
        let text = drawn(&ready);
        assert!(text.contains("inferred from Makefile, runs after every item"), "{text}");
        ready.inferred = infer(&Clues { cargo: true, ..Clues::default() });
        assert!(drawn(&ready).contains("declared, runs after every item"));
    }

    #[test]
    fn a_prd_that_cannot_be_used_says_why() {
        let mut ready = ready(PRD);
        let error = Prd::read(b"{\"items\": [{\"id\": \"A\",\n \"title\": \"t\"}]}").unwrap_err();
        ready.items = Some(Err(Safe::lines(&error.to_string())));
        let text = drawn(&ready);
        assert!(text.contains("items prd.json:1:12: item A") && text.contains("hint:"), "{text}");
        let done = Prd::read(br#"{"items": [{"id": "A", "title": "t", "passes": true}]}"#).unwrap();
        ready.items = Some(Ok(Items::from(&done)));
        assert!(drawn(&ready).contains("every one passes already"));
    }

    #[test]
    fn a_microloop_says_its_flow_and_its_limit() {
        let text = drawn(&ready("playbook: micro\ngoal: g\nmicro: {flow: build}\n"));
        assert!(text.contains("flow build: at most 5 passes of the author"), "{text}");
        let declared =
            "playbook: micro\ngoal: g\nmicro: {limit: 1, detours: [{for: lint_errors, command: [fmt, x]}]}\n";
        let text = drawn(&ready(declared));
        assert!(text.contains("flow other: at most 1 pass of the author"), "{text}");
        assert!(text.contains("lint_errors twice in a row: fmt x"), "{text}");
    }

    #[test]
    fn without_a_check_a_prd_says_how_it_would_end() {
        let text = drawn(&ready("playbook: prd\ngoal: g\n"));
        assert!(text.contains("no check: the run will end with NEED_INFO"), "{text}");
    }
}
