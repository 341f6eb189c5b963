//! Which event may come in which state, as one table: SPEC section 4, seed 001 sections 3.1 to 3.4.

use std::collections::BTreeMap;

use super::legal;
use crate::machine::event::*;
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::machine::step::{Input, step};
use crate::machine::testing::{GREEN, Sim, began, collected, compared, result, solved, started};
use crate::model::budget::{Dimension, Exhausted};
use crate::model::certificate::{CertificateKind, Facts, certify};
use crate::model::decimal::Exact;
use crate::model::decision::{Answer, DecisionId, Patience, Request};
use crate::model::digest::Digest;
use crate::model::failure::FailureClass;
use crate::model::gate_report::GateReport;
use crate::model::purpose::Purpose;
use crate::model::stop::{ExitStatus, StopReason};

/// The columns of the tables: a run that has just arrived in a state. SPAWN_SUBAGENT stands there twice, before and in
/// an iteration; the last column is EXIT_CONVERGED.
fn columns() -> Vec<(&'static str, Sim)> {
    use State::*;
    let mut columns: Vec<_> = [Init, IntakeGoal, NullCheck, DreamGoal, SpawnSubagent]
        .into_iter()
        .map(|state| (state.name(), Sim::at(state)))
        .collect();
    let mut working = Sim::at(SpawnSubagent);
    working.begin_iteration();
    columns.push(("SPAWN_SUBAGENT in an iteration", working));
    let rest = [CollectArtifacts, CheckHalting, AccumulateLearnings, GlowCheck, BudgetCheck, ExitConverged];
    columns.extend(rest.into_iter().map(|state| (state.name(), Sim::at(state))));
    columns
}

type Make = fn(&RunState) -> Event;

fn sha() -> Digest {
    Digest::of(b"sha")
}

fn tree(purpose: TreePurpose) -> Event {
    TreeTaken { purpose, tree: sha(), files: 1, drifted: Vec::new() }.into()
}

fn began_probe(phase: Phase) -> Event {
    ProbeStarted { phase, probe: Probe::Residual, argv: vec!["x".into()] }.into()
}

fn ended_probe(phase: Phase) -> Event {
    ProbeFinished { phase, probe: Probe::Residual, result: result(true) }.into()
}

fn halted(run: &RunState, status: ExitStatus) -> Event {
    crate::machine::halt::halt(run, status, StopReason::InvariantViolation, "").into()
}

fn certificate(run: &RunState) -> Event {
    let facts =
        Facts { declared: &[], findings: &[], residual: None, r_p: Exact::ZERO, verifiers_passed: 0, against: None };
    CertificateIssued { iteration: run.iteration_number(), certificate: certify(facts) }.into()
}

fn glow(run: &RunState) -> Event {
    let glow = crate::model::glow::score(&crate::model::glow::Facts::default());
    GlowScored { iteration: run.iteration_number(), glow }.into()
}

fn learnings(run: &RunState) -> Event {
    let mut sim = Sim::at(State::AccumulateLearnings);
    sim.write_learnings();
    let Some(Event::Iteration(IterationEvent::LearningsRecorded(recorded))) = sim.events.pop() else {
        panic!("nothing was learned")
    };
    LearningsRecorded { iteration: run.iteration_number(), ..recorded }.into()
}

fn raised(run: &RunState) -> Event {
    let (from, to) = (run.limits.max_iterations, run.limits.max_iterations + 1);
    let (from, to) = (from.to_string(), to.to_string());
    BudgetRaised { dimension: Dimension::Iterations, from, to, by: "p".into() }.into()
}

