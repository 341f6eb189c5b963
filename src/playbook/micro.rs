//! The kernel of a microloop: an author works, a critic judges, and this says what follows. Pure.
//!
//! Role: the exits of a microloop and which of them wins. Not its role: who the author and the critic are, what a
//! detour does, what the outcome means for the flow around it.
//! Invariants: at most `limit` passes, and a detour is one of them; only a critic's VERIFIED is [`Next::Verified`]; at
//! most [`MAX_DETOURS`] detours for one class of failure, so a microloop ends.

use std::collections::BTreeSet;

use crate::model::signature::{Class, Signature};

/// Detours for one class of failure, then a person has to look.
pub const MAX_DETOURS: usize = 2;

/// What the critic said of one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CriticVerdict {
    /// It is as it should be.
    Verified,
    Unverified {
        /// Can the author do something about it?
        help: bool,
        /// The failure without places, times and numbers; `None`: it cannot be told from others.
        signature: Option<Signature>,
    },
    /// Something that is needed is missing or unreadable.
    Blocked,
}

/// One change of the workspace and its critique.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    pub verdict: CriticVerdict,
    /// Was it a detour's work, for this class of failure, and not the author's?
    pub detour: Option<Class>,
}

impl From<CriticVerdict> for Pass {
    fn from(verdict: CriticVerdict) -> Self {
        Self { verdict, detour: None }
    }
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The author's turn, with the critique.
    Author,
    Verified,
    /// The limit is reached: go on with warnings. Never counts as verified.
    AdvanceWithConcerns,
    /// The critic sees nothing that the author could still do.
    NoViablePath,
    /// The same failure twice in a row: something else than the author has to try.
    Detour(Class),
    /// A person has to look.
    Escalate,
}

/// Which failures something else than the author can mend, and how such a detour counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detours {
    /// A fix is known for these classes. It is a retry: the one that changes one thing.
    Known(BTreeSet<Class>),
    /// As before tries were counted so: a detour is looked for whatever the class, and comes on top of the limit.
    OnTop,
}

/// The passes so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Passes, at most.
    pub limit: usize,
    pub passes: Vec<Pass>,
    pub detours: Detours,
}

impl Kernel {
    /// What follows. Of several exits the first wins: verified, blocked, no help, the same failure again, the limit.
    pub fn next(&self) -> Next {
        let Some((last, earlier)) = self.passes.split_last() else {
            return if self.limit == 0 { Next::AdvanceWithConcerns } else { Next::Author };
        };
        match &last.verdict {
            CriticVerdict::Verified => Next::Verified,
            CriticVerdict::Blocked => Next::Escalate,
            CriticVerdict::Unverified { help: false, .. } => Next::NoViablePath,
            CriticVerdict::Unverified { help: true, signature: Some(signature) }
                if last.detour.is_none()
                    && earlier.last().is_some_and(|pass| pass.failed_with(signature))
                    && self.may_detour(signature.class) =>
            {
                let class = signature.class;
                if self.taken(class) < MAX_DETOURS { Next::Detour(class) } else { Next::Escalate }
            }
            CriticVerdict::Unverified { help: true, .. } => {
                if self.used() < self.limit {
                    Next::Author
                } else {
                    Next::AdvanceWithConcerns
                }
            }
        }
    }

    /// Is something else to try it? What no fix is known for is left to the tries that remain.
    fn may_detour(&self, class: Class) -> bool {
        match &self.detours {
            Detours::Known(known) => known.contains(&class) && self.used() < self.limit,
            Detours::OnTop => true,
        }
    }

    /// Passes that count towards the limit.
    pub fn used(&self) -> usize {
        let counts = |pass: &&Pass| pass.detour.is_none() || self.detours != Detours::OnTop;
        self.passes.iter().filter(counts).count()
    }

    fn taken(&self, class: Class) -> usize {
        self.passes.iter().filter(|pass| pass.detour == Some(class)).count()
    }
}

