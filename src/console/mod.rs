//! The operator's console: a reader of events and a giver of commands, never a decider.
//!
//! Model, update and view are pure: keys and updates of the feed become messages, messages change the model
//! and name commands, the view draws what is there. The shell around them reads the terminal, the feed and
//! files. The same code runs over a channel (in-process), a socket (attached) and a journal (replay).
//!
//! Invariants: nothing changed, nothing drawn; foreign text is [`Safe`](crate::model::safe::Safe) before it
//! gets near a cell; the terminal is given back as it was found.

pub mod action;
pub mod activity;
pub mod app;
pub mod ascii;
pub mod bars;
pub mod charts;
pub mod cmd;
pub mod diff;
pub mod document;
pub mod feed;
pub mod hunks;
mod input;
pub mod keymap;
pub mod load;
pub mod markdown;
pub mod model;
#[cfg(test)]
mod moment;
pub mod overlays;
pub mod paint;
pub mod panes;
pub mod prose;
pub mod pulse;
pub mod recent;
#[cfg(test)]
pub(crate) mod sample;
pub mod scene;
pub mod screens;
pub mod scroll;
pub mod scrub;
pub mod settings;
pub mod source;
pub mod syntax;
pub mod terminal;
pub mod theme;
pub mod transcript;
pub mod update;
pub mod view;
pub mod why;
pub mod widget;
#[cfg(test)]
mod words_tests;
pub mod world;
