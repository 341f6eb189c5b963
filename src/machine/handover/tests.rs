//! When a conversation ends, and that none is handed over otherwise.

use super::*;
use crate::machine::event::Event;
use crate::machine::event::{
    AgentStarted, ConversationExtended, ConversationHandedOver, ExtendedBecause, LlmRequested, LlmResponded, Usage,
};
use crate::machine::legal;
use crate::machine::state::State;
use crate::machine::testing::{RED, Sim, started};
use crate::machine::todo::Todo;
use crate::model::call_limits::{CallBounds, CallLimits, Window};
use crate::model::decision::Patience;
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::purpose::Purpose;

fn bounds() -> CallBounds {
    let limits = CallLimits { turns: Some(2), continuations: Some(1), ..CallLimits::default() };
    CallLimits::in_force(Role::Solver, Some(&limits), None, Window::Known(1_000))
}

/// A run whose solver is called with these bounds.
fn calling(bounds: Option<CallBounds>) -> Sim {
    let mut sim = Sim::patient("", Patience::WAIT);
    sim.until(&RED, |run| run.state == State::SpawnSubagent && run.current.is_some());
    let begun = AgentStarted { bounds, ..started(&sim.run, Purpose::Solver, None) };
    sim.record(begun);
    sim
}

/// One turn that came to `next`, with so many tokens in the conversation.
fn turn(sim: &mut Sim, next: ReplyMove, tokens: u64) {
    let call = sim.run.call.as_ref().unwrap();
    let (key, turn, blob) = (call.started.call.clone(), call.turn, Digest::of(b"blob"));
    sim.record(LlmRequested {
        call: key.clone(),
        turn,
        attempt: 0,
        request_sha256: blob,
        reserved_tokens: 1,
        reserved_usd: None,
        drop_blocks: false,
    });
    sim.record(LlmResponded {
        call: key,
        turn,
        message: blob,
        stop: "end_turn".into(),
        next,
        empty: false,
        tool_uses: Vec::new(),
        usage: Usage { input: tokens, ..Usage::default() },
        cost_usd: None,
        request_id: None,
        rate: None,
        session: None,
    });
}

fn next(sim: &Sim) -> CallTodo {
    match sim.todo() {
        Todo::Call(todo) => todo,
        other => panic!("no call goes on: {other:?}"),
    }
}

fn extend(sim: &mut Sim, why: ExtendedBecause, handover: Option<HandoverReason>) {
    let call = sim.run.call.as_ref().unwrap().started.call.clone();
    sim.record(ConversationExtended { call, message: Digest::of(b"more"), why, handover });
}

fn handed(sim: &Sim, reason: HandoverReason) -> Event {
    let call = sim.run.call.as_ref().unwrap().started.call.clone();
    ConversationHandedOver { call, message: Digest::of(b"first"), reason }.into()
}

#[test]
fn after_its_turns_a_summary_is_asked_for_and_a_fresh_conversation_begins() {
    let mut sim = calling(Some(bounds()));
    for part in 0..2 {
        turn(&mut sim, ReplyMove::RunTools, 10);
        assert_eq!(next(&sim), CallTodo::ReturnResults);
        extend(&mut sim, ExtendedBecause::ToolResults, None);
        turn(&mut sim, ReplyMove::RunTools, 10);
        assert_eq!(next(&sim), CallTodo::AskHandover(HandoverReason::Turns));
        extend(&mut sim, ExtendedBecause::ToolResults, Some(HandoverReason::Turns));
        assert_eq!(next(&sim), CallTodo::Ask, "the summary");
        turn(&mut sim, ReplyMove::Finish, 10);
        if part == 0 {
            assert_eq!(next(&sim), CallTodo::HandOver(HandoverReason::Turns));
            let handed = handed(&sim, HandoverReason::Turns);
            sim.record(handed);
            assert_eq!(next(&sim), CallTodo::Ask);
            assert_eq!(sim.run.call.as_ref().unwrap().messages, [Digest::of(b"first")]);
        } else {
            assert!(matches!(next(&sim), CallTodo::End(AgentEnd::Cut(_))), "{:?}", next(&sim));
        }
    }
    assert_eq!(sim.refolded(), sim.run);
}

#[test]
fn a_filled_window_is_left_and_one_without_room_at_once() {
    for (tokens, wanted) in [
        (799, CallTodo::ReturnResults),
        (800, CallTodo::AskHandover(HandoverReason::Context)),
        (950, CallTodo::HandOver(HandoverReason::Context)),
    ] {
        let mut sim = calling(Some(bounds()));
        turn(&mut sim, ReplyMove::RunTools, tokens);
        assert_eq!(next(&sim), wanted, "{tokens}");
    }
}

#[test]
fn a_server_without_room_is_believed_and_an_older_call_ends_as_it_did() {
    let mut sim = calling(Some(bounds()));
    turn(&mut sim, ReplyMove::StartFresh, 10);
    assert_eq!(next(&sim), CallTodo::HandOver(HandoverReason::ContextFull));
    let mut older = calling(None);
    turn(&mut older, ReplyMove::StartFresh, 10);
    assert!(matches!(next(&older), CallTodo::End(AgentEnd::Failed { .. })));
    let mut older = calling(None);
    for _ in 0..2 {
        turn(&mut older, ReplyMove::RunTools, 999);
        assert_eq!(next(&older), CallTodo::ReturnResults);
        extend(&mut older, ExtendedBecause::ToolResults, None);
    }
}

#[test]
fn no_conversation_is_handed_over_without_a_reason() {
    let mut sim = calling(Some(bounds()));
    turn(&mut sim, ReplyMove::RunTools, 10);
    for reason in
        [HandoverReason::Turns, HandoverReason::Context, HandoverReason::ContextFull, HandoverReason::Iteration]
    {
        assert!(legal::legal(&sim.run, &handed(&sim, reason)).is_err(), "{reason:?}");
    }
    let older = calling(None);
    assert!(legal::legal(&older.run, &handed(&older, HandoverReason::Turns)).is_err());
}
