//! Power cuts: whatever happened to the bytes that were not yet synced, acknowledged events stay.
//!
//! The disk here keeps two images, as it is seen (`live`) and as it would be found after a
//! power cut (`durable`). A cut decides the fate of every 512-byte sector that was written but
//! not synced: arrived, lost (zeros) or garbage. Bytes already synced in a shared sector survive:
//! disks since long write a sector whole or not at all.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use super::*;

const SECTOR: usize = 512;

#[derive(Clone, Default)]
struct Image {
    live: Vec<u8>,
    durable: Vec<u8>,
}

#[derive(Default)]
struct Disk {
    segments: BTreeMap<u32, Image>,
    current: u32,
    /// Syncs that still succeed. At zero the power is gone: every call fails.
    syncs_left: u64,
}

#[derive(Clone)]
struct Handle(Arc<Mutex<Disk>>);

impl Handle {
    fn image<T>(&self, act: impl FnOnce(&mut Image) -> T) -> io::Result<T> {
        let mut disk = self.0.lock().unwrap();
        let current = disk.current;
        disk.segments.get_mut(&current).map(act).ok_or_else(|| io::Error::other("no segment"))
    }
}

impl Storage for Handle {
    fn open_segment(&mut self, number: u32) -> io::Result<u64> {
        let mut disk = self.0.lock().unwrap();
        disk.current = number;
        Ok(disk.segments.entry(number).or_default().live.len() as u64)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.image(|image| {
            let end = offset as usize + bytes.len();
            image.live.resize(image.live.len().max(end), 0);
            image.live[offset as usize..end].copy_from_slice(bytes);
            bytes.len()
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        {
            let mut disk = self.0.lock().unwrap();
            if disk.syncs_left == 0 {
                return Err(io::Error::other("the power is gone"));
            }
            disk.syncs_left -= 1;
        }
        self.image(|image| image.durable.clone_from(&image.live))
    }

    fn sync_dir(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.image(|image| image.live.resize(length as usize, 0))
    }

    fn release_reserve(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is found on the disk after the cut.
fn after_power_cut(image: &Image, random: &mut Seeded) -> Vec<u8> {
    let synced = image.durable.len();
    let pending = image.live.len() - synced;
    let length = synced + random.below(pending as u64 + 1) as usize;
    let mut found = image.durable.clone();
    let mut at = synced;
    while at < length {
        let end = length.min((at / SECTOR + 1) * SECTOR);
        match random.below(4) {
            0 | 1 => found.extend_from_slice(&image.live[at..end]),
            2 => found.resize(end, 0),
            _ => found.extend((at..end).map(|_| random.below(256) as u8)),
        }
        at = end;
    }
    found
}

fn padded(n: u32, random: &mut Seeded) -> Draft {
    let text = "x".repeat(random.below(1500) as usize);
    Draft::new(Some(n), "test.event", &json!({"n": n, "text": text})).unwrap()
}

/// Writes until the power goes, then finds out what is left. Returns whether it was refused.
fn power_cut(seed: u64, events_per_append: u64) -> bool {
    let mut random = Seeded::new(seed);
    let scratch = Scratch::new();
    let disk = Disk { syncs_left: random.below(8), ..Disk::default() };
    let handle = Handle(Arc::new(Mutex::new(disk)));
    let options = WriterOptions { segment_events: 3, ..WriterOptions::default() };
    let writer = scratch.writer_on(handle.clone(), scratch.fresh(), options);
    let mut acked = Vec::new();
    for appends in 0.. {
        assert!(appends <= 8, "seed {seed}: acknowledged without a sync");
        let count = 1 + random.below(events_per_append);
        let drafts = (0..count).map(|n| padded(n as u32, &mut random)).collect();
        match writer.append_blocking(drafts) {
            Ok(records) => acked.extend(records),
            Err(error) => {
                assert!(matches!(error, JournalError::Poisoned { .. }), "seed {seed}: {error}");
                break;
            }
        }
    }
    drop(writer);
    for (number, image) in &handle.0.lock().unwrap().segments {
        fs::write(scratch.segment(*number), after_power_cut(image, &mut random)).unwrap();
    }
    let (records, recovered) = match scratch.recover() {
        Ok(found) => found,
        Err(JournalError::Corrupt { seq, .. }) => {
            // Refused, not lost: the damage is behind everything acknowledged.
            let first_unsure = acked.last().map_or(0, |record| record.seq + 1);
            assert!(seq >= Some(first_unsure), "seed {seed}");
            return true;
        }
        Err(error) => panic!("seed {seed}: {error}"),
    };
    let ours: Vec<Record> = records.into_iter().filter(|record| record.kind != SEGMENT_END).collect();
    assert!(ours.len() >= acked.len(), "seed {seed}");
    assert_eq!(hashes(&ours[..acked.len()]), hashes(&acked), "seed {seed}");
    scratch.writer(recovered.tail, options).append_blocking(vec![draft(0)]).unwrap();
    let report = scratch.verify();
    assert!(report.problems.is_empty() && !report.torn, "seed {seed}: {report:?}");
    false
}

/// How many seeds to try; a long campaign sets more.
fn seeds() -> u64 {
    std::env::var("NIGHTLOOP_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(150)
}

#[test]
fn single_events_always_recover() {
    for seed in 0..seeds() {
        assert!(!power_cut(seed, 1), "seed {seed} was refused");
    }
}

#[test]
fn groups_recover_or_are_refused_without_loss() {
    let refused = (0..seeds()).filter(|seed| power_cut(*seed, 4)).count() as u64;
    // The honest case that looks like tampering (a later line kept, an earlier one lost) is real
    // but not the rule.
    assert!(refused < seeds() / 2, "{refused} refused");
}
