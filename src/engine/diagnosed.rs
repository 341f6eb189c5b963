//! What the words of a failed check say: its signature, the tool's own fix, the program that it did not find.
//!
//! Not here: the rules (`model::tools`), what follows (the playbooks). Invariant: it is recorded with the result, so that
//! nobody has to look at the output again to decide the same.

use crate::model::signature::{self, Signature};
use crate::model::tools::{self, Fix, Missing};
use crate::tool::process::End;

use super::clues;
use super::context::Context;

#[derive(Debug, Default)]
pub(super) struct Diagnosed {
    pub signature: Option<Signature>,
    pub fix: Option<Fix>,
    pub missing: Option<Missing>,
}

/// `output` as it may be told: of a check whose files are held back, only how it ended.
pub(super) fn of(cx: &Context<'_>, argv: &[String], end: &End, output: &[u8]) -> Diagnosed {
    let plain = signature::plain(output);
    let project = clues::find(cx.workspace());
    let missing = match end {
        End::Exited(code) => tools::missing(argv, Some(*code), &plain, &project),
        End::NotStarted(_) => tools::missing(argv, None, &plain, &project),
        End::Signaled(_) | End::TimedOut | End::Cancelled | End::Exhausted(_) => None,
    };
    // Failures are compared only where that decides something.
    if !cx.state().playbook().compares_failures() {
        return Diagnosed { missing, ..Diagnosed::default() };
    }
    let fix = tools::fix(argv, &plain, &project);
    Diagnosed { signature: Some(Signature::of_check(argv, output)), fix, missing }
}
