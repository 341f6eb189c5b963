//! What happened last, as far as the folded run does not keep it: when a state was entered, what a tool call
//! is about, why the model server makes us wait.
//!
//! Not here: judging. Invariant: it speaks only about the very moment that is shown. Of an earlier moment it
//! knows nothing, and says so.

use crate::machine::event::{CallEvent, Event, IterationEvent, Phase, Probe, RunEvent};
use crate::machine::fold::Stamped;
use crate::machine::run::RunState;
use crate::model::safe::Safe;

use super::scene::News;

/// A thing with its place in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted<T> {
    pub seq: u64,
    pub ts: String,
    pub what: T,
}

/// The step that began last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecentStep {
    /// A request is out; `writing` once the first piece of the reply came.
    Request {
        writing: bool,
    },
    /// The model server failed; the next attempt is waited for.
    Failed {
        class: Safe,
        message: Safe,
        attempt: u32,
    },
    Tool {
        id: String,
        name: Safe,
        summary: Safe,
    },
    Probe {
        phase: Phase,
        probe: Probe,
        argv: Safe,
    },
}

/// The latest marks of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recent {
    next_seq: u64,
    entered: Option<Noted<Safe>>,
    step: Option<Noted<RecentStep>>,
}

impl Recent {
    pub fn learn(&mut self, news: News<'_>) {
        match news {
            News::Event { stamped, .. } => self.event(stamped),
            News::Live(_) => {
                if let Some(Noted { what: RecentStep::Request { writing }, .. }) = &mut self.step {
                    *writing = true;
                }
            }
            News::Reset => *self = Self::default(),
        }
    }

    fn event(&mut self, stamped: &Stamped) {
        self.next_seq = stamped.seq + 1;
        let step = match &stamped.event {
            Event::Run(RunEvent::StateEntered(entered)) => {
                self.entered = Some(noted(stamped, Safe::line(&entered.why)));
                None
            }
            Event::Run(RunEvent::RunHalted(halted)) => {
                self.entered = Some(noted(stamped, Safe::line(&halted.detail)));
                None
            }
            Event::Run(RunEvent::RunStarted(_)) => {
                self.entered = Some(noted(stamped, Safe::line("the run started")));
                None
            }
            Event::Call(CallEvent::LlmRequested(_)) => Some(RecentStep::Request { writing: false }),
            Event::Call(CallEvent::LlmFailed(failed)) => Some(RecentStep::Failed {
                class: Safe::line(failed.class.name()),
                message: Safe::line(&failed.message),
                attempt: failed.attempt,
            }),
            Event::Call(CallEvent::ToolIntended(tool)) => Some(RecentStep::Tool {
                id: tool.id.clone(),
                name: Safe::line(&tool.name),
                summary: Safe::line(&tool.summary),
            }),
            Event::Iteration(IterationEvent::ProbeStarted(started)) => Some(RecentStep::Probe {
                phase: started.phase,
                probe: started.probe.clone(),
                argv: Safe::line(&started.argv.join(" ")),
            }),
            // What people do does not end a step.
            event if event.is_from_people() => return,
            _ => None,
        };
        self.step = step.map(|step| noted(stamped, step));
    }

    /// Does it speak about this moment?
    fn knows(&self, run: &RunState) -> bool {
        self.next_seq == run.next_seq
    }

    /// When and why the present state was entered.
    pub fn entered(&self, run: &RunState) -> Option<&Noted<Safe>> {
        self.entered.as_ref().filter(|_| self.knows(run))
    }

    /// The step that is going on.
    pub fn step(&self, run: &RunState) -> Option<&Noted<RecentStep>> {
        self.step.as_ref().filter(|_| self.knows(run))
    }
}

fn noted<T>(stamped: &Stamped, what: T) -> Noted<T> {
    Noted { seq: stamped.seq, ts: stamped.ts.clone(), what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::sample::Sample;

    /// What a pane would have learnt after `count` events.
    fn after(sample: &Sample, count: usize) -> (Recent, RunState) {
        let mut recent = Recent::default();
        let state = sample.after(count);
        for stamped in sample.events.iter().take(count) {
            recent.learn(News::Event { stamped, state: &state, body: None });
        }
        (recent, state)
    }

    #[test]
    fn a_tool_call_is_known_by_its_summary() {
        let sample = Sample::demo();
        let (recent, run) = after(&sample, sample.first("tool.intended", 40));
        let Some(Noted { what: RecentStep::Tool { name, .. }, .. }) = recent.step(&run) else { panic!("no tool") };
        assert_eq!(name.as_str(), "write_file");
        assert!(recent.entered(&run).is_some());
    }

    #[test]
    fn nothing_is_said_about_another_moment() {
        let sample = Sample::demo();
        let (recent, _) = after(&sample, sample.first("tool.intended", 40));
        let earlier = sample.after(10);
        assert_eq!(recent.step(&earlier), None);
        assert_eq!(recent.entered(&earlier), None);
    }

    #[test]
    fn another_run_starts_from_nothing() {
        let sample = Sample::demo();
        let (mut recent, _) = after(&sample, 60);
        recent.learn(News::Reset);
        assert_eq!(recent, Recent::default());
    }
}