/// `x`: may come; `.`: is rejected.
#[rustfmt::skip]
const TABLE: &[(&str, Make, &str)] = &[
    //                                                        INIT
    //                                                        |INTAKE_GOAL
    //                                                        ||NULL_CHECK
    //                                                        |||DREAM_GOAL
    //                                                        ||||SPAWN_SUBAGENT
    //                                                        |||||... in an iteration
    //                                                        ||||||COLLECT_ARTIFACTS
    //                                                        |||||||CHECK_HALTING
    //                                                        ||||||||ACCUMULATE_LEARNINGS
    //                                                        |||||||||GLOW_CHECK
    //                                                        ||||||||||BUDGET_CHECK
    //                                                        |||||||||||EXIT_CONVERGED
    ("a second start", |run| run.started.clone().into(),     "............"),
    ("resumed", |_| resumed(),                               "xxxxxxxxxxx."),
    ("rejected", |run| InputRejected { state: run.state, input: "x".into(), why: "y".into() }.into(),
                                                             "xxxxxxxxxxxx"),
    ("Northstar read", |_| NorthstarRead { file: "N".into(), sha256: None, metrics: Vec::new(), problem: None }.into(),
                                                             "..x........."),
    ("nulls checked", |_| NullChecked { missing: Vec::new() }.into(),
                                                             "..x........."),
    ("memory", |_| MemoryFound::default().into(),            "xxxxxxxxxxx."),
    ("plan", |_| PlanWritten { sha256: sha() }.into(),       "...x........"),
    ("stop signal", |_| BackpressureSeen { signal: Signal::StopFile, detail: String::new() }.into(),
                                                             "xxxxxxxxxxx."),
    ("EXIT_BLOCKED", |run| halted(run, ExitStatus::ExitBlocked),
                                                             "xxxxxxxxxxx."),
    ("EXIT_NEED_INFO", |run| halted(run, ExitStatus::ExitNeedInfo),
                                                             "..xx........"),
    // Not even in BUDGET_CHECK, as long as no gate has passed.
    ("EXIT_CONVERGED", |run| halted(run, ExitStatus::ExitConverged),
                                                             "............"),
    ("tree at the start", |_| tree(TreePurpose::Baseline),   "...x........"),
    ("tree before review", |_| tree(TreePurpose::BeforeReview), ".......x...."),
    ("tree after review", |_| tree(TreePurpose::AfterReview), ".......x...."),
    ("tree after replays", |_| tree(TreePurpose::Frozen),    "..........x."),
    ("probe at the start", |_| began_probe(Phase::Baseline), "...x........"),
    ("its end", |_| ended_probe(Phase::Baseline),            "...x........"),
    ("probe after the scout", |_| began_probe(Phase::Scouted), "....xx......"),
    ("probe of a detour", |_| began_probe(Phase::Detour),    "....xx......"),
    ("check", |_| began_probe(Phase::Iteration),             ".......x...."),
    ("its end", |_| ended_probe(Phase::Iteration),           ".......x...."),
    ("replay", |_| began_probe(Phase::Replay(1)),            "..........x."),
    ("its end", |_| ended_probe(Phase::Replay(1)),           "..........x."),
    ("probe of the gate", |_| began_probe(Phase::Gate),      "..........x."),
    ("probe of a step", |_| began_probe(Phase::Step(0)),     "............"),
    ("iteration", |run| began(run.iteration_number()).into(), "....x......."),
    ("artifacts", |run| collected(run.iteration_number()).into(),
                                                             "......x....."),
    ("residual", |run| ResidualMeasured { iteration: Some(run.iteration_number()), residual: None, why_null: None }.into(),
                                                             "...x..xx...."),
    ("certificate", certificate,                             "......xx...."),
    ("GLOW", glow,                                           "......x.x..."),
    ("learnings", learnings,                                 "......x.x..."),
    ("guards", |run| compared(run.iteration_number()).into(), ".......x..x."),
    ("gate", |run| GateJudged { iteration: run.iteration_number(),
        report: GateReport { passed: true, rung_achieved: None, checks: Vec::new() } }.into(),
                                                             "..........x."),
    ("agent", |run| started(run, Purpose::Solver, None).into(), ".....x.x..x."),
    ("repository", |_| GitIntended { operation: GitOperation::Prepare }.into(),
                                                             "............"),
    // People come at any moment of a run, and at none after it.
    ("viewer", |_| ViewerAttached { viewer: "v".into(), may_act: true }.into(),
                                                             "xxxxxxxxxxx."),
    ("viewer gone", |_| ViewerDetached { viewer: "v".into(), why: String::new() }.into(),
                                                             "xxxxxxxxxxx."),
    ("pause", |_| PauseRequested { by: "p".into() }.into(),  "xxxxxxxxxxx."),
    ("pause that nobody asked for", |_| PauseBegan {}.into(), "............"),
    ("going on without a pause", |_| PauseLifted { by: "p".into() }.into(),
                                                             "............"),
    ("stop after this", |_| StopScheduled { by: "p".into(), scheduled: true }.into(),
                                                             "xxxxxxxxxxx."),
    ("no stop, as before", |_| StopScheduled { by: "p".into(), scheduled: false }.into(),
                                                             "............"),
    ("word", |_| steer(1, "try it"),                         "xxxxxxxxxxx."),
    ("empty word", |_| steer(1, " "),                        "............"),
    ("word out of order", |_| steer(2, "try it"),            "............"),
    ("word that is not there", |_| SteerDelivered { numbers: vec![1], call: "c".into() }.into(),
                                                             "............"),
    ("higher limit", raised,                                 "xxxxxxxxxxx."),
    ("retry", |_| RetryRequested { by: "p".into() }.into(),  "xxxxxxxxxxx."),
    ("answer to nothing", |_| DecisionAnswered { id: DecisionId(1), answer: Answer::Quit, note: None, by: "p".into() }.into(),
                                                             "............"),
    ("settling of nothing", |_| DecisionSettled { id: DecisionId(1), closed: true, check: None, detail: String::new() }.into(),
                                                             "............"),
    ("question without a call", |_| asked(Request::Question { question: "?".into(), choices: Vec::new() }),
                                                             "............"),
    ("question about tampering", |_| asked(Request::Tampering { iteration: 0, findings: Vec::new(), files: Vec::new(), diff: None, trials: Vec::new() }),
                                                             ".......x..x."),
    ("undo without a repository", |_| UndoRequested { iteration: 0, by: "p".into() }.into(),
                                                             "............"),
    ("undone, and nobody asked", |_| IterationUndone { iteration: 0, files: Vec::new(), head: None, problem: None }.into(),
                                                             "............"),
];

