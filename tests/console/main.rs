//! The real binary behind a pseudo terminal: keys in, a screen out, and a run that can be verified afterwards.
//!
//! Every test has its own workspace, state and configuration. Nothing here sleeps to let something happen:
//! it waits until the screen or the journal says so.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "../golden/case.rs"]
mod case;
#[path = "../../src/model/safe/corpus.rs"]
mod corpus;
#[path = "../support/mod.rs"]
mod support;

mod screen;
mod sequences;
mod stage;

mod attached;
mod budget;
mod crash;
mod decisions;
mod demo;
mod detach;
mod hangup;
mod headless;
mod hostile;
mod look;
mod orders;
mod quiet;
mod replay;
mod resize;
mod secrets;
mod signals;
mod stop;
mod value;
