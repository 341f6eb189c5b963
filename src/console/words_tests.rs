//! The words of events, over a whole recorded run.

use crate::console::sample::Sample;
use crate::machine::fold;
use crate::playbook;

#[test]
fn every_event_of_a_run_has_words_on_one_line() {
    let sample = Sample::demo();
    let mut state = playbook::start(&sample.events[0]).unwrap();
    let mut loud = Vec::new();
    for (index, stamped) in sample.events.iter().enumerate() {
        if index > 0 {
            fold::apply(&mut state, stamped).unwrap();
        }
        let told = state.told(&stamped.event);
        assert!(!told.text.is_empty() && !told.text.contains('\n'), "{told:?}");
        if !told.quiet {
            loud.push(told.text);
        }
    }
    assert!(loud.len() * 2 < sample.events.len() + 60, "{} of {}", loud.len(), sample.events.len());
    let words = loud.join("\n");
    for part in ["iteration 1 begins", "it1 rate_limited, waits 1 s", "pass-gate: ", "EXIT_CONVERGED", "residual 4"] {
        assert!(words.contains(part), "{part} is missing:\n{words}");
    }
}
