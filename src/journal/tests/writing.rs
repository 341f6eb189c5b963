//! Appending and reading back: order, group commit, segments, limits, blobs.

use super::*;

#[test]
fn events_round_trip_across_a_restart() {
    let (scratch, mut written) = Scratch::filled(3);
    let (read, recovered) = scratch.recover().unwrap();
    assert_eq!(hashes(&read), hashes(&written));
    assert_eq!(recovered.torn, None);
    let writer = scratch.writer(recovered.tail, WriterOptions::default());
    assert_eq!(writer.head(), (3, written[2].hash));
    written.extend(writer.append_blocking(vec![draft(3), draft(4)]).unwrap());
    assert_eq!(writer.head(), (5, written[4].hash));
    writer.close().unwrap();
    let read: Vec<Record> = read_all(&scratch);
    assert_eq!(hashes(&read), hashes(&written));
    for (n, (read, written)) in read.iter().zip(&written).enumerate() {
        assert_eq!(read.seq, n as u64);
        assert_eq!((read.iter, &read.kind), (written.iter, &written.kind));
        assert_eq!(read.data.get(), written.data.get());
    }
    assert_eq!(read[0].prev, Digest::of(scratch.run.genesis()));
}

fn read_all(scratch: &Scratch) -> Vec<Record> {
    read(&scratch.run).collect::<Result<_, _>>().unwrap()
}

#[test]
fn many_tasks_append_at_once() {
    let scratch = Scratch::new();
    let options = WriterOptions { segment_events: 40, ..WriterOptions::default() };
    let writer = scratch.writer(scratch.fresh(), options);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut acked: Vec<Record> = runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..200 {
            let writer = writer.clone();
            tasks.spawn(async move { writer.append(vec![draft(n), draft(n)]).await.unwrap() });
        }
        tasks.join_all().await.into_iter().flatten().collect()
    });
    writer.close().unwrap();
    for pair in acked.chunks(2) {
        assert_eq!(pair[0].seq + 1, pair[1].seq, "one append stands together");
    }
    acked.sort_by_key(|record| record.seq);
    let read: Vec<Record> = read_all(&scratch);
    let ours: Vec<Record> = read.into_iter().filter(|record| record.kind != SEGMENT_END).collect();
    assert_eq!(ours.len(), 400);
    assert_eq!(hashes(&ours), hashes(&acked));
}

