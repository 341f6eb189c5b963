//! Figures of the console, not tests: `cargo bench --bench console`. Each line says what was measured.
//!
//! `NIGHTLOOP_BENCH_LINES` (default 100,000) and `NIGHTLOOP_BENCH_ITERATIONS` (default 100) set the sizes;
//! figures are kept in docs/figures.md.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "console/engine.rs"]
mod engine;
#[path = "../tests/support/operator.rs"]
mod operator;
#[path = "console/process.rs"]
mod process;

use std::io;
use std::time::{Duration, Instant};

use nightloop::console::feed::Update;
use nightloop::console::panes::PaneId;
use nightloop::console::terminal::{Device, Manners, Options, Terminal};
use nightloop::console::theme::Theme;
use nightloop::console::update::Msg;
use nightloop::console::view::view;
use operator::{Operator, Recorded, key, live};
use ratatui::layout::Size;

fn main() {
    engine::serve_as_reaper();
    println!("## Console figures\n");
    println!("| what | figure |\n|---|---|");
    let lines = size("NIGHTLOOP_BENCH_LINES", 100_000);
    keys(lines);
    feed(lines);
    engine::with_and_without(size("NIGHTLOOP_BENCH_ITERATIONS", 100));
    process::first_frames();
    process::memory();
}

fn size(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

pub fn row(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}

/// The value below which this share of the samples lies.
pub fn share(samples: &mut [Duration], percent: usize) -> Duration {
    samples.sort_unstable();
    samples[(samples.len() * percent / 100).min(samples.len() - 1)]
}

pub fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1_000.0)
}

/// A terminal that takes everything and keeps nothing.
pub struct Nowhere(pub u16, pub u16);

impl Device for Nowhere {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        Ok(Size::new(self.0, self.1))
    }

    fn take(&mut self, _leave: &str) -> io::Result<()> {
        Ok(())
    }

    fn amend(&mut self, _leave: &str) {}

    fn give_back(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_taken(&self) -> bool {
        true
    }
}

pub fn terminal() -> Terminal<Nowhere> {
    let manners = Manners::detect(|_| None);
    Terminal::enter_on(Nowhere(120, 40), Options { mouse: false, manners }).unwrap()
}

/// What the shell of the console does for a frame.
pub fn draw(terminal: &mut Terminal<Nowhere>, operator: &Operator) {
    let model = &operator.model;
    let drawn = terminal.draw(|frame| {
        view(frame, model);
        model.world.theme.paint(frame.buffer_mut());
    });
    drawn.unwrap();
}

fn line(number: usize) -> String {
    let text = format!("line {number}: what an agent writes while it works, a hundred signs of it");
    format!("{text:.<99}\n")
}

/// A run at work, and a model that has written this many lines.
fn long_run(lines: usize) -> Operator {
    let recorded = Recorded::demo();
    let mut operator = Operator::watching(recorded, recorded.at_work(), Theme::dark(), (120, 40));
    let mut number = 0;
    while number < lines {
        let text: String = (number..lines.min(number + 500)).map(line).collect();
        operator.tell(Msg::Feed(vec![live("it2.solver", 1, text)]));
        number += 500;
    }
    operator
}

/// From a key to the frame that shows it, pane by pane.
fn keys(lines: usize) {
    const PRESSES: usize = 400;
    let mut operator = long_run(lines);
    let mut terminal = terminal();
    draw(&mut terminal, &operator);
    println!(
        "| **a key to its frame**, 120x40, {lines} lines of transcript, {} MB | p50, p99, bytes a frame |",
        lines / 10_000
    );
    for pane in PaneId::ALL {
        operator.press(&pane.key().to_string());
        draw(&mut terminal, &operator);
        let before = terminal.stats();
        let mut samples = Vec::with_capacity(PRESSES);
        for number in 0..PRESSES {
            let name = match pane {
                PaneId::Overview => ["left", "right", "v"][number % 3],
                _ => ["up", "up", "down", "pageup", "pagedown"][number % 5],
            };
            let started = Instant::now();
            operator.tell(Msg::Key(key(name)));
            draw(&mut terminal, &operator);
            samples.push(started.elapsed());
        }
        let after = terminal.stats();
        let bytes = (after.bytes - before.bytes) / (after.frames - before.frames).max(1);
        let (p50, p99) = (share(&mut samples, 50), share(&mut samples, 99));
        row(pane.title(), &format!("{}, {}, {bytes}", millis(p50), millis(p99)));
    }
    let mut samples = Vec::new();
    let before = terminal.stats();
    for number in 0..PRESSES {
        let started = Instant::now();
        operator.tell(Msg::Key(key(&(1 + number % 7).to_string())));
        draw(&mut terminal, &operator);
        samples.push(started.elapsed());
    }
    let bytes = (terminal.stats().bytes - before.bytes) / PRESSES as u64;
    let (p50, p99) = (share(&mut samples, 50), share(&mut samples, 99));
    row("from pane to pane", &format!("{}, {}, {bytes}", millis(p50), millis(p99)));
}

/// Live text line by line, with a frame for every burst that the shell would take at once.
fn feed(lines: usize) {
    const BURST: usize = 256;
    let recorded = Recorded::demo();
    let mut operator = Operator::watching(recorded, recorded.at_work(), Theme::dark(), (120, 40));
    operator.press("2");
    let mut terminal = terminal();
    let part = (lines / 10).max(1);
    let mut parts = Vec::new();
    let mut frames = 0;
    let started = Instant::now();
    let mut since = started;
    for number in 0..lines {
        let update: Update = live("it2.solver", 1, line(number));
        operator.tell(Msg::Feed(vec![update]));
        if number % BURST == 0 {
            draw(&mut terminal, &operator);
            frames += 1;
        }
        if (number + 1) % part == 0 {
            parts.push(since.elapsed());
            since = Instant::now();
        }
    }
    let total = started.elapsed();
    let ratio = parts[parts.len() - 1].as_secs_f64() / parts[0].as_secs_f64();
    row(
        &format!("**{lines} lines of live text**, one message each, {frames} frames"),
        &format!("{:.2} s; the last tenth takes {ratio:.2} times the first", total.as_secs_f64()),
    );
}
