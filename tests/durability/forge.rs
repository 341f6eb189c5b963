//! A forger who can hash: the chain is made right again, so only the story can give him away.
//!
//! He also deletes the seal and the anchors, which would tell at once.

use std::fs;

use nightloop::evidence::verify::{RenderedPlace, Verification, VerifyVerdict, verify};
use nightloop::journal::RunDir;
use nightloop::model::digest::Digest;

use crate::chain::Chain;
use crate::harness::{run_with, small, tiny};
use crate::support::Bench;

fn ended() -> (Bench, Chain) {
    let bench = small();
    bench.nightloop(&["run"]).expect(0);
    let chain = Chain::read(&bench.run_dir());
    (bench, chain)
}

/// What `verify` says about the forged journal when neither seal nor anchor is there.
fn judge(bench: &Bench, chain: &Chain) -> Verification {
    chain.write();
    bench.unseal();
    verify(&RunDir::open(&bench.run_dir()).unwrap(), None, &RenderedPlace::Nowhere)
}

#[track_caller]
fn assert_names(found: &Verification, place: &str) {
    assert_eq!(found.verdict(), VerifyVerdict::Tampered, "{place}: {:?}", found.problems);
    assert_eq!(found.problems[0].place, place, "{:?}", found.problems);
    assert!(!found.problems[0].what.is_empty());
}

#[test]
fn the_forgers_tools_are_right() {
    let (bench, chain) = ended();
    let before = fs::read(bench.run_dir().join("journal/00000001.jsonl")).unwrap();
    let found = judge(&bench, &chain);
    assert_eq!(fs::read(bench.run_dir().join("journal/00000001.jsonl")).unwrap(), before);
    assert_eq!(found.verdict(), VerifyVerdict::Incomplete, "only the seal is missing: {:?}", found.problems);
}

#[test]
fn a_forged_success_does_not_follow() {
    let (_, whole) = ended();
    let success = whole.data(whole.find("run.halted", 0));
    let bench = small();
    run_with(&bench, &["run"], &[("NIGHTLOOP_CRASH", "after_sync:60")]);
    let mut chain = Chain::read(&bench.run_dir());
    let seq = chain.events.len();
    chain.append("run.halted", &success);
    assert_names(&judge(&bench, &chain), &format!("event {seq} (run.halted)"));
}

#[test]
fn a_changed_fact_or_decision_is_named() {
    // (event, which, from, to, the decision that no longer follows, which)
    let cases = [
        ("certificate.issued", 0, "\"residual\":\"1\"", "\"residual\":\"0.5\"", "certificate.issued", 0),
        ("certificate.issued", 1, "\"met\":false", "\"met\":true", "certificate.issued", 1),
        ("glow.scored", 0, "\"W\":20", "\"W\":25", "glow.scored", 0),
        ("probe.finished", 5, "{\"exited\":1}", "{\"exited\":0}", "residual.measured", 1),
        ("residual.measured", 1, "\"value\":\"1\"", "\"value\":\"0\"", "residual.measured", 1),
        ("learnings.recorded", 0, "Wrote note.txt.", "Wrote notes.txt", "learnings.recorded", 0),
        ("gate.judged", 0, "\"passed\":true", "\"passed\":false", "gate.judged", 0),
        ("run.halted", 0, "EXIT_CONVERGED", "EXIT_DIVERGED", "run.halted", 0),
        ("state.entered", 4, "\"to\":\"COLLECT_ARTIFACTS\"", "\"to\":\"CHECK_HALTING\"", "state.entered", 4),
    ];
    let (bench, _) = ended();
    let original = fs::read(bench.run_dir().join("journal/00000001.jsonl")).unwrap();
    for (kind, nth, from, to, named, which) in cases {
        fs::write(bench.run_dir().join("journal/00000001.jsonl"), &original).unwrap();
        let mut chain = Chain::read(&bench.run_dir());
        let seq = chain.find(kind, nth);
        chain.change(seq, from, to);
        let place = format!("event {} ({named})", chain.find(named, which));
        assert_names(&judge(&bench, &chain), &place);
    }
}

