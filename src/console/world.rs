//! What the console knows: the folded run, the moment that is shown, how it hangs together with the run.
//!
//! Not here: where the reader is in a pane, what lies over it. Invariant: `run` is folded from updates alone.

use crate::machine::fold;
use crate::machine::run::RunState;

use super::feed::Update;
use super::scene::{Link, Scene};
use super::theme::Theme;

/// Everything a scene is made of.
pub struct World {
    /// The run now; `None` until its first event.
    pub run: Option<Box<RunState>>,
    /// An earlier moment that is shown instead.
    pub moment: Option<Moment>,
    pub link: Link,
    /// Has everything been told that was there at the beginning?
    pub caught_up: bool,
    /// Is the run over for the process that drove it?
    pub ended: bool,
    pub theme: Theme,
    pub now_ms: i64,
    pub utc_offset_seconds: i32,
    pub read_only: bool,
}

/// A moment that is held.
pub struct Moment {
    pub run: Box<RunState>,
    /// Held still by the operator, rather than looked up.
    pub frozen: bool,
}

impl World {
    pub fn new(theme: Theme, utc_offset_seconds: i32, read_only: bool) -> Self {
        Self {
            run: None,
            moment: None,
            link: Link::InProcess,
            caught_up: false,
            ended: false,
            theme,
            now_ms: 0,
            utc_offset_seconds,
            read_only,
        }
    }

    /// The run as it is shown; `None` before its first event.
    pub fn scene(&self, focused: bool) -> Option<Scene<'_>> {
        let run = self.moment.as_ref().map(|moment| &moment.run).or(self.run.as_ref())?;
        Some(Scene {
            run,
            live: self.moment.is_none(),
            theme: &self.theme,
            now_ms: self.now_ms,
            utc_offset_seconds: self.utc_offset_seconds,
            link: &self.link,
            read_only: self.read_only,
            focused,
        })
    }

    pub fn frozen(&self) -> bool {
        self.moment.as_ref().is_some_and(|moment| moment.frozen)
    }

    /// Forgets the run: another one follows, or the same from its beginning.
    pub fn forget(&mut self) {
        self.run = None;
        self.moment = None;
        self.caught_up = false;
        self.ended = false;
    }

    /// Folds an event. The error is why the run cannot be followed any further.
    pub fn follow(&mut self, update: &Update) -> Result<(), String> {
        let Update::Event { stamped, .. } = update else { return Ok(()) };
        match &mut self.run {
            None => self.run = Some(Box::new(crate::playbook::start(stamped).map_err(|e| e.to_string())?)),
            Some(run) => fold::apply(run, stamped).map_err(|e| e.to_string())?,
        }
        Ok(())
    }
}
