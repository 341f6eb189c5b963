//! What the playbook says of its work, and when checks run.
//!
//! Not here: reading the PRD; it comes as it was found, or with the reason why it cannot be used.

use crate::console::theme::Role;
use crate::model::ready_line::Look;
use crate::model::safe::Safe;
use crate::playbook;

use super::{Body, Ready};

impl Ready {
    pub(super) fn work(&self, body: &mut Body<'_>) {
        for line in playbook::of(self.declared.playbook).ready_lines(&self.declared, self.items.as_ref()) {
            let role = match line.look {
                Look::Plain => Role::Text,
                Look::Emphasis => Role::Emphasis,
                Look::Muted => Role::Muted,
                Look::Bad => Role::Bad,
            };
            body.entry(line.label, Safe::line(&line.text).as_str(), role);
        }
    }

    /// When a check runs and where it comes from, for loops in which both matter.
    pub(super) fn when_it_runs(&self, argv: &[String]) -> Option<(String, Role)> {
        let note = playbook::of(self.declared.playbook).check_note();
        let when = note.when?;
        if !note.origin {
            return Some((when.to_owned(), Role::Muted));
        }
        let told = self.inferred.iter().find(|inferred| inferred.is(argv));
        Some(match told {
            Some(inferred) => (format!("inferred from {}, {when}: is it right?", inferred.from), Role::Warning),
            None => (format!("declared, {when}"), Role::Muted),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::sample::screen;
    use crate::console::theme::Theme;
    use crate::model::loop_file;
    use crate::model::prd::Prd;
    use crate::model::project_check::{Clues, Inferred, infer};
    use crate::model::ready_line::ItemCounts;

    fn suggested(file: &str, text: &str) -> Vec<Inferred> {
        let mut clues = Clues::default();
        clues.keep(file, text.to_owned());
        infer(&clues)
    }

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
        ready.items = Some(Ok(ItemCounts::from(&Prd::read(text).unwrap())));
        let text = drawn(&ready);
        for part in ["prd.json: 3 items, 1 pass", "next: A one", "3 attempts each", "declared, runs after every item"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        ready.inferred = suggested("Makefile", "check:\n");
        let text = drawn(&ready);
        assert!(text.contains("inferred from Makefile, runs after every item"), "{text}");
        ready.inferred = suggested("Cargo.toml", "");
        assert!(drawn(&ready).contains("declared, runs after every item"));
    }

    #[test]
    fn a_prd_that_cannot_be_used_says_why() {
        let mut ready = ready(PRD);
        let error = Prd::read(b"{\"items\": [{\"id\": \"A\",\n \"title\": \"t\", \"passes\": null}]}").unwrap_err();
        ready.items = Some(Err(Safe::lines(&error.to_string())));
        let text = drawn(&ready);
        assert!(text.contains("items prd.json:2:26: item A") && text.contains("hint:"), "{text}");
        let done = Prd::read(br#"{"items": [{"id": "A", "title": "t", "passes": true}]}"#).unwrap();
        ready.items = Some(Ok(ItemCounts::from(&done)));
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
