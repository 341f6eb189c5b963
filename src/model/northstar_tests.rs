//! Table tests for NORTHSTAR.md: the shapes, the numbers, the distance.

use proptest::prelude::*;

use super::*;

fn metric(id: &str, metric: &str, current: &str, target: &str) -> Metric {
    Metric { id: id.into(), metric: metric.into(), current: current.into(), target: target.into() }
}

fn metrics(text: &str) -> Vec<Metric> {
    parse(text).unwrap().metrics
}

#[test]
fn numbers() {
    for (text, expected) in [
        ("~50", Some("50")),
        ("1,000", Some("1000")),
        ("1,234,567.5", Some("1234567.5")),
        ("0%", Some("0")),
        ("80%", Some("80")),
        ("100+ skills", Some("100")),
        ("100+", Some("100")),
        ("200ms", Some("200")),
        ("< 0.5 s", Some("0.5")),
        (">= 80 %", Some("80")),
        ("≥80", Some("80")),
        ("**95%**", Some("95")),
        ("`12`", Some("12")),
        ("-3", Some("-3")),
        ("1e-4", Some("0.0001")),
        ("5 errors", Some("5")),
        ("5 mm", Some("5")),
        ("  7 ", Some("7")),
        ("unknown", None),
        ("", None),
        ("-", None),
        ("—", None),
        ("n/a", None),
        ("TBD", None),
        ("1,5", None),
        ("12,34,567", None),
        ("1.2.3", None),
        ("5k", None),
        ("2M users", None),
        ("3 million", None),
        ("3/10", None),
        ("3 of 10", None),
        ("50-60", None),
        ("2026-01-01", None),
        ("12:30", None),
        ("nan", None),
        ("inf", None),
        ("1e-40", None),
        ("1.23456789012345678901234567890123", None),
    ] {
        assert_eq!(number(text).map(|n| n.normalize().to_string()).as_deref(), expected, "{text:?}");
    }
}

#[test]
fn a_table_with_now_and_the_last_column_as_target() {
    let text = "# NORTHSTAR: x\n\n| Metric | Now | Mid | End |\n|---|:-:|---|---|\n| stars | ~50 | 500 | 1,000 |\n| a \\| b | 0% | | 80% |\n\nafter";
    assert_eq!(metrics(text), [metric("vc-1", "stars", "~50", "1,000"), metric("vc-2", "a | b", "0%", "80%")]);
}

#[test]
fn a_table_with_named_target_before_current_and_ids() {
    let text = "id | Metric | Target | Current value\n---|---|---|---\nm1 | speed | 10 | 3\n| | size | 5 | unknown |\n";
    assert_eq!(metrics(text), [metric("m1", "speed", "3", "10"), metric("vc-1", "size", "unknown", "5")]);
}

#[test]
fn other_tables_and_examples_are_not_metrics() {
    let text = "| Who | What |\n|---|---|\n| a | b |\n```text\n- vc-1: x | 1 | 2\n```\n<!--\n- vc-1: x | 1 | 2\n-->\n";
    assert_eq!(parse(text), Err(NorthstarError::NothingFound));
}

#[test]
fn list_lines_in_crlf() {
    let text = "goals\r\n- vc-7: tests | 3 | 10\r\n* coverage | 50% | 80%\r\n- just prose\r\n";
    assert_eq!(metrics(text), [metric("vc-7", "tests", "3", "10"), metric("vc-1", "coverage", "50%", "80%")]);
}

#[test]
fn fenced_yaml_keeps_the_digits() {
    let text = "```yaml\nother: 1\nnorthstar_metrics:\n  - id: q\n    metric: quality\n    current: 0.12345678901234567890123\n    target: 1\n  - {metric: x, now: ~, target: \"5\"}\n```\n";
    assert_eq!(
        metrics(text),
        [metric("q", "quality", "0.12345678901234567890123", "1"), metric("vc-1", "x", "unknown", "5")]
    );
}

#[test]
fn fenced_json_keeps_the_digits() {
    let text = "~~~json\n{\"northstar_metrics\": [{\"metric\": \"q\", \"current\": 0.12345678901234567890123,\n\t\"target\": \"1\"}]}\n~~~\n";
    assert_eq!(metrics(text), [metric("vc-1", "q", "0.12345678901234567890123", "1")]);
}