fn resumed() -> Event {
    let (engine_version, patience) = ("0".to_owned(), Patience::WAIT);
    RunResumed {
        engine_version,
        reducer_version: 1,
        attempt: 1,
        torn_bytes: 0,
        torn_sha256: None,
        patience,
        raised: Vec::new(),
        end: None,
    }
    .into()
}

fn steer(number: u32, text: &str) -> Event {
    SteerQueued { number, text: text.into(), by: "p".into() }.into()
}

fn asked(request: Request) -> Event {
    DecisionAsked { id: DecisionId(1), request, why: String::new(), asked_by: None }.into()
}

/// Holds the event against the machine: accepted as it is, or recorded as a rejection that changes nothing else.
fn assert_taken(name: &str, place: &str, sim: &Sim, event: Event, expected: bool) {
    let answer = legal(&sim.run, &event);
    assert_eq!(answer.is_ok(), expected, "{name} in {place}: {answer:?}");
    let events = step(&sim.run, Input::Record(Box::new(event.clone())));
    let Err(why) = answer else {
        assert_eq!(events, [event], "{name} in {place}");
        return;
    };
    assert!(!why.is_empty(), "{name} in {place}: a rejection says why");
    let rejected = InputRejected { state: sim.run.state, input: event.kind().into(), why };
    assert_eq!(events, [Event::from(rejected.clone())], "{name} in {place}");
    let mut after = sim.clone();
    after.record(rejected);
    assert_eq!(after.run.rejections, sim.run.rejections + 1);
    assert_eq!((after.run.state, after.todo()), (sim.run.state, sim.todo()), "{name} in {place}");
}

#[test]
fn every_event_has_its_states() {
    let columns = columns();
    for (name, make, pattern) in TABLE {
        assert_eq!(pattern.len(), columns.len(), "{name}");
        for ((place, sim), mark) in columns.iter().zip(pattern.chars()) {
            assert_taken(name, place, sim, make(&sim.run), mark == 'x');
        }
    }
}

