//! Text that arrives in pieces, cut anywhere.
//!
//! Role: pass on what cannot be part of a secret, hold back what could.
//!
//! Invariants: what comes out in all is what [`Secrets::redact`] makes of the whole; what is held back is bounded
//! by the longest form of a secret.

use std::sync::Arc;

use super::{Scan, Scope, Secrets};

/// One text under way.
pub struct Stream {
    secrets: Arc<Secrets>,
    scope: Scope,
    held: Vec<u8>,
    /// What went out last, the nearest first.
    before: [u8; 2],
}

impl Stream {
    pub fn new(secrets: Arc<Secrets>, scope: Scope) -> Self {
        Self { secrets, scope, held: Vec::new(), before: [b' '; 2] }
    }

    /// Takes a piece; gives what may go on.
    pub fn push(&mut self, piece: &str) -> String {
        if self.scope == Scope::Known && self.secrets.is_empty() {
            return piece.to_owned();
        }
        self.held.extend_from_slice(piece.as_bytes());
        self.take(true)
    }

    /// The text is over: gives what was held back.
    pub fn flush(&mut self) -> String {
        let rest = self.take(false);
        self.before = [b' '; 2];
        rest
    }

    fn take(&mut self, more: bool) -> String {
        let mut scan = Scan { out: Vec::new(), copied: 0, before: self.before };
        let done = self.secrets.scan(&self.held, self.scope, more, &mut scan);
        scan.out.extend_from_slice(&self.held[scan.copied..done]);
        self.held.drain(..done);
        for byte in &scan.out[scan.out.len().saturating_sub(2)..] {
            self.before = [*byte, self.before[0]];
        }
        String::from_utf8_lossy(&scan.out).into_owned()
    }
}