#[test]
fn given_ids_push_numbered_ones_aside() {
    let text = "- a | 1 | 2\n- vc-1: b | 1 | 2\n- c | 1 | 2\n";
    let ids: Vec<String> = metrics(text).into_iter().map(|m| m.id).collect();
    assert_eq!(ids, ["vc-2", "vc-1", "vc-3"]);
}

#[test]
fn errors_name_the_place() {
    let duplicate = parse("- vc-1: a | 1 | 2\n\n- vc-1: b | 1 | 2\n").unwrap_err();
    assert_eq!(duplicate, NorthstarError::DuplicateId { id: "vc-1".into(), first: 1, line: 3 });
    assert!(matches!(parse("- vc-1: a | 1\n"), Err(NorthstarError::BadListLine { line: 1, .. })));
    assert!(matches!(parse("x\n```yaml\nnorthstar_metrics: 5\n```"), Err(NorthstarError::BadBlock { line: 2, .. })));
    assert!(matches!(
        parse("```yaml\nnorthstar_metrics:\n- {metric: a, current: 1}\n```"),
        Err(NorthstarError::BadBlock { line: 1, .. })
    ));
    assert_eq!(parse(&" ".repeat(MOST_BYTES + 1)), Err(NorthstarError::TooLarge(MOST_BYTES + 1)));
    assert_eq!(parse(&"- a | 1 | 2\n".repeat(MOST_METRICS + 1)), Err(NorthstarError::TooMany));
    assert_eq!(parse(&"- a | 1 | 2\n".repeat(MOST_METRICS)).unwrap().metrics.len(), MOST_METRICS);
}

#[test]
fn the_shapes_shown_in_the_error_are_accepted() {
    let shown = NorthstarError::NothingFound.to_string();
    assert!(shown.contains("| Metric | Current | Target |") && shown.contains("northstar_metrics:"));
    let lines: Vec<&str> = shown.lines().skip(1).map(|line| &line[18..]).collect();
    for (shape, range) in [("table", 0..3), ("list", 3..4), ("block", 4..8)] {
        let got = metrics(&lines[range].join("\n"));
        assert_eq!(got, [metric("vc-1", "tests passing", "12", "40")], "{shape}");
    }
}

#[test]
fn distance_is_the_exact_mean() {
    let all = [
        metric("a", "", "1", "3"),
        metric("b", "", "unknown", "5"),
        metric("c", "", "5", "0"),
        metric("d", "", "12%", "10%"),
    ];
    let got = distance(&all);
    // 2/3, 5, 1/5 -> 88/15 over three
    assert_eq!(got.total, Fraction::new(88, 45));
    assert_eq!(got.excluded, ["b"]);
    assert_eq!(distance(&all[1..2]), Distance { total: None, excluded: vec!["b".into()] });
    assert_eq!(distance(&[]).total, None);
    assert_eq!(distance(&[metric("n", "", "-5", "-10")]).total, Fraction::new(1, 2));
    assert_eq!(distance(&[metric("n", "", "10", "10")]).total, Some(Fraction::zero()));
}

proptest! {
    #[test]
    fn nothing_panics(text in any::<String>(), lines in proptest::collection::vec("[|`~\\-:a-z0-9\\\\ <!>]{0,12}", 0..12)) {
        let _ = (parse(&text), number(&text));
        let _ = parse(&lines.join("\n"));
    }

    #[test]
    fn tables_are_read_verbatim(rows in proptest::collection::vec(("[a-z][a-z ]{0,8}[a-z]", "[0-9]{1,5}%?", "[0-9]{1,5}%?"), 1..20)) {
        let mut text = String::from("|Metric|Now|Target|\n|-|-|-|\n");
        for (name, now, target) in &rows {
            text.push_str(&format!("| {name} | {now} | {target} |\n"));
        }
        let got: Vec<_> = metrics(&text).into_iter().map(|m| (m.metric, m.current, m.target)).collect();
        prop_assert_eq!(got, rows);
    }
}