#[test]
fn blocking_appends_work_inside_a_task() {
    let scratch = Scratch::new();
    let writer = scratch.writer(scratch.fresh(), WriterOptions::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // More than tokio lets one task do before it must yield.
    runtime.block_on(async {
        for n in 0..300 {
            writer.append_blocking(vec![draft(n)]).unwrap();
        }
    });
    assert_eq!(writer.head().0, 300);
}

#[test]
fn segments_roll_by_count() {
    let scratch = Scratch::new();
    let options = WriterOptions { segment_events: 3, ..WriterOptions::default() };
    let writer = scratch.writer(scratch.fresh(), options);
    for n in 0..7 {
        let record = writer.append_blocking(vec![draft(n)]).unwrap().remove(0);
        assert_eq!(writer.head(), (record.seq + 1, record.hash), "nothing follows an acknowledged event");
    }
    writer.close().unwrap();
    assert_eq!(scratch.run.segments().unwrap(), [1, 2, 3]);
    let records = read_all(&scratch);
    let kinds: Vec<&str> = records.iter().map(|record| record.kind.as_str()).collect();
    let event = "test.event";
    assert_eq!(kinds, [event, event, event, SEGMENT_END, event, event, event, SEGMENT_END, event]);
    let head = records[2].hash;
    assert_eq!(records[3].data.get(), format!("{{\"count\":3,\"head\":\"{head}\"}}"));
    let (_, recovered) = scratch.recover().unwrap();
    let Tail { next_seq, segment, segment_events, .. } = recovered.tail;
    assert_eq!((next_seq, segment, segment_events), (9, 3, 1));
}

#[test]
fn segments_roll_by_size() {
    let scratch = Scratch::new();
    let options = WriterOptions { segment_bytes: 1, ..WriterOptions::default() };
    let writer = scratch.writer(scratch.fresh(), options);
    for n in 0..3 {
        writer.append_blocking(vec![draft(n), draft(n)]).unwrap();
    }
    writer.close().unwrap();
    assert_eq!(scratch.run.segments().unwrap(), [1, 2, 3]);
    assert!(scratch.verify().problems.is_empty());
}

#[test]
fn a_closed_segment_without_a_successor_is_continued() {
    let scratch = Scratch::new();
    let options = WriterOptions { segment_events: 2, ..WriterOptions::default() };
    let writer = scratch.writer(scratch.fresh(), options);
    for n in 0..3 {
        writer.append_blocking(vec![draft(n)]).unwrap();
    }
    writer.close().unwrap();
    // As if the power had failed right after the end mark.
    fs::remove_file(scratch.segment(2)).unwrap();
    let (records, recovered) = scratch.recover().unwrap();
    assert_eq!(records.len(), 3);
    assert_eq!((recovered.tail.segment, recovered.tail.offset), (2, 0));
    scratch.writer(recovered.tail, options).append_blocking(vec![draft(9)]).unwrap();
    assert!(scratch.verify().problems.is_empty());
    assert_eq!(scratch.verify().events, 4);
}

#[test]
fn what_is_too_large_is_refused_and_leaves_nothing() {
    let scratch = Scratch::new();
    let writer = scratch.writer(scratch.fresh(), WriterOptions::default());
    let sized = |bytes: usize| Draft::new(None, "big", &"x".repeat(bytes - 2)).unwrap();
    let refused = writer.append_blocking(vec![draft(0), sized(MAX_DATA + 1)]);
    assert!(matches!(refused, Err(JournalError::TooLarge { .. })), "{refused:?}");
    let long_kind = Draft::new(None, "k".repeat(MAX_KIND + 1), &0).unwrap();
    assert!(matches!(writer.append_blocking(vec![long_kind]), Err(JournalError::TooLarge { .. })));
    let reserved = Draft::new(None, SEGMENT_END, &0).unwrap();
    assert!(matches!(writer.append_blocking(vec![reserved]), Err(JournalError::Invalid { .. })));
    assert_eq!(scratch.bytes(), b"");
    // The largest event there can be is written and read: escapes make its kind six times as long.
    let mut largest = sized(MAX_DATA);
    largest.kind = "\u{1}".repeat(MAX_KIND);
    writer.append_blocking(vec![largest]).unwrap();
    assert_eq!(read_all(&scratch).len(), 1);
}

#[test]
fn a_closed_journal_says_so() {
    let scratch = Scratch::new();
    let writer = scratch.writer(scratch.fresh(), WriterOptions::default());
    let other = writer.clone();
    writer.close().unwrap();
    assert!(matches!(other.append_blocking(vec![draft(0)]), Err(JournalError::Closed)));
    other.close().unwrap();
}

#[test]
fn a_writer_does_not_start_on_the_wrong_tail() {
    let (scratch, _) = Scratch::filled(2);
    let started = Writer::start(&scratch.run, scratch.fresh(), Box::new(StoppedClock), WriterOptions::default());
    assert!(matches!(started, Err(JournalError::Corrupt { .. })), "{started:?}");
}

#[test]
fn blobs_are_found_by_digest_and_checked() {
    let scratch = Scratch::new();
    let blobs = scratch.run.blobs();
    let digest = blobs.put(b"content").unwrap();
    assert_eq!(digest, Digest::of(b"content"));
    assert_eq!(blobs.get(&digest).unwrap(), b"content");
    assert_eq!(blobs.list().unwrap(), [digest]);
    let inode = |path: &PathBuf| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let path = blobs.path(&digest);
    let before = inode(&path);
    blobs.put(b"content").unwrap();
    assert_eq!(inode(&path), before, "an equal blob is not written again");
    fs::write(&path, b"contend").unwrap();
    assert!(matches!(blobs.get(&digest), Err(JournalError::Corrupt { .. })));
    blobs.put(b"content").unwrap();
    assert_eq!(blobs.get(&digest).unwrap(), b"content");
    assert!(matches!(blobs.get(&Digest::of(b"none")), Err(JournalError::NotFound { .. })));
    let large = vec![0; blobs::MAX_BLOB as usize + 1];
    assert!(matches!(blobs.put(&large), Err(JournalError::TooLarge { .. })));
}

#[test]
fn a_run_is_created_once() {
    let scratch = Scratch::new();
    let again = RunDir::create(scratch.run.path(), b"{}");
    assert!(matches!(again, Err(JournalError::Exists { .. })));
    assert_eq!(RunDir::open(scratch.run.path()).unwrap().genesis(), scratch.run.genesis());
    let nowhere = RunDir::open(&scratch.dir.path().join("other"));
    assert!(matches!(nowhere, Err(JournalError::NotFound { .. })));
}
