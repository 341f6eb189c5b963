//! Places where the real binary can be made to die. Release builds ignore them.
//!
//! Role: let a test kill the process at an exact moment, as a power cut or `kill -9` would.
//! Not its role: input and output errors (see `fault`).
//!
//! * `NIGHTLOOP_CRASH=<before_write|mid_write|after_write|after_sync>:<seq>`: in the journal
//!   writer, when the event with that number passes.
//! * `NIGHTLOOP_CRASH_AT=<name>[:<n>]`: at the n-th (first when not said) call of
//!   [`failpoint`] with that name.
//!
//! Invariant: dying is `abort`: no destructor runs and nothing is flushed.

#[cfg(debug_assertions)]
use std::sync::OnceLock;
#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering};

/// A named place. Dies here when the environment says so.
pub fn failpoint(name: &str) {
    #[cfg(debug_assertions)]
    {
        static PLAN: OnceLock<Option<(String, u64)>> = OnceLock::new();
        static HITS: AtomicU64 = AtomicU64::new(0);
        let plan = PLAN.get_or_init(|| std::env::var("NIGHTLOOP_CRASH_AT").ok().map(|text| named(&text)));
        if let Some((wanted, nth)) = plan
            && wanted == name
            && HITS.fetch_add(1, Ordering::SeqCst) + 1 == *nth
        {
            die(name);
        }
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// Splits `<name>[:<n>]`. A name may hold colons itself, as long as no number follows the last.
#[cfg(debug_assertions)]
fn named(text: &str) -> (String, u64) {
    let counted = text.rsplit_once(':').and_then(|(name, n)| Some((name.to_owned(), n.parse().ok()?)));
    counted.unwrap_or_else(|| (text.to_owned(), 1))
}

#[cfg(debug_assertions)]
fn die(point: &str) -> ! {
    // The parent of a crash test reads this to tell a planned death from a real one.
    eprintln!("nightloop: planned crash at {point}");
    std::process::abort()
}

/// A moment in the life of one journal write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    BeforeWrite,
    MidWrite,
    AfterWrite,
    AfterSync,
}

/// When the journal writer is to die, if at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CrashPlan(Option<(Moment, u64)>);

impl CrashPlan {
    /// The plan in the environment; never one in a release build.
    pub(super) fn from_env() -> Self {
        #[cfg(debug_assertions)]
        {
            std::env::var("NIGHTLOOP_CRASH").map(|text| Self::parse(&text)).unwrap_or_default()
        }
        #[cfg(not(debug_assertions))]
        {
            Self::default()
        }
    }

    #[cfg(any(test, debug_assertions))]
    fn parse(text: &str) -> Self {
        let plan = text.split_once(':').and_then(|(moment, seq)| {
            let moment = match moment {
                "before_write" => Moment::BeforeWrite,
                "mid_write" => Moment::MidWrite,
                "after_write" => Moment::AfterWrite,
                "after_sync" => Moment::AfterSync,
                _ => return None,
            };
            Some((moment, seq.parse().ok()?))
        });
        Self(plan)
    }

    /// The number of the event at which to die at `moment`.
    pub(super) fn seq_at(&self, moment: Moment) -> Option<u64> {
        self.0.filter(|(planned, _)| *planned == moment).map(|(_, seq)| seq)
    }

    /// Dies if the plan names this moment and an event of `seqs`.
    pub(super) fn pass(&self, moment: Moment, seqs: std::ops::Range<u64>) {
        if self.seq_at(moment).is_some_and(|seq| seqs.contains(&seq)) {
            self.crash();
        }
    }

    pub(super) fn crash(&self) {
        #[cfg(debug_assertions)]
        die(&format!("{:?}", self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read_from_text() {
        let plan = CrashPlan::parse("mid_write:7");
        assert_eq!(plan.seq_at(Moment::MidWrite), Some(7));
        assert_eq!(plan.seq_at(Moment::AfterSync), None);
        for wrong in ["", "mid_write", "mid_write:x", "later:7"] {
            assert_eq!(CrashPlan::parse(wrong), CrashPlan::default(), "{wrong}");
        }
    }

    #[cfg(debug_assertions)]
    #[test]
    fn names_carry_a_count() {
        assert_eq!(named("seal"), ("seal".to_owned(), 1));
        assert_eq!(named("seal:3"), ("seal".to_owned(), 3));
        assert_eq!(named("a:b"), ("a:b".to_owned(), 1));
    }
}
