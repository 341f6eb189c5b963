//! Tokens and money through the whole engine: reserved before, counted after, owed when a reply breaks off.
//! And every way a reply can stop that the other cases do not have.

use serde_json::{Value, json};

use crate::case::{Case, Ran, solver_report, write};
use crate::sealed::{Expect, check};

fn priced(case: Case, price: Value) -> Case {
    case.declare("agents", json!({"model": {"backend": "rehearsal", "script": "rehearsal.yaml", "price": price}}))
}

fn one_step() -> Case {
    Case::new().check("a", "test -f a").solver(0, [write("a", "1\n")])
}

/// The default turns of a role with these fields besides.
fn with(case: Case, role: &'static str, fields: &Value) -> Case {
    let mut turns = case.default_turns(role, 0);
    for (key, value) in fields.as_object().unwrap() {
        turns[0][key] = value.clone();
    }
    case.turns(role, 0, turns)
}

fn row<'a>(usage: &'a Value, role: &str) -> &'a Value {
    usage["rows"].as_array().unwrap().iter().find(|row| row["role"] == role).unwrap()
}

fn end_of(ran: &Ran, role: &str) -> Value {
    ran.events("agent.finished").into_iter().find(|data| data["role"] == role).unwrap()["end"].clone()
}

#[test]
fn the_ledger_has_every_call_with_its_cost() {
    let price = json!({"input": "4", "output": "20", "cache_read": "0.20", "cache_write": "8"});
    let spent =
        json!({"usage": {"input": 2_000, "output": 1_500, "cache_read": 140_000, "cache_write": 8_000, "searches": 3}});
    let case = with(priced(one_step(), price), "scout", &spent);
    // Cut before its end, after the server had counted the input; then answered.
    let case = case.faults("solver", 0, json!([{"cut_after_bytes": 600}]));
    let ran = case.run();
    check(&ran, &Expect::exact(&["0"]));
    let usage = ran.bench.evidence("usage.json");
    let scout = row(&usage, "scout");
    assert_eq!(scout["cost_usd"], "0.16", "{scout}");
    assert_eq!((&scout["calls"], &scout["searches"], &scout["cache_read"]), (&json!(1), &json!(3), &json!(140_000)));
    let failed = &ran.events("llm.failed")[0];
    assert!(failed["usage"]["input"].as_u64().unwrap() > 100 && failed["cost_usd"].is_string(), "{failed}");
    let solver = row(&usage, "solver");
    assert_eq!(solver["calls"], 2);
    let answered = ran.events("llm.responded").iter().find(|data| data["call"] == failed["call"]).unwrap().clone();
    let both = failed["usage"]["input"].as_u64().unwrap() + answered["usage"]["input"].as_u64().unwrap();
    assert_eq!(solver["input"], both, "the broken attempt is owed too");
    assert_eq!(usage["total"]["cost_usd"], ran.bench.evidence("budget_log.json")["total"]["cost_usd"]);
    let status: Value = serde_json::from_str(&ran.bench.nightloop(&["status", "--json"]).stdout).unwrap();
    assert_eq!(status["usage"], usage);
    assert_eq!(status["rate"]["requests"], 999);
    ran.bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn an_unknown_price_stays_unknown() {
    let usage = one_step().run().bench.evidence("usage.json");
    assert!(usage["total"]["cost_usd"].is_null() && usage["total"]["output"].as_u64() > Some(0), "{usage}");
}

#[test]
fn a_call_is_made_smaller_until_it_fits_and_not_made_when_it_cannot() {
    // 16,384 tokens of output would be 1.6384: the reply gets what is left instead.
    let price = json!({"input": "0", "output": "100", "cache_read": "0", "cache_write": "0"});
    let case = priced(one_step(), price.clone()).declare("budget", json!({"max_cost_usd": "0.50"}));
    let ran = case.run();
    check(&ran, &Expect::exact(&["0"]));
    let requested = ran.events("llm.requested");
    assert_eq!(requested[0]["reserved_usd"], "0.5");
    let dear = priced(one_step(), price).declare("budget", json!({"max_cost_usd": "0.02"}));
    let ran = dear.run();
    assert_eq!(ran.ended.code, 2, "{}", ran.ended.stdout);
    assert!(ran.events("llm.requested").is_empty(), "256 tokens alone would cost 0.0256");
    assert_eq!(ran.events("budget.cut")[0]["exhausted"]["dimension"], "cost_usd");
    ran.bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn a_stream_that_passes_the_money_left_is_cut_and_owed() {
    // The server counts far more input than we thought: known with its first event, before the reply is written.
    let price = json!({"input": "3", "output": "15"});
    let case = priced(one_step(), price).declare("budget", json!({"max_cost_usd": "1"}));
    let ran = with(case, "scout", &json!({"usage": {"input": 400_000}})).run();
    assert_eq!(ran.ended.code, 2);
    let failed = ran.events("llm.failed");
    assert_eq!((&failed[0]["class"], &failed[0]["usage"]["input"]), (&json!("cancelled"), &json!(400_000)));
    assert!(ran.events("llm.responded").is_empty() && ran.events("tool.intended").is_empty());
    assert_eq!(ran.events("budget.cut")[0]["exhausted"]["dimension"], "cost_usd");
    ran.bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn a_request_whose_end_nobody_saw_is_lost_at_most_for_its_reserve() {
    let price = json!({"input": "3", "output": "15"});
    let stalled = priced(one_step(), price).turns("scout", 0, json!([{"delay_ms": 600_000}]));
    let running = stalled.start();
    running.wait_for_event("llm.requested");
    let pid = i32::try_from(running.pid()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL).unwrap();
    let ran = running.wait();
    let good = priced(one_step(), json!({"input": "3", "output": "15"}));
    good.replace_script(&ran);
    let ran = ran.resume();
    assert_eq!(ran.ended.code, 0, "{}", ran.ended.stderr);
    let usage = ran.bench.evidence("usage.json");
    let reserved = &ran.events("llm.requested")[0]["reserved_usd"];
    assert_eq!((&usage["lost"]["calls"], &usage["lost"]["at_most_usd"]), (&json!(1), reserved));
    ran.bench.nightloop(&["verify"]).expect(0);
}

/// Reply shapes of the scout, and how its part ends. The loop goes on without it.
#[test]
fn every_way_a_reply_can_stop() {
    let report = one_step().default_turns("scout", 0)[0].clone();
    let said = |stop: &str| json!({"text": "words", "stop": stop});
    let nothing = json!({"stop": "end_turn"});
    for (turns, end, requests) in [
        (json!([said("end_turn"), report]), json!("reported"), 2),
        (json!([said("stop_sequence"), report]), json!("reported"), 2),
        (json!([said("pause_turn"), said("pause_turn"), report]), json!("reported"), 3),
        (json!([said("max_tokens"), report]), json!("reported"), 2),
        (json!([nothing, nothing, nothing]), json!("no_report"), 3),
        // Handed over as often as a call may be.
        (json!([said("model_context_window_exceeded")]), json!("context_full"), 4),
        (json!([said("refusal")]), json!("refused"), 1),
        (json!([said("compaction")]), json!("stopped"), 1),
        (json!([said("tool_use")]), json!("stopped"), 1),
        (json!([{"calls": report["calls"], "stop": "end_turn"}]), json!("stopped"), 1),
        (json!([{"text": "x", "faults": [{"http": 413}]}]), json!("too_large"), 1),
        (
            json!([{"text": "x", "faults": [{"http": 400, "message": "prompt is too long: 2 > 1"}]}]),
            json!("too_large"),
            1,
        ),
        (json!([{"text": "x", "faults": [{"http": 404}]}]), json!("fatal"), 1),
        (json!([{"text": "x", "faults": [{"http": 422}]}]), json!("fatal"), 1),
    ] {
        let ran = one_step().turns("scout", 0, turns.clone()).run();
        let ended = end_of(&ran, "scout");
        let kind = match &ended {
            Value::String(_) => ended.clone(),
            ended if ended.get("refused").is_some() => json!("refused"),
            ended => ended["failed"]["class"].clone(),
        };
        assert_eq!(kind, end, "{turns}: {ended}");
        let asked =
            ran.events("llm.requested").iter().filter(|data| data["call"].as_str().unwrap().contains("scout")).count();
        assert_eq!(asked, requests, "{turns}");
    }
}

#[test]
fn a_reply_cut_in_a_call_gets_the_models_whole_room_once() {
    let report = one_step().default_turns("solver", 0)[0].clone();
    let cut = json!({"calls": [write("a", "half")], "stop": "max_tokens"});
    let agent = |max: u32| json!({"model": {"backend": "rehearsal", "script": "rehearsal.yaml", "model": "claude-haiku-4-5", "max_tokens": max}});
    let case = one_step().turns("solver", 0, json!([cut, report])).declare("agents", agent(4_000));
    let ran = case.run();
    // The same turn is asked again, so the script cuts it again: then the solver's part is over.
    let requested = ran.events("llm.requested");
    let first =
        requested.iter().find(|data| data["call"].as_str().unwrap().contains("solver")).unwrap()["call"].clone();
    let reserved: Vec<u64> = requested
        .iter()
        .filter(|data| data["call"] == first)
        .map(|data| data["reserved_tokens"].as_u64().unwrap())
        .collect();
    assert_eq!(reserved.len(), 2, "{reserved:?}");
    // The larger number is a byte longer, which may be a token more.
    let more = reserved[1] - reserved[0] - (64_000 - 4_000);
    assert!(more <= 1, "{reserved:?}");
    assert_eq!(end_of(&ran, "solver"), json!("no_report"));
}

#[test]
fn a_second_mismatch_is_final() {
    let message =
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation";
    let agent = json!({"model": {"backend": "rehearsal", "script": "rehearsal.yaml", "model": "claude-opus-5-5"}});
    let twice = json!([{"http": 400, "message": message}, {"http": 400, "message": message}]);
    let ran = one_step().faults("scout", 0, twice).declare("agents", agent).run();
    let classes: Vec<Value> = ran.events("llm.failed").iter().map(|data| data["class"].clone()).collect();
    assert_eq!(classes, ["prefix_mismatch", "fatal"]);
    let drops: Vec<Value> =
        ran.events("llm.requested").iter().take(2).map(|data| data["drop_blocks"].clone()).collect();
    assert_eq!(drops, [Value::Null, json!(true)]);
}

#[test]
fn while_a_servers_tool_is_open_only_results_follow() {
    let open = json!([{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}]);
    let report = solver_report("Done.");
    let first = json!({"blocks": open, "calls": [write("a", "1\n")]});
    let last = json!({"calls": [write("src/metric", "1\n"), report]});
    let ran = one_step().turns("solver", 0, json!([first, last])).run();
    check(&ran, &Expect::exact(&["0"]));
}
