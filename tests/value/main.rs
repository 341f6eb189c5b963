//! Whole runs of the value playbook: the real binary, a scripted model, real files, scripts and answers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod case;

mod corrections;
mod demo;
mod lessons;
mod preparing;
mod scenarios;
mod unattended;
