//! The value playbook's views: plan, checklist, delivery report, state. Pure functions of the folded run.
//!
//! They are evidence like all the rest, under `evidence/loop/value/`; copies stand where people look for them. Nobody
//! reads either back: a copy that was changed by hand is written again. The words of agents in them are cut to
//! one line each, so that no text of theirs can pretend to be a heading of ours.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::machine::document;
use crate::machine::playbook::Rewritten;
use crate::machine::run::RunState;
use crate::model::decision::Answer;
use crate::model::digest::Digest;
use crate::model::learnings::flatten;
use crate::model::stop::{ExitStatus, StopReason};
use crate::model::value::{Action, Gate, Outcome, Task, TaskStatus, VIEWS, Verification, VerificationStatus};
use crate::playbook::value::event::{EpicPut, Target};
use crate::playbook::value::flaky;
use crate::playbook::value::gates::again;
use crate::playbook::value::state::{StepRecord, ValueState};

use crate::model::rendered::Rendered;

/// The first line of every view: whoever opens one learns that it is made, and from what.
pub const MARK: &str = "<!-- rendered by nightloop from its journal; changes here are lost -->";
const DIRECTORY: &str = "value";
/// What marks the copy of the state.
const RENDERED_FROM: &[u8] = b"\"rendered_from\":";

/// Everything this playbook shows for the run as a whole.
pub fn views(run: &RunState) -> Vec<Rendered> {
    if run.value().steps_begun == 0 {
        return Vec::new();
    }
    let value = run.value();
    let mut files = Vec::new();
    let mut add = |name: &str, text: String, role: &'static str| {
        let path = format!("{}/{DIRECTORY}/{name}", document::EVIDENCE_ROOT);
        files.push(Rendered { path, bytes: text.into_bytes(), role, iteration: None });
    };
    if !value.tasks.is_empty() {
        add("IMPLEMENTATION_PLAN.md", plan(run), "plan");
    }
    if !value.vrcs.is_empty() {
        add("VALUE_CHECKLIST.md", checklist(run), "log");
    }
    if run.halt.is_some() && !run.iterations().collect::<Vec<_>>().is_empty() {
        add("DELIVERY_REPORT.md", delivery(run), "proof");
    }
    add(".loop_state.json", document::text(&state(run)), "snapshot");
    add("steps.json", document::text(&steps(value)), "log");
    if !value.vision.rounds.is_empty() || !value.prd.rounds.is_empty() {
        add("refinement.json", document::text(&refinement(value)), "log");
    }
    if let Some(text) = preconditions(run) {
        add("preconditions.md", text, "log");
    }
    files
}

/// The documents of refinement: what each round proposed, and what was changed before it.
pub fn rewritten(run: &RunState) -> Vec<Rewritten> {
    let Some(documents) = &run.value().documents else { return Vec::new() };
    let mut all = Vec::new();
    for (target, path, word) in
        [(Target::Vision, &documents.vision.path, "vision"), (Target::Prd, &documents.prd.path, "prd")]
    {
        let mut before: Option<Digest> = None;
        for round in &run.value().refinement(target).rounds {
            let kept = &round.kept;
            let mut add = |what: &str, before: Digest, after: Digest| {
                let name = format!("{DIRECTORY}/{word}_round_{}_{what}.patch", kept.round);
                all.push(Rewritten { name, path: path.clone(), before, after });
            };
            if let Some(before) = before.filter(|before| *before != kept.document) {
                add("changed", before, kept.document);
            }
            if let Some(proposal) = kept.proposal {
                add("proposed", kept.document, proposal);
            }
            before = Some(kept.document);
        }
    }
    all
}

/// The copies for the workspace, by name.
pub fn copies(files: &[Rendered]) -> impl Iterator<Item = (&'static str, &[u8])> {
    let prefix = format!("{}/{DIRECTORY}/", document::EVIDENCE_ROOT);
    files.iter().filter_map(move |file| {
        let name = file.path.strip_prefix(&prefix)?;
        VIEWS.into_iter().find(|copy| *copy == name).map(|copy| (copy, file.bytes.as_slice()))
    })
}

/// Did we write this copy? What we did not write is somebody's.
pub fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(MARK.as_bytes()) || bytes.windows(RENDERED_FROM.len()).any(|part| part == RENDERED_FROM)
}

