//! Tests that need more than one file of the journal, and what they share.

mod chain;
mod crash_image;
mod damage;
mod envelope;
mod faults;
mod following;
mod writing;

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::storage::{Files, Storage};
use super::*;
use crate::model::digest::Digest;

/// A clock that stands still: the same events give the same bytes.
struct StoppedClock;

impl Clock for StoppedClock {
    fn wall(&self) -> String {
        "2026-11-15T23:28:41.123Z".to_owned()
    }

    fn mono_ms(&self) -> u64 {
        918_273
    }

    fn boot_id(&self) -> String {
        "b00t".to_owned()
    }
}

/// A run in a directory that goes away with it.
struct Scratch {
    dir: tempfile::TempDir,
    run: RunDir,
}

impl Scratch {
    fn new() -> Self {
        // In memory where possible: these tests are about the order of syncs, not their cost.
        Self::in_dir(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    /// Where a reader can see half of a write, as on most disks.
    fn on_disk() -> Self {
        Self::in_dir(tempfile::tempdir_in("target").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn in_dir(dir: tempfile::TempDir) -> Self {
        let run = RunDir::create(&dir.path().join("RUN"), br#"{"run":"RUN"}"#).unwrap();
        Self { dir, run }
    }

    fn lock(&self) -> RunLock {
        RunLock::acquire(self.run.path()).unwrap()
    }

    fn fresh(&self) -> Tail {
        Tail::fresh(self.run.genesis_digest())
    }

    fn writer(&self, tail: Tail, options: WriterOptions) -> Writer {
        Writer::start(&self.run, tail, Box::new(StoppedClock), options).unwrap()
    }

    fn writer_on(&self, storage: impl Storage + 'static, tail: Tail, options: WriterOptions) -> Writer {
        Writer::start_on(Box::new(storage), &self.run, tail, Box::new(StoppedClock), options).unwrap()
    }

    fn files(&self) -> Files {
        Files::of(&self.run)
    }

    fn recover(&self) -> Result<(Vec<Record>, Recovered), JournalError> {
        let mut records = Vec::new();
        let recovered = recover(&self.run, &self.lock(), &mut |record| {
            records.push(record);
            Ok(())
        })?;
        Ok((records, recovered))
    }

    fn segment(&self, number: u32) -> PathBuf {
        self.run.segment_path(number)
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.segment(1)).unwrap()
    }

    fn set_bytes(&self, bytes: &[u8]) {
        fs::write(self.segment(1), bytes).unwrap();
    }

    /// Writes `count` events, one append each, and closes.
    fn filled(count: u32) -> (Self, Vec<Record>) {
        let scratch = Self::new();
        let writer = scratch.writer(scratch.fresh(), WriterOptions::default());
        let mut records = Vec::new();
        for n in 0..count {
            records.extend(writer.append_blocking(vec![draft(n)]).unwrap());
        }
        writer.close().unwrap();
        (scratch, records)
    }

    fn anchors(&self) -> Anchors {
        Anchors::in_root(self.dir.path())
    }

    fn verify(&self) -> ChainReport {
        // Opened anew, because opening reads genesis.json.
        let run = RunDir::open(self.run.path()).unwrap();
        verify_chain(&run, Some(self.anchors().path()))
    }
}

fn draft(n: u32) -> Draft {
    Draft::new(Some(n), "test.event", &json!({"n": n, "text": "ä \" \\ \n"})).unwrap()
}

fn hashes(records: &[Record]) -> Vec<Digest> {
    records.iter().map(|record| record.hash).collect()
}

/// Small repeatable randomness (xorshift64*): a failing seed is all one needs to see it again.
struct Seeded(u64);

impl Seeded {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}
