//! Answers the demo's questions where nobody is there to: `demo --auto`, or a demo without a terminal.
//!
//! Only the demo has this. A real run waits for a person, or stops.

use std::path::PathBuf;
use std::time::Duration;

use crate::engine::command::{Command, Orders};
use crate::engine::host::runtime;
use crate::engine::hub::{Heard, Hub};
use crate::engine::recorded;
use crate::journal::RunDir;
use crate::machine::operator::Decision;
use crate::machine::run::RunState;
use crate::model::decision::{Answer, Request};
use crate::workspace::document;

/// Who answers, for the record.
const NAME: &str = "demo --auto";
/// What a person would do: the file that is asked for, and its content.
const DEEDS: [(&str, &str); 2] =
    [("titles.txt", "Hello, World!\nTen  Things You Did Not Know\n"), ("notes.conf", "NOTES_FILE=my-notes.txt\n")];

/// Answers everything this run asks, after a moment in which it can be read.
pub fn answer_all(hub: Hub, run_dir: RunDir, orders: Orders, workspace: PathBuf, moment: Duration) {
    // Without the thread the demo waits for a person, as any run does.
    let _ = std::thread::Builder::new().name("auto".to_owned()).spawn(move || {
        if let Ok(runtime) = runtime() {
            runtime.block_on(answer(hub, run_dir, orders, workspace, moment));
        }
    });
}

async fn answer(hub: Hub, run_dir: RunDir, orders: Orders, workspace: PathBuf, moment: Duration) {
    let mut ear = hub.listen(&run_dir);
    let mut state: Option<RunState> = None;
    while let Ok(heard) = ear.next().await {
        match heard {
            Heard::Ended => return,
            Heard::Live(_) => {}
            Heard::Events(records) => {
                for record in &records {
                    if recorded::fold_record(&mut state, record).is_err() {
                        return;
                    }
                }
            }
        }
        let Some(decision) = state.as_ref().and_then(due) else { continue };
        tokio::time::sleep(moment).await;
        if let Some(answer) = fitting(decision, &workspace) {
            let command = Command::Answer { id: decision.id, answer, note: None, document: None };
            // Somebody else may have been faster.
            let _ = orders.send(command, NAME).await;
        }
    }
}

/// The oldest question. About a parked item nobody is asked before there is nothing else to do: as in the morning.
fn due(state: &RunState) -> Option<&Decision> {
    let morning = state.waits_for_people();
    state.operator.open().find(|decision| morning || !decision.request.is_parked())
}

fn fitting(decision: &Decision, workspace: &std::path::Path) -> Option<Answer> {
    Some(match &decision.request {
        Request::HumanAction { instructions, .. } => {
            for (name, content) in DEEDS.iter().filter(|(name, _)| instructions.contains(name)) {
                document::replace(workspace, name, content.as_bytes(), &[]).ok()?;
            }
            Answer::Done
        }
        Request::Refinement { after, .. } => Answer::Approve { result: *after },
        Request::Question { choices, .. } => Answer::Text(choices.first()?.clone()),
        Request::Permission { .. } => Answer::Allow,
        Request::Vision { .. } => Answer::Acknowledge,
        Request::Stuck { .. } => Answer::Retry,
        Request::Tampering { .. } | Request::Escalation { .. } | Request::SpendLimit { .. } => return None,
    })
}
