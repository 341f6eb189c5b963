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
fn a_line_that_is_finished_while_it_is_looked_at_is_no_corruption() {
    use std::io::Write as _;

    let model = Scratch::new();
    let writer = model.writer(model.fresh(), WriterOptions::default());
    let records = writer.append_blocking((0..4_000).map(draft).collect()).unwrap();
    writer.close().unwrap();
    let bytes = model.bytes();
    // The same run, written by someone who needs several goes for a line.
    let copy = Scratch::new();
    copy.set_bytes(b"");
    let writing = std::thread::spawn({
        let path = copy.segment(1);
        move || {
            let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
            for piece in bytes.chunks(61) {
                file.write_all(piece).unwrap();
                std::thread::yield_now();
            }
        }
    });
    let mut follower = Follower::new(&copy.run);
    let mut seen = Vec::new();
    while seen.len() < records.len() {
        seen.extend(follower.take(1_000).unwrap());
    }
    writing.join().unwrap();
    assert_eq!(hashes(&seen), hashes(&records));
}
