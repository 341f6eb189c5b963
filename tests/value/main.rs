//! Whole runs of the value playbook: the real binary, a scripted model, real files, scripts and answers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

#[path = "../durability/chain.rs"]
#[allow(dead_code)]
mod chain;
#[path = "../durability/harness.rs"]
#[allow(dead_code)]
mod harness;

mod case;

mod corrections;
mod crash;
mod demo;
mod dying;
mod forge;
mod kills;
mod large;
mod lessons;
mod limits;
mod preparing;
mod reading;
mod recovery;
mod scenarios;
mod services;
mod unattended;