impl Pass {
    fn failed_with(&self, signature: &Signature) -> bool {
        matches!(&self.verdict, CriticVerdict::Unverified { signature: Some(own), .. } if own == signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Signature {
        Signature::of_check(&[], words.as_bytes())
    }

    fn unverified(help: bool, signature: Option<&str>) -> CriticVerdict {
        CriticVerdict::Unverified { help, signature: signature.map(of) }
    }

    fn failed(words: &str) -> Pass {
        unverified(true, Some(words)).into()
    }

    fn detoured(words: &str) -> Pass {
        Pass { detour: Some(of(words).class), ..failed(words) }
    }

    const LINT: &str = "would reformat src/lib.rs";

    fn known() -> Detours {
        Detours::Known(BTreeSet::from([Class::LintErrors, Class::MissingImport]))
    }

    fn after(limit: usize, passes: &[Pass]) -> Next {
        Kernel { limit, passes: passes.to_vec(), detours: known() }.next()
    }

    /// As runs that began earlier have it.
    fn on_top(limit: usize, passes: &[Pass]) -> Next {
        Kernel { limit, passes: passes.to_vec(), detours: Detours::OnTop }.next()
    }

    #[test]
    fn the_author_has_exactly_as_many_passes_as_the_limit_says() {
        let mut kernel = Kernel { limit: 3, passes: Vec::new(), detours: known() };
        let mut authored = 0;
        while kernel.next() == Next::Author {
            authored += 1;
            kernel.passes.push(unverified(true, None).into());
        }
        assert_eq!((authored, kernel.next()), (3, Next::AdvanceWithConcerns));
        assert_eq!(after(0, &[]), Next::AdvanceWithConcerns);
    }

    #[test]
    fn verified_at_the_limit_is_verified() {
        assert_eq!(after(1, &[CriticVerdict::Verified.into()]), Next::Verified);
        assert_eq!(after(2, &[failed("a"), CriticVerdict::Verified.into()]), Next::Verified);
        assert_eq!(
            after(2, &[failed("a"), failed("a"), Pass { verdict: CriticVerdict::Verified, ..detoured("a") }]),
            Next::Verified
        );
    }

    #[test]
    fn blocked_and_hopeless_end_before_the_limit() {
        assert_eq!(after(3, &[CriticVerdict::Blocked.into()]), Next::Escalate);
        // No help beats the repeated signature.
        assert_eq!(after(3, &[failed("a"), unverified(false, Some("a")).into()]), Next::NoViablePath);
    }

    #[test]
    fn the_same_failure_twice_in_a_row_takes_a_detour_which_is_a_retry() {
        let detour = Next::Detour(Class::LintErrors);
        assert_eq!(after(3, &[failed(LINT), failed(LINT)]), detour);
        assert_eq!(after(5, &[failed(LINT), failed("b")]), Next::Author);
        assert_eq!(after(5, &[failed(LINT), failed("b"), failed(LINT)]), Next::Author);
        // After a detour the author goes on, if tries are left: it was one of them.
        assert_eq!(after(4, &[failed(LINT), failed(LINT), detoured(LINT)]), Next::Author);
        assert_eq!(after(3, &[failed(LINT), failed(LINT), detoured(LINT)]), Next::AdvanceWithConcerns);
        assert_eq!(after(2, &[failed(LINT), failed(LINT)]), Next::AdvanceWithConcerns);
        assert_eq!(after(4, &[failed(LINT), failed(LINT), detoured(LINT), failed("b")]), Next::AdvanceWithConcerns);
    }

    #[test]
    fn the_class_says_which_detour_and_without_one_the_tries_that_remain_are_taken() {
        assert_eq!(after(5, &[failed(LINT), failed(LINT)]), Next::Detour(Class::LintErrors));
        assert_eq!(after(3, &[failed("a"), failed("a")]), Next::Author);
        assert_eq!(after(3, &[failed("a"), failed("a"), failed("a")]), Next::AdvanceWithConcerns);
    }

    #[test]
    fn after_two_detours_a_person_has_to_look() {
        let passes = [failed(LINT), failed(LINT), detoured(LINT), failed(LINT), detoured(LINT), failed(LINT)];
        assert_eq!(after(9, &passes[..4]), Next::Detour(Class::LintErrors));
        assert_eq!(after(9, &passes[..5]), Next::Author);
        assert_eq!(after(9, &passes), Next::Escalate);
        // The second one is within reach of a flow that builds.
        assert_eq!(after(5, &passes[..4]), Next::Detour(Class::LintErrors));
        assert_eq!(after(5, &passes[..5]), Next::AdvanceWithConcerns);
    }

    #[test]
    fn runs_that_began_earlier_go_on_as_they_did() {
        let detour = Next::Detour(Class::Unknown);
        assert_eq!(on_top(2, &[failed("a"), failed("a")]), detour);
        assert_eq!(on_top(5, &[failed("a"), failed("a"), detoured("a")]), Next::Author);
        assert_eq!(on_top(2, &[failed("a"), failed("a"), detoured("a")]), Next::AdvanceWithConcerns);
        assert_eq!(on_top(3, &[failed("a"), failed("a"), detoured("a"), failed("b")]), Next::AdvanceWithConcerns);
        let passes = [failed("a"), failed("a"), detoured("a"), failed("a"), detoured("a"), failed("a")];
        assert_eq!(on_top(9, &passes[..4]), detour);
        assert_eq!(on_top(9, &passes), Next::Escalate);
    }

    #[test]
    fn failures_that_cannot_be_told_apart_are_not_the_same() {
        let unknown = Pass::from(unverified(true, None));
        assert_eq!(after(5, &[unknown.clone(), unknown]), Next::Author);
    }

    proptest::proptest! {
        /// Whatever critics say: it ends, within its passes and its detours.
        #[test]
        fn it_always_ends(
            limit in 0_usize..8,
            counted in proptest::bool::ANY,
            said in proptest::collection::vec((0_u8..4, 0_usize..6), 0..200),
        ) {
            const WORDS: [&str; 6] =
                ["a", "b", "would reformat x", "ImportError: x", "x.py:1: error: y  [arg-type]", "fixture not found"];
            let detours = if counted { known() } else { Detours::OnTop };
            let mut kernel = Kernel { limit, passes: Vec::new(), detours };
            for (verdict, words) in said {
                let detour = match kernel.next() {
                    Next::Author => None,
                    Next::Detour(class) => Some(class),
                    Next::Verified | Next::AdvanceWithConcerns | Next::NoViablePath | Next::Escalate => break,
                };
                let verdict = match verdict {
                    0 => unverified(true, None),
                    _ => unverified(true, Some(WORDS[words])),
                };
                kernel.passes.push(Pass { verdict, detour });
            }
            proptest::prop_assert!(kernel.used() <= limit);
            proptest::prop_assert!(kernel.passes.len() <= limit + MAX_DETOURS * 5);
        }
    }
}
