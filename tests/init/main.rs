//! `nightloop init`, and that what it writes runs: the real binary in projects as people have them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod goal;
mod honest;
mod ralph;
mod shapes;
mod written;
