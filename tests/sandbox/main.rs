//! The hostile corpus: commands that try to break out, run for real, each held by the sandbox.
//!
//! Role: every case must be held *and* leave us, a bystander and everything outside as they were *and* leave no
//! process behind. `layers` takes one line of defence away at a time and names a case that then gets through: the
//! corpus can fail. Not its role: what policies say (unit tests of `tool::sandbox`).
//!
//! On a machine that cannot enforce the sandbox this fails; it does not pass in silence.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(target_os = "linux")]

mod environment;
mod escapes;
mod files;
mod helper;
mod kernel;
mod launcher;
mod layers;
mod lifetime;
mod network;
mod ordinary;
mod overlay;
mod raised;
mod secrets;
mod shared;
mod stage;

use stage::Case;

/// All cases that share one setting: no network, the workspace writable.
fn corpus() -> Vec<Case> {
    let mut cases = files::cases();
    cases.extend(secrets::cases());
    cases.extend(escapes::cases());
    cases.extend(kernel::cases());
    cases.extend(network::cases());
    cases.extend(lifetime::cases());
    cases.extend(raised::cases());
    cases
}

#[test]
fn the_corpus_is_held() {
    let cases = corpus();
    assert!(cases.len() >= 200, "only {} cases", cases.len());
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "two cases have one name");
    // `NIGHTLOOP_CASE=text`: only those with it in their name.
    let wanted = std::env::var("NIGHTLOOP_CASE").unwrap_or_default();
    stage::hold_all(cases.into_iter().filter(|case| case.name.contains(&wanted)).collect(), None);
}

/// Where no launcher can be had, the rest holds what concerns processes as well as it can.
#[test]
fn processes_are_held_without_a_launcher() {
    let mut cases = escapes::cases();
    cases.extend(lifetime::cases());
    cases.extend(raised::cases());
    stage::hold_all(cases, Some(nightloop::tool::sandbox::Layer::Launcher));
}
