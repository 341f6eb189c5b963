//! "Why is it not moving?" in one sentence, with evidence and the next action.
//!
//! Not here: drawing. Invariants: pure; the cause comes from the journal, never from a guess; the next action
//! names a key that exists.

use crate::evidence::report::next_actions;
use crate::machine::run::RunState;
use crate::model::safe::Safe;
use crate::model::stop::StopReason;

use super::action::Action;
use super::activity::{self, Activity, Now};
use super::charts::forecast;
use super::recent::Recent;
use super::scene::{Link, Scene};
use super::widget;

/// A model that is silent longer than this is worth a word.
const LONG_SILENCE_MS: u64 = 120_000;

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    pub sentence: String,
    pub evidence: Vec<String>,
    pub next: String,
}

/// Answers from the scene alone, with the default keys.
pub fn why(scene: &Scene<'_>) -> Why {
    why_with(scene, &Recent::default(), &default_key)
}

/// The first default key of an action.
pub fn default_key(action: Action) -> String {
    action.default_keys().split(' ').next().unwrap_or_default().to_owned()
}

/// Answers with what was learnt from events, and the operator's own keys.
pub fn why_with(scene: &Scene<'_>, recent: &Recent, key: &dyn Fn(Action) -> String) -> Why {
    let now = activity::now(scene, recent);
    let (sentence, next) = match scene.link {
        Link::Lost(why) => (
            format!("The console lost the run ({}); the run itself may still be running.", Safe::line(why)),
            "`nightloop attach` reconnects; `nightloop status` shows the run's state.".to_owned(),
        ),
        Link::Replay { playing, at, of, .. } if scene.run.halt.is_none() => {
            let what = if *playing { "is playing" } else { "is paused" };
            (
                format!("This is a replay; it {what} at event {at} of {of}. {}", sentence(scene, &now)),
                format!("{} plays or pauses it.", key(Action::PlayPause)),
            )
        }
        Link::Replay { .. } | Link::InProcess | Link::Attached if !scene.live => (
            format!(
                "You are looking at an earlier moment, {}. {}",
                scene.clock(&scene.run.time.last_ts),
                sentence(scene, &now)
            ),
            format!("{} returns to now.", key(Action::GoLive)),
        ),
        Link::Replay { .. } | Link::InProcess | Link::Attached => {
            (sentence(scene, &now), next(scene, &now.activity, key))
        }
    };
    Why { sentence, evidence: evidence(scene, &now, recent), next }
}

fn sentence(scene: &Scene<'_>, now: &Now<'_>) -> String {
    let long = widget::duration(now.for_millis(scene));
    let detail = now.detail(scene);
    match &now.activity {
        Activity::Ended(halted) => {
            format!("It has ended: {}, {}: {detail}.", halted.status, halted.stop_reason)
        }
        Activity::Paused { by } => {
            format!("It has been paused by {by} since {} ({long}).", scene.clock(&now.since))
        }
        Activity::Waiting(decision) => format!(
            "It is waiting for you: decision {} ({}), asked at {} ({long} ago).",
            decision.id,
            detail,
            scene.clock(&now.since)
        ),
        Activity::Settling(decision) => format!("It is carrying out your answer to {} ({detail}).", decision.id),
        Activity::Stopping(_) => format!("It is stopping: {detail}."),
        Activity::ServerWait { .. } => format!("It is waiting for the model server {detail}."),
        Activity::Check { what, .. } => format!("It is moving: {what} has been running for {long}: {detail}."),
        Activity::Reply { role, model, writing: true, .. } => {
            format!("It is moving: {model} has been writing to the {role} for {long}.")
        }
        Activity::Reply { role, model, writing: false, .. } => {
            format!("It has been waiting for {model} to answer the {role} for {long}.")
        }
        Activity::Tool { role, .. } => format!("It is moving: the {role} {detail}, for {long}."),
        Activity::Agent { role } => format!("It is moving: the {role} is between two steps, for {long}."),
        Activity::State(state) => format!("It is moving: {state}, {detail}, for {long}."),
    }
}

fn next(scene: &Scene<'_>, activity: &Activity<'_>, key: &dyn Fn(Action) -> String) -> String {
    let act = |does: String| {
        if scene.read_only { "Nothing from here: this console is read-only.".to_owned() } else { does }
    };
    match activity {
        Activity::Ended(halted) if halted.stop_reason == StopReason::Pass => {
            format!("{} shows the proof; `nightloop verify` checks it again.", key(Action::ShowEvidence))
        }
        Activity::Ended(halted) => next_actions(halted).join(" "),
        Activity::Paused { .. } => act(format!("{} continues it.", key(Action::Pause))),
        Activity::Waiting(_) => format!(
            "{} opens the inbox. If nobody answers: {}.",
            key(Action::OpenInbox),
            scene.run.operator.patience.describe()
        ),
        Activity::Settling(_) => "Wait: the inbox will show the result.".to_owned(),
        Activity::Stopping(_) => "Wait: it ends what is running and seals the journal.".to_owned(),
        Activity::ServerWait { .. } => {
            act(format!("{} tries again now; waiting costs no iteration.", key(Action::RetryNow)))
        }
        Activity::Reply { .. } => {
            act(format!("Wait; {} shows the transcript, {} stops the run.", key(Action::ShowAgent), key(Action::Stop)))
        }
        Activity::Check { .. } | Activity::Tool { .. } | Activity::Agent { .. } | Activity::State(_) => {
            format!("Nothing to do; {} shows the transcript.", key(Action::ShowAgent))
        }
    }
}

