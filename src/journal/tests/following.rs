//! A follower sees every event once, in order, whenever it looks.

use super::*;

#[test]
fn a_follower_sees_what_is_new_across_segments() {
    let fixture = Scratch::new();
    let mut follower = Follower::new(&fixture.run);
    assert!(follower.take(10).unwrap().is_empty());
    let mut seen = Vec::new();
    let options = WriterOptions { segment_bytes: 600, ..WriterOptions::default() };
    let writer = fixture.writer(fixture.fresh(), options);
    for number in 0..40 {
        writer.append_blocking(vec![draft(number)]).unwrap();
        if number % 3 == 0 {
            seen.extend(follower.take(2).unwrap().into_iter().map(|record| record.seq));
        }
    }
    writer.close().unwrap();
    loop {
        let records = follower.take(7).unwrap();
        if records.is_empty() {
            break;
        }
        seen.extend(records.into_iter().map(|record| record.seq));
    }
    let all: Vec<u64> = read(&fixture.run).map(|record| record.unwrap().seq).collect();
    assert!(all.len() > 40, "several segments");
    assert_eq!(seen, all);
}

#[test]
fn an_unfinished_line_is_not_there_yet() {
    let fixture = Scratch::new();
    let writer = fixture.writer(fixture.fresh(), WriterOptions::default());
    writer.append_blocking(vec![draft(1)]).unwrap();
    writer.close().unwrap();
    let mut follower = Follower::new(&fixture.run);
    assert_eq!(follower.take(10).unwrap().len(), 1);
    let path = fixture.run.segment_path(1);
    let whole = std::fs::read(&path).unwrap();
    let half = &whole[..whole.len() / 2];
    std::fs::write(&path, [whole.as_slice(), half].concat()).unwrap();
    assert!(follower.take(10).unwrap().is_empty());
    assert_eq!(follower.next_seq(), 1);
}

#[test]
fn a_follower_beside_a_busy_writer_never_sees_damage() {
    let fixture = Scratch::on_disk();
    let writer = fixture.writer(fixture.fresh(), WriterOptions { segment_events: 500, ..WriterOptions::default() });
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..300 {
                writer.append_blocking((0..8).map(|n| draft(number * 8 + n)).collect()).unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let mut follower = Follower::new(&fixture.run);
        let mut seen = 0u64;
        loop {
            let finished = done.load(std::sync::atomic::Ordering::SeqCst);
            let records = follower.take(100).unwrap();
            for record in &records {
                assert_eq!(record.seq, seen);
                seen += 1;
            }
            if records.is_empty() && finished {
                break;
            }
        }
        assert!(seen >= 2_400, "{seen}");
    });
}
