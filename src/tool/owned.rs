//! Which of our children have a thread that waits for them.
//!
//! Invariant: a pid is in here from before anyone can see its child exit until [`disown`], so that the sweeper never
//! takes an exit status away from the thread that waits for it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Pids of our own children that some thread waits for.
static OWNED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Forgets a child after its waiter has its exit status.
pub(super) fn disown(pid: u32) {
    pids().remove(&pid);
}

/// The owned set, locked: while held, no child can be started or change hands.
pub(super) fn pids() -> MutexGuard<'static, BTreeSet<u32>> {
    OWNED.lock().unwrap_or_else(PoisonError::into_inner)
}
