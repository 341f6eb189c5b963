//! Texts that decisions lean on, asked for once and kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::super::cmd::{Cmd, Load};
use crate::model::digest::Digest;
use crate::model::safe::Safe;

type Read = Result<Arc<[u8]>, Safe>;

/// What was asked for, with what came.
#[derive(Debug, Default)]
pub(super) struct Blobs(BTreeMap<Digest, Option<Read>>);

impl Blobs {
    /// The command that reads it, the first time.
    pub fn ask(&mut self, digest: &Digest) -> Option<Cmd> {
        if self.0.contains_key(digest) {
            return None;
        }
        self.0.insert(*digest, None);
        Some(Cmd::Load(Load::Blob(*digest)))
    }

    /// Keeps what was asked for; others may ask for texts, too.
    pub fn keep(&mut self, digest: &Digest, read: &Read) {
        if let Some(slot) = self.0.get_mut(digest) {
            *slot = Some(read.clone());
        }
    }

    pub fn get(&self, digest: &Digest) -> Option<&Read> {
        self.0.get(digest)?.as_ref()
    }

    /// As text, if it is there and is text.
    pub fn text(&self, digest: &Digest) -> Option<&str> {
        std::str::from_utf8(self.get(digest)?.as_ref().ok()?).ok()
    }
}
