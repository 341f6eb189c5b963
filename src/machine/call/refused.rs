//! Reports of one call that could not be taken, and how often it may be handed in anew.
//!
//! Not here: what is wrong with a report (the playbook's `admit`), the end of the call (`CallState::next`). Invariant: the
//! words of an agent are bounded before they are kept.

use crate::machine::event::Text;
use crate::model::purpose::Purpose;

/// A report of an author or a critic that cannot be taken is asked for again once; other structured reports, which
/// guardrails look at more closely, this often.
const RE_ASKS: u32 = 3;
/// The reason why a report was not taken, as far as it is repeated.
const MAX_WHY: usize = 300;

/// Reports of a call that could not be taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refused {
    /// How often it may be handed in anew; `None`: as in older journals, without end.
    pub re_asks: Option<u32>,
    pub times: u32,
    /// What was wrong with the latest.
    pub why: String,
    /// The turn it was in: several in one reply are one.
    turn: Option<u32>,
}

impl Refused {
    /// For one call of this purpose.
    pub const fn of(purpose: Purpose) -> Self {
        let re_asks = match purpose {
            Purpose::Author | Purpose::Critic => 1,
            _ => RE_ASKS,
        };
        Self { re_asks: Some(re_asks), times: 0, why: String::new(), turn: None }
    }

    /// Has it been handed in as often as it may?
    pub fn is_over(&self) -> bool {
        self.re_asks.is_some_and(|re_asks| self.times > re_asks)
    }

    /// May it be handed in once more, and never again, if this one cannot be taken?
    pub fn is_last(&self) -> bool {
        self.re_asks.is_some_and(|re_asks| self.times + 1 == re_asks)
    }

    pub(super) fn note(&mut self, turn: Option<u32>, text: &Text) {
        if turn.is_some() && self.turn == turn {
            return;
        }
        self.turn = turn;
        self.times = self.times.saturating_add(1);
        if let Text::Inline(text) = text {
            self.why = text.lines().next().unwrap_or_default().chars().take(MAX_WHY).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &str) -> Text {
        Text::Inline(words.to_owned())
    }

    #[test]
    fn a_critique_may_be_handed_in_twice_and_others_more_often() {
        let mut critic = Refused::of(Purpose::Critic);
        assert!(critic.is_last() && !critic.is_over(), "the first that is refused is asked for once more");
        critic.note(Some(1), &text("no\nmore"));
        critic.note(Some(1), &text("and another in the same reply"));
        assert_eq!((critic.times, critic.why.as_str(), critic.is_over()), (1, "no", false));
        critic.note(Some(2), &text(&"x".repeat(1_000)));
        assert!(critic.is_over() && critic.why.len() == MAX_WHY);

        let mut scout = Refused::of(Purpose::Scout);
        (1..=RE_ASKS).for_each(|turn| scout.note(Some(turn), &text("no")));
        assert!(!scout.is_over());
        // In the middle of a program's turn each one is answered, and counts.
        scout.note(None, &text("no"));
        assert!(scout.is_over());
    }

    #[test]
    fn older_journals_have_no_bound() {
        let mut older = Refused::default();
        (0..100).for_each(|turn| older.note(Some(turn), &text("no")));
        assert!(!older.is_over() && !older.is_last());
    }
}
