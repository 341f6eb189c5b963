//! The recorded demos as reports. What each form says is looked at in `tests/screens`.

use crate::console::sample::Sample;
use crate::evidence::night::Night;
use crate::evidence::night_report::{NightReport, html, markdown, of, text};

fn report_of(sample: &Sample, count: usize) -> NightReport {
    let mut night = Night::default();
    let mut state = crate::playbook::start(&sample.events[0]).unwrap();
    night.learn(&sample.events[0], &state);
    for stamped in sample.events.iter().take(count).skip(1) {
        crate::machine::fold::apply(&mut state, stamped).unwrap();
        night.learn(stamped, &state);
    }
    of(&state, &night, None)
}

fn ended(sample: &Sample) -> NightReport {
    report_of(sample, sample.events.len())
}

#[test]
fn the_demo_is_told() {
    let report = ended(&Sample::demo());
    assert!(report.verdict.words.starts_with("Proven."), "{}", report.verdict.words);
    assert_eq!((report.verdict.good, report.verdict.certificate), (Some(true), Some("EXACT")));
    assert!(report.criteria.iter().all(|criterion| criterion.met && criterion.proof.is_some()));
    assert!(!report.changes.files.is_empty() && report.waits.is_empty());
    insta::assert_snapshot!("demo_text", text(&report, 0).join("\n"));
    insta::assert_snapshot!("demo_markdown", markdown(&report, 0));
}

#[test]
fn what_waits_stands_first() {
    let sample = Sample::decided();
    let report = report_of(&sample, sample.first("decision.asked", 0));
    assert_eq!(report.waits.len(), 1);
    assert_eq!(report.verdict.good, None);
    let shown = text(&report, 3_600).join("\n");
    assert!(shown.find("Waits for you").unwrap() < shown.find("Verdict").unwrap());
    assert!(shown.contains("nightloop inbox d1"), "{shown}");
}

#[test]
fn every_line_fits_a_terminal() {
    let mut report = ended(&Sample::demo());
    report.goal = Some("word ".repeat(60) + &"日本".repeat(100));
    for line in text(&report, 0) {
        assert!(unicode_width::UnicodeWidthStr::width(line.as_str()) <= 80, "{line}");
    }
}

#[test]
fn foreign_words_are_text_and_nothing_else() {
    let mut report = ended(&Sample::demo());
    let evil = "<script>alert(1)</script> [x](javascript:y) | `z` & \"q\"";
    report.goal = Some(evil.to_owned());
    report.name = Some(evil.to_owned());
    report.criteria[0].text = evil.to_owned();
    report.changes.files[0].path = evil.to_owned();
    report.risks.push(evil.to_owned());
    let page = html(&report, 0);
    assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"), "{page}");
    assert!(!page.contains("http") && !page.contains("src=") && !page.contains("href="), "nothing is fetched");
    let page = markdown(&report, 0);
    assert!(page.contains("\\<script\\>") && !page.contains("[x](java"), "{page}");
}

#[test]
fn unknown_money_is_not_nothing() {
    let sample = Sample::demo();
    let mut state = sample.ended();
    state.spent.cost_usd = None;
    state.spent.known_cost_usd = crate::model::decimal::Exact::parse("0.5").ok();
    let report = of(&state, &Night::default(), None);
    assert_eq!(report.money.left_usd, None);
    assert!(text(&report, 0).join("\n").contains("cost unknown, at least $0.5"));
}

#[test]
fn a_file_that_came_and_went_did_not_change() {
    use crate::machine::event::{Change, ChangeKind};
    let mut state = Sample::demo().ended();
    let change = |path: &str, kind| Change { path: path.to_owned(), kind, sha256: None };
    let mut iterations: Vec<_> = state.done.iter_mut().chain(state.current.as_mut()).collect();
    let last = iterations.len() - 1;
    for iteration in &mut iterations {
        iteration.artifacts.as_mut().unwrap().changes.clear();
    }
    let first =
        vec![change("gone", ChangeKind::Added), change("new", ChangeKind::Added), change("old", ChangeKind::Deleted)];
    iterations[0].artifacts.as_mut().unwrap().changes = first;
    let then = vec![
        change("gone", ChangeKind::Deleted),
        change("new", ChangeKind::Modified),
        change("old", ChangeKind::Added),
    ];
    iterations[last].artifacts.as_mut().unwrap().changes = then;
    let changes = of(&state, &Night::default(), None).changes;
    let kinds: Vec<(&str, &str)> = changes.files.iter().map(|file| (file.path.as_str(), file.kind)).collect();
    assert_eq!(kinds, [("new", ChangeKind::Added.word()), ("old", ChangeKind::Modified.word())]);
    assert_eq!((changes.added, changes.modified, changes.deleted), (1, 1, 0));
}