#[test]
fn a_left_out_step_is_named() {
    for (kind, nth, named) in [("gate.judged", 0, "run.halted"), ("null.checked", 0, "state.entered")] {
        let (bench, mut chain) = ended();
        let seq = chain.find(kind, nth);
        chain.remove(seq);
        assert_names(&judge(&bench, &chain), &format!("event {seq} ({named})"));
    }
}

#[test]
fn what_happens_after_the_end_is_named() {
    for kind in ["tool.intended", "iteration.began", "run.started", "run.halted", "backpressure.seen"] {
        let (bench, mut chain) = ended();
        let data = match kind {
            "backpressure.seen" => r#"{"signal":"stop_file","detail":""}"#.to_owned(),
            kind => chain.data(chain.find(kind, 0)),
        };
        let seq = chain.events.len();
        chain.append(kind, &data);
        assert_names(&judge(&bench, &chain), &format!("event {seq} ({kind})"));
    }
}

#[test]
fn an_effect_that_was_never_announced_is_named() {
    // A result without its intent, and a report of an agent that was never started.
    for (kind, nth) in [("tool.intended", 0), ("probe.started", 0), ("llm.requested", 0), ("agent.started", 0)] {
        let (bench, mut chain) = ended();
        let seq = chain.find(kind, nth);
        chain.remove(seq);
        let found = judge(&bench, &chain);
        assert_eq!(found.verdict(), VerifyVerdict::Tampered, "{kind} left out: {:?}", found.incomplete);
        assert!(found.problems[0].place.starts_with(&format!("event {seq} ")), "{kind}: {:?}", found.problems);
    }
}

#[test]
fn a_tool_that_ran_without_leave_is_named() {
    let (bench, chain) = ended();
    let original = fs::read(bench.run_dir().join("journal/00000001.jsonl")).unwrap();
    let writes = |event: &String| event.contains("tool.intended") && event.contains("\"name\":\"write_file\"");
    let which = chain.events.iter().position(writes).unwrap();
    let nth = chain.events[..which].iter().filter(|event| event.contains("\"type\":\"tool.intended\"")).count();
    let result = chain.find("tool.finished", nth);
    // (what is forged, the event that gives it away)
    let intent = format!("event {which} (tool.intended)");
    let run = format!("event {result} (tool.finished)");
    let input = chain.data(which).split("\"input\":\"").nth(1).unwrap()[..64].to_owned();
    let other = Digest::of(b"another input").to_string();
    let cases: [(usize, &str, &str, &str); 4] = [
        (which, "allow default", "allow bash(*)", &run),
        (which, "allow default", "ask bash(*): allowed in d1 by ada", &run),
        (which, &input, &other, &intent),
        (which, "\"name\":\"write_file\"", "\"name\":\"bash\"", &intent),
    ];
    for (seq, from, to, place) in cases {
        fs::write(bench.run_dir().join("journal/00000001.jsonl"), &original).unwrap();
        let mut chain = Chain::read(&bench.run_dir());
        chain.change(seq, from, to);
        assert_names(&judge(&bench, &chain), place);
    }
    // Rules that would not have allowed it.
    let mut chain = Chain::read(&bench.run_dir());
    fs::write(bench.run_dir().join("journal/00000001.jsonl"), &original).unwrap();
    chain.events.clone_from(&Chain::read(&bench.run_dir()).events);
    chain.change(chain.find("run.started", 0), "\"deny\":[]", "\"deny\":[\"*\"]");
    assert_names(&judge(&bench, &chain), &run);
    // A journal is judged by the rules of its time, and what is in it shows which time that was.
    let now = format!("\"reducer_version\":{}", nightloop::machine::event::REDUCER_VERSION);
    chain.change(chain.find("run.started", 0), &now, "\"reducer_version\":2");
    assert_eq!(judge(&bench, &chain).verdict(), VerifyVerdict::Tampered);
}

#[test]
fn the_anchor_alone_gives_a_rewritten_run_away() {
    let bench = tiny();
    bench.nightloop(&["run"]).expect(0);
    let mut chain = Chain::read(&bench.run_dir());
    let seq = chain.find("probe.finished", 0);
    let (from, to) = ("\"millis\":", "\"millis\":1");
    chain.change(seq, from, to);
    chain.write();
    bench.unseal();
    let found = bench.nightloop(&["verify"]).expect(1);
    assert!(found.stdout.contains("anchor"), "{}", found.stdout);
}