/// The edges of seed 001, section 3.4; spec 1.0 goes without GLOW_CHECK. EXIT states are entered by `run.halted` alone.
#[test]
fn states_follow_each_other_as_drawn() {
    const EDGES: &[(&str, &str)] = &[
        ("INIT", "INTAKE_GOAL"),
        ("INTAKE_GOAL", "NULL_CHECK"),
        ("NULL_CHECK", "DREAM_GOAL"),
        ("DREAM_GOAL", "SPAWN_SUBAGENT"),
        ("SPAWN_SUBAGENT", "COLLECT_ARTIFACTS"),
        ("COLLECT_ARTIFACTS", "CHECK_HALTING"),
        ("CHECK_HALTING", "ACCUMULATE_LEARNINGS"),
        ("ACCUMULATE_LEARNINGS", "GLOW_CHECK"),
        ("GLOW_CHECK", "BUDGET_CHECK"),
        ("BUDGET_CHECK", "SPAWN_SUBAGENT"),
    ];
    for (_, sim) in columns() {
        let from = sim.run.state;
        for to in State::ALL {
            let drawn = EDGES.contains(&(from.name(), to.name()));
            let event = StateEntered { from, to, why: String::new() };
            assert_taken("edge", to.name(), &sim, event.into(), drawn && sim.run.halt.is_none());
        }
        let elsewhere = State::ALL.into_iter().find(|state| *state != from).unwrap();
        let event = StateEntered { from: elsewhere, to: State::ExitBlocked, why: String::new() };
        assert_taken("an edge from elsewhere", from.name(), &sim, event.into(), false);
    }
    let mut first = Sim::plain("spec: \"1.0\"");
    first.until(&GREEN, |run| run.state == State::AccumulateLearnings);
    let edge = |to| StateEntered { from: State::AccumulateLearnings, to, why: String::new() }.into();
    assert!(
        legal(&first.run, &edge(State::BudgetCheck)).is_ok() && legal(&first.run, &edge(State::GlowCheck)).is_err()
    );
}

/// EXIT_CONVERGED needs a success certificate and a gate that passed it.
#[test]
fn a_success_is_entered_through_the_gate_alone() {
    let mut sim = Sim::at(State::BudgetCheck);
    sim.until(&GREEN, |run| run.current.as_ref().is_some_and(|iteration| iteration.gate.is_some()));
    let converged = |sim: &Sim| legal(&sim.run, &halted(&sim.run, ExitStatus::ExitConverged));
    assert_eq!(converged(&sim), Ok(()));
    let broken: &[fn(&mut Sim)] = &[
        |sim| sim.run.current.as_mut().unwrap().gate.as_mut().unwrap().passed = false,
        |sim| sim.run.current.as_mut().unwrap().gate = None,
        |sim| sim.run.current.as_mut().unwrap().certificate = None,
        |sim| sim.run.current.as_mut().unwrap().certificate.as_mut().unwrap().kind = CertificateKind::Timeout,
    ];
    for break_it in broken {
        let mut sim = sim.clone();
        break_it(&mut sim);
        let why = converged(&sim).unwrap_err();
        assert!(why.contains("CONVERGENCE_CLAIM_WITHOUT_CERTIFICATE"), "{why}");
    }
}

