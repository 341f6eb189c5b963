//! The whole way of a report: an agent over ACP starts `nightloop mcp`, which reaches the engine's shelf.

use std::path::Path;

use nightloop::engine::offer::{Answer, ToolServer, ToolSpecJson};
use nightloop::model::purpose::Tool;
use nightloop::model::report::{Report, schema};
use tokio::sync::mpsc;

use crate::stage::{Stage, task};

#[tokio::test]
async fn a_report_arrives_through_our_own_server() {
    let dir = tempfile::tempdir().unwrap();
    let (calls, mut called) = mpsc::channel(1);
    let name = Tool::SubmitSolverReport.name();
    let tool = ToolSpecJson {
        name: name.into(),
        description: "Hands in.".into(),
        input_schema: schema(Tool::SubmitSolverReport),
    };
    let shelf = ToolServer::open(dir.path(), vec![tool], calls).unwrap();
    let mut task = task(dir.path(), "Write done.txt.");
    task.offer = Some(shelf.offer(Path::new(env!("CARGO_BIN_EXE_nightloop"))));
    let engine = tokio::spawn(async move {
        let call = called.recv().await.unwrap();
        call.reply.send(Answer { text: "report accepted".into(), is_error: false }).unwrap();
        (call.name, Report::parse(Tool::SubmitSolverReport, &call.input))
    });
    let seen = Stage::default().play(&task, "").await;
    assert_eq!(seen.finished().text, "I handed it in: report accepted");
    let (called, report) = engine.await.unwrap();
    assert_eq!(called, name);
    let Ok(Report::Solver(report)) = report else { panic!("{report:?}") };
    assert_eq!(report.files_touched, ["done.txt"]);
    assert_eq!(std::fs::read_to_string(dir.path().join("done.txt")).unwrap(), "yes\n");
}
