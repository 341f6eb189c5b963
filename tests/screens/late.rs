//! What was asked for comes when it comes: nobody waits for ever for something that came while they looked elsewhere.

use nightloop::console::theme::Theme;

use super::operator::{Operator, Recorded};

/// Opens the inbox on a proposal that is not read yet, looks elsewhere until it is, and comes back.
fn comes_meanwhile(away: &str, elsewhere: &str, back: &str) {
    let recorded = Recorded::demo();
    let mut operator = Operator::watching(recorded, recorded.at_refinement(), Theme::plain(), (80, 24));
    operator.slow = Some(Vec::new());
    operator.press("i");
    assert!(operator.text().contains("reading it"), "{}", operator.text());
    operator.press(away);
    assert!(operator.text().contains(elsewhere), "{}", operator.text());
    while operator.slow.as_ref().is_some_and(|waiting| !waiting.is_empty()) {
        operator.read_one(0);
    }
    operator.press(back);
    let text = operator.text();
    assert!(text.contains("2 changes, 2 taken") && !text.contains("reading it"), "{text}");
}

#[test]
fn a_proposal_that_comes_while_the_inbox_is_closed_is_there_when_it_is_opened_again() {
    comes_meanwhile("esc", "Overview", "i");
}

#[test]
fn a_proposal_that_comes_while_something_lies_over_the_inbox_is_there_below_it() {
    comes_meanwhile("?", "Keys", "esc");
}
