//! What the checks of this process have used already: whose outputs their common layer holds, which trial stands ready.
//!
//! Only saves work: lost with the process, it is found out again.

use crate::machine::event::{Phase, Probe};

#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Whose outputs the common layer holds.
    pub round: Option<(u32, Phase)>,
    /// Which trial's layer stands ready.
    pub prepared: Option<(u32, Phase, Option<Probe>)>,
}