fn plan(run: &RunState) -> String {
    let value = run.value();
    let mut text = format!("{MARK}\n# Implementation plan\n\n");
    let done = value.tasks_with(TaskStatus::Done).count();
    let descoped = value.tasks_with(TaskStatus::Descoped).count();
    let _ = writeln!(text, "{done} of {} tasks are done, {descoped} descoped.\n", value.tasks.len());
    let mut phases: Vec<Option<&String>> = Vec::new();
    for task in &value.tasks {
        if !phases.contains(&task.phase.as_ref()) {
            phases.push(task.phase.as_ref());
        }
    }
    for phase in phases {
        let name = phase.map_or_else(|| "No phase".to_owned(), |phase| format!("Phase {}", flatten(phase)));
        let _ = writeln!(text, "## {name}\n");
        for task in value.tasks.iter().filter(|task| task.phase.as_ref() == phase) {
            write_task(&mut text, task);
        }
        text.push('\n');
    }
    text
}

fn write_task(text: &mut String, task: &Task) {
    let mark = match task.status {
        TaskStatus::Done => 'x',
        TaskStatus::Descoped => '-',
        TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Blocked => ' ',
    };
    let _ =
        writeln!(text, "- [{mark}] **{}** ({}): {}", flatten(&task.id), task.status.name(), flatten(&task.description));
    let mut line = |label: &str, words: &str| {
        if !words.trim().is_empty() {
            let _ = writeln!(text, "  - {label}: {}", flatten(words));
        }
    };
    line("value", &task.value);
    line("acceptance", &task.acceptance);
    line("check", &task.check.as_ref().map(|argv| argv.join(" ")).unwrap_or_default());
    line("needs", &task.dependencies.join(", "));
    line("PRD", task.prd_section.as_deref().unwrap_or_default());
    line("from", if task.source.is_planned() { "" } else { task.source.name() });
    line("blocked", task.blocked_reason.as_deref().unwrap_or_default());
    line("notes", &task.notes);
    if task.retries > 0 {
        line("failed attempts", &task.retries.to_string());
    }
}

fn checklist(run: &RunState) -> String {
    let value = run.value();
    let mut text = format!("{MARK}\n# Value checklist\n\n");
    let proofs = value.context.iter().flat_map(|context| &context.value_proofs);
    let _ = writeln!(text, "## What a user must be able to see\n");
    for proof in proofs {
        let _ = writeln!(text, "- {}", flatten(proof));
    }
    if let Some(vrc) = value.latest_vrc() {
        let _ = writeln!(text, "\n## Value now\n");
        let _ = writeln!(
            text,
            "Score {} ({} of {} deliverables verified, {}{}).",
            vrc.value_score,
            vrc.deliverables_verified,
            vrc.deliverables_total,
            vrc.recommendation.name(),
            if vrc.carried { "; carried forward, nobody checked" } else { "" },
        );
        let _ = writeln!(text, "\n{}\n", flatten(&vrc.summary));
        for gap in &vrc.gaps {
            let _ =
                writeln!(text, "- gap `{}`, {}: {}", flatten(&gap.id), gap.severity.name(), flatten(&gap.description));
        }
    }
    let _ = writeln!(text, "\n## Checks\n");
    for one in value.verifications.values() {
        let mark = if one.status == VerificationStatus::Passed { 'x' } else { ' ' };
        let _ = writeln!(text, "- [{mark}] {} ({}, {} run(s))", flatten(&one.id), one.status.name(), one.runs);
    }
    let _ = writeln!(text, "\n## History\n\n| step | score | recommendation |\n|---|---|---|");
    for vrc in &value.vrcs {
        let _ = writeln!(text, "| {} | {} | {} |", vrc.step, vrc.value_score, vrc.recommendation.name());
    }
    text
}