/// What belongs to a call: `c` needs an open call, `r` an open request of it.
#[test]
fn the_events_of_a_call_need_the_call() {
    let blob = sha();
    let call = String::from("it0.solver");
    let text = Text::Inline(String::new());
    let events: Vec<(char, Event)> = vec![
        ('c', requested().into()),
        ('c', responded().into()),
        (
            'c',
            LlmFailed {
                call: call.clone(),
                turn: 0,
                attempt: 0,
                class: FailureClass::Fatal,
                message: String::new(),
                wait_millis: None,
                usage: None,
                cost_usd: None,
                facts: None,
            }
            .into(),
        ),
        (
            'c',
            ConversationExtended {
                call: call.clone(),
                message: blob,
                why: ExtendedBecause::EmptyReply,
                handover: None,
            }
            .into(),
        ),
        (
            'c',
            ToolIntended {
                call: call.clone(),
                id: "t".into(),
                name: "bash".into(),
                input: blob,
                summary: String::new(),
                effect: String::new(),
                rule: String::new(),
            }
            .into(),
        ),
        (
            'c',
            ToolFinished {
                call: call.clone(),
                id: "t".into(),
                outcome: ToolOutcomeKind::Done,
                is_error: false,
                exit_code: None,
                millis: 0,
                text: text.clone(),
                output: None,
                output_bytes: 0,
            }
            .into(),
        ),
        (
            'c',
            AgentFinished { call: call.clone(), role: Purpose::Solver.role(), end: AgentEnd::NoReport, handover: None }
                .into(),
        ),
        (
            'c',
            ReportAccepted {
                call: call.clone(),
                id: "t".into(),
                report: solved(0),
                links: BTreeMap::new(),
                sha256: blob,
            }
            .into(),
        ),
        ('r', AgentActed { call: call.clone(), turn: 0, acts: Vec::new() }.into()),
        (
            'r',
            AgentCalled { call, turn: 0, id: "t".into(), name: "n".into(), input: blob, is_error: false, text }.into(),
        ),
    ];
    let mut open = Sim::at(State::SpawnSubagent);
    open.begin_iteration();
    let without = open.clone();
    open.record(started(&open.run, Purpose::Solver, None));
    let second = started(&open.run, Purpose::Solver, None).into();
    let why = legal(&open.run, &second).unwrap_err();
    assert!(why.contains("STACKED_SPECULATIVE_ITERATIONS"), "{why}");
    let mut asking = open.clone();
    asking.record(requested());
    for (need, event) in &events {
        assert!(legal(&without.run, event).is_err(), "{}", event.kind());
        assert_eq!(legal(&open.run, event).is_ok(), *need == 'c', "{}", event.kind());
        assert!(legal(&asking.run, event).is_ok(), "{}", event.kind());
    }
}

fn requested() -> LlmRequested {
    let (call, request_sha256) = ("it0.solver".to_owned(), sha());
    LlmRequested {
        call,
        turn: 0,
        attempt: 0,
        request_sha256,
        reserved_tokens: 0,
        reserved_usd: None,
        drop_blocks: false,
    }
}

fn responded() -> LlmResponded {
    LlmResponded {
        call: "it0.solver".into(),
        turn: 0,
        message: sha(),
        stop: "end_turn".into(),
        next: ReplyMove::Finish,
        empty: false,
        tool_uses: Vec::new(),
        usage: Usage::default(),
        cost_usd: None,
        request_id: None,
        rate: None,
        session: None,
    }
}

/// After the end only a stop by a signal can be taken up again, and only its open decisions answered.
#[test]
fn an_end_is_an_end_unless_a_signal_made_it() {
    let mut stopped = Sim::at(State::DreamGoal);
    stopped.record(BackpressureSeen { signal: Signal::StopFile, detail: String::new() });
    stopped.proceed();
    assert_eq!(stopped.run.halt.as_ref().unwrap().stop_reason, StopReason::BackpressureSignal);
    assert_eq!(legal(&stopped.run, &resumed()), Ok(()));
    for (_, make, _) in TABLE.iter().filter(|(name, ..)| !["resumed", "rejected"].contains(name)) {
        let event = make(&stopped.run);
        assert!(legal(&stopped.run, &event).is_err(), "{} after the end", event.kind());
    }
    stopped.record(match resumed() {
        Event::Run(RunEvent::RunResumed(resumed)) => resumed,
        other => panic!("{other:?}"),
    });
    assert_eq!((stopped.run.state, &stopped.run.halt), (State::DreamGoal, &None), "it goes on where it stopped");
}

/// A limit that cuts an iteration decides nothing by itself.
#[test]
fn a_cut_ends_the_call_and_the_work() {
    let mut sim = Sim::at(State::SpawnSubagent);
    sim.begin_iteration();
    let dimension = Dimension::IterationToolCalls;
    let limit = sim.run.limits.of(dimension).unwrap();
    let exhausted = Exhausted { dimension, observed: limit.clone(), limit };
    sim.record(BudgetCut { exhausted });
    assert_eq!(sim.run.halt, None);
    sim.until(&GREEN, |run| run.state == State::CollectArtifacts);
    assert!(sim.run.current.as_ref().unwrap().calls.is_empty(), "nobody was called any more");
}