fn evidence(scene: &Scene<'_>, now: &Now<'_>, recent: &Recent) -> Vec<String> {
    let run = scene.run;
    let mut lines = vec![last_event(scene)];
    if let Some(noted) = recent.entered(run) {
        lines.push(format!("in {} since {} (event {}): {}", run.state, scene.clock(&noted.ts), noted.seq, noted.what));
    } else {
        lines.push(format!("state {}", run.state));
    }
    match &now.activity {
        Activity::Waiting(decision) => lines.push(format!("why it was asked: {}", Safe::line(&decision.why))),
        Activity::ServerWait { cause: Some(failure), .. } => {
            lines.push(format!("failed attempts of this request: {}", failure.attempt + 1));
        }
        Activity::Reply { writing: false, .. } if now.for_millis(scene) >= LONG_SILENCE_MS => {
            lines.push(format!("nothing from the model for {}", widget::duration(now.for_millis(scene))));
        }
        _ => {}
    }
    lines.push(progress(run));
    if let Some(by) = &run.operator.stop_after_iteration {
        lines.push(format!("{} asked for a stop after this iteration", Safe::line(by)));
    }
    if let Some(cut) = &run.cut {
        let limit = &cut.exhausted;
        lines.push(format!(
            "a limit was reached: {} {} of {}",
            limit.dimension,
            Safe::line(&limit.observed),
            limit.limit
        ));
    }
    if let Some(found) = forecast::forecast(run) {
        lines.push(found.sentence());
    }
    lines
}

fn last_event(scene: &Scene<'_>) -> String {
    let run = scene.run;
    let ago = widget::duration(activity::age(scene, &run.time.last_ts));
    format!("last event {} at {}, {ago} ago", run.next_seq.saturating_sub(1), scene.clock(&run.time.last_ts))
}

fn progress(run: &RunState) -> String {
    let residual = run.iterations().rev().find_map(|it| it.residual.as_ref());
    let residual = match residual.or(run.baseline.residual.as_ref()) {
        Some(Some(residual)) => residual.value.to_string(),
        Some(None) => "null".to_owned(),
        None => "not measured".to_owned(),
    };
    format!("iterations finished: {} of {}, residual {residual}", run.spent.iterations, run.limits.max_iterations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::moment::{Moment, agent_at_work, asked, rate_limited, requested};
    use crate::console::sample::{Sample, scene};
    use crate::console::theme::Theme;
    use crate::machine::event::{PauseBegan, PauseRequested};

    fn told(moment: &Moment) -> Why {
        let theme = Theme::plain();
        why_with(&scene(&moment.run, &theme), &moment.recent, &default_key)
    }

    #[test]
    fn a_decision_names_its_number_and_the_inbox() {
        let why = told(&asked());
        assert!(
            why.sentence.starts_with("It is waiting for you: decision d1 (question: Keep the old API?)"),
            "{why:?}"
        );
        assert!(why.next.starts_with("i opens the inbox."), "{why:?}");
        assert!(why.evidence.iter().any(|line| line.contains("the goal does not say")), "{why:?}");
    }

    #[test]
    fn a_limit_offers_to_retry_and_a_reader_gets_no_offer() {
        let moment = rate_limited();
        let why = told(&moment);
        assert!(
            why.sentence.contains("rate_limited: 5-hour limit reached") && why.next.starts_with("r tries"),
            "{why:?}"
        );
        let theme = Theme::plain();
        let reader = Scene { read_only: true, ..scene(&moment.run, &theme) };
        assert!(why_with(&reader, &moment.recent, &default_key).next.contains("read-only"));
    }

    #[test]
    fn waiting_for_the_model_and_being_paused_are_told_apart() {
        let waiting = told(&requested(agent_at_work()));
        assert_eq!(waiting.sentence, "It has been waiting for rehearsal-1 to answer the solver for 1 min.");
        let paused = told(&agent_at_work().then(PauseRequested { by: "ada".into() }).then(PauseBegan {}));
        assert!(paused.sentence.starts_with("It has been paused by ada since "), "{paused:?}");
        assert_eq!(paused.next, "p continues it.");
    }

    #[test]
    fn an_end_says_why_and_where_the_proof_is() {
        let sample = Sample::demo();
        let why = told(&Moment::after(&sample, sample.events.len()));
        assert!(why.sentence.starts_with("It has ended: EXIT_CONVERGED, PASS"), "{why:?}");
        assert!(why.next.contains("nightloop verify"), "{why:?}");
    }

    #[test]
    fn a_lost_link_is_no_stopped_run() {
        let moment = agent_at_work();
        let theme = Theme::plain();
        let link = Link::Lost("broken pipe".into());
        let lost = Scene { link: &link, ..scene(&moment.run, &theme) };
        assert!(why(&lost).sentence.contains("the run itself may still be running"));
        let past = Scene { live: false, ..scene(&moment.run, &theme) };
        assert!(why(&past).next.starts_with("L returns"));
    }

    #[test]
    fn every_moment_of_a_run_has_an_answer() {
        let sample = Sample::demo();
        let theme = Theme::plain();
        for count in (1..=sample.events.len()).step_by(7) {
            let run = sample.after(count);
            let why = why(&scene(&run, &theme));
            assert!(!why.sentence.is_empty() && !why.next.is_empty() && why.evidence.len() >= 3, "{count}: {why:?}");
        }
    }
}
