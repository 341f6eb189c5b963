//! What happens before the prompt: signing in, sessions that go on, modes, models, our tools.

use nightloop::agent::ProgramFault;
use nightloop::agent::program::Offer;
use nightloop::model::act::Act;
use nightloop::model::decimal::Exact;

use crate::stage::{Stage, task};

#[tokio::test]
async fn we_never_sign_in_and_say_how_to() {
    let dir = tempfile::tempdir().unwrap();
    let seen = Stage::default().play(&task(dir.path(), "acp: say=hi"), "sign-in").await;
    let (fault, message) = seen.fault();
    assert_eq!(fault, ProgramFault::Auth);
    assert!(message.contains("Sign in with a browser"), "{message}");
}

#[tokio::test]
async fn a_session_goes_on_and_its_past_is_no_news() {
    let dir = tempfile::tempdir().unwrap();
    let mut task = task(dir.path(), "acp: cost=1.75 say=New_words.");
    task.session = Some("s-1".into());
    let seen = Stage::default().play(&task, "").await;
    assert_eq!(seen.acts, vec![Act::Said { text: "New words.".into() }]);
    assert_eq!(seen.finished().session.as_deref(), Some("s-1"));
    // The program sums up; the earlier turns are not this one's.
    assert_eq!(seen.finished().cost_usd, Some(Exact::parse("0.25").unwrap()));
}

#[tokio::test]
async fn a_session_that_cannot_go_on_is_begun_anew_and_told() {
    let dir = tempfile::tempdir().unwrap();
    for (manner, session, why) in [("no-load", "s-1", "cannot go on"), ("", "s-9", "no such session")] {
        let mut task = task(dir.path(), "acp: say=hi");
        task.session = Some(session.into());
        let seen = Stage::default().play(&task, manner).await;
        assert_eq!(seen.finished().session.as_deref(), Some("s-1"));
        assert!(seen.notes().iter().any(|note| note.contains(why)), "{:?}", seen.notes());
    }
}

#[tokio::test]
async fn mode_and_model_are_set_where_they_are_offered() {
    let dir = tempfile::tempdir().unwrap();
    let mut task = task(dir.path(), "acp: state");
    (task.read_only, task.model) = (true, Some("Big".into()));
    for manner in ["", "old-models"] {
        let seen = Stage::default().play(&task, manner).await;
        assert_eq!(seen.finished().text, "mode plan, model big-1, 0 servers");
        assert_eq!(seen.finished().model.as_deref(), Some("big-1"));
        assert_eq!(seen.notes(), Vec::<&str>::new());
    }
    // Where our sandbox holds it, nobody need be asked.
    task.caged = true;
    assert_eq!(Stage::default().play(&task, "").await.finished().text, "mode yolo, model big-1, 0 servers");
    task.caged = false;
    task.model = Some("huge".into());
    let seen = Stage::default().play(&task, "no-modes").await;
    assert_eq!(seen.finished().text, "mode default, model small, 0 servers");
    assert_eq!(seen.finished().model.as_deref(), Some("small"));
    let notes = seen.notes();
    assert!(notes.iter().any(|note| note.contains("no read-only mode")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("model huge")), "{notes:?}");
}

#[tokio::test]
async fn our_tools_are_offered_as_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let mut task = task(dir.path(), "acp: state");
    task.offer = Some(Offer { name: "nightloop".into(), argv: vec!["/bin/false".into()], env: Vec::new() });
    let seen = Stage::default().play(&task, "").await;
    assert_eq!(seen.finished().text, "mode default, model small, 1 servers");
}
