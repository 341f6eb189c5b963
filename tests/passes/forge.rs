//! A finished run is changed afterwards by somebody who can hash; `verify` must say so.

use std::fs;

use crate::case::{Case, Ran};
use crate::chain::Chain;
use crate::support::Bench;

/// Takes away what would tell at once.
fn unsealed(ran: Ran) -> Bench {
    ran.bench.unseal();
    fs::remove_file(ran.bench.state.join("anchors.log")).unwrap();
    ran.bench.nightloop(&["verify"]).expect(2);
    ran.bench
}

/// Forges; `verify` must name the event that gives it away. The journal is put back afterwards.
#[track_caller]
fn is_seen(bench: &Bench, what: &str, forge: impl FnOnce(&mut Chain) -> String) {
    let path = bench.run_dir().join("journal/00000001.jsonl");
    let original = fs::read(&path).unwrap();
    let mut chain = Chain::read(&bench.run_dir());
    let place = forge(&mut chain);
    chain.write();
    let found = bench.nightloop(&["verify"]);
    assert_eq!(found.code, 1, "{what} was not noticed: {}", found.stdout);
    assert!(found.stdout.contains(&place), "{what}: {place} is not named in {}", found.stdout);
    fs::write(path, original).unwrap();
}

/// A run that gave up: `A` never passed.
fn hopeless() -> Bench {
    let ran = Case::prd(&["A", "B"]).failing("A", 3).run().waits();
    unsealed(ran.answer("d1", "quit").resume().ends(1).is("EXIT_BLOCKED", "HUMAN_QUIT"))
}

#[test]
fn an_item_does_not_pass_without_a_verified_pass() {
    let bench = hopeless();
    is_seen(&bench, "a settled item", |chain| {
        let seq = chain.find("item.settled", 0);
        chain.change(seq, "\"passes\":false", "\"passes\":true");
        format!("event {seq} (")
    });
    for (from, to) in [("\"UNVERIFIED\"", "\"VERIFIED\""), ("\"help\":true", "\"help\":false")] {
        is_seen(&bench, from, |chain| {
            let seq = chain.find("pass.judged", 1);
            chain.change(seq, from, to);
            format!("event {seq} (")
        });
    }
}

#[test]
fn a_changed_choice_or_route_does_not_follow() {
    let bench = hopeless();
    let cases = [
        ("route.decided", 0, "\"LOOP\"", "\"ESCALATE\""),
        ("route.decided", 2, "\"ADVANCE_WITH_WARNINGS\"", "\"CONTINUE\""),
        ("route.decided", 1, "\"pass\":2", "\"pass\":1"),
        ("item.chosen", 0, "\"item\":\"A\"", "\"item\":\"B\""),
        ("item.chosen", 2, "\"pass\":3", "\"pass\":2"),
    ];
    for (kind, nth, from, to) in cases {
        is_seen(&bench, &format!("{kind} {from}"), |chain| {
            let seq = chain.find(kind, nth);
            chain.change(seq, from, to);
            format!("event {seq} (")
        });
    }
    for kind in ["pass.judged", "route.decided", "item.chosen"] {
        is_seen(&bench, &format!("{kind} left out"), |chain| {
            let seq = chain.find(kind, 0);
            chain.remove(seq);
            // Facts may come next; then the first decision after them gives it away.
            match kind {
                "pass.judged" => format!("event {seq} ("),
                "route.decided" => "(residual.measured)".to_owned(),
                _ => "(pass.judged)".to_owned(),
            }
        });
    }
}

#[test]
fn a_verdict_that_an_agent_wrote_is_not_smuggled_in() {
    let bench = unsealed(Case::prd(&["A", "B"]).run().converged());
    let read = |chain: &Chain, when: &str| {
        let wanted = format!("\"when\":\"{when}\"");
        chain.events.iter().position(|event| event.contains("\"prd.read\"") && event.contains(&wanted)).unwrap()
    };
    is_seen(&bench, "after work", |chain| {
        let (start, seq) = (read(chain, "start"), read(chain, "after_work"));
        let items = chain.data(start).split("\"items\":").nth(1).unwrap().split("]}]").next().unwrap().to_owned();
        let items = format!("{items}]}}]").replace("\"passes\":false", "\"passes\":true");
        chain.change(seq, "\"sha256\":null", &format!("\"sha256\":null,\"items\":{items}"));
        format!("event {seq} (")
    });
    // What a file said is a fact, and its text is kept.
    is_seen(&bench, "at the start", |chain| {
        let seq = read(chain, "start");
        chain.change(
            seq,
            "\"id\":\"B\",\"title\":\"Item B\",\"passes\":false",
            "\"id\":\"B\",\"title\":\"Item B\",\"passes\":true",
        );
        format!("event {seq} (")
    });
    is_seen(&bench, "two at once", |chain| {
        let (start, seq) = (read(chain, "start"), chain.find("item.settled", 0));
        let items = chain.data(start).split("\"items\":").nth(1).unwrap().split("]}]").next().unwrap().to_owned();
        let items = format!("{items}]}}]").replace("\"passes\":false", "\"passes\":true");
        chain.change(seq, "\"passes\":true", &format!("\"passes\":true,\"items\":{items}"));
        format!("event {seq} (")
    });
}
