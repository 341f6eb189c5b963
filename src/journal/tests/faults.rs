//! A failing disk: no acknowledged event is lost, and the journal says what happened.

use std::os::unix::fs::MetadataExt as _;

use super::super::fault::{Faulty, How, Op, Plan};
use super::super::reserve;
use super::*;

const OPTIONS: WriterOptions = WriterOptions { segment_bytes: 1 << 20, segment_events: 4 };

/// Appends eight times under `plan`; returns what was acknowledged and what failed.
fn campaign(scratch: &Scratch, plan: Plan) -> (Vec<Record>, Vec<JournalError>) {
    let (mut acked, mut failed) = (Vec::new(), Vec::new());
    let started = Writer::start_on(
        Box::new(Faulty::new(scratch.files(), plan)),
        &scratch.run,
        scratch.fresh(),
        Box::new(StoppedClock),
        OPTIONS,
    );
    match started {
        Err(error) => failed.push(error),
        Ok(writer) => {
            for n in 0..8 {
                match writer.append_blocking(vec![draft(n)]) {
                    Ok(records) => acked.extend(records),
                    Err(error) => failed.push(error),
                }
            }
        }
    }
    (acked, failed)
}

/// Every acknowledged event is there, in order, and the journal can be continued.
fn check_after(scratch: &Scratch, acked: &[Record], plan: Plan) {
    let (records, recovered) = scratch.recover().unwrap_or_else(|error| panic!("{plan:?}: {error}"));
    let found = hashes(&records);
    let kept = acked.iter().filter(|record| found.contains(&record.hash)).count();
    assert_eq!(kept, acked.len(), "{plan:?}");
    if plan.op != Op::Sync {
        // A failed write leaves nothing: what is there was acknowledged.
        assert_eq!(recovered.torn, None, "{plan:?}");
        let ours = records.iter().filter(|record| record.kind != SEGMENT_END).count();
        assert_eq!(ours, acked.len(), "{plan:?}");
    }
    let writer = scratch.writer(recovered.tail, OPTIONS);
    writer.append_blocking(vec![draft(99)]).unwrap();
    writer.close().unwrap();
    assert!(scratch.verify().problems.is_empty(), "{plan:?}");
    assert!(!scratch.verify().torn, "{plan:?}");
}

#[test]
fn every_call_may_fail_once_or_for_good() {
    for op in [Op::Write, Op::Sync, Op::SyncDir, Op::Open] {
        for how in [How::Eio, How::Enospc, How::Short] {
            for persistent in [false, true] {
                // One further than there are calls: that plan must change nothing.
                for nth in 1..=calls_without_fault(op) + 1 {
                    check_plan(Plan { op, nth, persistent, how });
                }
            }
        }
    }
}

fn check_plan(plan: Plan) {
    let scratch = Scratch::new();
    let (acked, failed) = campaign(&scratch, plan);
    check_after(&scratch, &acked, plan);
    let reached = plan.nth <= calls_without_fault(plan.op);
    let harmless = plan.op == Op::Write && plan.how == How::Short && !plan.persistent;
    assert_eq!(failed.is_empty(), !reached || harmless, "{plan:?}: {failed:?}");
    failed.iter().for_each(|error| check_error(plan, error));
    // After a failed sync nothing more gets through, though the disk works again.
    let in_time = match plan.op {
        Op::Sync => appends_before(plan.nth),
        Op::SyncDir => 4 * (plan.nth - 1),
        Op::Write | Op::Open | Op::Truncate => return,
    };
    assert_eq!(acked.len() as u64, in_time, "{plan:?}");
}

/// Appends that were through before the nth sync; the fifth sync is that of the end mark.
fn appends_before(nth: u64) -> u64 {
    if nth <= 5 { nth - 1 } else { nth - 2 }
}

/// Eight events in segments of four: nine writes and syncs with the end mark, two segments.
fn calls_without_fault(op: Op) -> u64 {
    match op {
        Op::Write | Op::Sync => 9,
        Op::SyncDir | Op::Open => 2,
        Op::Truncate => 0,
    }
}

fn check_error(plan: Plan, error: &JournalError) {
    let right = match (plan.op, plan.how) {
        (Op::Sync | Op::SyncDir, _) => matches!(error, JournalError::Poisoned { .. }),
        (_, How::Enospc) => matches!(error, JournalError::DiskFull { .. }),
        (_, How::Eio | How::Short) => matches!(error, JournalError::Io { .. }),
    };
    assert!(right, "{plan:?}: {error}");
}

#[test]
fn a_write_that_cannot_be_undone_poisons() {
    let scratch = Scratch::new();
    // Two faults at once: short writes that end in nothing, and no way to cut them off.
    let short = Plan { op: Op::Write, nth: 2, persistent: true, how: How::Short };
    let stuck = Plan { op: Op::Truncate, nth: 1, persistent: false, how: How::Eio };
    let storage = Faulty::new(Faulty::new(scratch.files(), short), stuck);
    let writer = scratch.writer_on(storage, scratch.fresh(), OPTIONS);
    let acked = writer.append_blocking(vec![draft(0)]).unwrap();
    for n in 1..3 {
        let failed = writer.append_blocking(vec![draft(n)]);
        assert!(matches!(failed, Err(JournalError::Poisoned { .. })), "{failed:?}");
    }
    assert!(matches!(writer.close(), Err(JournalError::Poisoned { .. })));
    let (records, recovered) = scratch.recover().unwrap();
    assert_eq!(hashes(&records), hashes(&acked));
    let torn = recovered.torn.unwrap();
    let saved = fs::read(torn.saved_as).unwrap();
    assert_eq!((torn.bytes, torn.sha256), (saved.len() as u64, Digest::of(&saved)));
    assert!(torn.bytes > 0);
}

#[test]
fn a_full_disk_leaves_room_for_the_last_word() {
    let scratch = Scratch::new();
    let reserve = scratch.run.reserve_path();
    let taken = fs::metadata(&reserve).unwrap();
    assert_eq!(taken.len(), reserve::BYTES);
    assert!(taken.blocks() * 512 >= reserve::BYTES, "the reserve takes its space for real");
    let plan = Plan { op: Op::Write, nth: 2, persistent: false, how: How::Enospc };
    let writer = scratch.writer_on(Faulty::new(scratch.files(), plan), scratch.fresh(), OPTIONS);
    writer.append_blocking(vec![draft(0)]).unwrap();
    assert!(reserve.exists());
    let full = writer.append_blocking(vec![draft(1)]);
    assert!(matches!(full, Err(JournalError::DiskFull { .. })), "{full:?}");
    assert!(!reserve.exists(), "the reserve is given up");
    writer.append_blocking(vec![draft(2)]).unwrap();
    writer.close().unwrap();
    let (records, recovered) = scratch.recover().unwrap();
    assert_eq!(records.iter().map(|record| record.iter).collect::<Vec<_>>(), [Some(0), Some(2)]);
    scratch.writer(recovered.tail, OPTIONS).close().unwrap();
    assert_eq!(fs::metadata(&reserve).unwrap().len(), reserve::BYTES, "restored by the next writer");
}