/// The end in words. It says "delivered" only where the run itself ended with success.
fn delivery(run: &RunState) -> String {
    let value = run.value();
    let Some(halt) = &run.halt else { return String::new() };
    let mut text = format!("{MARK}\n# Delivery report\n\n");
    let verdict = match halt.status {
        ExitStatus::ExitConverged => "Delivered: the exit gate is passed, and the pass-gate accepted it.",
        ExitStatus::ExitBudgetExceeded => "Partial: a limit was reached before the exit gate was passed.",
        ExitStatus::ExitDiverged | ExitStatus::ExitBlocked | ExitStatus::ExitNeedInfo => "Not delivered.",
    };
    let _ = writeln!(text, "**{verdict}**\n\n{} ({}): {}\n", halt.status, halt.stop_reason, flatten(&halt.detail));
    if let Some(vrc) = value.latest_vrc() {
        let _ = writeln!(text, "Value score {}: {}\n", vrc.value_score, flatten(&vrc.summary));
    }
    write_epics(&mut text, &value.epics);
    let _ = writeln!(text, "## Tasks\n");
    for task in &value.tasks {
        let why = if run.began_before_recovery() { None } else { why_not_done(task) };
        let why = why.map_or_else(String::new, |why| format!(": {}", flatten(why)));
        let (id, what) = (flatten(&task.id), flatten(&task.description));
        let _ = writeln!(text, "- {id}: {what} ({}{why})", task.status.name());
    }
    let _ = writeln!(text, "\n## Checks\n");
    if value.verifications.is_empty() {
        let _ = writeln!(text, "None were written.");
    }
    for one in value.verifications.values() {
        let last = one.failures.last().filter(|_| one.status != VerificationStatus::Passed);
        let why = last.map_or_else(String::new, |failure| format!(": {}", flatten(&failure.excerpt)));
        let flaky = flaky::of_script(run, &one.id).map_or_else(String::new, |flaky| format!(" ({})", flaky.words()));
        let _ = writeln!(text, "- {}: {}{why}{flaky}", flatten(&one.id), one.status.name());
    }
    let open: Vec<_> = value.latest_vrc().map(|vrc| vrc.gaps.as_slice()).unwrap_or_default().iter().collect();
    if !open.is_empty() {
        let _ = writeln!(text, "\n## What is missing\n");
        for gap in open {
            let _ = writeln!(text, "- {} ({}): {}", flatten(&gap.id), gap.severity.name(), flatten(&gap.description));
        }
    }
    let _ = writeln!(text, "\n## How it went\n");
    let _ = writeln!(
        text,
        "{} decision steps in {} iteration(s), {} course correction(s), exit gate tried {} time(s).",
        value.decision_steps(),
        run.spent.iterations,
        value.steps_of(Action::CourseCorrect.name()),
        value.exit_gate_attempts,
    );
    if !run.began_before_recovery() {
        write_cost(&mut text, run);
    }
    let people: Vec<_> = run.operator.decisions.iter().filter(|decision| decision.answer.is_some()).collect();
    if !people.is_empty() {
        let _ = writeln!(text, "\n## What people decided\n");
        for decision in people {
            let answer = decision.answer.as_ref().map_or("", |answered| answered.answer.name());
            let why = decision.answer.as_ref().filter(|answered| answered.answer == Answer::Override);
            let why = why.and_then(|answered| answered.note.as_deref());
            let why = why.map_or_else(String::new, |note| format!(" ({})", flatten(note)));
            let _ = writeln!(text, "- {}: {} -> {answer}{why}", decision.id, flatten(&decision.request.gist()));
        }
    }
    if let Some(branch) = run.git.branch() {
        let _ = writeln!(text, "\nThe work is on the branch `{}`.", flatten(branch));
    }
    text
}

/// Why a task of the plan is not there, where anybody said it.
fn why_not_done(task: &Task) -> Option<&str> {
    let why = match task.status {
        TaskStatus::Done => None,
        TaskStatus::Descoped => Some(task.notes.as_str()),
        TaskStatus::Blocked => task.blocked_reason.as_deref(),
        TaskStatus::Pending | TaskStatus::InProgress => Some(task.notes.as_str()),
    };
    why.filter(|why| !why.trim().is_empty())
}

/// What it took. A price that is not known is said to be unknown.
fn write_cost(text: &mut String, run: &RunState) {
    let total = run.ledger.total();
    let cost = total.cost_usd.map_or_else(|| "at a price that is not known".to_owned(), |cost| format!("{cost} USD"));
    let _ = writeln!(
        text,
        "\nIt took {} tokens ({} in, {} out, thinking included) and {} tool call(s), {cost}.",
        run.spent.tokens(),
        run.spent.input_tokens,
        run.spent.output_tokens,
        run.spent.tool_calls,
    );
}

/// The slices of a large vision, so that one that was left out is missed by nobody.
fn write_epics(text: &mut String, epics: &[EpicPut]) {
    if epics.is_empty() {
        return;
    }
    let _ = writeln!(text, "## Epics\n");
    for epic in epics {
        let _ = write!(text, "- {}: {} ({})", epic.epic + 1, flatten(&epic.title), epic.status.name());
        let _ = match &epic.feedback {
            Some((answer, words)) if words.is_empty() => writeln!(text, "; feedback: {}", flatten(answer)),
            Some((answer, words)) => writeln!(text, "; feedback: {}: {}", flatten(answer), flatten(words)),
            None => writeln!(text),
        };
    }
    text.push('\n');
}

