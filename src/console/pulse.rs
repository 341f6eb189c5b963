//! How soon something on the screen changes just because time goes by. Nothing changes: no pulse, no frame.

use std::time::Duration;

use super::model::{Model, Screen};
use super::scene::{Link, millis_of};

const SECOND: Duration = Duration::from_secs(1);
/// Over a thin line seconds do not matter.
const THIN: Duration = Duration::from_secs(5);

/// Until the next frame that only time makes necessary; `None`: time changes nothing.
pub fn next(model: &Model, thin_line: bool) -> Option<Duration> {
    if !matches!(model.screen, Screen::Run) || model.world.moment.is_some() || model.world.ended {
        return None;
    }
    if !matches!(model.world.link, Link::InProcess | Link::Attached) {
        return None;
    }
    let run = model.world.run.as_ref()?;
    // Waiting for a person, or over: everything shown stands still.
    if run.halt.is_some() || run.waits_for_people() {
        return None;
    }
    let usual = if thin_line { THIN } else { SECOND };
    let quiet = model.world.now_ms - millis_of(&run.time.last_ts)?;
    let counting_down = run.time.waiting_ms > 0;
    // What takes long is shown in minutes.
    Some(match quiet {
        _ if counting_down => usual,
        ..60_000 => usual,
        60_000..600_000 => Duration::from_secs(10),
        _ => Duration::from_secs(60),
    })
}
