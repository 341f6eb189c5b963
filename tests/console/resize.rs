//! A terminal that changes its size all the time while a model writes.

use serde_json::json;

use crate::case::Case;
use crate::stage::{Stage, eventually, scouted};

#[test]
fn a_storm_of_sizes_does_not_disturb_a_run() {
    let mut first = scouted();
    first["text"] = json!("One word after the other, slowly, with | tables | and `code`.\n\n".repeat(60));
    first["chunk_delay_ms"] = json!(20);
    let stage = Stage::of(Case::two_steps().turns("scout", 0, json!([first])));
    let mut screen = stage.screen(&["run", "--start"]);
    screen.sees("SPAWN_SUBAGENT");
    for step in 0_u16..50 {
        // Every pane has its share.
        screen.press(&(step % 8).to_string());
        let (columns, rows) = match step % 10 {
            0 => (1, 1),
            5 => (200, 60),
            _ => (1 + step * 37 % 200, 1 + step * 23 % 60),
        };
        let before = screen.bytes_written();
        screen.resize(columns, rows);
        if columns > 20 && rows > 6 {
            eventually("a frame of the new size", || screen.bytes_written() > before);
        }
    }
    assert_eq!(stage.count("llm.responded"), 0, "the storm was meant to rage during the stream");
    screen.resize(120, 40);
    screen.press("1 ctrl-l");
    screen.sees_end("CONVERGED");
    screen.press("q");
    let end = screen.ends_with(0);
    assert!(end.restored(), "{}", end.text);
    stage.verify(0);
}
