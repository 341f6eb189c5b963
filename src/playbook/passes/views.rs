//! The files of an iteration with an author and a critic: the routing record, and a receipt for every call.
//!
//! Role: lay out what the fold knows. Invariant: a receipt claims nothing that was not counted; what is not known is null.

use serde_json::{Value, json};

use crate::machine::event::AgentEnd;
use crate::machine::iteration::Iteration;
use crate::machine::playbook::ReadBlob;
use crate::machine::run::RunState;
use crate::model::prd::Prd;
use crate::playbook::passes::event::{ItemSeen, PassEvent};
use crate::playbook::passes::state as passes;

/// Are the items of an event those of the text that it names?
pub fn check_items(run: &RunState, event: &PassEvent, read: ReadBlob<'_>) -> Result<(), String> {
    let (digest, recorded, settled) = match event {
        PassEvent::PrdRead(found) => {
            let items = found.items.clone().unwrap_or_else(|| run.passes().prd.items.clone());
            (found.sha256, items, false)
        }
        PassEvent::ItemSettled(settled) if settled.passes => {
            let flipped = || passes::flipped(&run.passes().prd.items, &settled.item);
            (settled.sha256, settled.items.clone().unwrap_or_else(flipped), true)
        }
        PassEvent::ItemChosen(_)
        | PassEvent::PassJudged(_)
        | PassEvent::RouteDecided(_)
        | PassEvent::ItemSettled(_) => return Ok(()),
    };
    let Some(digest) = digest else { return Ok(()) };
    let bytes = read(&digest)?;
    let prd = Prd::read(&bytes).map_err(|e| format!("the text of the items cannot be read: {e}"))?;
    let found = passes::seen(&prd)?;
    // What somebody else flipped at the same moment is heard later, so a settled list may say less than the text.
    let fits = |(recorded, found): (&ItemSeen, &ItemSeen)| {
        let same = (&recorded.id, &recorded.title, recorded.order) == (&found.id, &found.title, found.order);
        same && if settled { !recorded.passes || found.passes } else { recorded == found }
    };
    if recorded.len() == found.len() && recorded.iter().zip(&found).all(fits) {
        Ok(())
    } else {
        Err("the items are not those of the text that was kept".to_owned())
    }
}

/// routing.json: what the pass came to, and where it went from there.
pub fn routing(run: &RunState, iteration: &Iteration) -> Option<Value> {
    let number = iteration.number();
    let judged = run.passes().judged_in(number)?;
    Some(json!({
        "iteration": number,
        "item": run.passes().chosen_in(number),
        "pass": judged,
        "decision": run.passes().route_of(number),
        "settled": run.passes().settled_in(number).map(|settled| json!({
            "item": settled.item,
            "passes": settled.passes,
            "prd_sha256": settled.sha256,
            "problem": settled.problem,
        })),
    }))
}

/// receipts.json: who was called, how it ended, and what it took.
pub fn receipts(run: &RunState, iteration: &Iteration) -> Option<Value> {
    if iteration.calls.is_empty() {
        return None;
    }
    let number = iteration.number();
    let route = run.passes().route_of(number);
    let rows: Vec<Value> = iteration
        .calls
        .iter()
        .map(|(key, call)| {
            let used = run.ledger.rows.iter().filter(|(row, _)| row.iteration == number && row.role == call.role);
            let used: Vec<Value> = used.map(|(row, used)| json!({"model": row.model, "used": used})).collect();
            json!({
                "run_id": run.run(),
                "flow_key": run.loop_file().playbook.name(),
                "step_id": key,
                "agent_key": call.role,
                "purpose": call.purpose,
                "subject": call.subject,
                "status": if call.end == AgentEnd::Reported { "succeeded" } else { "failed" },
                "end": call.end,
                "turns": call.turns,
                "tokens": used,
                "routing": route.map(|route| json!({
                    "loop_iteration": route.pass,
                    "max_iterations": route.limit,
                    "decision": route.route.name(),
                    "reason": route.why,
                })),
            })
        })
        .collect();
    Some(json!({"receipts": rows}))
}