/// What has to be there before a run can begin, where it could not.
fn preconditions(run: &RunState) -> Option<String> {
    if run.current.is_some() || !run.done.is_empty() {
        return None;
    }
    let value = run.value();
    let waiting = again::waiting(run, value);
    let (gate, detail) = match (&waiting, &run.halt) {
        (Some((gate, decision)), _) => {
            (Some(*gate), decision.request.gist().lines().next().unwrap_or_default().to_owned())
        }
        // A stop is no failure of a gate: it goes on there.
        (None, Some(halt)) if run.began_before_recovery() || halt.stop_reason != StopReason::BackpressureSignal => {
            (Gate::ALL.into_iter().find(|gate| !value.gates.contains(gate)), halt.detail.clone())
        }
        (None, _) => return None,
    };
    let mut text = format!("{MARK}\n# Pre-conditions\n\n{}\n\n", flatten(&detail));
    for gate in Gate::ALL {
        let mark = if value.gates.contains(&gate) { 'x' } else { ' ' };
        let last = value.log.iter().rev().find(|record| record.action == Action::Gate { gate });
        let why = last.filter(|record| record.outcome == Outcome::Failed);
        let why = why.map_or_else(String::new, |record| format!(": {}", flatten(&record.detail)));
        let _ = writeln!(text, "- [{mark}] {}{why}", gate.title());
    }
    if let Some(gate) = gate.filter(|_| !run.began_before_recovery()) {
        let _ = writeln!(text, "\n## What can be done\n");
        for option in again::options(gate) {
            let _ = writeln!(text, "- {option}");
        }
    }
    if let Some((_, decision)) = waiting {
        let _ = writeln!(text, "- then: `nightloop answer {} retry` and `nightloop resume`", decision.id);
    }
    Some(text)
}

fn steps(value: &ValueState) -> Value {
    let line = |record: &StepRecord| {
        json!({
            "step": record.step,
            "iteration": record.iteration,
            "action": record.action,
            "outcome": record.outcome,
            "detail": record.detail,
            "tokens": record.tokens,
            "millis": record.millis,
        })
    };
    json!({"steps": value.log.iter().map(line).collect::<Vec<_>>()})
}

fn refinement(value: &ValueState) -> Value {
    let rounds = |target: Target| -> Vec<Value> {
        let rounds = value.refinement(target).rounds.iter();
        rounds.map(|round| json!({"kept": round.kept, "closed": round.closed})).collect()
    };
    json!({
        "vision": {"rounds": rounds(Target::Vision), "consensus": value.vision.consensus},
        "prd": {"rounds": rounds(Target::Prd), "consensus": value.prd.consensus},
    })
}

/// `.loop_state.json`: a picture of the state for other tools. Never read.
fn state(run: &RunState) -> Value {
    let value = run.value();
    let verifications: Vec<&Verification> = value.verifications.values().collect();
    let baseline: Vec<&str> =
        verifications.iter().filter(|v| v.status == VerificationStatus::Passed).map(|v| v.id.as_str()).collect();
    json!({
        "rendered_from": run.run(),
        "phase": if run.current.is_none() && run.done.is_empty() { "pre_loop" } else { "value_loop" },
        "iteration": run.iteration_number(),
        "step": value.steps_begun,
        "gates_passed": value.gates.iter().map(|gate| gate.name()).collect::<Vec<_>>(),
        "context": value.context,
        "tasks": value.tasks,
        "verifications": verifications,
        "regression_baseline": baseline,
        "vrc_history": value.vrcs,
        "progress_log": steps(value)["steps"],
        "iterations_without_progress": value.no_progress,
        "exit_gate_attempts": value.exit_gate_attempts,
        "research_briefs": value.research,
        "paused": run.operator.open().find(|decision| !decision.request.is_parked()).map(|decision| json!({
            "id": decision.id,
            "reason": decision.why,
            "request": decision.request,
            "requested_at": decision.asked_ts,
        })),
        "strategy": value.strategy,
        "git": {
            "branch": run.git.branch(),
            "checkpoints": value.checkpoints.iter().map(|one| json!({
                "label": one.label,
                "commit": one.commit,
                "step": one.step,
                "tasks_completed": one.tasks_done,
                "verifications_passing": one.passing,
            })).collect::<Vec<_>>(),
        },
        "epics": value.epics,
        "undone_iterations": run.git.undone,
    })
}
