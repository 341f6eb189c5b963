//! Reading on in a result that was cut.

use super::*;
use crate::tool::output::reads_on;

#[test]
fn a_long_output_is_read_to_its_end_in_bounded_looks() {
    let mut bench = bench();
    let shown = bench.ctx.limits.model_text_bytes;
    let first = bench.run("bash", json!({"command": "seq 20000"}));
    let hint = reads_on(&first, 3, shown).unwrap();
    assert!(hint.contains("read_output with output=3 and offset=15000"), "{hint}");
    bench.ctx.outputs.insert(3, first.output.clone().into());
    let (mut read_back, mut offset) = (String::new(), 0);
    loop {
        let outcome = bench.run("read_output", json!({"output": 3, "offset": offset}));
        assert!(outcome.text.len() < shown + 200, "{}", outcome.text.len());
        assert_eq!(reads_on(&outcome, 4, shown), None, "what it shows is what there is");
        let Some((text, hint)) = outcome.text.split_once("\n[output 3 goes on") else {
            read_back.push_str(&outcome.text);
            break;
        };
        read_back.push_str(text);
        offset = hint.rsplit_once("offset=").unwrap().1.trim_end_matches(']').parse::<u64>().unwrap();
    }
    assert!(read_back.as_bytes() == first.output, "{} bytes of {}", read_back.len(), first.output.len());
}

#[test]
fn a_line_without_an_end_is_no_trap_and_what_is_not_there_is_said() {
    let mut bench = bench();
    bench.ctx.outputs.insert(1, vec![b'x'; 70_000].into());
    let text = bench.good("read_output", json!({"output": 1}));
    assert!(text.contains("continue with offset=30000"), "{}", &text[29_990..]);
    let past = bench.run("read_output", json!({"output": 1, "offset": 70_000}));
    assert!(past.is_error && past.text.contains("past the end"), "{}", past.text);
    let unknown = bench.run("read_output", json!({"output": 2}));
    assert!(unknown.is_error && unknown.text.contains("no output 2"), "{}", unknown.text);
}

#[test]
fn what_was_shown_whole_offers_no_more() {
    let bench = bench();
    let small = bench.run("bash", json!({"command": "seq 20"}));
    assert_eq!(reads_on(&small, 1, bench.ctx.limits.model_text_bytes), None);
}
